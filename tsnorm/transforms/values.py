"""Reading the static values of an entry, in whatever form people hold them."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tsnorm.errors import Place, SchemaMismatchError

_GLUONTS_FIELDS = frozenset({"item_id", "info", "start", "target", "time_feat"})


def read_statics(entry: Mapping[str, Any], field: str, names: Sequence[str], place: Place) -> list[Any]:
    """Static values of an entry, one for each column, None where there is none.

    The values stand under ``field``; where that key is absent, columns named ``names`` may stand in the
    entry by themselves, as a table with static columns has them.

    Parameters
    ----------
    entry
        The entry.
    field
        ``feat_static_cat`` or ``feat_static_real``.
    names
        Names of the columns that the entry is expected to have.
    place
        Where the entry stands.

    Raises
    ------
    SchemaMismatchError
        The value has a time axis, is no sequence of scalars, or has another number of columns.
    """
    value = entry.get(field)
    if is_missing(value):
        return [
            None if name in _GLUONTS_FIELDS or is_missing(entry.get(name)) else _scalar(entry[name]) for name in names
        ]
    values = [None if is_missing(item) else item for item in _flatten(value, field, place)]
    if len(values) != len(names):
        declared = f"declares {len(names)} ({', '.join(names)})" if names else "declares none"
        raise SchemaMismatchError(
            f"{place.field(field)}: {_count(len(values))}, but the schema {declared}."
            " Widen it with `StaticSchema | other`, or correct the entry."
        )
    return values


def is_missing(value: Any) -> bool:
    """Whether a scalar says that there is no value: None, NaN, NaT or pandas' NA."""
    if getattr(value, "ndim", None) == 0:
        value = value.tolist()
    if value is None:
        return True
    if isinstance(value, float | np.floating):
        return math.isnan(value)
    return type(value).__name__ in ("NAType", "NaTType")


def _flatten(value: Any, field: str, place: Place) -> list[Any]:
    if isinstance(value, np.ndarray) or hasattr(value, "detach"):
        _refuse_axes(tuple(value.shape), field, place)
        value = value.tolist() if value.ndim else [value.tolist()]
    if isinstance(value, str | bytes | numbers.Number | np.generic):
        return [_scalar(value)]
    if isinstance(value, Mapping | set | frozenset) or not isinstance(value, Iterable):
        raise SchemaMismatchError(
            f"{place.field(field)}: {value!r} is a {type(value).__name__}, but must be a list with one value for"
            " each static feature."
        )
    items = [_scalar(item) for item in value]
    widths = [len(item) if isinstance(item, list | tuple) else 1 for item in items]
    if any(isinstance(item, list | tuple) for item in items):
        if len(set(widths)) > 1:
            raise SchemaMismatchError(
                f"{place.field(field)}: it is ragged, its items have {', '.join(map(str, widths[:10]))} values, but"
                " must have one value each. Give a flat list, one value for each static feature."
            )
        _refuse_axes((len(items), widths[0]), field, place)
    return items


def _scalar(item: Any) -> Any:
    if isinstance(item, np.generic | np.ndarray) or hasattr(item, "detach"):
        return item.tolist()
    return item


def _refuse_axes(shape: tuple[int, ...], field: str, place: Place) -> None:
    if len(shape) > 1:
        raise SchemaMismatchError(
            f"{place.field(field)}: its shape is {shape}, so that the static feature has a time axis of {shape[0]},"
            " but must have one value per series. Give a flat list, or use the dynamic field if it changes in time."
        )


def _count(n: int) -> str:
    return f"{n} value{'' if n == 1 else 's'}"
