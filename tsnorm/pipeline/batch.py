"""A batch: tensors with exactly the names that the model's forward takes, and what travels beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from gluonts.dataset.field_names import FieldName

from tsnorm.errors import ConfigMismatchError, DataError, Place
from tsnorm.pipeline.config import check_kind, past_length
from tsnorm.transforms import Entry
from tsnorm.transforms.split import SPLIT_POINT

Names = Literal["hf", "gluonts"]
_PAST = {
    "past_values": f"past_{FieldName.TARGET}",
    "past_time_features": f"past_{FieldName.FEAT_TIME}",
    "past_observed_mask": f"past_{FieldName.OBSERVED_VALUES}",
}
_STATIC = {
    "static_categorical_features": FieldName.FEAT_STATIC_CAT,
    "static_real_features": FieldName.FEAT_STATIC_REAL,
}
_FUTURE = {
    "future_values": f"future_{FieldName.TARGET}",
    "future_time_features": f"future_{FieldName.FEAT_TIME}",
    "future_observed_mask": f"future_{FieldName.OBSERVED_VALUES}",
}
BATCH_KEYS = {**_PAST, **_STATIC, **_FUTURE}
"""Hugging Face batch key -> GluonTS field of a window."""
_NEEDED = (*_PAST, "future_time_features")


@dataclass(frozen=True, kw_only=True)
class BatchInfo:
    """What is known of each row of a batch beside its tensors; never passed to the model."""

    item_ids: tuple[Any, ...] = ()
    """``item_id`` of the series, as the data says it."""
    dataset_idx: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    """Position of the dataset among those of the loader; (B,)."""
    series_idx: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    """Position of the series in its dataset; (B,)."""
    split_points: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    """Index of the first step to forecast; (B,)."""
    is_padding: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))
    """Whether the row only fills the batch up, so that all ranks make equal steps; its future mask is 0; (B,)."""


class Batch(dict[str, torch.Tensor]):
    """Batch key -> tensor, to be called as ``model(**batch)``; :attr:`info` travels beside it."""

    info: BatchInfo = BatchInfo()

    def to(self, device: torch.device | str, non_blocking: bool = False) -> Batch:
        """Batch on a device, with the same info."""
        moved = Batch((key, value.to(device, non_blocking=non_blocking)) for key, value in self.items())
        moved.info = self.info
        return moved


def stack(windows: Sequence[Entry], *, future: bool = True, names: Names = "hf") -> Batch:
    """Stack windows to a batch.

    Only the declared numeric fields are stacked; ids and other fields of the data stay out of the tensors.
    Usable as ``collate_fn``.

    Parameters
    ----------
    windows
        Windows of a chain of :mod:`tsnorm.pipeline.chain`.
    future
        Whether the windows have a known future; without one only ``future_time_features`` is given.
    names
        ``"hf"`` for Hugging Face batch keys, ``"gluonts"`` for GluonTS field names.

    Returns
    -------
    Batch
        float32 ``*_values`` and ``*_observed_mask`` (B, P) and (B, H), or (B, P, C) and (B, H, C);
        ``*_time_features`` (B, P, F) and (B, H, F); ``static_categorical_features`` int64 (B, K);
        ``static_real_features`` (B, R). A static key is left out where no window has it.

    Raises
    ------
    DataError
        There are no windows, they disagree in a field (one has it and another has not, or shapes differ), hold
        something else than numbers, or have no future.
    """
    if not windows:
        raise DataError("stack: there are no windows, but a batch needs one. Check that a series is long enough.")
    if names not in ("hf", "gluonts"):
        raise ConfigMismatchError(f"names is {names!r}, but must be 'hf' or 'gluonts'.")
    batch = Batch()
    for key, name in BATCH_KEYS.items():
        if key in _FUTURE and not future and key != "future_time_features":
            continue
        have = [window for window in windows if window.get(name) is not None]
        if not have and key in _STATIC:
            continue
        odd = next((w for w in windows if _shape(w.get(name)) != _shape(windows[0].get(name))), None)
        if len(have) < len(windows) or odd is not None:
            at = next(w for w in windows if w.get(name) is None) if odd is None else odd
            raise DataError(
                f"{Place.of(at).field(name)}: {_describe(at.get(name))}, but {_describe(windows[0].get(name))} in the"
                " first window of the batch. Put tsnorm.transforms.static_features(schema) into the chain, which"
                " gives every entry the same columns."
            )
        values = np.stack([np.asarray(window[name]) for window in windows])
        dtype, kinds = (np.int64, "iu") if key == "static_categorical_features" else (np.float32, "fiu")
        if values.dtype.kind not in kinds:
            raise DataError(
                f"{Place.of(windows[0]).field(name)}: its dtype is {values.dtype}, but {dtype.__name__} is needed, and"
                " a cast would change values in silence. Put tsnorm.transforms.static_features(schema) into the chain."
            )
        batch[key if names == "hf" else name] = torch.from_numpy(values.astype(dtype, copy=False))
    for key, way_out in (
        ("future_time_features", "Apply a test chain with is_train=False."),
        ("future_values", "Use future=False for windows of a test chain."),
    ):
        name = _FUTURE[key]
        if (future or key == "future_time_features") and _shape(windows[0][name])[0] == 0:
            raise DataError(f"{Place.of(windows[0]).field(name)}: it has no steps, but a future is needed. {way_out}")
    batch.info = BatchInfo(
        item_ids=tuple(window.get(FieldName.ITEM_ID) for window in windows),
        split_points=np.array([window.get(SPLIT_POINT, -1) for window in windows], dtype=np.int64),
        is_padding=np.zeros(len(windows), dtype=np.bool_),
    )
    return batch


def check_batch(batch: Mapping[str, Any], config: Any) -> None:
    """Compare a batch, from whatever pipeline, with the model config it is to be used with.

    What it finds would otherwise be a crash deep in the model, or train on nonsense in silence. Loaders call it
    on their first batch; it reads ids and statics, so that on an accelerator it costs a synchronisation.

    Raises
    ------
    ConfigMismatchError
        All faults in one message: key, what the batch has, what the config has, and the way out.
    """
    check_kind(config)
    if not isinstance(batch, Mapping):
        raise ConfigMismatchError(f"batch is a {type(batch).__name__}, but must be a dict of tensors by their names.")
    given = {key: value for key, value in batch.items() if value is not None}
    faults = [*_key_faults(given)]
    if all(isinstance(given[key], torch.Tensor) and given[key].ndim for key in BATCH_KEYS.keys() & given.keys()):
        faults += [*_static_faults(given, config), *_series_faults(given, config)]
    if faults:
        raise ConfigMismatchError("batch and config do not fit:\n  " + "\n  ".join(faults))


def _key_faults(batch: Mapping[str, Any]) -> Iterator[str]:
    """Keys that are lacking or misspelled, which forward swallows, and values that are no rows of one batch."""
    for key in sorted(batch.keys() - BATCH_KEYS.keys()):
        if near := get_close_matches(key, BATCH_KEYS.keys() - batch.keys(), n=1, cutoff=0.9):
            yield f"{key}: the model has no such input and would ignore it. Did you mean {near[0]!r}?"
    for key in _NEEDED:
        if key not in batch:
            yield f"{key}: batch lacks it, but the model needs it. Build batches with tsnorm.pipeline.stack."
    known = {key: value for key, value in batch.items() if key in BATCH_KEYS}
    for key, value in known.items():
        if not isinstance(value, torch.Tensor) or value.ndim == 0:
            yield f"{key}: it is a {type(value).__name__}, but must be a tensor with one row a window."
    sizes = {key: len(value) for key, value in known.items() if isinstance(value, torch.Tensor) and value.ndim}
    if len(set(sizes.values())) > 1:
        yield f"the keys have different numbers of rows: {sizes}. Stack the same windows for each."


def _static_faults(batch: Mapping[str, Any], config: Any) -> list[str]:
    faults = []
    fill = "Put tsnorm.transforms.static_features(schema) into the chain and give the config schema.config_kwargs()."
    for key, setting in (
        ("static_categorical_features", "num_static_categorical_features"),
        ("static_real_features", "num_static_real_features"),
    ):
        count, tensor = getattr(config, setting), batch.get(key)
        if tensor is None:
            if count:
                faults.append(f"{key}: batch lacks it, config has {count}. {fill}")
            continue
        if tensor.ndim != 2:
            faults.append(f"{key}: its shape is {tuple(tensor.shape)}, but (B, {count}) is needed. {fill}")
        elif tensor.shape[1] != count:
            faults.append(
                f"{key}: data has {tensor.shape[1]} column{'' if tensor.shape[1] == 1 else 's'}, config has {count}."
                f" Set {setting}={tensor.shape[1]}, or leave the key out."
            )
        elif key == "static_categorical_features" and not count:
            faults.append(f"{key}: it has no columns, and a model whose config has 0 has no embedder. Leave it out.")
        elif key == "static_categorical_features":
            faults += _id_faults(tensor, config)
        elif key == "static_real_features" and tensor.dtype != torch.float32:
            faults.append(f"{key}: its dtype is {tensor.dtype}, but torch.float32 is needed. Cast it with .float().")
        elif key == "static_real_features" and not bool(torch.isfinite(tensor).all()):
            faults.append(f"{key}: it holds NaN or infinity, which turns every loss to NaN. {fill}")
    return faults


def _id_faults(ids: torch.Tensor, config: Any) -> list[str]:
    key = "static_categorical_features"
    if ids.dtype not in (torch.int64, torch.int32):
        return [f"{key}: its dtype is {ids.dtype}, but ids must be torch.int64. Cast it with .long()."]
    if len(config.cardinality) != ids.shape[1]:
        return [f"{key}: batch has {ids.shape[1]} columns, config.cardinality is {config.cardinality}."]
    return [
        f"{key}: column {k} holds id {int(column[(column < 0) | (column >= rows)][0])}, but its cardinality is {rows}"
        f" (ids 0..{rows - 1}). Widen the schema, or encode with static_features(schema)."
        for k, (column, rows) in enumerate(zip(ids.T, config.cardinality, strict=True))
        if bool(((column < 0) | (column >= rows)).any())
    ]


def _series_faults(batch: Mapping[str, Any], config: Any) -> list[str]:
    channels = () if config.input_size == 1 else (config.input_size,)
    width = config.num_time_features + config.num_dynamic_real_features
    lengths = {"past": past_length(config), "future": config.prediction_length}
    faults = []
    for key, tensor in batch.items():
        part, _, what = key.partition("_")
        if part not in lengths or what not in ("values", "observed_mask", "time_features"):
            continue
        want = (lengths[part], *((width,) if what == "time_features" else channels))
        if tuple(tensor.shape[1:]) != want:
            faults.append(
                f"{key}: its shape is {tuple(tensor.shape)}, but (B, {', '.join(map(str, want))}) is needed."
                f" {_shape_hint(part, what, tuple(tensor.shape[1:]), want, config)}"
            )
        elif tensor.dtype != torch.float32 and (what != "observed_mask" or tensor.dtype.is_floating_point):
            faults.append(f"{key}: its dtype is {tensor.dtype}, but torch.float32 is needed. Cast it with .float().")
        elif not bool(torch.isfinite(tensor).all()):
            faults.append(f"{key}: it holds NaN or infinity. Mark gaps in the observed mask and fill them with 0.")
    return faults


def _shape_hint(part: str, what: str, got: tuple[int, ...], want: tuple[int, ...], config: Any) -> str:
    if len(got) == 2 and len(want) == 1 and got[1] == 1:
        return "Drop the last axis with .squeeze(-1): it would train on a wrong loss."
    if what == "time_features" and len(got) == 2 and got[0] == want[0]:
        return f"Set num_time_features={got[1] - config.num_dynamic_real_features}."
    if got[:1] != want[:1] and part == "future":
        return f"A future has prediction_length = {config.prediction_length} steps."
    if got[:1] != want[:1]:
        return f"A past has context_length + max(lags_sequence) = {past_length(config)} steps."
    return f"input_size is {config.input_size}."


def _shape(value: Any) -> tuple[int, ...]:
    return tuple(np.shape(value))


def _describe(value: Any) -> str:
    return "missing" if value is None else f"of shape {_shape(value)}"
