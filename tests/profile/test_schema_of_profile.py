"""The schema that a profile gives, and why it may refuse to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsnorm.errors import SchemaError, SchemaMismatchError, TsnormWarning
from tsnorm.profile import DatasetProfile, profile_entries
from tsnorm.schema import RealFeature, Scaling


def profile(*cats, reals=(), declared=None, **more):
    data = [{"target": [1.0], **({} if cat is None else {"feat_static_cat": cat})} for cat in cats]
    data += [{"target": [1.0], **({} if real is None else {"feat_static_real": real})} for real in reals]
    metadata = {} if declared is None else {"feat_static_cat": declared}
    return profile_entries(data, metadata={**metadata, **more})


def cat(name, cardinality, vocabulary=None):
    return {"name": name, "cardinality": str(cardinality)} | ({} if vocabulary is None else {"vocabulary": vocabulary})


def test_without_declaration_texts_become_a_sorted_vocabulary():
    schema = profile(["red"], ["blue"], [None], None).to_schema(namespace="m3")
    [feature] = schema.categorical
    assert (feature.name, feature.vocabulary) == ("m3/feat_static_cat_0", ("blue", "red"))
    assert (feature.cardinality, feature.fill_id, feature.unknown_id) == (3, 2, 2)


@pytest.mark.parametrize(("ids", "cardinality"), [([0, 2], 3), ([1.0, 2.0], 3), ([True, False], 2), ([True], 2)])
def test_without_declaration_ids_count_up_to_the_largest(ids, cardinality):
    [feature] = profile(*([i] for i in ids)).to_schema(missing_cat="error").categorical
    assert (feature.cardinality, feature.vocabulary, feature.fill_id) == (cardinality, None, None)


def test_recoding_makes_a_vocabulary_of_sparse_ids():
    [feature] = profile([17], [402.0], [8361]).to_schema(recode=True).categorical
    assert (feature.vocabulary, feature.cardinality) == ((17, 402, 8361), 4)
    [feature] = profile([17], [402], [8361], declared=[cat("code", 3)]).to_schema(recode=True).categorical
    assert (feature.name, feature.vocabulary) == ("code", (17, 402, 8361))


def test_sparse_ids_without_declaration_are_warned_of():
    with pytest.warns(TsnormWarning, match=r"'feat_static_cat_0' .*3 distinct, largest 8361, so that 8359 rows"):
        schema = profile([17], [402], [8361]).to_schema()
    assert schema.categorical[0].num_known == 8362


def test_policies_reach_the_features():
    seen = profile(["a"], reals=[[2.0], [4.0]])
    schema = seen.to_schema(missing_cat=0, missing_real=1.5, indicator=True, placeholder="omit")
    assert (schema.categorical[0].fill_id, schema.categorical[0].cardinality) == (0, 1)
    assert schema.real == (RealFeature(name="feat_static_real_0", fill=1.5, indicator=True),)
    assert schema.placeholder == "omit"
    assert seen.to_schema(missing_real="error").real[0].fill is None
    assert DatasetProfile().to_schema().num_static_cat == 1
    with pytest.raises(SchemaError, match="missing is 'fill'"):
        seen.to_schema(missing_cat="fill")
    with pytest.raises(SchemaError, match="fill is 'median'"):
        seen.to_schema(missing_real="median")


def test_declaration_gives_names_and_vocabulary():
    declared = [cat("feat_static_cat_0", 4), cat("region", 2, ["north", "south"])]
    for values in ([[3, 1]], [[3, 0], [0, None]], [None]):
        schema = profile(*values, declared=declared).to_schema(namespace="m3")
        assert schema.names == ("m3/feat_static_cat_0", "region")
        assert [f.num_known for f in schema.categorical] == [4, 2]
        assert schema.categorical[1].vocabulary == ("north", "south")


def test_declared_features_that_no_entry_carries_are_filled():
    schema = profile(None, declared=[cat("region", 2)], feat_static_real=[{"name": "size"}]).to_schema(scale_reals=True)
    assert (schema.categorical[0].fill_id, schema.categorical[0].cardinality) == (2, 3)
    assert schema.real == (RealFeature(name="size", fill=0.0),)


@pytest.mark.parametrize(
    ("values", "declared"),
    [
        ([["north"], ["south"]], cat("region", 2, ["north", "south"])),
        ([["south"], [None]], cat("region", 2, ["north", "south"])),
        ([[17], [8361.0]], cat("code", 2, [17, 8361])),
        ([[-5]], cat("code", 2, [-5, 3])),
    ],
)
def test_a_declared_vocabulary_takes_its_own_categories(values, declared):
    [feature] = profile(*values, declared=[declared]).to_schema().categorical
    assert list(feature.vocabulary) == declared["vocabulary"]


def test_texts_fill_a_declared_number_of_categories():
    [feature] = profile(["b"], ["a"], declared=[cat("region", 4)]).to_schema().categorical
    assert (feature.name, feature.vocabulary) == ("region", ("a", "b"))


REFUSED = {
    "out of range": (
        [[0], [17]],
        [cat("region", 12)],
        r"'region' \(column 0\): the largest id is 17, but its card.* 12",
    ),
    "negative": ([[0], [-1]], [cat("region", 12)], "'region' .*smallest id is -1, but ids start at 0.*null"),
    "negative, undeclared": ([[-1.0]], None, "smallest id is -1, but ids start at 0"),
    "negative as text": ([[-1]], [cat("region", 2, ["a", "b"])], "smallest id is -1, but its cardinality is 2"),
    "swapped": ([[1, 5], [0, 2]], [cat("a", 6), cat("b", 2)], "'b' .*largest id is 5.*Columns 0 and 1 look swapped"),
    "sparse": ([[17], [402], [8361]], [cat("x", 3)], "Sparse ids: 3 distinct, largest 8361; recode=True makes a vocab"),
    "from one": ([[1], [2], [3]], [cat("x", 3)], "The ids look counted from 1"),
    "fraction": ([[0.7], [2.0]], None, "holds 0.7, and 1 value.s. are not whole, but ids are.*feat_static_real"),
    "declared fraction": ([[0.7]], [cat("x", 3)], "holds 0.7"),
    "infinite": ([[float("inf")]], None, "1 value.s. are not whole"),
    "too wide": ([[0, 1]], [cat("x", 3)], "entries have 2 columns, but the metadata declares 1"),
    "empty list": ([[]], [cat("x", 3)], "entries have 0 columns, but the metadata declares 1"),
    "ragged": ([[0], [0, 1]], None, "entries have 1 to 2 columns, but must all have as many"),
    "ragged, declared": ([[0], [0, 1]], [cat("x", 3)], "entries have 1 to 2 columns, but the metadata declares 1"),
    "unknown text": ([["a"], ["b"], ["c"]], [cat("x", 1, ["a"])], "holds 'b', 'c', but the vocabulary in the"),
    "unknown number": ([[7]], [cat("x", 1, [3])], "holds 7, but the vocabulary in the metadata knows only 3"),
    "text for numbers": ([["a"]], [cat("x", 1, [3])], "holds text, but the vocabulary in the metadata names whole num"),
    "bool for text": (
        [[True]],
        [cat("x", 1, ["a"])],
        "holds true and false, but the vocabulary in the metadata names t",
    ),
    "too many texts": ([["a"], ["b"]], [cat("x", 1)], "2 distinct categories are seen, from 'a' to 'b', but its card"),
}


@pytest.mark.parametrize(("values", "declared", "message"), REFUSED.values(), ids=REFUSED)
def test_data_that_does_not_fit_is_refused_by_column(values, declared, message):
    with pytest.raises(SchemaMismatchError, match=message):
        profile(*values, declared=declared).to_schema()


def test_a_declared_feature_under_its_own_name_is_not_lost():
    seen = profile_entries([{"target": [1], "color": "red"}], metadata={"feat_static_cat": [cat("color", 2)]})
    with pytest.raises(SchemaMismatchError, match=r"'color' is a field of its own in 1 entries, .* as a list\. Put it"):
        seen.to_schema()


def test_columns_that_mix_kinds_across_shards_are_refused():
    with pytest.raises(SchemaMismatchError, match=r"1 texts, 0 times true or false and 1 numbers.* of one kind"):
        (profile(["a"]) | profile([1])).to_schema()


def test_too_many_categories_are_no_vocabulary(monkeypatch):
    monkeypatch.setattr("tsnorm.profile.accumulators.DISTINCT_LIMIT", 2)
    many = profile(["a"], ["b"], ["c"])
    with pytest.raises(SchemaMismatchError, match=r"more than 100000 distinct values.* Is it an item_id"):
        many.to_schema()
    with pytest.raises(SchemaMismatchError, match="more than 100000 distinct values"):
        profile([1], [2], [3]).to_schema(recode=True)
    assert profile([1], [2], [3]).to_schema().categorical[0].num_known == 4


def test_only_missing_categories_need_a_reserved_row():
    assert profile([None]).to_schema().categorical[0].cardinality == 1
    with pytest.raises(SchemaMismatchError, match=r"every value is missing.* missing_cat='reserve'"):
        profile([None]).to_schema(missing_cat="error")


def test_reals_are_filled_and_scaled_by_what_was_seen():
    seen = profile(reals=[[1.0, 7.0], [4.0, None], [float("inf"), 7.0], None])
    first, second = seen.to_schema(scale_reals=True).real
    assert first == RealFeature(name="feat_static_real_0", fill=2.5, scaling=Scaling(mean=2.5, std=1.5))
    assert second == RealFeature(name="feat_static_real_1", fill=7.0, scaling=Scaling(mean=7.0, std=1.0))


@pytest.mark.parametrize("values", [[[None]], [[float("nan")], [float("inf")]]])
def test_a_real_without_finite_values_has_no_mean(values):
    with pytest.raises(SchemaMismatchError, match=r"'feat_static_real_0' has no finite value .*missing_real=0\.0"):
        profile(reals=values).to_schema()
    assert profile(reals=values).to_schema(missing_real=0.0, scale_reals=True).real[0].scaling is None


def test_widths_of_reals_must_fit():
    with pytest.raises(SchemaMismatchError, match="feat_static_real: entries have 1 to 2 columns"):
        profile(reals=[[1.0], [1.0, 2.0]]).to_schema()
    with pytest.raises(
        SchemaMismatchError, match="feat_static_real: entries have 2 columns, but the metadata declares 1"
    ):
        profile(reals=[[1.0, 2.0]], feat_static_real=[{"name": "size"}]).to_schema()


@given(st.lists(st.lists(st.integers(0, 9) | st.none(), min_size=2, max_size=2), max_size=8), st.booleans())
def test_every_category_that_was_seen_has_a_row(values, recode):
    schema = profile(*values).to_schema(recode=recode)
    for k, feature in enumerate(schema.categorical):
        seen = {row[k] for row in values} - {None}
        known = range(feature.num_known) if feature.vocabulary is None else feature.vocabulary
        assert seen <= set(known)
