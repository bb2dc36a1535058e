"""Slurm's variables in torchrun's words."""

from __future__ import annotations

import itertools
import re
from collections.abc import MutableMapping

from tsnorm.errors import WorldError

TORCHRUN = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
"""What torchrun tells each rank."""


def adopt_slurm(environ: MutableMapping[str, str]) -> None:
    """Say in torchrun's variables what Slurm says in its own, in place.

    Sets ``RANK``, ``WORLD_SIZE``, ``LOCAL_RANK``, ``LOCAL_WORLD_SIZE``, ``MASTER_ADDR`` (first host) and
    ``MASTER_PORT`` (from the job and step id). Values that are set already are kept, and nothing happens where
    torchrun runs below srun.

    Raises
    ------
    WorldError
        A variable of Slurm is missing or cannot be read.
    """
    if all(environ.get(name) for name in TORCHRUN):
        return

    def read(*names: str) -> str:
        found = next((environ[name] for name in names if environ.get(name)), None)
        if found is None:
            raise WorldError(
                f"Slurm environment: {names[-1]} is not set, but a rank needs it. Start the ranks with srun."
            )
        return found

    rank, local_rank = read("SLURM_PROCID"), read("SLURM_LOCALID")
    world_size = read("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS")
    nodelist = read("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST")
    job, step = environ.get("SLURM_JOB_ID", "0"), environ.get("SLURM_STEP_ID", "0")
    try:
        hosts = _hosts(nodelist)
        host = environ.get("MASTER_ADDR") or hosts[0]
        port = 15000 + (int(job) + 101 * int(step)) % 10000  # below the ports that systems hand out themselves
        per_node = environ.get("SLURM_STEP_TASKS_PER_NODE") or environ.get("SLURM_TASKS_PER_NODE")
        if per_node:  # like 4(x2),3
            runs = [run.rstrip(")").partition("(x") for run in per_node.split(",")]
            counts = [int(count) for count, _, times in runs for _ in range(int(times or 1))]
            local_world_size = counts[int(environ.get("SLURM_NODEID", "0"))]
        else:
            local_world_size = -(-int(world_size) // len(hosts))
    except (ValueError, IndexError) as error:
        raise WorldError(
            f"Slurm environment: node list {nodelist!r}, job id {job!r}, step id {step!r} or the tasks per node "
            f"cannot be read ({error}), but {', '.join(TORCHRUN)} and MASTER_ADDR follow from them. "
            f"Set these by hand."
        ) from error
    environ.update({"RANK": rank, "WORLD_SIZE": world_size, "LOCAL_RANK": local_rank})
    environ.setdefault("LOCAL_WORLD_SIZE", str(local_world_size))
    environ["MASTER_ADDR"] = host
    environ.setdefault("MASTER_PORT", str(port))


def _hosts(nodelist: str) -> list[str]:
    """Hosts of a Slurm node list such as ``node[01-03,7],login``."""
    hosts: list[str] = []
    for name in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", nodelist):
        choices: list[list[str]] = []
        for literal, ranges in re.findall(r"([^\[]+)|\[([^\]]*)\]", name):
            spans = [span.partition("-") for span in ranges.split(",")] if ranges else []
            numbers = [
                str(number).zfill(len(low))
                for low, _, high in spans
                for number in range(int(low), int(high or low) + 1)
            ]
            choices.append(numbers or [literal])
        hosts += map("".join, itertools.product(*choices))
    return hosts
