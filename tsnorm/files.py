"""Files that are either whole or absent."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


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

    A folder that stood there before is replaced. Between the two renames neither name is gone for good:
    after a crash there, the former folder is beside it with the suffix ``.old``.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    scratch.chmod(0o755)
    former = target.with_name(target.name + ".old")
    try:
        yield scratch
        replaces = target.exists()
        if replaces:
            shutil.rmtree(former, ignore_errors=True)
            target.rename(former)
        try:
            scratch.rename(target)
        except BaseException:
            if replaces:
                former.rename(target)
            raise
        shutil.rmtree(former, ignore_errors=True)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
