"""A config that is completed from the data fits it; one that does not is told by name, in both directions."""

import json

import pytest
import transformers
from tiny_models import CONTEXT, FAMILIES, HORIZON, LAGS, SMALL, series, tiny_config, tiny_model, train_step

from tsnorm.errors import ConfigMismatchError, FrequencyError, PlaceholderWarning
from tsnorm.freq import Frequency
from tsnorm.pipeline import (
    check_batch,
    check_config,
    complete_config,
    config_from_dict,
    fit_schema,
    model_from_config,
    past_length,
    stack,
    validation_chain,
)
from tsnorm.pipeline import test_chain as prediction_chain
from tsnorm.schema import CategoricalFeature, RealFeature, StaticSchema

NONE = StaticSchema(placeholder="omit")
STATICS = StaticSchema.from_counts([3, 12], 2)


@pytest.mark.parametrize("family", FAMILIES)
class TestCompleted:
    def test_statics_come_from_the_schema(self, family):
        config = complete_config(family, schema=STATICS, freq="M", prediction_length=4)
        assert config.num_static_categorical_features == 2
        assert config.cardinality == [4, 13]
        assert config.embedding_dimension == [2, 7]
        assert config.num_static_real_features == 2

    @pytest.mark.parametrize("freq", ["Y", "2Q", "M", "W-MON", "D", "B", "h", "10min", "s"])
    @pytest.mark.parametrize("age", [True, False])
    def test_time_features_and_lags_come_from_the_frequency(self, family, freq, age):
        config = complete_config(family, schema=NONE, freq=freq, prediction_length=4, add_age=age)
        frequency = Frequency.parse(freq)
        assert config.num_time_features == len(frequency.time_features()) + age
        assert config.lags_sequence == frequency.lags()

    @pytest.mark.parametrize("history", [1, 8, 9, 20, 100, 10_000])
    def test_lags_are_bounded_by_the_history(self, family, history):
        config = complete_config(family, schema=NONE, freq="D", prediction_length=4, history=history)
        free = complete_config(family, schema=NONE, freq="D", prediction_length=4)
        assert config.context_length == 8
        upper = max(1, history - 8)
        assert config.lags_sequence == [lag for lag in free.lags_sequence if lag <= upper] != []
        assert past_length(config) == 8 + max(config.lags_sequence)

    def test_lags_that_are_given_are_kept(self, family):
        config = complete_config(family, schema=NONE, freq="D", prediction_length=4, lags_sequence=(1, 30), history=5)
        assert config.lags_sequence == [1, 30]

    def test_lengths(self, family):
        config = complete_config(family, schema=NONE, freq="M", prediction_length=6)
        assert (config.prediction_length, config.context_length, config.input_size) == (6, 12, 1)
        config = complete_config(family, schema=NONE, freq="M", prediction_length=6, context_length=3, input_size=2)
        assert (config.context_length, config.input_size) == (3, 2)

    def test_no_layer_is_dropped_unless_it_is_asked_for(self, family):
        config = complete_config(family, schema=NONE, freq="M", prediction_length=4)
        assert (config.encoder_layerdrop, config.decoder_layerdrop) == (0.0, 0.0)
        config = complete_config(family, schema=NONE, freq="M", prediction_length=4, encoder_layerdrop=0.1)
        assert config.encoder_layerdrop == 0.1

    def test_settings_reach_the_config_and_unfit_ones_are_refused(self, family):
        config = complete_config(family, schema=NONE, freq="M", prediction_length=4, d_model=16, dropout=0.3)
        assert (config.d_model, config.dropout) == (16, 0.3)
        with pytest.raises(
            ConfigMismatchError, match=f"config of {family}: transformers refuses it: (?s:.)*embedding dim"
        ):
            complete_config(family, schema=STATICS, freq="M", prediction_length=4, embedding_dimension=[2])
        with pytest.raises(ConfigMismatchError, match=f"config of {family}: transformers refuses it: (?s:.)*dropout"):
            complete_config(family, schema=NONE, freq="M", prediction_length=4, dropout="high")

    @pytest.mark.parametrize("schema", [NONE, StaticSchema(), STATICS], ids=["omit", "column", "statics"])
    @pytest.mark.parametrize("channels", [1, 2])
    def test_model_runs_and_every_parameter_takes_part(self, family, schema, channels):
        config = tiny_config(family, schema, input_size=channels)
        data = series(channels=channels)
        batch = stack(list(validation_chain(config, schema, "M")(data, is_train=True)))
        check_batch(batch, config)
        model = tiny_model(config)
        assert train_step(model, batch)[1] == []
        ahead = stack(list(prediction_chain(config, schema, "M")(data, is_train=False)), future=False)
        check_batch(ahead, config)
        shape = (4, config.num_parallel_samples, HORIZON) + ((channels,) if channels > 1 else ())
        assert model.eval().generate(**ahead).sequences.shape == shape

    @pytest.mark.parametrize(("context", "horizon"), [(2, 1), (2, 2), (3, 5), (5, 1)])
    def test_short_lengths_run(self, family, context, horizon):
        config = tiny_config(family, NONE, context_length=context, prediction_length=horizon, lags_sequence=[1])
        batch = stack(list(validation_chain(config, NONE, "M")(series(), is_train=True)))
        assert train_step(tiny_model(config), batch)[1] == []

    def test_config_goes_through_json_with_its_stamp(self, family):
        schema = StaticSchema()
        config = tiny_config(family, schema)
        again = config_from_dict(json.loads(config.to_json_string()))
        assert type(again) is type(config)
        check_config(again, schema=schema, freq="M")
        assert fit_schema(schema, again) == schema  # without a warning: it is the placeholder agreed on

    def test_model_of_a_config(self, family):
        assert type(model_from_config(tiny_config(family))).__name__.endswith("ForPrediction")


def test_model_that_is_not_known():
    with pytest.raises(
        ConfigMismatchError, match="model is 'patchtst', but must be one of time-series-transformer, inf"
    ):
        complete_config("patchtst", schema=NONE, freq="M", prediction_length=4)
    with pytest.raises(
        ConfigMismatchError, match="model_type is 'patchtst', but must be one of time_series_transformer"
    ):
        config_from_dict({"model_type": "patchtst"})
    with pytest.raises(ConfigMismatchError, match="model_type is None"):
        config_from_dict({})
    with pytest.raises(
        ConfigMismatchError, match="BertConfig has no attribute prediction_length, but the config object"
    ):
        check_config(transformers.BertConfig())
    with pytest.raises(FrequencyError, match="'fortnight' is not known"):
        complete_config("informer", schema=NONE, freq="fortnight", prediction_length=4)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"prediction_length": 0}, "prediction_length is 0, but must be a whole number of steps from 1"),
        ({"context_length": -1}, "context_length is -1, but must be a whole number of steps from 1"),
        ({"lags_sequence": []}, r"lags_sequence is \[\], but must be lags from 1"),
        ({"lags_sequence": [0, 1]}, r"lags_sequence is \[0, 1\], but must be lags from 1"),
        ({"lags_sequence": [1.5, 2]}, r"lags_sequence is \[1\.5, 2\], but must be a list of whole lags"),
        ({"lags_sequence": "12"}, "lags_sequence is '12', but must be a list of whole lags"),
        ({"lags_sequence": 5}, "lags_sequence is 5, but must be a list of whole lags"),
        ({"input_size": 0}, "input_size is 0, but must be a whole number from 1"),
        ({"num_dynamic_real_features": -1}, "num_dynamic_real_features is -1, but must be a whole number from 0"),
        (
            {"num_time_features": 1},
            r"time features: data at M has 2 \(with age\), config has 1\. Set num_time_features=2",
        ),
        ({"cardinality": [3]}, r"cardinality is \[3\], but num_static_categorical_features is 0"),
    ],
)
@pytest.mark.parametrize("family", FAMILIES)
def test_config_that_contradicts_itself(family, settings, message):
    with pytest.raises(ConfigMismatchError, match=message):
        tiny_config(family, NONE, **settings)


@pytest.mark.parametrize(
    ("data", "config", "message"),
    [
        (
            StaticSchema.from_counts([3], missing_cat="error"),
            NONE,
            r"static_categorical_features: data has 1 column, config has 0\. "
            r"Set num_static_categorical_features=1, cardinality=\[3\]",
        ),
        (
            StaticSchema.from_counts([3, 5], missing_cat="error"),
            StaticSchema.from_counts([3], missing_cat="error"),
            r"static_categorical_features: data has 2 columns, config has 1\. .*cardinality=\[3, 5\]",
        ),
        (
            StaticSchema.from_counts([], 2),
            NONE,
            r"static_real_features: data has 2 columns, config has 0\. Set num_static_real_features=2",
        ),
        (
            StaticSchema(real=[RealFeature(name="size", fill=0.0, indicator=True)], placeholder="omit"),
            StaticSchema.from_counts([], 1, placeholder="omit"),
            r"static_real_features: data has 2 columns, config has 1\. Set num_static_real_features=2",
        ),
        (
            StaticSchema.from_counts([5], missing_cat="error"),
            StaticSchema.from_counts([3], missing_cat="error"),
            r"'feat_static_cat_0' has cardinality 5, config has 3\. Set cardinality=\[5\]",
        ),
        (
            StaticSchema.from_counts([3]),
            StaticSchema.from_counts([3], missing_cat="error"),
            r"'feat_static_cat_0' has cardinality 4, the reserved row included, config has 3\. Set cardinality=\[4\]",
        ),
    ],
)
def test_data_has_more_than_the_config(data, config, message):
    config = tiny_config("informer", config)
    for call in (
        lambda: check_config(config, schema=data),
        lambda: fit_schema(data, config),
        lambda: validation_chain(config, data, "M"),
    ):
        with pytest.raises(ConfigMismatchError, match=message):
            call()


@pytest.mark.parametrize(
    ("data", "config", "warned"),
    [
        (NONE, StaticSchema.from_counts([3]), {"static_categorical_features", "static_real_features"}),
        (NONE, StaticSchema.from_counts([3], placeholder="omit"), {"static_categorical_features"}),
        (
            StaticSchema.from_counts([3]),
            StaticSchema.from_counts([3, 4], 1),
            {"static_categorical_features", "static_real_features"},
        ),
        (StaticSchema.from_counts([3], 1), StaticSchema.from_counts([9], 1), set()),
        (StaticSchema.from_counts([3], 1), StaticSchema.from_counts([3], 3), {"static_real_features"}),
    ],
)
def test_config_has_more_than_the_data(data, config, warned):
    config = tiny_config("informer", config)
    check_config(config, schema=data, freq="M")
    fitted = fit_schema(data, config, quiet=True)
    assert fitted.num_static_cat == config.num_static_categorical_features
    assert fitted.num_static_real == config.num_static_real_features
    if not warned:
        assert fit_schema(data, config) == data
        return
    with pytest.warns(
        PlaceholderWarning, match="config has . columns?, data has .: the other . are filled with 0"
    ) as seen:
        chain = validation_chain(config, data, "M")
    assert {str(warning.message).partition(":")[0] for warning in seen} == warned
    batch = stack(list(chain(series(), is_train=True)))
    check_batch(batch, config)
    assert train_step(tiny_model(config), batch)[1] == []


def test_filled_columns_never_stand_among_missing_indicators():
    data = StaticSchema(real=[RealFeature(name="size", fill=0.0, indicator=True)], placeholder="omit")
    config = tiny_config("informer", NONE, num_static_real_features=3)
    with pytest.raises(ConfigMismatchError, match="config has 3 columns, data has 2 with missing-indicators"):
        fit_schema(data, config, quiet=True)


def test_larger_table_in_the_config_is_no_fault():
    data = StaticSchema(categorical=[CategoricalFeature(name="region", cardinality=3)], placeholder="omit")
    config = tiny_config("informer", NONE, num_static_categorical_features=1, cardinality=[10], embedding_dimension=[4])
    check_config(config, schema=data, freq="M")
    batch = stack(list(validation_chain(config, data, "M")(series(feat_static_cat=[2]), is_train=True)))
    check_batch(batch, config)


def test_all_faults_stand_in_one_message():
    config = tiny_config("autoformer", NONE)
    config.moving_average, config.label_length = 4, 99
    with pytest.raises(ConfigMismatchError) as caught:
        check_config(config, schema=STATICS, freq="D")
    for part in (
        "moving_average",
        "label_length",
        "static_categorical_features",
        "static_real_features",
        "time features",
    ):
        assert f"\n  {part}" in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"num_static_categorical_features": 2, "cardinality": [3]}, r"is 2, but cardinality is \[3\]\. Give 2 sizes"),
        (
            {"num_static_categorical_features": 1, "cardinality": [0.5]},
            "cardinality holds 0.5, but sizes are whole numbers",
        ),
        (
            {"num_static_categorical_features": 1, "cardinality": [-3]},
            "cardinality holds -3, but sizes are whole numbers",
        ),
        ({"context_length": "long"}, "config of informer: transformers refuses it: (?s:.)*context_length"),
    ],
)
def test_config_from_dict_refuses(fields, message):
    with pytest.raises(ConfigMismatchError, match=message):
        config_from_dict({"model_type": "informer", "prediction_length": 4, **fields})


@pytest.mark.parametrize("family", FAMILIES)
def test_config_from_dict_gives_the_config_of_the_family(family):
    fields = {"model_type": family.replace("-", "_"), "prediction_length": 4, "context_length": CONTEXT, **SMALL}
    fields |= {"lags_sequence": LAGS, "num_time_features": 2, "label_length": 4}
    config = config_from_dict(fields)
    assert config.model_type == fields["model_type"]
    assert fields["model_type"] == family.replace("-", "_")  # untouched
    check_config(config, schema=NONE, freq="M")
