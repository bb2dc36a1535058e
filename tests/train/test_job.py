"""A whole job in this process: accumulation, schedule, validation, early stop, resume."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from tsnorm.errors import ConfigMismatchError
from tsnorm.pipeline import TimeSeriesDataset
from tsnorm.schema import StaticSchema
from tsnorm.train.job import train
from tsnorm.train.loop import Loop, learning_rate_factor
from tsnorm.train.settings import TrainSettings

HORIZON = 4


@pytest.fixture
def data(tmp_path, monkeypatch):
    """Folder with eight series, gaps in some, a category in half of them."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    (tmp_path / "shop/train").mkdir(parents=True)
    metadata = {
        "freq": "M",
        "prediction_length": HORIZON,
        "feat_static_cat": [{"name": "color", "vocabulary": ["r", "b"]}],
    }
    (tmp_path / "shop/metadata.json").write_text(json.dumps(metadata))
    rows = []
    for i in range(8):
        target = (10 + rng.normal(size=30 + i).cumsum()).round(3).tolist()
        target[5] = None if i % 3 == 0 else target[5]
        statics = {"feat_static_cat": ["rb"[i % 2]]} if i % 4 else {}
        rows.append({"item_id": f"T{i}", "start": "2020-01", "target": target, **statics})
    (tmp_path / "shop/train/data.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return "shop"


def job(data, output, **settings):
    defaults = {"steps": 12, "global_batch_size": 8, "d_model": 8, "encoder_layers": 1, "decoder_layers": 1}
    path = train(TrainSettings(data=(data,), output=output, **(defaults | settings)))
    return load_file(path / "model.safetensors")


def rows(path):
    with Path(path).open() as file:
        return [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]


def equal(a, b):
    return all(torch.equal(a[name], b[name]) for name in a.keys() | b.keys())


def without_dropout(path="still.json"):
    fields = {"model_type": "time_series_transformer", "dropout": 0.0, "attention_dropout": 0.0}
    Path(path).write_text(json.dumps(fields | {"activation_dropout": 0.0}))
    return path


@pytest.mark.slow
def test_parts_of_a_batch_make_the_step_of_the_whole(data):
    model = without_dropout()
    whole, parts = (job(data, f"a{n}", model=model, accumulate=n) for n in (1, 4))
    for name in whole:
        torch.testing.assert_close(whole[name], parts[name], rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(*[[row["loss"] for row in rows(f"a{n}/losses.csv")] for n in (1, 4)], rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("stop", [1, 10])
def test_a_resumed_job_ends_with_the_same_weights(data, stop):
    whole = job(data, "whole", validate_every=4)
    job(data, "parts", steps=stop, validate_every=4)
    resumed = job(data, "parts", validate_every=4, resume=True)
    assert equal(whole, resumed)
    assert not equal(whole, job(data, "other", validate_every=4, seed=1))
    assert rows("parts/losses.csv")[-1] == rows("whole/losses.csv")[-1]


def test_a_resume_of_something_else_is_refused_by_name(data):
    with pytest.raises(ConfigMismatchError, match=r"out/training.pt: there is no checkpoint to go on from"):
        job(data, "out", resume=True)
    job(data, "out", steps=2)
    with pytest.raises(
        ConfigMismatchError, match=r"seed was 0, is 1; learning_rate was 0.0006, is 0.1|learning_rate .*seed"
    ):
        job(data, "out", resume=True, learning_rate=0.1, seed=1)
    with pytest.raises(ConfigMismatchError, match="schedule was 'constant', is 'cosine'"):
        job(data, "out", resume=True, schedule="cosine")
    lines = Path("shop/train/data.json").read_text().splitlines(keepends=True)
    Path("shop/train/data.json").write_text("".join(lines[::-1]))
    with pytest.raises(ConfigMismatchError, match="the data is another"):
        job(data, "out", resume=True)
    Path("shop/train/data.json").write_text("".join(lines))
    Path("out/training.pt").write_bytes(b"no checkpoint")
    with pytest.raises(ConfigMismatchError, match="cannot be read as a checkpoint"):
        job(data, "out", resume=True)


def test_a_checkpoint_never_runs_code(data, tmp_path):
    class Attack:
        def __reduce__(self):
            return Path.touch, (tmp_path / "owned",)

    job(data, "out", steps=2)
    torch.save({"settings": Attack()}, "out/training.pt")
    with pytest.raises(ConfigMismatchError, match="cannot be read as a checkpoint"):
        job(data, "out", resume=True)
    assert not (tmp_path / "owned").exists()


def test_learning_rate_warms_up_and_falls():
    constant = TrainSettings(data=("x",), steps=10, warmup_steps=4)
    assert [learning_rate_factor(constant, step) for step in (1, 2, 4, 5, 10)] == [0.25, 0.5, 1.0, 1.0, 1.0]
    cosine = TrainSettings(data=("x",), steps=10, warmup_steps=2, schedule="cosine")
    factors = [learning_rate_factor(cosine, step) for step in range(1, 11)]
    assert factors[:2] == [0.5, 1.0]
    assert factors[5] == pytest.approx(0.5)
    assert factors[9] == pytest.approx(0.0)
    assert factors[2:] == sorted(factors[2:], reverse=True)


def test_clipping_bounds_the_step(data):
    free = job(data, "free", steps=1, schedule="constant")
    clipped = job(data, "clipped", steps=1, clip_norm=1e-12)
    start = job(data, "start", steps=1, learning_rate=1e-30, weight_decay=0.0)
    moved = [max(float((w[n] - start[n]).abs().max()) for n in start) for w in (free, clipped)]
    assert moved[1] < moved[0] / 10


def test_validation_is_held_out_and_the_best_model_is_kept(data, monkeypatch):
    seen, step_of = [], Loop._step

    def watched(self, step, batch):
        seen.extend(zip(batch.info.series_idx, batch.info.split_points, strict=True))
        return step_of(self, step, batch)

    monkeypatch.setattr(Loop, "_step", watched)
    job(data, "out", steps=12, validate_every=3, global_batch_size=32)
    lengths = [30 + i for i in range(8)]
    assert all(split + HORIZON <= lengths[series] - HORIZON for series, split in seen)
    validations = rows("out/validation.csv")
    assert [row["step"] for row in validations] == [3, 6, 9, 12]
    assert all(row["loss"] == row["shop"] for row in validations)
    assert StaticSchema.load("out/best/schema.json") == StaticSchema.load("out/schema.json")
    assert json.loads(Path("out/tsnorm.json").read_text())["step"] == 12
    best = min(validations, key=lambda row: row["loss"])["step"]
    assert equal(
        load_file("out/best/model.safetensors"), job(data, "b", steps=int(best), validate_every=3, global_batch_size=32)
    )


def test_training_stops_when_validation_does_not_get_better(data):
    job(data, "out", steps=200, validate_every=2, patience=2, learning_rate=5e-2)
    validations = rows("out/validation.csv")
    losses = [row["loss"] for row in validations]
    assert validations[-1]["step"] < 200
    assert int(np.argmin(losses)) == len(losses) - 3
    assert json.loads(Path("out/tsnorm.json").read_text())["step"] == validations[-1]["step"]
    best, last = (load_file(f"{folder}/model.safetensors") for folder in ("out/best", "out"))
    at_best = int(validations[int(np.argmin(losses))]["step"])
    assert equal(best, job(data, "b", steps=at_best, validate_every=2, learning_rate=5e-2))
    assert not equal(best, last)


def test_bfloat16_trains(data):
    assert all(w.dtype == torch.float32 for w in job(data, "out", precision="bfloat16").values())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"patience": 2}, "patience counts validations, but there are none"),
        ({"clip_norm": 0.0}, "clip_norm is 0.0, but must be positive"),
        ({"warmup_steps": -1}, "warmup_steps is -1, but must be from 0"),
        ({"schedule": "linear"}, "schedule is 'linear', but must be one of 'constant', 'cosine'"),
        ({"precision": "fp8"}, "precision is 'fp8', but must be one of 'float32', 'bfloat16'"),
        ({"accumulate": 0}, "accumulate is 0, but must be from 1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(ConfigMismatchError, match=message):
        TrainSettings(data=("x",), **settings)


def test_a_dataset_without_its_end():
    entries = [
        {"item_id": str(n), "start": "2020-01", "target": np.arange(float(n)), "feat_dynamic_real": np.ones((1, n + 2))}
        for n in (2, 3, 6)
    ]
    whole = TimeSeriesDataset.from_entries(entries, freq="M")
    cut = whole.without_end(2)
    assert [(e["item_id"], len(e["target"]), e["feat_dynamic_real"].shape) for e in cut.entries] == [
        ("3", 1, (1, 1)),
        ("6", 4, (1, 4)),
    ]
    assert [len(entry["target"]) for entry in whole.entries] == [2, 3, 6]
