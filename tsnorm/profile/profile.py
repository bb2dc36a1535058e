"""The result of one pass over a dataset."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tsnorm.errors import DataError, FrequencyError, MetadataError
from tsnorm.files import write_atomically
from tsnorm.profile.accumulators import CategoricalColumn, MinMax, RealColumn
from tsnorm.profile.declared import Declared
from tsnorm.profile.mergeable import Mergeable
from tsnorm.profile.schema_of_profile import schema_of_profile
from tsnorm.schema import MissingCategory, MissingReal, Placeholder, StaticSchema

FORMAT = "tsnorm.profile"
VERSION = 1


@dataclass(frozen=True, kw_only=True)
class DatasetProfile(Mergeable):
    """What one pass over a dataset, or a part of it, has counted.

    ``a | b`` is the profile of both parts. It is associative and commutative to the last bit, and
    ``DatasetProfile()`` is its neutral element: shards may be scanned anywhere, in any order, and give the same
    profile, the same schema and the same JSON as one scan.

    Raises
    ------
    FrequencyError, MetadataError
        By ``|``: the parts are at different frequencies, or declare different things.
    """

    num_series: int = 0
    """Number of entries, N."""
    num_steps: int = 0
    """Sum of the lengths T."""
    num_values: int = 0
    """Number of target values: the steps of all channels."""
    num_missing: int = 0
    """Missing target values: null or NaN."""
    num_infinite: int = 0
    """Infinite target values."""
    num_empty: int = 0
    """Series whose target has no values."""
    num_all_missing: int = 0
    """Series that have target values, all of them missing."""
    lengths: MinMax = field(default_factory=MinMax)
    """Shortest and longest target, in steps."""
    target_ndim: MinMax = field(default_factory=MinMax)
    """Dimensions of the targets: 1 is univariate ``(T,)``, 2 is ``(C, T)``."""
    target_channels: MinMax = field(default_factory=MinMax)
    """Channels of the targets; 1 where univariate."""
    starts: MinMax = field(default_factory=MinMax)
    """First and last start, in the order of the texts."""
    presence: dict[str, int] = field(default_factory=dict)
    """Number of entries that have a field, for each field of a record batch."""
    unknown_fields: dict[str, int] = field(default_factory=dict)
    """Number of entries that have a field that is not stored."""
    rounded: dict[str, int] = field(default_factory=dict)
    """Whole numbers by field that float64 could not hold exactly."""
    static_cat_widths: MinMax = field(default_factory=MinMax)
    """Columns of ``feat_static_cat`` in the entries that have it."""
    static_cat: tuple[CategoricalColumn, ...] = ()
    """Its columns."""
    static_real_widths: MinMax = field(default_factory=MinMax)
    """Columns of ``feat_static_real`` in the entries that have it."""
    static_real: tuple[RealColumn, ...] = ()
    """Its columns."""
    dynamic_widths: dict[str, MinMax] = field(default_factory=dict)
    """Features of each dynamic field in the entries that have it."""
    declared: Declared = field(default_factory=Declared)
    """What the dataset says about itself."""

    @property
    def freq(self) -> str | None:
        """Canonical frequency, if it was given."""
        return self.declared.freq

    @property
    def prediction_length(self) -> int | None:
        """Steps to forecast, if they were given."""
        return self.declared.prediction_length

    @property
    def metadata(self) -> dict[str, Any] | None:
        """Dataset metadata, if it was given; a fresh copy."""
        return self.declared.metadata

    @property
    def min_length(self) -> int:
        """Steps of the shortest series; 0 without series."""
        return self.lengths.low or 0

    @property
    def max_length(self) -> int:
        """Steps of the longest series; 0 without series."""
        return self.lengths.high or 0

    @property
    def mean_length(self) -> float | None:
        """Mean of the lengths in steps; None without series."""
        return self.num_steps / self.num_series if self.num_series else None

    @property
    def input_size(self) -> int:
        """Channels C of every target, 1 where univariate.

        Raises
        ------
        DataError
            Targets differ in it.
        """
        if self.target_channels.low != self.target_channels.high:
            raise DataError(
                f"target: has {self.target_channels} channels, but every series of a dataset must have as many."
                " Split the dataset by their number."
            )
        return self.target_channels.low or 1

    @property
    def num_dynamic_real(self) -> int:
        """Features F of ``feat_dynamic_real`` of every entry; 0 where there are none.

        Raises
        ------
        DataError
            Entries differ in it, or some lack the field.
        """
        name = "feat_dynamic_real"
        widths = self.dynamic_widths.get(name, MinMax())
        if self.presence.get(name, 0) < self.num_series:
            widths |= MinMax(0, 0)
        if widths.low != widths.high:
            raise DataError(
                f"{name}: has {widths} features (0 where an entry lacks it), but every entry must have as many."
                " Complete the entries that have fewer."
            )
        return widths.low or 0

    def to_schema(
        self,
        *,
        namespace: str | None = None,
        missing_cat: MissingCategory = "reserve",
        missing_real: MissingReal = "mean",
        indicator: bool = False,
        scale_reals: bool = False,
        placeholder: Placeholder = "column",
        recode: bool = False,
    ) -> StaticSchema:
        """Schema of the static features: what the metadata declares, checked against the data, else what the data has.

        Where the metadata declares nothing, texts become a sorted vocabulary, whole numbers (be they written
        1.0) ids 0..largest, and true and false two ids. A feature that is declared and that no entry carries is
        kept, to be filled.

        Parameters
        ----------
        namespace
            Prefix for features without a name, usually the dataset's name.
        missing_cat
            Policy for missing categories; see :meth:`tsnorm.schema.CategoricalFeature.make`.
        missing_real
            ``"mean"`` over the finite values (0.0 for a feature that no entry carries), a value, or ``"error"``.
        indicator
            Whether each real feature gets a further column that says where it was missing.
        scale_reals
            Whether reals are scaled by mean and population standard deviation. A constant feature is centred
            only, its deviation taken as 1; one that no entry carries is left as it is.
        placeholder
            See :class:`tsnorm.schema.StaticSchema`.
        recode
            Whether whole numbers become a sorted vocabulary, so that sparse ids get dense rows.

        Raises
        ------
        SchemaMismatchError
            Entries differ in their number of columns, or columns do not fit what the metadata declares or
            cannot be ids. The message names the column and what was seen.
        SchemaError, MetadataError
            The policies or the metadata contradict themselves.

        Warns
        -----
        TsnormWarning
            Undeclared ids are so sparse that most rows of the table would never be trained.
        """
        return schema_of_profile(
            self,
            namespace=namespace,
            missing_cat=missing_cat,
            missing_real=missing_real,
            indicator=indicator,
            scale_reals=scale_reals,
            placeholder=placeholder,
            recode=recode,
        )

    def summary(self) -> dict[str, Any]:
        """Return the profile in JSON values to look at: rounded once, distinct values only counted."""
        summary = self.to_wire() | {"mean_length": self.mean_length}
        declared = summary.pop("declared")
        for column, wire in zip(self.static_cat, summary["static_cat"], strict=True):
            wire |= {"kind": column.kind, "distinct": column.distinct.count}
        for real, wire in zip(self.static_real, summary["static_real"], strict=True):
            del wire["moments"]
            wire |= {"num_values": real.moments.count, "mean": real.moments.mean, "std": real.moments.std}
        return {"freq": declared["freq"], "prediction_length": declared["prediction_length"], **summary}

    def to_json(self) -> str:
        """Return versioned JSON, the same bytes for equal profiles; :meth:`from_json` gives back an equal one."""
        content = {"format": FORMAT, "version": VERSION, **self.to_wire()}
        return json.dumps(content, indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> DatasetProfile:
        """Read what :meth:`to_json` wrote.

        Raises
        ------
        MetadataError
            The text is no JSON, no tsnorm profile, of another version, or has unknown or missing fields.
        """
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise MetadataError(f"profile: not JSON ({error}). Write it with `tsnorm profile`.") from error
        if not isinstance(data, Mapping) or data.get("format") != FORMAT:
            raise MetadataError(f"profile: this JSON is no tsnorm profile, which says 'format': {FORMAT!r}.")
        if data.get("version") != VERSION:
            raise MetadataError(
                f"profile: version is {data.get('version')!r}, but this tsnorm reads version {VERSION}."
                " Update tsnorm, or scan the dataset anew."
            )
        try:
            return cls.from_wire({key: value for key, value in data.items() if key not in ("format", "version")})
        except (FrequencyError, MetadataError):
            raise
        except (TypeError, KeyError, AttributeError, ValueError) as error:
            raise MetadataError(f"profile: a field is missing, unknown or of the wrong type ({error}).") from error

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write :meth:`to_json` to a file, atomically."""
        write_atomically(path, self.to_json().encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> DatasetProfile:
        """Read a file that :meth:`save` wrote; errors name the file."""
        try:
            return cls.from_json(Path(path).read_bytes())
        except MetadataError as error:
            raise MetadataError(f"{os.fspath(path)}: {error}") from error
