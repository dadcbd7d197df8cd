"""Recipes in TOML: equal to the calls that they mirror, refused where they name nothing."""

import polars as pl
import pytest

from tests.written import dataset, parquet
from zephon import Dataset, Pipeline, StaticMixtureWorkSource
from zephon.errors import PlanError
from zephon.ops import DomainGroups
from zephon.recipe import load_recipe
from zephon.work import MixtureSchedule, TokenEstimation, samples, tokens

ROWS = [
    {"tokens": [i, i + 1, i + 2], "lang": ["en", "de"][i % 2], "score": i / 40} for i in range(40)
]
HEAD = """
[[datasets]]
name = "a"
path = "{0}/a"

[[datasets]]
name = "b"
path = "{0}/b"

"""
SOURCE = """
[source]
mixture = {{ a = 0.7, b = 0.3 }}
seed = 42
"""


@pytest.fixture
def folder(tmp_path):
    for name in "ab":
        dataset("parquet", tmp_path / name, ROWS, name=name)
    return tmp_path


def load(folder, text):
    (folder / "job.toml").write_text(text, encoding="utf-8")
    return load_recipe(folder / "job.toml")


def made(folder, text):
    return load(folder, (HEAD + SOURCE + text).format(folder))()


def source(folder, **settings):
    return StaticMixtureWorkSource(
        datasets=[Dataset.from_path(name, folder / name) for name in "ab"],
        mixture={"a": 0.7, "b": 0.3},
        **{"seed": 42, **settings},
    )


CHAINS = {
    "packing": (
        """
        [[steps]]
        shuffle = 16

        [[steps]]
        call = "pack_flat"
        max_length = 9
        algorithm = "best_fit"
        num_bins = 4
        tokens_field = "tokens"
        pad_token_id = 0

        [[steps]]
        batch = 2

        [options]
        global_batch_size = 8
        canonical_replicas = 4
        """,
        lambda p: (
            p.shuffle(16)
            .pack_flat(9, algorithm="best_fit", num_bins=4, tokens_field="tokens", pad_token_id=0)
            .batch(2)
            .options(global_batch_size=8, canonical_replicas=4)
        ),
    ),
    "filter": (
        """
        [[steps]]
        filter = "lang = 'en' AND score > 0.5"
        """,
        lambda p: p.filter(pl.sql_expr("lang = 'en' AND score > 0.5")),
    ),
    "columns": (
        """
        [[steps]]
        call = "filter"
        predicates = ["score < 0.9", "lang LIKE 'e%'"]

        [[steps]]
        call = "with_columns"
        twice = "score * 2"

        [[steps]]
        rename = {{ lang = "language" }}

        [[steps]]
        call = "select"
        expressions = ["language", "twice"]
        long = "LENGTH(language) > 1"

        [[steps]]
        drop = ["long"]

        [[steps]]
        take = 5
        """,
        lambda p: (
            p.filter(pl.sql_expr("score < 0.9"), pl.sql_expr("lang LIKE 'e%'"))
            .with_columns(twice=pl.sql_expr("score * 2"))
            .rename({"lang": "language"})
            .select("language", "twice", long=pl.sql_expr("LENGTH(language) > 1"))
            .drop("long")
            .take(5)
        ),
    ),
    "groups": (
        """
        [[steps]]
        call = "pack_flat"
        max_length = 9
        algorithm = "wrap"
        tokens_field = "tokens"
        homogeneity = "group"
        pad_token_id = 0
        groups = {{ all = ["a", "b"] }}

        [[steps]]
        call = "materialize"
        """,
        lambda p: p.pack_flat(
            9,
            algorithm="wrap",
            tokens_field="tokens",
            homogeneity="group",
            pad_token_id=0,
            groups=DomainGroups({"all": ["a", "b"]}),
        ).materialize(),
    ),
}


@pytest.mark.parametrize("chain", CHAINS)
def test_the_same_calls_have_the_same_fingerprint(folder, chain):
    text, calls = CHAINS[chain]
    mirrored, called = made(folder, text), calls(Pipeline(source(folder)))
    assert mirrored.fingerprint() == called.fingerprint()
    assert mirrored.explain() == called.explain()
    assert mirrored.collect(3) == called.collect(3)


def test_options_of_stages_are_numbered(folder):
    text = """
    [options]
    runner = "threads"
    per_stage_runner = {{ 0 = "inline" }}
    """
    assert "runner=inline" in made(folder, text).explain()


def test_a_source_with_everything_that_is_nested(folder):
    text = """
    [source.schedule]
    unit = "samples"
    points = [[20, {{ a = 0.2, b = 0.8 }}]]

    [source.budget]
    a = 30
    b = {{ samples = 25 }}
    """
    wanted = source(
        folder,
        schedule=MixtureSchedule({20: {"a": 0.2, "b": 0.8}}),
        budget={"a": 30, "b": samples(25)},
    )
    assert made(folder, text).fingerprint() == Pipeline(wanted).fingerprint()
    estimated = """
    budget = {{ a = {{ tokens = 50 }} }}
    token_estimation = {{ primer = {{ a = 0.4, b = 0.2 }} }}
    """
    wanted = source(
        folder,
        budget={"a": tokens(50)},
        token_estimation=TokenEstimation(primer={"a": 0.4, "b": 0.2}),
    )
    assert made(folder, estimated).fingerprint() == Pipeline(wanted).fingerprint()


def test_a_dataset_of_folders_is_described_by_its_words(tmp_path):
    parquet(tmp_path / "lang=en", "a.parquet", [{"text": "x", "lang": "fr"}])
    text = """
    [[datasets]]
    name = "a"
    path = "{0}"
    glob = ["lang=*/*.parquet"]
    recursive = true
    hive = "{1}"
    [source]
    mixture = {{ a = 1 }}
    [options]
    runner = "inline"
    """
    for hive, wanted in (("path", "en"), ("file", "fr")):
        record = next(iter(load(tmp_path, text.format(tmp_path, hive))()))
        assert record.payload["lang"] == wanted
    with pytest.raises(PlanError, match=r"\[\[datasets\]\] 1: .*hive must be True, False"):
        load(tmp_path, text.format(tmp_path, "paths"))()


def test_every_call_gives_a_new_pipeline(folder):
    recipe = load(folder, (HEAD + SOURCE).format(folder))
    one, other = recipe(), recipe()
    assert one is not other
    first = one.collect(4)
    one.options(memory_budget="64mb")
    assert other.collect(4) == first


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[step]]\ncall = 'shuffle'", "there is no table 'step'; did you mean 'steps'?"),
        ("[steps]\ncall = 'shuffle'", "steps must be tables"),
        ("[[options]]\nrunner = 'inline'", "options must be a table"),
        ("[[steps]]\ncall = 'pack_flt'", "[[steps]] 1: there is no call 'pack_flt'; did you mean"),
        (
            "[[steps]]\nshufle = 8",
            "[[steps]] 1: there is no call 'shufle'; did you mean 'shuffle'?",
        ),
        (
            "[[steps]]\ncall = 'shuffle'\n[[steps]]\ncall = 'shuffle'\nbufer_size = 3",
            "[[steps]] 2: there is no argument 'bufer_size'; did you mean 'buffer_size'?",
        ),
        ("[[steps]]\ncall = 'batch'", "[[steps]] 1: missing a required argument"),
        ("[[steps]]\nbatch = 'eight'", "[[steps]] 1: batch: microbatch_size must be an integer"),
        ("[[steps]]\nbuffer_size = 3\nseed = 1", "expected call = NAME, got buffer_size, seed"),
        ("[[steps]]\nmap_transform = 'os.system'", "map_transform takes a function"),
        ("[[steps]]\ncall = '_add'", "there is no call '_add'"),
        ("[[steps]]\ncall = '__init__'", "there is no call '__init__'"),
        ("[[steps]]\nfilter = 3", "[[steps]] 1: expected an expression in SQL, got 3"),
        ("[[steps]]\nfilter = 'score >'", "is no expression in SQL"),
        ("[[steps]]\nfilter = 'scor > 1'", "no field 'scor'; did you mean 'score'?"),
        ("[[steps]]\nfilter = 'AVG(score) > 1'", "looks at each row by itself"),
        ("[[steps]]\nfilter = '" + "score > 0 AND " * 200 + "score > 0'", "at most 2,000 char"),
        ("[options]\nper_stage_runner = { a = 'inline' }", "must have stage numbers as keys"),
        ("[options]\nglobal_batch = 8", "[options]: options: unknown option 'global_batch'"),
        ("[[datasets]]\nname = 'c'", "[[datasets]] 3: missing a required argument: 'path'"),
        ("[[datasets]]\nname = 'c'\npth = 'x'", "[[datasets]] 3: there is no argument 'pth'"),
        ("[[datasets]]\nname = 'c'\npath = 'nowhere'", "[[datasets]] 3: "),
    ],
)
def test_what_names_nothing_is_refused_with_the_nearest(folder, text, said):
    with pytest.raises(PlanError) as raised:
        load(folder, (HEAD + SOURCE).format(folder) + text)()
    assert str(raised.value).startswith(f"recipe '{folder}/job.toml': ")
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[source]\nmixtur = { a = 1 }", "[source]: there is no argument 'mixtur'; did you mean"),
        ("[source]\nseed = 3", "[source]: missing a required argument: 'mixture'"),
        (
            "[source]\nmixture = { a = 1, b = 1 }\nschedule = 3",
            "[source]: schedule must be a table",
        ),
        (
            "[source]\nmixture = { a = 1, b = 1 }\nbudget = { a = { rows = 3 } }",
            "[source]: budget: a must be a number or {tokens = n}",
        ),
        ("[source]\ndatasets = ['a']\nmixture = { a = 1 }", "write [[datasets]]"),
        ("seed = ", "it is no TOML: "),
    ],
)
def test_a_source_that_names_nothing_is_refused(folder, text, said):
    with pytest.raises(PlanError) as raised:
        load(folder, HEAD.format(folder) + text)()
    assert said in str(raised.value)


@pytest.mark.parametrize(
    "query",
    [
        "score IN (SELECT a FROM read_csv('{}'))",
        "score IN (FROM read_csv('{}'))",
        "EXISTS (select a from read_csv('{}'))",
        "(WITH q AS (SELECT a FROM read_csv('{}')) SELECT * FROM q) > 1",
        "score > ALL(\tFrom\tread_csv('{}'))",
    ],
)
def test_a_query_that_would_open_a_file_is_not_even_read(folder, query):
    """Polars looks into the file while it reads such a text: one that is not there would say so."""
    text = f'[[steps]]\nfilter = "{query.format(folder / "gone.csv")}"'.replace("\t", "\\t")
    with pytest.raises(PlanError, match="has the word SELECT or FROM"):
        load(folder, (HEAD + SOURCE).format(folder) + text)()


def test_words_that_only_hold_select_or_from_are_fields(folder):
    dataset("parquet", folder / "c", [{"selected": 1, "from_web": 2}] * 3, name="c")
    text = f"""
    [[datasets]]
    name = "c"
    path = "{folder}/c"

    [source]
    mixture = {{ c = 1 }}

    [[steps]]
    filter = "selected = 1 AND from_web = 2"
    """
    assert len(load(folder, text)().collect()) == 3
