"""Entries, record batches, and the readers that make them.

:func:`record_batches`
    From any iterable of GluonTS entries to Arrow record batches; checks their form.
:func:`entries`
    From a record batch back to entries.
:func:`read_gluonts_folder`, :func:`read_jsonl`
    From files to record batches.
:func:`folder_files`, :func:`read_metadata`
    What a GluonTS folder holds and declares.

The layout of a record batch is in :mod:`tsnorm.store.record_batch`.
"""

from tsnorm.store.pack import record_batches
from tsnorm.store.readers.gluonts_folder import folder_files, read_gluonts_folder, read_metadata
from tsnorm.store.readers.json_lines import read_jsonl
from tsnorm.store.record_batch import entries

__all__ = [
    "entries",
    "folder_files",
    "read_gluonts_folder",
    "read_jsonl",
    "read_metadata",
    "record_batches",
]
