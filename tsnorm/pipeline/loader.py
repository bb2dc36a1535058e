"""Reference loaders: batches from the chain, window by window, for any number of ranks and workers.

The order is a pure function of (seed, epoch, step): a step has one global batch, of which each rank takes its
slice. Rank and worker are read when iteration starts, so that a loader may be built before the process group.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from gluonts.dataset.field_names import FieldName
from torch.utils.data import IterableDataset, get_worker_info

from tsnorm.errors import ConfigMismatchError, DataError, WorldError
from tsnorm.pipeline.batch import Batch, check_batch, stack
from tsnorm.pipeline.chain import series_chain, split_chain
from tsnorm.pipeline.config import STAMP, check_config, fit_schema
from tsnorm.pipeline.dataset import TimeSeriesDataset, check_frequencies, unite
from tsnorm.pipeline.windows import WindowIndex
from tsnorm.rng import philox
from tsnorm.schema import StaticSchema
from tsnorm.transforms import Entry, MaskStaticCat
from tsnorm.transforms.mask import SERIES_KEY, UNKNOWN_SHARE
from tsnorm.transforms.split import SPLIT_POINTS
from tsnorm.world import World

IntArray = npt.NDArray[np.int64]


class WindowDataset(IterableDataset[Batch], ABC):
    """What the loaders share: series prepared once, windows cut on demand, global batches sliced by rank.

    Iterate it as it is, or through ``torch.utils.data.DataLoader(loader, batch_size=None, num_workers=...)``; with
    another ``batch_size`` that would stack batches to batches of batches. :attr:`counts` says what was changed in
    the series on the way in, how often: filled, unknown, ignored. :attr:`first_step` is where an iteration begins: 0,
    or, to resume, the number of steps that are made already.
    """

    def __init__(
        self,
        datasets: Sequence[TimeSeriesDataset],
        *,
        config: Any,
        schema: StaticSchema | None,
        global_batch_size: int,
        min_past: int,
        infinity: Literal["error", "missing"],
        add_age: bool,
        is_train: bool,
    ) -> None:
        if global_batch_size < 1 or min_past < 0:
            raise WorldError(
                f"global_batch_size is {global_batch_size} and min_past {min_past}, but must be from 1 and from 0."
            )
        check_frequencies(datasets)
        self.config, self.global_batch_size = config, global_batch_size
        self.min_past, self._is_train, self.first_step = min_past, is_train, 0
        self._epoch = torch.zeros((), dtype=torch.int64, device="cpu")
        self._epoch.share_memory_()  # type: ignore[no-untyped-call]  # workers that persist see it
        self._home = World()
        self.schema = unite(datasets) if schema is None else schema
        check_config(config, schema=self.schema, freq=datasets[0].freq, add_age=add_age)
        made_for = getattr(config, STAMP, None)
        if made_for not in (None, self.schema.fingerprint()):
            raise ConfigMismatchError(
                f"config was completed for schema {made_for}, but the loader has {self.schema.fingerprint()}: ids or"
                " columns mean something else. Give the loader schema=, the very one that the config was made from."
            )
        self.counts: Counter[str] = Counter()
        self._series: list[Entry] = []
        self._dataset_idx = np.repeat(
            np.arange(len(datasets), dtype=np.int64), [len(dataset.entries) for dataset in datasets]
        )
        self._series_idx = np.concatenate([np.arange(len(d.entries), dtype=np.int64) for d in datasets])
        for dataset in datasets:
            chain = series_chain(
                config, self.schema, dataset.freq, source=dataset.schema, infinity=infinity, add_age=add_age
            )
            self._series += chain(dataset.entries, is_train=is_train)
            for step in chain.transformations:
                changes = getattr(step, "counts", {}).items()
                self.counts.update({what: n for what, n in changes if not what.startswith("warned")})
        for series, *place in zip(self._series, self._dataset_idx, self._series_idx, strict=True):
            series[SERIES_KEY] = "/".join(map(str, place))
        self._lengths = np.array([series[FieldName.TARGET].shape[-1] for series in self._series], dtype=np.int64)
        # A series without a single observed value gives no window: it could only teach nonsense.
        self._is_observed = np.array(
            [series[FieldName.OBSERVED_VALUES].any() for series in self._series], dtype=np.bool_
        )
        self._split = split_chain(config)

    @abstractmethod
    def __len__(self) -> int:
        """Number of steps: the same on every rank."""

    @abstractmethod
    def _rows(self, step: int, epoch: int) -> tuple[IntArray, IntArray, npt.NDArray[np.bool_]]:
        """Series, split points and padding flags of the global batch of a step; each (global_batch_size,)."""

    def __getstate__(self) -> dict[str, Any]:
        """Take the rank along: a worker that is spawned has neither process group nor, maybe, environment."""
        return {**self.__dict__, "_home": World.current()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Share the epoch again, which a plain pickle copies."""
        self.__dict__ |= state
        self._epoch.share_memory_()  # type: ignore[no-untyped-call]

    def __iter__(self) -> Iterator[Batch]:
        """Batches of this rank and worker; rank, worker and epoch are those of now."""
        world = World.current()
        if world.world_size == 1 and get_worker_info() is not None:
            world = replace(world, rank=self._home.rank, world_size=self._home.world_size)
        if self.global_batch_size % world.world_size:
            raise WorldError(
                f"global_batch_size is {self.global_batch_size}, but must be divisible by the {world.world_size}"
                f" ranks. Set it to {-(-self.global_batch_size // world.world_size) * world.world_size}."
            )
        return self._batches(world, int(self._epoch))

    def _batches(self, world: World, epoch: int) -> Iterator[Batch]:
        size = self.global_batch_size // world.world_size
        mine = slice(world.rank * size, (world.rank + 1) * size)
        first = self.first_step + world.worker
        for step in range(first, len(self), world.num_workers):
            series_idx, split_points, is_padding = self._rows(step, epoch)
            batch = self._batch(series_idx[mine], split_points[mine], is_padding[mine], epoch)
            if step == first:
                check_batch(batch, self.config)
            yield batch

    def _batch(
        self, series_idx: IntArray, split_points: IntArray, is_padding: npt.NDArray[np.bool_], epoch: int
    ) -> Batch:
        marked = ({**self._series[i], SPLIT_POINTS: [int(t)]} for i, t in zip(series_idx, split_points, strict=True))
        windows = list(self._finish(self._split(marked, self._is_train), epoch))
        batch = stack(windows, future=self._is_train)
        if is_padding.any() and "future_observed_mask" in batch:
            batch["future_observed_mask"][np.flatnonzero(is_padding)] = 0.0
        batch.info = replace(
            batch.info,
            dataset_idx=self._dataset_idx[series_idx],
            series_idx=self._series_idx[series_idx],
            is_padding=is_padding,
        )
        return batch

    def _finish(self, windows: Iterator[Entry], epoch: int) -> Iterator[Entry]:  # noqa: ARG002
        return windows

    def _refuse_nothing(self, usable: int, future: int) -> None:
        if usable:
            return
        need, longest = self.min_past + future, int(self._lengths.max(initial=0))
        ids = [series.get(FieldName.ITEM_ID) for series in self._series[:3]]
        raise DataError(
            f"0 of {len(self._series)} series can give a window: {need} values are needed ({self.min_past} past,"
            f" {future} future), but the longest has {longest} (item_id {', '.join(map(repr, ids))}"
            f"{', ...' if len(self._series) > 3 else ''})."
            f" Shorten prediction_length{', or lower min_past' if self.min_past and longest >= future else ''}."
        )


class TrainingLoader(WindowDataset):
    """Random windows, uniform over all windows of all datasets, for a number of steps.

    Parameters
    ----------
    datasets
        Datasets of one frequency; several are mixed.
    config
        Hugging Face config of the model, compared with the data here and with the first batch of an iteration.
    schema
        Schema that the model was built with; None unites those of the datasets.
    global_batch_size
        Windows of one step over all ranks; must be divisible by the world size.
    num_steps
        Steps of one pass. A second pass draws the same windows, unless :meth:`set_epoch` is called in between.
    seed
        Fixes every window, together with the epoch.
    min_past
        Least number of real steps before a split point; 0 allows a past that is all padding.
    unknown_share
        Share of known categories that train the reserved row; see :class:`~tsnorm.transforms.MaskStaticCat`.
    infinity, add_age
        See :func:`~tsnorm.pipeline.series_chain`.

    Raises
    ------
    DataError
        An entry is not usable, or no series is long enough.
    ConfigMismatchError
        Config and data do not fit.
    WorldError
        At iteration: ``global_batch_size`` does not divide by the world size.
    """

    def __init__(
        self,
        datasets: Sequence[TimeSeriesDataset],
        *,
        config: Any,
        global_batch_size: int,
        num_steps: int,
        schema: StaticSchema | None = None,
        seed: int = 0,
        min_past: int = 1,
        unknown_share: float = UNKNOWN_SHARE,
        infinity: Literal["error", "missing"] = "error",
        add_age: bool = True,
    ) -> None:
        super().__init__(
            datasets,
            config=config,
            schema=schema,
            global_batch_size=global_batch_size,
            min_past=min_past,
            infinity=infinity,
            add_age=add_age,
            is_train=True,
        )
        if num_steps < 0 or seed < 0:
            raise WorldError(f"num_steps is {num_steps} and seed {seed}, but both must be from 0.")
        self.num_steps, self.seed, self.unknown_share = num_steps, seed, unknown_share
        self._mask = MaskStaticCat(fit_schema(self.schema, config, quiet=True), unknown_share, seed)
        self._windows = WindowIndex(
            lengths=np.where(self._is_observed, self._lengths, 0),
            prediction_length=config.prediction_length,
            min_past=min_past,
        )
        self._refuse_nothing(self._windows.total, config.prediction_length)

    @property
    def num_windows(self) -> int:
        """Distinct windows that may be drawn."""
        return self._windows.total

    @property
    def skipped(self) -> tuple[Any, ...]:
        """``item_id`` of each series that is too short for a window, or has no observed value."""
        return tuple(self._series[i].get(FieldName.ITEM_ID) for i in np.flatnonzero(self._windows.counts == 0))

    @property
    def epoch(self) -> int:
        """Epoch of the next iteration."""
        return int(self._epoch)

    def set_epoch(self, epoch: int) -> None:
        """Draw other windows from the next iteration on, also in workers that persist."""
        if epoch < 0:
            raise WorldError(f"epoch is {epoch}, but must be from 0.")
        self._epoch.fill_(epoch)

    def __len__(self) -> int:
        """Steps of one pass: the same on every rank."""
        return self.num_steps

    def _rows(self, step: int, epoch: int) -> tuple[IntArray, IntArray, npt.NDArray[np.bool_]]:
        drawn = philox(self.seed, epoch, step).integers(self._windows.total, size=self.global_batch_size)
        series_idx, split_points = self._windows.locate(drawn)
        return series_idx, split_points, np.zeros(self.global_batch_size, dtype=np.bool_)

    def _finish(self, windows: Iterator[Entry], epoch: int) -> Iterator[Entry]:
        seed = int(philox(self.seed, epoch).integers(2**63))
        return replace(self._mask, seed=seed)(windows, is_train=True)


class EvaluationLoader(WindowDataset):
    """One window a series, each exactly once over all ranks, in the order of the data.

    The last batch is filled up with repeated rows, flagged in ``info.is_padding`` and without a weight in the
    loss, so that all ranks make equal steps with equal shapes.

    Parameters
    ----------
    datasets, config, schema, global_batch_size, min_past, infinity, add_age
        See :class:`TrainingLoader`.
    mode
        ``"validation"``: the last H steps are the future. ``"test"``: all steps are the past, and only
        ``future_time_features`` is known of the future.
    """

    def __init__(
        self,
        datasets: Sequence[TimeSeriesDataset],
        *,
        config: Any,
        global_batch_size: int,
        mode: Literal["validation", "test"] = "validation",
        schema: StaticSchema | None = None,
        min_past: int = 1,
        infinity: Literal["error", "missing"] = "error",
        add_age: bool = True,
    ) -> None:
        if mode not in ("validation", "test"):
            raise WorldError(f"mode is {mode!r}, but must be 'validation' or 'test'.")
        super().__init__(
            datasets,
            config=config,
            schema=schema,
            global_batch_size=global_batch_size,
            min_past=min_past,
            infinity=infinity,
            add_age=add_age,
            is_train=mode == "validation",
        )
        future = config.prediction_length if mode == "validation" else 0
        self._usable = np.flatnonzero((self._lengths >= min_past + future) & self._is_observed)
        self._split_points = self._lengths - future
        self._refuse_nothing(len(self._usable), future)

    @property
    def skipped(self) -> tuple[Any, ...]:
        """``item_id`` of each series that is too short for a window, or has no observed value."""
        short = np.setdiff1d(np.arange(len(self._series)), self._usable)
        return tuple(self._series[i].get(FieldName.ITEM_ID) for i in short)

    def __len__(self) -> int:
        """Steps that cover every window once: the same on every rank."""
        return -(-len(self._usable) // self.global_batch_size)

    def _rows(self, step: int, epoch: int) -> tuple[IntArray, IntArray, npt.NDArray[np.bool_]]:  # noqa: ARG002
        positions = np.arange(step * self.global_batch_size, (step + 1) * self.global_batch_size)
        is_padding = positions >= len(self._usable)
        series_idx = self._usable[positions % len(self._usable)]
        return series_idx, self._split_points[series_idx], is_padding
