"""Schemas from GluonTS metadata, from Hugging Face configs, and from counts."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from gluonts.dataset.common import BasicFeatureInfo, CategoricalFeatureInfo, MetaData
from transformers import AutoformerConfig, InformerConfig, PatchTSTConfig, TimeSeriesTransformerConfig

from tsnorm.errors import ConfigMismatchError, MetadataError, SchemaError
from tsnorm.schema import CategoricalFeature, RealFeature, StaticSchema, check_cardinality

CONFIGS = (TimeSeriesTransformerConfig, InformerConfig, AutoformerConfig)


def metadata_of(*cats, real=()):
    return MetaData(
        freq="M",
        feat_static_cat=[CategoricalFeatureInfo(name=name, cardinality=str(size)) for name, size in cats],
        feat_static_real=[BasicFeatureInfo(name=name) for name in real],
    )


@pytest.mark.parametrize("form", [lambda metadata: metadata, lambda metadata: json.loads(metadata.json())])
def test_metadata_gives_names_and_sizes(form):
    schema = StaticSchema.from_metadata(form(metadata_of(("region", 12), ("store", "006"), real=["lat", "lon"])))
    assert schema == StaticSchema(
        categorical=[
            CategoricalFeature(name="region", cardinality=13, fill_id=12, unknown_id=12),
            CategoricalFeature(name="store", cardinality=7, fill_id=6, unknown_id=6),
        ],
        real=[RealFeature(name="lat", fill=0.0), RealFeature(name="lon", fill=0.0)],
    )


@pytest.mark.parametrize("cardinality", ["6", 6])
def test_a_cardinality_may_be_text_or_a_number(cardinality):
    schema = StaticSchema.from_metadata(
        {"feat_static_cat": [{"name": "region", "cardinality": cardinality}]}, missing_cat="error"
    )
    assert schema.cardinality == (6,)


BAD_SIZES = ["abc", "3.7", "", "0", "-1", " 6", "6\n", "1e3", "٣", "9" * 19, "9" * 5000]


@pytest.mark.parametrize("cardinality", BAD_SIZES, ids=lambda text: repr(text)[:12])
def test_gluonts_takes_any_text_as_cardinality_and_we_do_not(cardinality):
    metadata = metadata_of(("store", 3), ("region", cardinality))
    with pytest.raises(
        MetadataError, match=r"cardinality of feat_static_cat\[1\] \('region'\) is .* whole number from 1"
    ):
        StaticSchema.from_metadata(metadata)


@pytest.mark.parametrize("cardinality", [None, True, 0, -1, 3.0, 3.7, [3], {}])
def test_a_cardinality_in_json_is_a_whole_number(cardinality):
    with pytest.raises(MetadataError, match=re.escape(f"('region') is {cardinality!r}, but must be a whole number")):
        StaticSchema.from_metadata({"feat_static_cat": [{"name": "region", "cardinality": cardinality}]})


def test_an_absent_cardinality_is_told():
    with pytest.raises(MetadataError, match=r"cardinality of feat_static_cat\[0\] \('region'\) is None"):
        StaticSchema.from_metadata({"feat_static_cat": [{"name": "region"}]})


@pytest.mark.parametrize("field", ["feat_static_cat", "feat_static_real"])
@pytest.mark.parametrize("value", ["asset_id", {"name": "region"}, 3, True])
def test_a_list_given_as_something_else_is_refused(field, value):
    """C103: a text is not read letter by letter."""
    with pytest.raises(MetadataError, match=re.escape(f"metadata: {field} is {value!r}, but must be a list, such as")):
        StaticSchema.from_metadata({field: value})


@pytest.mark.parametrize("feature", ["region", None, {}, {"name": ""}, {"name": 3}, ["region"]])
def test_a_feature_without_a_name_is_refused(feature):
    for field in ("feat_static_cat", "feat_static_real"):
        with pytest.raises(MetadataError, match=rf"metadata: {field}\[0\] is .*, but must have a name"):
            StaticSchema.from_metadata({field: [feature]})


@pytest.mark.parametrize("metadata", [None, "metadata.json", Path("metadata.json"), 3, [{"name": "region"}]])
def test_what_is_no_metadata_at_all_is_not_taken_as_empty(metadata):
    with pytest.raises(MetadataError, match=r"metadata: it is .*, but must be GluonTS MetaData or the dict"):
        StaticSchema.from_metadata(metadata)


@pytest.mark.parametrize("metadata", [{}, {"freq": "M", "feat_static_cat": None}, MetaData(freq="M")])
def test_metadata_without_features_gives_the_placeholder(metadata):
    schema = StaticSchema.from_metadata(metadata)
    assert schema == StaticSchema()
    assert (schema.cardinality, schema.num_static_real) == ((1,), 1)


@pytest.mark.parametrize("vocabulary", [["red", "blue"], ("red", "blue"), [402, 8361]])
def test_a_vocabulary_may_stand_in_the_metadata(vocabulary):
    feature = {"name": "color", "cardinality": "2", "vocabulary": vocabulary}
    schema = StaticSchema.from_metadata({"feat_static_cat": [feature]})
    assert schema.categorical[0] == CategoricalFeature.make("color", vocabulary=tuple(vocabulary))


@pytest.mark.parametrize("vocabulary", ["rb", ["red"], [], {"red": 0, "blue": 1}, 2])
def test_a_vocabulary_is_a_list_as_long_as_the_cardinality(vocabulary):
    feature = {"name": "color", "cardinality": "2", "vocabulary": vocabulary}
    with pytest.raises(
        MetadataError, match=r"vocabulary of feat_static_cat\[0\] \('color'\) is .* list of 2 categories"
    ):
        StaticSchema.from_metadata({"feat_static_cat": [feature]})


@pytest.mark.parametrize(
    ("vocabulary", "message"), [(["red", "red"], "'red' stands twice"), (["red", 1], "not a mix of types")]
)
def test_a_vocabulary_is_checked(vocabulary, message):
    feature = {"name": "color", "cardinality": "2", "vocabulary": vocabulary}
    with pytest.raises(SchemaError, match=f"'color'.*{message}"):
        StaticSchema.from_metadata({"feat_static_cat": [feature]})


def test_a_name_listed_twice_is_refused():
    """C104: the model would be one column too wide."""
    with pytest.raises(SchemaError, match=r"the name 'time_idx' stands for two features\. Rename one of them"):
        StaticSchema.from_metadata(metadata_of(real=["price", "time_idx", "time_idx"]))
    with pytest.raises(SchemaError, match="the name 'store' stands for two features"):
        StaticSchema.from_metadata(metadata_of(("store", 3), real=["store"]))


@pytest.mark.parametrize("names", [("feat_static_cat", "feat_static_cat"), ("feat_static_cat_0", "feat_static_cat_1")])
def test_generic_names_get_the_namespace(names):
    metadata = metadata_of(*((name, 3) for name in names), ("region", 2), real=["feat_static_real", "lat"])
    assert StaticSchema.from_metadata(metadata, namespace="m3_monthly").names == (
        "m3_monthly/feat_static_cat_0",
        "m3_monthly/feat_static_cat_1",
        "region",
        "m3_monthly/feat_static_real_0",
        "lat",
    )
    assert StaticSchema.from_metadata(metadata).names[:2] == ("feat_static_cat_0", "feat_static_cat_1")


def test_unrelated_unnamed_columns_never_share_a_table():
    a = StaticSchema.from_metadata(metadata_of(("feat_static_cat", 3)), namespace="a")
    b = StaticSchema.from_metadata(metadata_of(("feat_static_cat", 5)), namespace="b")
    assert (a | b).cardinality == (4, 6)
    assert (a | b).names == ("a/feat_static_cat_0", "b/feat_static_cat_0")


def test_policies_reach_the_features():
    metadata = metadata_of(("region", 3), real=["lat"])
    strict = StaticSchema.from_metadata(metadata, missing_cat="error", missing_real="error", placeholder="omit")
    assert (strict.categorical[0].fill_id, strict.real[0].fill, strict.cardinality) == (None, None, (3,))
    assert strict.placeholder == "omit"
    filled = StaticSchema.from_metadata(metadata, missing_cat=1, missing_real=2)
    assert (filled.categorical[0].fill_id, filled.real[0].fill, filled.cardinality) == (1, 2.0, (3,))
    with pytest.raises(SchemaError, match="fill is 'mean', but must be a finite number"):
        StaticSchema.from_metadata(metadata, missing_real="mean")


@pytest.mark.parametrize(
    "schema",
    [
        StaticSchema(),
        StaticSchema(placeholder="omit"),
        StaticSchema.from_counts([3, 12], 2, namespace="m3"),
        StaticSchema(
            categorical=[CategoricalFeature.make("color", vocabulary=("red",))],
            real=[RealFeature(name="size", fill=0.0, indicator=True)],
        ),
    ],
)
def test_metadata_of_normalised_data_is_read_by_gluonts(schema):
    metadata = MetaData(**schema.to_metadata(freq="M", prediction_length=4))
    assert (metadata.freq, metadata.prediction_length) == ("M", 4)
    assert tuple(int(feature.cardinality) for feature in metadata.feat_static_cat) == schema.cardinality
    assert len(metadata.feat_static_real) == schema.num_static_real
    again = StaticSchema.from_metadata(metadata, missing_cat="error", placeholder=schema.placeholder)
    assert again.cardinality == schema.cardinality
    assert again.num_static_real == schema.num_static_real
    if schema.categorical and "/" not in schema.names[0]:
        assert [f.name for f in again.categorical] == [f.name for f in schema.categorical]


@pytest.mark.parametrize("config_class", CONFIGS)
@pytest.mark.parametrize("form", [lambda config: config, lambda config: config.to_dict()])
def test_a_config_says_how_many_columns_its_model_has(config_class, form):
    config = form(
        config_class(
            prediction_length=2,
            num_static_categorical_features=2,
            cardinality=[3, 12],
            embedding_dimension=[2, 6],
            num_static_real_features=1,
        )
    )
    schema = StaticSchema.from_config(config)
    assert schema.cardinality == (3, 12)
    assert [(f.name, f.fill_id, f.unknown_id) for f in schema.categorical] == [
        ("feat_static_cat_0", None, None),
        ("feat_static_cat_1", None, None),
    ]
    assert schema.real == (RealFeature(name="feat_static_real_0"),)
    filled = StaticSchema.from_config(config, missing_cat=2, missing_real=0.5, namespace="m3")
    assert [f.fill_id for f in filled.categorical] == [2, 2]
    assert filled.real == (RealFeature(name="m3/feat_static_real_0", fill=0.5),)


@pytest.mark.parametrize("config_class", CONFIGS)
def test_a_config_without_statics_gives_no_columns(config_class):
    config = config_class(prediction_length=2)
    assert config.cardinality == [0]  # what transformers makes of None
    schema = StaticSchema.from_config(config)
    assert schema == StaticSchema(placeholder="omit")
    assert schema.config_kwargs()["num_static_categorical_features"] == 0


def test_a_config_of_a_model_without_static_fields_gives_no_columns():
    assert StaticSchema.from_config(PatchTSTConfig()) == StaticSchema(placeholder="omit")


@pytest.mark.parametrize(
    ("count", "cardinality", "message"),
    [
        (0, [366], "cardinality is [366], but num_static_categorical_features is 0, so that the ids would be ignored."),
        (0, [3, 0], "cardinality is [3, 0], but num_static_categorical_features is 0"),
        (1, None, "num_static_categorical_features is 1, but cardinality is None. Give 1 sizes"),
        (1, [0], "num_static_categorical_features is 1, but cardinality is [0]"),
        (1, [], "num_static_categorical_features is 1, but cardinality is []"),
        (2, [3], "num_static_categorical_features is 2, but cardinality is [3]"),
        (1, [3, 4], "num_static_categorical_features is 1, but cardinality is [3, 4]"),
        (None, [3], "num_static_categorical_features is None, but cardinality is [3]"),
        (1, [-3], "cardinality holds -3, but sizes are whole numbers from 1"),
        (1, ["3"], "cardinality holds '3', but"),
        (1, [True], "cardinality holds True, but"),
        (2, [3, 2.5], "cardinality holds 2.5, but"),
        (2, "12", "cardinality is '12', but must be a list, such as [3, 12]."),
        (1, 12, "cardinality is 12, but must be a list"),
        (0, {3}, "cardinality is {3}, but must be a list"),
    ],
)
def test_a_config_that_contradicts_itself_is_refused(count, cardinality, message):
    """C22, C23: transformers replaces [366] by [0] without a word when the count is 0."""
    with pytest.raises(ConfigMismatchError, match=re.escape(message)):
        check_cardinality(count, cardinality)
    with pytest.raises(ConfigMismatchError, match=re.escape(message)):
        StaticSchema.from_config({"num_static_categorical_features": count, "cardinality": cardinality})


@pytest.mark.parametrize("config", [None, "model/config.json", 3, [("cardinality", [3])]])
def test_what_is_no_config_is_refused(config):
    with pytest.raises(ConfigMismatchError, match=r"config: it is .*, but must be a Hugging Face config or its dict"):
        StaticSchema.from_config(config)


def test_transformers_hides_the_contradiction_once_the_config_is_built():
    """Why the check reads the user's dict: the object no longer knows (C23)."""
    config = TimeSeriesTransformerConfig(prediction_length=2, num_static_categorical_features=0, cardinality=[366])
    assert config.cardinality == [0]
    config.cardinality = [366]  # set afterwards, as notebooks do
    with pytest.raises(ConfigMismatchError, match=r"cardinality is \[366\].*Set num_static_categorical_features to 1"):
        StaticSchema.from_config(config)


@pytest.mark.parametrize("num_real", [-1, 1.0, "2", True, None])
def test_a_count_of_reals_is_a_whole_number(num_real):
    with pytest.raises(SchemaError, match=re.escape(f"num_real is {num_real!r}, but must be a whole number from 0")):
        StaticSchema.from_counts(num_real=num_real)
    with pytest.raises(SchemaError, match=re.escape(f"num_real is {num_real!r}, but must be a whole number from 0")):
        StaticSchema.from_config({"num_static_real_features": num_real})


@pytest.mark.parametrize("cardinality", ["12", 12, None, {3, 12}, np.array([3, 12])])
def test_counts_are_given_as_a_list(cardinality):
    with pytest.raises(SchemaError, match=r"cardinality is .*, but must be a list, such as \[3, 12\]"):
        StaticSchema.from_counts(cardinality)


@pytest.mark.parametrize("size", ["3", 3.0, -1, True])
def test_each_count_is_a_whole_number(size):
    with pytest.raises(SchemaError, match=re.escape(f"num_known is {size!r}, but must be a whole number from 0")):
        StaticSchema.from_counts([2, size])
