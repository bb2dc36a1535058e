"""The folder of a trained model, which is at every moment a whole one, and going on from it."""

from __future__ import annotations

import csv
import dataclasses
import json
import shutil
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from tsnorm.errors import ConfigMismatchError
from tsnorm.files import FACTS, folder_atomically
from tsnorm.pipeline.quiet import without_bars
from tsnorm.schema import StaticSchema
from tsnorm.train.loop import Loop, Progress
from tsnorm.train.settings import TrainSettings, check_is_replaceable
from tsnorm.world import World

STATE = "training.pt"
"""File with what a resume needs, read with ``weights_only``."""
VERSION = 1
_FREE = {"output", "resume", "checkpoint_every", "find_unused", "device", "patience"}
"""Settings that may change at a resume without changing the steps."""


def save(loop: Loop, schema: StaticSchema, facts: dict[str, Any], is_best: bool) -> None:
    """Write model, schema, facts and training state; with ``is_best`` the model also under ``best``."""
    settings, progress = loop.settings, loop.progress
    check_is_replaceable(Path(settings.output))
    with folder_atomically(settings.output) as folder:
        _save_model(loop.model, schema, folder)
        best = Path(settings.output) / "best"
        if is_best:
            (folder / "best").mkdir()
            _save_model(loop.model, schema, folder / "best")
        elif best.is_dir() and progress.validations:
            shutil.copytree(best, folder / "best")
        state = {
            "version": VERSION,
            "settings": settings.to_json(),
            "data": facts["data"],
            "model": loop.model.state_dict(),
            "optimizer": loop.optimizer.state_dict(),
            "progress": dataclasses.asdict(progress),
        }
        torch.save(state, folder / STATE)
        _write_csv(folder / "losses.csv", ["step", "loss"], [{"step": s, "loss": x} for s, x in progress.losses])
        if progress.validations:
            _write_csv(folder / "validation.csv", list(progress.validations[0]), progress.validations)
        told = {
            "tsnorm": version("tsnorm"),
            "schema_fingerprint": schema.fingerprint(),
            "step": progress.step,
            "world_size": World.current().world_size,
            **facts,
            "settings": json.loads(settings.to_json()),
        }
        (folder / FACTS).write_text(json.dumps(told, indent=2) + "\n")


def resume(loop: Loop, data: str) -> None:
    """Bring a loop to where the checkpoint in its output folder was.

    Raises
    ------
    ConfigMismatchError
        There is no checkpoint, or it is of other settings or other data; all that differs is named.
    """
    path = Path(loop.settings.output) / STATE
    if not path.is_file():
        raise ConfigMismatchError(f"{path}: there is no checkpoint to go on from. Leave --resume out.")
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
        theirs = TrainSettings.from_json(state["settings"])
        version_read, progress = state["version"], Progress(**state["progress"])
    except ConfigMismatchError:
        raise
    except Exception as error:
        raise ConfigMismatchError(f"{path}: cannot be read as a checkpoint ({error}).") from error
    if version_read != VERSION:
        raise ConfigMismatchError(f"{path}: version is {version_read!r}, but this tsnorm reads {VERSION}.")
    mine = loop.settings
    fixed = [f.name for f in dataclasses.fields(mine) if f.name not in _FREE]
    if mine.schedule == "constant":
        fixed.remove("steps")
    differs = [
        f"{name} was {getattr(theirs, name)!r}, is {getattr(mine, name)!r}"
        for name in fixed
        if getattr(theirs, name) != getattr(mine, name)
    ]
    if state["data"] != data:
        differs.append("the data is another")
    if differs:
        raise ConfigMismatchError(f"{path}: cannot be resumed: {'; '.join(differs)}. Start anew without --resume.")
    loop.model.load_state_dict(state["model"])
    loop.optimizer.load_state_dict(state["optimizer"])
    progress.losses = [(int(step), loss) for step, loss in progress.losses]
    loop.progress = progress


def _save_model(model: Any, schema: StaticSchema, folder: Path) -> None:
    with without_bars():
        model.save_pretrained(folder)
    schema.save(folder / "schema.json")
    for file in folder.iterdir():  # safetensors writes for the owner alone
        if file.is_file():
            file.chmod(0o644)


def _write_csv(path: Path, columns: list[str], rows: list[dict[str, Any]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)
