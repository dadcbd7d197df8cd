"""What is told of other shards."""

from tests.exec.changed_recipes import recipe, told
from zephon.exec.recipe_changes import changes


def shards_told(before, after):
    return told({"shards": {"a": before}}, {"shards": {"a": after}})


def test_shards():
    assert shards_told((9, 3), (9, 3, 2)) == [
        ("data of 'a', shard '2'", None, "2 rows of 94 bytes", "data")
    ]
    assert shards_told((9, 3), (9,)) == [
        ("data of 'a', shard '1'", "3 rows of 141 bytes", None, None)
    ]
    assert shards_told((9, 3), (9, 1)) == [
        ("data of 'a', shard '1'", "3 rows of 141 bytes", "1 row of 47 bytes", None)
    ]


def test_a_renamed_shard_is_paired_with_one_of_its_size():
    def with_shards(*shards):
        made = recipe()
        made["data"]["a"] = [list(shard) for shard in shards]
        return made

    old = with_shards(("0", 9, 90), ("1", 3, 30), ("2", 3, 30))
    new = with_shards(("0", 9, 90), ("7", 3, 30), ("8", 4, 40), ("9", 3, 30))
    assert [(c.part, c.was, c.now, c.word) for c in changes(old, new)] == [
        ("data of 'a', shard '1'", "'1'", "'7'", None),
        ("data of 'a', shard '2'", "'2'", "'9'", None),
        ("data of 'a', shard '8'", None, "4 rows of 40 bytes", "data"),
    ]


def test_many_shards_share_a_line():
    assert shards_told((9,) * 2, (9,) * 2_000) == [
        (
            "data of 'a', 1,998 shards added",
            None,
            "'2' 9 rows of 423 bytes, '3' 9 rows of 423 bytes, '4' 9 rows of 423 bytes, ...",
            "data",
        )
    ]
    assert shards_told((9,) * 6, (8,) * 6)[0][:2] == (
        "data of 'a', 6 shards changed",
        "'0' 9 rows of 423 bytes, '1' 9 rows of 423 bytes, '2' 9 rows of 423 bytes, ...",
    )
    assert len(shards_told((9,) * 3, (9,) * 6)) == 3


def test_many_renamed_shards_are_told_by_their_names():
    old, new = recipe(), recipe()
    old["data"]["a"] = [[f"{i}", 9, 90] for i in range(5)]
    new["data"]["a"] = [[f"x{i}", 9, 90] for i in range(5)]
    [change] = changes(old, new)
    assert str(change) == (
        "data of 'a', 5 shards renamed: was '0', '1', '2', ..., is 'x0', 'x1', 'x2', ..."
    )


def test_above_so_many_shards_only_the_sums_are_told():
    def of(shards):
        made = recipe()
        made["data"]["a"] = {"shards": shards, "rows": 10, "bytes": 20, "sha256": "ab" * 32}
        return made

    assert [(c.part, c.was, c.now, c.word) for c in changes(of(5_000), of(5_001))] == [
        ("data of 'a', shards", "5000", "5001", None)
    ]
    [change] = [c for c in changes(of(5_000), recipe()) if c.part == "data of 'a', shards"]
    assert (change.was, change.now) == ("5000", "2")
