"""Slow and obvious: the chain as the Hugging Face notebooks write it, windows by hand, and the order of a loader."""

import numpy as np
import pandas as pd
import torch
from gluonts.dataset.field_names import FieldName
from gluonts.dataset.loader import as_stacked_batches
from gluonts.time_feature import time_features_from_frequency_str
from gluonts.transform import (
    AddAgeFeature,
    AddObservedValuesIndicator,
    AddTimeFeatures,
    AsNumpyArray,
    Chain,
    ExpectedNumInstanceSampler,
    InstanceSampler,
    InstanceSplitter,
    RemoveFields,
    RenameFields,
    TestSplitSampler,
    ValidationSplitSampler,
    VstackFeatures,
)

from tsnorm.freq import Frequency


class At(InstanceSampler):
    """Always the same split points."""

    points: list[int]

    def __call__(self, ts):
        return np.array(self.points, dtype=int)


def notebook_transformation(config, freq):
    """``create_transformation`` of the notebooks for Hugging Face's time-series models."""
    unused = []
    if config.num_static_real_features == 0:
        unused.append(FieldName.FEAT_STATIC_REAL)
    if config.num_dynamic_real_features == 0:
        unused.append(FieldName.FEAT_DYNAMIC_REAL)
    if config.num_static_categorical_features == 0:
        unused.append(FieldName.FEAT_STATIC_CAT)
    steps = [RemoveFields(field_names=unused)]
    if config.num_static_categorical_features > 0:
        steps.append(AsNumpyArray(field=FieldName.FEAT_STATIC_CAT, expected_ndim=1, dtype=int))
    if config.num_static_real_features > 0:
        steps.append(AsNumpyArray(field=FieldName.FEAT_STATIC_REAL, expected_ndim=1))
    time_fields = [FieldName.FEAT_TIME, FieldName.FEAT_AGE]
    if config.num_dynamic_real_features > 0:
        steps.append(AsNumpyArray(field=FieldName.FEAT_DYNAMIC_REAL, expected_ndim=2))
        time_fields.append(FieldName.FEAT_DYNAMIC_REAL)
    steps += [
        AsNumpyArray(field=FieldName.TARGET, expected_ndim=1 if config.input_size == 1 else 2),
        AddObservedValuesIndicator(target_field=FieldName.TARGET, output_field=FieldName.OBSERVED_VALUES),
        AddTimeFeatures(
            start_field=FieldName.START,
            target_field=FieldName.TARGET,
            output_field=FieldName.FEAT_TIME,
            time_features=time_features_from_frequency_str(freq),
            pred_length=config.prediction_length,
        ),
        AddAgeFeature(
            target_field=FieldName.TARGET,
            output_field=FieldName.FEAT_AGE,
            pred_length=config.prediction_length,
            log_scale=True,
        ),
        VstackFeatures(output_field=FieldName.FEAT_TIME, input_fields=time_fields),
        RenameFields(
            mapping={
                FieldName.FEAT_STATIC_CAT: "static_categorical_features",
                FieldName.FEAT_STATIC_REAL: "static_real_features",
                FieldName.FEAT_TIME: "time_features",
                FieldName.TARGET: "values",
                FieldName.OBSERVED_VALUES: "observed_mask",
            }
        ),
    ]
    return Chain(steps)


def notebook_splitter(config, sampler):
    """``create_instance_splitter`` of the notebooks."""
    return InstanceSplitter(
        target_field="values",
        is_pad_field=FieldName.IS_PAD,
        start_field=FieldName.START,
        forecast_start_field=FieldName.FORECAST_START,
        instance_sampler=sampler,
        past_length=config.context_length + max(config.lags_sequence),
        future_length=config.prediction_length,
        time_series_fields=["time_features", "observed_mask"],
    )


def notebook_sampler(mode, config, min_past):
    """Samplers of the notebooks, with a least past of one's own."""
    if mode == "train":
        return ExpectedNumInstanceSampler(num_instances=1.0, min_past=min_past, min_future=config.prediction_length)
    if mode == "validation":
        return ValidationSplitSampler(min_past=min_past, min_future=config.prediction_length)
    return TestSplitSampler()


def notebook_windows(entries, config, freq, sampler, mode):
    """Windows of the notebook chain; its entries must be well-formed, so they get their Period here."""
    period = Frequency.parse(freq).period_freq
    ready = [{**entry, "start": pd.Period(entry["start"], freq=period)} for entry in entries]
    chain = notebook_transformation(config, Frequency.parse(freq).offset_alias) + notebook_splitter(config, sampler)
    return list(chain(ready, is_train=mode != "test"))


def notebook_batch(windows, config, mode):
    """One batch of all windows, with the field names that the notebooks hand to the loader."""
    names = ["past_time_features", "past_values", "past_observed_mask", "future_time_features"]
    if config.num_static_categorical_features > 0:
        names.append("static_categorical_features")
    if config.num_static_real_features > 0:
        names.append("static_real_features")
    if mode != "test":
        names += ["future_values", "future_observed_mask"]
    [batch] = as_stacked_batches(windows, batch_size=len(windows), output_type=torch.tensor, field_names=names)
    return batch


def window_by_hand(entry, split_point, config, freq, mode):
    """One window, value by value: the past is padded with zeros on the left, gaps are 0.0 with mask 0."""
    frequency = Frequency.parse(freq)
    target = np.atleast_2d(np.array(entry["target"], dtype=np.float64))  # (C, T)
    start = pd.Period(entry["start"], freq=frequency.period_freq)
    calendar = time_features_from_frequency_str(frequency.offset_alias)
    dynamic = entry["feat_dynamic_real"] if config.num_dynamic_real_features else []
    num_steps = target.shape[1] + (config.prediction_length if mode == "test" else 0)
    age = np.log10(2.0 + np.arange(num_steps, dtype=np.float32))

    def value(c, t):
        return 0.0 if t < 0 or np.isnan(target[c, t]) else target[c, t]

    def observed(c, t):
        return 0.0 if t < 0 or np.isnan(target[c, t]) else 1.0

    def features(t):
        if t < 0:
            return [0.0] * (len(calendar) + 1 + len(dynamic))
        moment = pd.PeriodIndex([start + t])
        return [float(feature(moment)[0]) for feature in calendar] + [age[t]] + [feature[t] for feature in dynamic]

    def channels(of, steps):
        rows = [[of(c, t) for c in range(len(target))] for t in steps]
        return [row[0] for row in rows] if config.input_size == 1 else rows

    past = range(split_point - config.context_length - max(config.lags_sequence), split_point)
    future = range(split_point, split_point + config.prediction_length)
    window = {
        "past_values": channels(value, past),
        "past_time_features": [features(t) for t in past],
        "past_observed_mask": channels(observed, past),
        "future_time_features": [features(t) for t in future],
    }
    if mode != "test":
        window |= {"future_values": channels(value, future), "future_observed_mask": channels(observed, future)}
    return {key: torch.tensor(np.array(values, dtype=np.float32)) for key, values in window.items()}


def usable_split_points(length, prediction_length, min_past):
    """All split points of a series with enough past and future."""
    return [t for t in range(length + 1) if t >= min_past and t + prediction_length <= length]


def bits(tensor):
    """Dtype, shape and bytes of a tensor: equal only where every bit is."""
    return str(tensor.dtype), tuple(tensor.shape), tensor.contiguous().numpy().tobytes()


def same_bits(a, b):
    """Whether two batches have the same keys in any order, and every bit of every tensor."""
    return a.keys() == b.keys() and all(bits(a[key]) == bits(b[key]) for key in a)
