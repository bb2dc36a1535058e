"""Scores by hand and by gluonts.ev, and a backtest of a real tiny model on real files."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from tsnorm.cli.main import group
from tsnorm.errors import ConfigMismatchError, FrequencyError, SchemaMismatchError
from tsnorm.forecast.backtest import backtest
from tsnorm.forecast.model_folder import TrainedModel
from tsnorm.forecast.scores import QUANTILES, scale_of, score, seasonal_naive
from tsnorm.pipeline import TimeSeriesDataset
from tsnorm.schema import StaticSchema
from tsnorm.train.job import train
from tsnorm.train.settings import TrainSettings


def test_scores_are_those_of_the_formulas():
    rng = np.random.default_rng(0)
    labels = rng.normal(10, 2, size=(5, 4))
    labels[1, 2] = np.nan
    spread = {q: labels.mean() + 3 * (q - 0.5) + rng.normal(size=(5, 4)) * 0 for q in QUANTILES}
    scales = np.array([1.0, 2.0, 0.5, 0.0, np.nan])
    got = score(labels * 1.0, {q: np.where(np.isnan(f), 10 + 3 * (q - 0.5), f) for q, f in spread.items()}, scales)
    known = ~np.isnan(labels)
    spread = {q: np.full((5, 4), 10 + 3 * (q - 0.5)) for q in QUANTILES}
    error = np.abs(labels - spread[0.5])
    mase = (error[:3] / scales[:3, None])[known[:3]].mean()
    smape = (2 * error / (np.abs(labels) + np.abs(spread[0.5])))[known].mean()
    losses = [2 * np.abs((labels - f) * ((labels <= f) - q))[known].sum() for q, f in spread.items()]
    inside = ((labels <= spread[0.9])[known].mean()) - ((labels <= spread[0.1])[known].mean())
    assert got["mase"] == pytest.approx(mase)
    assert got["smape"] == pytest.approx(smape)
    assert got["mean_weighted_quantile_loss"] == pytest.approx(np.mean(losses) / np.abs(labels[known]).sum())
    assert got["coverage_80"] == pytest.approx(inside)
    assert (got["num_series"], got["num_scaled"]) == (5, 3)


def test_seasonal_naive_and_its_scale():
    past = np.array([9.0, 1.0, 2.0, 3.0, 4.0, np.nan, 6.0])
    assert seasonal_naive(past, 3, 5).tolist() == [4.0, 2.0, 6.0, 4.0, 2.0]
    assert seasonal_naive(past[:2], 12, 3).tolist() == [1.0, 1.0, 1.0]
    assert np.isnan(seasonal_naive(np.array([np.nan]), 12, 2)).all()
    assert scale_of(past, 3) == pytest.approx(np.mean([6.0, 3.0, 3.0]))
    assert scale_of(np.array([1.0, 3.0]), 12) == 2.0
    assert np.isnan(scale_of(np.array([1.0]), 12))


def write(folder, split, rows, metadata):
    (folder / split).mkdir(parents=True)
    (folder / "metadata.json").write_text(json.dumps(metadata))
    (folder / split / "data.json").write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def trained(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    color = {"name": "color", "vocabulary": ["red", "blue"]}
    metadata = {"freq": "M", "prediction_length": 3, "feat_static_cat": [color]}
    wave = [float(10 + j % 12) for j in range(60)]
    rows = [
        {
            "item_id": f"T{i}",
            "start": "2020-01",
            "target": wave[i : i + 40],
            "feat_static_cat": ["red" if i % 2 else "blue"],
        }
        for i in range(5)
    ]
    write(tmp_path / "shop", "train", [{**row, "target": row["target"][:-3]} for row in rows], metadata)
    rows[4].pop("feat_static_cat")
    short = {"item_id": "short", "start": "2020-01", "target": [1.0, 2.0, 3.0]}
    write(tmp_path / "shop", "test", [short, *rows], metadata)
    train(TrainSettings(data=("shop",), output="model", steps=2, global_batch_size=4, d_model=8, validate_every=1))
    return TrainedModel.load("model")


@pytest.mark.slow
def test_a_model_is_scored_beside_seasonal_naive_by_dataset_and_category(trained, tmp_path):
    dataset = TimeSeriesDataset.from_folder("shop", split="test")
    report = backtest(trained, dataset, batch_size=2, num_samples=20)
    assert report["skipped"] == ["short"]
    naive = report["seasonal_naive"]
    assert (naive["mase"], naive["num_scaled"], naive["num_series"]) == (None, 0, 5)  # the wave repeats itself
    assert naive["smape"] == naive["mean_weighted_quantile_loss"] == naive["coverage_80"] == 0.0
    assert report["model"]["num_series"] == 5
    assert report["model"]["smape"] > 0
    groups = report["by_category"]["color"]
    assert {name: scores["model"]["num_series"] for name, scores in groups.items()} == {
        "blue": 2,
        "missing": 1,
        "red": 2,
    }
    assert backtest(trained, dataset, batch_size=2, num_samples=20) == report
    done = CliRunner().invoke(group, ["backtest", "model/best", "shop", "--samples", "5", "--output", "r.json"])
    assert done.exit_code == 0, done.output
    assert "color = missing" in done.output
    assert json.loads((tmp_path / "r.json").read_text())["datasets"]["shop"]["model"]["num_series"] == 5


@pytest.mark.slow
def test_what_does_not_belong_to_the_model_is_refused(trained, tmp_path):
    assert trained.schema.names == ("color",)
    with pytest.raises(
        SchemaMismatchError, match="trained under the static features color .*, but feat_static_real_0 .* is given"
    ):
        TrainedModel.load("model", schema=StaticSchema.from_counts([], 1) | StaticSchema())
    with pytest.raises(ConfigMismatchError, match="shop: is no model of tsnorm"):
        TrainedModel.load("shop")
    hourly = TimeSeriesDataset.from_entries([{"start": "2020-01-01", "target": [1.0] * 40}], freq="h")
    with pytest.raises(FrequencyError, match="entries is at h, but the model was trained at M"):
        backtest(trained, hourly)
    StaticSchema().save("model/schema.json")
    with pytest.raises(ConfigMismatchError, match=r"was trained under schema \w+, but schema.json is \w+"):
        TrainedModel.load("model")
