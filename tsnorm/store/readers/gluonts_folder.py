"""A dataset folder as GluonTS lays it out: ``metadata.json``, ``train/``, ``test/``."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from tsnorm.errors import DataError, MetadataError
from tsnorm.store.pack import record_batches
from tsnorm.store.plain import shown
from tsnorm.store.readers.json_lines import json_lines

SUFFIXES = (".json", ".jsonl", ".json.gz", ".jsonl.gz")
"""Ends of the names of files that are read."""
LEVELS = 2
"""Levels of folders below that of a split that are looked into, as GluonTS does."""


def read_gluonts_folder(
    path: str | os.PathLike[str], split: str = "train", rows: int = 1024
) -> Iterator[pa.RecordBatch]:
    """Read one split of a dataset folder into record batches, file after file, as a stream.

    Parameters
    ----------
    path
        Folder of the dataset.
    split
        Name of the folder in it, such as ``"train"`` or ``"test"``.
    rows
        Entries in a batch.

    Raises
    ------
    DataError
        The folder or split is not there or has no data files (at once), or a file cannot be read (later).
    """
    files, _ = folder_files(path, split)
    return record_batches((entry for file in files for entry in json_lines(file)), rows=rows)


def folder_files(path: str | os.PathLike[str], split: str = "train") -> tuple[list[Path], list[Path]]:
    """Return the data files of a split in the order they are read, and what is skipped.

    Skipped are names that begin with a dot or an underscore, other extensions than :data:`SUFFIXES`, and
    folders below :data:`LEVELS`.

    Raises
    ------
    DataError
        The folder or split is not there, or has no data files.
    """
    root = Path(path)
    if not root.is_dir():
        seen = "is a file" if root.exists() else "does not exist"
        way_out = "Read a single file with read_jsonl." if root.exists() else "Check the path."
        raise DataError(f"{os.fspath(path)}: {seen}, but must be the folder of a dataset. {way_out}")
    folder = root / split
    if not split or not folder.is_dir():
        raise DataError(
            f"{os.fspath(path)}: has no folder {split!r}, but needs one a split."
            f" Found {_names(root)}. Put the data files into {split or 'train'}/, or name another split."
        )
    files: list[Path] = []
    skipped: list[Path] = []
    _collect(folder, LEVELS, files, skipped)
    if not files:
        raise DataError(
            f"{folder}: has no data files, but at least one {' or '.join(SUFFIXES)} is expected."
            f" Found {_names(folder)}."
        )
    return sorted(files), sorted(skipped)


def read_metadata(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what a dataset folder declares: ``metadata.json``, or else ``metadata/metadata.json``.

    Raises
    ------
    MetadataError
        The file is missing, no JSON, or no JSON object; the message names it.
    """
    root = Path(path)
    if not root.is_dir():
        raise MetadataError(
            f"{root}: {'is a file' if root.exists() else 'does not exist'}, but must be a dataset folder."
        )
    places = [Path(path) / "metadata.json", Path(path) / "metadata" / "metadata.json"]
    file = next((place for place in places if place.is_file()), None)
    if file is None:
        near = [folder for folder in (root.parent, *sorted(root.iterdir())) if (folder / "metadata.json").is_file()]
        hint = f" Did you mean {near[0]}?" if near else ""
        raise MetadataError(
            f"{places[0]}: is missing, but a dataset folder declares its frequency there."
            f' Write at least {{"freq": "M"}}.{hint}'
        )
    try:
        metadata = json.loads(file.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError, OSError) as error:
        raise MetadataError(f"{file}: cannot be read ({error}), but must be a JSON object. Correct it.") from error
    if not isinstance(metadata, dict):
        raise MetadataError(
            f"{file}: is {shown(metadata)} ({type(metadata).__name__}), but must be a JSON object, such as"
            ' {"freq": "M", "prediction_length": 12}.'
        )
    return metadata


def _collect(folder: Path, levels: int, files: list[Path], skipped: list[Path]) -> None:
    for path in folder.iterdir():
        if path.name.startswith((".", "_")):
            skipped.append(path)
        elif path.is_dir():
            if levels and not path.is_symlink():  # a link may lead back here
                _collect(path, levels - 1, files, skipped)
            else:
                skipped.append(path)
        else:
            is_data = path.name.lower().endswith(SUFFIXES) and path.is_file()  # no pipe, which would never end
            (files if is_data else skipped).append(path)


def _names(folder: Path) -> str:
    names = sorted(path.name + "/" * path.is_dir() for path in folder.iterdir())
    return ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "") if names else "nothing"
