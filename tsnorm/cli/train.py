"""`tsnorm train`: a forecasting transformer on all ranks of this machine."""

from __future__ import annotations

import dataclasses
import os
import typing
from typing import Any

import click

from tsnorm.train.settings import TrainSettings

_FIELDS = [field for field in dataclasses.fields(TrainSettings) if field.metadata]


def _flags(function: Any) -> Any:
    """Put one option on the command for each setting."""
    types = typing.get_type_hints(TrainSettings)
    for field in reversed(_FIELDS):
        kind = next(k for k in (*typing.get_args(types[field.name]), types[field.name]) if k is not type(None))
        switch = field.metadata.get("is_flag", False)
        function = click.option(
            f"--{field.name.replace('_', '-')}",
            field.name,
            default=field.default,
            is_flag=switch,
            type=None if switch else kind,
            help=field.metadata["help"],
            show_default=field.default is not None and not switch,
        )(function)
    return function


@click.command("train", short_help="Train a forecasting transformer on several ranks.")
@click.argument("data", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False))
@click.option(
    "--nproc", type=click.IntRange(min=1), default=None, help="Ranks to start; default: one a GPU, else 2 (or 1 core)."
)
@_flags
def command(data: tuple[str, ...], nproc: int | None, **settings: Any) -> int:
    """Train on one or more GluonTS dataset folders DATA.

    Starts the ranks itself, through torchrun, or joins those of a running torchrun or srun. Every batch carries
    both static fields, so that DDP runs with find_unused_parameters=False.
    """
    job = TrainSettings(data=data, **settings)
    from tsnorm.train.launch import launch, rank_main, under_launcher
    from tsnorm.train.slurm import adopt_slurm

    if under_launcher():
        adopt_slurm(os.environ)
        from tsnorm.train.job import train

        rank_main(train)(job)
        return 0
    ranks = _default_nproc(job) if nproc is None else nproc
    parts = ranks * job.accumulate
    if job.global_batch_size % parts:
        raise click.BadParameter(
            f"{job.global_batch_size} windows cannot be shared by {ranks} rank(s) in {job.accumulate} part(s) each;"
            f" the next number that can is {-(-job.global_batch_size // parts) * parts}.",
            param_hint="--global-batch-size",
        )
    return launch(ranks, [job.to_json()], module="tsnorm.train")


def _default_nproc(job: TrainSettings) -> int:
    import torch

    if job.device != "cpu" and torch.cuda.is_available():
        return torch.cuda.device_count()
    return min(2, os.cpu_count() or 1)
