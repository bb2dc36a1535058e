"""Scores of forecasts, by the metrics of ``gluonts.ev``, in float64."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

QUANTILES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
FloatArray = npt.NDArray[np.float64]


def scale_of(past: FloatArray, seasonality: int) -> float:
    """Mean absolute seasonal difference of a past, by which MASE divides; NaN where there is none.

    Parameters
    ----------
    past
        Values before the forecast; (T,), gaps are NaN.
    seasonality
        Steps of a season; 1 is used for a past that is not longer than that, as in GluonTS.

    Notes
    -----
    Hyndman and Koehler, International Journal of Forecasting 22 (2006) 679-688.
    """
    lag = seasonality if len(past) > seasonality else 1
    differences = np.abs(past[lag:] - past[:-lag])
    return float(np.nanmean(differences)) if np.isfinite(differences).any() else float("nan")


def seasonal_naive(past: FloatArray, seasonality: int, prediction_length: int) -> FloatArray:
    """Last season of a past, repeated; a gap takes the last value known of its season, or of all; (H,)."""
    known = np.flatnonzero(np.isfinite(past))
    if not len(known):
        return np.full(prediction_length, np.nan)
    forecast = np.empty(prediction_length)
    for h in range(prediction_length):
        same = known[(len(past) + h - known) % seasonality == 0]
        forecast[h] = past[same[-1] if len(same) else known[-1]]
    return forecast


def score(labels: FloatArray, quantiles: Mapping[float, FloatArray], scales: FloatArray) -> dict[str, Any]:
    """Scores over N series.

    Parameters
    ----------
    labels
        What came; (N, H), gaps are NaN and do not count.
    quantiles
        Level -> forecast; (N, H) each, at the levels :data:`QUANTILES`.
    scales
        :func:`scale_of` each past; (N,). Series whose scale is 0 or NaN count in all scores but MASE.

    Returns
    -------
    dict
        ``mase`` and ``smape`` of the median, ``mean_weighted_quantile_loss`` over the levels, ``coverage_80`` (share
        of values between the quantiles 0.1 and 0.9), ``num_series``, and ``num_scaled``: those in MASE.
    """
    from gluonts.ev.metrics import MASE, SMAPE, Coverage, MeanWeightedSumQuantileLoss

    def evaluate(metric: Any, rows: Any) -> float:
        data = {"label": np.ma.masked_invalid(labels[rows]), "seasonal_error": scales[rows, None]}
        data |= {str(level): forecast[rows] for level, forecast in quantiles.items()}
        evaluator = metric(axis=None)
        evaluator.update(data)
        return float(evaluator.get())

    everything = np.arange(len(labels))
    scaled = np.flatnonzero(np.isfinite(scales) & (scales > 0))
    low, high = (evaluate(Coverage(q=level), everything) for level in (QUANTILES[0], QUANTILES[-1]))
    return {
        "mase": evaluate(MASE(), scaled) if len(scaled) else None,
        "smape": evaluate(SMAPE(), everything),
        "mean_weighted_quantile_loss": evaluate(MeanWeightedSumQuantileLoss(quantile_levels=QUANTILES), everything),
        "coverage_80": high - low,
        "num_series": len(labels),
        "num_scaled": len(scaled),
    }
