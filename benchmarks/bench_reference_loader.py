"""Does filling and checking statics make the chain slower? tsnorm's reference loader beside GluonTS's own chain.

One thread, one process, contestants in turn, medians over rounds: windows per second on bundled data (366 monthly
series, past_length 85, horizon 24, batch 64). GluonTS runs the chain of the Hugging Face notebook, plain and with the
per-series part cached (`Cached`), as people use it; memcpy of the bytes of a batch is the limit. The reference loader
is the meaning that faster loaders are held to, not the fast one.

    python benchmarks/bench_reference_loader.py [--rounds 7] [--seconds 2]
"""

from __future__ import annotations

import argparse
import itertools
import platform
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from gluonts.dataset.common import FileDataset
from gluonts.dataset.field_names import FieldName
from gluonts.dataset.loader import as_stacked_batches
from gluonts.itertools import Cached, Cyclic
from gluonts.time_feature import time_features_from_frequency_str
from gluonts.transform import (
    AddAgeFeature,
    AddObservedValuesIndicator,
    AddTimeFeatures,
    Chain,
    ExpectedNumInstanceSampler,
    InstanceSplitter,
    VstackFeatures,
)

from tsnorm import TimeSeriesDataset, TrainingLoader, complete_config, unite
from tsnorm.pipeline import past_length
from tsnorm.pipeline.batch import BATCH_KEYS

DATA = Path(__file__).parents[1] / "data" / "tourism_monthly"
HORIZON, CONTEXT, BATCH = 24, 48, 64


def notebook(past: int, cached: bool) -> Iterator[dict[str, torch.Tensor]]:
    """Batches of the chain of the Hugging Face notebook, without statics."""
    target, features = FieldName.TARGET, [FieldName.FEAT_TIME, FieldName.OBSERVED_VALUES]
    series = Chain(
        [
            AddObservedValuesIndicator(target_field=target, output_field=FieldName.OBSERVED_VALUES),
            AddTimeFeatures(
                FieldName.START, target, FieldName.FEAT_TIME, time_features_from_frequency_str("ME"), HORIZON
            ),
            AddAgeFeature(target, FieldName.FEAT_AGE, HORIZON),
            VstackFeatures(FieldName.FEAT_TIME, [FieldName.FEAT_TIME, FieldName.FEAT_AGE]),
        ]
    )
    splitter = InstanceSplitter(
        target, FieldName.IS_PAD, FieldName.START, FieldName.FORECAST_START,
        ExpectedNumInstanceSampler(num_instances=1, min_future=HORIZON), past, HORIZON, time_series_fields=features,
    )  # fmt: skip
    dataset = FileDataset(DATA / "train", freq="M")
    stream = Cyclic(Cached(series.apply(dataset)) if cached else series.apply(dataset)).stream()
    names = [name for name in BATCH_KEYS.values() if "static" not in name]
    yield from as_stacked_batches(splitter.apply(stream), batch_size=BATCH, field_names=names, output_type=torch.tensor)


def memcpy(num_bytes: int) -> Iterator[None]:
    """Copies of the bytes of a batch into one buffer."""
    source, destination = np.ones(num_bytes, np.uint8), np.empty(num_bytes, np.uint8)
    while True:
        np.copyto(destination, source)
        yield


def rate(batches: Iterator[object], seconds: float) -> float:
    """Windows per second, over about so many seconds."""
    begun, count = time.perf_counter(), 0
    while time.perf_counter() - begun < seconds:
        next(batches)
        count += BATCH
    return count / (time.perf_counter() - begun)


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=2.0)
    options = parser.parse_args()
    torch.set_num_threads(1)

    data = [TimeSeriesDataset.from_folder(DATA)]
    schema = unite(data)
    config = complete_config(
        "time-series-transformer", schema=schema, freq="M", prediction_length=HORIZON, context_length=CONTEXT
    )
    loader = TrainingLoader(data, config=config, schema=schema, global_batch_size=BATCH, num_steps=10**9)
    num_bytes = sum(tensor.nbytes for tensor in next(iter(loader)).values())
    makers: dict[str, Callable[[], Iterator[object]]] = {
        "GluonTS chain": lambda: notebook(past_length(config), cached=False),
        "GluonTS chain, cached": lambda: notebook(past_length(config), cached=True),
        "tsnorm TrainingLoader": lambda: iter(loader),
        "memcpy of the bytes": lambda: memcpy(num_bytes),
    }
    running = {name: make() for name, make in makers.items()}
    for batches in running.values():  # caches fill, code is imported
        for _ in itertools.repeat(None, 30):
            next(batches)
    rates: dict[str, list[float]] = {name: [] for name in running}
    for _ in range(options.rounds):
        for name, batches in running.items():
            rates[name].append(rate(batches, options.seconds))

    print(
        f"{platform.machine()}, Python {platform.python_version()}, torch {torch.__version__}, numpy {np.__version__},"
    )
    print(f"one thread, {options.rounds} rounds of {options.seconds} s, {num_bytes:,} bytes a batch of {BATCH}\n")
    print(f"{'':24}{'windows/s':>14}{'quartiles':>26}{'to cached GluonTS':>20}")
    base = statistics.median(rates["GluonTS chain, cached"])
    for name, seen in rates.items():
        low, middle, high = statistics.quantiles(seen, n=4)
        print(f"{name:24}{middle:14,.0f}{f'{low:,.0f} - {high:,.0f}':>26}{middle / base:20.2f}")


if __name__ == "__main__":
    main()
