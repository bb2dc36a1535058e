"""A trained model against the known end of each series, beside seasonal naive."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from gluonts.dataset.field_names import FieldName

from tsnorm.errors import ConfigMismatchError, FrequencyError
from tsnorm.forecast.model_folder import TrainedModel
from tsnorm.forecast.scores import QUANTILES, FloatArray, scale_of, score, seasonal_naive
from tsnorm.pipeline import EvaluationLoader, TimeSeriesDataset
from tsnorm.transforms import Entry


def backtest(
    trained: TrainedModel,
    dataset: TimeSeriesDataset,
    *,
    batch_size: int = 64,
    num_samples: int = 100,
    seed: int = 0,
    on_batch: Callable[[int], None] = lambda _: None,
) -> dict[str, Any]:
    """Forecast the last ``prediction_length`` steps of each series from those before, and score it.

    Parameters
    ----------
    trained
        The model.
    dataset
        Series with the horizon appended, such as the ``test`` split; it may have fewer static columns than the model.
    batch_size
        Series forecast at a time; memory grows with ``batch_size * num_samples``.
    num_samples
        Sample paths drawn of each forecast.
    seed
        Fixes the samples.
    on_batch
        Called after each batch with the number of series that it held.

    Returns
    -------
    dict
        ``model`` and ``seasonal_naive``: see :func:`tsnorm.forecast.scores.score`; ``by_category``: feature ->
        category -> the same two; ``skipped``: item_ids of series that are too short to be forecast.

    Raises
    ------
    FrequencyError, ConfigMismatchError, SchemaError
        The dataset is none that the model can forecast.
    """
    config, freq = trained.model.config, trained.freq
    horizon = config.prediction_length
    if dataset.freq != freq:
        raise FrequencyError(f"{dataset.name} is at {dataset.freq}, but the model was trained at {freq}.")
    if config.input_size != 1:
        raise ConfigMismatchError(f"the model has {config.input_size} target channels, but a backtest scores one.")
    pasts = dataset.without_end(horizon)
    loader = EvaluationLoader([pasts], config=config, schema=trained.schema, global_batch_size=batch_size, mode="test")
    rows: list[int] = []
    forecasts: list[FloatArray] = []
    torch.manual_seed(seed)
    config.num_parallel_samples = num_samples
    device = next(trained.model.parameters()).device
    with torch.no_grad():
        for batch in loader:
            samples = trained.model.generate(**batch.to(device)).sequences.double().cpu().numpy()  # (B, S, H)
            kept = ~batch.info.is_padding
            rows += batch.info.series_idx[kept].tolist()
            forecasts.append(np.quantile(samples[kept], QUANTILES, axis=1))  # (Q, B, H)
            on_batch(int(kept.sum()))
    whole = [entry for entry in dataset.entries if np.shape(entry[FieldName.TARGET])[-1] > horizon]
    shown = [np.asarray(whole[row][FieldName.TARGET], dtype=np.float64).reshape(-1) for row in rows]
    labels = np.stack([target[-horizon:] for target in shown])
    scales = np.array([scale_of(target[:-horizon], freq.seasonality) for target in shown])
    naive = np.stack([seasonal_naive(target[:-horizon], freq.seasonality, horizon) for target in shown])
    both = {
        "model": dict(zip(QUANTILES, np.concatenate(forecasts, axis=1), strict=True)),
        "seasonal_naive": dict.fromkeys(QUANTILES, naive),
    }

    def scores(which: Any) -> dict[str, Any]:
        return {
            name: score(labels[which], {q: f[which] for q, f in quantiles.items()}, scales[which])
            for name, quantiles in both.items()
        }

    groups = _categories([whole[row] for row in rows], dataset)
    return {
        **scores(np.arange(len(labels))),
        "by_category": {
            feature: {category: scores(np.array(which)) for category, which in sorted(members.items())}
            for feature, members in groups.items()
        },
        "skipped": [*(e.get(FieldName.ITEM_ID) for e in _too_short(dataset, horizon)), *loader.skipped],
    }


def _too_short(dataset: TimeSeriesDataset, horizon: int) -> list[Entry]:
    return [entry for entry in dataset.entries if np.shape(entry[FieldName.TARGET])[-1] <= horizon]


def _categories(entries: list[Entry], dataset: TimeSeriesDataset) -> dict[str, dict[str, list[int]]]:
    """Feature of the dataset -> category by name, or 'missing' -> positions of the series that have it."""
    groups: dict[str, dict[str, list[int]]] = {feature.name: {} for feature in dataset.schema.categorical}
    for i, entry in enumerate(entries):
        values = entry.get(FieldName.FEAT_STATIC_CAT) or [None] * len(groups)
        for feature, value in zip(dataset.schema.categorical, values, strict=True):
            name = value
            if feature.vocabulary and isinstance(feature.vocabulary[0], str) and isinstance(value, int | float):
                name = feature.vocabulary[int(value)]
            groups[feature.name].setdefault("missing" if name is None else str(name), []).append(i)
    return groups
