"""StaticSchema as one object: what it refuses, its JSON, and the models it sizes."""

import copy
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import (
    AutoformerConfig,
    AutoformerForPrediction,
    InformerConfig,
    InformerForPrediction,
    TimeSeriesTransformerConfig,
    TimeSeriesTransformerForPrediction,
)

from tsnorm.errors import SchemaError
from tsnorm.schema import CategoricalFeature, RealFeature, Scaling, StaticSchema

COLOR = CategoricalFeature.make("color", vocabulary=("red", "blue"))
SIZE = RealFeature(name="size", fill=0.0, scaling=Scaling(mean=1.0, std=2.0), indicator=True)
SCHEMA = StaticSchema(categorical=[COLOR], real=[SIZE])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"categorical": "color"}, "schema: categorical is 'color', but must be a list of features."),
        ({"categorical": COLOR}, "but must be a list of features."),
        ({"categorical": None}, "categorical is None, but must be a list of features."),
        ({"real": iter([SIZE])}, "but must be a list of features."),
        ({"categorical": ["color"]}, "categorical holds 'color', but only CategoricalFeature may stand there."),
        ({"categorical": [SIZE]}, "but only CategoricalFeature may stand there."),
        ({"real": [SIZE, COLOR]}, "but only RealFeature may stand there."),
        ({"placeholder": "none"}, "placeholder is 'none', but must be 'column' or 'omit'."),
        ({"placeholder": None}, "placeholder is None, but must be"),
        ({"categorical": [COLOR, COLOR]}, "the name 'color' stands for two features. Rename one of them."),
        ({"categorical": [COLOR], "real": [RealFeature(name="color")]}, "the name 'color' stands for two features."),
    ],
)
def test_constructor_refuses(arguments, message):
    with pytest.raises(SchemaError, match=re.escape(message)):
        StaticSchema(**arguments)


def test_it_is_a_value():
    again = copy.deepcopy(SCHEMA)
    assert again == SCHEMA
    assert len({again, SCHEMA}) == 1
    with pytest.raises(AttributeError):
        again.placeholder = "omit"


@pytest.mark.parametrize(
    ("schema", "kwargs"),
    [
        (StaticSchema(), (1, [1], [1], 1)),
        (StaticSchema(placeholder="omit"), (0, None, None, 0)),
        (StaticSchema.from_counts([3, 12]), (2, [4, 13], [2, 7], 1)),
        (StaticSchema.from_counts([3, 200], missing_cat="error", placeholder="omit"), (2, [3, 200], [2, 50], 0)),
        (StaticSchema.from_counts((), 2), (1, [1], [1], 2)),
        (StaticSchema.from_counts((), 2, placeholder="omit"), (0, None, None, 2)),
        (SCHEMA, (1, [3], [2], 2)),
    ],
)
def test_config_kwargs(schema, kwargs):
    names = (
        "num_static_categorical_features",
        "cardinality",
        "embedding_dimension",
        "num_static_real_features",
    )
    assert schema.config_kwargs() == dict(zip(names, kwargs, strict=True))
    assert schema.num_static_cat == kwargs[0]
    assert schema.num_static_real == kwargs[3]


def test_a_placeholder_gives_way_when_a_feature_arrives():
    assert (StaticSchema() | StaticSchema.from_counts([3], 2)) == StaticSchema.from_counts([3], 2)
    assert (StaticSchema.from_counts([3]) | StaticSchema()).cardinality == (4,)


def test_the_placeholder_policy_is_that_of_the_first():
    assert (StaticSchema(placeholder="omit") | StaticSchema()).placeholder == "omit"
    assert (StaticSchema() | StaticSchema(placeholder="omit")).placeholder == "column"


@pytest.mark.parametrize(("a", "b"), [("categorical", "real"), ("real", "categorical")])
def test_one_name_of_two_kinds_is_refused(a, b):
    features = {"categorical": [CategoricalFeature.make("size", num_known=3)], "real": [SIZE]}
    with pytest.raises(SchemaError, match=r"static feature 'size': categorical in one schema and real in the other\."):
        StaticSchema(**{a: features[a]}) | StaticSchema(**{b: features[b]})


def test_only_schemas_can_be_widened():
    with pytest.raises(TypeError, match="unsupported operand"):
        SCHEMA | SCHEMA.categorical[0]
    with pytest.raises(TypeError, match="unsupported operand"):
        SCHEMA | {}


MODELS = {
    TimeSeriesTransformerConfig: TimeSeriesTransformerForPrediction,
    InformerConfig: InformerForPrediction,
    AutoformerConfig: AutoformerForPrediction,
}
SCHEMAS = {
    "placeholder": StaticSchema(),
    "omit": StaticSchema(placeholder="omit"),
    "counts": StaticSchema.from_counts([3, 200], 2),
    "only real": StaticSchema.from_counts((), 2, placeholder="omit"),
    "only categorical": StaticSchema.from_counts([5], placeholder="omit"),
    "widened": SCHEMA | StaticSchema(categorical=[CategoricalFeature.make("color", vocabulary=("green",))]),
}


def tiny(config_class, schema):
    options = {"label_length": 2, "moving_average": 3} if config_class is AutoformerConfig else {}
    return config_class(
        prediction_length=4,
        context_length=8,
        lags_sequence=[1, 2, 3],
        num_time_features=1,
        d_model=8,
        encoder_layers=1,
        decoder_layers=1,
        encoder_ffn_dim=8,
        decoder_ffn_dim=8,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_layerdrop=0.0,
        decoder_layerdrop=0.0,
        **options,
        **schema.config_kwargs(),
    )


@pytest.mark.parametrize("config_class", MODELS)
@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_the_model_has_exactly_these_rows_and_trains_all_of_itself(config_class, schema):
    torch.manual_seed(0)
    config = tiny(config_class, schema)
    model = MODELS[config_class](config)
    kwargs = schema.config_kwargs()
    embedders = model.model.embedder.embedders if schema.num_static_cat else []
    assert tuple(table.num_embeddings for table in embedders) == schema.cardinality
    assert [table.embedding_dim for table in embedders] == (kwargs["embedding_dimension"] or [])
    assert StaticSchema.from_config(config).cardinality == schema.cardinality
    assert StaticSchema.from_config(config).num_static_real == schema.num_static_real

    past = 11
    batch = {
        "past_values": torch.rand(2, past),
        "past_time_features": torch.rand(2, past, 1),
        "past_observed_mask": torch.ones(2, past),
        "future_values": torch.rand(2, 4),
        "future_time_features": torch.rand(2, 4, 1),
    }
    if schema.num_static_cat:  # the last row of each table is in reach
        batch["static_categorical_features"] = torch.tensor([[size - 1 for size in schema.cardinality]] * 2)
    if schema.num_static_real:
        batch["static_real_features"] = torch.rand(2, schema.num_static_real)
    model(**batch).loss.backward()
    unused = [name for name, p in model.named_parameters() if p.requires_grad and p.grad is None]
    assert unused == []


class OwnEstimator:
    def __init__(self, freq, num_feat_static_cat=0, cardinality=None, embedding_dimension=None):
        pass


class FusionEstimator:
    def __init__(self, freq, static_cardinalities=None, static_dims=None):
        pass


def test_estimator_kwargs():
    schema = StaticSchema.from_counts([3], 2)
    assert schema.estimator_kwargs() == {
        "num_feat_static_cat": 1,
        "num_feat_static_real": 2,
        "cardinality": [4],
        "embedding_dimension": [2],
    }
    assert schema.estimator_kwargs(OwnEstimator) == {
        "num_feat_static_cat": 1,
        "cardinality": [4],
        "embedding_dimension": [2],
    }
    assert schema.estimator_kwargs(FusionEstimator) == {"static_cardinalities": [4], "static_dims": [2]}


def test_estimator_kwargs_without_statics():
    schema = StaticSchema(placeholder="omit")
    assert schema.estimator_kwargs() == {
        "num_feat_static_cat": 0,
        "num_feat_static_real": 0,
        "cardinality": [1],
        "embedding_dimension": [1],
    }
    assert schema.estimator_kwargs(FusionEstimator) == {"static_cardinalities": [], "static_dims": []}


def test_json_is_frozen():
    """Files of released versions must stay readable: a change here needs a new VERSION."""
    assert json.loads(SCHEMA.to_json()) == {
        "format": "tsnorm.static_schema",
        "version": 1,
        "categorical": [
            {"name": "color", "cardinality": 3, "fill_id": 2, "vocabulary": ["red", "blue"], "unknown_id": 2}
        ],
        "real": [{"name": "size", "fill": 0.0, "scaling": {"mean": 1.0, "std": 2.0}, "indicator": True}],
        "placeholder": "column",
    }


def changed(**fields):
    return json.dumps({**json.loads(SCHEMA.to_json()), **fields})


def without(name):
    data = json.loads(SCHEMA.to_json())
    del data[name]
    return json.dumps(data)


CAT = {"name": "color", "cardinality": 3}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "schema: not JSON"),
        (SCHEMA.to_json()[:-5], "schema: not JSON"),
        (SCHEMA.to_json() + "}", "schema: not JSON"),
        (b"\xff\xfe\x00", "schema: not JSON"),
        ("[" * 200_000, "schema: not JSON"),
        ('{"format": ' * 200_000, "schema: not JSON"),
        ("null", "schema: this JSON is no tsnorm schema"),
        ("[]", "schema: this JSON is no tsnorm schema"),
        ('"tsnorm.static_schema"', "schema: this JSON is no tsnorm schema"),
        ("{}", "which says 'format': 'tsnorm.static_schema'"),
        (changed(format="tsnorm.profile"), "schema: this JSON is no tsnorm schema"),
        (changed(version=2), "schema: version is 2, but this tsnorm reads version 1. Update tsnorm"),
        (changed(version=None), "schema: version is None, but"),
        (changed(version="1"), "schema: version is '1', but"),
        (without("version"), "schema: version is None, but"),
        (without("categorical"), "schema: categorical is None, but must be a list of features."),
        (without("real"), "schema: real is None, but must be a list of features."),
        (without("placeholder"), "schema: placeholder is None, but must be 'column' or 'omit'."),
        (changed(categorical={}), "schema: categorical is {}, but must be a list of features."),
        (changed(categorical=""), "schema: categorical is '', but must be a list of features."),
        (changed(real={"name": "size"}), "schema: real is {'name': 'size'}, but must be a list of features."),
        (changed(placeholder="drop"), "schema: placeholder is 'drop', but must be"),
        (changed(comment="mine"), "a field is missing, unknown or of the wrong type (.*'comment'"),
        (changed(categorical=[{**CAT, "levels": 3}]), "a field is missing, unknown or of the wrong type (.*'levels'"),
        (changed(categorical=[{"name": "color"}]), "a field is missing, unknown or of the wrong type (.*'cardinality'"),
        (changed(categorical=["color"]), "a field is missing, unknown or of the wrong type"),
        (changed(categorical=[None]), "a field is missing, unknown or of the wrong type"),
        (changed(categorical=[[CAT]]), "a field is missing, unknown or of the wrong type"),
        (changed(categorical=[{**CAT, "cardinality": "3"}]), "'color': cardinality is '3', but"),
        (changed(categorical=[{**CAT, "cardinality": 3.0}]), "'color': cardinality is 3.0, but"),
        (changed(categorical=[{**CAT, "vocabulary": [["a"], ["b"], ["c"]]}]), "not a mix of types"),
        (changed(categorical=[{**CAT, "vocabulary": {"a": 0}}]), "vocabulary is {'a': 0}, but must be a list"),
        (changed(categorical=[CAT, CAT]), "the name 'color' stands for two features"),
        (changed(real=["size"]), "a field is missing, unknown or of the wrong type"),
        (changed(real=[{"name": "size", "fill": "0"}]), "'size': fill is '0', but must be a finite number."),
        (changed(real=[{"name": "size", "fill": float("nan")}]), "'size': fill is nan, but must be a finite number."),
        (changed(real=[{"name": "size", "fill": float("-inf")}]), "'size': fill is -inf, but must be a finite number."),
        (changed(real=[{"name": "size", "fill": 10**400}]), "'size': fill is 1000"),
        (changed(real=[{"name": "size", "scaling": 2.0}]), "a field is missing, unknown or of the wrong type"),
        (changed(real=[{"name": "size", "scaling": {}}]), "a field is missing, unknown or of the wrong type"),
        (
            changed(real=[{"name": "size", "scaling": {"mean": 0, "std": 0}}]),
            "scaling: mean 0 and std 0 must be finite",
        ),
        (changed(real=[{"name": "size", "scaling": {"mean": "0", "std": 1}}]), "scaling: mean '0' and std 1 must be"),
        (changed(real=[{"name": "size", "indicator": "no"}]), "'size': indicator is 'no', but must be a bool."),
    ],
    ids=lambda value: str(value)[-30:],
)
def test_from_json_refuses_by_name(text, message):
    with pytest.raises(SchemaError, match=re.escape(message).replace(r"\.\*", ".*")):
        StaticSchema.from_json(text)


def test_load_names_the_file(tmp_path):
    path = tmp_path / "schema.json"
    path.write_text("{")
    with pytest.raises(SchemaError, match=f"^{re.escape(str(path))}: schema: not JSON") as caught:
        StaticSchema.load(path)
    assert isinstance(caught.value.__cause__, SchemaError)
    with pytest.raises(FileNotFoundError):
        StaticSchema.load(tmp_path / "none.json")


def test_a_failed_save_leaves_the_former_schema(tmp_path, monkeypatch):
    path = tmp_path / "schema.json"
    SCHEMA.save(path)
    monkeypatch.setattr(StaticSchema, "to_json", lambda self: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        StaticSchema().save(path)
    assert StaticSchema.load(path) == SCHEMA


def test_ranks_compare_fingerprints_not_shards():
    """C25: each rank reads the stored schema; a rank with another one is told apart by its fingerprint."""
    stored = StaticSchema.from_counts([3]).to_json()
    ranks = [StaticSchema.from_json(stored) for _ in range(2)]
    assert ranks[0].fingerprint() == ranks[1].fingerprint()
    assert ranks[0].cardinality == ranks[1].cardinality == (4,)
    assert StaticSchema.from_counts([2]).fingerprint() != ranks[0].fingerprint()


def test_the_fingerprint_is_the_same_in_every_process():
    code = "from tsnorm.schema import StaticSchema as S; print(S.from_counts([3, 12], 2, namespace='m3').fingerprint())"
    root = Path(__file__).parents[2]
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root)
    assert out.stdout.strip() == StaticSchema.from_counts([3, 12], 2, namespace="m3").fingerprint()


def test_numpy_numbers_do_not_slip_into_the_json():
    with pytest.raises(SchemaError, match=r"cardinality is np.int64\(3\), but must be a whole number"):
        CategoricalFeature(name="color", cardinality=np.int64(3))
    assert json.loads(StaticSchema(real=[RealFeature(name="a", fill=np.float32(0.5))]).to_json())
