"""Which part of the work this process does."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

from tsnorm.errors import WorldError


@dataclass(frozen=True, kw_only=True)
class World:
    """Rank and worker of this process, among how many.

    Loaders read it when iteration *starts*, never at construction: a loader that is built before
    ``init_process_group`` still shards right.

    Raises
    ------
    WorldError
        ``rank`` or ``worker`` is outside its range.
    """

    rank: int = 0
    """Rank among ``world_size`` processes."""
    world_size: int = 1
    """Number of training processes."""
    worker: int = 0
    """Loader worker of this rank."""
    num_workers: int = 1
    """Number of loader workers of a rank; 1 when it loads in its own process."""

    def __post_init__(self) -> None:
        for idx, count, what in (
            (self.rank, self.world_size, "rank"),
            (self.worker, self.num_workers, "worker"),
        ):
            if not 0 <= idx < count:
                raise WorldError(f"World: {what} is {idx}, but must be in 0..{count - 1}.")

    @classmethod
    def current(cls) -> World:
        """Read the running process group, else torchrun's environment, else a world of one.

        torch is looked up and never imported: without it there is no process group.
        """
        rank, world_size = _from_environment("RANK", 0), _from_environment("WORLD_SIZE", 1)
        dist = sys.modules.get("torch.distributed")
        if dist is not None and dist.is_available() and dist.is_initialized():
            rank, world_size = dist.get_rank(), dist.get_world_size()
        data = sys.modules.get("torch.utils.data")
        info = data.get_worker_info() if data is not None else None
        if info is None:
            return cls(rank=rank, world_size=world_size)
        return cls(rank=rank, world_size=world_size, worker=info.id, num_workers=info.num_workers)


def _from_environment(name: str, default: int) -> int:
    text = os.environ.get(name, default)
    try:
        return int(text)
    except ValueError as error:
        raise WorldError(f"World: {name} in the environment is {text!r}, but must be a whole number.") from error
