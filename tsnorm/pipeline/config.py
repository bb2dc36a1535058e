"""Model configs: completed from data, and compared with it before the first step."""

from __future__ import annotations

import difflib
import math
import warnings
from collections.abc import Iterable, Mapping
from numbers import Integral
from operator import index
from typing import Any

from tsnorm.errors import ConfigMismatchError, PlaceholderWarning
from tsnorm.freq import Frequency
from tsnorm.schema import CategoricalFeature, RealFeature, StaticSchema, check_cardinality

MODELS = {
    "time-series-transformer": ("TimeSeriesTransformerConfig", "TimeSeriesTransformerForPrediction"),
    "informer": ("InformerConfig", "InformerForPrediction"),
    "autoformer": ("AutoformerConfig", "AutoformerForPrediction"),
}
"""Model name -> names of its config and model class in transformers."""
STAMP = "tsnorm_schema"
"""Config field with the fingerprint of the schema that the config was completed from."""
_SAVED = {
    STAMP,
    "feature_size",
    "model_type",
    "transformers_version",
    "architectures",
    "_name_or_path",
    "dtype",
    "torch_dtype",
    "_commit_hash",
}
"""Fields of a saved config that are no settings."""
_NEEDED = [
    "prediction_length",
    "context_length",
    "lags_sequence",
    "input_size",
    "num_time_features",
    "num_dynamic_real_features",
    "num_static_categorical_features",
    "num_static_real_features",
]


def complete_config(
    model: str,
    *,
    schema: StaticSchema,
    freq: Frequency | str,
    prediction_length: int,
    context_length: int | None = None,
    lags_sequence: Iterable[int] | None = None,
    history: int | None = None,
    input_size: int = 1,
    num_dynamic_real_features: int = 0,
    add_age: bool = True,
    **settings: Any,
) -> Any:
    """Config of a Hugging Face time-series model that fits the data.

    Parameters
    ----------
    model
        ``time-series-transformer``, ``informer`` or ``autoformer``.
    schema
        Gives counts, cardinality and embedding dimensions of the static features.
    freq
        Gives ``num_time_features`` and, unless given, ``lags_sequence``.
    prediction_length
        Steps to forecast (H).
    context_length
        Steps that the encoder sees; None means 2 H.
    lags_sequence
        Lags in steps; None means GluonTS's for the frequency, as far as ``history`` reaches.
    history
        Length of the longest series in steps. Lags beyond ``history - context_length`` would read padding in
        every window and are left out. None keeps them all.
    input_size
        Target channels (C).
    num_dynamic_real_features
        Dynamic real features of the data (F).
    add_age
        Whether the age feature is counted among the time features.
    settings
        Further fields of the config. Layerdrop is 0.0 unless it is given here: a layer that is skipped on one
        rank leaves its parameters out of the step, which DDP without ``find_unused_parameters`` does not survive.

    Raises
    ------
    ConfigMismatchError
        The model is not known, or a setting contradicts itself.
    """
    import transformers

    if model not in MODELS:
        raise ConfigMismatchError(f"model is {model!r}, but must be one of {', '.join(MODELS)}, or a config JSON.")
    for name, given in (("prediction_length", prediction_length), ("context_length", context_length)):
        needed = given is not None or name == "prediction_length"
        if needed and (isinstance(given, bool) or not isinstance(given, Integral) or given < 1):
            raise ConfigMismatchError(f"{name} is {given!r}, but must be a whole number of steps from 1.")
    config_class = getattr(transformers, MODELS[model][0])
    for name in settings.keys() - config_class().to_dict().keys() - _SAVED:
        near = difflib.get_close_matches(name, config_class().to_dict(), n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ConfigMismatchError(f"config of {model}: it has no setting {name!r}.{hint}")
    frequency = as_frequency(freq)
    context = 2 * prediction_length if context_length is None else context_length
    if lags_sequence is None:
        upper = 1200 if history is None else max(1, min(1200, history - context))
        lags_sequence = frequency.lags(upper=upper)
    try:
        lags = [index(lag) for lag in lags_sequence]
    except TypeError as error:
        raise ConfigMismatchError(
            f"lags_sequence is {lags_sequence!r}, but must be a list of whole lags, such as [1, 2, 3]."
        ) from error
    fields: dict[str, Any] = {
        "prediction_length": prediction_length,
        "context_length": context,
        "lags_sequence": lags,
        "input_size": input_size,
        "num_time_features": frequency.num_time_features(age=add_age),
        "num_dynamic_real_features": num_dynamic_real_features,
        "encoder_layerdrop": 0.0,
        "decoder_layerdrop": 0.0,
        **schema.config_kwargs(),
    }
    if model == "autoformer":
        fields["label_length"] = min(10, context)
    fields |= settings
    check_cardinality(fields["num_static_categorical_features"], fields["cardinality"])
    try:
        config = config_class(**{name: value for name, value in fields.items() if name not in _SAVED})
    except Exception as error:
        raise ConfigMismatchError(f"config of {model}: transformers refuses it: {error}") from error
    if not settings.keys() & schema.config_kwargs().keys():
        setattr(config, STAMP, schema.fingerprint())
    check_config(config, schema=schema, freq=frequency, add_age=add_age)
    return config


def config_from_dict(fields: Mapping[str, Any]) -> Any:
    """Config from the dict of a ``config.json``, checked as it is written.

    transformers drops a contradiction without a word; here it is still seen.

    Raises
    ------
    ConfigMismatchError
        ``model_type`` is none of the three, or count and cardinality contradict each other.
    """
    import transformers

    model = str(fields.get("model_type", "")).replace("_", "-")
    if model not in MODELS:
        known = ", ".join(name.replace("-", "_") for name in MODELS)
        raise ConfigMismatchError(f"config: model_type is {fields.get('model_type')!r}, but must be one of {known}.")
    check_cardinality(fields.get("num_static_categorical_features", 0), fields.get("cardinality"))
    try:
        return getattr(transformers, MODELS[model][0]).from_dict(dict(fields))
    except Exception as error:
        raise ConfigMismatchError(f"config of {model}: transformers refuses it: {error}") from error


def model_from_config(config: Any) -> Any:
    """Untrained ``...ForPrediction`` model of a config.

    Raises
    ------
    ConfigMismatchError
        A setting is not usable.
    """
    import transformers

    try:
        return getattr(transformers, MODELS[config.model_type.replace("_", "-")][1])(config)
    except Exception as error:
        raise ConfigMismatchError(f"config of {config.model_type}: no model can be built from it: {error}") from error


def past_length(config: Any) -> int:
    """Steps of the past part of a window: ``context_length + max(lags_sequence)``."""
    return int(config.context_length + max(config.lags_sequence))


def as_frequency(freq: Any) -> Frequency:
    """Frequency as it is, or read from any spelling or pandas offset."""
    return freq if isinstance(freq, Frequency) else Frequency.parse(freq)


def check_config(
    config: Any,
    *,
    schema: StaticSchema | None = None,
    freq: Frequency | str | None = None,
    add_age: bool = True,
) -> None:
    """Compare a config with itself and with the data it is to be used for; all faults in one message.

    A config with *more* static columns than the data is no fault: they are filled (see :func:`fit_schema`).

    Raises
    ------
    ConfigMismatchError
        Naming each input, what the data has, what the config has, and the line to set.
    """
    check_kind(config)
    faults = [*_own_faults(config)]
    if schema is not None:
        faults += _static_faults(config, schema)
    if freq is not None:
        frequency = as_frequency(freq)
        width = frequency.num_time_features(age=add_age)
        if config.num_time_features != width:
            faults.append(
                f"time features: data at {frequency} has {width} ({'with' if add_age else 'without'} age), config has"
                f" {config.num_time_features}. Set num_time_features={width}."
            )
    if faults:
        raise ConfigMismatchError("config and data do not fit:\n  " + "\n  ".join(faults))


def check_kind(config: Any) -> None:
    """Refuse what is no config of a Hugging Face time-series model."""
    if lacking := [name for name in _NEEDED if not hasattr(config, name)]:
        raise ConfigMismatchError(
            f"config: a {type(config).__name__} has no attribute {lacking[0]}, but the config object of a Hugging Face"
            " time-series model must have it."
        )


def _own_faults(config: Any) -> list[str]:
    faults = []
    for name in ("prediction_length", "context_length"):
        if not isinstance(getattr(config, name), int) or getattr(config, name) < 1:
            faults.append(f"{name} is {getattr(config, name)!r}, but must be a whole number of steps from 1.")
    for name, least in (("input_size", 1), ("num_dynamic_real_features", 0)):
        if getattr(config, name) < least:
            faults.append(f"{name} is {getattr(config, name)!r}, but must be a whole number from {least}.")
    for name in ("d_model", "encoder_layers", "decoder_layers"):
        if getattr(config, name, 1) < 1:
            faults.append(f"{name} is {getattr(config, name)!r}, but must be a whole number from 1.")
    for name in ("encoder_attention_heads", "decoder_attention_heads"):
        heads = getattr(config, name, 1)
        if heads < 1 or config.d_model % heads:
            faults.append(f"d_model is {config.d_model}, but must be divisible by {name}, {heads}.")
    if config.scaling not in ("mean", "std", None, True, False):
        faults.append(f"scaling is {config.scaling!r}, but must be 'mean', 'std', True, False or None.")
    if config.num_static_categorical_features and min(config.embedding_dimension) < 1:
        faults.append(f"embedding_dimension is {config.embedding_dimension}, but a size of 0 ignores its category.")
    lags = list(config.lags_sequence)
    if not lags or min(lags) < 1:
        faults.append(f"lags_sequence is {lags!r}, but must be lags from 1, such as [1, 2, 3].")
    try:
        check_cardinality(config.num_static_categorical_features, config.cardinality)
    except ConfigMismatchError as error:
        faults.append(str(error).removeprefix("config: "))
    if not faults:
        width = config.input_size * len(lags) + config._number_of_features
        if getattr(config, "feature_size", width) != width:
            faults.append(f"feature_size is {config.feature_size}, but the other settings give {width}. Leave it out.")
    if config.model_type == "autoformer":
        if config.moving_average % 2 == 0 or config.moving_average < 1:
            faults.append(
                f"moving_average is {config.moving_average}, but Autoformer needs an odd one."
                f" Set moving_average={max(1, config.moving_average + 1)}."
            )
        if isinstance(config.context_length, int) and not 1 <= config.label_length <= config.context_length:
            faults.append(
                f"label_length is {config.label_length}, but must be from 1 to context_length, {config.context_length}."
                f" Set label_length={min(10, config.context_length)}."
            )
        if not faults:
            faults += _autocorrelation_faults(config)
    return faults


def _autocorrelation_faults(config: Any) -> list[str]:
    """Lengths of which Autoformer would take no delay at all, or more than there are."""
    faults = []
    for what, length in (
        ("context_length", config.context_length),
        ("label_length + prediction_length", config.label_length + config.prediction_length),
    ):
        delays = int(config.autocorrelation_factor * math.log(length))
        if not 1 <= delays <= length:
            faults.append(
                f"{what} is {length}, of which Autoformer's autocorrelation_factor of {config.autocorrelation_factor}"
                f" takes {delays} delays, but must take from 1 to {length}. Set a longer one, or another factor."
            )
    return faults


def _static_faults(config: Any, schema: StaticSchema) -> list[str]:
    faults = []
    cats, reals = len(schema.categorical), schema.num_static_real if schema.real else 0
    kwargs = schema.config_kwargs()
    for batch_key, data, setting in (
        ("static_categorical_features", cats, "num_static_categorical_features"),
        ("static_real_features", reals, "num_static_real_features"),
    ):
        has = getattr(config, setting)
        if data > has:
            also = f", cardinality={kwargs['cardinality']}" if "categorical" in setting else ""
            faults.append(
                f"{batch_key}: data has {data} column{'' if data == 1 else 's'}, config has {has}."
                f" Set {setting}={kwargs[setting]}{also}."
            )
    if cats <= config.num_static_categorical_features:
        for feature, rows in zip(schema.categorical, config.cardinality, strict=False):
            if feature.cardinality > rows:
                reserved = ", the reserved row included" if feature.unknown_id is not None else ""
                faults.append(
                    f"static_categorical_features: {feature.name!r} has cardinality {feature.cardinality}{reserved},"
                    f" config has {rows}. Set cardinality={kwargs['cardinality']}."
                )
    return faults


def fit_schema(schema: StaticSchema, config: Any, *, quiet: bool = False) -> StaticSchema:
    """Schema with exactly the columns of the config: those that the data lacks are filled, with a warning.

    Parameters
    ----------
    schema
        Schema of the data.
    config
        Hugging Face config of the model.
    quiet
        Whether the warning is left out, as where it was given before.

    Warns
    -----
    PlaceholderWarning
        The config has columns beyond the schema's features. Not for a config that
        :func:`complete_config` made from this schema: there the placeholder was agreed on.

    Raises
    ------
    ConfigMismatchError
        The config has fewer columns than the schema has features, or rows of their tables.
    """
    if faults := _static_faults(config, schema):
        raise ConfigMismatchError("config and data do not fit:\n  " + "\n  ".join(faults))
    cats = config.num_static_categorical_features
    reals = config.num_static_real_features
    if (schema.num_static_cat, schema.num_static_real) == (cats, reals) and (
        getattr(config, STAMP, None) == schema.fingerprint() or (schema.categorical and schema.real)
    ):
        return schema
    more_cats = [
        CategoricalFeature(name=f"placeholder_cat_{k}", cardinality=config.cardinality[k], fill_id=0)
        for k in range(len(schema.categorical), cats)
    ]
    width = schema.num_static_real if schema.real else 0
    more_reals = [RealFeature(name=f"placeholder_real_{r}", fill=0.0) for r in range(width, reals)]
    for key, more, has in (
        ("static_categorical_features", more_cats, cats),
        ("static_real_features", more_reals, reals),
    ):
        if more and not quiet:
            warnings.warn(
                f"{key}: config has {has} column{'' if has == 1 else 's'}, data has {has - len(more)}: the other"
                f" {len(more)} are filled with 0. Use the data the model was made for, or a config without them.",
                PlaceholderWarning,
                stacklevel=3,
            )
    if more_reals and any(feature.indicator for feature in schema.real):
        raise ConfigMismatchError(
            f"static_real_features: config has {reals} columns, data has {width} with missing-indicators, so that"
            f" filled columns would stand among them. Set num_static_real_features={width}."
        )
    return StaticSchema(
        categorical=(*schema.categorical, *more_cats), real=(*schema.real, *more_reals), placeholder="omit"
    )
