"""A training job on one rank: data, schema, config, DDP, steps, checkpoint."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from rich.console import Console
from torch.nn.parallel import DistributedDataParallel

from tsnorm.errors import ConfigMismatchError
from tsnorm.files import folder_atomically
from tsnorm.pipeline import (
    TimeSeriesDataset,
    TrainingLoader,
    complete_config,
    config_from_dict,
    model_from_config,
    unite,
)
from tsnorm.rng import philox
from tsnorm.schema import StaticSchema
from tsnorm.train.agree import check_ranks_agree, parameters_digest
from tsnorm.train.progress import Reporter
from tsnorm.train.settings import TrainSettings
from tsnorm.world import World

FACTS = "tsnorm.json"
"""File beside a model that says how it was made."""
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
    _check_output(Path(settings.output))
    device = _device(settings)
    world = World.current()
    distributed = world.world_size > 1
    if distributed and not dist.is_initialized():
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    console = Console(soft_wrap=True, highlight=False) if world.rank == 0 else None
    try:
        return _train(settings, device, console)
    finally:
        if distributed and dist.is_initialized():
            dist.destroy_process_group()


def _train(settings: TrainSettings, device: torch.device, console: Console | None) -> Path:
    world = World.current()
    datasets = [TimeSeriesDataset.from_folder(path, **settings.schema_policies()) for path in settings.data]
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
            loss = model(**batch).loss
            if weighted:
                loss = loss * _share_of_observed(batch["future_observed_mask"])
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            if step % LOSS_EVERY == 0 or step == settings.steps:
                losses.append(_mean_over_ranks(loss.detach()))
                reporter.step(step, losses[-1])
    return losses


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


def _check_output(path: Path) -> None:
    """Refuse, before the first step, to put the model in the place of anything but a former model."""
    if path.is_dir() and any(path.iterdir()) and not (path / FACTS).exists():
        raise ConfigMismatchError(
            f"{path}: the folder holds something else than a model of tsnorm. Use another --output."
        )
    if path.exists() and not path.is_dir():
        raise ConfigMismatchError(f"{path}: it is a file, but the model needs a folder. Use another --output.")
    parent = next(folder for folder in path.absolute().parents if folder.exists())
    if not os.access(parent, os.W_OK):
        raise ConfigMismatchError(f"{path}: {parent} cannot be written to. Use another --output.")


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
    if settings.model.endswith(".json"):
        return _config_from_file(settings, console)
    widths = {d.name: d.profile.num_dynamic_real for d in datasets}
    channels = {d.name: d.profile.input_size for d in datasets}
    for what, seen in (("dynamic real features", widths), ("target channels", channels)):
        if len(set(seen.values())) > 1:
            listed = ", ".join(f"{name} has {n}" for name, n in seen.items())
            raise ConfigMismatchError(f"datasets differ in {what}: {listed}. Train them apart, or make them alike.")
    return complete_config(
        settings.model,
        schema=schema,
        freq=datasets[0].freq,
        prediction_length=_prediction_length(settings, datasets),
        context_length=settings.context_length,
        history=max(dataset.profile.max_length for dataset in datasets),
        input_size=next(iter(channels.values())),
        num_dynamic_real_features=next(iter(widths.values())),
        d_model=settings.d_model,
        encoder_layers=settings.encoder_layers,
        decoder_layers=settings.decoder_layers,
    )


def _config_from_file(settings: TrainSettings, console: Console | None) -> Any:
    path = Path(settings.model)
    try:
        fields = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigMismatchError(f"{path}: cannot be read as a config JSON ({error}).") from error
    if not isinstance(fields, dict):
        raise ConfigMismatchError(f"{path}: holds a {type(fields).__name__}, but a config is an object.")
    if settings.prediction_length not in (None, fields.get("prediction_length")):
        raise ConfigMismatchError(
            f"{path}: prediction_length is {fields.get('prediction_length')}, but --prediction-length says"
            f" {settings.prediction_length}. Change one of them."
        )
    config = config_from_dict(fields)
    dropped = {n: getattr(config, n) for n in ("encoder_layerdrop", "decoder_layerdrop") if getattr(config, n)}
    for name, value in dropped.items():
        setattr(config, name, 0.0)
        if console is not None:
            console.print(
                f"note: {name} is set from {value} to 0.0: a skipped layer leaves its parameters out of the step,"
                " on which DDP without find_unused_parameters stops."
            )
    return config


def _prediction_length(settings: TrainSettings, datasets: Sequence[TimeSeriesDataset]) -> int:
    if settings.prediction_length is not None:
        return settings.prediction_length
    stated = {dataset.name: dataset.prediction_length for dataset in datasets}
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
    model: torch.nn.Module,
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
    tables = ", ".join(map(str, schema.cardinality)) or "none"
    console.print(
        f"statics: tables of {tables} rows, {schema.num_static_real} real column(s);"
        f" {loader.num_windows:,} windows, {len(loader.skipped)} series too short"
    )
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
            "losses": losses,
            "settings": json.loads(settings.to_json()),
        }
        (folder / FACTS).write_text(json.dumps(facts, indent=2) + "\n")
        for file in folder.iterdir():  # safetensors writes for the owner alone
            file.chmod(0o644)
