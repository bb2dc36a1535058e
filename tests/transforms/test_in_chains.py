"""The transforms in their surroundings: chains of GluonTS, its serde, pickle, workers of a DataLoader."""

import copy
import dataclasses
import gc
import inspect
import json
import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from gluonts.core.component import equals
from gluonts.core.serde import decode, dump_json, encode, load_json
from gluonts.dataset.common import ListDataset
from gluonts.transform import (
    AddObservedValuesIndicator,
    Chain,
    Identity,
    InstanceSplitter,
    MapTransformation,
    SelectFields,
    TransformedDataset,
    ValidationSplitSampler,
)
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

import tsnorm.transforms
from tsnorm.schema import CategoricalFeature, RealFeature, Scaling, StaticSchema
from tsnorm.transforms import (
    EncodeStaticCat,
    EntryTransformation,
    FillStaticCat,
    FillStaticReal,
    MaskStaticCat,
    static_features,
)

COLOR = CategoricalFeature.make("color", vocabulary=("red", "blue"))
SOURCE = StaticSchema(
    categorical=[COLOR], real=[RealFeature(name="size", scaling=Scaling(mean=1.0, std=2.0), fill=1.0)]
)
SCHEMA = SOURCE | StaticSchema(
    categorical=[
        CategoricalFeature.make("color", vocabulary=("green",)),
        CategoricalFeature.make("code", vocabulary=(7,)),
    ]
)
ENTRIES = [
    {"item_id": "a", "start": pd.Period("2022-01", "M"), "target": np.arange(6.0), "feat_static_cat": ["red"]},
    {"item_id": "b", "start": pd.Period("2022-02", "M"), "target": np.arange(6.0), "feat_static_real": [5.0]},
    {"item_id": "c", "start": pd.Period("2022-03", "M"), "target": np.arange(6.0), "color": "pink", "size": 3},
    {"item_id": "d", "start": pd.Period("2022-04", "M"), "target": np.arange(6.0)},
]
CATS = [[0, 1], [2, 1], [2, 1], [2, 1]]
REALS = [[0.0], [2.0], [1.0], [0.0]]
TRANSFORMS = [
    EncodeStaticCat(SCHEMA),
    EncodeStaticCat(SCHEMA, SOURCE),
    FillStaticCat(SCHEMA),
    FillStaticReal(SCHEMA),
    FillStaticReal(SCHEMA, source=SOURCE),
    MaskStaticCat(SCHEMA, 0.25),
    MaskStaticCat(SCHEMA, share=0.25, seed=7),
]


def statics(entries):
    entries = list(entries)
    return [e["feat_static_cat"].tolist() for e in entries], [e["feat_static_real"].tolist() for e in entries]


def splitter():
    return InstanceSplitter(
        target_field="target",
        is_pad_field="is_pad",
        start_field="start",
        forecast_start_field="forecast_start",
        instance_sampler=ValidationSplitSampler(min_future=2),
        past_length=3,
        future_length=2,
    )


def test_public_names_are_frozen():
    assert tsnorm.transforms.__all__ == [
        "EncodeStaticCat",
        "Entry",
        "EntryTransformation",
        "FillStaticCat",
        "FillStaticReal",
        "MaskStaticCat",
        "static_features",
    ]
    parameters = {t: list(inspect.signature(t).parameters) for t in (*map(type, TRANSFORMS), static_features)}
    assert parameters == {
        EncodeStaticCat: ["schema", "source"],
        FillStaticCat: ["schema"],
        FillStaticReal: ["schema", "source"],
        MaskStaticCat: ["schema", "share", "seed"],
        static_features: ["schema", "source"],
    }


def test_static_features_is_a_chain_of_the_three():
    chain = static_features(SCHEMA, SOURCE)
    assert isinstance(chain, Chain)
    assert chain.transformations == [
        EncodeStaticCat(SCHEMA, SOURCE),
        FillStaticCat(SCHEMA),
        FillStaticReal(SCHEMA, SOURCE),
    ]
    assert statics(chain(ENTRIES, is_train=True)) == (CATS, REALS)
    assert statics(chain(ENTRIES, is_train=False)) == (CATS, REALS)
    assert statics(chain.apply(ENTRIES)) == (CATS, REALS)


def test_each_is_a_transformation_of_gluonts():
    for transform in TRANSFORMS:
        assert isinstance(transform, MapTransformation)
        assert isinstance(transform, EntryTransformation)


@pytest.mark.parametrize(
    "chain",
    [
        static_features(SCHEMA, SOURCE) + AddObservedValuesIndicator("target", "observed") + splitter(),
        Identity() + static_features(SCHEMA, SOURCE) + splitter(),
        Chain([static_features(SCHEMA, SOURCE), splitter()]),
        EncodeStaticCat(SCHEMA, SOURCE)
        + FillStaticCat(SCHEMA)
        + FillStaticReal(SCHEMA, SOURCE)
        + SelectFields(["item_id", "start", "target", "feat_static_cat", "feat_static_real"])
        + splitter(),
    ],
    ids=["front", "behind", "nested", "plus"],
)
def test_in_chains_of_gluonts(chain):
    assert statics(chain(ENTRIES, is_train=True)) == (CATS, REALS)
    windows = list(TransformedDataset(ENTRIES, chain))
    assert statics(windows) == (CATS, REALS)
    assert [w["past_target"].shape for w in windows] == [(3,)] * 4


def test_on_a_dataset_of_gluonts():
    data = [{**e, "start": "2022-01-01"} for e in ENTRIES]
    data[0]["feat_static_cat"] = [0]  # GluonTS takes ids only
    dataset = ListDataset(data, freq="D")
    assert statics(static_features(SCHEMA, SOURCE)(dataset, is_train=True)) == (CATS, REALS)


def test_masking_behind_the_splitter():
    chain = static_features(SCHEMA, SOURCE) + splitter() + MaskStaticCat(SCHEMA, 1.0)
    assert statics(chain(ENTRIES, is_train=True))[0] == [[2, 1]] * 4
    assert statics(chain(ENTRIES, is_train=False))[0] == CATS


COPIES = {
    "encode": lambda v: decode(encode(v)),
    "json": lambda v: load_json(dump_json(v)),
    "pickle": lambda v: pickle.loads(pickle.dumps(v)),
    "deepcopy": copy.deepcopy,
}


@pytest.mark.parametrize("remake", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("used", [False, True], ids=["new", "used"])
@pytest.mark.parametrize("transform", TRANSFORMS, ids=lambda t: type(t).__name__)
def test_each_survives(transform, used, remake):
    transform = dataclasses.replace(transform)
    if used:
        entries = static_features(SCHEMA, SOURCE)(ENTRIES, is_train=True) if "Mask" in type(transform).__name__ else []
        for entry in entries:
            transform.map_transform({**entry, "forecast_start": entry["start"]}, is_train=True)
        transform.counts["filled color"] += 1
        if isinstance(transform, EncodeStaticCat):
            assert transform._row_tables
    again = remake(transform)
    assert type(again) is type(transform)
    assert again == transform
    assert equals(again, transform)
    assert hash(again) == hash(transform)
    assert again.schema.fingerprint() == SCHEMA.fingerprint()


@pytest.mark.parametrize("remake", COPIES.values(), ids=COPIES)
def test_a_chain_survives(remake):
    chain = static_features(SCHEMA, SOURCE) + splitter() + MaskStaticCat(SCHEMA, 0.0)
    list(chain(ENTRIES, is_train=True))
    again = remake(chain)
    assert equals(again, chain)
    assert statics(again(ENTRIES, is_train=True)) == (CATS, REALS)


def test_serde_writes_arguments_and_nothing_else():
    written = json.loads(dump_json(FillStaticCat(StaticSchema())))
    assert written["class"] == "tsnorm.transforms.fill.FillStaticCat"
    assert list(written["kwargs"]) == ["schema"]


def test_equality_is_that_of_the_arguments():
    assert EncodeStaticCat(SCHEMA) != EncodeStaticCat(SCHEMA, SOURCE)
    assert not equals(EncodeStaticCat(SCHEMA), EncodeStaticCat(SCHEMA, SOURCE))
    assert FillStaticCat(SCHEMA) != FillStaticReal(SCHEMA)
    assert MaskStaticCat(SCHEMA, 0.1) != MaskStaticCat(SCHEMA, 0.1, seed=1)
    assert EncodeStaticCat(SCHEMA) == EncodeStaticCat(StaticSchema.from_json(SCHEMA.to_json()))


def test_copies_count_for_themselves():
    fill = FillStaticCat(SCHEMA)
    again = decode(encode(fill))
    fill.map_transform({}, is_train=True)
    assert again.counts == {}
    assert fill.counts == {"filled color": 1, "filled code": 1}


def test_transforms_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        FillStaticCat(SCHEMA).schema = SOURCE


class Stream(IterableDataset):
    """Entries through a chain; each worker takes every n-th."""

    def __init__(self, chain):
        self.chain = chain

    def __iter__(self):
        info = get_worker_info()
        worker, num_workers = (0, 1) if info is None else (info.id, info.num_workers)
        for entry in self.chain(ENTRIES[worker::num_workers], is_train=True):
            yield {"item_id": entry["item_id"], "cat": entry["feat_static_cat"], "real": entry["feat_static_real"]}


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
@pytest.mark.parametrize("num_workers", [0, 2])
def test_through_the_workers_of_a_dataloader(num_workers):
    loader = DataLoader(Stream(static_features(SCHEMA, SOURCE)), batch_size=2, num_workers=num_workers)
    batches = list(loader)
    order = ["a", "c", "b", "d"] if num_workers else ["a", "b", "c", "d"]
    assert [item for batch in batches for item in batch["item_id"]] == order
    cat, real = torch.cat([b["cat"] for b in batches]), torch.cat([b["real"] for b in batches])
    assert (cat.dtype, cat.shape) == (torch.int64, (4, 2))
    assert (real.dtype, real.shape) == (torch.float32, (4, 1))
    places = ["abcd".index(item) for item in order]
    assert cat.tolist() == [CATS[i] for i in places]
    assert real.tolist() == [REALS[i] for i in places]


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
def test_an_error_in_a_worker_still_names_the_entry(monkeypatch):
    # torch waits this many seconds for a failed worker before it ends it
    monkeypatch.setattr("torch.utils.data._utils.MP_STATUS_CHECK_INTERVAL", 0.2)
    chain = static_features(StaticSchema(categorical=[dataclasses.replace(COLOR, fill_id=None)]))
    with pytest.raises(ValueError, match=r"item 'b' \(row 1\): 'color' is missing"):
        list(DataLoader(Stream(chain), batch_size=2, num_workers=2))
    gc.collect()
