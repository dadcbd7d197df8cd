"""``zephon checkpoint``: what it prints, held by files, and what it does with broken files.

Each file in ``snapshots/checkpoint`` begins with a sentence that says what it protects. After a
change that is meant, write them anew with
``WRITE_SNAPSHOTS=1 pytest tests/commands/test_checkpoint.py`` and read the difference.
"""

import json
import os
import re
from itertools import islice
from pathlib import Path

import polars as pl
import pytest

from tests.custom_sources import Stateful, all_samples, numbered
from zephon import Dataset, InMemoryShard, Pipeline, StaticMixtureWorkSource, __version__, cli
from zephon.exec.checkpoint import content_digest, to_bytes

SNAPSHOTS = Path(__file__).parents[1] / "snapshots" / "checkpoint"
SECRET = "correct horse battery staple"


def data(name, shards):
    rows = [
        [{"n": i, "text": SECRET, "input_ids": [7] * (i % 5)} for i in range(n)] for n in shards
    ]
    return Dataset.from_dict(name, {i: InMemoryShard(each) for i, each in enumerate(rows)})


def job(*, weights=(0.7, 0.3), limit=2, length=16, code=(90,), prose="prose", stop=1, **options):
    datasets = [data(prose, (300, 120)), data("code", code)]
    mixture = {each.name: weight for each, weight in zip(datasets, weights, strict=True)}
    source = StaticMixtureWorkSource(datasets, mixture, seed=1, stop_after_passes=stop)
    pipe = Pipeline(source).filter(pl.col("n") > limit).pack_flat(length, algorithm="wrap").batch(2)
    return pipe.options(
        **{"runner": "inline", "global_batch_size": 4, "canonical_replicas": 2, **options}
    )


def after(batches, pipe=None):
    pipe = pipe or job()
    items = iter(pipe)
    for _ in islice(items, batches):
        pass
    state = pipe.checkpoint(scope="local")
    items.close()
    return state


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(here, capsys):
    """Write states as files, run the command on them, and give what it prints and returns."""

    def run(action, *states):
        names = []
        for name, state in zip(("a", "b"), states, strict=False):
            if isinstance(state, bytes):
                Path(f"{name}.bin").write_bytes(state)
                names.append(f"{name}.bin")
            else:
                Path(f"{name}.json").write_text(json.dumps(state))
                names.append(f"{name}.json")
        code = cli.main(["checkpoint", action, *names])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return run


def stable(text):
    """Leave out what is another in every release, or with every form of states."""
    text = text.replace(__version__, "0.0.0").replace(pl.__version__, "0.0.0")
    text = re.sub(r"fingerprint  [0-9a-f]{64}\n", "fingerprint  0123abcd\n", text)
    return re.sub(r"(json|bin), [\d,]+ bytes", r"\1, 1,234 bytes", text)


def edited():
    """Go on from a state with other weights, and stop once more."""
    return after(4, job(weights=(0.2, 0.8)).restore(after(4), allow={"weights"}))


def grown():
    """Go on from a state with two shards more of one dataset."""
    return after(2, job(code=(90, 6, 8), stop=3).restore(after(12, job(stop=3)), allow={"data"}))


PRINTED = {
    "show_inside_a_step": ("show", lambda: [after(3)]),
    "show_the_beginning": ("show", lambda: [after(0)]),
    "show_without_a_global_batch": (
        "show", lambda: [after(3, job(global_batch_size=None, canonical_replicas=3))],
    ),
    "show_after_an_edit": ("show", lambda: [edited()]),
    "show_after_shards_were_added": ("show", lambda: [grown()]),
    "diff_over_an_edit": ("diff", lambda: [after(4), edited()]),
    "diff_of_positions": ("diff", lambda: [after(2), after(4)]),
    "diff_of_recipes": (
        "diff", lambda: [
            after(2), after(2, job(weights=(0.5, 0.5), limit=3, length=17, code=(90, 4))),
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PRINTED)
def test_what_is_printed(run, name):
    action, states = PRINTED[name]
    code, out, err = run(action, *states())
    assert (code, err) == (1 if action == "diff" else 0, "")
    file = SNAPSHOTS / f"{name}.txt"
    head = file.read_text().partition("\n\n")[0] if file.exists() else "TODO"
    if os.environ.get("WRITE_SNAPSHOTS"):
        file.write_text(f"{head}\n\n{stable(out)}")
    assert stable(out) == file.read_text().partition("\n\n")[2]


def test_both_forms_of_a_state_are_the_same(run):
    state = after(3)
    assert run("diff", state, to_bytes(state)) == (0, "they are the same\n", "")
    one, other = (run("show", form)[1].splitlines() for form in (state, to_bytes(state)))
    assert one[1:] == other[1:]


def test_states_of_one_place_that_differ_are_told_apart(run):
    """So are those that only another release, or another tokenizer, wrote."""
    state = after(3)
    other = {**state, "library": "0.9.9"}
    other["digest"] = content_digest(other)
    code, out, _ = run("diff", state, other)
    assert code == 1
    assert re.fullmatch(r"written by: was zephon \S+, polars \S+, is zephon 0.9.9, .*\n", out)


def test_a_part_says_which_of_the_lanes_it_holds(run):
    _, out, _ = run("show", after(1, job(dp_degree=2, dp_group_id=1)))
    assert "\nlanes        1 of 2, 2 rows delivered\n" in out


def saved_by_ranks(folder, batches, degree=2):
    folder.mkdir()
    for group in range(degree):
        state = after(batches, job(dp_degree=degree, dp_group_id=group))
        (folder / f"rank-{group}.json").write_text(json.dumps(state))
    return sorted(str(file) for file in folder.iterdir())


def test_parts_of_ranks_are_told_as_one(here, capsys):
    parts = saved_by_ranks(here / "ranks", 2)
    Path("alone.json").write_text(json.dumps(after(4)))
    assert cli.main(["checkpoint", "show", "alone.json"]) == 0
    _, *wanted = capsys.readouterr().out.splitlines()
    for names in (parts, parts[::-1], ["ranks"], ["ranks/rank-*.json"]):
        assert cli.main(["checkpoint", "show", *names]) == 0
        head, *lines = capsys.readouterr().out.splitlines()
        assert lines == wanted
        assert re.fullmatch(r"checkpoint   \S+rank-.\.json, \S+rank-.\.json, [\d,]+ bytes", head)
    for name in ("ranks", "ranks/*"):
        assert cli.main(["checkpoint", "diff", name, "alone.json"]) == 0
        assert capsys.readouterr().out == "they are the same\n"
    for names in (["ranks", "ranks"], ["ranks", "ranks/../ranks/rank-0.json", *parts]):
        assert cli.main(["checkpoint", "show", *names]) == 0
        twice, *lines = capsys.readouterr().out.splitlines()
        assert lines == wanted
        assert re.fullmatch(r"checkpoint   \S+rank-.\.json, \S+rank-.\.json, [\d,]+ bytes", twice)
        assert twice.split(", ")[-1] == head.split(", ")[-1]
    assert cli.main(["checkpoint", "diff", "ranks", parts[0]]) == 1
    assert "lanes: was all of 2, " in capsys.readouterr().out


def test_parts_of_different_moments_are_refused_with_their_names(here, capsys):
    (first, _), (_, second) = (saved_by_ranks(here / f"at-{n}", n) for n in (1, 2))
    assert cli.main(["checkpoint", "show", first, second]) == 2
    told = "these parts are of different moments"
    what = "pass the parts of one checkpoint"
    assert capsys.readouterr().err == (
        f"zephon checkpoint: {told} ({first} at step 1, {second} at step 2): {what}; to compare "
        f"two: zephon checkpoint diff {first} {second}\n"
    )
    assert cli.main(["checkpoint", "show", "at-*/*"]) == 2
    assert capsys.readouterr().err == (
        f"zephon checkpoint: {told} (at-1/rank-0.json, at-1/rank-1.json at step 1, "
        f"at-2/rank-0.json, at-2/rank-1.json at step 2): {what}\n"
    )
    Path("other.json").write_text(json.dumps(after(2, job(length=17))))
    assert cli.main(["checkpoint", "show", first, "other.json"]) == 2
    assert f": {first} and other.json differ in 'fingerprint'; they" in capsys.readouterr().err
    (here / "none").mkdir()
    for name in ("none", "gone-*.json"):
        assert cli.main(["checkpoint", "show", name]) == 2
        assert f"zephon checkpoint: {name}: there is no file; name" in capsys.readouterr().err


def test_the_end_is_told(run):
    _, out, _ = run("show", after(None))
    assert "\nstands       at the end of the run\n" in out
    accounted = job()
    for _ in accounted:
        pass
    prose = accounted.accounting()["prose"]
    assert re.search(
        rf"^prose +{prose['rows_drawn']} +{prose['rows_filtered']} ", out, re.MULTILINE
    )


def test_no_text_of_the_data_is_printed(run):
    for action, states in PRINTED.values():
        assert SECRET not in run(action, *states())[1]


def test_names_give_a_terminal_no_commands(run):
    odd = "\x1b[31mprose\n"
    code, out, _ = run("show", after(2, job(prose=odd)))
    assert code == 0
    assert "\x1b" not in out
    assert r"\x1b[31mprose\n" in out


def test_the_numbers_are_those_of_accounting(run):
    pipe = job()
    items = iter(pipe)
    for _ in islice(items, 4):
        pass
    counted = pipe.accounting()
    _, out, _ = run("show", pipe.checkpoint())
    items.close()
    for name in ("prose", "code"):
        found = re.search(rf"^{name} +(\S+) +(\S+) +(\S+) +(\S+)$", out, flags=re.MULTILINE)
        numbers = [int(each.replace(",", "")) for each in found.groups()]
        keys = ("rows_drawn", "rows_filtered", "rows_dropped", "tokens_made")
        assert numbers == [counted[name][key] for key in keys]


def test_a_custom_source_has_its_own_names(run):
    """Here two datasets are in one component, and counted together."""
    datasets = {3: numbered("prose", 60, (0, 1, 5)), 8: numbered("code", 40, (2,))}
    for names, shown in ((None, ["prose", "code"]), ({3: "text", 8: "text"}, ["text"])):
        source = Stateful(
            datasets, all_samples(datasets, names), names={n: i for i, n in enumerate(shown)}
        )
        pipe = Pipeline(source).pack_flat(8, algorithm="wrap").batch(1).options(runner="inline")
        code, out, _ = run("show", after(9, pipe))
        assert code == 0
        rows = dict(re.findall(r"^(\w+) +(\d+) +0 +0 +\d+$", out, flags=re.MULTILINE))
        assert list(rows) == shown
        found = dict.fromkeys(shown, 0)
        for name, counts in pipe.accounting().items():
            found[name] += counts["rows_drawn"]
        assert {name: int(number) for name, number in rows.items()} == found


# Files that are no sound checkpoints


def flipped(data, place):
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


BROKEN = {
    "nothing": (lambda: b"", "these bytes are no checkpoint: they lack its first bytes"),
    "other bytes": (lambda: b"PK\x03\x04" * 9, "these bytes are no checkpoint"),
    "bytes cut off": (lambda: to_bytes(after(2))[:-9], "the checkpoint's bytes are damaged"),
    "a flipped bit": (lambda: flipped(to_bytes(after(2)), 60), "damaged"),
    "other JSON": (lambda: b'{"step": 3}', "this is no checkpoint of ours (format None"),
    "a list": (lambda: b"[1, 2]", "these bytes are no checkpoint"),
    "JSON cut off": (lambda: json.dumps(after(2)).encode()[:-9], "its JSON is cut off or damaged"),
    "JSON too deep": (lambda: b'{"a":' * 100_000, "its JSON is cut off or damaged"),
    "a changed number": (
        lambda: json.dumps({**after(2), "lane_count": 7}).encode(), "the checkpoint is damaged",
    ),
    "another version": (
        lambda: json.dumps({**after(2), "version": 2}).encode(), "version 2 is older than the",
    ),
    "what no release writes": (
        lambda: json.dumps(sealed({**after(2), "recipe": []})).encode(), "what no release writes",
    ),
    "what no lane holds": (
        lambda: json.dumps(sealed({**after(2), "lanes": {}})).encode(), "damaged",
    ),
}  # fmt: skip


def sealed(state):
    return {**state, "digest": content_digest(state)}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_named_and_refused(here, capsys, name):
    make, message = BROKEN[name]
    Path("state").write_bytes(make())
    Path("good").write_bytes(to_bytes(after(1)))
    for words in (["show", "state"], ["diff", "good", "state"], ["diff", "state", "good"]):
        assert cli.main(["checkpoint", *words]) == 2
        shown = capsys.readouterr()
        assert shown.out == ""
        assert re.match(r"zephon checkpoint: .*\n$", shown.err)
        assert message in shown.err


def test_a_file_that_is_not_there(here, capsys):
    Path("folder/inner").mkdir(parents=True)
    for words, named in (
        (["show", "gone"], "gone"),
        (["diff", "gone", "gone"], "gone"),
        (["show", "folder"], "folder/inner"),
    ):
        assert cli.main(["checkpoint", *words]) == 2
        assert f"zephon checkpoint: {named}: it cannot be read: " in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["show"], ["diff", "a"], ["compare"]])
def test_a_wrong_command_line_is_refused(words, capsys):
    with pytest.raises(SystemExit) as end:
        cli.main(["checkpoint", *words])
    assert end.value.code == 2
    assert "usage: zephon checkpoint" in capsys.readouterr().err
