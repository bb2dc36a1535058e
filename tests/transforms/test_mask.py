"""MaskStaticCat: a pure function of seed, series, window and column."""

import copy
import itertools
import pickle
import re

import numpy as np
import pandas as pd
import pytest
from gluonts.core.serde import decode, encode
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import uniform_of
from schema_strategies import dates

from tsnorm.errors import DataError, SchemaError
from tsnorm.rng import text_key
from tsnorm.schema import CategoricalFeature, StaticSchema
from tsnorm.transforms import MaskStaticCat

SCHEMA = StaticSchema(
    categorical=[
        CategoricalFeature.make("color", num_known=3),
        CategoricalFeature.make("fixed", num_known=3, missing="error"),
        CategoricalFeature(name="grown", cardinality=4, unknown_id=1),
    ]
)
RESERVED = [3, -1, 1]


def window(item_id, start, rows=(0, 2, 0)):
    return {
        "item_id": item_id,
        "forecast_start": pd.Period(start, "D"),
        "feat_static_cat": np.array(rows, dtype=np.int64),
        "past_target": np.zeros(3),
    }


def windows(num_series=40, num_starts=100):
    days = pd.period_range("1969-12-01", periods=num_starts, freq="D")
    return [window(f"T{i}", day) for i in range(num_series) for day in days]


def masked(transform, entries, is_train=True):
    return np.stack([e["feat_static_cat"] for e in transform(entries, is_train)])


def test_a_share_of_nothing_changes_nothing():
    mask = MaskStaticCat(SCHEMA, 0.0)
    entries = windows(3, 3)
    assert (masked(mask, entries) == [0, 2, 0]).all()
    assert mask.counts == {}


def test_a_share_of_one_hits_every_reserved_row_and_no_other():
    mask = MaskStaticCat(SCHEMA, 1.0)
    entries = windows(3, 3)
    assert (masked(mask, entries) == [3, 2, 1]).all()
    assert mask.counts == {"masked": 2 * len(entries)}


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_only_in_training(share):
    mask = MaskStaticCat(SCHEMA, share)
    entries = windows(3, 3)
    assert (masked(mask, entries, is_train=False) == [0, 2, 0]).all()
    assert mask.counts == {}


@pytest.mark.parametrize("share", [0.02, 0.3, 0.9])
def test_about_the_share_of_windows_is_hit_in_each_column_on_its_own(share):
    mask = MaskStaticCat(SCHEMA, share, seed=3)
    entries = windows()
    rows = masked(mask, entries)
    n = len(entries)
    assert (rows[:, 1] == 2).all()
    hits = rows[:, [0, 2]] == [3, 1]
    noise = 4 * np.sqrt(share * (1 - share) / n)
    assert (abs(hits.mean(axis=0) - share) < noise).all()
    assert abs(hits.all(axis=1).mean() - share**2) < 4 * np.sqrt(share**2 * (1 - share**2) / n)
    assert mask.counts == {"masked": hits.sum()}
    by_series = hits.reshape(40, 100, 2).mean(axis=1)  # (series, column)
    assert (abs(by_series - share) < 5 * np.sqrt(share * (1 - share) / 100)).all()


def test_it_does_not_depend_on_order_rank_worker_or_what_came_before():
    entries = windows(5, 40)
    whole = masked(MaskStaticCat(SCHEMA, 0.3, seed=3), entries)
    backwards = masked(MaskStaticCat(SCHEMA, 0.3, seed=3), entries[::-1])[::-1]
    assert (whole == backwards).all()
    for rank in range(3):
        assert (masked(MaskStaticCat(SCHEMA, 0.3, seed=3), entries[rank::3]) == whole[rank::3]).all()
    again = MaskStaticCat(SCHEMA, 0.3, seed=3)
    for remade in (again, again, pickle.loads(pickle.dumps(again)), decode(encode(again))):
        assert (masked(remade, entries) == whole).all()
    one_by_one = [again.map_transform(entry, is_train=True)["feat_static_cat"] for entry in entries]
    assert (np.stack(one_by_one) == whole).all()


def test_seed_series_start_and_column_all_matter():
    entries = windows(4, 200)
    by_seed = [masked(MaskStaticCat(SCHEMA, 0.5, seed=seed), entries) for seed in (0, 1, -1, 2**64 - 2)]
    assert all((a != b).any() for a, b in itertools.combinations(by_seed, 2))
    hits = by_seed[0][:, [0, 2]] == [3, 1]
    assert (hits[:, 0] != hits[:, 1]).any()
    by_series = hits.reshape(4, 200, 2)
    assert all((a != b).any() for a, b in itertools.combinations(by_series, 2))


@settings(max_examples=100, deadline=None)
@given(st.integers(-(2**70), 2**70), st.text(max_size=5) | st.integers() | st.none(), dates, st.floats(0, 1))
def test_it_is_what_the_oracle_says(seed, item_id, date, share):
    entry = window(item_id, date)
    [out] = MaskStaticCat(SCHEMA, share, seed)([entry], is_train=True)
    days = (date.toordinal()) - 719163  # 1970-01-01
    draws = [uniform_of(seed, text_key(str(item_id)), days, k) for k in range(3)]
    expected = [r if u < share and r >= 0 else row for u, r, row in zip(draws, RESERVED, (0, 2, 0), strict=True)]
    assert out["feat_static_cat"].tolist() == expected
    assert out["feat_static_cat"].dtype == np.int64


def test_the_masks_are_frozen():
    """A release that changes them changes resumed runs."""
    rows = masked(MaskStaticCat(SCHEMA, 0.3, seed=3), [window("T0042", f"2022-01-{day:02}") for day in range(1, 11)])
    assert rows[:, 0].tolist() == [3, 0, 0, 3, 0, 0, 0, 3, 0, 0]
    assert rows[:, 2].tolist() == [0, 0, 0, 0, 1, 1, 0, 1, 0, 1]


def test_any_item_id_will_do():
    ids = ["", "ä", "\ud800", 7, 7.5, None, ("a", 1), np.int64(3), pd.Timestamp("2022-01-01")]
    rows = masked(MaskStaticCat(SCHEMA, 1.0), [window(i, "2022-01-01") for i in ids])
    assert (rows == [3, 2, 1]).all()
    entry = window("a", "2022-01-01")
    del entry["item_id"]
    assert masked(MaskStaticCat(SCHEMA, 1.0), [entry]).tolist() == [[3, 2, 1]]


def test_entries_are_never_written_into():
    entry = window("a", "2022-01-01")
    before, kept = copy.deepcopy(entry), dict(entry)
    [out] = MaskStaticCat(SCHEMA, 1.0)([entry], is_train=True)
    assert out["feat_static_cat"].tolist() == [3, 2, 1]
    assert all(entry[key] is kept[key] for key in kept)
    assert repr(entry) == repr(before)


def test_without_categorical_features_there_is_nothing_to_mask():
    entry = {"feat_static_cat": np.array([0])}
    [out] = MaskStaticCat(StaticSchema(), 1.0)([entry], is_train=True)
    assert out["feat_static_cat"].tolist() == [0]


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan"), float("inf")])
def test_a_share_outside_its_range_is_refused(share):
    with pytest.raises(
        SchemaError, match=re.escape(f"MaskStaticCat: share is {share!r}, but must be from 0.0 to 1.0.")
    ):
        MaskStaticCat(SCHEMA, share)


@pytest.mark.parametrize("missing", ["forecast_start", "feat_static_cat"])
def test_it_says_where_it_belongs(missing):
    entry = window("T0042", "2022-01-01")
    del entry[missing]
    mask = MaskStaticCat(SCHEMA, 0.5)
    with pytest.raises(
        DataError,
        match=rf"^{missing} of item 'T0042' \(row 1\): it is missing, but .*behind static_features and the splitter",
    ):
        list(mask([entry], is_train=True))
    assert list(mask([entry], is_train=False)) == [entry]
