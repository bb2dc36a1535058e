"""The training loop: steps over DDP, and validation on what was held out."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from tsnorm.errors import TrainingError
from tsnorm.pipeline import Batch, EvaluationLoader, TrainingLoader
from tsnorm.rng import philox
from tsnorm.train.progress import Reporter
from tsnorm.train.settings import TrainSettings
from tsnorm.world import World

LOSS_EVERY = 10
"""Steps between two losses that are gathered over the ranks and kept."""


@dataclass(kw_only=True)
class Progress:
    """How far a job has come: with model and optimizer, all that a resume needs."""

    step: int = 0
    """Steps made."""
    losses: list[tuple[int, float]] = field(default_factory=list)
    """Step and training loss, over all ranks."""
    validations: list[dict[str, float]] = field(default_factory=list)
    """Step, loss over all datasets, and loss of each dataset by its name."""
    best: float = math.inf
    """Least validation loss."""
    waited: int = 0
    """Validations since the best one."""


class Loop:
    """Trains a model for the steps of its settings.

    What happens in a step is a pure function of settings, data, step and rank, dropout included, so that a job
    that was killed and resumed ends with the same weights.

    Parameters
    ----------
    settings
        Settings of the job.
    model
        The model, on its device.
    loader
        Training windows.
    validation
        Dataset name -> loader of its held-out windows.
    weighted
        Whether targets have gaps, so that ranks and parts of a batch weigh differently.
    """

    def __init__(
        self,
        settings: TrainSettings,
        model: torch.nn.Module,
        loader: TrainingLoader,
        validation: dict[str, EvaluationLoader],
        *,
        weighted: bool,
    ) -> None:
        self.settings, self.model, self.loader, self.validation = settings, model, loader, validation
        self.weighted, self.device = weighted, next(model.parameters()).device
        self.ddp = (
            DistributedDataParallel(model, find_unused_parameters=settings.find_unused)
            if World.current().world_size > 1
            else model
        )
        self.optimizer = torch.optim.AdamW(
            model.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay
        )
        self.progress = Progress()

    def run(self, reporter: Reporter, save: Callable[[bool], None]) -> None:
        """Make the steps that are left; ``save(is_best)`` is called, on all ranks, when it is time to.

        Raises
        ------
        TrainingError
            The loss is not finite.
        """
        settings, progress = self.settings, self.progress
        self.loader.first_step = progress.step
        for step, batch in enumerate(self.loader, start=progress.step + 1):
            loss = self._step(step, batch.to(self.device, non_blocking=True))
            progress.step = step
            if step % LOSS_EVERY == 0 or step == settings.steps:
                progress.losses.append((step, _mean_over_ranks(loss)))
                _check_finite(progress.losses[-1][1], step)
                reporter.step(step, progress.losses[-1][1])
            is_best = False
            if settings.validate_every and (step % settings.validate_every == 0 or step == settings.steps):
                is_best = self._validate(step)
                reporter.validation(progress.validations[-1])
            stops = bool(settings.patience) and progress.waited >= settings.patience
            due = settings.checkpoint_every and step % settings.checkpoint_every == 0
            if is_best or due or stops or step == settings.steps:
                if not all(bool(torch.isfinite(p).all()) for p in self.model.parameters()):
                    raise TrainingError(
                        f"a parameter is not finite after step {step}; this step is not saved. Lower --learning-rate."
                    )
                save(is_best)
            if stops:
                break

    def _step(self, step: int, batch: Batch) -> torch.Tensor:
        """One step of the optimiser; gives the loss of this rank, weighted as in the mean over the ranks."""
        settings = self.settings
        torch.manual_seed(int(philox(settings.seed, World.current().rank, step).integers(2**62)))  # of dropout
        for group in self.optimizer.param_groups:
            group["lr"] = settings.learning_rate * learning_rate_factor(settings, step)
        parts = split(batch, settings.accumulate)
        weights = part_weights([part["future_observed_mask"] for part in parts], self.weighted)
        total = torch.zeros((), device=self.device)
        for k, (part, weight) in enumerate(zip(parts, weights, strict=True)):
            waits = k + 1 < len(parts) and isinstance(self.ddp, DistributedDataParallel)
            with self.ddp.no_sync() if waits else contextlib.nullcontext():  # type: ignore[operator]
                loss = self._loss(self.ddp, part, step) * weight
                loss.backward()  # type: ignore[no-untyped-call]
            total += loss.detach()
        if settings.clip_norm is not None:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), settings.clip_norm)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return total

    def _loss(self, model: torch.nn.Module, batch: dict[str, torch.Tensor], step: int) -> torch.Tensor:
        autocast = torch.autocast(self.device.type, torch.bfloat16, enabled=self.settings.precision == "bfloat16")
        try:
            with autocast:
                loss: torch.Tensor = model(**batch).loss
        except ValueError as error:
            if "to be within the support" in str(error):
                raise TrainingError(
                    f"a target lies outside the support of the distribution at step {step}. Set distribution_output in"
                    " the config to one that fits the data, such as 'student_t'."
                ) from error
            if "to satisfy the constraint" not in str(error):  # torch.distributions, of its parameters
                raise
            raise _diverged("NaN", step) from error
        return loss

    def _validate(self, step: int) -> bool:
        """Loss on the held-out windows of each dataset; whether the loss over all is the best so far."""
        self.model.eval()
        sums = torch.zeros((len(self.validation), 2), dtype=torch.float64)
        with torch.no_grad():
            for d, loader in enumerate(self.validation.values()):
                for batch in loader:
                    observed = float(_observed(batch["future_observed_mask"]))
                    part = float(self._loss(self.model, batch.to(self.device), step))
                    sums[d] += torch.tensor([part * observed, observed], dtype=torch.float64)
        self.model.train()
        sums = sums.to(self.device) if self.device.type == "cuda" else sums
        if dist.is_initialized():
            dist.all_reduce(sums)
        losses = (sums[:, 0] / sums[:, 1].clamp(min=1.0)).tolist()
        loss = float(sums[:, 0].sum() / sums[:, 1].sum().clamp(min=1.0))
        _check_finite(loss, step)
        progress = self.progress
        progress.validations.append({"step": step, "loss": loss, **dict(zip(self.validation, losses, strict=True))})
        is_best = loss < progress.best
        progress.best, progress.waited = (loss, 0) if is_best else (progress.best, progress.waited + 1)
        return is_best


def learning_rate_factor(settings: TrainSettings, step: int) -> float:
    """Factor of the learning rate at a step, counted from 1: linear warm-up, then constant or cosine to 0."""
    if step <= settings.warmup_steps:
        return step / settings.warmup_steps
    if settings.schedule == "constant":
        return 1.0
    share = (step - settings.warmup_steps) / max(1, settings.steps - settings.warmup_steps)
    return 0.5 * (1.0 + math.cos(math.pi * min(1.0, share)))


def split(batch: Batch, num_parts: int) -> list[dict[str, torch.Tensor]]:
    """Parts of a batch with equally many rows."""
    if num_parts == 1:
        return [batch]
    chunks = {key: tensor.chunk(num_parts) for key, tensor in batch.items()}
    return [{key: pieces[k] for key, pieces in chunks.items()} for k in range(num_parts)]


def part_weights(masks: Sequence[torch.Tensor], weighted: bool) -> list[torch.Tensor | float]:
    """Weights that make DDP's mean over ranks of the sum over parts the mean over the global batch.

    The models average over the observed values of the part they see, of which each part of each rank has its
    own number.

    Parameters
    ----------
    masks
        ``future_observed_mask`` of each part, (B, H) or (B, H, C).
    weighted
        Whether there are gaps; without any the weights are equal, and nothing is reduced over the ranks.
    """
    if not weighted:
        return [1.0 / len(masks)] * len(masks)
    counts = [_observed(mask) for mask in masks]
    total = torch.stack(counts).sum()
    world_size = 1
    if dist.is_initialized():
        dist.all_reduce(total)
        world_size = dist.get_world_size()
    return [count * world_size / total.clamp(min=1.0) for count in counts]


def _observed(mask: torch.Tensor) -> torch.Tensor:
    """Number of steps that the models' loss counts as observed."""
    return (mask if mask.ndim == 2 else mask.amin(dim=-1)).sum()


def _mean_over_ranks(loss: torch.Tensor) -> float:
    if dist.is_initialized():
        loss = loss.clone()
        dist.all_reduce(loss)
        loss = loss / dist.get_world_size()
    return float(loss)


def _check_finite(loss: float, step: int) -> None:
    if not math.isfinite(loss):
        raise _diverged(loss, step)


def _diverged(loss: Any, step: int) -> TrainingError:
    return TrainingError(
        f"loss is {loss} at step {step}, but must be finite; this step is not saved."
        " Lower --learning-rate, or scale the data."
    )
