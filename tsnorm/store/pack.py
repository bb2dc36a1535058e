"""From entries to record batches: the one place where the form of an entry is checked."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa

from tsnorm.errors import SOURCE_FIELD, DataError, Place
from tsnorm.store.buffers import flat_array, list_array, offsets_of, text_array
from tsnorm.store.cells import Category, Cells
from tsnorm.store.plain import scalar_id, shown
from tsnorm.store.record_batch import DYNAMIC_FIELDS, FIELDS, FILE_KEY, ROUNDED_KEY, UNKNOWN_KEY, VERSION_KEY

_ITEM_ID_REMARK = {"tsnorm.remark": "ids that are whole numbers in the data stand here as their decimal text"}


def record_batches(
    entries: Iterable[Mapping[str, Any]],
    *,
    file: str | os.PathLike[str] | None = None,
    first_row: int = 1,
    rows: int = 1024,
) -> Iterator[pa.RecordBatch]:
    """Pack entries into record batches, reading as few entries ahead as a batch holds.

    The one place where entries are checked for form. What can be held is kept as it is, be it odd: infinities,
    empty targets, features longer or shorter than the target are for a validator to judge.

    Parameters
    ----------
    entries
        GluonTS entries. Values may be lists, tuples, numpy arrays or torch tensors, static fields also scalars,
        and numbers also the texts ``"NaN"``, ``"Infinity"`` and ``"-Infinity"``. A field that is None is absent.
    file
        File that the entries come from, for messages. A :class:`~tsnorm.errors.Place` in an entry goes first.
    first_row
        Row of the first entry, for messages.
    rows
        Entries in a batch; fewer in the last one, where the file changes, and where targets change between
        ``(T,)`` and ``(C, T)``.

    Raises
    ------
    DataError
        An entry is no mapping, has no target, or a field cannot be held; the message says where.

    Examples
    --------
    >>> from tsnorm.store import entries
    >>> [batch] = record_batches([{"item_id": "a", "start": "2022-01", "target": [1.0, None, 3.0]}])
    >>> batch.num_rows, next(entries(batch))["target"]
    (1, array([ 1., nan,  3.]))
    """
    if not isinstance(rows, int) or rows < 1:
        raise DataError(f"record_batches: rows is {rows!r}, but must be a whole number from 1.")
    if isinstance(entries, Mapping | str):
        raise DataError(f"record_batches: entries is {shown(entries)}, but must be many entries. Put it in a list.")
    return _pack(entries, None if file is None else os.fspath(file), first_row, rows)


def _pack(entries: Iterable[Any], file: str | None, first_row: int, rows: int) -> Iterator[pa.RecordBatch]:
    cells = Cells()
    kinds = _CategoryKinds()
    batch = _Rows()
    for row, entry in enumerate(entries, first_row):
        if not isinstance(entry, Mapping):
            raise DataError(
                f"{Place(file=file, row=row)}: is {shown(entry)} ({type(entry).__name__}), but an entry must be a"
                " mapping of field names to values, such as {'start': '2022-01-01', 'target': [1.0, 2.0]}."
            )
        left = entry.get(SOURCE_FIELD)
        cells.place = (
            left if isinstance(left, Place) else Place(file=file, row=row, item_id=scalar_id(entry.get("item_id")))
        )
        target = _target(cells, entry)
        if not batch.takes(target, cells.place.file):
            yield batch.finish()
            batch = _Rows()
        batch.file = cells.place.file
        batch.add(entry, target, cells, kinds)
        if len(batch) == rows:
            yield batch.finish()
            batch = _Rows()
    if len(batch):
        yield batch.finish()


def _target(cells: Cells, entry: Mapping[str, Any]) -> npt.NDArray[np.float64]:
    value = entry.get("target")
    if value is None:
        seen = ", ".join(repr(str(name)) for name in list(entry)[:10] if name != SOURCE_FIELD) or "none"
        raise cells.wrong(
            "target", f"is missing (fields: {seen})", "every entry needs one", "Rename the field of the values."
        )
    return cells.target(value)


class _Rows:
    """Entries of the batch that is being filled."""

    def __init__(self) -> None:
        self.file: str | None = None
        self.fields: dict[str, list[Any]] = {name: [] for name in (*FIELDS, "source_row")}
        self.unknown: Counter[str] = Counter()
        self.rounded: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self.fields["target"])

    def takes(self, target: npt.NDArray[np.float64], file: str | None) -> bool:
        return not len(self) or (file == self.file and target.ndim == self.fields["target"][-1].ndim)

    def add(
        self, entry: Mapping[str, Any], target: npt.NDArray[np.float64], cells: Cells, kinds: _CategoryKinds
    ) -> None:
        self.fields["target"].append(target)
        self.fields["source_row"].append(cells.place.row)
        for read in (cells.item_id, cells.start, cells.feat_static_cat, cells.feat_static_real):
            value = entry.get(read.__name__)
            self.fields[read.__name__].append(None if value is None else read(value))
        for name in DYNAMIC_FIELDS:
            value = entry.get(name)
            self.fields[name].append(None if value is None else cells.dynamic(name, value, target.shape[-1]))
        kinds.check(self.fields["feat_static_cat"][-1] or (), cells)
        self.unknown.update(
            str(name).encode(errors="backslashreplace").decode()
            for name in entry
            if name not in FIELDS and name != SOURCE_FIELD and entry[name] is not None
        )
        self.rounded.update(cells.rounded)
        cells.rounded.clear()

    def finish(self) -> pa.RecordBatch:
        columns = self.fields
        arrays = {name: text_array(columns[name]) for name in ("item_id", "start")}
        arrays["target"] = _series(columns["target"], np.dtype(np.float64), nested=columns["target"][0].ndim == 2)
        arrays["feat_static_cat"] = self._categories()
        reals = [None if cell is None else cell[0] for cell in columns["feat_static_real"]]
        given = [cell[1] for cell in columns["feat_static_real"] if cell is not None]
        arrays["feat_static_real"] = _series(reals, np.dtype(np.float64), given=given)
        for name in DYNAMIC_FIELDS:
            dtype = np.dtype(np.int64 if name == "feat_dynamic_cat" else np.float64)
            arrays[name] = _series(columns[name], dtype, nested=True)
        row_known = np.array([row is not None for row in columns["source_row"]], dtype=np.bool_)
        arrays["source_row"] = flat_array(np.array([row or 0 for row in columns["source_row"]], np.int64), row_known)
        metadata = {VERSION_KEY: b"1", UNKNOWN_KEY: _json(self.unknown), ROUNDED_KEY: _json(self.rounded)}
        if self.file is not None:
            metadata[FILE_KEY] = os.fsencode(self.file)
        remarks = {"item_id": _ITEM_ID_REMARK}
        fields = [pa.field(name, array.type, metadata=remarks.get(name)) for name, array in arrays.items()]
        return pa.RecordBatch.from_arrays(list(arrays.values()), schema=pa.schema(fields, metadata=metadata))

    def _categories(self) -> pa.Array:
        cells: list[list[Category] | None] = self.fields["feat_static_cat"]
        values = [value for cell in cells for value in cell or ()]
        valid = np.array([value is not None for value in values], dtype=np.bool_)
        kinds = set(map(type, values))
        if str in kinds or any(isinstance(value, str) for value in values):
            items = text_array([value if isinstance(value, str) else None for value in values])
        elif bool in kinds:
            given = np.array([isinstance(value, bool) for value in values], np.bool_)
            items = flat_array(np.array([value is True for value in values], np.bool_), given)
        elif float in kinds:
            items = flat_array(np.array([0.0 if value is None else value for value in values], np.float64), valid)
        else:
            items = flat_array(np.array([value or 0 for value in values], np.int64), valid)
        lengths = offsets_of(0 if cell is None else len(cell) for cell in cells)
        return list_array(lengths, items, np.array([cell is not None for cell in cells], np.bool_))


class _CategoryKinds:
    """Holds all categories of a stream to one kind: texts, or true and false, or numbers that one type can hold."""

    def __init__(self) -> None:
        self.seen: dict[str, Place] = {}

    def check(self, categories: Iterable[Category], cells: Cells) -> None:
        for k, value in enumerate(categories):
            if value is None:
                continue
            kind = _kind(value)
            self.seen.setdefault(kind, cells.place)
            if len(self.seen) == 1:
                continue
            for other, place in self.seen.items():
                if other != kind and {kind, other} not in _TOGETHER:
                    raise cells.wrong(
                        "feat_static_cat",
                        f"is {shown(value)} in column {k}",
                        f"there are {other} in {place}, and all categories of a dataset must be of one kind",
                        "Give all of them as text, or all as ids.",
                    )


_TEXTS, _BOOLS, _WHOLE, _LARGE = "texts", "true and false", "whole numbers", "whole numbers above 2**53"
_FLOATS, _NAN = "floating-point numbers", "NaN"
_TOGETHER = [{_WHOLE, _LARGE}, {_WHOLE, _FLOATS}, *({_NAN, kind} for kind in (_TEXTS, _BOOLS, _WHOLE, _FLOATS))]
"""Kinds that fit beside each other: a double holds whole numbers to 2**53, and NaN is a missing text."""


def _kind(value: Category) -> str:
    if isinstance(value, str):
        return _TEXTS
    if isinstance(value, bool):
        return _BOOLS
    if isinstance(value, int):
        return _WHOLE if abs(value) <= 2**53 else _LARGE
    return _FLOATS if value == value else _NAN


def _series(
    cells: list[npt.NDArray[Any] | None],
    dtype: np.dtype[Any],
    *,
    nested: bool = False,
    given: list[npt.NDArray[np.bool_]] | None = None,
) -> pa.Array:
    """List column of arrays ``(T,)``, or nested ``(F, T)``; None is null, and so is an item that is not given."""
    present = [cell for cell in cells if cell is not None]
    flat = np.concatenate([cell.reshape(-1) for cell in present]) if present else np.empty(0, dtype)
    items = flat_array(flat.astype(dtype, copy=False), np.concatenate(given) if given else None)
    if nested:
        items = list_array(offsets_of(cell.shape[1] for cell in present for _ in range(cell.shape[0])), items)
    lengths = offsets_of(0 if cell is None else len(cell) for cell in cells)
    return list_array(lengths, items, np.array([cell is not None for cell in cells], np.bool_))


def _json(counts: Mapping[str, int]) -> bytes:
    return orjson.dumps(counts, option=orjson.OPT_SORT_KEYS)
