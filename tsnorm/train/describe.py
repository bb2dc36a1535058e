"""What a training job is about to do, in a few lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tsnorm.pipeline import TimeSeriesDataset, TrainingLoader
from tsnorm.schema import StaticSchema
from tsnorm.train.settings import TrainSettings
from tsnorm.world import World


def describe(
    tell: Callable[[str], None],
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
        tell(
            f"{dataset.name}: {len(dataset.entries):,} series at {dataset.freq}, own static features:"
            f" {', '.join(dataset.schema.names) or 'none'}{filled}"
        )
    config, absent = model.config, [k for k, f in (("category", schema.categorical), ("real", schema.real)) if not f]
    how = "constant placeholder" if schema.placeholder == "column" else "left out"
    note = f" ({how}: {' and '.join(absent)})" if absent else ""
    tables = config.cardinality[: config.num_static_categorical_features]
    tell(
        f"statics: {len(tables)} table(s) of {', '.join(map(str, tables)) or 0} rows,"
        f" {config.num_static_real_features} real column(s){note};"
        f" {loader.num_windows:,} windows, {len(loader.skipped)} series too short or without a value"
    )
    changes = ", ".join(f"{what} {times:,}" for what, times in sorted(loader.counts.items()))
    if changes:
        tell(f"changed on the way in: {changes}")
    parameters = sum(p.numel() for p in model.parameters() if p.requires_grad)
    ddp = f"DDP, find_unused_parameters={settings.find_unused}" if world.world_size > 1 else "no DDP"
    tell(
        f"{type(model).__name__}: {parameters:,} parameters, {world.world_size} rank(s) ({ddp}),"
        f" {settings.global_batch_size} windows a step"
    )
