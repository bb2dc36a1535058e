"""Ranks agree before the first step, or fail at once by name."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import torch
import torch.distributed as dist

from tsnorm.errors import WorldError


def check_ranks_agree(facts: Mapping[str, str]) -> None:
    """Compare facts over all ranks; every rank raises the same error when one differs.

    Parameters
    ----------
    facts
        Name -> value, such as the fingerprint of the schema; the same names on every rank.

    Raises
    ------
    WorldError
        Naming the fact, and the ranks that differ from rank 0.
    """
    if not dist.is_initialized():
        return
    everywhere: list[dict[str, str]] = [{} for _ in range(dist.get_world_size())]
    dist.all_gather_object(everywhere, dict(facts))
    for name in everywhere[0]:
        odd = [rank for rank, theirs in enumerate(everywhere) if theirs.get(name) != everywhere[0][name]]
        if odd:
            raise WorldError(
                f"ranks disagree on the {name}: {everywhere[odd[0]].get(name)} on rank {', '.join(map(str, odd))},"
                f" but {everywhere[0][name]} on rank 0. Give every rank the same data, metadata and settings."
            )


def parameters_digest(model: torch.nn.Module) -> str:
    """Hash of all parameters; equal on ranks that have stayed together."""
    digest = hashlib.sha256()
    for name, parameter in sorted(model.named_parameters()):
        digest.update(name.encode())
        digest.update(parameter.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()[:16]
