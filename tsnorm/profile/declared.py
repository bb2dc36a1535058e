"""What a dataset says about itself, carried beside what was counted."""

from __future__ import annotations

import json
import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tsnorm.errors import FrequencyError, MetadataError
from tsnorm.freq import Frequency
from tsnorm.profile.mergeable import Mergeable


@dataclass(frozen=True, kw_only=True)
class Declared(Mergeable):
    """Frequency, prediction length and metadata of a dataset; merges only with the same or with nothing."""

    freq: str | None = None
    """Canonical frequency, such as ``"M"``."""
    prediction_length: int | None = None
    """Steps to forecast."""
    metadata_json: str | None = None
    """Metadata as JSON with sorted keys."""

    @classmethod
    def of(cls, freq: Any, prediction_length: Any, metadata: Any) -> Declared:
        """Read the three as the user gives them; what is None is taken from the metadata, if it says it.

        Raises
        ------
        FrequencyError
            The frequency is unknown.
        MetadataError
            The metadata is no mapping that JSON can hold, or the prediction length no whole number from 1.
        """
        metadata = metadata.dict() if callable(getattr(metadata, "dict", None)) else metadata
        if metadata is not None and not isinstance(metadata, Mapping):
            raise MetadataError(f"metadata: is {metadata!r}, but must be a mapping, such as {{'freq': 'M'}}.")
        said = metadata or {}
        freq = said.get("freq") if freq is None else freq
        length = said.get("prediction_length") if prediction_length is None else prediction_length
        try:
            text = None if metadata is None else json.dumps(dict(metadata), sort_keys=True)
        except (TypeError, ValueError, RecursionError) as error:
            raise MetadataError(f"metadata: JSON cannot hold it ({error}). Keep to numbers, texts, lists.") from error
        return cls(
            freq=None if freq is None else str(freq if isinstance(freq, Frequency) else Frequency.parse(freq)),
            prediction_length=None if length is None else _whole(length),
            metadata_json=text,
        )

    @property
    def metadata(self) -> dict[str, Any] | None:
        """The metadata; a fresh copy."""
        metadata: dict[str, Any] | None = None if self.metadata_json is None else json.loads(self.metadata_json)
        return metadata

    def __or__(self, other: Declared) -> Declared:
        if self.freq != other.freq and None not in (self.freq, other.freq):
            raise FrequencyError(
                f"profiles: one is at {self.freq!r} and one at {other.freq!r}, but a dataset has one frequency."
                " Resample, or profile them apart."
            )
        a, b = self.prediction_length, other.prediction_length
        if a != b and None not in (a, b):
            raise MetadataError(
                f"profiles: prediction_length is {a} in one and {b} in one, but a dataset has one."
                " Give both scans the same prediction_length."
            )
        mine, theirs = self.metadata, other.metadata
        if mine is not None and theirs is not None and self.metadata_json != other.metadata_json:
            key = min(key for key in {*mine, *theirs} if mine.get(key) != theirs.get(key))
            raise MetadataError(
                f"profiles: metadata says {key!r} is {mine.get(key)!r} in one and {theirs.get(key)!r} in one, but"
                " parts of a dataset share their metadata. Give all scans the same."
            )
        return Declared(
            freq=self.freq or other.freq,
            prediction_length=a or b,
            metadata_json=self.metadata_json or other.metadata_json,
        )

    def to_wire(self) -> dict[str, Any]:
        """Return JSON values."""
        return {"freq": self.freq, "prediction_length": self.prediction_length, "metadata": self.metadata}

    @classmethod
    def from_wire(cls, data: Any) -> Declared:
        """Read what :meth:`to_wire` gave."""
        return cls.of(data["freq"], data["prediction_length"], data["metadata"])


def _whole(length: Any) -> int:
    try:
        number = 0 if isinstance(length, bool) else operator.index(length)
    except TypeError:
        number = 0
    if number < 1:
        raise MetadataError(
            f"metadata: prediction_length is {length!r}, but must be a whole number from 1. Correct or omit it."
        )
    return number
