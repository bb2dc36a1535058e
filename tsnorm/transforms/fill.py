"""Filling static features: after these, every entry carries them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from gluonts.dataset.field_names import FieldName

from tsnorm.errors import Place, SchemaError, SchemaMismatchError
from tsnorm.schema import RealFeature, StaticSchema
from tsnorm.transforms.base import Entry, EntryTransformation
from tsnorm.transforms.encode import as_id
from tsnorm.transforms.values import read_statics

CAT, REAL = FieldName.FEAT_STATIC_CAT, FieldName.FEAT_STATIC_REAL
_LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class FillStaticCat(EntryTransformation):
    """Give every entry ``feat_static_cat``: int64, shape (K,), rows of the schema's tables.

    A missing row gets the feature's ``fill_id`` and is counted under ``filled <feature>``. Values are rows, as
    :class:`EncodeStaticCat` makes them; alone it serves data whose ids are rows already.

    Parameters
    ----------
    schema
        Schema that the model was built with. Without categorical features it gives one 0 for the placeholder,
        or drops the key where placeholders are omitted.

    Raises
    ------
    SchemaMismatchError
        When iterated: a value is no row of its table, or missing where the schema says that is an error.
    """

    schema: StaticSchema

    def change(self, entry: Entry, place: Place, is_train: bool) -> Entry:
        """Set ``feat_static_cat``; see the class."""
        features = self.schema.categorical
        values = read_statics(entry, CAT, [feature.name for feature in features], place)
        if not features:
            return _set_placeholder(entry, CAT, np.zeros(self.schema.num_static_cat, dtype=np.int64))
        rows = np.empty(len(features), dtype=np.int64)
        for k, (feature, value) in enumerate(zip(features, values, strict=True)):
            if value is None:
                if feature.fill_id is None:
                    raise _missing(place, CAT, feature.name, "missing_cat='reserve'")
                self.counts[f"filled {feature.name}"] += 1
                rows[k] = feature.fill_id
                continue
            if isinstance(value, str):
                raise SchemaMismatchError(
                    f"{place.field(CAT)}: {feature.name!r} is the text {value!r}, but must be a table row here."
                    " Put EncodeStaticCat before FillStaticCat, or use static_features(schema)."
                )
            row = as_id(value, feature.name, place)
            if row >= feature.cardinality:
                raise SchemaMismatchError(
                    f"{place.field(CAT)}: {feature.name!r} is {row}, but its cardinality is {feature.cardinality}"
                    f" (ids 0..{feature.cardinality - 1}). Widen the schema with `StaticSchema | other`,"
                    " or profile the dataset anew."
                )
            rows[k] = row
        entry[CAT] = rows
        return entry


@dataclass(frozen=True)
class FillStaticReal(EntryTransformation):
    """Give every entry ``feat_static_real``: float32, shape (R,), scaled where the schema says so.

    NaN and null count as missing: they get the feature's ``fill`` and are counted under ``filled <feature>``.
    Missing-indicators follow the values.

    Parameters
    ----------
    schema
        Schema that the model was built with. Without real features it gives one 0.0 for the placeholder, or
        drops the key where placeholders are omitted.
    source
        Schema of this dataset's own columns, where it has fewer or other ones; None means ``schema``.

    Raises
    ------
    SchemaError
        ``source`` has a feature that ``schema`` lacks.
    SchemaMismatchError
        When iterated: a value is no finite number, or missing where the schema says that is an error.
    """

    schema: StaticSchema
    source: StaticSchema | None = None

    def __post_init__(self) -> None:
        known = {feature.name for feature in self.schema.real}
        if stray := [f.name for f in (self.source or self.schema).real if f.name not in known]:
            raise SchemaError(
                f"real feature {stray[0]!r} of the source is not in the schema. Widen it: schema | source."
            )

    def change(self, entry: Entry, place: Place, is_train: bool) -> Entry:
        """Set ``feat_static_real``; see the class."""
        names = [feature.name for feature in (self.source or self.schema).real]
        given = dict(zip(names, read_statics(entry, REAL, names, place), strict=True))
        features = self.schema.real
        if not features:
            return _set_placeholder(entry, REAL, np.zeros(self.schema.num_static_real, dtype=np.float32))
        values = [self._value(feature, given.get(feature.name), place) for feature in features]
        indicators = [float(given.get(f.name) is None) for f in features if f.indicator]
        entry[REAL] = np.array([*values, *indicators], dtype=np.float32)
        return entry

    def _value(self, feature: RealFeature, given: Any, place: Place) -> float:
        if given is None:
            if feature.fill is None:
                raise _missing(place, REAL, feature.name, "missing_real='mean'")
            self.counts[f"filled {feature.name}"] += 1
            value = feature.fill
        elif not isinstance(given, Real):
            raise SchemaMismatchError(
                f"{place.field(REAL)}: {feature.name!r} is {given!r}, but must be a number."
                " Put a category into feat_static_cat."
            )
        else:
            value = _as_float(given)
        if feature.scaling is not None:
            value = (value - feature.scaling.mean) / feature.scaling.std
        if not abs(value) <= _LARGEST:
            raise SchemaMismatchError(
                f"{place.field(REAL)}: {feature.name!r} is {given!r}, but must be finite in float32."
                " Correct it, or leave it out to have it filled."
            )
        return value


def _as_float(number: Real) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf


def _set_placeholder(entry: Entry, field: str, column: np.ndarray[Any, Any]) -> Entry:
    if column.size:
        entry[field] = column
    else:
        entry.pop(field, None)
    return entry


def _missing(place: Place, field: str, name: str, policy: str) -> SchemaMismatchError:
    return SchemaMismatchError(
        f"{place.field(field)}: {name!r} is missing, but the schema says that is an error."
        f" Add the value, or make the schema with {policy} to have it filled."
    )
