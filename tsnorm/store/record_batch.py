"""Record batches: many entries as one Arrow ``RecordBatch`` with list columns, one row a series.

=========================  =======================================  ===========================================
column                     type                                     holds
=========================  =======================================  ===========================================
``item_id``                large_string                             as the data says it; a whole number as text
``start``                  large_string                             as the data says it; dates in ISO form
``target``                 large_list<double>, or one list more     ``(T,)``, multivariate ``(C, T)``; gaps NaN
``feat_static_cat``        large_list<int64|double|large_string|    ``(K,)``, raw; missing ones null
                           bool>
``feat_static_real``       large_list<double>                       ``(R,)``; null stays null and NaN NaN
``feat_dynamic_real``      large_list<large_list<double>>           ``(F, T)`` or ``(F, T + H)``
``past_feat_dynamic_real`` large_list<large_list<double>>           ``(F, T)``
``feat_dynamic_cat``       large_list<large_list<int64>>            ``(F, T)`` or ``(F, T + H)``
``source_row``             int64                                    row of the entry in its source, from 1
=========================  =======================================  ===========================================

All columns are always there; a field that an entry lacks is null. All entries of a batch come from one file
and have targets of one dimension. The schema metadata names the file (:data:`FILE_KEY`), counts the fields
that are not stored (:data:`UNKNOWN_KEY`) and the values that float64 had to round (:data:`ROUNDED_KEY`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy.typing as npt
import orjson
import pyarrow as pa

from tsnorm.errors import SOURCE_FIELD, Place
from tsnorm.store.buffers import numbers_in, offsets_in, valid_in

DYNAMIC_FIELDS = ("feat_dynamic_real", "past_feat_dynamic_real", "feat_dynamic_cat")
FIELDS = ("item_id", "start", "target", "feat_static_cat", "feat_static_real", *DYNAMIC_FIELDS)
"""Fields of an entry that a record batch holds, in column order; ``source_row`` follows."""

VERSION_KEY = b"tsnorm.record_batch"
FILE_KEY = b"tsnorm.file"
UNKNOWN_KEY = b"tsnorm.unknown_fields"
ROUNDED_KEY = b"tsnorm.rounded"


def entries(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """Unpack a record batch into GluonTS entries.

    Parameters
    ----------
    batch
        What :func:`~tsnorm.store.record_batches` or a reader made; may be a slice.

    Yields
    ------
    dict
        The fields the entry has: ``target`` and dynamic features as read-only views of the batch, ``(T,)`` or
        two-dimensional, float64 or int64; static features as lists with None for null; ``start`` and
        ``item_id`` as text. Its :class:`~tsnorm.errors.Place` stands under :data:`~tsnorm.errors.SOURCE_FIELD`.
    """
    file = file_of(batch)
    texts = {name: batch.column(name).to_pylist() for name in ("item_id", "start", "source_row")}
    statics = {name: _lists(batch.column(name)) for name in ("feat_static_cat", "feat_static_real")}
    series = {name: _series(batch.column(name)) for name in ("target", *DYNAMIC_FIELDS)}
    for i, row in enumerate(texts.pop("source_row")):
        columns = {**texts, **statics, **series}
        entry = {name: columns[name][i] for name in FIELDS if columns[name][i] is not None}
        for name in DYNAMIC_FIELDS:
            if name in entry and len(entry[name]) == 0:  # no features: as many steps as the target
                entry[name] = entry[name].reshape(0, entry["target"].shape[-1])
        entry[SOURCE_FIELD] = Place(file=file, row=row, item_id=entry.get("item_id"))
        yield entry


def file_of(batch: pa.RecordBatch) -> str | None:
    """File that the entries of a batch were read from, as the user gave it."""
    file = (batch.schema.metadata or {}).get(FILE_KEY)
    return None if file is None else os.fsdecode(file)


def counts_in(batch: pa.RecordBatch, key: bytes) -> dict[str, int]:
    """Counts by field under :data:`UNKNOWN_KEY` or :data:`ROUNDED_KEY`: of the batch as it was made, not of a slice."""
    counts: dict[str, int] = orjson.loads((batch.schema.metadata or {}).get(key, b"{}"))
    return counts


def _series(array: pa.Array) -> list[npt.NDArray[Any] | None]:
    """Views of a list column: ``(T,)`` each, or ``(F, T)`` if it is nested."""
    outer, present = offsets_in(array).tolist(), valid_in(array).tolist()
    if not pa.types.is_large_list(array.type.value_type):
        values = numbers_in(array.values)
        return [values[outer[i] : outer[i + 1]] if there else None for i, there in enumerate(present)]
    inner, values = offsets_in(array.values), numbers_in(array.values.values)

    def view(a: int, b: int) -> npt.NDArray[Any]:
        return values[inner[a] : inner[b]].reshape(b - a, inner[a + 1] - inner[a] if a < b else 0)  # (F, T)

    return [view(outer[i], outer[i + 1]) if there else None for i, there in enumerate(present)]


def _lists(array: pa.Array) -> list[list[Any] | None]:
    outer, present = offsets_in(array).tolist(), valid_in(array).tolist()
    start, stop = outer[0], outer[-1]
    items = array.values.slice(start, stop - start)
    values = items.to_pylist() if pa.types.is_large_string(items.type) else numbers_in(items).tolist()
    if items.null_count:
        values = [value if there else None for value, there in zip(values, valid_in(items).tolist(), strict=True)]
    return [values[outer[i] - start : outer[i + 1] - start] if there else None for i, there in enumerate(present)]
