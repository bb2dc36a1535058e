"""Datasets as loaders use them: entries, and what is known of all of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tsnorm.errors import DataError, FrequencyError, SchemaMismatchError
from tsnorm.freq import Frequency
from tsnorm.pipeline.config import as_frequency
from tsnorm.profile import DatasetProfile, scan
from tsnorm.schema import StaticSchema
from tsnorm.store import entries as entries_of
from tsnorm.store import record_batches
from tsnorm.store.readers import read_gluonts_folder, read_metadata
from tsnorm.transforms import Entry


@dataclass(frozen=True, kw_only=True)
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
            Keywords of :meth:`tsnorm.profile.DatasetProfile.to_schema`.

        Raises
        ------
        MetadataError, FrequencyError, DataError, SchemaMismatchError
            What is wrong, with file and row.
        """
        metadata = read_metadata(path)
        freq = Frequency.parse(metadata.get("freq"))
        batches = list(read_gluonts_folder(path, split))
        profile = scan(batches, freq=str(freq), prediction_length=metadata.get("prediction_length"), metadata=metadata)
        name = Path(path).resolve().name
        return cls(
            name=name,
            entries=[entry for batch in batches for entry in entries_of(batch)],
            freq=freq,
            schema=profile.to_schema(**{"namespace": name, **policies}) if schema is None else schema,
            profile=profile,
            prediction_length=metadata.get("prediction_length"),
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
        metadata: Mapping[str, Any] | None = None,
        **policies: Any,
    ) -> TimeSeriesDataset:
        """Take entries from any iterable, such as a GluonTS dataset; see :meth:`from_folder`."""
        frequency = as_frequency(freq)
        batches = list(record_batches(entries))
        profile = scan(
            batches,
            freq=str(frequency),
            prediction_length=prediction_length,
            metadata=None if metadata is None else dict(metadata),
        )
        return cls(
            name=name,
            entries=[entry for batch in batches for entry in entries_of(batch)],
            freq=frequency,
            schema=profile.to_schema(**{"namespace": name, **policies}) if schema is None else schema,
            profile=profile,
            prediction_length=prediction_length,
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
    schema = datasets[0].schema
    for dataset in datasets[1:]:
        schema = schema | dataset.schema
    for dataset in datasets:
        unfilled = [f.name for f in schema.categorical if f.fill_id is None]
        unfilled += [f.name for f in schema.real if f.fill is None]
        if lacking := [name for name in unfilled if name not in dataset.schema.names]:
            raise SchemaMismatchError(
                f"{dataset.name} has no static feature {lacking[0]!r}, which other datasets have, and the schema says"
                " that a missing one is an error. Load the dataset that has it with missing_cat='reserve' or"
                " missing_real='mean'."
            )
    return schema


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
    first = datasets[0]
    for dataset in datasets[1:]:
        if dataset.freq != first.freq:
            raise FrequencyError(
                f"{dataset.name} is at {dataset.freq}, but {first.name} is at {first.freq}."
                " One model learns one frequency: resample, or train them apart."
            )
