"""Records that merge field by field, and their JSON form."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Mapping
from itertools import zip_longest
from typing import Any, Self


class Mergeable:
    """A frozen dataclass of counts and other mergeables; its defaults are the neutral element of ``|``.

    ``|`` is associative and commutative: counts add up, dicts merge by key and tuples by position. So shards
    may be taken in any order and grouping.
    """

    def __or__(self, other: Self) -> Self:
        if type(other) is not type(self):
            return NotImplemented
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        return type(self)(**{f.name: _merged(getattr(self, f.name), getattr(other, f.name)) for f in fields})

    def to_wire(self) -> Any:
        """Return the record as JSON values."""
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        return {f.name: _encoded(getattr(self, f.name)) for f in fields}

    @classmethod
    def from_wire(cls, data: Any) -> Self:
        """Read what :meth:`to_wire` gave; KeyError, TypeError or ValueError if it is something else."""
        kinds = typing.get_type_hints(cls)
        fields = dataclasses.fields(cls)  # type: ignore[arg-type]
        if unknown := sorted(set(data) - {f.name for f in fields}):
            raise KeyError(f"unknown field {unknown[0]!r}")
        return cls(**{f.name: _decoded(kinds[f.name], data[f.name]) for f in fields})


def _merged(a: Any, b: Any) -> Any:
    if isinstance(a, int):
        return a + b
    if isinstance(a, Mapping):
        return {key: _merged(a[key], b[key]) if key in a and key in b else a.get(key, b.get(key)) for key in {**a, **b}}
    if isinstance(a, tuple):
        return tuple(x if y is None else y if x is None else _merged(x, y) for x, y in zip_longest(a, b))
    return a | b


def _encoded(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _encoded(value[key]) for key in sorted(value)}
    if isinstance(value, tuple):
        return [_encoded(item) for item in value]
    return value.to_wire() if isinstance(value, Mergeable) else value


def _decoded(kind: Any, data: Any) -> Any:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is dict:
        return {key: _decoded(arguments[1], value) for key, value in data.items()}
    if origin is tuple:
        return tuple(_decoded(arguments[0], value) for value in data)
    if isinstance(kind, type) and issubclass(kind, Mergeable):
        return kind.from_wire(data)
    if type(data) is not kind:
        raise TypeError(f"{data!r} is no {kind.__name__}")
    return data
