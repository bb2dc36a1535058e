"""Settings of a training job: each is a field here, a flag of `tsnorm train`, and a line in what is saved."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from typing import Any

from tsnorm.errors import ConfigMismatchError


def _setting(default: Any, text: str, **flag: Any) -> Any:
    return field(default=default, metadata={"help": text, **flag})


@dataclass(frozen=True, kw_only=True)
class TrainSettings:
    """All that fixes a training job; with equal settings, data and number of ranks, runs are equal."""

    data: tuple[str, ...] = ("data/tourism_monthly",)
    """GluonTS dataset folders; several are trained on together under their united schema."""
    output: str = _setting("runs/train", "Folder for the trained model; replaced when it exists.")
    model: str = _setting("time-series-transformer", "time-series-transformer, informer, autoformer, or a config JSON.")
    prediction_length: int | None = _setting(None, "Steps to forecast; default: what the metadata states.")
    context_length: int | None = _setting(None, "Steps that the encoder sees; default: twice prediction-length.")
    steps: int = _setting(400, "Optimiser steps.")
    global_batch_size: int = _setting(128, "Windows of one step over all ranks; divisible by their number.")
    learning_rate: float = _setting(6e-4, "Learning rate of AdamW.")
    weight_decay: float = _setting(1e-2, "Weight decay of AdamW.")
    d_model: int = _setting(32, "Width of the model.")
    encoder_layers: int = _setting(4, "Encoder layers.")
    decoder_layers: int = _setting(4, "Decoder layers.")
    seed: int = _setting(0, "Fixes initial weights, windows and dropout.")
    min_past: int = _setting(1, "Least real steps before a split point; 0 allows a past that is all padding.")
    missing_cat: str = _setting("reserve", "Missing categories: 'reserve' a row, 'error', or an id.")
    missing_real: str = _setting("mean", "Missing static reals: 'mean', 'error', or a value.")
    placeholder: str = _setting("column", "No static feature of a kind: a constant 'column', or 'omit' the key.")
    unknown_share: float = _setting(0.05, "Share of known categories that train the reserved row.")
    infinity: str = _setting("error", "Infinite targets: 'error', or take them as 'missing'.")
    find_unused: bool = _setting(False, "Run DDP with find_unused_parameters=True, to compare.", is_flag=True)
    device: str = _setting("auto", "'auto' (GPUs where there are some), 'cpu' or 'cuda'.")

    def __post_init__(self) -> None:
        for name in ("steps", "global_batch_size", "d_model", "encoder_layers", "decoder_layers"):
            if getattr(self, name) < 1:
                raise ConfigMismatchError(f"{name} is {getattr(self, name)!r}, but must be from 1.")
        for name, choices in (("device", ("auto", "cpu", "cuda")), ("infinity", ("error", "missing"))):
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
        }

    def to_json(self) -> str:
        """JSON of all settings."""
        return json.dumps(dataclasses.asdict(self), indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> TrainSettings:
        """Read what :meth:`to_json` wrote."""
        fields = json.loads(text)
        return cls(**{**fields, "data": tuple(fields["data"])})


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
