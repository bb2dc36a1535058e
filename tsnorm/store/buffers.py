"""Between numpy and Arrow by their buffers alone: no copy of values, and no pandas.

``pyarrow.array`` and ``Array.to_numpy`` import pandas where it is installed, which costs a scan most of a
second at start. Whatever tsnorm does with Arrow arrays goes through these functions instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Mask = npt.NDArray[np.bool_]
Offsets = npt.NDArray[np.int64]

_TYPES = {np.dtype(np.float64): pa.float64(), np.dtype(np.int64): pa.int64(), np.dtype(np.bool_): pa.bool_()}
_DTYPES = {arrow: numpy for numpy, arrow in _TYPES.items()}  # DataType.to_pandas_dtype imports pandas too


def flat_array(values: npt.NDArray[Any], valid: Mask | None = None) -> pa.Array:
    """Arrow array over a float64, int64 or bool vector; null where ``valid`` is False."""
    bits = values.dtype == np.bool_
    data = np.packbits(values, bitorder="little") if bits else np.ascontiguousarray(values)
    return pa.Array.from_buffers(_TYPES[values.dtype], len(values), [_bitmap(valid), pa.py_buffer(data)])


def text_array(values: Sequence[str | None]) -> pa.Array:
    """Arrow array of texts (large_string); None is null."""
    encoded = [b"" if value is None else value.encode() for value in values]
    valid = np.array([value is not None for value in values], dtype=np.bool_)
    buffers = [_bitmap(valid), pa.py_buffer(offsets_of(map(len, encoded))), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.large_string(), len(values), buffers)


def list_array(offsets: Offsets, items: pa.Array, valid: Mask | None = None) -> pa.Array:
    """Arrow array of lists (large_list): list i is ``items[offsets[i]:offsets[i + 1]]``."""
    buffers = [_bitmap(valid), pa.py_buffer(offsets)]
    return pa.Array.from_buffers(pa.large_list(items.type), len(offsets) - 1, buffers, children=[items])


def offsets_of(lengths: Any) -> Offsets:
    """Row pointers ``(N + 1,)`` of N lengths."""
    sizes = np.fromiter(lengths, dtype=np.int64)
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])


def numbers_in(array: pa.Array) -> npt.NDArray[Any]:
    """Read-only values of a double, int64 or bool array, ``(N,)``; a view except for bool. Undefined where null."""
    data = array.buffers()[1]
    start, stop = array.offset, array.offset + len(array)
    if len(array) == 0 or data is None:
        values: npt.NDArray[Any] = np.empty(0, dtype=_DTYPES[array.type])
    elif pa.types.is_boolean(array.type):
        values = _bits(data, start, stop)
    else:
        values = np.frombuffer(data, dtype=_DTYPES[array.type])[start:stop]
    values.flags.writeable = False
    return values


def offsets_in(array: pa.Array) -> Offsets:
    """Row pointers ``(N + 1,)`` of a large_list array into ``array.values``."""
    if len(array) == 0:
        return np.zeros(1, np.int64)
    return np.frombuffer(array.buffers()[1], dtype=np.int64)[array.offset : array.offset + len(array) + 1]


def valid_in(array: pa.Array) -> Mask:
    """Where an array is not null, ``(N,)``."""
    bitmap = array.buffers()[0]
    if bitmap is None or len(array) == 0:
        return np.full(len(array), array.null_count == 0)
    return _bits(bitmap, array.offset, array.offset + len(array))


def _bitmap(valid: Mask | None) -> pa.Buffer | None:
    if valid is None or valid.all():
        return None
    return pa.py_buffer(np.packbits(valid, bitorder="little"))


def _bits(buffer: pa.Buffer, start: int, stop: int) -> Mask:
    octets = np.frombuffer(buffer, dtype=np.uint8)
    return np.unpackbits(octets, count=stop, bitorder="little")[start:].astype(np.bool_)
