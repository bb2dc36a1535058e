"""A training job on one rank: data, schema, config, DDP, steps, checkpoint."""

from __future__ import annotations

import hashlib
import json
import math
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from rich.console import Console
from torch.nn.parallel import DistributedDataParallel

from tsnorm.errors import ConfigMismatchError, TrainingError, TsnormWarning
from tsnorm.files import folder_atomically
from tsnorm.pipeline import (
    TimeSeriesDataset,
    TrainingLoader,
    complete_config,
    model_from_config,
    unite,
)
from tsnorm.rng import philox
from tsnorm.schema import StaticSchema
from tsnorm.train.agree import check_ranks_agree, parameters_digest
from tsnorm.train.progress import Reporter
from tsnorm.train.settings import FACTS, TrainSettings
from tsnorm.world import World

LOSS_EVERY = 10
"""Steps between two losses that are gathered over the ranks and shown."""


def train(settings: TrainSettings) -> Path:
    """Train a model on this rank; all ranks of the job call it with equal settings.

    Returns
    -------
    pathlib.Path
        Folder with ``config.json``, ``model.safetensors``, ``schema.json`` and ``tsnorm.json``.

    Raises
    ------
    TsnormError
        Data, config or ranks do not fit; said before the first step.
    """
    device = _device(settings)
    world = World.current()
    distributed = world.world_size > 1
    if distributed and not dist.is_initialized():
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    console = Console(soft_wrap=True, highlight=False, markup=False) if world.rank == 0 else None
    try:
        with _warnings_on(console):
            return _train(settings, device, console)
    finally:
        if distributed and dist.is_initialized():
            dist.destroy_process_group()


@contextmanager
def _warnings_on(console: Console | None) -> Iterator[None]:
    """Show tsnorm's own warnings as a line of the log, on rank 0 only; others go their usual way."""
    usual = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if not issubclass(category, TsnormWarning):
            usual(message, category, *where, **more)
        elif console is not None:
            console.print(f"warning: {message}")

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def _train(settings: TrainSettings, device: torch.device, console: Console | None) -> Path:
    world = World.current()
    datasets = [TimeSeriesDataset.from_folder(path, **settings.schema_policies()) for path in settings.data]
    names = [dataset.name for dataset in datasets]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ConfigMismatchError(
            f"{len(twice)} dataset folders are named {twice[0]!r}. Rename one, to tell them apart."
        )
    schema = unite(datasets)
    config = _config(settings, datasets, schema, console)
    loader = TrainingLoader(
        datasets,
        config=config,
        schema=schema,
        global_batch_size=settings.global_batch_size,
        num_steps=settings.steps,
        seed=settings.seed,
        min_past=settings.min_past,
        unknown_share=settings.unknown_share,
        infinity=settings.infinity,  # type: ignore[arg-type]
    )
    check_ranks_agree(
        {
            "schema": schema.fingerprint(),
            "model config": config.to_json_string(),
            "settings": settings.to_json(),
            "data": _digest(datasets),
            "number of windows": str(loader.num_windows),
        }
    )
    torch.manual_seed(settings.seed)
    model = model_from_config(config).to(device)
    torch.manual_seed(int(philox(settings.seed, world.rank).integers(2**62)))  # dropout differs between ranks
    if console is not None:
        _describe(console, settings, datasets, schema, loader, model)
    wrapped = (
        DistributedDataParallel(model, find_unused_parameters=settings.find_unused) if world.world_size > 1 else model
    )
    has_gaps = settings.infinity == "missing" or any(dataset.profile.num_missing for dataset in datasets)
    losses = _steps(settings, wrapped, loader, device, console, weighted=has_gaps)
    check_ranks_agree({"trained parameters": parameters_digest(model)})
    if console is not None:
        _save(settings, model, schema, datasets, losses)
        console.print(f"saved {settings.output}; loss {losses[0]:.4f} at first, {losses[-1]:.4f} in the end")
    return Path(settings.output)


def _steps(
    settings: TrainSettings,
    model: torch.nn.Module,
    loader: TrainingLoader,
    device: torch.device,
    console: Console | None,
    weighted: bool,
) -> list[float]:
    """Make all steps; give the losses that were shown, averaged over the ranks."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay)
    model.train()
    losses = []
    with Reporter(console, settings.steps, settings.global_batch_size).running() as reporter:
        for step, batch in enumerate(loader, start=1):
            batch = batch.to(device, non_blocking=True)
            try:
                loss = model(**batch).loss
            except ValueError as error:
                if "to satisfy the constraint" not in str(error):  # torch.distributions, of its parameters
                    raise
                raise _diverged("NaN", step) from error
            if weighted:
                loss = loss * _share_of_observed(batch["future_observed_mask"])
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            if step % LOSS_EVERY == 0 or step == settings.steps:
                losses.append(_mean_over_ranks(loss.detach()))
                reporter.step(step, losses[-1])
                if not math.isfinite(losses[-1]):
                    raise _diverged(losses[-1], step)
    return losses


def _diverged(loss: float | str, step: int) -> TrainingError:
    return TrainingError(
        f"loss is {loss} at step {step}, but must be finite. Nothing is saved."
        " Lower --learning-rate, or scale the data."
    )


def _digest(datasets: Sequence[TimeSeriesDataset]) -> str:
    """Hash of all series: ranks with other data would draw other windows for the same step."""
    digest = hashlib.sha256()
    for dataset in datasets:
        for entry in dataset.entries:
            digest.update(f"{dataset.freq} {entry.get('item_id')} {entry.get('start')}".encode())
            digest.update(np.ascontiguousarray(entry["target"]).tobytes())
    return digest.hexdigest()[:16]


def _share_of_observed(mask: torch.Tensor) -> torch.Tensor:
    """Weight that makes DDP's mean over ranks the mean over observed values of the global batch.

    The models average over their own observed values, of which each rank has its own number.
    """
    mine = (mask if mask.ndim == 2 else mask.amin(dim=-1)).sum()
    total = mine.clone()
    if dist.is_initialized():
        dist.all_reduce(total)
        mine = mine * dist.get_world_size()
    return mine / total.clamp(min=1.0)


def _mean_over_ranks(loss: torch.Tensor) -> float:
    if dist.is_initialized():
        loss = loss.clone()
        dist.all_reduce(loss)
        loss = loss / dist.get_world_size()
    return float(loss)


def _device(settings: TrainSettings) -> torch.device:
    """Device of this rank; a torch build without CUDA does."""
    if settings.device == "cpu" or (settings.device == "auto" and not torch.cuda.is_available()):
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise ConfigMismatchError("device is 'cuda', but this torch sees no GPU. Use --device cpu.")
    local_rank, num_gpus = int(os.environ.get("LOCAL_RANK", 0)), torch.cuda.device_count()
    if local_rank >= num_gpus:
        raise ConfigMismatchError(
            f"rank {local_rank} of this machine has no GPU of its own: there are {num_gpus}."
            f" Start at most {num_gpus} ranks here, or use --device cpu."
        )
    torch.cuda.set_device(local_rank)
    return torch.device("cuda", local_rank)


def _config(
    settings: TrainSettings,
    datasets: Sequence[TimeSeriesDataset],
    schema: StaticSchema,
    console: Console | None,
) -> Any:
    """Config of the model: what a config JSON says, then what flags say, then what follows from the data."""
    widths = {d.name: d.profile.num_dynamic_real for d in datasets}
    channels = {d.name: d.profile.input_size for d in datasets}
    for what, seen in (("dynamic real features", widths), ("target channels", channels)):
        if len(set(seen.values())) > 1:
            listed = ", ".join(f"{name} has {n}" for name, n in seen.items())
            raise ConfigMismatchError(f"datasets differ in {what}: {listed}. Train them apart, or make them alike.")
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
        if console is not None:
            console.print(
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
        return int(fields["prediction_length"])
    if len(set(stated.values())) > 1 or None in stated.values():
        listed = ", ".join(f"{name} states {length or 'none'}" for name, length in stated.items())
        raise ConfigMismatchError(f"prediction length: {listed}. Pass --prediction-length.")
    return int(next(iter(stated.values())) or 0)


def _describe(
    console: Console,
    settings: TrainSettings,
    datasets: Sequence[TimeSeriesDataset],
    schema: StaticSchema,
    loader: TrainingLoader,
    model: Any,
) -> None:
    """Say what is about to happen, filled and skipped values with their counts included."""
    world = World.current()
    for dataset in datasets:
        lacking = [name for name in schema.names if name not in dataset.schema.names]
        filled = f", filled for all: {', '.join(lacking)}" if lacking else ""
        console.print(
            f"{dataset.name}: {len(dataset.entries):,} series at {dataset.freq}, own static features:"
            f" {', '.join(dataset.schema.names) or 'none'}{filled}"
        )
    placeholders = [
        kind for kind, features in (("category", schema.categorical), ("real", schema.real)) if not features
    ]
    constant = f" (constant placeholder: {' and '.join(placeholders)})" if placeholders else ""
    console.print(
        f"statics: tables of {', '.join(map(str, model.config.cardinality))} rows,"
        f" {model.config.num_static_real_features} real column(s){constant};"
        f" {loader.num_windows:,} windows, {len(loader.skipped)} series too short"
    )
    changes = ", ".join(f"{what} {times:,}" for what, times in sorted(loader.counts.items()))
    if changes:
        console.print(f"changed on the way in: {changes}")
    parameters = sum(p.numel() for p in model.parameters() if p.requires_grad)
    ddp = f"DDP, find_unused_parameters={settings.find_unused}" if world.world_size > 1 else "no DDP"
    console.print(
        f"{type(model).__name__}: {parameters:,} parameters, {world.world_size} rank(s) ({ddp}),"
        f" {settings.global_batch_size} windows a step"
    )


def _save(
    settings: TrainSettings,
    model: Any,
    schema: StaticSchema,
    datasets: Sequence[TimeSeriesDataset],
    losses: Sequence[float],
) -> None:
    from transformers.utils import logging

    with folder_atomically(settings.output) as folder:
        shown = logging.is_progress_bar_enabled()
        logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # one small file needs none
        model.save_pretrained(folder)
        if shown:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]
        schema.save(folder / "schema.json")
        facts = {
            "tsnorm": version("tsnorm"),
            "freq": str(datasets[0].freq),
            "schema_fingerprint": schema.fingerprint(),
            "steps": settings.steps,
            "world_size": World.current().world_size,
            "loss_every": LOSS_EVERY,
            "losses": losses,
            "settings": json.loads(settings.to_json()),
        }
        (folder / FACTS).write_text(json.dumps(facts, indent=2) + "\n")
        for file in folder.iterdir():  # safetensors writes for the owner alone
            file.chmod(0o644)
