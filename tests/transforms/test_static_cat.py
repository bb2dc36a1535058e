"""What an entry may hold in feat_static_cat: each form has a defined result, or an error that says where and what."""

import array
import copy
import datetime
import re
from collections import deque
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import torch

from tsnorm.errors import SOURCE_FIELD, Place, SchemaError, SchemaMismatchError
from tsnorm.schema import CategoricalFeature, StaticSchema
from tsnorm.transforms import EncodeStaticCat, FillStaticCat, static_features

NAN = float("nan")
TWO = StaticSchema.from_counts([3, 5], placeholder="omit")  # rows 0..2 and 3; rows 0..4 and 5
ONE = StaticSchema.from_counts([3], placeholder="omit")
COLOR = StaticSchema(categorical=[CategoricalFeature.make("color", vocabulary=("red", "blue", ""))], placeholder="omit")
CODE = StaticSchema(categorical=[CategoricalFeature.make("code", vocabulary=(17, 402, -1))], placeholder="omit")
STRICT = StaticSchema(
    categorical=[CategoricalFeature.make("color", vocabulary=("red", "blue"), missing="error")], placeholder="omit"
)
ABSENT = object()


def entry_with(value):
    entry = {"item_id": "T0042", "start": "2022-01", "target": [1.0, 2.0]}
    return entry if value is ABSENT else {**entry, "feat_static_cat": value}


def rows_of(schema, value):
    [out] = static_features(schema)([entry_with(value)], is_train=True)
    rows = out["feat_static_cat"]
    assert isinstance(rows, np.ndarray)
    assert rows.dtype == np.int64
    assert rows.shape == (schema.num_static_cat,)
    return rows.tolist()


def refusal(schema, value):
    with pytest.raises(SchemaMismatchError) as caught:
        list(static_features(schema)([entry_with([None] * schema.num_static_cat), entry_with(value)], is_train=True))
    message = str(caught.value)
    assert message.startswith("feat_static_cat of item 'T0042' (row 2): ")
    assert ", but " in message or " but must " in message
    assert len(re.findall(r"[.!](?: |$)", message)) >= 1
    return message


NDARRAYS = [
    np.array([1, 2], dtype=kind)
    for kind in ("b", "h", "i", "l", "B", "H", "I", "L", "e", "f", "d", "g", "O", ">i4", ">f8")
]
TENSORS = [
    torch.tensor([1, 2], dtype=getattr(torch, kind))
    for kind in ("uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64")
]


@pytest.mark.parametrize(
    "value",
    [
        [1, 2],
        (1, 2),
        [1.0, 2.0],
        (1, 2.0),
        range(1, 3),
        array.array("q", [1, 2]),
        deque([1, 2]),
        pd.Series([1, 2], index=["x", "y"]),
        pd.Index([1, 2]),
        pd.array([1, 2], dtype="Int64"),
        [np.int64(1), np.float32(2)],
        [np.array(1), torch.tensor(2)],
        [Fraction(2, 2), Fraction(2)],
        [True, 2],
        [np.True_, np.uint8(2)],
        np.array([np.bool_(True), torch.tensor(2)], dtype=object),
        np.array([0, 1, 9, 2])[1::2],
        np.ma.array([1, 2]),
        torch.tensor([1.0, 2.0], requires_grad=True),
        *NDARRAYS,
        *TENSORS,
    ],
    ids=lambda value: f"{type(value).__name__} {getattr(value, 'dtype', '')}",
)
def test_ids_in_any_container(value):
    assert rows_of(TWO, value) == [1, 2]


@pytest.mark.parametrize(
    "value",
    [
        1,
        1.0,
        True,
        np.int8(1),
        np.float16(1),
        np.True_,
        np.array(1),
        np.array(1.0),
        np.array(1, dtype=object),
        torch.tensor(1),
        torch.tensor(1.0),
        torch.tensor(True),
        Fraction(1),
        [1],
        np.array([True]),
        torch.tensor([True]),
    ],
    ids=lambda value: f"{type(value).__name__} {getattr(value, 'dtype', '')}",
)
def test_one_column_may_be_a_scalar(value):
    assert rows_of(ONE, value) == [1]


def test_zeros_of_either_sign_are_zero():
    assert rows_of(ONE, -0.0) == rows_of(ONE, np.array([-0.0])) == [0]


MISSING_FIELD = [ABSENT, None, NAN, np.float32("nan"), np.float16("nan"), pd.NA, pd.NaT, np.datetime64("NaT")]
MISSING_FIELD += [
    np.array(NAN),
    np.array(None, dtype=object),
    torch.tensor(NAN),
    torch.tensor(NAN, dtype=torch.bfloat16),
]


@pytest.mark.parametrize("value", MISSING_FIELD, ids=repr)
def test_a_missing_field_gets_the_reserved_rows(value):
    assert rows_of(TWO, value) == [3, 5]


@pytest.mark.parametrize(
    "value",
    [[item, 2] for item in MISSING_FIELD[1:]]
    + [
        (None, 2),
        np.array([NAN, 2]),
        np.array([NAN, 2], dtype=np.float16),
        np.array([None, 2], dtype=object),
        np.array([pd.NA, 2], dtype=object),
        np.array([np.float32("nan"), np.int8(2)], dtype=object),
        np.ma.array([1, 2], mask=[True, False]),
        torch.tensor([NAN, 2.0]),
        torch.tensor([NAN, 2.0], dtype=torch.bfloat16),
        pd.Series([None, 2]),
        pd.array([None, 2], dtype="Int64"),
    ],
    ids=repr,
)
def test_a_missing_category_gets_its_reserved_row(value):
    assert rows_of(TWO, value) == [3, 2]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "0 values, but the schema declares 2 (feat_static_cat_0, feat_static_cat_1). Widen it"),
        (np.array([]), "0 values, but the schema declares 2"),
        (np.empty(0, dtype=object), "0 values, but"),
        ([1], "1 value, but the schema declares 2"),
        (1, "1 value, but the schema declares 2"),
        (np.array(1), "1 value, but the schema declares 2"),
        ([1, 2, 1], "3 values, but the schema declares 2"),
        (torch.tensor([1, 2, 1]), "3 values, but the schema declares 2"),
        (
            [[1], [2]],
            "its shape is (2, 1), so that the static feature has a time axis of 2, but must have one value per",
        ),
        ([[1]] * 6, "its shape is (6, 1), so that the static feature has a time axis of 6"),  # C08
        (np.ones((6, 1)), "its shape is (6, 1), so that the static feature has a time axis of 6"),
        (np.ones((2, 6), dtype=np.int64), "its shape is (2, 6)"),
        (torch.ones(6, 1), "its shape is (6, 1)"),
        (torch.ones(1, 2, 3), "its shape is (1, 2, 3)"),
        (np.empty((0, 1)), "its shape is (0, 1)"),
        ([[1, 2]], "its shape is (1, 2), so that the static feature has a time axis of 1"),
        (((1, 2),), "its shape is (1, 2)"),
        ([np.array([1, 2])], "its shape is (1, 2)"),
        ([torch.tensor([1]), torch.tensor([2])], "its shape is (2, 1)"),
        (np.array([[1], [2]], dtype=object), "its shape is (2, 1)"),
        ([[], []], "its shape is (2, 0)"),
        ([[1], [1, 2]], "it is ragged, its items have 1, 2 values, but must have one value each. Give a flat list"),
        ([1, [1, 2]], "it is ragged, its items have 1, 2 values"),
        ([[], 2], "it is ragged, its items have 0, 1 values"),
        (np.array([[1], [1, 2], None], dtype=object)[:2], "it is ragged, its items have 1, 2 values"),
        ({"a": 1, "b": 2}, "{'a': 1, 'b': 2} is a dict, but must be a list with one value for each static feature."),
        ({1, 2}, "{1, 2} is a set, but must be a list"),
        (frozenset([1, 2]), "frozenset({1, 2}) is a frozenset, but must be a list"),
        (datetime.date(2022, 1, 1), "is a date, but must be a list"),
        (pd.Period("2022-01", "M"), "is a Period, but must be a list"),
        ("12", "1 value, but the schema declares 2"),
        (["1", 2], "'feat_static_cat_0' is the text '1', but has no vocabulary that gives it an id."),
        (np.array(["1", "2"]), "'feat_static_cat_0' is the text '1', but has no vocabulary"),
        ([b"1", 2], "'feat_static_cat_0' is b'1', but an id must be a whole number."),
        (np.array([b"1", b"2"]), "'feat_static_cat_0' is b'1', but an id must be a whole number."),
        (
            [1.7, 2],
            "'feat_static_cat_0' is 1.7, but an id must be a whole number. Recode the categories, or put a real",
        ),
        (np.array([1.5, 2], dtype=np.float32), "'feat_static_cat_0' is 1.5, but an id must be a whole number."),
        (torch.tensor([1.5, 2]), "'feat_static_cat_0' is 1.5, but an id must be a whole number."),
        ([0.1 + 0.2, 2], "is 0.30000000000000004, but an id must be a whole number."),
        ([np.nextafter(1.0, 2.0), 2], "is 1.0000000000000002, but an id must be a whole number."),
        ([float("inf"), 2], "'feat_static_cat_0' is inf, but an id must be a whole number."),
        ([1, float("-inf")], "'feat_static_cat_1' is -inf, but an id must be a whole number."),
        ([Fraction(1, 2), 2], "'feat_static_cat_0' is Fraction(1, 2), but an id must be a whole number."),
        ([Decimal(1), 2], "'feat_static_cat_0' is Decimal('1'), but an id must be a whole number."),
        ([Decimal("NaN"), 2], "'feat_static_cat_0' is Decimal('NaN'), but an id must be a whole number."),
        ([1j, 2], "'feat_static_cat_0' is 1j, but an id must be a whole number."),
        ([{1}, 2], "'feat_static_cat_0' is {1}, but an id must be a whole number."),
        ([{"id": 1}, 2], "'feat_static_cat_0' is {'id': 1}, but an id must be a whole number."),
        ([datetime.date(2022, 1, 1), 2], "is datetime.date(2022, 1, 1), but an id must be a whole number."),
        (np.array(["2022", "2023"], dtype="M8[Y]"), "is datetime.date(2022, 1, 1), but an id must be a whole number."),
        ([-1, 2], "'feat_static_cat_0' is -1, but ids start at 0. pandas marks a missing category with -1"),
        ([-1.0, 2], "'feat_static_cat_0' is -1, but ids start at 0."),
        (np.array([1, -1]), "'feat_static_cat_1' is -1, but ids start at 0."),
        ([3, 3], "'feat_static_cat_0' is 3, but its cardinality is 3 (ids 0..2). Widen the schema with"),
        ([1, 5], "'feat_static_cat_1' is 5, but its cardinality is 5 (ids 0..4)."),
        ([8361, 2], "'feat_static_cat_0' is 8361, but its cardinality is 3"),  # C13
        ([10**30, 2], f"'feat_static_cat_0' is {10**30}, but its cardinality is 3"),
        ([1e300, 2], f"'feat_static_cat_0' is {int(1e300)}, but its cardinality is 3"),
        ([Fraction(10**400), 2], f"'feat_static_cat_0' is {10**400}, but its cardinality is 3"),
        ([-(10**400), 2], f"'feat_static_cat_0' is {-(10**400)}, but ids start at 0."),
        (np.array([2**64 - 1, 2], dtype=np.uint64), f"'feat_static_cat_0' is {2**64 - 1}, but its cardinality is 3"),
        ([4, 2], "'feat_static_cat_0' is 4, but its cardinality is 3 (ids 0..2). Columns 0 and 1 look swapped."),  # C22
        ([4.0, 2.0], "'feat_static_cat_0' is 4, but its cardinality is 3 (ids 0..2). Columns 0 and 1 look swapped."),
        ([4, 4], "'feat_static_cat_0' is 4, but its cardinality is 3 (ids 0..2). Widen the schema"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_what_is_no_list_of_ids_is_refused(value, message):
    assert message in refusal(TWO, value)


def test_columns_swapped_as_in_the_public_case():
    schema = StaticSchema.from_counts([3, 12], missing_cat="error")
    with pytest.raises(
        SchemaMismatchError, match=r"'feat_static_cat_0' is 11.*\(ids 0\.\.2\)\. Columns 0 and 1 look swapped"
    ):
        list(static_features(schema)([{"target": [1.0], "feat_static_cat": [11, 2]}], is_train=False))


def test_a_split_with_more_ids_than_metadata_is_refused():
    """C11: the test split counts on past the train split; every split goes through one schema."""
    schema = StaticSchema.from_counts([2], missing_cat="error")
    chain = static_features(schema)
    train = [{"item_id": name, "feat_static_cat": [k]} for k, name in enumerate("ab")]
    assert [e["feat_static_cat"].tolist() for e in chain(train, is_train=True)] == [[0], [1]]
    with pytest.raises(
        SchemaMismatchError, match=r"item 'c' \(row 1\): 'feat_static_cat_0' is 2, but .* 2 \(ids 0\.\.1\)"
    ):
        list(chain([{"item_id": "c", "feat_static_cat": [2]}], is_train=False))


@pytest.mark.parametrize(
    ("value", "rows"),
    [
        (["red"], [0]),
        ("blue", [1]),
        ([""], [2]),
        (("green",), [3]),
        (["Red"], [3]),
        (["1"], [3]),
        (np.array(["blue"]), [1]),
        (np.array("blue"), [1]),
        (np.str_("blue"), [1]),
        ([np.str_("blue")], [1]),
        (np.array(["blue"], dtype=object), [1]),
        (pd.Series(["blue"], dtype="string"), [1]),
        (pd.Categorical(["blue"], categories=["blue", "red"]), [1]),
        (np.array(["blue"], dtype=np.dtypes.StringDType()), [1]),
        ([0], [0]),
        ([1.0], [1]),
        (torch.tensor([1]), [1]),
        ([None], [3]),
        ([NAN], [3]),
        ([pd.NA], [3]),
        (ABSENT, [3]),
    ],
    ids=repr,
)
def test_names_and_their_ids(value, rows):
    assert rows_of(COLOR, value) == rows


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([True], "'color' is True, but its vocabulary names text."),
        (np.array([True]), "'color' is True, but its vocabulary names text."),
        ([b"red"], "'color' is b'red', but an id must be a whole number."),
        ([3], "'color' is 3, but its cardinality is 3 (ids 0..2)."),
        ([-1], "'color' is -1, but ids start at 0."),
        ([0.5], "'color' is 0.5, but an id must be a whole number."),
        ([["red"]], "its shape is (1, 1), so that the static feature has a time axis of 1"),
        (["red", "blue"], "2 values, but the schema declares 1 (color)."),
    ],
)
def test_what_is_no_name_is_refused(value, message):
    assert message in refusal(COLOR, value)


@pytest.mark.parametrize(
    ("value", "rows"),
    [
        ([17], [0]),
        (402.0, [1]),
        (torch.tensor([402]), [1]),
        (np.array([-1], dtype=np.int8), [2]),
        ([8361], [3]),
        ([0], [3]),
        ([10**30], [3]),
        ([-(10**400)], [3]),
        ([None], [3]),
        (ABSENT, [3]),
    ],
    ids=repr,
)
def test_raw_codes_with_a_vocabulary(value, rows):
    """C13: codes far apart become dense rows."""
    assert rows_of(CODE, value) == rows


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (["17"], "'code' is '17', but its vocabulary names whole numbers."),
        ([17.5], "'code' is 17.5, but an id must be a whole number."),
        ([float("inf")], "'code' is inf, but an id must be a whole number."),
        ([b"17"], "'code' is b'17', but an id must be a whole number."),
    ],
)
def test_what_is_no_code_is_refused(value, message):
    assert message in refusal(CODE, value)


def test_without_a_reserved_row_an_unseen_name_is_refused():
    with pytest.raises(
        SchemaMismatchError, match=r"'color' is 'green', but its vocabulary knows 'red', 'blue' and reserves no"
    ):
        list(static_features(STRICT)([{"color": "green"}], is_train=False))
    many = CategoricalFeature.make("color", vocabulary=tuple("abcdefghijkl"), missing="error")
    with pytest.raises(
        SchemaMismatchError, match=r"knows 'a', .*'j', \.\.\. and reserves no row.* missing_cat='reserve'"
    ):
        list(static_features(StaticSchema(categorical=[many]))([{"color": "z"}], is_train=False))


def test_missing_where_that_is_an_error():
    with pytest.raises(
        SchemaMismatchError, match=r"item 'z' \(row 1\): 'color' is missing, but .* missing_cat='reserve'"
    ):
        list(static_features(STRICT)([{"item_id": "z"}], is_train=False))


def test_a_category_never_seen_in_training_is_counted():
    """C14: named columns, one reserved row."""
    chain = static_features(COLOR)
    encode, fill, _ = chain.transformations
    train = [{"item_id": "a", "target": [1.0], "color": "red"}, {"item_id": "b", "target": [1.0]}]
    predict = [{"item_id": "z", "target": [1.0], "color": "green"}]
    assert [e["feat_static_cat"].tolist() for e in chain(train, is_train=True)] == [[0], [3]]
    assert (encode.counts, fill.counts) == ({}, {"filled color": 1})
    assert [e["feat_static_cat"].tolist() for e in chain(predict, is_train=False)] == [[3]]
    assert (encode.counts, fill.counts) == ({"unknown color": 1}, {"filled color": 1})


@pytest.mark.parametrize(
    ("value", "row"),
    [("red", 0), (np.str_("blue"), 1), (np.array("blue"), 1), (1, 1), (torch.tensor(1), 1), ("green", 3)]
    + [(value, 3) for value in MISSING_FIELD if value is not ABSENT],
    ids=repr,
)
def test_a_named_column(value, row):
    entry = {"item_id": "T0042", "color": value}
    [out] = static_features(COLOR)([entry], is_train=True)
    assert out["feat_static_cat"].tolist() == [row]
    assert out["color"] is value


def test_the_field_goes_before_named_columns():
    [out] = static_features(COLOR)([{"feat_static_cat": ["blue"], "color": "red"}], is_train=True)
    assert out["feat_static_cat"].tolist() == [1]


@pytest.mark.parametrize("value", [["red"], ("red",), np.array(["red"]), {"red"}, {"red": 1}])
def test_a_named_column_holds_one_value(value):
    with pytest.raises(
        SchemaMismatchError, match=r"feat_static_cat of item 'T0042' \(row 1\): 'color' is .*whole number"
    ):
        list(static_features(COLOR)([{"item_id": "T0042", "color": value}], is_train=True))


def test_fields_of_gluonts_are_no_named_columns():
    schema = StaticSchema(categorical=[CategoricalFeature.make("item_id", vocabulary=("T0042",))])
    [out] = static_features(schema)([{"item_id": "T0042"}], is_train=True)
    assert out["feat_static_cat"].tolist() == [1]


@pytest.mark.parametrize(("missing", "rows"), [("reserve", [3]), (0, [0]), (2, [2])])
def test_the_policy_for_missing_ones(missing, rows):
    assert rows_of(StaticSchema.from_counts([3], missing_cat=missing), None) == rows


def test_rows_of_a_widened_schema_are_not_ids():
    wide = ONE | StaticSchema.from_counts([5])
    assert [rows_of(wide, k) for k in range(5)] == [[0], [1], [2], [4], [5]]
    assert rows_of(wide, None) == [3]
    with pytest.raises(SchemaMismatchError, match=r"is 5, but its cardinality is 5 \(ids 0\.\.4\)"):
        rows_of(wide, 5)


@pytest.mark.parametrize("value", [ABSENT, None, [], np.empty(0), torch.empty(0), NAN])
def test_without_features_the_placeholder_stands_in(value):
    """C02, C05."""
    [out] = static_features(StaticSchema())([entry_with(value)], is_train=True)
    assert out["feat_static_cat"].tolist() == [0]
    assert out["feat_static_cat"].dtype == np.int64
    [out] = static_features(StaticSchema(placeholder="omit"))([entry_with(value)], is_train=True)
    assert "feat_static_cat" not in out


@pytest.mark.parametrize("schema", [StaticSchema(), StaticSchema(placeholder="omit")])
def test_without_features_a_value_is_refused(schema):
    """C01: nothing is dropped in silence."""
    with pytest.raises(SchemaMismatchError, match=r"1 value, but the schema declares none\. Widen it"):
        list(static_features(schema)([{"feat_static_cat": [0]}], is_train=True))


def test_fill_alone_takes_rows():
    fill = FillStaticCat(ONE)
    entries = [{"feat_static_cat": value} for value in ([0], [3], 3.0, None, torch.tensor([2]))]
    assert [e["feat_static_cat"].tolist() for e in fill(entries, is_train=True)] == [[0], [3], [3], [3], [2]]
    assert fill.counts == {"filled feat_static_cat_0": 1}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([4], "'feat_static_cat_0' is 4, but its cardinality is 4 (ids 0..3). Widen the schema with"),
        (["red"], "is the text 'red', but must be a table row here. Put EncodeStaticCat before FillStaticCat"),
        ([-1], "'feat_static_cat_0' is -1, but ids start at 0."),
        ([1.7], "'feat_static_cat_0' is 1.7, but an id must be a whole number."),
        ([10**30], f"'feat_static_cat_0' is {10**30}, but its cardinality is 4"),
    ],
)
def test_fill_alone_refuses_what_is_no_row(value, message):
    with pytest.raises(SchemaMismatchError, match=re.escape(message)):
        list(FillStaticCat(ONE)([{"feat_static_cat": value}], is_train=True))


def test_filling_twice_changes_nothing():
    fill = FillStaticCat(TWO)
    [once] = fill([{"feat_static_cat": [None, 2]}], is_train=True)
    [twice] = fill([once], is_train=True)
    assert twice["feat_static_cat"].tolist() == once["feat_static_cat"].tolist() == [3, 2]


def test_encode_leaves_missing_ones_missing():
    [out] = EncodeStaticCat(TWO)([{"feat_static_cat": [None, 2]}], is_train=True)
    assert out["feat_static_cat"] == [None, 2]
    [out] = EncodeStaticCat(TWO)([{}], is_train=True)
    assert out["feat_static_cat"] == [None, None]
    [out] = EncodeStaticCat(StaticSchema())([{}], is_train=True)
    assert out["feat_static_cat"] is None


def test_the_row_counts_from_one_in_each_pass():
    chain = static_features(StaticSchema.from_counts([2]))
    entries = [{"feat_static_cat": [k]} for k in (0, 1, 2)]
    for _ in range(2):
        with pytest.raises(SchemaMismatchError, match=r"^feat_static_cat of row 3: 'feat_static_cat_0' is 2"):
            list(chain(entries, is_train=True))


def test_the_place_that_a_reader_left_goes_first():
    place = Place(file="train/data.jsonl", row=43, item_id="T0042")
    entry = {"item_id": "T0042", "feat_static_cat": [17], SOURCE_FIELD: place}
    with pytest.raises(
        SchemaMismatchError,
        match=re.escape(
            "feat_static_cat of item 'T0042' (row 43 of train/data.jsonl): 'feat_static_cat_0' is 17, but its"
            " cardinality is 3 (ids 0..2). Widen the schema with `StaticSchema | other`, or profile the dataset anew."
        ),
    ):
        list(static_features(ONE)([entry], is_train=True))


def test_one_entry_alone_is_named_by_its_item_id():
    with pytest.raises(SchemaMismatchError, match=r"^feat_static_cat of item 7: 'feat_static_cat_0' is 9"):
        EncodeStaticCat(ONE).map_transform({"item_id": 7, "feat_static_cat": [9]}, is_train=True)
    with pytest.raises(SchemaMismatchError, match=r"^feat_static_cat of an entry without item_id: "):
        EncodeStaticCat(ONE).map_transform({"feat_static_cat": [9]}, is_train=True)


def test_some_rows_have_the_field_and_some_do_not():
    """C07."""
    entries = [{"item_id": name, "feat_static_cat": [k]} for k, name in enumerate("abcd")]
    del entries[2]["feat_static_cat"]
    entries[3]["feat_static_cat"] = [2]
    chain = static_features(StaticSchema.from_counts([3], missing_cat=0))
    assert [e["feat_static_cat"].tolist() for e in chain(entries, is_train=True)] == [[0], [1], [0], [2]]
    assert chain.transformations[1].counts == {"filled feat_static_cat_0": 1}
    with pytest.raises(SchemaMismatchError, match=r"item 'c' \(row 3\): 'feat_static_cat_0' is missing"):
        list(static_features(StaticSchema.from_counts([3], missing_cat="error"))(entries, is_train=True))


@pytest.mark.parametrize(
    ("schema", "source", "message"),
    [
        (ONE, COLOR, "categorical feature 'color' of the source is not in the schema. Widen it: schema | source."),
        (ONE, StaticSchema.from_counts([5]), "the source has 5 categories, but the schema has rows for 3. Widen it"),
        (
            StaticSchema(categorical=[CategoricalFeature.make("color", num_known=3)]),
            COLOR,
            "'color': one schema has no vocabulary, the other a vocabulary of text",
        ),
        (
            COLOR,
            StaticSchema(categorical=[CategoricalFeature.make("color", num_known=3)]),
            "'color': one schema has a vocabulary of text, the other no vocabulary",
        ),
    ],
)
def test_a_source_that_does_not_fit_is_refused_before_the_first_entry(schema, source, message):
    with pytest.raises(SchemaError, match=re.escape(message)):
        static_features(schema, source)


def test_names_that_only_the_source_knows_are_unseen_by_the_model():
    """A checkpoint's schema, a newer dataset's own: by name or by id, green is unknown."""
    newer = StaticSchema(categorical=[CategoricalFeature.make("color", vocabulary=("green", "blue"))])
    chain = static_features(COLOR, newer)
    out = [e["feat_static_cat"].tolist() for e in chain([{"color": v} for v in ("green", 0, "blue", 1)], is_train=True)]
    assert out == [[3], [3], [1], [1]]
    assert chain.transformations[0].counts == {"unknown color": 2}


def test_entries_are_never_written_into():
    values = [[1, None], np.array([1, 2]), torch.tensor([1.0, 2.0]), np.array([None, 2], dtype=object), (1, 2), None]
    for value in values:
        inner = {"note": [1]}
        entry = {**entry_with(value), "info": inner}
        before = copy.deepcopy(entry)
        kept = dict(entry)
        [out] = static_features(TWO)([entry], is_train=True)
        assert out is not entry
        assert out["info"] is inner
        assert entry.keys() == before.keys()
        assert all(entry[key] is kept[key] for key in entry)
        assert repr(entry) == repr(before)
        out["feat_static_cat"][:] = 0
        assert repr(entry) == repr(before)


def test_each_entry_has_an_array_of_its_own():
    first, second = static_features(StaticSchema())([{}, {}], is_train=True)
    assert not np.shares_memory(first["feat_static_cat"], second["feat_static_cat"])
    assert not np.shares_memory(first["feat_static_real"], second["feat_static_real"])
