import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zephon.io.fields import TEXT, TOKENS, Column
from zephon.io.formats.arrow_columns import converted, empty_column, kind_of_type

TEXT_COLUMN, TOKEN_COLUMN = Column("text", "text"), Column("ids", "tokens")
TEXT_TYPES = [
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.dictionary(pa.int8(), pa.string()),
    pa.dictionary(pa.int32(), pa.large_string()),
]
LIST_TYPES = [
    make(item)
    for make in (pa.list_, pa.large_list)
    for item in (
        pa.int8(),
        pa.uint8(),
        pa.int16(),
        pa.int32(),
        pa.uint32(),
        pa.int64(),
        pa.uint64(),
    )
]


def strings(values, dtype):
    if pa.types.is_dictionary(dtype):
        return pa.array(values, dtype.value_type).dictionary_encode()
    return pa.array(values, dtype)


def problems(faults):
    return dict(zip(faults.rows.tolist(), faults.details, strict=True))


@pytest.mark.parametrize("dtype", TEXT_TYPES, ids=str)
def test_every_kind_of_string_becomes_the_same(dtype):
    column, faults = converted(strings(["a", "", "größe"], dtype), TEXT_COLUMN)
    assert column.equals(pa.array(["a", "", "größe"], TEXT))
    assert len(faults.rows) == 0
    assert kind_of_type(dtype) == "text"


@pytest.mark.parametrize("dtype", TEXT_TYPES, ids=str)
def test_null_text_is_a_fault_of_its_row(dtype):
    column, faults = converted(strings(["a", None, "null", None], dtype), TEXT_COLUMN)
    assert column.to_pylist() == ["a", "", "null", ""]
    assert column.null_count == 0
    assert sorted(problems(faults)) == [1, 3]
    assert faults.details[0].startswith(": field 'text' must be text, got null")


@pytest.mark.parametrize("dtype", LIST_TYPES, ids=str)
def test_every_kind_of_integer_list_becomes_the_same(dtype):
    rows = [[1, 2], [], [127]]
    column, faults = converted(pa.array(rows, dtype), TOKEN_COLUMN)
    assert column.type == TOKENS
    assert column.to_pylist() == rows
    assert len(faults.rows) == 0
    assert kind_of_type(dtype) == "tokens"


def test_lists_of_fixed_size():
    rows = pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int64(), 2))
    column, faults = converted(rows, TOKEN_COLUMN)
    assert column.to_pylist() == [[1, 2], [], [3, 4]]
    assert sorted(problems(faults)) == [1]


@given(
    st.lists(st.one_of(st.none(), st.lists(st.one_of(st.none(), st.integers(-9, 9)), max_size=4))),
    st.sampled_from([pa.list_(pa.int16()), pa.large_list(pa.int32()), pa.list_(pa.int32())]),
    st.data(),
)
def test_nulls_are_faults_and_slices_are_honoured(rows, dtype, data):
    start = data.draw(st.integers(0, len(rows)))
    column, faults = converted(pa.array(rows, dtype).slice(start), TOKEN_COLUMN)
    bad = [i for i, row in enumerate(rows[start:]) if row is None or None in row]
    assert faults.rows.tolist() == bad
    assert column.null_count == column.values.null_count == 0
    for i, row in enumerate(rows[start:]):
        if i not in bad:
            assert column[i].as_py() == row


def test_a_null_list_may_hide_numbers():
    hidden = pa.ListArray.from_arrays(
        pa.array([0, 2, 4], pa.int32()), pa.array([1, 2, 3, 4]), mask=pa.array([True, False])
    )
    assert converted(hidden, TOKEN_COLUMN)[0].to_pylist() == [[], [3, 4]]


@pytest.mark.parametrize(
    ("rows", "dtype", "bad", "value"),
    [
        ([[1], [2, 2**31], [3]], pa.int64(), 1, 2**31),
        ([[1], [-(2**31) - 1, 2**40], [3]], pa.int64(), 1, -(2**31) - 1),
        ([[2**64 - 1], [2], [3]], pa.uint64(), 0, 2**64 - 1),
        ([[], [], [2**32 - 1]], pa.uint32(), 2, 2**32 - 1),
    ],
)
def test_tokens_that_int32_cannot_hold(rows, dtype, bad, value):
    column, faults = converted(pa.array(rows, pa.list_(dtype)), TOKEN_COLUMN)
    assert sorted(problems(faults)) == [bad]
    assert f"must be a list of 32-bit integers, got {value};" in faults.details[0]
    for row in {0, 1, 2} - {bad}:
        assert column[row].as_py() == rows[row]


@pytest.mark.parametrize("dtype", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_bytes_that_are_not_utf8_are_faults(dtype):
    raw = [b"ok", b"\xff", "größe".encode(), b"a\xed\xa0\x80", b""] * 20
    wide = {pa.string(): pa.binary(), pa.string_view(): pa.binary_view()}.get(
        dtype, pa.large_binary()
    )
    column, faults = converted(pa.array(raw, wide).view(dtype), TEXT_COLUMN)
    assert faults.rows.tolist() == [i for i in range(100) if i % 5 in (1, 3)]
    assert "got bytes that are not UTF-8" in faults.details[0]
    column.validate(full=True)
    assert column.to_pylist()[:5] == ["ok", "", "größe", "", ""]


def test_a_column_of_nulls_alone():
    for column in (TEXT_COLUMN, TOKEN_COLUMN):
        array, faults = converted(pa.nulls(3), column)
        assert array.type == column.type
        assert array.null_count == 0
        assert faults.rows.tolist() == [0, 1, 2]


def test_empty_lists_without_a_type():
    array, faults = converted(pa.array([[], [None], []], pa.list_(pa.null())), TOKEN_COLUMN)
    assert array.to_pylist()[::2] == [[], []]
    assert faults.rows.tolist() == [1]


def test_extension_types_are_read_as_what_they_store():
    class Prose(pa.ExtensionType):
        def __init__(self):
            super().__init__(pa.string(), "test.prose")

        def __arrow_ext_serialize__(self):
            return b""

    stored = pa.ExtensionArray.from_storage(Prose(), pa.array(["a"]))
    assert kind_of_type(stored.type) == "text"
    assert converted(stored, TEXT_COLUMN)[0].equals(pa.array(["a"], TEXT))


def test_empty_columns():
    assert empty_column(TEXT_COLUMN, 2).equals(pa.array(["", ""], TEXT))
    assert empty_column(TOKEN_COLUMN, 2).equals(pa.array([[], []], TOKENS))
    for column in (TEXT_COLUMN, TOKEN_COLUMN):
        assert converted(pa.array([], column.type), column)[0].equals(empty_column(column, 0))


def test_int32_tokens_are_shared_not_copied():
    source = pa.array([[1, 2], [3]], TOKENS)
    column, _ = converted(source, TOKEN_COLUMN)
    assert column.values.buffers()[1].address == source.values.buffers()[1].address


@pytest.mark.parametrize(
    ("dtype", "kind"),
    [
        (pa.float32(), "scalar"),
        (pa.bool_(), "scalar"),
        (pa.timestamp("us"), "scalar"),
        (pa.decimal128(10, 2), "scalar"),
        (pa.list_(pa.float16()), "numbers"),
        (pa.list_(pa.bool_()), "numbers"),
        (pa.list_(pa.string()), "other"),
        (pa.struct({"a": pa.int8()}), "other"),
        (pa.binary(), "bytes"),
        (pa.binary(4), "bytes"),
        (pa.null(), "unknown"),
        (pa.list_(pa.null()), "unknown"),
        (pa.map_(pa.string(), pa.string()), "other"),
    ],
    ids=str,
)
def test_kinds_of_other_types(dtype, kind):
    assert kind_of_type(dtype) == kind
