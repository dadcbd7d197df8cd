"""Functions to change in the middle of a run, and what must become of every document."""

import warnings
from collections import Counter

from tests.properties import chains
from tests.properties.recipes import lengths

MORE = 10_000_000
"""Added to a token that a function made up."""


def as_it_is(sample):
    return sample


def unchanged(sample):
    return sample


def drops_more(sample):
    tokens = sample["input_ids"]
    return None if tokens and _document(tokens[0]) % 3 == 0 else sample


def halves(sample):
    return {**sample, "input_ids": sample["input_ids"][: len(sample["input_ids"]) // 2]}


def lengthens_some(sample):
    tokens = sample["input_ids"]
    if not tokens or _document(tokens[0]) % 4:
        return sample
    return {**sample, "input_ids": [*tokens, *(MORE + t for t in tokens[:7])]}


FUNCTIONS = (unchanged, drops_more, halves, lengthens_some)


def _document(token):
    return token % MORE // 1000


def documents():
    """Give the tokens of every document of the chains' data, by its number."""
    found = {}
    for name, sizes in (
        ("prose", lengths(1, 130)),
        ("code", lengths(2, 70, 90)),
        ("maths", lengths(3, 60, 9)),
    ):
        base = 1_000_000 * (1 + ord(name[0]) % 7)
        for row, size in enumerate(sizes):
            first = base + 1000 * row
            found[_document(first)] = list(range(first, first + size))
    return found


DOCUMENTS = documents()


def job(make, function, **options):
    """Build a chain whose documents a function makes, in batches of two rows."""
    pipeline = make(lambda **work: chains.start(**work).map_transform(function))
    options = {"runner": "inline", **options}
    return pipeline.batch(microbatch_size=2).options(**options)


def tokens_of(batch):
    """Give the tokens of a batch that are no padding."""
    payloads = [record.payload for record in batch.records]
    samples = [each for payload in payloads for each in payload.get("packed_samples", [payload])]
    rows = [sample["input_ids"] for sample in samples]
    return [token for row in rows for token in row if token != chains.PAD]


def accounts(pipeline):
    """Count tokens of all components, once each of them is balanced."""
    total = Counter()
    for part in pipeline.accounting().values():
        dropped = part["tokens_dropped"]
        rest = part["tokens_delivered"] + part["tokens_held"] + sum(dropped.values())
        assert part["tokens_made"] == rest
        assert min(part["tokens_held"], part["tokens_delivered"]) >= 0
        assert all(count > 0 for count in dropped.values())
        for name in ("tokens_made", "tokens_delivered", "tokens_held"):
            total[name] += part[name]
        total.update(dropped)
    return total


def run(pipeline, batches=None, keep=()):
    """Run on; give the tokens of each batch, and what stands behind those that are to be kept.

    Of these: by number, the state and the accounting; of the last one under -1.
    """
    found, kept, items = [], {}, iter(pipeline)
    for number, batch in enumerate(items):
        found.append(tokens_of(batch))
        if number in keep:
            kept[number] = pipeline.checkpoint(scope="local"), accounts(pipeline)
        if number + 1 == batches:
            break
    kept[-1] = pipeline.checkpoint(scope="local"), accounts(pipeline)
    items.close()
    return found, kept


def quiet(call, *args, **settings):
    """Call without the warnings of what packing or the edit drops."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call(*args, **settings)


def by_document(tokens):
    """Sort tokens into documents."""
    found = {}
    for token in tokens:
        found.setdefault(_document(token), []).append(token)
    return found


def check_documents(head, tail, function):
    """Check what was delivered before and after ``function`` came, document by document."""
    assert max(Counter([*head, *tail]).values(), default=1) == 1  # nothing comes twice
    before, after = by_document(head), by_document(tail)
    for number, was in DOCUMENTS.items():
        now = function({"input_ids": was})
        now = [] if now is None else now["input_ids"]
        came, comes = before.get(number, []), after.get(number, [])
        if came and now != was:
            assert not comes, "the rest of a document that is another one now"
        assert set(came) <= set(was)
        assert set(comes) <= set(now)
