"""`tsnorm train` as a user types it: two gloo ranks on the bundled data."""

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from gluonts.dataset.field_names import FieldName
from gluonts.transform import Chain

from tsnorm.pipeline import (
    TimeSeriesDataset,
    complete_config,
    model_from_config,
    series_chain,
    split_chain,
    unite,
)
from tsnorm.pipeline.batch import BATCH_KEYS
from tsnorm.schema import StaticSchema
from tsnorm.transforms import EncodeStaticCat, FillStaticCat, FillStaticReal

ROOT = Path(__file__).parents[2]
TOURISM, M3 = str(ROOT / "data/tourism_monthly"), str(ROOT / "data/m3_monthly")
MIX = [TOURISM, M3, "--prediction-length", "18"]
SMALL = ["--global-batch-size", "8", "--d-model", "8", "--encoder-layers", "1", "--decoder-layers", "1"]


def tsnorm_train(*args, cwd, launcher=("-m", "tsnorm")):
    command = [sys.executable, *launcher, "train", *map(str, args)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300, check=False)


def weights(folder):
    from safetensors.torch import load_file

    return load_file(folder / "model.safetensors")


@pytest.mark.slow
def test_a_mix_with_and_without_categories_trains_on_two_ranks_and_is_saved(tmp_path):
    done = tsnorm_train(*MIX, *SMALL, "--steps", 12, "--nproc", 2, "--output", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "own static features: none, filled for all: category" in done.stdout
    assert "own static features: category" in done.stdout
    assert "2 rank(s) (DDP, find_unused_parameters=False)" in done.stdout
    assert "step 12/12" in done.stdout

    import transformers

    folder = tmp_path / "out"
    model = transformers.TimeSeriesTransformerForPrediction.from_pretrained(folder)
    schema = StaticSchema.load(folder / "schema.json")
    facts = json.loads((folder / "tsnorm.json").read_text())
    assert [len(p) for n, p in model.named_parameters() if "embedder" in n] == list(schema.cardinality) == [7]
    assert schema.categorical[0].vocabulary == ("DEMOGRAPHIC", "FINANCE", "INDUSTRY", "MACRO", "MICRO", "OTHER")
    assert facts["freq"] == "M"
    assert facts["schema_fingerprint"] == schema.fingerprint()
    assert model.config.encoder_layerdrop == model.config.decoder_layerdrop == 0.0
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.slow
def test_one_seed_fixes_everything_also_under_torchrun(tmp_path):
    args = [TOURISM, *SMALL, "--steps", 3]
    runs = {
        "a": tsnorm_train(*args, "--nproc", 2, "--output", "a", cwd=tmp_path),
        "b": tsnorm_train(
            *args, "--output", "b", cwd=tmp_path,
            launcher=("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "tsnorm"),
        ),
        "c": tsnorm_train(*args, "--nproc", 2, "--seed", 1, "--output", "c", cwd=tmp_path),
        "d": tsnorm_train(*args, "--nproc", 2, "--find-unused", "--output", "d", cwd=tmp_path),
    }  # fmt: skip
    for name, done in runs.items():
        assert done.returncode == 0, (name, done.stderr)
    a, b, c, d = (weights(tmp_path / name) for name in "abcd")
    assert all(torch.equal(a[name], b[name]) and torch.equal(a[name], d[name]) for name in a)
    assert not all(torch.equal(a[name], c[name]) for name in a)
    assert "find_unused_parameters=True" in runs["d"].stdout


def write_dataset(folder, rows, metadata=None):
    (folder / "train").mkdir(parents=True)
    if metadata is None:
        metadata = {"feat_static_cat": [{"name": "color", "cardinality": "3"}]}
    (folder / "metadata.json").write_text(json.dumps({"freq": "M", "prediction_length": 4} | metadata))
    with gzip.open(folder / "train/data.json.gz", "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


@pytest.mark.slow
def test_bad_data_is_named_with_file_and_row_once(tmp_path):
    good = {"item_id": "a", "start": "2020-01", "target": list(range(40)), "feat_static_cat": [1]}
    write_dataset(tmp_path / "bad", [good, {**good, "item_id": "b", "start": "03/04/2021"}])
    done = tsnorm_train("bad", *SMALL, "--nproc", 2, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.count("start of item 'b' (row 2 of bad/train/data.json.gz)") == 1
    assert "not an ISO date" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "runs").exists()


def test_what_is_no_model_is_never_replaced(tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis/chapter.tex").write_text("years of work")
    (tmp_path / "file").write_text("content")
    (tmp_path / "former").mkdir()
    for name in ("tsnorm.json", "config.json", "notes.txt"):
        (tmp_path / "former" / name).write_text("{}")
    write_dataset(tmp_path / "data/one", [])
    for output, message in (
        ("thesis", "thesis: the folder holds something else than a model of tsnorm, such as 'chapter.tex'"),
        ("former", "former: the folder holds something else than a model of tsnorm, such as 'notes.txt'"),
        ("file", "file: it is a file, but the model needs a folder"),
        ("file/model", "file is no folder that can be written to"),
        (".", r".: the model would stand in the place of data"),
        ("data", "data: the model would stand in the place of data"),
        ("data/one", "data/one: the model would stand in the place of data"),
        ("data/one/train/model", "data/one/train/model: the model would stand in the place of data"),
        ("/dev/null", "/dev/null: it is a file"),
    ):
        done = tsnorm_train("data/one", "--output", output, cwd=tmp_path)
        assert done.returncode == 2, (output, done.stdout, done.stderr)
        assert message in done.stderr
        assert "Use another --output." in done.stderr
    assert (tmp_path / "thesis/chapter.tex").read_text() == "years of work"
    assert (tmp_path / "file").read_text() == "content"


@pytest.mark.slow
@pytest.mark.parametrize(("optimized", "seen"), [("", "loss is NaN at step 2"), ("1", "loss is nan at step 10")])
def test_a_loss_that_is_not_finite_saves_nothing(tmp_path, monkeypatch, optimized, seen):
    monkeypatch.setenv("PYTHONOPTIMIZE", optimized)  # switches off the checks of torch.distributions
    row = {"item_id": "a", "start": "2020-01", "target": [float(i % 7) for i in range(40)]}
    write_dataset(tmp_path / "one", [row], metadata={})
    done = tsnorm_train("one", *SMALL, "--steps", 20, "--nproc", 1, "--learning-rate", "1e30", cwd=tmp_path)
    assert done.returncode == 1
    assert f"{seen}, but must be finite; this step is not saved." in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
def test_datasets_with_other_horizons_ask_for_one(tmp_path):
    done = tsnorm_train(TOURISM, M3, *SMALL, "--nproc", 1, cwd=tmp_path)
    assert done.returncode == 1
    assert "tourism_monthly states 24, m3_monthly states 18. Pass --prediction-length." in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("model", ["informer", "autoformer", "config"])
def test_other_models_and_a_config_with_layerdrop(tmp_path, model):
    name = model
    if model == "config":
        dataset = TimeSeriesDataset.from_folder(TOURISM)
        config = complete_config(
            "time-series-transformer", schema=dataset.schema, freq="M", prediction_length=24, d_model=8,
            encoder_layerdrop=0.1,
        )  # fmt: skip
        config.to_json_file(tmp_path / "config.json")
        name = "config.json"
    small = SMALL[:2] if model == "config" else SMALL
    done = tsnorm_train(TOURISM, *small, "--steps", 2, "--nproc", 2, "--model", name, "--output", "o", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert ("note: encoder_layerdrop is set from 0.1 to 0.0" in done.stdout) == (model == "config")
    assert (tmp_path / "o/model.safetensors").exists()


@pytest.mark.slow
def test_a_short_config_json_is_completed_from_data_and_flags(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "informer", "d_model": 8, "encoder_layers": 1}))
    flags = ["--global-batch-size", 8, "--steps", 1, "--nproc", 1, "--model", "config.json", "--context-length", 12]
    done = tsnorm_train(M3, *flags, "--output", "o", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    saved = json.loads((tmp_path / "o/config.json").read_text())
    assert (saved["d_model"], saved["context_length"], saved["prediction_length"], saved["cardinality"]) == (
        8,
        12,
        18,
        [7],
    )
    for fields, message in (
        ({"d_modle": 8}, "config.json: config of time-series-transformer: it has no setting 'd_modle'. Did you mean"),
        ({"context_length": 6}, "config.json: context_length is 6, but --context-length says 12. Change one of them."),
        ({"model_type": "bert"}, "config.json: model is 'bert', but must be one of"),
    ):
        (tmp_path / "config.json").write_text(json.dumps({"model_type": "time_series_transformer"} | fields))
        done = tsnorm_train(M3, *flags, "--output", "p", cwd=tmp_path)
        assert done.returncode == 1
        assert message in done.stderr


@pytest.mark.slow
def test_ctrl_c_ends_all_ranks(tmp_path):
    command = [sys.executable, "-u", "-m", "tsnorm", "train", TOURISM, *SMALL, "--steps", "20000", "--nproc", "2"]
    job = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    while "rank(s)" not in (line := job.stdout.readline()):
        assert line, job.stderr.read()
    time.sleep(1.0)
    os.killpg(job.pid, signal.SIGINT)
    _, stderr = job.communicate(timeout=20)
    assert job.returncode == 130
    assert stderr.strip() == "interrupted"
    with pytest.raises(ProcessLookupError):
        os.killpg(job.pid, 0)
    assert not (tmp_path / "runs").exists()


def test_the_same_mix_fails_through_a_chain_without_the_schema():
    datasets = [TimeSeriesDataset.from_folder(path) for path in (TOURISM, M3)]
    schema = unite(datasets)
    config = complete_config(
        "time-series-transformer", schema=schema, freq="M", prediction_length=18, d_model=8, encoder_layers=1
    )
    model = model_from_config(config)
    ours = (EncodeStaticCat, FillStaticCat, FillStaticReal)
    losses = {}
    for dataset in datasets:
        for plain in (False, True):
            chain = series_chain(config, schema, dataset.freq, source=dataset.schema)
            if plain:
                chain = Chain([step for step in chain.transformations if not isinstance(step, ours)])
            entries = ({**entry, "split_points": [30]} for entry in chain(dataset.entries[:4], is_train=True))
            windows = list(split_chain(config)(entries, is_train=True))
            batch = {
                key: torch.stack([torch.as_tensor(window[name]) for window in windows])
                for key, name in BATCH_KEYS.items()
                if name in windows[0]
            }
            assert (FieldName.FEAT_STATIC_CAT in windows[0]) == (not plain or dataset.name == "m3_monthly")
            try:
                losses[dataset.name, plain] = model(**batch).loss.item()
            except RuntimeError as error:
                losses[dataset.name, plain] = str(error)
    assert "shapes cannot be multiplied" in losses["tourism_monthly", True]
    assert all(isinstance(losses[dataset.name, False], float) for dataset in datasets)
