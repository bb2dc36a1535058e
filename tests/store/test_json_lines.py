"""JSON lines: every line counted, every broken one named."""

import gzip
import json
import math
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsnorm.errors import SOURCE_FIELD, DataError
from tsnorm.store import entries, read_jsonl
from tsnorm.store.readers.json_lines import json_lines

GOOD = b'{"start":"2022-01-01","target":[1,2]}'


@pytest.fixture
def write(tmp_path):
    def write(content, name="data.jsonl"):
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return write


def read(path, **settings):
    return [entry for batch in read_jsonl(path, **settings) for entry in entries(batch)]


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lambda b: gzip.compress(b[:20]) + gzip.compress(b[20:])])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_lines_keep_their_physical_numbers(write, pack, end):
    path = write(pack(b"\xef\xbb\xbf" + end.join([GOOD, b"", b"  \t", GOOD, GOOD])))
    assert [entry[SOURCE_FIELD].row for entry in read(path)] == [1, 4, 5]
    assert read(path)[0][SOURCE_FIELD].file == str(path)


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xef\xbb\xbf", gzip.compress(b"")])
def test_an_empty_file_has_no_entries(write, content):
    assert read(write(content)) == []


def test_bare_nan_and_infinity_are_read(write):
    [entry] = read(write(b'{"target":[NaN,1,-Infinity],"feat_static_real":[NaN]}'))
    assert str(entry["target"]) == "[ nan   1. -inf]"
    assert math.isnan(entry["feat_static_real"][0])


BROKEN = {
    "cut off": (
        GOOD + b"\n\n" + GOOD[:-3],
        r"data\.jsonl, line 3: broken JSON \(unexpected end of data at column \d+\).* Correct the line",
    ),
    "cut off with NaN": (b'{"target":[NaN,', "line 1: broken JSON"),
    "array": (b"[" + GOOD + b",\n" + GOOD + b"]", "line 1: a JSON array begins here"),
    "array in a line": (b"[" + GOOD + b"," + GOOD + b"]", "line 1: a JSON array begins here.*jq"),
    "array over lines": (b"[\n" + GOOD + b",\n" + GOOD + b"\n]", "line 1: a JSON array begins here"),
    "pretty": (b'{\n"target": [1]\n}', "line 1: broken JSON.*Write each entry in one line"),
    "a number": (GOOD + b"\n17", r"line 2: is 17 \(int\), but an entry must be a JSON object"),
    "a list": (GOOD + b"\n[1,2]", r"line 2: is \[1, 2\] \(list\)"),
    "null": (b"null", r"line 1: is None"),
    "two in a line": (GOOD + GOOD, "line 1: broken JSON"),
    "not UTF-8": (b'{"item_id":"\xff","target":[1]}', "line 1: broken JSON"),
    "UTF-16": (GOOD.decode().encode("utf-16"), "is UTF-16, but UTF-8 is expected"),
    "a binary": (b"\x00\x05\x16\x07", "line 1: broken JSON"),
    "deep": (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "line 1: broken JSON"),
    "deep with NaN": (b'{"b":NaN,"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "line 1: broken JSON"),
    "deep objects": (b'{"NaN":' * 100_000 + b"1" + b"}" * 100_000, "line 1: broken JSON"),
    "many digits": (b'{"b":NaN,"target":[' + b"1" * 5000 + b"]}", "line 1: broken JSON"),
    "bad entry": (
        GOOD + b"\n\n" + b'{"item_id":"a","target":3}',
        r"target of item 'a' \(row 3 of .*data\.jsonl\): is 3",
    ),
}


@pytest.mark.parametrize(("content", "message"), BROKEN.values(), ids=BROKEN)
def test_broken_lines_are_named(write, content, message):
    with pytest.raises(DataError, match=message) as caught:
        read(write(content))
    assert len(str(caught.value)) < 600


def test_a_cut_off_gzip_names_the_file(write):
    whole = gzip.compress(b"\n".join([GOOD] * 5000))
    for cut in (len(whole) - 4, len(whole) // 2, 5):
        with pytest.raises(DataError, match=r"data\.json\.gz: the gzip stream is broken .* whole"):
            read(write(whole[:cut], "data.json.gz"))


def test_a_damaged_gzip_names_the_file(write):
    whole = bytearray(gzip.compress(b"\n".join([GOOD] * 5000)))
    whole[len(whole) // 2] ^= 0xFF
    with pytest.raises(DataError, match=r"data\.json\.gz"):
        read(write(bytes(whole), "data.json.gz"))


def test_gzip_is_told_by_content(write):
    assert len(read(write(gzip.compress(GOOD), "data.json"))) == 1
    assert len(read(write(GOOD, "data.json.gz"))) == 1


def test_lines_are_bounded_before_they_are_parsed(write):
    long = b'{"target":[' + b"1," * 5000 + b"1]}"
    assert len(read(write(long), max_line_bytes=len(long))) == 1
    with pytest.raises(DataError, match=rf"line 2: is longer than {len(long) - 1} bytes.* raise max_line_bytes"):
        read(write(GOOD + b"\n" + long), max_line_bytes=len(long) - 1)


def test_a_decompression_bomb_is_bounded(write):
    packer = zlib.compressobj(wbits=31)
    bomb = b"".join(packer.compress(b" " * 2**20) for _ in range(64)) + packer.flush()
    with pytest.raises(DataError, match="line 1: is longer than 1048576 bytes"):
        read(write(bomb, "data.json.gz"), max_line_bytes=2**20)


def test_what_cannot_be_opened_is_named(tmp_path):
    with pytest.raises(DataError, match=r"none\.jsonl: cannot be read \(No such file"):
        read(tmp_path / "none.jsonl")
    with pytest.raises(DataError, match=r"cannot be read \(Is a directory"):
        read(tmp_path)


def test_entries_before_a_broken_line_are_given(write):
    stream = read_jsonl(write(GOOD + b"\n{"), rows=1)
    assert next(stream).num_rows == 1
    with pytest.raises(DataError, match="line 2"):
        next(stream)


numbers = st.floats() | st.integers(-(2**53), 2**53) | st.none()


@given(st.lists(st.lists(numbers, max_size=5), max_size=5), st.booleans())
def test_what_python_writes_is_read(tmp_path_factory, targets, packed):
    lines = [json.dumps({"target": target, "item_id": i}) for i, target in enumerate(targets)]
    content = "\n".join(lines).encode()
    path = tmp_path_factory.mktemp("jsonl") / "data.json"
    path.write_bytes(gzip.compress(content) if packed else content)
    as_floats = [[math.nan if v is None else float(v) for v in target] for target in targets]
    assert str([entry["target"].tolist() for entry in read(path)]) == str(as_floats)


@given(st.binary(max_size=60) | st.binary(max_size=60).map(lambda b: b"\x1f\x8b" + b))
def test_any_bytes_are_read_or_refused_by_a_data_error(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("bytes") / "data.json"
    path.write_bytes(content)
    try:
        list(json_lines(path))
    except DataError:
        return
