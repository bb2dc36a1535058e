"""What a profile knows of a set of values: its extremes, its distinct members, its columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from tsnorm.profile.exact import ExactMoments
from tsnorm.profile.mergeable import Mergeable

Kind = Literal["none", "int", "float", "text", "bool", "mixed"]

DISTINCT_LIMIT = 100_000
"""Distinct values that are kept by name; of more it is only known that there are more."""


@dataclass(frozen=True)
class MinMax(Mergeable):
    """Smallest and largest of numbers or texts; None where there was none."""

    low: Any = None
    high: Any = None

    @classmethod
    def of(cls, values: Iterable[Any]) -> MinMax:
        """Extremes of values that compare with each other, no NaN and no -0.0 among them."""
        values = list(values)
        return cls(min(values), max(values)) if values else cls()

    def __or__(self, other: MinMax) -> MinMax:
        if self.low is None or other.low is None:
            return other if self.low is None else self
        return MinMax(min(self.low, other.low), max(self.high, other.high))

    def __bool__(self) -> bool:
        return self.low is not None

    def __str__(self) -> str:
        """Read like ``3``, or ``1 to 3``."""
        return f"{self.low}" if self.low == self.high else f"{self.low} to {self.high}"

    def to_wire(self) -> list[Any]:
        """Return ``[low, high]``, or an empty list."""
        return [self.low, self.high] if self else []

    @classmethod
    def from_wire(cls, data: Any) -> MinMax:
        """Read what :meth:`to_wire` gave."""
        low, high = data or (None, None)
        return cls(low, high)


@dataclass(frozen=True)
class Distinct(Mergeable):
    """Set of the distinct values, up to :data:`DISTINCT_LIMIT` of them."""

    values: frozenset[Any] | None = frozenset()
    """The values: numbers and texts; None if there are more than the limit."""

    @classmethod
    def of(cls, values: Iterable[Any]) -> Distinct:
        """Distinct ones of the values; whole numbers must be int."""
        seen = frozenset(values)
        return cls(None if len(seen) > DISTINCT_LIMIT else seen)

    def __or__(self, other: Distinct) -> Distinct:
        if self.values is None or other.values is None:
            return Distinct(None)
        if other.values <= self.values:
            return self
        return Distinct.of(self.values | other.values)

    @property
    def count(self) -> int | None:
        """Number of distinct values; None if there are more than the limit."""
        return None if self.values is None else len(self.values)

    def sorted(self) -> list[Any] | None:
        """Return the values, numbers before texts; None if there are more than the limit."""
        return None if self.values is None else sorted(self.values, key=lambda v: (isinstance(v, str), v))

    def to_wire(self) -> list[Any] | None:
        """Return the sorted values, or None."""
        return self.sorted()

    @classmethod
    def from_wire(cls, data: Any) -> Distinct:
        """Read what :meth:`to_wire` gave."""
        return cls(None if data is None else frozenset(data))


@dataclass(frozen=True, kw_only=True)
class CategoricalColumn(Mergeable):
    """What one column of ``feat_static_cat`` holds, raw."""

    num_whole: int = 0
    """Whole numbers, be they written 1 or 1.0."""
    num_fractional: int = 0
    """Numbers that are not whole, infinities among them: they are no ids."""
    num_text: int = 0
    """Texts."""
    num_bool: int = 0
    """True or false; 1 or 0 in ``numbers`` and ``distinct``."""
    num_missing: int = 0
    """Null or NaN in an entry that has the column."""
    numbers: MinMax = field(default_factory=MinMax)
    """Smallest and largest finite number."""
    texts: MinMax = field(default_factory=MinMax)
    """First and last text in the order of code points."""
    distinct: Distinct = field(default_factory=Distinct)
    """Distinct finite numbers and texts."""

    @property
    def kind(self) -> Kind:
        """What all values are; whole numbers and fractions together are ``float``."""
        counts: dict[Kind, int] = {
            "text": self.num_text,
            "bool": self.num_bool,
            "float" if self.num_fractional else "int": self.num_whole + self.num_fractional,
        }
        kinds = [kind for kind, count in counts.items() if count]
        return kinds[0] if len(kinds) == 1 else "mixed" if kinds else "none"


@dataclass(frozen=True, kw_only=True)
class RealColumn(Mergeable):
    """What one column of ``feat_static_real`` holds."""

    num_missing: int = 0
    """Null or NaN in an entry that has the column."""
    num_infinite: int = 0
    """Infinite values; they are left out of the moments and extremes."""
    moments: ExactMoments = field(default_factory=ExactMoments)
    """Moments of the finite values."""
    finite: MinMax = field(default_factory=MinMax)
    """Smallest and largest finite value."""
