"""What a training job shows: a bar on a terminal, a line now and then elsewhere; on rank 0 only."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

LINES = 10
"""Lines of progress in a log."""


class Reporter:
    """Shows loss, windows per second and time left.

    Parameters
    ----------
    console
        Where to; None shows nothing (ranks other than 0).
    steps
        Steps of the job.
    windows_per_step
        Windows of one step over all ranks.
    first_step
        Steps that were made before, in a job that goes on.
    """

    def __init__(self, console: Console | None, steps: int, windows_per_step: int, first_step: int = 0) -> None:
        self._console, self._steps, self._windows = console, steps, windows_per_step
        self._first = first_step
        self._begun = time.perf_counter()
        self._bar: Progress | None = None

    @contextmanager
    def running(self) -> Iterator[Reporter]:
        """Show progress while the block runs."""
        self._begun = time.perf_counter()
        if self._console is None or not self._console.is_terminal:
            yield self
            return
        columns = (
            TextColumn("training"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("loss {task.fields[loss]:.4f}"),
            TextColumn("{task.fields[rate]:,.0f} windows/s"),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=self._console) as self._bar:
            self._bar.add_task("training", total=self._steps, completed=self._first, loss=float("nan"), rate=0.0)
            yield self

    def step(self, done: int, loss: float) -> None:
        """Tell that ``done`` steps are made, the last of them with this loss."""
        seconds = max(time.perf_counter() - self._begun, 1e-9)
        made = done - self._first
        rate = made * self._windows / seconds
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=done, loss=loss, rate=rate)
        elif self._console is not None and (done == self._steps or done % max(1, self._steps // LINES) == 0):
            left = seconds / made * (self._steps - done)
            self._console.print(
                f"step {done}/{self._steps}  loss {loss:.4f}  {rate:,.0f} windows/s"
                f"  {left // 60:.0f}:{left % 60:02.0f} left"
            )

    def validation(self, losses: Mapping[str, float]) -> None:
        """Tell the losses of a validation: the step, over all, and by dataset."""
        if self._console is None:
            return
        apart = ", ".join(f"{name} {loss:.4f}" for name, loss in losses.items() if name not in ("step", "loss"))
        self._console.print(f"validation after step {losses['step']}: loss {losses['loss']:.4f} ({apart})")
