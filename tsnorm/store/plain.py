"""Single values, out of whatever wraps them."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence, Set
from typing import Any

import numpy as np

_FLOAT_TEXTS = {"NaN": np.nan, "Nan": np.nan, "nan": np.nan, "Infinity": np.inf, "-Infinity": -np.inf}
"""How GluonTS's writer, and Python's, put into JSON what JSON has no number for."""


class NotANumber:
    """Stands for a value that is no number."""

    def __init__(self, value: Any) -> None:
        self.value = value


def plain(value: Any) -> Any:
    """Unwrap tensors, numpy scalars, masked arrays and other sequences: list, ndarray, or a Python scalar."""
    if value is None or isinstance(value, str | list) or type(value) in (int, float, bool):
        return value
    if type(value).__name__ == "NAType":  # pandas.NA, without pandas
        return None
    if callable(getattr(value, "detach", None)):
        tensor = value.detach().cpu()
        try:
            value = tensor.numpy()
        except TypeError:  # bfloat16 has no numpy counterpart
            value = tensor.double().numpy()
    if isinstance(value, np.ma.MaskedArray):
        return value.tolist()  # None where masked
    if not isinstance(value, np.ndarray | np.generic) and hasattr(value, "__array__"):
        value = np.asarray(value)
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist() if value.dtype.kind == "O" else value
    return list(value) if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray) else value


def scalar_id(value: Any) -> Any:
    """``item_id`` as a place shows it: None where it is no text or number, and so may be of any length."""
    return value if isinstance(value, str | int) else None


def shown(value: Any) -> str:
    """Repr for a message, at most a line of it."""
    if isinstance(value, Mapping | Set):
        return f"a {type(value).__name__} of {len(value)}"
    short = reprlib.Repr()
    short.maxstring = short.maxother = 60
    return short.repr(value).replace("\n", " ")


def number_in(value: Any) -> int | float | NotANumber | None:
    """Read a number, null, or a text for NaN or infinity; bools and other texts are none."""
    value = plain(value)
    if isinstance(value, str) and value in _FLOAT_TEXTS:
        return _FLOAT_TEXTS[value]
    if isinstance(value, float):
        return float(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    return None if value is None else NotANumber(value)
