"""Windows out of a series.

Annotations stay objects here (no ``from __future__ import annotations``): ``@validated`` of GluonTS reads them.
"""

from collections.abc import Iterable, Iterator

from gluonts.core.component import validated
from gluonts.dataset.field_names import FieldName
from gluonts.transform import InstanceSampler, InstanceSplitter

from tsnorm.errors import DataError
from tsnorm.transforms.base import Entry

SPLIT_POINTS = "split_points"
"""Entry field with the split points: indices of the first step to forecast."""
SPLIT_POINT = "split_point"
"""Window field with its split point."""
_PATIENCE = 10_000  # short series in a row before a repeated one counts as a cycle: equal ones may just be many


class WindowSplitter(InstanceSplitter):
    """GluonTS's ``InstanceSplitter`` for the fields of a tsnorm chain, which passes over short series.

    However many short series follow each other, that is no error; but where *no* series can give a window, as
    in a cycle over the dataset, that is said instead of GluonTS's "idle transformation calls".

    Parameters
    ----------
    instance_sampler
        Draws the split points of a series.
    past_length, future_length
        Steps of the two parts of a window.

    Raises
    ------
    DataError
        When iterated: the stream came round without a series that is long enough.
    """

    @validated()  # type: ignore[untyped-decorator]
    def __init__(self, instance_sampler: InstanceSampler, past_length: int, future_length: int) -> None:
        super().__init__(
            target_field=FieldName.TARGET,
            is_pad_field=FieldName.IS_PAD,
            start_field=FieldName.START,
            forecast_start_field=FieldName.FORECAST_START,
            instance_sampler=instance_sampler,
            past_length=past_length,
            future_length=future_length,
            time_series_fields=[FieldName.FEAT_TIME, FieldName.OBSERVED_VALUES],
        )

    def __call__(self, data_it: Iterable[Entry], is_train: bool) -> Iterator[Entry]:
        """Give the windows of each series in turn."""
        first: tuple[object, ...] | None = None
        longest = returns = passed = 0
        for entry in data_it:
            target = entry[FieldName.TARGET]
            earliest, latest = self.instance_sampler._get_bounds(target)
            if earliest <= latest:
                first = None
                yield from self.flatmap_transform(dict(entry), is_train)
                continue
            mark = (repr(entry.get(FieldName.ITEM_ID)), entry[FieldName.START], target.tobytes())
            if first is None:
                first, longest, returns, passed = mark, 0, 0, 0
            longest, returns, passed = max(longest, target.shape[-1]), returns + (mark == first), passed + 1
            if returns >= 3 and passed >= _PATIENCE:
                need = self.instance_sampler.min_past + self.instance_sampler.min_future
                raise DataError(
                    f"no series can give a window: {need} values are needed ({self.instance_sampler.min_past} past,"
                    f" {self.instance_sampler.min_future} future), but the longest has {longest}."
                    " Shorten prediction_length, or lower min_past."
                )


class SplitAt(WindowSplitter):
    """Windows at given split points instead of sampled ones.

    Each entry brings its own in the field ``split_points``; each window keeps its own in ``split_point``. So
    the windows of a (series, split point) pair are those of GluonTS, and who draws the pairs is another matter.

    Parameters
    ----------
    past_length, future_length
        Steps of the two parts of a window.
    """

    @validated()  # type: ignore[untyped-decorator]
    def __init__(self, past_length: int, future_length: int) -> None:
        super().__init__(instance_sampler=InstanceSampler(), past_length=past_length, future_length=future_length)

    def flatmap_transform(self, entry: Entry, is_train: bool) -> Iterator[Entry]:
        """Give one window for each split point, in their order."""
        for split_point in entry.pop(SPLIT_POINTS):
            window = self._split_instance(entry, split_point)
            window[SPLIT_POINT] = split_point
            yield window
