"""Settings of a training job: each is a field here, a flag of `tsnorm train`, and a line in what is saved."""

from __future__ import annotations

import dataclasses
import json
import math
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tsnorm.errors import ConfigMismatchError
from tsnorm.files import FACTS

WRITTEN = {
    FACTS,
    "config.json",
    "generation_config.json",
    "model.safetensors",
    "schema.json",
    "losses.csv",
    "validation.csv",
    "training.pt",
    "best",
}
"""Names in the folder of a trained model."""
MODEL_NAMES = ("time-series-transformer", "informer", "autoformer")
_FROM_1 = (
    "steps",
    "global_batch_size",
    "accumulate",
    "prediction_length",
    "context_length",
    "d_model",
    "encoder_layers",
    "decoder_layers",
)
_CHOICES = {
    "device": ("auto", "cpu", "cuda"),
    "infinity": ("error", "missing"),
    "schedule": ("constant", "cosine"),
    "precision": ("float32", "bfloat16"),
}
_OTHER = "Use another --output."


def _setting(default: Any, text: str, **flag: Any) -> Any:
    return field(default=default, metadata={"help": text, **flag})


@dataclass(frozen=True, kw_only=True)
class TrainSettings:
    """All that fixes a training job; with equal settings, data and number of ranks, runs are equal."""

    data: tuple[str, ...] = ("data/tourism_monthly",)
    """GluonTS dataset folders; several are trained on together under their united schema."""
    output: str = _setting("runs/train", "Folder for the trained model; a former model in it is replaced.")
    model: str = _setting("time-series-transformer", "time-series-transformer, informer, autoformer, or a config JSON.")
    prediction_length: int | None = _setting(None, "Steps to forecast; default: what the metadata states.")
    context_length: int | None = _setting(None, "Steps that the encoder sees; default: twice prediction-length.")
    steps: int = _setting(400, "Optimiser steps.")
    global_batch_size: int = _setting(128, "Windows of one step over all ranks; divisible by their number.")
    accumulate: int = _setting(1, "Parts in which a rank works off its windows of a step, to save memory.")
    learning_rate: float = _setting(6e-4, "Learning rate of AdamW.")
    weight_decay: float = _setting(1e-2, "Weight decay of AdamW.")
    warmup_steps: int = _setting(0, "Steps over which the learning rate rises from 0.")
    schedule: str = _setting("constant", "Learning rate after that: 'constant', or 'cosine' down to 0.")
    clip_norm: float | None = _setting(None, "Largest norm of the gradient; default: no clipping.")
    precision: str = _setting("float32", "'float32', or 'bfloat16' by autocast.")
    validate_every: int = _setting(0, "Steps between validations on the end of each series, held out; 0: none.")
    patience: int = _setting(0, "Validations without a better loss after which training stops; 0: never.")
    checkpoint_every: int = _setting(0, "Steps between checkpoints; 0: only at the end.")
    resume: bool = _setting(False, "Go on from the checkpoint in the output folder.", is_flag=True)
    d_model: int | None = _setting(None, "Width of the model; default: 32.")
    encoder_layers: int | None = _setting(None, "Encoder layers; default: 4.")
    decoder_layers: int | None = _setting(None, "Decoder layers; default: 4.")
    seed: int = _setting(0, "Fixes initial weights, windows and dropout.")
    min_past: int = _setting(1, "Least real steps before a split point; 0 allows a past that is all padding.")
    missing_cat: str = _setting("reserve", "Missing categories: 'reserve' a row, 'error', or an id.")
    missing_real: str = _setting("mean", "Missing static reals: 'mean', 'error', or a value.")
    recode: bool = _setting(False, "Give ids that are far apart rows next to each other.", is_flag=True)
    missing_indicator: bool = _setting(False, "A further column for each static real: was it missing?", is_flag=True)
    scale_reals: bool = _setting(False, "Scale static reals by their mean and deviation.", is_flag=True)
    placeholder: str = _setting("column", "No static feature of a kind: a constant 'column', or 'omit' the key.")
    unknown_share: float = _setting(0.05, "Share of known categories that train the reserved row.")
    infinity: str = _setting("error", "Infinite targets: 'error', or take them as 'missing'.")
    find_unused: bool = _setting(False, "Run DDP with find_unused_parameters=True, to compare.", is_flag=True)
    device: str = _setting("auto", "'auto' (GPUs where there are some), 'cpu' or 'cuda'.")

    def __post_init__(self) -> None:
        for name in _FROM_1:
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise ConfigMismatchError(f"{name} is {getattr(self, name)!r}, but must be from 1.")
        if not (math.isfinite(self.learning_rate) and self.learning_rate > 0):
            raise ConfigMismatchError(f"learning_rate is {self.learning_rate!r}, but must be positive and finite.")
        if not (math.isfinite(self.weight_decay) and self.weight_decay >= 0):
            raise ConfigMismatchError(f"weight_decay is {self.weight_decay!r}, but must be from 0 and finite.")
        if not 0 <= self.seed < 2**63:
            raise ConfigMismatchError(f"seed is {self.seed!r}, but must be from 0 and below 2**63.")
        if not self.model.endswith(".json") and self.model not in MODEL_NAMES:
            raise ConfigMismatchError(
                f"model is {self.model!r}, but must be one of {', '.join(MODEL_NAMES)}, or a config that ends in .json."
            )
        if self.model.endswith(".json") and not Path(self.model).is_file():
            raise ConfigMismatchError(f"model is {self.model!r}, but there is no such file.")
        folders = [Path(folder).resolve() for folder in self.data]
        if twice := [given for given, folder in zip(self.data, folders, strict=True) if folders.count(folder) > 1]:
            raise ConfigMismatchError(f"{twice[0]}: is given {len(twice)} times. Give each dataset once.")
        _check_output(Path(self.output), folders)
        for name in ("warmup_steps", "validate_every", "patience", "checkpoint_every"):
            if getattr(self, name) < 0:
                raise ConfigMismatchError(f"{name} is {getattr(self, name)!r}, but must be from 0.")
        if self.clip_norm is not None and not self.clip_norm > 0:
            raise ConfigMismatchError(f"clip_norm is {self.clip_norm!r}, but must be positive.")
        if self.patience and not self.validate_every:
            raise ConfigMismatchError("patience counts validations, but there are none. Set --validate-every.")
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise ConfigMismatchError(
                    f"{name} is {getattr(self, name)!r}, but must be one of {', '.join(map(repr, choices))}."
                )
        self.schema_policies()

    def schema_policies(self) -> dict[str, Any]:
        """Policies in the form that :meth:`tsnorm.profile.DatasetProfile.to_schema` takes."""
        return {
            "missing_cat": _policy("missing_cat", self.missing_cat, ("reserve", "error"), int),
            "missing_real": _policy("missing_real", self.missing_real, ("mean", "error"), float),
            "placeholder": _policy("placeholder", self.placeholder, ("column", "omit"), None),
            "indicator": self.missing_indicator,
            "scale_reals": self.scale_reals,
            "recode": self.recode,
        }

    def to_json(self) -> str:
        """JSON of all settings."""
        return json.dumps(dataclasses.asdict(self), indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> TrainSettings:
        """Read what :meth:`to_json` wrote."""
        fields = json.loads(text)
        return cls(**{**fields, "data": tuple(fields["data"])})


def _check_output(path: Path, data: list[Path]) -> None:
    """Refuse, before the first step, to put the model in the place of anything but a former model."""
    target = path.resolve()
    for folder in data:
        if target == folder or target in folder.parents or folder in target.parents:
            raise ConfigMismatchError(f"{path}: the model would stand in the place of data, {folder}. {_OTHER}")
    if os.path.ismount(target):
        raise ConfigMismatchError(f"{path}: it is a mount point, but the model needs a folder below one. {_OTHER}")
    if len(os.fsencode(target.name)) > 200:
        raise ConfigMismatchError(f"{path}: the name is too long. {_OTHER}")
    if target == Path.cwd() or not target.name or target in Path.cwd().parents:
        raise ConfigMismatchError(f"{path}: the model needs a folder of its own. {_OTHER}")
    if target.exists() and not target.is_dir():
        raise ConfigMismatchError(f"{path}: it is a file, but the model needs a folder. {_OTHER}")
    check_is_replaceable(target)
    parent = next(folder for folder in target.parents if folder.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise ConfigMismatchError(f"{path}: {parent} is no folder that can be written to. {_OTHER}")


def check_is_replaceable(folder: Path) -> None:
    """Refuse to replace a folder that holds anything but what tsnorm itself has written."""
    strange = sorted({path.name for path in folder.iterdir()} - WRITTEN) if folder.is_dir() else []
    if strange:
        raise ConfigMismatchError(
            f"{folder}: the folder holds something else than a model of tsnorm, such as {strange[0]!r}. {_OTHER}"
        )


def _policy(name: str, text: str, words: tuple[str, ...], number: type[int] | type[float] | None) -> Any:
    if text in words:
        return text
    try:
        if number is not None:
            return number(text)
    except ValueError:
        pass
    kind = "" if number is None else f" or {'an id' if number is int else 'a number'}"
    raise ConfigMismatchError(f"{name} is {text!r}, but must be {', '.join(map(repr, words))}{kind}.")
