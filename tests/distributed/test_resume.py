"""A job that is killed, and jobs on another number of ranks: the steps are the same."""

import csv
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

ROOT = Path(__file__).parents[2]
JOB = [
    sys.executable, "-m", "tsnorm", "train", str(ROOT / "data/tourism_monthly"), str(ROOT / "data/m3_monthly"),
    "--prediction-length", "18", "--global-batch-size", "12", "--d-model", "8", "--encoder-layers", "1",
    "--decoder-layers", "1",
]  # fmt: skip


def run(*flags, cwd):
    done = subprocess.run([*JOB, *map(str, flags)], cwd=cwd, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def losses(path):
    with (path / "losses.csv").open() as file:
        return [float(row["loss"]) for row in csv.DictReader(file)]


@pytest.mark.slow
def test_killed_at_a_random_step_and_resumed_the_weights_are_the_same(tmp_path):
    flags = ["--nproc", 2, "--steps", 400]
    run(*flags, "--output", "whole", cwd=tmp_path)
    killed = [*map(str, flags), "--output", "killed", "--checkpoint-every", "7"]
    job = subprocess.Popen([*JOB, *killed], cwd=tmp_path, stdout=subprocess.DEVNULL, start_new_session=True)
    facts = tmp_path / "killed/tsnorm.json"
    while not facts.exists():
        assert job.poll() is None
        time.sleep(0.01)
    time.sleep(random.random() * 0.7)
    os.killpg(job.pid, signal.SIGKILL)
    job.wait()
    step = json.loads(facts.read_text())["step"]
    assert 7 <= step < 400
    shown = run(*killed, "--resume", cwd=tmp_path)
    assert f"resumed after step {step}" in shown
    whole, resumed = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "killed"))
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)
    assert losses(tmp_path / "whole") == losses(tmp_path / "killed")


@pytest.mark.slow
def test_one_two_and_three_ranks_give_the_same_loss_curve(tmp_path):
    fields = {"model_type": "time_series_transformer", "dropout": 0.0, "attention_dropout": 0.0}
    (tmp_path / "still.json").write_text(json.dumps(fields | {"activation_dropout": 0.0}))
    for nproc in (1, 2, 3):
        run("--nproc", nproc, "--steps", 50, "--model", "still.json", "--output", nproc, cwd=tmp_path)
    curves = [losses(tmp_path / str(nproc)) for nproc in (1, 2, 3)]
    assert len(curves[0]) == 5
    np.testing.assert_allclose(curves[1], curves[0], rtol=1e-4)
    np.testing.assert_allclose(curves[2], curves[0], rtol=1e-4)
