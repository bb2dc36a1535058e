"""The command line itself: help, usage errors, exit codes."""

import subprocess
import sys
from dataclasses import fields

import pytest
from click.testing import CliRunner

from tsnorm.cli.main import COMMANDS, group
from tsnorm.train.settings import TrainSettings


def run(*args, cwd=None):
    command = [sys.executable, "-m", "tsnorm", *args]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)


def test_help_lists_every_command():
    shown = CliRunner().invoke(group, ["--help"]).output
    assert all(f"  {name}" in shown for name in COMMANDS)
    assert sorted(COMMANDS) == ["backtest", "train"]


def test_every_setting_is_a_flag_with_a_help_text():
    shown = CliRunner().invoke(group, ["train", "--help"], terminal_width=200).output
    for field in fields(TrainSettings):
        if field.name != "data":
            assert f"--{field.name.replace('_', '-')}" in shown
            assert field.metadata["help"].split(";")[0] in shown


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["train"], "Missing argument 'DATA...'"),
        (["train", "x", "--steps", "many"], "'many' is not a valid integer"),
        (["prophesy"], "No such command 'prophesy'"),
        (["train", "x", "--steps", "0"], "steps is 0, but must be from 1"),
        (["train", "x", "--missing-cat", "mean"], "missing_cat is 'mean', but must be 'reserve', 'error' or an id"),
        (["train", "x", "--missing-real", "zero"], "missing_real is 'zero', but must be 'mean', 'error' or a number"),
        (["train", "x", "--device", "tpu"], "device is 'tpu', but must be one of 'auto', 'cpu', 'cuda'"),
        (["train", "nowhere"], "nowhere"),
    ],
)
def test_wrong_usage_ends_with_2_and_no_traceback(args, message, tmp_path):
    (tmp_path / "x").mkdir()
    done = run(*args, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_settings_go_through_json():
    settings = TrainSettings(data=("a", "b"), steps=7, missing_cat="2", find_unused=True)
    assert TrainSettings.from_json(settings.to_json()) == settings
    assert settings.schema_policies() == {
        "missing_cat": 2,
        "missing_real": "mean",
        "placeholder": "column",
        "indicator": False,
        "scale_reals": False,
        "recode": False,
    }
