"""JSON lines, plain or gzipped: one entry a line, with its physical line number."""

from __future__ import annotations

import gzip
import io
import json
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import orjson
import pyarrow as pa

from tsnorm.errors import SOURCE_FIELD, DataError, Place
from tsnorm.store.pack import record_batches
from tsnorm.store.plain import scalar_id, shown

MAX_LINE_BYTES = 2**30
"""Longest line that is read, in bytes after decompression; bounds the memory that a file can claim."""

_GZIP = b"\x1f\x8b"
_UTF8_BOM = b"\xef\xbb\xbf"
_UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")


def read_jsonl(
    file: str | os.PathLike[str], *, rows: int = 1024, max_line_bytes: int = MAX_LINE_BYTES
) -> Iterator[pa.RecordBatch]:
    """Read a JSON lines file into record batches, as a stream.

    Gzip is told by its first bytes. Blank lines are skipped, a byte order mark is too. The bare literals ``NaN``
    and ``Infinity``, which Python's ``json`` writes by default, are read as such.

    Parameters
    ----------
    file
        Path of the file.
    rows
        Entries in a batch.
    max_line_bytes
        Longest line that is read, in bytes after decompression.

    Raises
    ------
    DataError
        The file cannot be read, a line is no JSON object, or an entry has not the form of one. The message
        names the file and the physical line, from 1.
    """
    return record_batches(json_lines(file, max_line_bytes=max_line_bytes), file=file, rows=rows)


def json_lines(file: str | os.PathLike[str], *, max_line_bytes: int = MAX_LINE_BYTES) -> Iterator[dict[str, Any]]:
    """Entries of a JSON lines file, each with its :class:`~tsnorm.errors.Place`; see :func:`read_jsonl`."""
    name = os.fspath(file)
    try:
        with Path(file).open("rb") as raw:
            for number, line in _lines(raw, name, max_line_bytes):
                entry = _parse(line, name, number)
                entry[SOURCE_FIELD] = Place(file=name, row=number, item_id=scalar_id(entry.get("item_id")))
                yield entry
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(
            f"{name}: the gzip stream is broken ({error}), but must be whole. Copy or download it again."
        ) from error
    except OSError as error:
        raise DataError(f"{name}: cannot be read ({error.strerror or error}). Check the path.") from error


def _lines(raw: BinaryIO, name: str, max_line_bytes: int) -> Iterator[tuple[int, bytes]]:
    """Lines that are not blank, and their physical numbers."""
    head = raw.read(2)
    raw.seek(0)
    stream = io.BufferedReader(gzip.GzipFile(fileobj=raw), 2**20) if head == _GZIP else raw
    number = 0
    while line := stream.readline(max_line_bytes + 1):
        number += 1
        if len(line) > max_line_bytes:
            raise DataError(
                f"{name}, line {number}: is longer than {max_line_bytes} bytes, but one entry a line is expected."
                " If it is one entry, raise max_line_bytes."
            )
        if number == 1:
            if line.startswith(_UTF16_BOMS):
                raise DataError(f"{name}: is UTF-16, but UTF-8 is expected. Save it as UTF-8.")
            line = line.removeprefix(_UTF8_BOM)
        if line := line.strip():
            yield number, line


def _parse(line: bytes, name: str, number: int) -> dict[str, Any]:
    where = f"{name}, line {number}"
    try:
        entry = _loads(line)
    except (ValueError, RecursionError) as error:
        if line[:1] == b"[" and line[1:].lstrip()[:1] in (b"", b"{"):
            raise DataError(_array(where)) from error
        reason = f"{error.msg} at column {error.colno}" if isinstance(error, json.JSONDecodeError) else error
        way_out = "Write each entry in one line." if line == b"{" else "Correct the line, or fetch the file again."
        raise DataError(
            f"{where}: broken JSON ({reason}), but one whole JSON object a line is expected. {way_out}"
        ) from error
    if isinstance(entry, dict):
        return entry
    if isinstance(entry, list) and all(isinstance(item, dict) for item in entry):
        raise DataError(_array(where))
    raise DataError(
        f"{where}: is {shown(entry)} ({type(entry).__name__}), but an entry must be a JSON object, such as"
        ' {"start": "2022-01-01", "target": [1.0, 2.0]}. Correct or remove the line.'
    )


def _loads(line: bytes) -> Any:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        if b"NaN" not in line and b"Infinity" not in line:
            raise
    return json.loads(line)


def _array(where: str) -> str:
    return (
        f"{where}: a JSON array begins here, but one JSON object a line is expected."
        " Write each item in a line of its own, without commas between: `jq -c '.[]'` does it."
    )
