import pyarrow as pa

from zephon.io.field_types import FieldTypes, FoundType, TypesSeen


def test_a_conflict_names_a_place_of_each_type():
    seen = TypesSeen()
    for dtype, shard in ((pa.int8(), "a"), (pa.int64(), "b"), (pa.string(), "c")):
        seen.add("n", dtype, f"shard {shard!r}")
    seen.add("text", pa.string(), "shard 'a'")
    found = seen.found()
    assert found["text"] == FoundType(pa.large_string())
    assert found["n"].type is None
    assert found["n"].conflict == (
        "shard 'a' has int8, shard 'c' has string, shard 'b' has int64; write all of them in one "
        "type"
    )


def test_a_conflict_that_a_declared_type_settles():
    for dtypes, told in (
        ((pa.string(), pa.binary(), pa.string_view()), "schema={'n': 'large_string'}, or write"),
        ((pa.timestamp("us"), pa.timestamp("ms", "UTC")), "schema={'n': 'timestamp[ms, tz=UTC]'}"),
        ((pa.list_(pa.string()), pa.list_(pa.binary())), "{'n': 'large_list<item: large_string>'}"),
    ):
        for order in (dtypes, dtypes[::-1]):
            seen = TypesSeen()
            for dtype in order:
                seen.add("n", dtype, f"a place of {dtype}")
            assert told in seen.found()["n"].conflict


def test_not_all_of_many_types_are_told():
    seen = TypesSeen()
    kinds = (pa.int8(), pa.string(), pa.bool_(), pa.date32(), pa.binary(), pa.list_(pa.int8()))
    for dtype in (*kinds, pa.time32("s"), pa.duration("s")):
        seen.add("n", dtype, "there")
    assert seen.found()["n"].conflict.endswith(
        "there has binary, there has list<item: int8>, and 2 more; write all of them in one type"
    )


def test_a_conflict_of_types_that_go_with_each_of_the_others_alone():
    seen = TypesSeen()
    wide, fine, third = pa.decimal256(76, 0), pa.decimal256(40, 40), pa.decimal128(1, 1)
    for dtype in (third, fine, wide):
        seen.add("n", dtype, str(dtype))
    assert "decimal256(76, 0) has decimal256(76, 0)" in seen.found()["n"].conflict


def test_a_value_without_a_type_names_its_row():
    seen = TypesSeen()
    seen.add_sight("n", pa.int64(), "a", 0)
    seen.add_sight("n", "an object", "b", 7)
    assert seen.found()["n"].conflict.startswith("row 7 of shard 'b' has an object; ")


def test_types_are_found_when_somebody_asks_and_once():
    asked = []

    def find():
        asked.append(1)
        return {"n": FoundType(pa.int8()), "x": FoundType(None, "why not")}

    types = FieldTypes(find, [("n", pa.int64()), ("d", pa.float32())], unknown="nobody looked")
    assert types.type_of("n") == pa.int64()
    assert types.type_of("d") == pa.float32()
    assert not asked
    assert (types.type_of("x"), types.conflict("x")) == (None, "why not")
    assert (types.type_of("y"), types.conflict("y")) == (None, "no row has it")
    assert (types.conflict("n"), asked) == ("", [1])


def test_nothing_found_at_all():
    assert FieldTypes(dict, unknown="nobody looked").conflict("x") == "nobody looked"
