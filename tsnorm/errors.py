"""What tsnorm raises and warns, and how it says where.

Every message reads *where*: *what was seen*, but *what was expected*. *Way out.*
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

SOURCE_FIELD = "tsnorm_source"
"""Entry field in which tsnorm's readers leave the :class:`Place` an entry was read from."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where an entry stands, for messages.

    Parameters
    ----------
    file
        Path of the file as the user gave it, or None if the entry was not read from a file.
    row
        Row of the entry, from 1: the physical line of a JSON lines file, else the position in the stream.
    item_id
        ``item_id`` of the entry as the data says it.
    """

    file: str | None = None
    row: int | None = None
    item_id: Any = None

    @classmethod
    def of(cls, entry: Mapping[str, Any], row: int | None = None) -> Place:
        """Place of an entry: what a reader left in it, else its ``item_id`` and the given row."""
        left = entry.get(SOURCE_FIELD)
        if isinstance(left, cls):
            return left
        return cls(row=row, item_id=entry.get("item_id"))

    def __str__(self) -> str:
        """Read like ``item 'T0042' (row 43 of train/data.jsonl)``."""
        where = " of ".join(
            part for part in (f"row {self.row}" if self.row is not None else "", self.file or "") if part
        )
        if self.item_id is None:
            return where or "an entry without item_id"
        return f"item {self.item_id!r}" + (f" ({where})" if where else "")

    def field(self, name: str) -> str:
        """Read like ``feat_static_cat of item 'T0042' (row 43 of train/data.jsonl)``."""
        return f"{name} of {self}"


class TsnormError(Exception):
    """Root of everything tsnorm raises on purpose."""


class SchemaError(TsnormError, ValueError):
    """A schema contradicts itself, or two schemas mean different things by one name."""


class MetadataError(TsnormError, ValueError):
    """Dataset metadata does not say what it must, or not in a form that can be read."""


class FrequencyError(TsnormError, ValueError):
    """A frequency string is unknown, or two datasets do not share one."""


class DataError(TsnormError, ValueError):
    """A value in the data cannot be used as it is."""


class SchemaMismatchError(DataError):
    """A static feature of an entry does not fit the schema."""


class ConfigMismatchError(TsnormError, ValueError):
    """A model config, or a batch, does not fit the data it is used with."""


class TrainingError(TsnormError, ArithmeticError):
    """Training went where no model comes from."""


class WorldError(TsnormError, ValueError):
    """Ranks, workers and batch size do not fit together."""


class TsnormWarning(UserWarning):
    """Root of everything tsnorm warns about."""


class PlaceholderWarning(TsnormWarning):
    """The model expects a static column that the data does not have; it is filled."""


class IgnoredFieldWarning(TsnormWarning):
    """A field of the data is no input of the model and is left out."""


class PrecisionWarning(TsnormWarning):
    """Values cannot be held exactly in the type used for training."""


class ConfigWarning(TsnormWarning):
    """A model config was changed, or works otherwise than it reads."""
