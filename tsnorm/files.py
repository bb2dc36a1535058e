"""Files that are either whole or absent."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FACTS = "tsnorm.json"
"""File beside a model that says how it was made."""


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file so that a reader, or a crash, sees the old content or the new, never a part."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


@contextmanager
def folder_atomically(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a scratch folder that takes the place of ``path`` when the block ends without an error.

    A folder that stood there before is replaced. Should the process die between the two renames, both are still
    there, beside ``path`` and under hidden names that begin with its own.

    Raises
    ------
    NotADirectoryError
        ``path`` is a file or a device; it is left alone.
    """
    target = Path(path).resolve()
    if target.exists() and not target.is_dir():
        raise NotADirectoryError(f"{target}: it is no folder, and is not replaced by one.")
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    new, former = scratch / "new", scratch / "former"
    new.mkdir()
    try:
        yield new
        replaces = target.exists()
        if replaces:
            target.rename(former)
        try:
            new.rename(target)
        except BaseException:
            if replaces:
                former.rename(target)
            raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
