"""Datasets as loaders use them: entries, and what is known of all of them."""

from __future__ import annotations

import difflib
import os
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from gluonts.dataset.field_names import FieldName

from tsnorm.errors import (
    ConfigMismatchError,
    DataError,
    FrequencyError,
    IgnoredFieldWarning,
    MetadataError,
    Place,
    PlaceholderWarning,
    SchemaError,
    SchemaMismatchError,
    TsnormWarning,
)
from tsnorm.freq import Frequency
from tsnorm.pipeline.config import as_frequency
from tsnorm.profile import DatasetProfile, scan
from tsnorm.schema import StaticSchema
from tsnorm.store import entries as entries_of
from tsnorm.store import folder_files, read_gluonts_folder, read_metadata, record_batches
from tsnorm.transforms import EncodeStaticCat, Entry
from tsnorm.transforms.encode import as_id
from tsnorm.transforms.values import read_statics

_CAT, _REAL = FieldName.FEAT_STATIC_CAT, FieldName.FEAT_STATIC_REAL
_OF_BATCH = {"static_categorical_features": _CAT, "static_real_features": _REAL, "past_values": FieldName.TARGET}
"""Names that people take from the batch for the field of the data."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TimeSeriesDataset:
    """Entries of one split of one dataset in memory, with their profile and the schema of their own columns."""

    name: str
    """Name for messages and for features that the source leaves unnamed."""
    entries: Sequence[Entry]
    """The series, in the order of the source."""
    freq: Frequency
    """The one frequency of all series."""
    schema: StaticSchema
    """Schema of the entries' own static columns."""
    profile: DatasetProfile
    """Profile of the entries."""
    prediction_length: int | None = None
    """Steps to forecast that the metadata states, if it does."""

    def __repr__(self) -> str:
        statics = ", ".join(self.schema.names) or "none"
        return f"<TimeSeriesDataset {self.name!r}: {len(self.entries):,} series at {self.freq}, statics: {statics}>"

    @classmethod
    def from_folder(
        cls,
        path: str | os.PathLike[str],
        *,
        split: str = "train",
        schema: StaticSchema | None = None,
        **policies: Any,
    ) -> TimeSeriesDataset:
        """Read a GluonTS dataset folder.

        Parameters
        ----------
        path
            Folder with ``metadata.json`` and a folder for each split.
        split
            ``train``, ``test``, ...
        schema
            Schema of the columns, where it is known: that of the train split for the test split. None derives
            it from metadata and profile.
        policies
            Keywords of :meth:`tsnorm.profile.DatasetProfile.to_schema`, such as ``missing_cat``.

        Raises
        ------
        MetadataError, FrequencyError, DataError, SchemaMismatchError
            What is wrong, with file and row.

        Warns
        -----
        IgnoredFieldWarning
            Entries have fields that nothing reads, such as a misspelt one.
        PlaceholderWarning
            The metadata declares a feature that no entry carries.
        """
        metadata = read_metadata(path)
        where = f"{Path(path) / 'metadata.json'}: "
        try:
            freq = Frequency.parse(metadata.get("freq"))
        except FrequencyError as error:
            raise FrequencyError(f"{where}{error}") from error
        batches = list(read_gluonts_folder(path, split))
        _tell_skipped(folder_files(path, split)[1])
        return cls._of_batches(
            batches,
            name=Path(path).resolve().name,
            where=where,
            freq=freq,
            schema=schema,
            prediction_length=metadata.get("prediction_length"),
            metadata=metadata,
            policies=policies,
        )

    @classmethod
    def from_entries(
        cls,
        entries: Iterable[Mapping[str, Any]],
        *,
        freq: Frequency | str,
        name: str = "entries",
        schema: StaticSchema | None = None,
        prediction_length: int | None = None,
        metadata: Any = None,
        **policies: Any,
    ) -> TimeSeriesDataset:
        """Take entries from any iterable, such as a GluonTS dataset.

        Parameters
        ----------
        entries
            GluonTS entries; a start that is a ``pandas.Period`` must be at ``freq``.
        freq
            Frequency of all series, any spelling.
        name
            Name of the dataset; datasets that are trained on together have names of their own.
        schema, policies
            See :meth:`from_folder`.
        prediction_length
            Steps to forecast, if the dataset has a number of its own.
        metadata
            What a ``metadata.json`` would declare, such as ``feat_static_cat`` with names and cardinalities: a dict, or
            GluonTS ``MetaData``.
        """
        frequency = as_frequency(freq)
        return cls._of_batches(
            list(record_batches(_at(frequency, entries))),
            name=name,
            where=f"{name}: ",
            freq=frequency,
            schema=schema,
            prediction_length=prediction_length,
            metadata=metadata.dict() if hasattr(metadata, "dict") else metadata,
            policies=policies,
        )

    def without_end(self, num_steps: int) -> TimeSeriesDataset:
        """Return the dataset without the last steps of each series, which are held out for validation.

        Series that are not longer than that are left out. Schema and profile stay those of the whole dataset.
        """
        kept = []
        for entry in self.entries:
            length = np.shape(entry[FieldName.TARGET])[-1] - num_steps
            if length < 1:
                continue
            cut = {**entry, FieldName.TARGET: entry[FieldName.TARGET][..., :length]}
            if FieldName.FEAT_DYNAMIC_REAL in entry:
                cut[FieldName.FEAT_DYNAMIC_REAL] = entry[FieldName.FEAT_DYNAMIC_REAL][..., :length]
            kept.append(cut)
        return replace(self, entries=kept)

    @classmethod
    def _of_batches(
        cls,
        batches: Sequence[Any],
        *,
        name: str,
        where: str,
        freq: Frequency,
        schema: StaticSchema | None,
        prediction_length: int | None,
        metadata: dict[str, Any] | None,
        policies: Mapping[str, Any],
    ) -> TimeSeriesDataset:
        if schema is not None and policies:
            raise ConfigMismatchError(f"{where}{', '.join(policies)} have no effect beside schema=. Leave one out.")
        entries = [entry for batch in batches for entry in entries_of(batch)]
        if not entries:
            raise DataError(f"{where}the dataset has no entries, but at least one series is needed.")
        try:
            profile = scan(batches, freq=str(freq), prediction_length=prediction_length, metadata=metadata)
            if schema is None:
                schema = profile.to_schema(**{"namespace": name, **policies})
            else:
                _check_columns(StaticSchema.from_metadata(metadata or {}, namespace=name), schema, where)
        except (MetadataError, SchemaError) as error:
            raise type(error)(f"{where}{error}") from error
        except SchemaMismatchError as error:
            first = _first_misfit(entries, metadata or {}) if str(error).startswith(_CAT) else ""
            raise SchemaMismatchError(f"{where}{error}{first}") from error
        _tell_repeated(entries, where)
        _tell_what_is_left_out(profile, where)
        return cls(
            name=name,
            entries=entries,
            freq=freq,
            schema=schema,
            profile=profile,
            prediction_length=profile.prediction_length,
        )


def _at(freq: Frequency, entries: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Entries as they are, whose starts say no other frequency."""
    for row, entry in enumerate(entries, start=1):
        spelled = getattr(entry.get(FieldName.START), "freqstr", None) if isinstance(entry, Mapping) else None
        if spelled is not None and Frequency.parse(spelled) != freq:
            raise DataError(
                f"{Place.of(entry, row).field(FieldName.START)}: it is a period at {spelled!r}, but the dataset is at"
                f" {str(freq)!r}. Set freq={spelled!r}, or convert with Period.asfreq."
            )
        yield entry


def _first_misfit(entries: Iterable[Entry], metadata: Mapping[str, Any]) -> str:
    """Where the first entry stands whose categories do not fit what is declared, as a line for a message."""
    try:
        declared = StaticSchema.from_metadata(metadata)
        encode = EncodeStaticCat(declared) if declared.categorical else None
        names: list[str] | None = None
        for entry in entries:
            if encode is not None:
                encode.map_transform(entry, True)
                continue
            values = entry.get(_CAT)
            if values is not None:
                names = names or [f"column {k}" for k in range(len(values))]
                for name, value in zip(names, read_statics(entry, _CAT, names, Place.of(entry)), strict=True):
                    if value is not None and not isinstance(value, str):
                        as_id(value, name, Place.of(entry))
    except SchemaMismatchError as error:
        return "" if "is the text" in str(error) else f"\n  First: {error}"
    return ""


def _tell_skipped(skipped: Sequence[Path]) -> None:
    names = [path for path in skipped if not path.name.startswith((".", "_", "README", "LICENSE"))]
    if names:
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        warnings.warn(
            f"{', '.join(map(str, names[:3]))}{more}: not read, for its kind is not known. Only .json and .jsonl are"
            " read, plain or with .gz, and no links to folders.",
            TsnormWarning,
            stacklevel=4,
        )


def _check_columns(declared: StaticSchema, given: StaticSchema, where: str) -> None:
    """Refuse a schema whose columns mean something else than what the metadata declares."""
    for mine, theirs in ((declared.categorical, given.categorical), (declared.real, given.real)):
        names, wanted = [f.name for f in mine], [f.name for f in theirs]
        if any("/" not in name for name in names) and names != wanted:
            raise SchemaMismatchError(
                f"{where}static columns are {', '.join(names)}, but the schema says {', '.join(wanted) or 'none'}."
                " Load the dataset without schema=, and train or forecast under a united one: it matches by name."
            )
    for column, feature in zip(declared.categorical, given.categorical, strict=False):
        values, known = column.vocabulary, feature.vocabulary
        if values is not None and known is not None and values != known[: len(values)]:
            raise SchemaMismatchError(
                f"{where}the vocabulary of {column.name!r} is {values[:5]!r}, but that of the schema begins"
                f" {known[:5]!r}, so that ids mean something else. Load the dataset without schema=."
            )


def _tell_repeated(entries: Sequence[Entry], where: str) -> None:
    repeated = {item: n for item, n in Counter(entry.get(FieldName.ITEM_ID) for entry in entries).items() if n > 1}
    repeated.pop(None, None)
    if repeated:
        item, times = next(iter(repeated.items()))
        warnings.warn(
            f"{where}{len(repeated)} item_id(s) stand for several series, such as {item!r} for {times}."
            " Is a file there twice? Pieces of one series need ids of their own.",
            TsnormWarning,
            stacklevel=4,
        )


def _tell_what_is_left_out(profile: DatasetProfile, where: str) -> None:
    known = [*profile.presence, *_OF_BATCH]
    for name, times in profile.unknown_fields.items():
        if name == FieldName.INFO:
            continue
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.75)
        hint = f" Did you mean {_OF_BATCH.get(near[0], near[0])!r}?" if near else ""
        warnings.warn(
            f"{where}field {name!r} of {times} of {profile.num_series} entries is left out: nothing reads it.{hint}",
            IgnoredFieldWarning,
            stacklevel=4,
        )
    for field in (_CAT, _REAL):
        declared = (profile.metadata or {}).get(field)
        if declared and not profile.presence.get(field):
            warnings.warn(
                f"{where}{field} is declared, but none of {profile.num_series} entries has it: it is filled for all.",
                PlaceholderWarning,
                stacklevel=4,
            )


def unite(datasets: Sequence[TimeSeriesDataset]) -> StaticSchema:
    """Schema of several datasets that are trained on together.

    Raises
    ------
    DataError
        There are no datasets.
    FrequencyError
        They do not share one frequency.
    SchemaMismatchError
        A feature that some lack has no fill, so that their entries could not be completed.
    SchemaError
        One name means different things.
    """
    check_frequencies(datasets)
    _check_policies(datasets)
    schema = datasets[0].schema
    for dataset in datasets[1:]:
        schema = schema | dataset.schema
    for dataset in datasets:
        unfilled = [f.name for f in schema.categorical if f.fill_id is None]
        unfilled += [f.name for f in schema.real if f.fill is None]
        if lacking := [name for name in unfilled if name not in dataset.schema.names]:
            is_cat = lacking[0] in [feature.name for feature in schema.categorical]
            way_out = "missing_cat='reserve'" if is_cat else "missing_real='mean'"
            raise SchemaMismatchError(
                f"{dataset.name} has no static feature {lacking[0]!r}, which other datasets have, and the schema says"
                f" that a missing one is an error. Load the dataset that has it with {way_out}."
            )
    return schema


def _check_policies(datasets: Sequence[TimeSeriesDataset]) -> None:
    """Refuse a feature whose missing values are an error in one dataset and filled in another."""
    fills: dict[str, dict[bool, str]] = {}
    for dataset in datasets:
        filled = {feature.name: feature.fill_id is not None for feature in dataset.schema.categorical}
        filled |= {feature.name: feature.fill is not None for feature in dataset.schema.real}
        for name, is_filled in filled.items():
            fills.setdefault(name, {})[is_filled] = dataset.name
    for name, by_policy in fills.items():
        if len(by_policy) > 1:
            raise SchemaMismatchError(
                f"{name!r}: a missing value is an error in {by_policy[False]}, but filled in {by_policy[True]}."
                " Load them with the same policy."
            )


def check_frequencies(datasets: Sequence[TimeSeriesDataset]) -> None:
    """Refuse datasets that do not share one frequency, and none at all.

    Raises
    ------
    DataError, FrequencyError
        See :func:`unite`.
    """
    if isinstance(datasets, TimeSeriesDataset):
        raise DataError(f"{datasets.name} is one dataset, but a list of datasets is needed. Write [dataset].")
    if not datasets:
        raise DataError("there are no datasets, but at least one is needed.")
    if stray := [dataset for dataset in datasets if not isinstance(dataset, TimeSeriesDataset)]:
        raise DataError(f"{stray[0]!r} is no TimeSeriesDataset. Make one with from_folder or from_entries.")
    named = [dataset.name for dataset in datasets]
    for dataset in datasets:
        if named.count(dataset.name) > 1 and any(f.startswith(f"{dataset.name}/") for f in dataset.schema.names):
            raise DataError(
                f"{named.count(dataset.name)} datasets are named {dataset.name!r}, so that their unnamed static columns"
                " would share tables. Give each a name of its own with name=, or name the columns in the metadata."
            )
    first = datasets[0]
    for dataset in datasets[1:]:
        if dataset.freq != first.freq:
            raise FrequencyError(
                f"{dataset.name} is at {dataset.freq}, but {first.name} is at {first.freq}."
                " One model learns one frequency: resample, or train them apart."
            )
