"""Readers: from a source to record batches.

:func:`read_gluonts_folder`, :func:`folder_files`, :func:`read_metadata`
    A dataset folder as GluonTS lays it out.
:func:`read_jsonl`
    One JSON lines file, plain or gzipped.
"""

from tsnorm.store.readers.gluonts_folder import folder_files, read_gluonts_folder, read_metadata
from tsnorm.store.readers.json_lines import read_jsonl

__all__ = ["folder_files", "read_gluonts_folder", "read_jsonl", "read_metadata"]
