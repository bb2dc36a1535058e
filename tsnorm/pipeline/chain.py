"""The chains that people copy from notebooks, built from a model config and a schema.

Train, validation and test differ in one thing only: where a series is split.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from gluonts.dataset.field_names import FieldName
from gluonts.transform import (
    AddAgeFeature,
    AddObservedValuesIndicator,
    AddTimeFeatures,
    Chain,
    ExpectedNumInstanceSampler,
    Identity,
    InstanceSampler,
    TestSplitSampler,
    ValidationSplitSampler,
    VstackFeatures,
)

from tsnorm.errors import ConfigMismatchError, Place
from tsnorm.freq import Frequency
from tsnorm.pipeline.config import as_frequency, check_config, fit_schema, past_length
from tsnorm.schema import StaticSchema
from tsnorm.transforms import Entry, EntryTransformation, MaskStaticCat, static_features
from tsnorm.transforms.mask import UNKNOWN_SHARE
from tsnorm.transforms.series import ReadSeries
from tsnorm.transforms.split import SplitAt, WindowSplitter


def series_chain(
    config: Any,
    schema: StaticSchema,
    freq: Frequency | str,
    *,
    source: StaticSchema | None = None,
    infinity: Literal["error", "missing"] = "error",
    add_age: bool = True,
) -> Chain:
    """Everything before the split: what is done once for a series, not once for a window.

    The order is fixed: statics, then the observed mask *before* gaps are filled, then the features of time.

    Parameters
    ----------
    config
        Hugging Face config of a time-series model. It is compared with schema and frequency here, before
        the first step.
    schema
        Schema that the model was built with. Columns that the config has beyond it are filled, with a warning.
    freq
        Frequency of the dataset.
    source
        Schema of the dataset's own columns; None means ``schema``.
    infinity
        Whether an infinite target is an ``"error"`` or ``"missing"``.
    add_age
        Whether GluonTS's age feature is among the time features, as in the notebooks.

    Returns
    -------
    gluonts.transform.Chain
        After it an entry holds ``target`` float32 (T,) or (C, T) with gaps filled by 0.0, ``observed_values``
        alike, ``time_feat`` float32 (num_time_features + F, T), and both static fields.

    Raises
    ------
    ConfigMismatchError
        The config wants another number of columns than the data has.
    """
    frequency = as_frequency(freq)
    check_config(config, schema=schema, freq=frequency, add_age=add_age)
    filled = fit_schema(schema, config)
    horizon, num_dynamic = config.prediction_length, config.num_dynamic_real_features
    read = ReadSeries(str(frequency), horizon, config.input_size, num_dynamic, infinity)
    time_fields = [FieldName.FEAT_TIME] + [FieldName.FEAT_AGE] * add_age
    if num_dynamic:
        time_fields.append(FieldName.FEAT_DYNAMIC_REAL)
    return Chain(
        [
            read,
            static_features(filled, source or schema),
            AddObservedValuesIndicator(target_field=FieldName.TARGET, output_field=FieldName.OBSERVED_VALUES),
            AddTimeFeatures(
                start_field=FieldName.START,
                target_field=FieldName.TARGET,
                output_field=FieldName.FEAT_TIME,
                time_features=frequency.time_features(),
                pred_length=horizon,
            ),
            AddAgeFeature(target_field=FieldName.TARGET, output_field=FieldName.FEAT_AGE, pred_length=horizon)
            if add_age
            else Identity(),
            _ZeroWidthTimeFeatures(horizon)
            if frequency.num_time_features(age=add_age) + num_dynamic == 0
            else VstackFeatures(output_field=FieldName.FEAT_TIME, input_fields=time_fields),
        ]
    )


def training_chain(
    config: Any,
    schema: StaticSchema,
    freq: Frequency | str,
    *,
    num_instances: float = 1.0,
    min_past: int = 1,
    unknown_share: float = UNKNOWN_SHARE,
    seed: int = 0,
    **options: Any,
) -> Chain:
    """:func:`series_chain` and windows at random split points, as GluonTS draws them.

    The draw uses numpy's global random state, as GluonTS does; :class:`~tsnorm.pipeline.TrainingLoader` gives
    the same windows from explicit seeds and on any number of ranks.

    Parameters
    ----------
    config, schema, freq, options
        See :func:`series_chain`.
    num_instances
        Windows drawn from each series on average.
    min_past
        Least number of real steps before a split point; 0 allows a past that is all padding.
    unknown_share, seed
        See :class:`~tsnorm.transforms.MaskStaticCat`.
    """
    if not num_instances > 0:
        raise ConfigMismatchError(f"num_instances is {num_instances!r}, but must be positive, or no window comes out.")
    series = series_chain(config, schema, freq, **options)
    sampler = ExpectedNumInstanceSampler(
        num_instances=num_instances, min_past=min_past, min_future=config.prediction_length
    )
    mask = MaskStaticCat(fit_schema(schema, config, quiet=True), unknown_share, seed)
    return series + _splitter(config, sampler) + mask


def validation_chain(
    config: Any, schema: StaticSchema, freq: Frequency | str, *, min_past: int = 1, **options: Any
) -> Chain:
    """:func:`series_chain` and one window a series: its last H steps are the future. Shorter series give none."""
    series = series_chain(config, schema, freq, **options)
    sampler = ValidationSplitSampler(min_past=min_past, min_future=config.prediction_length)
    return series + _splitter(config, sampler)


def test_chain(config: Any, schema: StaticSchema, freq: Frequency | str, **options: Any) -> Chain:
    """:func:`series_chain` and one window a series, to be applied with ``is_train=False``: all of it is the past."""
    return series_chain(config, schema, freq, **options) + _splitter(config, TestSplitSampler())


def split_chain(config: Any) -> SplitAt:
    """What loaders put behind :func:`series_chain`: windows at given split points."""
    splitter: SplitAt = SplitAt(past_length=past_length(config), future_length=config.prediction_length)
    return splitter


def _splitter(config: Any, sampler: InstanceSampler) -> WindowSplitter:
    splitter: WindowSplitter = WindowSplitter(
        instance_sampler=sampler, past_length=past_length(config), future_length=config.prediction_length
    )
    return splitter


@dataclass(frozen=True)
class _ZeroWidthTimeFeatures(EntryTransformation):
    """Time features of a model that takes none: float32 (0, T), or (0, T + H) in prediction."""

    prediction_length: int

    def change(self, entry: Entry, place: Place, is_train: bool) -> Entry:
        length = entry[FieldName.TARGET].shape[-1] + (0 if is_train else self.prediction_length)
        entry[FieldName.FEAT_TIME] = np.zeros((0, length), dtype=np.float32)
        return entry


test_chain.__test__ = False  # type: ignore[attr-defined]  # pytest would take it for a test
