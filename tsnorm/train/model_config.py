"""The config of the model of a job: what a config JSON says, what flags say, and what follows from the data."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tsnorm.errors import ConfigMismatchError
from tsnorm.pipeline import TimeSeriesDataset, complete_config
from tsnorm.schema import StaticSchema
from tsnorm.train.settings import TrainSettings


def model_config(
    settings: TrainSettings,
    datasets: Sequence[TimeSeriesDataset],
    schema: StaticSchema,
    tell: Callable[[str], None],
) -> Any:
    """Config of the model; what is changed in it is told.

    Raises
    ------
    ConfigMismatchError
        The datasets differ in what one model must have alike, or a config JSON contradicts a flag or the data.
    """
    widths = {d.name: d.profile.num_dynamic_real for d in datasets}
    channels = {d.name: d.profile.input_size for d in datasets}
    for what, seen in (("dynamic real features", widths), ("target channels", channels)):
        if len(set(seen.values())) > 1:
            listed = ", ".join(f"{name} has {n}" for name, n in seen.items())
            raise ConfigMismatchError(f"datasets differ in {what}: {listed}. Train them apart, or make them alike.")
    for dataset in datasets:
        if dataset.profile.input_size > 1 and dataset.profile.max_length == 1:
            raise ConfigMismatchError(
                f"{dataset.name}: targets are {dataset.profile.input_size} channels of one step, (C, T) with T = 1."
                " Transpose them: time is the last axis."
            )
    model, fields = settings.model, dict[str, Any]()
    if model.endswith(".json"):
        fields = _read_config(Path(model))
        model = str(fields.pop("model_type", None)).replace("_", "-")
    for name in ("prediction_length", "context_length", "d_model", "encoder_layers", "decoder_layers"):
        flag = getattr(settings, name)
        if flag is not None and fields.setdefault(name, flag) != flag:
            raise ConfigMismatchError(
                f"{settings.model}: {name} is {fields[name]}, but --{name.replace('_', '-')} says {flag}."
                " Change one of them."
            )
    dropped = {name: fields.pop(name) for name in ("encoder_layerdrop", "decoder_layerdrop") if fields.get(name)}
    for name, value in dropped.items():
        tell(
            f"note: {name} is set from {value} to 0.0: a skipped layer leaves its parameters out of the step,"
            " on which DDP without find_unused_parameters stops."
        )
    try:
        return complete_config(
            model,
            schema=schema,
            freq=datasets[0].freq,
            history=max(dataset.profile.max_length for dataset in datasets),
            **{
                "prediction_length": _prediction_length(fields, datasets),
                "input_size": next(iter(channels.values())),
                "num_dynamic_real_features": next(iter(widths.values())),
                "d_model": 32,
                "encoder_layers": 4,
                "decoder_layers": 4,
            }
            | fields,
        )
    except ConfigMismatchError as error:
        if model == settings.model:
            raise
        raise ConfigMismatchError(f"{settings.model}: {error}") from error


def _read_config(path: Path) -> dict[str, Any]:
    try:
        fields = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigMismatchError(f"{path}: cannot be read as a config JSON ({error}).") from error
    if not isinstance(fields, dict):
        raise ConfigMismatchError(f"{path}: holds a {type(fields).__name__}, but a config is an object.")
    return fields


def _prediction_length(fields: Mapping[str, Any], datasets: Sequence[TimeSeriesDataset]) -> int:
    stated = {dataset.name: dataset.prediction_length for dataset in datasets}
    if fields.get("prediction_length") is not None:
        return fields["prediction_length"]  # type: ignore[no-any-return]
    if len(set(stated.values())) > 1 or None in stated.values():
        listed = ", ".join(f"{name} states {length or 'none'}" for name, length in stated.items())
        raise ConfigMismatchError(f"prediction length: {listed}. Pass --prediction-length.")
    return int(next(iter(stated.values())) or 0)
