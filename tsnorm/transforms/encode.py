"""Categories of the data to rows of the model's tables."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any

from gluonts.dataset.field_names import FieldName

from tsnorm.errors import Place, SchemaError, SchemaMismatchError
from tsnorm.schema import CategoricalFeature, StaticSchema
from tsnorm.transforms.base import Entry, EntryTransformation
from tsnorm.transforms.values import read_statics

FIELD = FieldName.FEAT_STATIC_CAT


@dataclass(frozen=True)
class EncodeStaticCat(EntryTransformation):
    """Turn categories, as the data names or counts them, into table rows of the schema.

    What the data holds depends on the feature: names, where it has a vocabulary; or ids, which count the
    known categories from 0. In a widened schema row and id are not the same number, since a row never moves
    and the reserved one may stand in the middle: apply this once, to the data as it is.

    Missing categories stay missing (None) for :class:`FillStaticCat`. Unseen names become the reserved row, and
    are counted under ``unknown <feature>``; an id beyond the cardinality is an error, as the metadata is then
    wrong for the dataset.

    Parameters
    ----------
    schema
        Schema that the model was built with; its K columns come out.
    source
        Schema of this dataset's own columns, where it has fewer or other ones; None means ``schema``.

    Raises
    ------
    SchemaError
        ``source`` has a feature, or more ids of it, that ``schema`` lacks, or means something else by its ids.
    SchemaMismatchError
        When iterated: an entry's categories do not fit.
    """

    schema: StaticSchema
    source: StaticSchema | None = None

    def __post_init__(self) -> None:
        targets = {feature.name: feature for feature in self.schema.categorical}
        for column in () if self.source is None else self._columns:
            target = targets.get(column.name)
            if target is None:
                raise SchemaError(
                    f"categorical feature {column.name!r} of the source is not in the schema."
                    " Widen it: schema | source."
                )
            target.widen(column)
            if column.vocabulary is None and column.num_known > target.num_known:
                raise SchemaError(
                    f"categorical feature {column.name!r}: the source has {column.num_known} categories, but the schema"
                    f" has rows for {target.num_known}. Widen it: schema | source."
                )

    @property
    def _columns(self) -> tuple[CategoricalFeature, ...]:
        return (self.source or self.schema).categorical

    @cached_property
    def _row_tables(self) -> tuple[dict[Any, int], ...]:
        """For each column of the source: category name, or id where there are no names -> row of the schema."""
        targets = {feature.name: feature for feature in self.schema.categorical}
        tables = []
        for column in self._columns:
            target = targets[column.name]
            ids = {name: k for k, name in enumerate(target.vocabulary or range(target.num_known))}
            tables.append({name: target.row(k) for name, k in ids.items()})
        return tuple(tables)

    def change(self, entry: Entry, place: Place, is_train: bool) -> Entry:
        """Set ``feat_static_cat`` to a list of K rows or None; see the class."""
        columns = self._columns
        values = read_statics(entry, FIELD, [column.name for column in columns], place)
        rows = {
            column.name: None if value is None else self._row(value, k, values, place)
            for k, (column, value) in enumerate(zip(columns, values, strict=True))
        }
        entry[FIELD] = [rows.get(feature.name) for feature in self.schema.categorical] or None
        return entry

    def _row(self, value: Any, k: int, values: list[Any], place: Place) -> int:
        column, table = self._columns[k], self._row_tables[k]
        if isinstance(value, str) or _is_names_of_numbers(column):
            return self._row_of_name(value, column, table, place)
        if isinstance(value, bool) and column.vocabulary is not None:
            raise SchemaMismatchError(
                f"{place.field(FIELD)}: {column.name!r} is {value!r}, but its vocabulary names text."
            )
        known_id = as_id(value, column.name, place)
        if known_id >= column.num_known:
            raise SchemaMismatchError(
                f"{place.field(FIELD)}: {column.name!r} is {known_id}, but its cardinality is {column.num_known}"
                f" (ids 0..{column.num_known - 1}). {_way_out(columns=self._columns, values=values)}"
            )
        if column.vocabulary is None:
            return table[known_id]
        return self._row_of_name(column.vocabulary[known_id], column, table, place)

    def _row_of_name(self, value: Any, column: CategoricalFeature, table: dict[Any, int], place: Place) -> int:
        if column.vocabulary is None:
            raise SchemaMismatchError(
                f"{place.field(FIELD)}: {column.name!r} is the text {value!r}, but has no vocabulary that gives it"
                " an id. Give the feature a vocabulary, or write ids."
            )
        if _is_names_of_numbers(column) != (not isinstance(value, str)):
            raise SchemaMismatchError(
                f"{place.field(FIELD)}: {column.name!r} is {value!r}, but its vocabulary names whole numbers."
            )
        name = value if isinstance(value, str) else as_id(value, column.name, place, lowest=None)
        row = table.get(name)
        if row is not None:
            return row
        target = next(feature for feature in self.schema.categorical if feature.name == column.name)
        if target.unknown_id is None:
            known = ", ".join(map(repr, (target.vocabulary or ())[:10]))
            raise SchemaMismatchError(
                f"{place.field(FIELD)}: {column.name!r} is {name!r}, but its vocabulary knows {known}"
                f"{', ...' if target.num_known > 10 else ''} and reserves no row for unknown ones."
                " Widen the schema, or make it with missing_cat='reserve'."
            )
        self.counts[f"unknown {column.name}"] += 1
        return target.unknown_id


def as_id(value: Any, name: str, place: Place, lowest: int | None = 0) -> int:
    """Whole number that a value stands for: an int, a bool, or a float without a fraction (1.0, not 1.7)."""
    try:
        number: int | None = int(value) if isinstance(value, Real) else None  # type: ignore[call-overload]
    except (OverflowError, ValueError):  # infinite, NaN
        number = None
    if number is None or number != value:
        raise SchemaMismatchError(
            f"{place.field(FIELD)}: {name!r} is {value!r}, but an id must be a whole number."
            " Recode the categories, or put a real number into feat_static_real."
        )
    if lowest is not None and number < lowest:
        raise SchemaMismatchError(
            f"{place.field(FIELD)}: {name!r} is {number}, but ids start at 0."
            " pandas marks a missing category with -1: write null, or leave it out."
        )
    return number


def _is_names_of_numbers(column: CategoricalFeature) -> bool:
    return bool(column.vocabulary) and not isinstance(column.vocabulary[0], str)  # type: ignore[index]


def _way_out(columns: tuple[CategoricalFeature, ...], values: list[Any]) -> str:
    """Say which two columns look swapped, else how to widen."""
    for i, a in enumerate(columns):
        for j, b in enumerate(columns[:i]):
            pair = values[i], values[j]
            if all(isinstance(v, int | float) for v in pair):
                fits = pair[0] < a.num_known and pair[1] < b.num_known
                if not fits and pair[0] < b.num_known and pair[1] < a.num_known:
                    return f"Columns {j} and {i} look swapped."
    return "Widen the schema with `StaticSchema | other`, or profile the dataset anew."
