"""The two kinds of static features of a dataset."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any, Literal

from tsnorm.errors import SchemaError

Category = str | int
MissingCategory = Literal["reserve", "error"] | int
"""What a missing category becomes: a reserved row of the table, a given id, or an error."""
MissingReal = Literal["mean", "error"] | float
"""What a missing real becomes: the mean over the dataset, a given value, or an error."""

MAX_ROWS = 10_000_000
"""Most rows of an embedding table; far beyond what a model can learn."""


class Stored:
    """A frozen dataclass that the serde of GluonTS can write: it tells its constructor arguments."""

    @property
    def __init_passed_kwargs__(self) -> dict[str, Any]:
        """Constructor arguments by name."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.init}  # type: ignore[arg-type]


@dataclass(frozen=True, kw_only=True)
class CategoricalFeature(Stored):
    """One static categorical feature: what its ids mean and how many rows its embedding table has.

    The rows of the table are the known categories in order, and at most one reserved row for missing and
    unseen ones. That row stands after the last when it is made and is never moved: categories that come
    later get rows behind it, so that a checkpoint's rows keep their meaning when the schema grows.

    Raises
    ------
    SchemaError
        The numbers contradict each other.
    """

    name: str
    """Name by which features of several datasets are matched."""
    cardinality: int
    """Rows of the embedding table, the reserved row included; at least 1."""
    fill_id: int | None = None
    """Row that a missing category gets; None makes a missing category an error."""
    vocabulary: tuple[str, ...] | tuple[int, ...] | None = None
    """Known categories in row order, the reserved row left out; None where ids 0, 1, ... are all there is."""
    unknown_id: int | None = None
    """Reserved row for missing and unseen categories; None where there is none."""

    def __post_init__(self) -> None:
        where = f"categorical feature {self.name!r}"
        _check_name(self.name)
        if not _is_int(self.cardinality) or self.cardinality < 1:
            raise SchemaError(f"{where}: cardinality is {self.cardinality!r}, but must be a whole number from 1.")
        if self.cardinality > MAX_ROWS:
            raise SchemaError(
                f"{where}: cardinality is {self.cardinality:,}, but a table has at most {MAX_ROWS:,} rows."
                " Are these codes of a database? Recode them: recode=True makes a vocabulary."
            )
        for what in ("fill_id", "unknown_id"):
            row = getattr(self, what)
            if row is not None and not (_is_int(row) and 0 <= row < self.cardinality):
                raise SchemaError(f"{where}: {what} is {row!r}, but the table has rows 0..{self.cardinality - 1}.")
        if self.vocabulary is None:
            return
        if isinstance(self.vocabulary, str) or not isinstance(self.vocabulary, list | tuple):
            raise SchemaError(f"{where}: vocabulary is {self.vocabulary!r}, but must be a list of categories.")
        object.__setattr__(self, "vocabulary", tuple(self.vocabulary))
        texts = all(isinstance(value, str) for value in self.vocabulary)
        if not texts and not all(_is_int(value) for value in self.vocabulary):
            raise SchemaError(f"{where}: a vocabulary is all text or all whole numbers, not a mix of types.")
        if len(set(self.vocabulary)) < len(self.vocabulary):
            twice = next(value for value, times in Counter(self.vocabulary).items() if times > 1)
            raise SchemaError(f"{where}: {twice!r} stands twice in the vocabulary.")
        if len(self.vocabulary) != self.num_known:
            raise SchemaError(
                f"{where}: the vocabulary has {len(self.vocabulary)} categories, but the table has"
                f" {self.num_known} rows for known ones."
            )

    @classmethod
    def make(
        cls,
        name: str,
        *,
        num_known: int | None = None,
        vocabulary: tuple[str, ...] | tuple[int, ...] | None = None,
        missing: MissingCategory = "reserve",
    ) -> CategoricalFeature:
        """Feature with a number of known categories, or their names, and a policy for missing ones.

        Parameters
        ----------
        name
            Name of the feature.
        num_known
            Number of categories that the data may hold, ids 0..num_known - 1; not given beside a vocabulary.
        vocabulary
            The categories by name.
        missing
            ``"reserve"`` adds a row for missing and unseen categories, a number is the id that missing ones
            get, ``"error"`` refuses them.

        Examples
        --------
        >>> CategoricalFeature.make("color", vocabulary=("red", "blue")).cardinality
        3
        """
        if (num_known is None) == (vocabulary is None):
            raise SchemaError(f"categorical feature {name!r}: give either num_known or a vocabulary.")
        known = num_known if vocabulary is None else len(vocabulary)
        if not _is_int(known) or known < 0:  # type: ignore[operator]
            raise SchemaError(
                f"categorical feature {name!r}: num_known is {known!r}, but must be a whole number from 0."
            )
        assert known is not None
        if missing == "reserve":
            return cls(name=name, cardinality=known + 1, fill_id=known, unknown_id=known, vocabulary=vocabulary)
        fill = None if missing == "error" else missing
        if fill is not None and not _is_int(fill):
            raise SchemaError(
                f"categorical feature {name!r}: missing is {missing!r}, but must be 'reserve', 'error' or an id."
            )
        return cls(name=name, cardinality=known, fill_id=fill, vocabulary=vocabulary)

    @property
    def num_known(self) -> int:
        """Number of known categories: the rows without the reserved one."""
        return self.cardinality - (self.unknown_id is not None)

    def row(self, known_id: int) -> int:
        """Row of the known category with this id, counted without the reserved row."""
        return known_id if self.unknown_id is None or known_id < self.unknown_id else known_id + 1

    def known_id(self, row: int) -> int | None:
        """Inverse of :meth:`row`; None for the reserved row."""
        if row == self.unknown_id:
            return None
        return row if self.unknown_id is None or row < self.unknown_id else row - 1

    def widen(self, other: CategoricalFeature) -> CategoricalFeature:
        """Unite two features of one name: the rows of ``self`` stay, what only ``other`` knows is appended.

        Raises
        ------
        SchemaError
            One side names its categories and the other counts them, or they are named in different types.
        """
        _check_same_kind(self, other)
        rows = list(dict.fromkeys([*self._tokens(), *other._tokens()]))
        unknown = rows.index(None) if None in rows else None
        known = tuple(token for token in rows if token is not None)
        fill = self.fill_id
        if fill is None and other.fill_id is not None:
            fill = rows.index(other._tokens()[other.fill_id])
        return CategoricalFeature(
            name=self.name,
            cardinality=len(rows),
            fill_id=fill,
            unknown_id=unknown,
            vocabulary=None if self.vocabulary is None else known,  # type: ignore[arg-type]
        )

    def _tokens(self) -> list[Category | None]:
        """Meaning of each row: the category, or None for the reserved row."""
        tokens: list[Category | None] = list(range(self.num_known) if self.vocabulary is None else self.vocabulary)
        if self.unknown_id is not None:
            tokens.insert(self.unknown_id, None)
        return tokens


@dataclass(frozen=True, kw_only=True)
class Scaling(Stored):
    """Affine scaling of a real feature, fitted once and stored: ``(value - mean) / std``."""

    mean: float
    """Mean over the series that have a value, in the unit of the feature."""
    std: float
    """Population standard deviation over the same; positive."""

    def __post_init__(self) -> None:
        if not _is_finite(self.mean) or not _is_finite(self.std) or self.std <= 0:
            raise SchemaError(
                f"scaling: mean {self.mean!r} and std {self.std!r} must be finite and std positive. "
                "A constant feature cannot be scaled."
            )
        object.__setattr__(self, "mean", _as_float(self.mean))
        object.__setattr__(self, "std", _as_float(self.std))


@dataclass(frozen=True, kw_only=True)
class RealFeature(Stored):
    """One static real feature.

    Raises
    ------
    SchemaError
        The name is empty, the fill value is not finite, or a field has the wrong type.
    """

    name: str
    """Name by which features of several datasets are matched."""
    fill: float | None = None
    """Value that a missing (absent, null or NaN) one gets, before scaling; None makes it an error."""
    scaling: Scaling | None = None
    """Scaling applied after filling; None leaves values as they are."""
    indicator: bool = False
    """Whether a further column says 1.0 where the value was missing and 0.0 where it was given."""

    def __post_init__(self) -> None:
        _check_name(self.name)
        if self.fill is not None:
            if not _is_finite(self.fill):
                raise SchemaError(f"real feature {self.name!r}: fill is {self.fill!r}, but must be a finite number.")
            object.__setattr__(self, "fill", _as_float(self.fill))
        if self.scaling is not None and not isinstance(self.scaling, Scaling):
            raise SchemaError(f"real feature {self.name!r}: scaling is {self.scaling!r}, but must be a Scaling.")
        if not isinstance(self.indicator, bool):
            raise SchemaError(f"real feature {self.name!r}: indicator is {self.indicator!r}, but must be a bool.")

    def widen(self, other: RealFeature) -> RealFeature:
        """Unite two features of one name: what ``self`` lacks (fill, scaling, indicator) comes from ``other``."""
        return RealFeature(
            name=self.name,
            fill=self.fill if self.fill is not None else other.fill,
            scaling=self.scaling or other.scaling,
            indicator=self.indicator or other.indicator,
        )


def unnamed(field: str, column: int, namespace: str | None) -> str:
    """Name for a column that its source leaves unnamed, such as ``m3_monthly/feat_static_cat_0``."""
    return (f"{namespace}/" if namespace else "") + f"{field}_{column}"


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_finite(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _as_float(value: float) -> float:
    """Float without a signed zero, so that equal features have equal fingerprints."""
    return float(value) + 0.0


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or not name:
        raise SchemaError(f"static feature: its name is {name!r}, but must be a text that is not empty.")


def _kind(feature: CategoricalFeature) -> str:
    if feature.vocabulary is None:
        return "no vocabulary"
    return "a vocabulary of " + ("whole numbers" if _is_int(next(iter(feature.vocabulary), "")) else "text")


def _check_same_kind(a: CategoricalFeature, b: CategoricalFeature) -> None:
    nameless = () in (a.vocabulary, b.vocabulary) and None not in (a.vocabulary, b.vocabulary)
    if _kind(a) != _kind(b) and not nameless:
        raise SchemaError(
            f"categorical feature {a.name!r}: one schema has {_kind(a)}, the other {_kind(b)}, so that equal ids"
            " may mean different things. Give both a vocabulary of one type, or load one of them under a namespace."
        )
