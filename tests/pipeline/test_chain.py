"""The chains give, bit for bit, the windows of the notebook chain, and never what a batch must not hold."""

import copy
import itertools
import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from chain_oracles import (
    At,
    bits,
    notebook_batch,
    notebook_sampler,
    notebook_windows,
    same_bits,
    usable_split_points,
    window_by_hand,
)
from gluonts.core import serde
from gluonts.itertools import Cyclic
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_models import FAMILIES, HORIZON, PAST, series, tiny_config, tiny_model, train_step
from torch.utils.data import DataLoader

from tsnorm.errors import ConfigMismatchError, DataError, FrequencyError, PlaceholderWarning, SchemaError
from tsnorm.freq import Frequency
from tsnorm.pipeline import check_batch, series_chain, split_chain, stack, training_chain, validation_chain
from tsnorm.pipeline import test_chain as prediction_chain
from tsnorm.schema import StaticSchema
from tsnorm.transforms.split import SPLIT_POINTS

NONE = StaticSchema(placeholder="omit")
STATICS = StaticSchema.from_counts([3, 2], 2, missing_cat="error", missing_real="error")
FREQS = (
    "M",
    "ME",
    "2M",
    "W-MON",
    "W-SUN",
    "2W-WED",
    "10min",
    "15T",
    "min",
    "h",
    "3h",
    "Q",
    "2Q",
    "QS-FEB",
    "Y",
    "A-JUN",
    "D",
)
MODES = ("train", "validation", "test")
finite = st.floats(width=32, allow_nan=False, allow_infinity=False)


@st.composite
def ragged(draw, channels=1, num_dynamic=0, min_length=1):
    """Entries of any length, with runs of gaps, statics, and a known future."""
    entries = []
    for i in range(draw(st.integers(1, 4))):
        length = draw(st.integers(min_length, 2 * PAST))
        target = np.array(draw(st.lists(finite, min_size=channels * length, max_size=channels * length)))
        for _ in range(draw(st.integers(0, 2))):
            start = draw(st.integers(0, channels * length))
            target[start : start + draw(st.integers(0, 8))] = np.nan
        entry = {
            "item_id": i,
            "start": draw(st.sampled_from(["2020-01-06", "1999-12-31 23:50:00", "2024-02-29", "1750-07-01"])),
            "target": target.reshape(channels, length)[slice(None) if channels > 1 else 0],
            "feat_static_cat": [draw(st.integers(0, 2)), draw(st.integers(0, 1))],
            "feat_static_real": draw(st.lists(finite, min_size=2, max_size=2)),
        }
        if num_dynamic:
            steps = length + HORIZON
            values = draw(st.lists(finite, min_size=num_dynamic * steps, max_size=num_dynamic * steps))
            entry["feat_dynamic_real"] = np.array(values).reshape(num_dynamic, steps)
        entries.append(entry)
    return entries


def chain_of(mode, config, schema, freq, min_past=1):
    if mode == "train":
        return training_chain(config, schema, freq, min_past=min_past)
    if mode == "validation":
        return validation_chain(config, schema, freq, min_past=min_past)
    return prediction_chain(config, schema, freq)


def for_mode(entries, mode):
    """GluonTS wants dynamic features of T steps in training and of T + H in prediction."""
    return [
        {
            name: value[:, :-HORIZON] if name == "feat_dynamic_real" and mode != "test" else value
            for name, value in e.items()
        }
        for e in entries
    ]


def assert_same_windows(entries, mode, config, freq, min_past):
    """Same draws from numpy's global state, same windows, same bits; then each window against one made by hand."""
    np.random.seed(7)  # noqa: NPY002 - GluonTS's samplers draw from it
    windows = list(chain_of(mode, config, STATICS, freq, min_past)(entries, is_train=mode != "test"))
    np.random.seed(7)  # noqa: NPY002
    sampler = notebook_sampler(mode, config, min_past)
    expected = notebook_windows(for_mode(entries, mode), config, freq, sampler, mode)
    assert [window["item_id"] for window in windows] == [window["item_id"] for window in expected]
    if not windows:
        return
    batch = stack(windows, future=mode != "test")
    assert same_bits(batch, notebook_batch(expected, config, mode))
    assert [w["forecast_start"] for w in windows] == [w["forecast_start"] for w in expected]
    check_batch(batch, config)
    for row, window in enumerate(windows):
        entry = entries[window["item_id"]]
        split_point = (window["forecast_start"] - pd.Period(entry["start"], freq=window["forecast_start"].freq)).n
        split_point //= window["forecast_start"].freq.n
        by_hand = window_by_hand(entry, split_point, config, freq, mode)
        assert {key: bits(batch[key][row]) for key in by_hand} == {key: bits(value) for key, value in by_hand.items()}


@pytest.mark.parametrize("mode", MODES)
@given(entries=ragged(), freq=st.sampled_from(FREQS), min_past=st.integers(0, 3))
@settings(max_examples=40, deadline=None)
def test_windows_are_those_of_the_notebook(mode, entries, freq, min_past):
    assert_same_windows(entries, mode, tiny_config("informer", STATICS, freq), freq, min_past)


@pytest.mark.filterwarnings("ignore:.*(BDay|PeriodDtype).*:FutureWarning")  # GluonTS builds business-day periods
@pytest.mark.parametrize("mode", MODES)
def test_windows_of_business_days_are_those_of_the_notebook(mode):
    entries = [e | {"item_id": i, "start": "2020-01-06"} for i, e in enumerate(series(3, feat_static_cat=[1, 1]))]
    entries = [e | {"feat_static_real": [0.5, 1.0]} for e in entries]
    config = tiny_config("informer", STATICS, "B")
    np.random.seed(7)  # noqa: NPY002
    batch = stack(list(chain_of(mode, config, STATICS, "B")(entries, mode != "test")), future=mode != "test")
    np.random.seed(7)  # noqa: NPY002
    windows = notebook_windows(entries, config, "B", notebook_sampler(mode, config, 1), mode)
    assert same_bits(batch, notebook_batch(windows, config, mode))


@pytest.mark.parametrize("mode", MODES)
@given(data=st.data(), channels=st.integers(2, 3), num_dynamic=st.integers(0, 2), min_past=st.integers(0, 1))
@settings(max_examples=15, deadline=None)
def test_multivariate_windows_with_dynamic_features_are_those_of_the_notebook(
    mode, data, channels, num_dynamic, min_past
):
    entries = data.draw(ragged(channels, num_dynamic))
    config = tiny_config("informer", STATICS, "D", input_size=channels, num_dynamic_real_features=num_dynamic)
    if num_dynamic == 0:
        entries = [{k: v for k, v in e.items() if k != "feat_dynamic_real"} for e in entries]
    assert_same_windows(entries, mode, config, "D", min_past)


@given(entries=ragged(min_length=HORIZON), freq=st.sampled_from(FREQS), data=st.data())
@settings(max_examples=40, deadline=None)
def test_windows_at_given_split_points_are_those_of_the_notebook(entries, freq, data):
    config = tiny_config("informer", STATICS, freq)
    marked, expected = [], []
    for entry in entries:
        usable = usable_split_points(entry["target"].shape[-1], HORIZON, 0)
        points = data.draw(st.lists(st.sampled_from(usable), min_size=1, max_size=3))
        marked.append({**entry, SPLIT_POINTS: points})
        expected += notebook_windows([entry], config, freq, At(points=points), "train")
    prepared = series_chain(config, STATICS, freq)(marked, is_train=True)
    batch = stack(list(split_chain(config)(prepared, is_train=True)))
    assert same_bits(batch, notebook_batch(expected, config, "train"))
    assert batch.info.split_points.tolist() == [t for entry in marked for t in entry[SPLIT_POINTS]]
    assert batch.info.item_ids == tuple(entry["item_id"] for entry in marked for _ in entry[SPLIT_POINTS])


@given(entries=ragged(), mode=st.sampled_from(MODES))
@settings(max_examples=25, deadline=None)
def test_entries_of_the_caller_are_untouched(entries, mode):
    lists = [{k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in entry.items()} for entry in entries]
    for given_entries in (entries, lists):
        before = copy.deepcopy(given_entries)
        for window in chain_of(mode, tiny_config("informer", STATICS), STATICS, "M")(given_entries, mode != "test"):
            for value in window.values():
                if isinstance(value, np.ndarray):
                    value.fill(-1)
        assert repr(given_entries) == repr(before)
        assert [entry.keys() for entry in given_entries] == [entry.keys() for entry in before]


@pytest.mark.parametrize("mode", MODES)
def test_every_batch_has_a_future_mask_and_only_keys_of_forward(mode):
    windows = list(
        chain_of(mode, tiny_config("informer", STATICS), STATICS, "M")(
            series(feat_static_cat=[1, 1], feat_static_real=[0.5, 1.0], note="x"), is_train=mode != "test"
        )
    )
    keys = {"past_values", "past_time_features", "past_observed_mask", "future_time_features"}
    keys |= {"static_categorical_features", "static_real_features"}
    keys |= set() if mode == "test" else {"future_values", "future_observed_mask"}
    assert stack(windows, future=mode != "test").keys() == keys


def test_past_shorter_than_the_window_is_zero_in_every_input():
    config = tiny_config("informer", STATICS)
    entry = series(1, HORIZON + 2, feat_static_cat=[1, 1], feat_static_real=[0.5, 1.0])
    batch = stack(list(validation_chain(config, STATICS, "M")(entry, is_train=True)))
    for key in ("past_values", "past_time_features", "past_observed_mask"):
        assert not batch[key][:, : PAST - 2].any()
        assert batch[key][:, PAST - 2 :].all(dim=1).any()


@pytest.mark.parametrize(("min_past", "lengths"), [(0, [4, 5, 24]), (1, [5, 24]), (2, [24])])
@pytest.mark.parametrize("mode", ["train", "validation"])
def test_shorter_series_are_passed_over(mode, min_past, lengths):
    entries = [series(1, length)[0] | {"item_id": length} for length in (1, 3, 4, 5, 24)]
    config = tiny_config("informer", NONE)
    windows = itertools.chain.from_iterable(
        chain_of(mode, config, NONE, "M", min_past)(entries, is_train=True) for _ in range(60)
    )
    assert sorted({window["item_id"] for window in windows}) == lengths


@pytest.mark.parametrize("short", [series(300, 2), [{"start": "2020-01", "target": [0.0]}] * 300])
@pytest.mark.parametrize("mode", ["train", "validation"])
def test_many_short_series_before_a_good_one_are_no_error(mode, short):
    chain = chain_of(mode, tiny_config("informer", NONE), NONE, "M")
    good = series(1, 200)
    assert [w["item_id"] for w in validation_chain(tiny_config(), StaticSchema(), "M")(short + good, True)] == ["item0"]
    stream = chain(Cyclic(short + good), is_train=True)
    assert {window["item_id"] for window in itertools.islice(stream, 5)} == {"item0"}


@pytest.mark.parametrize(
    "short", [series(7, 4), [{"start": "2020-01", "target": [0.0] * 4}], series(1, 4, item_id=[1, 2])]
)
@pytest.mark.parametrize("mode", ["train", "validation"])
def test_cycle_without_a_usable_series_ends_with_what_is_needed(mode, short):
    chain = chain_of(mode, tiny_config("informer", NONE), NONE, "M")
    assert list(chain(short, is_train=True)) == []
    message = r"no series can give a window: 5 values are needed \(1 past, 4 future\), but the longest has 4\. Shorten"
    with pytest.raises(DataError, match=message):
        next(chain(Cyclic(short), is_train=True))


@pytest.mark.parametrize("family", FAMILIES)
def test_time_features_of_width_zero_train(family):
    config = tiny_config(family, NONE, "Y", add_age=False)
    assert config.num_time_features == 0
    batch = stack(list(validation_chain(config, NONE, "Y", add_age=False)(series(), is_train=True)))
    assert batch["past_time_features"].shape == (4, PAST, 0)
    check_batch(batch, config)
    assert train_step(tiny_model(config), batch)[1] == []
    ahead = stack(list(prediction_chain(config, NONE, "Y", add_age=False)(series(), is_train=False)), future=False)
    assert ahead["future_time_features"].shape == (4, HORIZON, 0)
    assert tiny_model(config).eval().generate(**ahead).sequences.shape == (4, 100, HORIZON)


def test_age_is_left_out_where_it_is_not_wanted():
    with_age = tiny_config("informer", NONE)
    without = tiny_config("informer", NONE, add_age=False)
    a = stack(list(validation_chain(with_age, NONE, "M")(series(), is_train=True)))
    b = stack(list(validation_chain(without, NONE, "M", add_age=False)(series(), is_train=True)))
    assert torch.equal(a["past_time_features"][..., :1], b["past_time_features"])


def test_dynamic_features_stand_behind_the_calendar():
    config = tiny_config("informer", NONE, "Y", add_age=False, num_dynamic_real_features=2)
    entry = series(1, 15, feat_dynamic_real=[list(range(15)), list(range(100, 115))])
    batch = stack(list(validation_chain(config, NONE, "Y", add_age=False)(entry, is_train=True)))
    assert batch["future_time_features"].tolist() == [[[11, 111], [12, 112], [13, 113], [14, 114]]]


@pytest.mark.parametrize("through", ["pickle", "gluonts", "twice"])
@pytest.mark.parametrize("mode", MODES)
def test_chains_go_through_pickle_and_the_serde_of_gluonts(mode, through):
    schema = StaticSchema.from_counts([3, 2], 2, missing_real=0.5)
    config = tiny_config("informer", schema, "10min", num_dynamic_real_features=1)
    chain = chain_of(mode, config, schema, "10min")
    copied = {
        "pickle": lambda: pickle.loads(pickle.dumps(chain)),
        "gluonts": lambda: serde.load_json(serde.dump_json(chain)),
        "twice": lambda: serde.load_json(serde.dump_json(pickle.loads(pickle.dumps(chain)))),
    }[through]()
    entries = series(3, 30, feat_dynamic_real=[list(range(30 + HORIZON))]) + series(
        3, 30, feat_static_cat=[1, 1], feat_dynamic_real=[list(range(30 + HORIZON))]
    )
    batches = []
    for each in (chain, copied):
        np.random.seed(3)  # noqa: NPY002
        batches.append(stack(list(each(entries, is_train=mode != "test")), future=mode != "test"))
    assert same_bits(*batches)


class Windows(torch.utils.data.IterableDataset):
    """A chain as the notebooks give it to a torch loader."""

    def __init__(self, chain, entries):
        self.chain, self.entries = chain, entries

    def __iter__(self):
        return iter(self.chain(self.entries, is_train=True))


@pytest.mark.parametrize("num_workers", [0, 2])
def test_chain_and_stack_work_in_loader_workers(num_workers):
    config = tiny_config("informer", STATICS)
    entries = series(5, feat_static_cat=[1, 1], feat_static_real=[0.5, 1.0])
    dataset = Windows(validation_chain(config, STATICS, "M"), entries)
    batches = list(DataLoader(dataset, batch_size=5, collate_fn=stack, num_workers=num_workers))
    expected = stack(list(validation_chain(config, STATICS, "M")(entries, is_train=True)))
    assert len(batches) == max(1, num_workers)
    for batch in batches:
        assert same_bits(batch, expected)
        assert batch.info.item_ids == expected.info.item_ids


def test_order_of_dimensions_of_missing_and_filled_is_fixed_by_one_schema():
    schema = StaticSchema.from_counts([3], 1, missing_real=0.25)
    config = tiny_config("informer", schema)
    mixed = series(1, feat_static_cat=[1], feat_static_real=[0.5]) + series(1) + series(1, feat_static_cat=[None])
    batch = stack(list(validation_chain(config, schema, "M")(mixed, is_train=True)))
    assert batch["static_categorical_features"].tolist() == [[1], [3], [3]]
    assert batch["static_real_features"].tolist() == [[0.5], [0.25], [0.25]]


def test_source_of_one_dataset_under_a_wider_schema():
    source = StaticSchema.from_metadata({"feat_static_cat": [{"name": "b", "cardinality": "2"}]})
    schema = StaticSchema.from_metadata({"feat_static_cat": [{"name": "a", "cardinality": "3"}]}) | source
    config = tiny_config("informer", schema)
    chain = validation_chain(config, schema, "M", source=source)
    batch = stack(list(chain(series(2, feat_static_cat=[1]), is_train=True)))
    assert batch["static_categorical_features"].tolist() == [[3, 1], [3, 1]]  # a is missing: its reserved row
    with pytest.raises(SchemaError, match="'a' of the source is not in the schema"):
        validation_chain(tiny_config("informer", source), source, "M", source=schema)


@pytest.mark.parametrize("make", [training_chain, validation_chain, prediction_chain, series_chain])
def test_placeholder_is_warned_of_once_for_each_chain(make):
    config = tiny_config("informer", NONE, num_static_real_features=1)
    with pytest.warns(PlaceholderWarning) as warned:
        make(config, NONE, "M")
    assert len(warned) == 1


@pytest.mark.parametrize("num_instances", [0, -1.0, float("nan")])
def test_chain_that_draws_no_window_would_cycle_forever(num_instances):
    with pytest.raises(ConfigMismatchError, match="num_instances is .*, but must be positive, or no window comes out"):
        training_chain(tiny_config("informer", NONE), NONE, "M", num_instances=num_instances)


def test_frequency_may_be_an_object_of_pandas_or_our_own():
    config = tiny_config("informer", NONE, pd.offsets.MonthEnd())
    batches = [
        stack(list(validation_chain(config, NONE, freq)(series(), is_train=True)))
        for freq in ("M", pd.offsets.MonthEnd(), Frequency("M"))
    ]
    assert same_bits(batches[0], batches[1])
    assert same_bits(batches[0], batches[2])
    with pytest.raises(FrequencyError, match="None is no string"):
        series_chain(config, NONE, None)


@pytest.mark.parametrize("make", [training_chain, validation_chain, prediction_chain])
def test_config_that_is_none_of_a_time_series_model(make):
    with pytest.raises(ConfigMismatchError, match="dict has no attribute prediction_length, but the config object"):
        make({"prediction_length": 4}, NONE, "M")


def test_unknown_share_trains_the_reserved_row():
    schema = StaticSchema.from_counts([3])
    config = tiny_config("informer", schema)
    entries = [entry | {"item_id": i} for i, entry in enumerate(series(200, feat_static_cat=[1]))]
    chain = training_chain(config, schema, "M", unknown_share=0.3, num_instances=2.0)
    rows = stack(list(chain(entries, is_train=True)))["static_categorical_features"]
    assert set(rows.flatten().tolist()) == {1, 3}
    assert 0.2 < (rows == 3).double().mean() < 0.4
    with pytest.raises(SchemaError, match="share is 1.5, but must be from 0.0 to 1.0"):
        training_chain(config, schema, "M", unknown_share=1.5)


# stack


def test_stack_refuses_windows_of_prediction_where_a_future_is_wanted():
    config = tiny_config("informer", NONE)
    windows = list(prediction_chain(config, NONE, "M")(series(), is_train=False))
    with pytest.raises(DataError, match="future_target of item 'item0': it has no steps, .*Use future=False"):
        stack(windows)
    windows_of_train = list(prediction_chain(config, NONE, "M")(series(), is_train=True))
    with pytest.raises(DataError, match="future_time_feat of item 'item0': it has no steps, .*with is_train=False"):
        stack(windows_of_train, future=False)
    assert "future_values" not in stack(windows, future=False)


def test_stack_refuses_nothing_to_stack():
    with pytest.raises(DataError, match="there are no windows, but a batch needs one"):
        stack([])


@pytest.mark.parametrize("odd", [0, 1])
def test_stack_names_the_window_that_differs(odd):
    narrow, wide = (StaticSchema.from_counts([3] * k) for k in (1, 2))
    windows = []
    for i, schema in enumerate([narrow, wide] if odd else [wide, narrow]):
        chain = validation_chain(tiny_config("informer", schema), schema, "M")
        windows += chain([series(1)[0] | {"item_id": i}], is_train=True)
    with pytest.raises(
        DataError, match=r"feat_static_cat of item 1: of shape \((1|2),\), but of shape \((1|2),\) in the first"
    ):
        stack(windows)


def test_batch_moves_with_its_info():
    batch = stack(list(validation_chain(tiny_config("informer", NONE), NONE, "M")(series(), is_train=True)))
    moved = batch.to("cpu", non_blocking=True)
    assert moved.info is batch.info
    assert pickle.loads(pickle.dumps(batch)).info.item_ids == batch.info.item_ids
    assert copy.copy(batch).info is batch.info


# In an estimator of GluonTS


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of GluonTS and Lightning themselves
def test_estimator_of_gluonts_trains_on_data_with_missing_statics(tmp_path):
    pytest.importorskip("lightning")
    pytest.importorskip("scipy")  # gluonts.torch imports it and does not declare it
    from gluonts.dataset.common import ListDataset
    from gluonts.torch import DeepAREstimator

    from tsnorm.transforms import static_features

    schema = StaticSchema.from_counts([3], 1, missing_real=0.5)

    class Normalised(DeepAREstimator):
        def create_transformation(self):
            return static_features(schema) + super().create_transformation()

    estimator = Normalised(
        freq="M",
        prediction_length=2,
        context_length=4,
        lags_seq=[1, 2],
        num_layers=1,
        hidden_size=4,
        batch_size=4,
        num_batches_per_epoch=1,
        trainer_kwargs={
            "max_epochs": 1,
            "accelerator": "cpu",
            "logger": False,
            "enable_progress_bar": False,
            "enable_model_summary": False,
            "default_root_dir": tmp_path,
        },
        **schema.estimator_kwargs(DeepAREstimator),
    )
    entries = series(3, 20, feat_static_cat=[1], feat_static_real=[1.0]) + series(3, 20)
    predictor = estimator.train(ListDataset(entries, freq="M"))
    assert len(list(predictor.predict(ListDataset(entries, freq="M")))) == 6
