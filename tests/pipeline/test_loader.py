"""The same global batches for any number of ranks and workers; an evaluation has each window once."""

import multiprocessing
import os
import pickle
from collections import Counter
from multiprocessing.reduction import ForkingPickler
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.distributed as dist
from chain_oracles import (
    bits,
    notebook_batch,
    notebook_sampler,
    notebook_windows,
    same_bits,
    usable_split_points,
    window_by_hand,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from ranks import run_on_ranks
from tiny_models import HORIZON, PAST, series, tiny_config, tiny_model, train_step
from torch.utils.data import DataLoader
from torch.utils.data._utils import worker as torch_worker

from tsnorm.errors import ConfigMismatchError, DataError, FrequencyError, SchemaError, SchemaMismatchError, WorldError
from tsnorm.pipeline import EvaluationLoader, TimeSeriesDataset, TrainingLoader, series_chain, unite
from tsnorm.pipeline.windows import WindowIndex
from tsnorm.schema import StaticSchema
from tsnorm.world import World

CAT, REAL = "static_categorical_features", "static_real_features"


def dataset(lengths, name="data", start="2020-01", **fields):
    """Series of given lengths whose values tell series and step: 100 i + t."""
    entries = [
        {"item_id": f"{name}{i}", "start": start, "target": [100.0 * i + t for t in range(length)], **fields}
        for i, length in enumerate(lengths)
    ]
    return TimeSeriesDataset.from_entries(entries, freq="M", name=name)


RAGGED = dataset([5, 30, 4, 12, 1, 26], feat_static_cat=[1], feat_static_real=[0.5])
CONFIG = tiny_config("informer", RAGGED.schema)


def training(datasets=(RAGGED,), config=CONFIG, **settings):
    return TrainingLoader(list(datasets), config=config, **({"global_batch_size": 8, "num_steps": 5} | settings))


def evaluation(datasets=(RAGGED,), config=CONFIG, **settings):
    return EvaluationLoader(list(datasets), config=config, **({"global_batch_size": 4} | settings))


def over_ranks(monkeypatch, loader, world_size):
    """Batches of each rank."""
    ranks = []
    for rank in range(world_size):
        monkeypatch.setenv("RANK", str(rank))
        monkeypatch.setenv("WORLD_SIZE", str(world_size))
        ranks.append(list(loader))
    monkeypatch.delenv("RANK")
    monkeypatch.delenv("WORLD_SIZE")
    return ranks


def joined(ranks):
    """Global batches: those of the ranks one after the other, and (series, split point, padding) of each row."""
    batches, rows = [], []
    for parts in zip(*ranks, strict=True):
        batches.append({key: torch.cat([part[key] for part in parts]) for key in parts[0]})
        rows.append([row for part in parts for row in rows_of(part)])
    return batches, rows


def rows_of(batch):
    info = batch.info
    return list(
        zip(
            info.dataset_idx.tolist(),
            info.series_idx.tolist(),
            info.split_points.tolist(),
            info.is_padding.tolist(),
            info.item_ids,
            strict=True,
        )
    )


def assert_same(a, b):
    assert len(a) == len(b)
    assert all(same_bits(x, y) for x, y in zip(a, b, strict=True))


LOADERS = {
    "training": lambda: training(unknown_share=0.5),
    "validation": evaluation,
    "test": lambda: evaluation(mode="test"),
}


@pytest.fixture(params=LOADERS)
def loader(request):
    return LOADERS[request.param]()


# Ranks and workers


@pytest.mark.parametrize("world_size", [2, 4])
def test_global_batches_are_the_same_for_every_world_size(monkeypatch, loader, world_size):
    alone = joined([list(loader)])
    shared = joined(over_ranks(monkeypatch, loader, world_size))
    assert_same(alone[0], shared[0])
    assert alone[1] == shared[1]


@pytest.mark.parametrize("num_workers", [0, 1, 2])
def test_batches_are_the_same_for_every_number_of_workers(monkeypatch, loader, num_workers):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    expected = list(loader)
    through = DataLoader(loader, batch_size=None, num_workers=num_workers)
    assert len(through) == len(expected) == len(loader)
    batches = list(through)
    assert_same(batches, expected)
    assert [rows_of(batch) for batch in batches] == [rows_of(batch) for batch in expected]


@pytest.mark.parametrize("world_size", [3, 8])
def test_world_that_does_not_divide_the_batch(monkeypatch, loader, world_size):
    size = loader.global_batch_size
    if size % world_size == 0:
        world_size = 7
    fitting = -(-size // world_size) * world_size
    message = rf"global_batch_size is {size}, but must be divisible by the {world_size} ranks\. Set it to {fitting}"
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", str(world_size))
    with pytest.raises(WorldError, match=message):
        iter(loader)


def test_c37_rank_is_read_when_iteration_starts(monkeypatch):
    loader = evaluation([dataset([20] * 8)], tiny_config("informer", StaticSchema()), global_batch_size=4)
    first, second = over_ranks(monkeypatch, loader, 2)  # built before there were ranks
    ids = [{item for batch in rank for item in batch.info.item_ids} for rank in (first, second)]
    assert ids[0] & ids[1] == set()
    assert ids[0] | ids[1] == {f"data{i}" for i in range(8)}


def test_spawned_worker_without_environment_keeps_the_rank_of_its_process(monkeypatch, loader):
    """Under spawn a worker has no process group, and where ranks were set by hand no environment either."""
    _, expected = over_ranks(monkeypatch, loader, 2)
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    sent = bytes(ForkingPickler.dumps(loader))
    monkeypatch.delenv("RANK")
    monkeypatch.delenv("WORLD_SIZE")
    arrived = pickle.loads(sent)
    monkeypatch.setattr(
        torch_worker, "_worker_info", torch_worker.WorkerInfo(id=0, num_workers=1, seed=0, dataset=None)
    )
    assert_same(list(arrived), expected)
    monkeypatch.setattr(torch_worker, "_worker_info", None)
    assert_same(list(arrived), list(loader))  # outside of a worker it is alone


def _iterate_on_a_rank(loader):
    """In-process, then through a spawned worker that finds no environment; rows and values of each."""
    multiprocessing.current_process()._config["daemon"] = False  # a daemon may start no workers
    os.environ.pop("RANK")
    os.environ.pop("WORLD_SIZE")
    assert dist.is_initialized()
    through = DataLoader(loader, batch_size=None, num_workers=1, multiprocessing_context="spawn")
    return [
        [(rows_of(batch), {key: value.numpy() for key, value in batch.items()}) for batch in batches]
        for batches in (loader, through)
    ]


@pytest.mark.slow
def test_real_ranks_read_their_own_slices():
    loader = training()
    expected = list(loader)
    ranks = run_on_ranks(_iterate_on_a_rank, 2, loader)
    for way in (0, 1):
        for step, batch in enumerate(expected):
            parts = [ranks[rank][way][step] for rank in (0, 1)]
            assert parts[0][0] + parts[1][0] == rows_of(batch)
            for key, value in batch.items():
                assert np.array_equal(np.concatenate([part[1][key] for part in parts]), value.numpy())


# Order


def test_order_is_a_pure_function_of_seed_epoch_and_step():
    expected = list(training(num_steps=7))
    np.random.seed(1)  # noqa: NPY002
    torch.manual_seed(1)
    prefix = list(training(num_steps=3))
    assert_same(prefix, expected[:3])
    loader = training(num_steps=7)
    next(iter(loader))
    assert_same(list(loader), expected)
    again = training(num_steps=7)
    again.set_epoch(1)
    list(again)
    again.set_epoch(0)
    assert_same(list(again), expected)


def windows_of(batches):
    return [row[:3] for batch in batches for row in rows_of(batch)]


def test_epochs_and_seeds_differ():
    loader = training(num_steps=4)
    drawn = []
    for epoch in (0, 1, 2):
        loader.set_epoch(epoch)
        assert loader.epoch == epoch
        drawn.append(windows_of(loader))
    drawn.append(windows_of(training(num_steps=4, seed=1)))
    assert all(a != b for i, a in enumerate(drawn) for b in drawn[:i])
    steps = [windows_of([batch]) for batch in loader]
    assert all(a != b for i, a in enumerate(steps) for b in steps[:i])


def test_epoch_is_that_of_the_start_of_an_iteration():
    loader = training(num_steps=4)
    expected = list(loader)
    iterator = iter(loader)
    loader.set_epoch(5)
    assert_same(list(iterator), expected)
    assert windows_of(loader) != windows_of(expected)


def test_epoch_reaches_workers_that_persist():
    loader = pickle.loads(pickle.dumps(training(num_steps=4)))
    through = DataLoader(loader, batch_size=None, num_workers=1, persistent_workers=True)
    for epoch in (0, 3):
        loader.set_epoch(epoch)
        assert windows_of(through) == windows_of(loader)
    copied = training(num_steps=4)
    copied.set_epoch(2)
    assert pickle.loads(pickle.dumps(copied)).epoch == 2


def test_iterations_are_independent(loader):
    expected = list(loader)
    one, other = iter(loader), iter(loader)
    interleaved = [(next(one), next(other)) for _ in expected]
    assert_same([a for a, _ in interleaved], expected)
    assert_same([b for _, b in interleaved], expected)


def test_draws_are_uniform_over_the_windows_of_all_series_and_datasets():
    short, long = dataset([6, 9], "short"), dataset([20], "long")
    config = tiny_config("informer", unite([short, long]))
    loader = training([short, long], config, global_batch_size=250, num_steps=30)
    assert loader.num_windows == 2 + 5 + 16
    counts = Counter(windows_of(loader))
    expected = {(0, 0, t) for t in (1, 2)} | {(0, 1, t) for t in range(1, 6)} | {(1, 0, t) for t in range(1, 17)}
    assert counts.keys() == expected
    mean = 250 * 30 / len(expected)
    chi_square = sum((count - mean) ** 2 / mean for count in counts.values())
    assert chi_square < 60  # 22 degrees of freedom: once in 20,000 seeds


@given(
    lengths=st.lists(st.integers(0, 12), max_size=6),
    horizon=st.integers(1, 5),
    min_past=st.integers(0, 3),
)
@settings(deadline=None)
def test_window_index_counts_and_finds_every_window(lengths, horizon, min_past):
    index = WindowIndex(lengths=np.array(lengths, dtype=np.int64), prediction_length=horizon, min_past=min_past)
    expected = [(i, t) for i, n in enumerate(lengths) for t in usable_split_points(n, horizon, min_past)]
    assert index.total == len(expected)
    series_idx, split_points = index.locate(np.arange(index.total))
    assert list(zip(series_idx.tolist(), split_points.tolist(), strict=True)) == expected
    assert series_idx.dtype == split_points.dtype == np.int64


# Windows


def test_rows_are_the_windows_that_their_info_names(loader):
    for batch in loader:
        mode = "train" if "future_values" in batch else "test"
        for row, (_, idx, split_point, is_padding, item_id) in enumerate(rows_of(batch)):
            assert item_id == f"data{idx}"
            by_hand = window_by_hand(RAGGED.entries[idx], split_point, CONFIG, "M", mode)
            if is_padding and mode == "train":
                by_hand["future_observed_mask"].zero_()
            assert {key: bits(batch[key][row]) for key in by_hand} == {k: bits(v) for k, v in by_hand.items()}
            assert batch[REAL][row].tolist() == [0.5]
            assert batch[CAT][row].tolist() in ([1], [2])


def test_c40_shapes_and_dtypes_are_the_same_in_every_batch(loader):
    forms = {tuple((key, value.dtype, tuple(value.shape)) for key, value in batch.items()) for batch in loader}
    assert len(forms) == 1
    keys = {key for key, _, _ in forms.pop()}
    assert keys.isdisjoint({"item_id", "info", "is_padding", "split_point", "split_points"})


def test_info_stands_beside_the_keys_and_goes_along_to_a_device(loader):
    batch = next(iter(loader)).to("cpu")
    assert set(batch) <= {
        "past_values",
        "past_time_features",
        "past_observed_mask",
        CAT,
        REAL,
        "future_values",
        "future_time_features",
        "future_observed_mask",
    }
    assert len(batch.info.item_ids) == len(batch["past_values"]) == len(batch.info.is_padding)
    if "future_values" in batch:
        train_step(tiny_model(CONFIG), batch)
    else:
        tiny_model(CONFIG).eval().generate(**batch)


def test_unknown_share_is_a_function_of_the_window(monkeypatch):
    data = dataset([10, 12], feat_static_cat=[0])
    loader = training([data], tiny_config("informer", data.schema), unknown_share=0.4, num_steps=40)
    masked = {}
    for batch in loader:
        for row, window in enumerate(windows_of([batch])):
            masked.setdefault(window, set()).add(batch[CAT][row].item())
    assert all(len(rows) == 1 for rows in masked.values())
    assert {row for rows in masked.values() for row in rows} == {0, 1}
    loader.set_epoch(1)
    other = {w: batch[CAT][row].item() for batch in loader for row, w in enumerate(windows_of([batch]))}
    assert any({other[window]} != masked[window] for window in other.keys() & masked.keys())
    with pytest.raises(SchemaError, match="share is -0.1, but must be from 0.0 to 1.0"):
        training(unknown_share=-0.1)


# Evaluation


@pytest.mark.parametrize(
    ("rows", "world_size", "global_batch_size", "steps"),
    [(5, 2, 2, 3), (100, 7, 21, 5), (1, 4, 4, 1), (8, 4, 4, 2), (9, 3, 6, 2), (50, 1, 32, 2)],
)
@pytest.mark.parametrize("mode", ["validation", "test"])
def test_c38_every_window_once_and_equally_many_steps(monkeypatch, rows, world_size, global_batch_size, steps, mode):
    config = tiny_config("informer", StaticSchema())
    loader = evaluation([dataset([12] * rows)], config, global_batch_size=global_batch_size, mode=mode)
    ranks = over_ranks(monkeypatch, loader, world_size)
    assert {len(rank) for rank in ranks} == {steps} == {len(loader)}
    assert {len(batch["past_values"]) for rank in ranks for batch in rank} == {global_batch_size // world_size}
    real = [[item for batch in rank for *_, is_padding, item in rows_of(batch) if not is_padding] for rank in ranks]
    assert sorted(item for rank in real for item in rank) == sorted(f"data{i}" for i in range(rows))
    padding = [(batch, row) for rank in ranks for batch in rank for row in np.flatnonzero(batch.info.is_padding)]
    assert len(padding) == steps * global_batch_size - rows
    if mode == "validation":
        assert not any(batch["future_observed_mask"][row].any() for batch, row in padding)
        weights = sum(batch["future_observed_mask"].sum().item() for rank in ranks for batch in rank)
        assert weights == rows * HORIZON


def test_padding_has_no_weight_in_the_loss():
    config = tiny_config("informer", StaticSchema())
    [batch] = evaluation([dataset([20, 20, 20])], config, global_batch_size=8)
    assert batch.info.is_padding.tolist() == [False] * 3 + [True] * 5
    model = tiny_model(config).eval()
    real = {key: value[:3] for key, value in batch.items()}
    assert model(**batch).loss.item() == pytest.approx(model(**real).loss.item(), rel=1e-5)
    only_padding = {key: value[3:] for key, value in batch.items()}
    assert train_step(tiny_model(config), only_padding) == (0.0, [])  # a rank without rows still makes its step


def test_c43_evaluation_covers_all_windows_twice_in_a_row():
    loader = evaluation([dataset([12] * 50)], tiny_config("informer", StaticSchema()), global_batch_size=32)
    first, second = list(loader), list(loader)
    assert len(first) == len(second) == 2
    assert_same(first, second)


def test_c52_fewer_series_than_ranks(monkeypatch):
    loader = evaluation([dataset([12])], tiny_config("informer", StaticSchema()), global_batch_size=4, mode="test")
    ranks = over_ranks(monkeypatch, loader, 4)
    assert [[rows_of(batch) for batch in rank] for rank in ranks] == [
        [[(0, 0, 12, rank > 0, "data0")]] for rank in range(4)
    ]


def test_test_windows_know_the_time_but_not_the_values_of_the_future():
    batch = next(iter(evaluation(mode="test")))
    assert "future_values" not in batch
    assert batch["future_time_features"].shape == (4, HORIZON, 2)
    assert batch["past_values"][:, -1].tolist() == [4, 129, 203, 311]


def test_validation_windows_end_with_the_series():
    batch = next(iter(evaluation()))
    assert batch["future_values"][:, -1].tolist() == [4, 129, 311, 525]


def test_dynamic_features_reach_into_the_future():
    def with_feature(steps):
        return dataset([10], feat_dynamic_real=[list(range(steps))])

    config = tiny_config("informer", StaticSchema(), num_dynamic_real_features=1)
    for mode, future in (("test", [10, 11, 12, 13]), ("validation", [6, 7, 8, 9])):
        [batch] = evaluation([with_feature(14)], config, mode=mode, global_batch_size=1)
        assert batch["future_time_features"][0, :, -1].tolist() == future
    with pytest.raises(DataError, match=r"feat_dynamic_real of item 'data0' .*it has 10 steps, but 14 are needed"):
        evaluation([with_feature(10)], config, mode="test")
    assert len(training([with_feature(10)], config)) == 5


# What is skipped and refused


def test_skipped_series_are_listed():
    assert training().skipped == evaluation().skipped == ("data2", "data4")
    assert training(min_past=0).skipped == ("data4",)
    assert training(min_past=9).skipped == evaluation(min_past=9).skipped == ("data0", "data2", "data3", "data4")
    assert evaluation(mode="test").skipped == ()
    assert evaluation(mode="test", min_past=5).skipped == ("data2", "data4")


@pytest.mark.parametrize("make", [training, evaluation])
def test_c44_no_series_is_long_enough(make):
    config = tiny_config("informer", StaticSchema(), prediction_length=2, context_length=4, lags_sequence=[1])
    message = (
        r"0 of 2 series can give a window: 3 values are needed \(1 past, 2 future\), but the longest has 1 "
        r"\(item_id 'data0', 'data1'\)\. Shorten prediction_length\."
    )
    with pytest.raises(DataError, match=message):
        make([dataset([1, 1])], config)
    with pytest.raises(DataError, match="0 of 5 series .*'data0', 'data1', 'data2', "):
        make([dataset([2] * 5)], config)
    with pytest.raises(DataError, match="or lower min_past"):
        make([dataset([2])], config, min_past=2)
    with pytest.raises(DataError, match="the dataset has no entries, but at least one series is needed"):
        dataset([])
    assert len(make([dataset([2])], config, min_past=0)) > 0


@pytest.mark.parametrize("make", [training, evaluation])
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"global_batch_size": 0}, "global_batch_size is 0 and min_past 1, but must be from 1 and from 0"),
        ({"min_past": -1}, "global_batch_size is . and min_past -1"),
    ],
)
def test_sizes_out_of_range(make, settings, message):
    with pytest.raises(WorldError, match=message):
        make(**settings)


def test_settings_of_one_loader_out_of_range():
    for wrong in ({"seed": -1}, {"num_steps": -1}):
        with pytest.raises(WorldError, match="num_steps is .* and seed .*, but both must be from 0"):
            training(**wrong)
    with pytest.raises(WorldError, match="epoch is -1, but must be from 0"):
        training().set_epoch(-1)
    with pytest.raises(WorldError, match="mode is 'train', but must be 'validation' or 'test'"):
        evaluation(mode="train")
    assert list(training(num_steps=0)) == []


@pytest.mark.parametrize("make", [training, evaluation])
def test_datasets_of_two_frequencies_are_refused_also_under_a_given_schema(make):
    monthly = dataset([20])
    quarterly = TimeSeriesDataset.from_entries(series(2), freq="Q", name="quarterly")
    config = tiny_config("informer", StaticSchema())  # months and quarters have as many time features
    for schema in (None, StaticSchema()):
        with pytest.raises(FrequencyError, match="quarterly is at Q, but data is at M. One model learns one frequency"):
            make([monthly, quarterly], config, schema=schema)
    with pytest.raises(DataError, match="there are no datasets"):
        make([], config)
    with pytest.raises(DataError, match=r"data is one dataset, but a list of datasets is needed\. Write \[dataset\]"):
        EvaluationLoader(monthly, config=config, global_batch_size=4)


def test_config_is_compared_with_the_data_when_a_loader_is_built():
    with pytest.raises(ConfigMismatchError, match="static_real_features: data has 1 column, config has 0"):
        training(config=tiny_config("informer", StaticSchema(placeholder="omit")))
    with pytest.raises(ConfigMismatchError, match="time features: data at M has 2"):
        training(add_age=True, config=tiny_config("informer", RAGGED.schema, add_age=False))
    assert next(iter(training(add_age=False, config=tiny_config("informer", RAGGED.schema, add_age=False)))).info


def test_first_batch_is_compared_with_the_config(loader):
    config = tiny_config("informer", RAGGED.schema)
    for each in (training(config=config), evaluation(config=config)):
        config.cardinality = [1]
        with pytest.raises(ConfigMismatchError, match="column 0 holds id 1, but its cardinality is 1"):
            next(iter(each))
        config.cardinality = [3]


def test_infinity_is_an_error_or_missing():
    data = TimeSeriesDataset.from_entries(
        [{"item_id": "a", "start": "2020-01", "target": [1.0] * 9 + [np.inf]}], freq="M"
    )
    config = tiny_config("informer", StaticSchema())
    with pytest.raises(
        DataError, match=r"target of item 'a' \(row 1\): 1 value\(s\) are infinite in float32, the first at index 9"
    ):
        evaluation([data], config)
    [batch] = evaluation([data], config, infinity="missing", global_batch_size=1)
    assert batch["future_observed_mask"].tolist() == [[1, 1, 1, 0]]


# Several datasets


def test_two_datasets_with_different_columns_land_in_the_right_rows():
    shops = dataset([20] * 2, "shops", feat_static_cat=["red"], feat_static_real=[7.0])
    towns = dataset([20] * 2, "towns", feat_static_cat=[3], feat_static_real=[0.5])
    bare = dataset([20] * 2, "bare")
    schema = unite([shops, towns, bare])
    assert [f.name for f in schema.categorical] == ["shops/feat_static_cat_0", "towns/feat_static_cat_0"]
    config = tiny_config("informer", schema)
    loader = evaluation([shops, towns, bare], config, global_batch_size=6)
    [batch] = loader
    red, reserved, unknown_town = 0, 1, 4
    assert batch[CAT].tolist() == [[red, unknown_town]] * 2 + [[reserved, 3]] * 2 + [[reserved, unknown_town]] * 2
    fill = [feature.fill for feature in schema.real]
    assert batch[REAL].tolist() == [[7.0, fill[1]]] * 2 + [[fill[0], 0.5]] * 2 + [fill] * 2
    assert batch.info.dataset_idx.tolist() == [0, 0, 1, 1, 2, 2]
    assert batch.info.series_idx.tolist() == [0, 1, 0, 1, 0, 1]
    assert batch.info.item_ids == ("shops0", "shops1", "towns0", "towns1", "bare0", "bare1")
    assert train_step(tiny_model(config), batch)[1] == []
    for batch in training([shops, towns, bare], config, schema=schema):
        for row, d in enumerate(batch.info.dataset_idx.tolist()):
            assert batch[CAT][row].tolist() == [[red, unknown_town], [reserved, 3], [reserved, unknown_town]][d]


def test_column_that_a_dataset_lacks_must_have_a_fill():
    strict = TimeSeriesDataset.from_entries(
        series(2, feat_static_cat=[1]), freq="M", name="strict", missing_cat="error", missing_real="error"
    )
    bare = dataset([20], "bare")
    with pytest.raises(SchemaMismatchError, match="bare has no static feature 'strict/feat_static_cat_0', which other"):
        unite([strict, bare])
    with pytest.raises(DataError, match="there are no datasets, but at least one is needed"):
        unite([])
    assert unite([strict]) == strict.schema


def test_world_of_workers_takes_every_nth_step():
    world = World(rank=0, world_size=1, worker=1, num_workers=2)
    loader = training()
    assert_same(list(loader._batches(world, 0)), list(loader)[1::2])


def test_past_length_of_a_loader_is_that_of_the_config():
    assert next(iter(training()))["past_values"].shape == (8, PAST)


@pytest.mark.parametrize("mode", ["validation", "test"])
def test_real_data_gives_the_windows_of_the_notebook(mode):
    folder = Path(__file__).parents[2] / "data" / "tourism_monthly"
    train = TimeSeriesDataset.from_folder(folder)
    data = TimeSeriesDataset.from_folder(folder, split="test", schema=train.schema)
    config = tiny_config("informer", train.schema, data.freq, prediction_length=data.prediction_length)
    batches = list(evaluation([data], config, mode=mode, global_batch_size=100))
    rows, real = len(data.entries), [~batch.info.is_padding for batch in batches]
    loaded = {
        key: torch.cat([batch[key][keep] for batch, keep in zip(batches, real, strict=True)]) for key in batches[0]
    }
    assert [item for batch in batches for item in batch.info.item_ids][:rows] == [e["item_id"] for e in data.entries]
    prepared = list(series_chain(config, train.schema, data.freq)(data.entries, is_train=mode != "test"))
    entries = [
        {**entry, **{name: ready[name] for name in ("feat_static_cat", "feat_static_real")}}
        for entry, ready in zip(data.entries, prepared, strict=True)
    ]
    windows = notebook_windows(entries, config, str(data.freq), notebook_sampler(mode, config, 1), mode)
    assert same_bits(loaded, notebook_batch(windows, config, mode))
