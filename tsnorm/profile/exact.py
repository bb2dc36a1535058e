"""Sums of float64 that are exact, and so the same in whatever order and on however many machines they are taken."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tsnorm.profile.mergeable import Mergeable

Floats = npt.NDArray[np.float64]

UNIT = 1074
"""Every finite float64 is a whole multiple of 2**-1074, the smallest one."""
_BITS = 53  # of a mantissa
_LIMB = 18  # bits of a third of it
_BLOCK = 2**14  # values whose limb products (38 bits) sum up exactly in a float64
_SMALLEST = -1073  # exponent that frexp gives to 2**-1074


@dataclass(frozen=True, kw_only=True)
class ExactMoments(Mergeable):
    """Count, mean and population standard deviation of finite float64; ``|`` merges.

    Sums are kept as whole numbers, the values in units of 2**-1074 and their squares in units of 2**-2148,
    and rounded once, when :attr:`mean` or :attr:`std` is read. Nothing is lost or overflows before.

    Examples
    --------
    >>> big = ExactMoments.of(np.array([1e300, 1.0, -1e300]))
    >>> big.mean, (big | ExactMoments.of(np.array([2.0]))).mean
    (0.3333333333333333, 0.75)
    """

    count: int = 0
    """Number of values."""
    total: int = 0
    """Their sum in units of 2**-1074."""
    squares: int = 0
    """Sum of their squares in units of 2**-2148."""

    @classmethod
    def of(cls, values: Floats) -> ExactMoments:
        """Moments of finite values, ``(N,)`` float64. About 25 ns a value."""
        total = squares = 0
        for start in range(0, len(values), _BLOCK):
            block = _sums(values[start : start + _BLOCK])
            total += block[0]
            squares += block[1]
        return cls(count=len(values), total=total, squares=squares)

    def to_wire(self) -> dict[str, Any]:
        """Return JSON values; the sums as text, since many a reader of JSON rounds long numbers."""
        return {"count": self.count, "total": _shifted(self.total), "squares": _shifted(self.squares)}

    @classmethod
    def from_wire(cls, data: Any) -> ExactMoments:
        """Read what :meth:`to_wire` gave."""
        return cls(count=data["count"], total=_unshifted(data["total"]), squares=_unshifted(data["squares"]))

    @property
    def mean(self) -> float | None:
        """Mean, correctly rounded; None without values."""
        return self.total / (self.count << UNIT) if self.count else None

    @property
    def std(self) -> float | None:
        """Population standard deviation, to within one unit in the last place; None without values."""
        if not self.count:
            return None
        spread = self.count * self.squares - self.total**2  # (count * std)**2 in units of 2**-2148
        shift = max(0, 160 - spread.bit_length())
        shift += shift % 2
        return math.isqrt(spread << shift) / (self.count << (UNIT + shift // 2))


def _sums(values: Floats) -> tuple[int, int]:
    """Sum of at most 2**14 values and of their squares, in units of 2**-1074 and 2**-2148."""
    fractions, exponents = np.frexp(values)  # 0.5 <= |fraction| < 1
    mantissas = np.ldexp(np.abs(fractions), _BITS).astype(np.int64)  # whole, below 2**53
    low, middle, high = (((mantissas >> _LIMB * k) & (2**_LIMB - 1)).astype(np.float64) for k in range(3))
    bins = exponents - _SMALLEST
    signs = np.sign(values)
    products = [low * low, 2 * low * middle, 2 * low * high + middle * middle, 2 * middle * high, high * high]
    return _weighted(bins, [signs * low, signs * middle, signs * high], 1), _weighted(bins, products, 2)


def _weighted(bins: npt.NDArray[np.int32], limbs: list[Floats], power: int) -> int:
    """Exact sum over limbs k and values of ``limb << 18 * k << power * (bin - 52)``."""
    total = 0
    for k, limb in enumerate(limbs):
        parts = np.bincount(bins, weights=limb)
        used = np.flatnonzero(parts)
        for b, part in zip(used.tolist(), parts[used].tolist(), strict=True):
            total += int(part) << (power * b + _LIMB * k)
    return total >> (power * (_BITS - 1))  # exact: the smallest value is one unit


def _shifted(number: int) -> str:
    """Write ``-0x1fp12`` for -0x1f * 2**12, odd in front unless zero."""
    zeros = (number & -number).bit_length() - 1 if number else 0
    return f"{number >> zeros:#x}p{zeros}"


def _unshifted(text: str) -> int:
    number, zeros = text.split("p")
    return int(number, 16) << int(zeros)
