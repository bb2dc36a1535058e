"""From what a dataset declares and what was counted in it to one schema."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tsnorm.errors import SchemaMismatchError, TsnormWarning
from tsnorm.profile.accumulators import DISTINCT_LIMIT, CategoricalColumn, MinMax, RealColumn
from tsnorm.schema import (
    CategoricalFeature,
    MissingCategory,
    MissingReal,
    Placeholder,
    RealFeature,
    Scaling,
    StaticSchema,
)
from tsnorm.schema.features import unnamed
from tsnorm.schema.sources import categorical_from_metadata, real_names_from_metadata

if TYPE_CHECKING:
    from tsnorm.profile.profile import DatasetProfile

CAT, REAL = "feat_static_cat", "feat_static_real"
_SPARSE = 10  # table rows for each category that occurs
_SMALL_TABLE = 1000


def schema_of_profile(
    profile: DatasetProfile,
    *,
    namespace: str | None,
    missing_cat: MissingCategory,
    missing_real: MissingReal,
    indicator: bool,
    scale_reals: bool,
    placeholder: Placeholder,
    recode: bool,
) -> StaticSchema:
    """See :meth:`tsnorm.profile.DatasetProfile.to_schema`."""
    metadata = profile.metadata or {}
    declared_cat = categorical_from_metadata(metadata, namespace, "reserve")
    declared_real = real_names_from_metadata(metadata, namespace)
    _check_stray(CAT, profile, [feature.name for feature in declared_cat])
    _check_stray(REAL, profile, declared_real)
    num_cat = _num_columns(CAT, profile.static_cat_widths, len(declared_cat))
    num_real = _num_columns(REAL, profile.static_real_widths, len(declared_real))
    columns = [
        _Column(
            index=k,
            name=declared_cat[k].name if declared_cat else unnamed(CAT, k, namespace),
            seen=profile.static_cat[k] if profile.static_cat else CategoricalColumn(),
            declared=declared_cat[k] if declared_cat else None,
        )
        for k in range(num_cat)
    ]
    return StaticSchema(
        categorical=tuple(
            CategoricalFeature.make(
                column.name, **_categories(column, columns, missing_cat, recode), missing=missing_cat
            )
            for column in columns
        ),
        real=tuple(
            _real(
                declared_real[r] if declared_real else unnamed(REAL, r, namespace),
                profile.static_real[r] if profile.static_real else None,
                missing_real,
                indicator,
                scale_reals,
            )
            for r in range(num_real)
        ),
        placeholder=placeholder,
    )


@dataclass(frozen=True, kw_only=True)
class _Column:
    """One categorical column: as it was seen, and as it was declared."""

    index: int
    name: str
    seen: CategoricalColumn
    declared: CategoricalFeature | None

    def __str__(self) -> str:
        return f"{CAT}: {self.name!r} (column {self.index})"


def _check_stray(field: str, profile: DatasetProfile, names: Sequence[str]) -> None:
    """Refuse declared features that entries carry under their own name, where they would be lost."""
    stray = [name for name in names if name in profile.unknown_fields]
    if stray:
        raise SchemaMismatchError(
            f"{field}: {stray[0]!r} is a field of its own in {profile.unknown_fields[stray[0]]} entries, but the"
            f" declared features must stand in {field}, as a list. Put it there."
        )


def _num_columns(field: str, widths: MinMax, declared: int) -> int:
    if not widths:
        return declared
    if declared and (widths.low, widths.high) != (declared, declared):
        raise SchemaMismatchError(
            f"{field}: entries have {widths} columns, but the metadata declares {declared}."
            " Correct the metadata, or the entries: a missing value is null, a missing list is left out."
        )
    if widths.low != widths.high:
        raise SchemaMismatchError(
            f"{field}: entries have {widths} columns, but must all have as many."
            " Write null for a missing value, or leave the whole field out."
        )
    return int(widths.high)


def _categories(column: _Column, columns: Sequence[_Column], missing: MissingCategory, recode: bool) -> dict[str, Any]:
    """Arguments for :meth:`CategoricalFeature.make`: ``num_known`` or ``vocabulary``."""
    seen, declared = column.seen, column.declared
    if seen.kind == "mixed":
        raise SchemaMismatchError(
            f"{column}: holds {seen.num_text} texts, {seen.num_bool} times true or false and"
            f" {seen.num_whole + seen.num_fractional} numbers, but must be of one kind."
            " Write all as text, or all as ids."
        )
    if seen.kind == "float":
        raise SchemaMismatchError(
            f"{column}: {_example(seen)}{seen.num_fractional} value(s) are not whole, but ids are."
            f" Recode the categories, or put real numbers into {REAL}."
        )
    if declared is not None and seen.kind == "none":
        return _as_declared(declared)
    if declared is not None and declared.vocabulary is not None:
        return _fit_to_vocabulary(column, declared, columns)
    if seen.kind == "text":
        return {"vocabulary": _vocabulary(column)}
    names_ids = seen.kind == "int" and recode
    if seen.kind != "none" and seen.numbers.low < 0:
        raise SchemaMismatchError(
            f"{column}: the smallest id is {seen.numbers.low}, but ids start at 0."
            " pandas marks a missing category with -1: write null, or leave it out."
        )
    if names_ids:
        return {"vocabulary": _vocabulary(column)}
    if declared is not None:
        _check_range(column, declared, columns)
        return _as_declared(declared)
    if seen.kind == "none":
        if missing != "reserve":
            raise SchemaMismatchError(
                f"{column}: every value is missing, but without one there is no category."
                " Declare the cardinality in the metadata, or use missing_cat='reserve'."
            )
        return {"num_known": 0}
    if seen.kind == "bool":
        return {"num_known": 2}
    return {"num_known": _rows_for_ids(column)}


def _as_declared(declared: CategoricalFeature) -> dict[str, Any]:
    return {"num_known": declared.num_known} if declared.vocabulary is None else {"vocabulary": declared.vocabulary}


def _fit_to_vocabulary(column: _Column, declared: CategoricalFeature, columns: Sequence[_Column]) -> dict[str, Any]:
    """Texts and whole numbers name a category of their type; beside texts, whole numbers are ids."""
    seen, vocabulary = column.seen, declared.vocabulary or ()
    names_text = isinstance(next(iter(vocabulary), ""), str)
    if (seen.kind == "bool") or (seen.kind == "text" and not names_text):
        raise SchemaMismatchError(
            f"{column}: holds {'text' if seen.kind == 'text' else 'true and false'}, but the vocabulary in the metadata"
            f" names {'text' if names_text else 'whole numbers'}. Give the metadata the categories of the data."
        )
    if seen.kind == "int" and names_text:
        _check_range(column, declared, columns)
        return _as_declared(declared)
    values = seen.distinct.sorted()
    known = set(vocabulary)
    unknown = None if values is None else [value for value in values if value not in known]
    if unknown is None or unknown:
        what = _listed(unknown) if unknown else f"more than {DISTINCT_LIMIT} categories"
        raise SchemaMismatchError(
            f"{column}: holds {what}, but the vocabulary in the metadata knows only {_listed(vocabulary)}."
            " Add what is missing to it, or correct the entries."
        )
    return _as_declared(declared)


def _listed(values: Sequence[Any]) -> str:
    more = f" and {len(values) - 5} more" if len(values) > 5 else ""
    return ", ".join(map(repr, values[:5])) + more


def _vocabulary(column: _Column) -> tuple[Any, ...]:
    values, declared = column.seen.distinct.sorted(), column.declared
    if values is None:
        raise SchemaMismatchError(
            f"{column}: has more than {DISTINCT_LIMIT} distinct values, but a vocabulary holds at most as many."
            " Is it an item_id? Drop the column, or number the categories."
        )
    if declared is not None and len(values) > declared.num_known:
        raise SchemaMismatchError(
            f"{column}: {len(values)} distinct categories are seen, from {values[0]!r} to {values[-1]!r}, but its"
            f" cardinality is {declared.num_known}. Correct the metadata."
        )
    return tuple(values)


def _check_range(column: _Column, declared: CategoricalFeature, columns: Sequence[_Column]) -> None:
    numbers = column.seen.numbers
    if numbers.low >= 0 and numbers.high < declared.num_known:
        return
    seen = f"the smallest id is {numbers.low}" if numbers.low < 0 else f"the largest id is {numbers.high}"
    raise SchemaMismatchError(
        f"{column}: {seen}, but its cardinality is {declared.num_known} (ids 0..{declared.num_known - 1})."
        f" {_hint(column, columns)}Correct the metadata or the entries."
    )


def _hint(column: _Column, columns: Sequence[_Column]) -> str:
    def fits(values: _Column, table: _Column) -> bool:
        size = 0 if table.declared is None else table.declared.num_known
        return values.seen.kind == "int" and values.seen.numbers.low >= 0 and values.seen.numbers.high < size

    for other in columns:
        if other is not column and fits(column, other) and fits(other, column):
            first, second = sorted((column.index, other.index))
            return f"Columns {first} and {second} look swapped. "
    numbers, distinct = column.seen.numbers, column.seen.distinct.count
    if distinct is not None and numbers.low >= 0 and (numbers.high + 1) >= _SPARSE * distinct:
        return f"Sparse ids: {distinct} distinct, largest {numbers.high}; recode=True makes a vocabulary. "
    if column.declared is not None and (numbers.low, numbers.high) == (1, column.declared.num_known):
        return "The ids look counted from 1. "
    return ""


def _rows_for_ids(column: _Column) -> int:
    rows, distinct = int(column.seen.numbers.high) + 1, column.seen.distinct.count
    if distinct is not None and rows > _SMALL_TABLE and rows >= _SPARSE * distinct:
        warnings.warn(
            f"{column}: sparse ids: {distinct} distinct, largest {rows - 1}, so that {rows - distinct} rows of the"
            " table would never be trained. recode=True makes a vocabulary.",
            TsnormWarning,
            stacklevel=6,
        )
    return rows


def _example(seen: CategoricalColumn) -> str:
    fractions = [value for value in seen.distinct.sorted() or () if isinstance(value, float)]
    return f"holds {fractions[0]!r}, and " if fractions else ""


def _real(name: str, seen: RealColumn | None, missing: MissingReal, indicator: bool, scale_reals: bool) -> RealFeature:
    mean = None if seen is None else seen.moments.mean
    if seen is not None and mean is None and missing == "mean":
        raise SchemaMismatchError(
            f"{REAL}: {name!r} has no finite value ({seen.num_missing} missing, {seen.num_infinite} infinite), but a"
            " mean needs one. Give a value to fill with, such as missing_real=0.0, or drop the column."
        )
    fill = None if missing == "error" else (mean or 0.0) if missing == "mean" else missing
    scaling = None
    if scale_reals and seen is not None and mean is not None:
        scaling = Scaling(mean=mean, std=seen.moments.std or 1.0)
    return RealFeature(name=name, fill=fill, scaling=scaling, indicator=indicator)
