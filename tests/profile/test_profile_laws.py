"""A profile is the same however the data is cut, shuffled and merged, and counts what a plain loop counts."""

import functools
import itertools
import math
import operator
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from store.entry_strategies import as_lists, datasets

from tsnorm.errors import FrequencyError, MetadataError, TsnormError
from tsnorm.profile import DatasetProfile, profile_entries, scan
from tsnorm.store import record_batches

METADATA = {"freq": "ME", "prediction_length": 2, "feat_static_cat": [], "odd": [1, {"deep": None}]}


def merged(profiles):
    return functools.reduce(operator.or_, profiles, DatasetProfile())


def outcome(profile, **policies):
    """Schema, or error, and warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = profile.to_schema(**policies)
        except TsnormError as error:
            result = f"{type(error).__name__}: {error}"
    return result, [str(warning.message) for warning in caught]


@given(datasets, st.data())
def test_shards_give_the_same_profile_schema_and_json(data, draw):
    whole = profile_entries(data, metadata=METADATA)
    shuffled = draw.draw(st.permutations(data))
    cuts = sorted(draw.draw(st.lists(st.integers(0, len(data)), max_size=3)))
    shards = [shuffled[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]
    rows = draw.draw(st.integers(1, 9))
    profiles = [scan(record_batches(shard, rows=rows), metadata=METADATA) for shard in shards]
    parts = merged(draw.draw(st.permutations(profiles)))
    assert parts == whole
    assert parts.to_json() == whole.to_json()
    policies = {"missing_real": draw.draw(st.sampled_from(["mean", 0.0])), "recode": draw.draw(st.booleans())}
    assert outcome(parts, scale_reals=True, **policies) == outcome(whole, scale_reals=True, **policies)


@given(datasets, datasets, datasets)
def test_merging_is_associative_and_has_a_neutral_element(a, b, c):
    x, y, z = (profile_entries(data) for data in (a, b, c))
    assert (x | y) | z == x | (y | z)
    assert x | y == y | x
    assert x | DatasetProfile() == x == DatasetProfile() | x


@given(datasets)
def test_json_gives_back_an_equal_profile(data):
    profile = profile_entries(data, metadata=METADATA)
    back = DatasetProfile.from_json(profile.to_json())
    assert back == profile
    assert back.to_json() == profile.to_json()


def flat(target):
    return [x for row in target for x in row] if target and isinstance(target[0], list | tuple) else target


@given(datasets, st.integers(1, 9))
def test_counts_are_those_of_a_plain_loop(data, rows):
    profile = scan(record_batches(data, rows=rows))
    targets = [as_lists(entry["target"]) for entry in data]
    lengths = [len(t[0]) if t and isinstance(t[0], list | tuple) else len(t) for t in targets]
    numbers = [[math.nan if x is None else float(x) for x in flat(t)] for t in targets]
    assert profile.num_series == len(data)
    assert profile.num_steps == sum(lengths)
    assert (profile.min_length, profile.max_length) == (min(lengths, default=0), max(lengths, default=0))
    assert profile.num_values == sum(map(len, numbers))
    assert profile.num_missing == sum(map(math.isnan, itertools.chain(*numbers)))
    assert profile.num_infinite == sum(map(math.isinf, itertools.chain(*numbers)))
    assert profile.num_empty == sum(not values for values in numbers)
    assert profile.num_all_missing == sum(bool(v) and all(map(math.isnan, v)) for v in numbers)
    for field, count in profile.presence.items():
        assert count == sum(field in entry for entry in data)
    reals = [entry["feat_static_real"] for entry in data if "feat_static_real" in entry]
    for r, column in enumerate(profile.static_real):
        values = [math.nan if x[r] is None else float(x[r]) for x in reals if len(x) > r]
        finite = [x for x in values if math.isfinite(x)]
        assert column.num_missing == sum(map(math.isnan, values))
        assert column.num_infinite == sum(map(math.isinf, values))
        assert (column.finite.low, column.finite.high) == (min(finite, default=None), max(finite, default=None))
    categories = [entry["feat_static_cat"] for entry in data if "feat_static_cat" in entry]
    for k, column in enumerate(profile.static_cat):
        values = [x[k] for x in categories if len(x) > k]
        given_values = [x for x in values if x is not None and x == x]
        assert column.num_missing == len(values) - len(given_values)
        assert column.distinct.values == {x for x in given_values if not (isinstance(x, float) and math.isinf(x))}


def test_more_distinct_values_than_the_limit_are_only_known_to_be_more(monkeypatch):
    monkeypatch.setattr("tsnorm.profile.accumulators.DISTINCT_LIMIT", 3)
    shards = [[0, 1], [1, 2], [2, 3], [0, 3]]
    profiles = [profile_entries([{"target": [1], "feat_static_cat": [i]} for i in shard]) for shard in shards]
    assert merged(profiles[:2]).static_cat[0].distinct.sorted() == [0, 1, 2]
    assert merged(profiles).static_cat[0].distinct.values is None
    assert merged(profiles) == merged(profiles[::-1])
    assert DatasetProfile.from_json(merged(profiles).to_json()) == merged(profiles)


def test_zeros_have_one_form():
    for order in (slice(None), slice(None, None, -1)):
        data = [{"target": [1], "feat_static_real": [x], "feat_static_cat": [x]} for x in (0.0, -0.0)][order]
        assert "-0" not in profile_entries(data).to_json()
        assert "-0" not in merged(profile_entries([entry]) for entry in data).to_json()


def test_what_is_declared_comes_from_metadata_or_arguments():
    profile = profile_entries([], metadata=METADATA)
    assert (profile.freq, profile.prediction_length, profile.metadata) == ("M", 2, METADATA)
    profile = profile_entries([], metadata=METADATA, freq="15T", prediction_length=np.int64(4))
    assert (profile.freq, profile.prediction_length) == ("15min", 4)


@pytest.mark.parametrize(
    ("a", "b", "error", "message"),
    [
        ({"freq": "M"}, {"freq": "D"}, FrequencyError, "one is at 'M' and one at 'D', but a dataset has one"),
        ({"prediction_length": 2}, {"prediction_length": 3}, MetadataError, "prediction_length is 2 in one and 3"),
        ({"metadata": {"x": 1}}, {"metadata": {"x": 2, "y": 1}}, MetadataError, "says 'x' is 1 in one and 2 in one"),
    ],
)
def test_parts_of_different_datasets_do_not_merge(a, b, error, message):
    with pytest.raises(error, match=message):
        profile_entries([], **a) | profile_entries([], **b)
    assert profile_entries([], **a) | profile_entries([]) == profile_entries([], **a)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"freq": "fortnight"}, FrequencyError, "'fortnight'"),
        ({"metadata": {"prediction_length": "18"}}, MetadataError, "prediction_length is '18', but must be a whole"),
        ({"prediction_length": 0}, MetadataError, "prediction_length is 0"),
        ({"metadata": [1]}, MetadataError, r"metadata: is \[1\], but must be a mapping"),
        ({"metadata": {"x": object()}}, MetadataError, "JSON cannot hold it"),
    ],
)
def test_what_is_declared_must_be_readable(given, error, message):
    with pytest.raises(error, match=message):
        profile_entries([], **given)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "profile: not JSON"),
        ("[" * 100_000, "profile: not JSON"),
        ("[]", "no tsnorm profile"),
        ('{"format": "tsnorm.profile", "version": 99}', "version is 99, but this tsnorm reads version 1"),
        ('{"format": "tsnorm.profile", "version": 1}', "a field is missing, unknown or of the wrong type"),
    ],
)
def test_other_json_is_refused(tmp_path, text, message):
    path = tmp_path / "profile.json"
    path.write_text(text)
    with pytest.raises(MetadataError, match=rf"profile\.json: .*{message}"):
        DatasetProfile.load(path)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"num_series": 1', '"num_series": "1"'),
        ('"num_series": 1', '"num_serie": 1'),
        ('"lengths": [\n    1,\n    1\n  ]', '"lengths": 7'),
        ('"total": "0x1p1074"', '"total": "1"'),
    ],
)
def test_damaged_json_is_refused(old, new):
    text = profile_entries([{"target": [1], "feat_static_real": [1.0]}]).to_json()
    assert old in text
    with pytest.raises(MetadataError, match="a field is missing, unknown or of the wrong type"):
        DatasetProfile.from_json(text.replace(old, new))


def test_a_saved_profile_is_loaded(tmp_path):
    profile = profile_entries([{"target": [1]}], freq="M")
    profile.save(tmp_path / "profile.json")
    assert DatasetProfile.load(tmp_path / "profile.json") == profile
