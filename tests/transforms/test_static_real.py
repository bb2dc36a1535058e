"""What an entry may hold in feat_static_real: each form has a defined result, or an error that says where and what."""

import copy
import math
import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import torch

from tsnorm.errors import SchemaError, SchemaMismatchError
from tsnorm.schema import CategoricalFeature, RealFeature, Scaling, StaticSchema
from tsnorm.transforms import FillStaticReal, static_features

NAN, INF = float("nan"), float("inf")
TWO = StaticSchema(real=[RealFeature(name="size", fill=-1.0), RealFeature(name="area", fill=7.5)], placeholder="omit")
STRICT = StaticSchema(real=[RealFeature(name="size"), RealFeature(name="area")], placeholder="omit")
MAX = float(np.finfo(np.float32).max)


def values_of(schema, value, **more):
    entry = {"item_id": "T0042", **more}
    if value is not Ellipsis:
        entry["feat_static_real"] = value
    [out] = static_features(schema)([entry], is_train=True)
    values = out["feat_static_real"]
    assert isinstance(values, np.ndarray)
    assert values.dtype == np.float32
    assert values.shape == (schema.num_static_real,)
    assert np.isfinite(values).all()
    return values.tolist()


@pytest.mark.parametrize(
    "value",
    [
        [0.5, 2],
        (0.5, 2.0),
        [np.float16(0.5), np.int8(2)],
        [np.array(0.5), torch.tensor(2)],
        [Fraction(1, 2), Fraction(2)],
        pd.Series([0.5, 2.0], index=["b", "a"]),
        pd.array([0.5, 2], dtype="Float64"),
        np.array([0.5, 2], dtype=object),
        *(np.array([0.5, 2], dtype=kind) for kind in ("e", "f", "d", "g", ">f4")),
        *(torch.tensor([0.5, 2], dtype=getattr(torch, kind)) for kind in ("float16", "bfloat16", "float32", "float64")),
        torch.tensor([0.5, 2], requires_grad=True),
    ],
    ids=lambda value: f"{type(value).__name__} {getattr(value, 'dtype', '')}",
)
def test_numbers_in_any_container(value):
    assert values_of(TWO, value) == [0.5, 2.0]


@pytest.mark.parametrize("value", [[True, 0], np.array([True, False]), torch.tensor([1, 0]), [np.True_, np.uint8(0)]])
def test_whole_numbers_and_flags_are_numbers(value):
    assert values_of(TWO, value) == [1.0, 0.0]


@pytest.mark.parametrize(
    "value", [Ellipsis, None, NAN, np.float32("nan"), np.array(NAN), torch.tensor(NAN), pd.NA, pd.NaT], ids=repr
)
def test_a_missing_field_is_filled(value):
    assert values_of(TWO, value) == [-1.0, 7.5]


@pytest.mark.parametrize(
    "value",
    [
        [None, 2],
        [NAN, 2],
        [np.float32("nan"), 2],
        [torch.tensor(NAN), 2],
        [pd.NA, 2],
        [pd.NaT, 2],
        np.array([NAN, 2]),
        np.array([None, 2], dtype=object),
        torch.tensor([NAN, 2]),
        np.ma.array([0.5, 2], mask=[True, False]),
        pd.Series([None, 2.0]),
    ],
    ids=repr,
)
def test_a_missing_number_is_filled(value):
    assert values_of(TWO, value) == [-1.0, 2.0]


@pytest.mark.parametrize("value", [[0.5, NAN], [0.5, None], np.array([0.5, NAN])])
def test_a_missing_number_may_be_an_error(value):
    """C16."""
    entries = [{"item_id": "a", "feat_static_real": [0.5, 1.0]}, {"item_id": "b", "feat_static_real": value}]
    with pytest.raises(
        SchemaMismatchError,
        match=r"^feat_static_real of item 'b' \(row 2\): 'area' is missing, but the schema says that is an error\."
        r" Add the value, or make the schema with missing_real='mean' to have it filled\.$",
    ):
        list(static_features(STRICT)(entries, is_train=True))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "0 values, but the schema declares 2 (size, area). Widen it with `StaticSchema | other`, or correct"),
        ([1.0], "1 value, but the schema declares 2"),
        (1.0, "1 value, but the schema declares 2"),
        ([1.0, 2.0, 3.0], "3 values, but the schema declares 2"),
        ([[1.0], [2.0]], "its shape is (2, 1), so that the static feature has a time axis of 2"),
        (np.ones((11, 2)), "its shape is (11, 2), so that the static feature has a time axis of 11"),
        (torch.ones(1, 2), "its shape is (1, 2)"),
        ([[1.0], [2.0, 3.0]], "it is ragged, its items have 1, 2 values"),
        ({"size": 1.0, "area": 2.0}, "is a dict, but must be a list with one value for each static feature."),
        ({1.0, 2.0}, "is a set, but must be a list"),
        (["0.5", 1], "'size' is '0.5', but must be a number. Put a category into feat_static_cat."),
        (np.array(["0.5", "1"]), "'size' is '0.5', but must be a number."),
        ([0.5, b"1"], "'area' is b'1', but must be a number."),
        ([1j, 1], "'size' is 1j, but must be a number."),
        ([Decimal("0.5"), 1], "'size' is Decimal('0.5'), but must be a number."),
        ([pd.Timestamp("2022-01-01"), 1], "'size' is Timestamp('2022-01-01 00:00:00'), but must be a number."),
        ([INF, 1], "'size' is inf, but must be finite in float32. Correct it, or leave it out to have it filled."),
        ([0.5, -INF], "'area' is -inf, but must be finite in float32."),
        (np.array([0.5, INF], dtype=np.float16), "'area' is inf, but must be finite in float32."),
        ([1e39, 1], "'size' is 1e+39, but must be finite in float32."),
        ([3.5e38, 1], "'size' is 3.5e+38, but must be finite in float32."),
        ([10**400, 1], f"'size' is {10**400}, but must be finite in float32."),
        ([-(10**400), 1], "but must be finite in float32."),
        ([Fraction(10**400, 3), 1], "but must be finite in float32."),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_what_is_no_list_of_numbers_is_refused(value, message):
    entries = [{"item_id": "a"}, {"item_id": "T0042", "feat_static_real": value}]
    with pytest.raises(SchemaMismatchError, match=re.escape(message)) as caught:
        list(static_features(TWO)(entries, is_train=True))
    assert str(caught.value).startswith("feat_static_real of item 'T0042' (row 2): ")


def test_the_ends_of_float32_are_numbers():
    assert values_of(TWO, [MAX, -MAX]) == [MAX, -MAX]
    assert values_of(TWO, [1e-46, 5e-324]) == [0.0, 0.0]
    assert values_of(TWO, [Fraction(1, 10**400), -0.0]) == [0.0, 0.0]


def test_values_are_scaled_after_filling():
    scaled = StaticSchema(
        real=[
            RealFeature(name="size", fill=4.0, scaling=Scaling(mean=2.0, std=4.0)),
            RealFeature(name="area", fill=0.0, scaling=Scaling(mean=-1.0, std=0.5)),
        ]
    )
    assert values_of(scaled, [10.0, 0.0]) == [2.0, 2.0]
    assert values_of(scaled, None) == [0.5, 2.0]
    assert values_of(scaled, [None, -1.0]) == [0.5, 0.0]


def test_scaling_that_leaves_float32_is_refused():
    tight = StaticSchema(real=[RealFeature(name="size", fill=1.0, scaling=Scaling(mean=0.0, std=1e-300))])
    with pytest.raises(SchemaMismatchError, match=r"'size' is 2\.0, but must be finite in float32"):
        values_of(tight, [2.0])
    with pytest.raises(SchemaMismatchError, match=r"'size' is None, but must be finite in float32"):
        values_of(tight, None)


def test_huge_values_may_be_scaled_into_float32():
    wide = StaticSchema(real=[RealFeature(name="size", scaling=Scaling(mean=0.0, std=1e300))])
    assert values_of(wide, [1e300]) == [1.0]


def test_indicators_follow_the_values():
    schema = StaticSchema(
        real=[
            RealFeature(name="a", fill=0.0, indicator=True),
            RealFeature(name="b", fill=1.0),
            RealFeature(name="c", fill=2.0, indicator=True),
        ]
    )
    assert schema.num_static_real == 5
    assert values_of(schema, [5, 6, 7]) == [5, 6, 7, 0, 0]
    assert values_of(schema, [None, 6, 7]) == [0, 6, 7, 1, 0]
    assert values_of(schema, [5, None, None]) == [5, 1, 2, 0, 1]
    assert values_of(schema, None) == [0, 1, 2, 1, 1]


def test_named_columns():
    assert values_of(TWO, ..., size=3, area=np.float32(4)) == [3.0, 4.0]
    assert values_of(TWO, ..., size=torch.tensor(NAN), area=np.array(4.0)) == [-1.0, 4.0]
    assert values_of(TWO, None, area=4) == [-1.0, 4.0]
    assert values_of(TWO, [1, 2], size=3, area=4) == [1.0, 2.0]
    with pytest.raises(SchemaMismatchError, match=r"'size' is \[3\.0\], but must be a number"):
        values_of(TWO, ..., size=np.array([3.0]))


def test_fields_of_gluonts_are_no_named_columns():
    schema = StaticSchema(real=[RealFeature(name="target", fill=9.0)])
    assert values_of(schema, ..., target=[1.0, 2.0]) == [9.0]


def test_what_was_filled_is_counted():
    fill = FillStaticReal(TWO)
    list(fill([{}, {"feat_static_real": [None, 1]}, {"feat_static_real": [1, 1]}], is_train=True))
    assert fill.counts == {"filled size": 2, "filled area": 1}


@pytest.mark.parametrize("value", [..., None, [], np.empty(0), torch.empty(0), NAN])
def test_without_features_the_placeholder_stands_in(value):
    assert values_of(StaticSchema(), value) == [0.0]
    entry = {} if value is ... else {"feat_static_real": value}
    [out] = static_features(StaticSchema(placeholder="omit"))([entry], is_train=True)
    assert "feat_static_real" not in out


@pytest.mark.parametrize("schema", [StaticSchema(), StaticSchema(placeholder="omit")])
def test_without_features_a_value_is_refused(schema):
    """C04: one column too wide is told, not dropped."""
    with pytest.raises(SchemaMismatchError, match="feat_static_real of row 1: 1 value, but the schema declares none"):
        list(static_features(schema)([{"feat_static_real": [0.5]}], is_train=True))


def test_a_source_with_another_feature_is_refused():
    with pytest.raises(SchemaError, match=r"real feature 'size' of the source is not in the schema\. Widen it"):
        static_features(StaticSchema(), TWO)


def test_two_separate_fields():
    """C100: categorical and real values do not leak into each other."""
    schema = StaticSchema.from_counts([3], 1, missing_cat="error", missing_real="error")
    [out] = static_features(schema)(
        [{"start": "2022-01-01", "target": [1, 2, 3, 4], "feat_static_cat": [2], "feat_static_real": [0.25]}],
        is_train=True,
    )
    cat, real = torch.as_tensor(out["feat_static_cat"]), torch.as_tensor(out["feat_static_real"])
    assert (cat.tolist(), cat.dtype) == ([2], torch.int64)
    assert (real.tolist(), real.dtype) == ([0.25], torch.float32)
    assert cat.data_ptr() != real.data_ptr()
    cat[:] = 0
    assert out["feat_static_real"].tolist() == [0.25]


def test_named_columns_of_both_kinds_go_where_the_schema_says():
    """C101: a latitude is no category."""
    schema = StaticSchema(
        categorical=[CategoricalFeature.make("region", vocabulary=("north",))], real=[RealFeature(name="lat", fill=0.0)]
    )
    [out] = static_features(schema)([{"lat": 52.5, "region": "north"}], is_train=True)
    assert (out["feat_static_cat"].tolist(), out["feat_static_real"].tolist()) == ([0], [52.5])


def test_entries_are_never_written_into():
    for value in ([1.0, None], np.array([1.0, NAN]), torch.tensor([1.0, NAN]), np.ones(2, dtype=np.float32), None):
        entry = {"feat_static_real": value, "target": np.ones(3)}
        before, kept = copy.deepcopy(entry), dict(entry)
        [out] = static_features(TWO)([entry], is_train=True)
        out["feat_static_real"][:] = 99
        assert all(entry[key] is kept[key] for key in kept)
        assert repr(entry) == repr(before)


def test_filling_twice_changes_nothing_without_scaling():
    fill = FillStaticReal(TWO)
    [once] = fill([{"feat_static_real": [None, math.pi]}], is_train=True)
    [twice] = fill([once], is_train=True)
    assert twice["feat_static_real"].tolist() == once["feat_static_real"].tolist()
