"""One pass over record batches."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tsnorm.profile.accumulators import CategoricalColumn, Distinct, MinMax, RealColumn
from tsnorm.profile.declared import Declared
from tsnorm.profile.exact import ExactMoments
from tsnorm.profile.profile import DatasetProfile
from tsnorm.store import read_gluonts_folder, read_metadata, record_batches
from tsnorm.store.buffers import numbers_in, offsets_in, valid_in
from tsnorm.store.record_batch import DYNAMIC_FIELDS, FIELDS, ROUNDED_KEY, UNKNOWN_KEY, counts_in


def scan(
    batches: Iterable[pa.RecordBatch],
    *,
    freq: Any = None,
    prediction_length: int | None = None,
    metadata: Any = None,
) -> DatasetProfile:
    """Profile record batches in one pass, holding one of them at a time.

    Parameters
    ----------
    batches
        What :func:`~tsnorm.store.record_batches` or a reader gives; whole batches, no slices, since fields that
        are not stored are counted by batch.
    freq
        Frequency in any spelling. None takes it from the metadata.
    prediction_length
        Steps to forecast. None takes it from the metadata.
    metadata
        Dataset metadata as a mapping or GluonTS ``MetaData``; carried along for
        :meth:`DatasetProfile.to_schema`.

    Raises
    ------
    FrequencyError, MetadataError
        The frequency is unknown, or the metadata cannot be carried.

    Examples
    --------
    >>> profile = scan(record_batches([{"target": [1.0, None, 3.0], "feat_static_cat": ["red"]}]), freq="M")
    >>> profile.num_missing, profile.to_schema().categorical[0].vocabulary
    (1, ('red',))
    """
    profile = DatasetProfile(declared=Declared.of(freq, prediction_length, metadata))
    for batch in batches:
        profile |= _profile_of(batch)
    return profile


def profile_folder(
    path: str | os.PathLike[str], split: str = "train", *, freq: Any = None, prediction_length: int | None = None
) -> DatasetProfile:
    """Profile one split of a GluonTS dataset folder, with the metadata it declares.

    Raises
    ------
    MetadataError, FrequencyError, DataError
        What :func:`~tsnorm.store.read_metadata`, :func:`scan` and :func:`~tsnorm.store.read_gluonts_folder` raise.
    """
    metadata = read_metadata(path)
    return scan(read_gluonts_folder(path, split), freq=freq, prediction_length=prediction_length, metadata=metadata)


def profile_entries(
    entries: Iterable[Mapping[str, Any]],
    *,
    freq: Any = None,
    prediction_length: int | None = None,
    metadata: Any = None,
) -> DatasetProfile:
    """Profile any iterable of GluonTS entries; see :func:`scan`."""
    return scan(record_batches(entries), freq=freq, prediction_length=prediction_length, metadata=metadata)


def _profile_of(batch: pa.RecordBatch) -> DatasetProfile:
    cat, real = batch.column("feat_static_cat"), batch.column("feat_static_real")
    dynamic = {name: _widths(batch.column(name)) for name in DYNAMIC_FIELDS}
    return DatasetProfile(
        num_series=batch.num_rows,
        **_target_counts(batch.column("target")),
        starts=MinMax.of(text for text in batch.column("start").to_pylist() if text is not None),
        presence={name: batch.num_rows - batch.column(name).null_count for name in FIELDS},
        unknown_fields=counts_in(batch, UNKNOWN_KEY),
        rounded=counts_in(batch, ROUNDED_KEY),
        static_cat_widths=MinMax.of(_widths(cat).tolist()),
        static_cat=_categorical_columns(cat),
        static_real_widths=MinMax.of(_widths(real).tolist()),
        static_real=_real_columns(real),
        dynamic_widths={name: MinMax.of(widths.tolist()) for name, widths in dynamic.items() if len(widths)},
    )


def _widths(lists: pa.Array) -> npt.NDArray[np.int64]:
    """Lengths of the lists that are not null."""
    return np.diff(offsets_in(lists))[valid_in(lists)]


def _target_counts(target: pa.Array) -> dict[str, Any]:
    outer = offsets_in(target)
    nested = pa.types.is_large_list(target.type.value_type)
    inner = offsets_in(target.values) if nested else outer
    values = numbers_in(target.values.values if nested else target.values)
    channels = np.diff(outer) if nested else np.ones(len(target), np.int64)
    bounds = inner[outer] if nested else outer  # (N + 1,) value ranges of the series
    sizes = np.diff(bounds)
    lengths = sizes // np.maximum(channels, 1)
    values = values[bounds[0] : bounds[-1]]
    gaps = np.isnan(values)
    missing = np.diff(np.concatenate([[0], np.cumsum(gaps)])[bounds - bounds[0]])  # (N,)
    return {
        "num_steps": int(lengths.sum()),
        "num_values": len(values),
        "num_missing": int(gaps.sum()),
        "num_infinite": int(np.isinf(values).sum()),
        "num_empty": int((sizes == 0).sum()),
        "num_all_missing": int(((missing == sizes) & (sizes > 0)).sum()),
        "lengths": MinMax.of(lengths.tolist()),
        "target_ndim": MinMax(1 + nested, 1 + nested) if len(target) else MinMax(),
        "target_channels": MinMax.of(channels.tolist()),
    }


def _column_items(lists: pa.Array, k: int) -> npt.NDArray[np.int64]:
    """Positions in ``lists.values`` of the items of column k."""
    offsets = offsets_in(lists)
    return offsets[:-1][np.diff(offsets) > k] + k


def _num_columns(lists: pa.Array) -> int:
    return int(_widths(lists).max(initial=0))


def _categorical_columns(lists: pa.Array) -> tuple[CategoricalColumn, ...]:
    items = lists.values
    if pa.types.is_large_string(items.type):
        texts = items.to_pylist()
        return tuple(_text_column([texts[i] for i in _column_items(lists, k)]) for k in range(_num_columns(lists)))
    values, given = numbers_in(items), valid_in(items)
    where = [_column_items(lists, k) for k in range(_num_columns(lists))]
    return tuple(_id_column(values[at], given[at]) for at in where)


def _text_column(texts: list[str | None]) -> CategoricalColumn:
    given = [text for text in texts if text is not None]
    return CategoricalColumn(
        num_text=len(given),
        num_missing=len(texts) - len(given),
        texts=MinMax.of(given),
        distinct=Distinct.of(given),
    )


def _id_column(values: npt.NDArray[Any], given: npt.NDArray[np.bool_]) -> CategoricalColumn:
    given = given & (values == values)
    present = values[given]
    whole = present == np.floor(present) if present.dtype.kind == "f" else np.ones(len(present), np.bool_)
    whole &= np.isfinite(present)
    distinct = [int(value) for value in np.unique(present[whole]).tolist()]
    fractions = present[~whole]
    distinct += np.unique(fractions[np.isfinite(fractions)]).tolist()
    bools = present.dtype == np.bool_
    return CategoricalColumn(
        num_whole=0 if bools else int(whole.sum()),
        num_bool=len(present) if bools else 0,
        num_fractional=len(fractions),
        num_missing=len(values) - len(present),
        numbers=MinMax.of(distinct),
        distinct=Distinct.of(distinct),
    )


def _real_columns(lists: pa.Array) -> tuple[RealColumn, ...]:
    values, given = numbers_in(lists.values), valid_in(lists.values)
    where = [_column_items(lists, k) for k in range(_num_columns(lists))]
    return tuple(_real_column(values[at], given[at]) for at in where)


def _real_column(values: npt.NDArray[np.float64], given: npt.NDArray[np.bool_]) -> RealColumn:
    present = values[given & ~np.isnan(values)]
    finite = present[np.isfinite(present)] + 0.0  # turns -0.0 into 0.0, so that the smallest has one form
    return RealColumn(
        num_missing=len(values) - len(present),
        num_infinite=len(present) - len(finite),
        moments=ExactMoments.of(finite),
        finite=MinMax.of(finite.tolist()),
    )
