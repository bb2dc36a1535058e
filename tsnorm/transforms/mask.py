"""Training the reserved row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from gluonts.dataset.field_names import FieldName

from tsnorm.errors import DataError, Place, SchemaError
from tsnorm.rng import text_key, uniform_at
from tsnorm.schema import StaticSchema
from tsnorm.transforms.base import Entry, EntryTransformation

UNKNOWN_SHARE = 0.05
"""Share of known categories that train the reserved row, unless it is set."""
SERIES_KEY = "series_key"
"""Entry field with a text that tells the series apart; without it ``item_id`` must."""


@dataclass(frozen=True)
class MaskStaticCat(EntryTransformation):
    """In training, replace a small share of known categories by the reserved row.

    Without it no window ever trains that row, and forecasts for new items use random weights. It goes behind
    the splitter. Whether a window is hit is a pure function of the seed, the series, the window's start and
    the column: the same on any rank, in any order, and after a resume.

    Parameters
    ----------
    schema
        Schema of the rows; features without a reserved row are left alone.
    share
        Share of windows, from 0.0 to 1.0, for each column on its own.
    seed
        Seed; training loops that pass over the data again mix the epoch in.

    Raises
    ------
    SchemaError
        ``share`` is outside its range.
    DataError
        When iterated: an entry is no window with ``feat_static_cat``.
    """

    schema: StaticSchema
    share: float
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0.0 <= self.share <= 1.0:
            raise SchemaError(f"MaskStaticCat: share is {self.share!r}, but must be from 0.0 to 1.0.")

    def change(self, entry: Entry, place: Place, is_train: bool) -> Entry:
        """Replace rows in a copy of ``feat_static_cat``; see the class."""
        features = self.schema.categorical
        if not is_train or not features or self.share == 0.0:
            return entry
        for needed in (FieldName.FEAT_STATIC_CAT, FieldName.FORECAST_START):
            if needed not in entry:
                raise DataError(
                    f"{place.field(needed)}: it is missing, but MaskStaticCat works on windows with static categories."
                    " Put it behind static_features and the splitter."
                )
        reserved = np.array([-1 if f.unknown_id is None else f.unknown_id for f in features], dtype=np.int64)
        series = text_key(entry.get(SERIES_KEY) or str(entry.get(FieldName.ITEM_ID)))
        window = entry[FieldName.FORECAST_START].ordinal
        drawn = uniform_at(self.seed, series, window, np.arange(len(features), dtype=np.uint64))
        hit = (drawn < self.share) & (reserved >= 0)
        rows = np.where(hit, reserved, entry[FieldName.FEAT_STATIC_CAT])
        self.counts["masked"] += int(hit.sum())
        entry[FieldName.FEAT_STATIC_CAT] = rows
        return entry
