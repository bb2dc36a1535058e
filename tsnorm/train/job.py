"""A training job on one rank: data, schema, config, loaders, loop, checkpoints."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from rich.console import Console

from tsnorm.errors import ConfigMismatchError, TsnormWarning
from tsnorm.pipeline import EvaluationLoader, TimeSeriesDataset, TrainingLoader, model_from_config, unite
from tsnorm.schema import StaticSchema
from tsnorm.train.agree import check_ranks_agree, parameters_digest
from tsnorm.train.checkpoint import resume, save
from tsnorm.train.describe import describe
from tsnorm.train.loop import Loop
from tsnorm.train.model_config import model_config
from tsnorm.train.progress import Reporter
from tsnorm.train.settings import TrainSettings
from tsnorm.world import World


def train(settings: TrainSettings) -> Path:
    """Train a model on this rank; all ranks of the job call it with equal settings.

    Returns
    -------
    pathlib.Path
        Folder with ``config.json``, ``model.safetensors``, ``schema.json``, ``tsnorm.json``, ``losses.csv``,
        ``training.pt`` for a resume, and, after a validation, ``best/`` and ``validation.csv``.

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
    usual, shown = warnings.showwarning, set[str]()

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if not issubclass(category, TsnormWarning):
            usual(message, category, *where, **more)
        elif console is not None and str(message) not in shown:
            shown.add(str(message))
            console.print(f"warning: {message}")

    with warnings.catch_warnings():
        warnings.simplefilter("always", TsnormWarning)
        warnings.filterwarnings("ignore", r".*BDay|.*PeriodDtype\[B\]", FutureWarning)  # GluonTS uses them per series
        warnings.showwarning = show
        yield


def _train(settings: TrainSettings, device: torch.device, console: Console | None) -> Path:
    datasets = [TimeSeriesDataset.from_folder(path, **settings.schema_policies()) for path in settings.data]
    names = [dataset.name for dataset in datasets]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ConfigMismatchError(
            f"{len(twice)} dataset folders are named {twice[0]!r}. Rename one, to tell them apart."
        )
    schema = unite(datasets)
    tell: Callable[[str], None] = console.print if console is not None else lambda _: None
    config = model_config(settings, datasets, schema, tell)
    loader, validation = _loaders(settings, datasets, schema, config, tell)
    data = _digest(datasets)
    check_ranks_agree(
        {
            "schema": schema.fingerprint(),
            "model config": config.to_json_string(),
            "settings": settings.to_json(),
            "data": data,
        }
    )
    torch.manual_seed(settings.seed)
    model = model_from_config(config).to(device)
    model.train()
    has_gaps = settings.infinity == "missing" or any(dataset.profile.num_missing for dataset in datasets)
    loop = Loop(settings, model, loader, validation, weighted=has_gaps)
    describe(tell, settings, datasets, schema, loader, model)
    if settings.resume:
        resume(loop, data)
        tell(f"resumed after step {loop.progress.step}")
    facts = {"freq": str(datasets[0].freq), "data": data}

    def save_on_rank_0(is_best: bool) -> None:
        check_ranks_agree({"trained parameters": parameters_digest(model)})
        if console is not None:
            save(loop, schema, facts, is_best)

    with Reporter(console, settings.steps, settings.global_batch_size, loop.progress.step).running() as reporter:
        loop.run(reporter, save_on_rank_0)
    losses = [loss for _, loss in loop.progress.losses]
    shown = f"; loss {losses[0]:.4f} at first, {losses[-1]:.4f} in the end" if losses else ""
    tell(f"saved {settings.output} after step {loop.progress.step}{shown}")
    return Path(settings.output)


def _loaders(
    settings: TrainSettings,
    datasets: Sequence[TimeSeriesDataset],
    schema: StaticSchema,
    config: Any,
    tell: Callable[[str], None],
) -> tuple[TrainingLoader, dict[str, EvaluationLoader]]:
    """Training windows, and the held-out end of each series where there is validation."""
    common: dict[str, Any] = {"config": config, "schema": schema, "infinity": settings.infinity}
    common["global_batch_size"] = settings.global_batch_size
    validation = {}
    trained = list(datasets)
    if settings.validate_every:
        validation = {d.name: EvaluationLoader([d], min_past=settings.min_past, **common) for d in datasets}
        trained = [dataset.without_end(config.prediction_length) for dataset in datasets]
        for before, after in zip(datasets, trained, strict=True):
            if lost := len(before.entries) - len(after.entries):
                tell(f"{before.name}: {lost} series are too short to train on beside their held-out end")
    loader = TrainingLoader(
        trained,
        num_steps=settings.steps,
        seed=settings.seed,
        min_past=settings.min_past,
        unknown_share=settings.unknown_share,
        **common,
    )
    return loader, validation


def _digest(datasets: Sequence[TimeSeriesDataset]) -> str:
    """Hash of all series: ranks with other data would draw other windows for the same step."""
    digest = hashlib.sha256()
    for dataset in datasets:
        for entry in dataset.entries:
            small = [entry.get(name) for name in ("item_id", "start", "feat_static_cat", "feat_static_real")]
            digest.update(f"{dataset.freq} {small}".encode("utf-8", "surrogatepass"))
            for name in ("target", "feat_dynamic_real"):
                digest.update(np.ascontiguousarray(entry.get(name, ())).tobytes())
    return digest.hexdigest()[:16]


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
