"""Every row of the table of misuses: what happens today, and what tsnorm says before the first step."""

import copy
import math

import numpy as np
import pytest
import torch
import transformers
from gluonts.dataset.common import CategoricalFeatureInfo, MetaData
from gluonts.dataset.loader import as_stacked_batches
from gluonts.transform import AsNumpyArray
from tiny_models import FAMILIES, HORIZON, PAST, series, tiny_config, tiny_model, train_step
from torch import nn

from tsnorm.errors import ConfigMismatchError, DataError, MetadataError, PlaceholderWarning, SchemaMismatchError
from tsnorm.pipeline import (
    TimeSeriesDataset,
    TrainingLoader,
    check_batch,
    check_config,
    config_from_dict,
    fit_schema,
    stack,
    training_chain,
    validation_chain,
)
from tsnorm.pipeline.config import MODELS
from tsnorm.schema import StaticSchema
from tsnorm.transforms import static_features

CAT, REAL = "static_categorical_features", "static_real_features"
SCHEMA = StaticSchema.from_counts(cardinality=[3], num_real=1, missing_cat="error", missing_real="error")
NONE = StaticSchema(placeholder="omit")


@pytest.fixture(params=FAMILIES)
def family(request):
    return request.param


def batch_of(config, schema=SCHEMA, **fields):
    fields = {"feat_static_cat": [1], "feat_static_real": [0.5]} | fields
    return stack(list(validation_chain(config, schema, "M")(series(**fields), is_train=True)))


def changed(batch, **values):
    """Copy of a batch as another pipeline might give it; None takes a key out."""
    return {key: value for key, value in {**batch, **values}.items() if value is not None}


@pytest.fixture
def declared(family):
    """Config with one categorical and one real column, and a batch that fits."""
    config = tiny_config(family, SCHEMA)
    return config, batch_of(config)


@pytest.fixture
def undeclared(family):
    """Config without statics, and a batch of series that have them."""
    return tiny_config(family, NONE), batch_of(tiny_config(family, SCHEMA))


def test_fitting_batch_trains_and_reaches_every_parameter(declared):
    config, batch = declared
    check_batch(batch, config)
    loss, unreached = train_step(tiny_model(config), batch)
    assert math.isfinite(loss)
    assert unreached == []


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({CAT: None}, rf"{CAT}: batch lacks it, config has 1\. Put tsnorm.*static_features"),
        ({REAL: None}, rf"{REAL}: batch lacks it, config has 1\."),
        ({CAT: None, REAL: None}, rf"(?s){CAT}: batch lacks it.*{REAL}: batch lacks it"),
        ({CAT: torch.zeros(4, 2, dtype=torch.int64)}, rf"{CAT}: data has 2 columns, config has 1\."),
        ({REAL: torch.zeros(4, 2)}, rf"{REAL}: data has 2 columns, config has 1\. Set num_static_real_features=2"),
        ({REAL: torch.zeros(4, 0)}, rf"{REAL}: data has 0 columns, config has 1\."),
    ],
)
def test_declared_column_lacking_or_of_wrong_width(declared, values, message):
    config, batch = declared
    batch = changed(batch, **values)
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied|same number of dimensions"):
        tiny_model(config)(**batch)
    with pytest.raises(ConfigMismatchError, match=message):
        check_batch(batch, config)


def test_silent_row_categorical_lacking_while_real_is_wider_by_the_embedding(declared):
    config, batch = declared
    [width] = config.embedding_dimension
    batch = changed(batch, **{CAT: None, REAL: torch.zeros(4, 1 + width)})
    loss, unreached = train_step(tiny_model(config), batch)
    assert math.isfinite(loss)
    assert unreached == ["model.embedder.embedders.0.weight"]
    with pytest.raises(
        ConfigMismatchError, match=f"(?s){CAT}: batch lacks it.*{REAL}: data has 3 columns, config has 1"
    ):
        check_batch(batch, config)


@pytest.mark.parametrize("width", [1, 0])
def test_undeclared_categorical_even_of_width_zero(undeclared, width):
    config, batch = undeclared
    batch = changed(batch, **{REAL: None, CAT: torch.zeros(4, width, dtype=torch.int64)})
    with pytest.raises(AttributeError, match="embedder"):
        tiny_model(config)(**batch)
    seen = "data has 1 column, config has 0" if width else "it has no columns, and a model whose config has 0"
    with pytest.raises(ConfigMismatchError, match=f"{CAT}: {seen}"):
        check_batch(batch, config)


def test_undeclared_real(undeclared):
    config, batch = undeclared
    batch = changed(batch, **{CAT: None})
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied"):
        tiny_model(config)(**batch)
    with pytest.raises(ConfigMismatchError, match=f"{REAL}: data has 1 column, config has 0. Set num_static_real_fe"):
        check_batch(batch, config)


def test_undeclared_real_of_width_zero_is_harmless(undeclared):
    config, batch = undeclared
    batch = changed(batch, **{CAT: None, REAL: torch.zeros(4, 0)})
    check_batch(batch, config)
    assert train_step(tiny_model(config), batch)[1] == []


def test_dummy_columns_set_by_hand_crash_and_the_chain_leaves_them_out(undeclared):
    config, _ = undeclared
    dummies = {CAT: torch.zeros(4, 1, dtype=torch.int64), REAL: torch.zeros(4, 1)}
    batch = stack(list(validation_chain(config, NONE, "M")(series(), is_train=True)))
    with pytest.raises(AttributeError, match="embedder"):
        tiny_model(config)(**batch, **dummies)
    with pytest.raises(ConfigMismatchError, match=f"(?s){CAT}: data has 1 .*{REAL}: data has 1 "):
        check_batch({**batch, **dummies}, config)
    check_batch(batch, config)
    assert not batch.keys() & dummies.keys()


def test_chain_refuses_data_with_columns_that_the_config_lacks(undeclared):
    config, _ = undeclared
    message = rf"(?s){CAT}: data has 1 column, config has 0\. Set num_static_categorical_features=1, cardinality=\[3\]"
    for call in (
        lambda: training_chain(config, SCHEMA, "M"),
        lambda: check_config(config, schema=SCHEMA),
        lambda: fit_schema(SCHEMA, config),
    ):
        with pytest.raises(ConfigMismatchError, match=message + f".*{REAL}: data has 1 column, config has 0"):
            call()


@pytest.mark.parametrize("bad", [3, -1, 2**40])
def test_id_beyond_the_table(declared, bad):
    config, batch = declared
    batch = changed(batch, **{CAT: torch.tensor([[0], [bad], [1], [bad]])})
    with pytest.raises(IndexError, match="index out of range in self"):
        tiny_model(config)(**batch)
    with pytest.raises(
        ConfigMismatchError, match=rf"{CAT}: column 0 holds id {bad}, but its cardinality is 3 \(ids 0\.\.2\)"
    ):
        check_batch(batch, config)
    seen = "is -1, but ids start at 0" if bad < 0 else rf"is {bad}, but its cardinality is 3 \(ids 0\.\.2\)"
    with pytest.raises(SchemaMismatchError, match=rf"feat_static_cat of item 'item0' \(row 1\).*{seen}"):
        batch_of(config, feat_static_cat=[bad])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int16, torch.uint8, torch.bool])
def test_ids_of_a_wrong_dtype(declared, dtype):
    config, batch = declared
    batch = changed(batch, **{CAT: batch[CAT].to(dtype)})
    with pytest.raises(RuntimeError, match="scalar types"):
        tiny_model(config)(**batch)
    with pytest.raises(ConfigMismatchError, match=f"{CAT}: its dtype is {dtype}, but ids must be torch.int64"):
        check_batch(batch, config)


def test_int32_ids_work(declared):
    config, batch = declared
    batch = changed(batch, **{CAT: batch[CAT].int()})
    check_batch(batch, config)
    assert train_step(tiny_model(config), batch)[1] == []


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_real_that_is_not_finite(declared, bad):
    config, batch = declared
    batch = changed(batch, **{REAL: torch.full((4, 1), bad)})
    with pytest.raises(ValueError, match="to satisfy the constraint"):
        tiny_model(config)(**batch)
    with pytest.raises(ConfigMismatchError, match=f"{REAL}: it holds NaN or infinity"):
        check_batch(batch, config)
    missing = "is missing, but the schema says that is an error" if math.isnan(bad) else "must be finite in float32"
    with pytest.raises(SchemaMismatchError, match=rf"feat_static_real of item 'item0' \(row 1\).*{missing}"):
        batch_of(config, feat_static_real=[bad])


def test_real_nan_trains_silently_without_validation(declared):
    """What ``python -O`` does: it turns the validation of distributions off."""
    config, batch = declared
    validated = torch.distributions.Distribution._validate_args
    torch.distributions.Distribution.set_default_validate_args(False)
    try:
        loss, _ = train_step(tiny_model(config), changed(batch, **{REAL: torch.full((4, 1), math.nan)}))
    finally:
        torch.distributions.Distribution.set_default_validate_args(validated)
    assert math.isnan(loss)


def test_real_nan_is_filled_where_the_schema_says_so(family):
    schema = StaticSchema.from_counts(cardinality=[3], num_real=1, missing_cat="error", missing_real=0.25)
    config = tiny_config(family, schema)
    batch = batch_of(config, schema, feat_static_real=[math.nan])
    assert batch[REAL].tolist() == [[0.25]] * 4
    assert math.isfinite(train_step(tiny_model(config), batch)[0])


def test_real_of_double_precision(declared):
    config, batch = declared
    batch = changed(batch, **{REAL: batch[REAL].double()})
    with pytest.raises(RuntimeError, match="same dtype"):
        tiny_model(config)(**batch)
    with pytest.raises(ConfigMismatchError, match=f"{REAL}: its dtype is torch.float64, but torch.float32 is needed"):
        check_batch(batch, config)


def test_count_of_one_without_cardinality(family):
    make = getattr(transformers, MODELS[family][0])
    fields = {"prediction_length": 4, "context_length": 8, "lags_sequence": [1, 2, 3], "num_time_features": 2}
    config = make(num_static_categorical_features=1, num_static_real_features=1, **fields)
    assert config.cardinality == [0]
    batch = batch_of(tiny_config(family, SCHEMA))
    with pytest.raises((IndexError, RuntimeError), match="index_select|index out of range|size 0|zero-size"):
        tiny_model(config)(**batch)
    with pytest.raises(ConfigMismatchError, match=r"num_static_categorical_features is 1, but cardinality is \[0\]"):
        check_config(config)
    written = {"model_type": family.replace("-", "_"), "num_static_categorical_features": 1, **fields}
    with pytest.raises(ConfigMismatchError, match="is 1, but cardinality is None. Give 1 sizes"):
        config_from_dict(written)


def test_count_of_zero_with_cardinality(family):
    make = getattr(transformers, MODELS[family][0])
    fields = {"prediction_length": 4, "context_length": 8, "lags_sequence": [1, 2, 3]}
    assert make(num_static_categorical_features=0, cardinality=[366], **fields).cardinality == [0]
    message = r"cardinality is \[366\], but num_static_categorical_features is 0, so that the ids would be ignored"
    with pytest.raises(ConfigMismatchError, match=message):
        config_from_dict({"model_type": family.replace("-", "_"), "cardinality": [366], **fields})
    with pytest.raises(ConfigMismatchError, match=message):
        tiny_config(family, NONE, cardinality=[366])


@pytest.mark.parametrize("family", ["time-series-transformer", "informer"])
def test_values_with_a_trailing_axis_train_on_a_wrong_loss(family):
    config = tiny_config(family, SCHEMA)
    batch = batch_of(config)
    wrong = changed(
        batch, **{key: batch[key].unsqueeze(-1) for key in batch if key.endswith(("_values", "_observed_mask"))}
    )
    model = tiny_model(config).eval()
    right_loss, wrong_loss = (model(**b).loss.item() for b in (batch, wrong))
    assert wrong_loss > 2 * right_loss
    with pytest.raises(
        ConfigMismatchError, match=rf"past_values: its shape is \(4, {PAST}, 1\), but \(B, {PAST}\) is needed"
    ):
        check_batch(wrong, config)
    with pytest.raises(ConfigMismatchError, match=r"Drop the last axis with \.squeeze\(-1\)"):
        check_batch(wrong, config)


def test_values_with_a_trailing_axis_come_out_of_the_chain_flat(family):
    config = tiny_config(family, SCHEMA)
    entries = [entry | {"target": [entry["target"]]} for entry in series(feat_static_cat=[1], feat_static_real=[0.5])]
    batch = stack(list(validation_chain(config, SCHEMA, "M")(entries, is_train=True)))
    assert torch.equal(batch["past_values"], batch_of(config)["past_values"])


# Beyond the table: what else a batch may lack, and forward does not say, or says deep inside.


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"past_observed_mask": None}, "past_observed_mask: batch lacks it, but the model needs it"),
        ({"past_time_features": None}, "past_time_features: batch lacks it, but the model needs it"),
        ({"future_time_features": None}, "future_time_features: batch lacks it, but the model needs it"),
        ({"past_values": None}, "past_values: batch lacks it, but the model needs it"),
        ({CAT: torch.ones(3, 1, dtype=torch.int64)}, f"different numbers of rows: .*'{CAT}': 3"),
        ({"future_observed_mask": torch.ones(1, HORIZON)}, "different numbers of rows: .*'future_observed_mask': 1"),
        ({CAT: [[1]] * 4}, f"{CAT}: it is a list, but must be a tensor"),
        ({"past_values": np.zeros((4, PAST), np.float32)}, "past_values: it is a ndarray, but must be a tensor"),
        ({CAT: torch.ones(4, dtype=torch.int64)}, rf"{CAT}: its shape is \(4,\), but \(B, 1\) is needed"),
        ({REAL: torch.ones(4, 5, 1)}, rf"{REAL}: its shape is \(4, 5, 1\), but \(B, 1\) is needed"),
        ({"past_values": torch.zeros(4, PAST, dtype=torch.float64)}, "past_values: its dtype is torch.float64"),
        ({"past_values": torch.zeros(4, PAST, dtype=torch.int64)}, "past_values: its dtype is torch.int64"),
        ({"past_observed_mask": torch.ones(4, PAST, dtype=torch.float64)}, "past_observed_mask: its dtype is torch.f"),
        ({"past_values": torch.zeros(4, PAST - 3)}, r"A past has context_length \+ max\(lags_sequence\) = 11 steps"),
        ({"future_values": torch.full((4, HORIZON), math.nan)}, "future_values: it holds NaN or infinity. Mark gaps"),
        ({"past_time_features": torch.zeros(4, PAST, 1)}, r"past_time_features: .*\. Set num_time_features=1"),
    ],
)
def test_batch_that_fails_deep_inside_or_not_at_all(values, message):
    config = tiny_config("informer", SCHEMA)
    with pytest.raises(ConfigMismatchError, match=message):
        check_batch(changed(batch_of(config), **values), config)


def test_misspelled_key_is_swallowed_by_forward_and_named_here():
    config = tiny_config("informer", SCHEMA)
    batch = changed(batch_of(config), future_observed_mask=None, future_observed_masks=torch.ones(4, HORIZON))
    assert math.isfinite(train_step(tiny_model(config), batch)[0])
    with pytest.raises(ConfigMismatchError, match="future_observed_masks: .*Did you mean 'future_observed_mask'"):
        check_batch(batch, config)


def test_keys_that_stand_for_none_or_for_nothing_of_ours_are_let_through():
    config = tiny_config("informer", SCHEMA)
    check_batch({**batch_of(config), "item_id": ["a"] * 4, "output_attentions": None}, config)
    check_batch({**batch_of(config), "future_values": None, "future_observed_mask": None}, config)
    with pytest.raises(ConfigMismatchError, match=f"{CAT}: batch lacks it"):
        check_batch({**batch_of(config), CAT: None}, config)
    check_batch({**batch_of(config), "past_observed_mask": torch.ones(4, PAST, dtype=torch.bool)}, config)


# A model of one's own


class OwnModel(nn.Module):
    """Has a branch that it skips where the batch lacks statics."""

    def __init__(self):
        super().__init__()
        self.past = nn.Linear(PAST, HORIZON)
        self.embed = nn.Embedding(SCHEMA.cardinality[0], HORIZON)

    def forward(self, past_values, future_values, static_categorical_features=None, **_):
        forecast = self.past(past_values)
        if static_categorical_features is not None:
            forecast = forecast + self.embed(static_categorical_features[:, 0])
        return (forecast - future_values).square().mean()


def test_branch_of_ones_own_is_unused_without_and_used_with_the_chain():
    config = tiny_config("informer", SCHEMA)
    model = OwnModel()
    model(**changed(batch_of(config), **{CAT: None})).backward()
    assert model.embed.weight.grad is None
    schema = StaticSchema.from_counts(cardinality=[2], missing_cat="reserve")
    config = tiny_config("informer", schema)
    model = OwnModel()
    model(**stack(list(validation_chain(config, schema, "M")(series(), is_train=True)))).backward()
    assert model.embed.weight.grad is not None


# GluonTS


def test_gluonts_names_no_row_where_the_field_is_missing():
    entries = [{"feat_static_cat": [0]}, {}]
    with pytest.raises(KeyError, match=r"^'feat_static_cat'$"):
        list(AsNumpyArray("feat_static_cat", expected_ndim=1)(entries, is_train=True))
    with pytest.raises(SchemaMismatchError, match=r"feat_static_cat of row 2: 'feat_static_cat_0' is missing"):
        list(static_features(SCHEMA)([{"feat_static_cat": [0], "feat_static_real": [1.0]}, {}], is_train=True))


def test_gluonts_truncates_float_ids():
    [entry] = AsNumpyArray("feat_static_cat", expected_ndim=1, dtype=int)([{"feat_static_cat": [0.7]}], is_train=True)
    assert entry["feat_static_cat"].tolist() == [0]
    with pytest.raises(SchemaMismatchError, match=r"'feat_static_cat_0' is 0\.7, but an id must be a whole number"):
        list(static_features(SCHEMA)([{"feat_static_cat": [0.7]}], is_train=True))


@pytest.mark.parametrize("ids", [[0.7], [1.0], [True], ["1"], [None]])
def test_stack_casts_no_ids(ids):
    config = tiny_config("informer", SCHEMA)
    windows = validation_chain(config, SCHEMA, "M")(series(feat_static_cat=[1], feat_static_real=[0.5]), True)
    raw = [window | {"feat_static_cat": np.array(ids)} for window in windows]
    with pytest.raises(DataError, match="feat_static_cat of item 'item0': its dtype is .*, but int64 is needed"):
        stack(raw)


def test_stack_turns_no_null_into_nan():
    config = tiny_config("informer", SCHEMA)
    windows = validation_chain(config, SCHEMA, "M")(series(feat_static_cat=[1], feat_static_real=[0.5]), True)
    with pytest.raises(DataError, match="feat_static_real of item 'item0': its dtype is object, but float32 is needed"):
        stack([window | {"feat_static_real": [None]} for window in windows])


def test_gluonts_drops_the_field_of_the_whole_batch_where_the_first_entry_lacks_it():
    config = tiny_config("informer", SCHEMA)
    windows = list(validation_chain(config, SCHEMA, "M")(series(feat_static_cat=[1], feat_static_real=[0.5]), True))
    numeric = [{key: value for key, value in window.items() if isinstance(value, np.ndarray)} for window in windows]
    first, *others = copy.deepcopy(numeric)
    del first["feat_static_cat"]
    [stacked] = as_stacked_batches([first, *others], batch_size=4)
    assert "past_target" in stacked
    assert "feat_static_cat" not in stacked
    with pytest.raises(DataError, match=r"feat_static_cat of .*: of shape \(1,\), but missing in the first window"):
        stack([first, *others])
    with pytest.raises(DataError, match=r"feat_static_cat of .*: missing, but of shape \(1,\) in the first window"):
        stack([*others, first])


@pytest.mark.slow
def test_batchify_of_gluonts_drops_it_too():
    pytest.importorskip("lightning")
    pytest.importorskip("scipy")  # gluonts.torch imports it and does not declare it
    from gluonts.torch.batchify import batchify

    assert batchify([{"a": np.zeros(1)}, {"a": np.zeros(1), "feat_static_cat": np.zeros(1)}]).keys() == {"a"}


def test_gluonts_metadata_takes_any_text_for_a_cardinality():
    metadata = MetaData(freq="M", feat_static_cat=[CategoricalFeatureInfo(name="region", cardinality="abc")])
    assert metadata.feat_static_cat[0].cardinality == "abc"
    with pytest.raises(MetadataError, match=r"cardinality of feat_static_cat\[0\] \('region'\) is 'abc'"):
        StaticSchema.from_metadata(metadata)


def test_gluonts_compares_no_metadata_with_the_data():
    metadata = {"freq": "M", "feat_static_cat": [{"name": "region", "cardinality": "2"}]}
    entries = series(feat_static_cat=[5])
    schema = StaticSchema.from_metadata(metadata)
    chain = training_chain(tiny_config("informer", schema), schema, "M")
    with pytest.raises(SchemaMismatchError, match=r"'region' is 5, but its cardinality is 2 \(ids 0\.\.1\)"):
        list(chain(entries, is_train=True))
    with pytest.raises(SchemaMismatchError, match=r"'region' .*the largest id is 5, but its cardinality is 2"):
        TimeSeriesDataset.from_entries(entries, freq="M", metadata=metadata)


def test_monash_declares_a_feature_that_no_entry_carries(family):
    metadata = {"freq": "M", "feat_static_cat": [{"name": "feat_static_cat", "cardinality": "4"}]}
    with pytest.warns(PlaceholderWarning, match="monash: feat_static_cat is declared, but none of . entries has it"):
        dataset = TimeSeriesDataset.from_entries(series(), freq="M", name="monash", metadata=metadata)
    assert dataset.schema.categorical[0].name == "monash/feat_static_cat_0"
    config = tiny_config(family, dataset.schema)
    [batch] = TrainingLoader([dataset], config=config, global_batch_size=4, num_steps=1)
    assert batch[CAT].tolist() == [[4]] * 4  # the reserved row, behind the declared 0..3
    assert train_step(tiny_model(config), batch)[1] == []
