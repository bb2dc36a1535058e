"""Dataset folders as GluonTS lays them out."""

import gzip
import json

import pytest

from tsnorm.errors import SOURCE_FIELD, DataError, MetadataError
from tsnorm.store import entries, folder_files, read_gluonts_folder, read_metadata

LINE = b'{"item_id":"%d","start":"2022-01-01","target":[1,2]}\n'


@pytest.fixture
def folder(tmp_path):
    for name, content in {
        "metadata.json": b'\xef\xbb\xbf{"freq": "M", "prediction_length": 3}',
        "train/b.json": LINE % 2 + LINE % 3,
        "train/a.jsonl.gz": gzip.compress(LINE % 0 + b"\n" + LINE % 1),
        "train/one/two/c.JSON": LINE % 4,
        "train/one/two/three/d.json": LINE % 9,
        "train/._b.json": b"\x00\x05\x16\x07",
        "train/_SUCCESS": b"",
        "train/README.md": b"# Data",
        "train/e.parquet": b"PAR1",
        "train/_temporary/f.json": LINE % 9,
        "test/data.json": LINE % 5,
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return tmp_path


def test_files_are_read_in_order_and_the_rest_is_listed(folder):
    files, skipped = folder_files(folder)
    assert [str(f.relative_to(folder)) for f in files] == ["train/a.jsonl.gz", "train/b.json", "train/one/two/c.JSON"]
    assert [str(f.relative_to(folder / "train")) for f in skipped] == [
        "._b.json",
        "README.md",
        "_SUCCESS",
        "_temporary",
        "e.parquet",
        "one/two/three",
    ]


def test_entries_know_their_file_and_line(folder):
    seen = [entry for batch in read_gluonts_folder(folder) for entry in entries(batch)]
    assert [entry["item_id"] for entry in seen] == ["0", "1", "2", "3", "4"]
    assert [entry[SOURCE_FIELD].row for entry in seen] == [1, 3, 1, 2, 1]
    assert seen[1][SOURCE_FIELD].file == str(folder / "train" / "a.jsonl.gz")
    assert len(list(read_gluonts_folder(folder, "test"))) == 1


def test_categories_are_of_one_kind_in_all_files(folder):
    (folder / "train" / "a.jsonl").write_text('{"target":[1],"feat_static_cat":["red"]}')
    (folder / "train" / "b.json").write_text('{"target":[1],"feat_static_cat":[3]}')
    with pytest.raises(DataError, match=r"row 1 of .*b\.json.*there are texts in row 1 of .*a\.jsonl"):
        list(read_gluonts_folder(folder))


@pytest.mark.parametrize(
    ("path", "split", "message"),
    [
        ("none", "train", "none: does not exist.* Check the path"),
        ("metadata.json", "train", r"metadata\.json: is a file, but must be the folder.* read_jsonl"),
        (".", "validation", r"has no folder 'validation'.* Found metadata\.json, test/, train/"),
        (".", "", "has no folder ''.* into train/"),
        (".", "metadata.json", r"has no folder 'metadata\.json'"),
        ("train", "_temporary/none", "has no folder"),
    ],
)
def test_a_missing_folder_tells_what_there_is(folder, path, split, message):
    with pytest.raises(DataError, match=message):
        read_gluonts_folder(folder / path, split)


def test_a_split_without_data_tells_what_there_is(folder):
    (folder / "test" / "data.json").rename(folder / "test" / "data.csv")
    with pytest.raises(DataError, match=r"test: has no data files.*\.json or \.jsonl.* Found data\.csv"):
        folder_files(folder, "test")


def test_metadata_is_found_in_either_place(folder):
    assert read_metadata(folder) == {"freq": "M", "prediction_length": 3}
    (folder / "metadata").mkdir()
    (folder / "metadata.json").rename(folder / "metadata" / "metadata.json")
    assert read_metadata(str(folder))["freq"] == "M"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, r"metadata\.json: is missing.*freq"),
        (b"{", r"metadata\.json: cannot be read \(.*but must be a JSON object"),
        (b"\xff\xfe{", r"metadata\.json: cannot be read"),
        (b"[" * 100_000, r"metadata\.json: cannot be read"),
        (b"[1, 2]", r"metadata\.json: is \[1, 2\] \(list\), but must be a JSON object"),
    ],
)
def test_broken_metadata_is_named(folder, content, message):
    (folder / "metadata.json").unlink()
    if content is not None:
        (folder / "metadata.json").write_bytes(content)
    with pytest.raises(MetadataError, match=message):
        read_metadata(folder)


def test_what_gluonts_writes_is_read(tmp_path):
    common = pytest.importorskip("gluonts.dataset.common")
    from gluonts.dataset.jsonl import JsonLinesWriter

    data = common.ListDataset(
        [{"start": "2022-01-01", "target": [1.0, float("nan"), float("inf")], "item_id": "a"}], "D"
    )
    metadata = common.MetaData(freq="D", prediction_length=2)
    common.TrainDatasets(metadata, data, None).save(tmp_path / "saved", JsonLinesWriter())
    [entry] = [entry for batch in read_gluonts_folder(tmp_path / "saved") for entry in entries(batch)]
    assert entry["start"] == "2022-01-01"
    assert str(entry["target"]) == "[ 1. nan inf]"
    assert json.loads(metadata.json())["freq"] == read_metadata(tmp_path / "saved")["freq"] == "D"
