"""One feature: what it refuses, and in which words."""

import math
import re
from decimal import Decimal

import numpy as np
import pytest

from tsnorm.errors import SchemaError, TsnormError
from tsnorm.schema import CategoricalFeature, RealFeature, Scaling


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": ""}, "static feature: its name is '', but must be a text that is not empty."),
        ({"name": None}, "its name is None, but must be a text"),
        ({"name": 3}, "its name is 3, but must be a text"),
        ({"cardinality": 0}, "'region': cardinality is 0, but must be a whole number from 1."),
        ({"cardinality": -1}, "cardinality is -1, but"),
        ({"cardinality": 2.0}, "cardinality is 2.0, but"),
        ({"cardinality": "2"}, "cardinality is '2', but"),
        ({"cardinality": True}, "cardinality is True, but"),
        ({"cardinality": None}, "cardinality is None, but"),
        ({"fill_id": 3}, "fill_id is 3, but the table has rows 0..2."),
        ({"fill_id": -1}, "fill_id is -1, but the table has rows 0..2."),
        ({"fill_id": True}, "fill_id is True, but"),
        ({"unknown_id": 3}, "unknown_id is 3, but the table has rows 0..2."),
        ({"unknown_id": 0.0}, "unknown_id is 0.0, but"),
        ({"vocabulary": "abc"}, "vocabulary is 'abc', but must be a list of categories."),
        ({"vocabulary": {"a": 0, "b": 1, "c": 2}}, "vocabulary is {'a': 0, 'b': 1, 'c': 2}, but must be a list"),
        ({"vocabulary": 3}, "vocabulary is 3, but must be a list"),
        ({"vocabulary": ("a", "b", 3)}, "a vocabulary is all text or all whole numbers, not a mix of types."),
        ({"vocabulary": (1, 2, True)}, "not a mix of types."),
        ({"vocabulary": (1.0, 2.0, 3.0)}, "not a mix of types."),
        ({"vocabulary": ("a", None, "c")}, "not a mix of types."),
        ({"vocabulary": ([1], [2], [3])}, "not a mix of types."),
        ({"vocabulary": ("a", "b", "a")}, "'a' stands twice in the vocabulary."),
        ({"vocabulary": ("a", "b")}, "the vocabulary has 2 categories, but the table has 3 rows for known ones."),
        ({"vocabulary": ("a", "b", "c"), "unknown_id": 2}, "has 3 categories, but the table has 2 rows"),
    ],
)
def test_categorical_refuses(arguments, message):
    with pytest.raises(SchemaError, match=re.escape(message)):
        CategoricalFeature(**{"name": "region", "cardinality": 3, **arguments})


def test_a_late_duplicate_in_a_large_vocabulary_is_found_at_once():
    vocabulary = [f"item {i}" for i in range(100_000)] + ["item 99999"]
    with pytest.raises(SchemaError, match="'item 99999' stands twice"):
        CategoricalFeature.make("item", vocabulary=tuple(vocabulary))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "give either num_known or a vocabulary"),
        ({"num_known": 1, "vocabulary": ("a",)}, "give either num_known or a vocabulary"),
        ({"num_known": -1}, "num_known is -1, but must be a whole number from 0"),
        ({"num_known": 1.0}, "num_known is 1.0, but"),
        ({"num_known": "1"}, "num_known is '1', but"),
        ({"num_known": 0, "missing": "error"}, "cardinality is 0, but must be a whole number from 1"),
        ({"num_known": 2, "missing": 2}, "fill_id is 2, but the table has rows 0..1"),
        ({"num_known": 2, "missing": "mean"}, "missing is 'mean', but must be 'reserve', 'error' or an id"),
        ({"num_known": 2, "missing": 1.0}, "missing is 1.0, but must be 'reserve', 'error' or an id"),
        ({"num_known": 2, "missing": True}, "missing is True, but must be 'reserve', 'error' or an id"),
    ],
)
def test_make_refuses(arguments, message):
    with pytest.raises(SchemaError, match=re.escape(message)):
        CategoricalFeature.make("region", **arguments)


@pytest.mark.parametrize(
    ("missing", "cardinality", "fill_id", "unknown_id"),
    [("reserve", 3, 2, 2), ("error", 2, None, None), (1, 2, 1, None)],
)
@pytest.mark.parametrize("known", [{"num_known": 2}, {"vocabulary": ("red", "blue")}, {"vocabulary": (7, 402)}])
def test_make_follows_the_policy_for_missing_ones(known, missing, cardinality, fill_id, unknown_id):
    feature = CategoricalFeature.make("color", missing=missing, **known)
    assert (feature.cardinality, feature.fill_id, feature.unknown_id) == (cardinality, fill_id, unknown_id)
    assert feature.vocabulary == known.get("vocabulary")
    assert feature.num_known == 2


def test_a_feature_with_no_known_category_is_all_reserved():
    feature = CategoricalFeature.make("color", vocabulary=())
    assert (feature.cardinality, feature.fill_id, feature.unknown_id, feature.num_known) == (1, 0, 0, 0)


NOT_FINITE = [math.nan, math.inf, -math.inf, "0", True, [0.0], {}, 10**400, 1j, Decimal(1), np.array([1.0])]


@pytest.mark.parametrize("fill", NOT_FINITE, ids=lambda value: str(value)[:10])
def test_real_refuses_a_fill_that_is_no_finite_number(fill):
    with pytest.raises(SchemaError, match=r"real feature 'size': fill is .*, but must be a finite number\."):
        RealFeature(name="size", fill=fill)


@pytest.mark.parametrize("bad", [*NOT_FINITE, None], ids=lambda value: str(value)[:10])
@pytest.mark.parametrize("field", ["mean", "std"])
def test_scaling_refuses_what_is_no_finite_number(field, bad):
    with pytest.raises(SchemaError, match=r"scaling: mean .* and std .* must be finite and std positive\."):
        Scaling(**{"mean": 0.0, "std": 1.0, field: bad})


@pytest.mark.parametrize("std", [0, 0.0, -1.0])
def test_scaling_refuses_a_constant_feature(std):
    with pytest.raises(SchemaError, match="A constant feature cannot be scaled"):
        Scaling(mean=0.0, std=std)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": ""}, "its name is ''"),
        ({"scaling": (0.0, 1.0)}, "real feature 'size': scaling is (0.0, 1.0), but must be a Scaling."),
        ({"scaling": 0}, "scaling is 0, but must be a Scaling."),
        ({"indicator": 1}, "real feature 'size': indicator is 1, but must be a bool."),
        ({"indicator": "no"}, "indicator is 'no', but must be a bool."),
    ],
)
def test_real_refuses(arguments, message):
    with pytest.raises(SchemaError, match=re.escape(message)):
        RealFeature(**{"name": "size", **arguments})


def test_numbers_of_numpy_become_floats():
    feature = RealFeature(name="size", fill=np.float32(0.5), scaling=Scaling(mean=np.float64(1), std=np.int64(2)))
    assert type(feature.fill) is type(feature.scaling.mean) is type(feature.scaling.std) is float
    assert feature == RealFeature(name="size", fill=0.5, scaling=Scaling(mean=1.0, std=2.0))


def test_errors_are_value_errors_under_one_root():
    assert issubclass(SchemaError, ValueError)
    assert issubclass(SchemaError, TsnormError)


@pytest.mark.parametrize(
    ("mine", "theirs", "message"),
    [
        ({"num_known": 3}, {"vocabulary": ("a", "b")}, "one schema has no vocabulary, the other a vocabulary of text"),
        ({"vocabulary": ("a",)}, {"num_known": 3}, "one schema has a vocabulary of text, the other no vocabulary"),
        (
            {"vocabulary": ("1",)},
            {"vocabulary": (1,)},
            "one schema has a vocabulary of text, the other a vocabulary of whole numbers",
        ),
        ({"vocabulary": ()}, {"num_known": 3}, "one schema has a vocabulary of text, the other no vocabulary"),
    ],
)
def test_widening_refuses_ids_of_other_meaning(mine, theirs, message):
    a, b = CategoricalFeature.make("region", **mine), CategoricalFeature.make("region", **theirs)
    with pytest.raises(SchemaError, match=f"categorical feature 'region': {message}.*under a namespace"):
        a.widen(b)


def test_categories_that_come_later_get_rows_behind_the_reserved_one():
    old = CategoricalFeature.make("color", vocabulary=("red", "blue"))
    new = CategoricalFeature.make("color", vocabulary=("blue", "green"))
    wide = old.widen(new)
    assert wide == CategoricalFeature(
        name="color", cardinality=4, fill_id=2, unknown_id=2, vocabulary=("red", "blue", "green")
    )
    assert [wide.row(k) for k in range(3)] == [0, 1, 3]
    assert [wide.known_id(row) for row in range(4)] == [0, 1, None, 2]


def test_counted_features_take_the_larger_count():
    old = CategoricalFeature.make("store", num_known=2)
    assert old.widen(CategoricalFeature.make("store", num_known=4)) == CategoricalFeature(
        name="store", cardinality=5, fill_id=2, unknown_id=2
    )
    assert old.widen(CategoricalFeature.make("store", num_known=1)) == old


def test_a_vocabulary_of_nothing_unites_with_names_of_any_type():
    nothing = CategoricalFeature.make("color", vocabulary=())
    assert nothing.widen(CategoricalFeature.make("color", vocabulary=(7, 8))).vocabulary == (7, 8)
    assert CategoricalFeature.make("color", vocabulary=("a",)).widen(nothing).vocabulary == ("a",)
