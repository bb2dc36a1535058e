"""Files and folders that are either whole or absent."""

import stat
from pathlib import Path

import pytest

from tsnorm.files import folder_atomically, write_atomically


class Crash(BaseException):
    """Not an Exception, like KeyboardInterrupt."""


def crash(*args, **kwargs):
    raise Crash


def tree(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")
    }


@pytest.mark.parametrize("form", [Path, str])
def test_a_file_is_written_and_replaced(tmp_path, form):
    path = tmp_path / "new" / "deep" / "file.json"
    write_atomically(form(path), b"old")
    assert path.read_bytes() == b"old"
    write_atomically(form(path), b"")
    assert path.read_bytes() == b""
    assert tree(path.parent) == {"file.json": b""}


def test_others_may_read_the_file(tmp_path):
    write_atomically(tmp_path / "file", b"x")
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o644
    with folder_atomically(tmp_path / "folder"):
        pass
    assert stat.S_IMODE((tmp_path / "folder").stat().st_mode) == 0o755


def test_readers_of_the_old_file_keep_it(tmp_path):
    path = tmp_path / "file"
    write_atomically(path, b"old")
    with path.open("rb") as file:
        write_atomically(path, b"new")
        assert file.read() == b"old"
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("where", ["os.fsync", "os.fdopen", "pathlib.Path.chmod", "pathlib.Path.replace"])
@pytest.mark.parametrize("former", [None, b"old"])
def test_a_crash_while_writing_leaves_the_old_content(tmp_path, monkeypatch, where, former):
    path = tmp_path / "file"
    if former is not None:
        path.write_bytes(former)
    with monkeypatch.context() as patch:
        patch.setattr(where, crash)
        with pytest.raises(Crash):
            write_atomically(path, b"new")
    assert tree(tmp_path) == ({} if former is None else {"file": former})


def test_content_that_is_no_bytes_leaves_the_old_content(tmp_path):
    path = tmp_path / "file"
    write_atomically(path, b"old")
    with pytest.raises(TypeError, match="bytes-like"):
        write_atomically(path, "new")
    assert tree(tmp_path) == {"file": b"old"}


def test_a_folder_appears_when_the_block_ends(tmp_path):
    path = tmp_path / "new" / "store"
    with folder_atomically(path) as scratch:
        (scratch / "a").write_bytes(b"1")
        (scratch / "sub").mkdir()
        assert not path.exists()
        assert scratch.parent.parent == path.parent
    assert tree(path.parent) == {"store": None, "store/a": b"1", "store/sub": None}


@pytest.mark.parametrize("form", [Path, str])
def test_a_folder_is_replaced_as_a_whole(tmp_path, form):
    path = tmp_path / "store"
    with folder_atomically(form(path)) as scratch:
        (scratch / "a").write_bytes(b"1")
    with folder_atomically(form(path)) as scratch:
        (scratch / "b").write_bytes(b"2")
        assert tree(path) == {"a": b"1"}
    assert tree(tmp_path) == {"store": None, "store/b": b"2"}


@pytest.mark.parametrize("former", [False, True])
@pytest.mark.parametrize("error", [Crash, ValueError, KeyboardInterrupt])
def test_a_crash_inside_leaves_the_old_folder(tmp_path, former, error):
    path = tmp_path / "store"
    if former:
        path.mkdir()
        (path / "a").write_bytes(b"1")
    before = tree(tmp_path)

    def build():
        with folder_atomically(path) as scratch:
            (scratch / "b").write_bytes(b"2")
            raise error

    with pytest.raises(error):
        build()
    assert tree(tmp_path) == before


def test_a_folder_of_the_users_beside_it_is_left_alone(tmp_path):
    for name in ("store.old", ".store.former"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a").write_bytes(b"1")
    others = tree(tmp_path)
    for _ in range(2):
        with folder_atomically(tmp_path / "store") as scratch:
            (scratch / "b").write_bytes(b"2")
    assert tree(tmp_path) == {**others, "store": None, "store/b": b"2"}


def test_a_file_is_never_replaced_by_a_folder(tmp_path):
    (tmp_path / "file").write_bytes(b"1")
    with pytest.raises(NotADirectoryError, match="is no folder"), folder_atomically(tmp_path / "file"):
        pass
    assert tree(tmp_path) == {"file": b"1"}


def test_a_crash_at_the_second_rename_keeps_the_old_folder(tmp_path, monkeypatch):
    path = tmp_path / "store"
    path.mkdir()
    (path / "a").write_bytes(b"1")
    rename = Path.rename

    def fail_for_scratch(self, target):
        if self.name == "new":
            raise OSError("disk on fire")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail_for_scratch)
    with pytest.raises(OSError, match="disk on fire"), folder_atomically(path):
        pass
    assert tree(tmp_path) == {"store": None, "store/a": b"1"}


def test_two_writers_at_once_leave_one_whole_folder(tmp_path):
    path = tmp_path / "store"
    with folder_atomically(path) as first, folder_atomically(path) as second:
        assert first != second
        (first / "a").write_bytes(b"1")
        (second / "b").write_bytes(b"2")
    assert tree(tmp_path) == {"store": None, "store/a": b"1"}


def test_the_current_folder_does_not_matter(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_atomically("file", b"x")
    with folder_atomically("store"):
        pass
    assert tree(tmp_path) == {"file": b"x", "store": None}
