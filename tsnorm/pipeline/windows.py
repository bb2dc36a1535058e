"""Which windows a set of series has, as pure functions of their lengths."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class WindowIndex:
    """All training windows of N series, counted from 0 without listing them.

    A window is a split point t of a series of T steps with ``min_past <= t <= T - prediction_length``.
    """

    lengths: IntArray
    """Steps of each series; (N,)."""
    prediction_length: int
    """Steps after a split point (H)."""
    min_past: int = 1
    """Least number of steps before a split point."""

    @property
    def counts(self) -> IntArray:
        """Windows of each series, 0 for those that are too short; (N,)."""
        return np.maximum(0, self.lengths - self.prediction_length - self.min_past + 1)

    @property
    def total(self) -> int:
        """Windows of all series."""
        return int(self.counts.sum())

    def locate(self, window_idx: IntArray) -> tuple[IntArray, IntArray]:
        """Series and split point of windows, given by their number in 0..total - 1.

        Returns
        -------
        series_idx, split_points
            int64, of the shape of ``window_idx``.
        """
        ends = np.cumsum(self.counts)
        series_idx = np.searchsorted(ends, window_idx, side="right").astype(np.int64)
        starts = ends - self.counts
        return series_idx, window_idx - starts[series_idx] + self.min_past
