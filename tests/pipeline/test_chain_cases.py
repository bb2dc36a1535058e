"""Cases from public reports that a chain, a config or a batch meets; each test is named after its case."""

import math

import numpy as np
import pandas as pd
import pytest
import torch
import transformers
from chain_oracles import same_bits
from tiny_models import FAMILIES, HORIZON, SMALL, series, tiny_config, tiny_model, train_step

from tsnorm.errors import (
    ConfigMismatchError,
    DataError,
    IgnoredFieldWarning,
    PlaceholderWarning,
    PrecisionWarning,
    SchemaMismatchError,
)
from tsnorm.freq import Frequency
from tsnorm.pipeline import (
    check_batch,
    check_config,
    complete_config,
    config_from_dict,
    fit_schema,
    series_chain,
    stack,
    training_chain,
    validation_chain,
)
from tsnorm.pipeline import test_chain as prediction_chain
from tsnorm.schema import StaticSchema
from tsnorm.transforms import static_features

CAT, REAL = "static_categorical_features", "static_real_features"
NONE = StaticSchema(placeholder="omit")
PI = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8]
ONE_TO_TWELVE = list(range(1, 13))


def entry(target=ONE_TO_TWELVE, **fields):
    return {"item_id": "a", "start": "2022-01-01", "target": target, **fields}


def read(entries, schema=NONE, *, is_train=True, **settings):
    """Entries after everything that comes before the split."""
    config = tiny_config("informer", schema, **settings)
    return list(series_chain(config, schema, "M")(entries, is_train=is_train))


def last_window(entries, schema=NONE, **settings):
    """Batch of the last window of each entry."""
    config = tiny_config("informer", schema, **settings)
    return stack(list(validation_chain(config, schema, "M")(entries, is_train=True)))


def refused(entries, message, schema=NONE, error=DataError, **settings):
    with pytest.raises(error, match=message):
        read(entries, schema, **settings)


def test_c01_data_has_a_category_and_the_config_none():
    schema = StaticSchema.from_metadata({"feat_static_cat": [{"name": "region", "cardinality": "3"}]})
    config = tiny_config("informer", NONE)
    message = rf"{CAT}: data has 1 column, config has 0\. Set num_static_categorical_features=1, cardinality=\[4\]"
    with pytest.raises(ConfigMismatchError, match=message):
        training_chain(config, schema, "M")
    # nothing declared, but an entry carries one: said, not dropped
    refused(
        [entry(PI, feat_static_cat=[2])],
        r"feat_static_cat of item 'a' \(row 1\): 1 value, but the schema declares none",
        error=SchemaMismatchError,
    )
    assert CAT not in last_window([entry(PI)])


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("placeholder", ["omit", "column"])
def test_c02_placeholder_is_never_an_empty_tensor(family, placeholder):
    schema = StaticSchema.from_counts([], 0, placeholder=placeholder)
    config = tiny_config(family, schema)
    [window] = validation_chain(config, schema, "M")([entry()], is_train=True)
    batch = stack([window])
    if placeholder == "omit":
        assert not {CAT, REAL} & batch.keys()
        assert (config.num_static_categorical_features, config.num_static_real_features) == (0, 0)
    else:
        assert (batch[CAT].tolist(), batch[CAT].dtype) == ([[0]], torch.int64)
        assert (batch[REAL].tolist(), batch[REAL].dtype) == ([[0.0]], torch.float32)
        assert (config.num_static_categorical_features, config.cardinality) == (1, [1])
        assert config.embedding_dimension == [1]
    assert train_step(tiny_model(config), batch)[1] == []


def test_c04_batch_has_a_real_that_the_config_lacks():
    batch = {**last_window(series()), REAL: torch.zeros(4, 1)}
    with pytest.raises(ConfigMismatchError, match=f"{REAL}: data has 1 column, config has 0"):
        check_batch(batch, tiny_config("informer", NONE))


@pytest.mark.parametrize("family", FAMILIES)
def test_c04_config_has_a_real_that_the_data_lacks(family):
    config = tiny_config(family, NONE, num_static_real_features=1)
    with pytest.warns(PlaceholderWarning, match=f"{REAL}: config has 1 column, data has 0: the other 1 are filled"):
        chain = validation_chain(config, NONE, "M")
    batch = stack(list(chain(series(), is_train=True)))
    assert batch[REAL].tolist() == [[0.0]] * 4
    check_batch(batch, config)
    assert train_step(tiny_model(config), batch)[1] == []


def test_c04_config_is_wider_than_the_data_in_both_kinds():
    schema = StaticSchema.from_counts([3], 1, missing_cat="error")
    wide = StaticSchema.from_counts([3, 5], 3, missing_cat="error")
    config = tiny_config("informer", wide)
    with pytest.warns(PlaceholderWarning) as warned:
        chain = training_chain(config, schema, "M", num_instances=20.0)
    assert [str(w.message).split(" are filled")[0] for w in warned] == [
        f"{CAT}: config has 2 columns, data has 1: the other 1",
        f"{REAL}: config has 3 columns, data has 1: the other 2",
    ]
    batch = stack(list(chain(series(feat_static_cat=[1], feat_static_real=[0.5]), is_train=True)))
    check_batch(batch, config)
    assert batch[CAT][0].tolist() == [1, 0]
    assert batch[REAL][0].tolist() == [0.5, 0.0, 0.0]


def test_c04_placeholder_that_was_agreed_on_is_no_surprise():
    schema = StaticSchema()
    config = tiny_config("informer", schema)
    assert fit_schema(schema, config) == schema
    with pytest.warns(PlaceholderWarning, match="config has 1 column, data has 0"):  # of another schema
        fit_schema(StaticSchema(placeholder="omit"), config)


def test_c05_first_batch_has_both_keys_without_a_dummy_column_in_the_data():
    schema = StaticSchema.from_metadata({"feat_static_cat": [], "feat_static_real": []})
    data = [entry([5, 5, 6, 7, 8, 9, 9, 8, 7, 6, 5, 5]), entry([1, 1, 2, 3, 5, 8, 5, 3, 2, 1, 1, 0])]
    batch = last_window(data, schema)
    assert batch[CAT].shape == batch[REAL].shape == (2, 1)


ROWS_OF_C07 = [
    {"item_id": item_id, "start": "2022-01-01", "target": [1, 2, 3, 4, 5, 6]}
    | ({} if cat is None else {"feat_static_cat": cat})
    for item_id, cat in {"a": [0], "b": [1], "c": None, "d": [2]}.items()
]


@pytest.mark.parametrize(("policy", "filled"), [("reserve", 3), (0, 0), (2, 2)])
def test_c07_some_rows_lack_the_field_and_are_filled(policy, filled):
    schema = StaticSchema.from_counts([3], missing_cat=policy)
    chain = static_features(schema)
    for _ in range(2):
        assert [row["feat_static_cat"].tolist() for row in chain(ROWS_OF_C07, True)] == [[0], [1], [filled], [2]]
    assert chain.transformations[1].counts["filled feat_static_cat_0"] == 2


def test_c07_some_rows_lack_the_field_and_that_is_an_error():
    schema = StaticSchema.from_counts([3], missing_cat="error")
    with pytest.raises(SchemaMismatchError, match=r"feat_static_cat of item 'c' \(row 3\): .*is missing"):
        read(ROWS_OF_C07, schema)


def test_c08_category_for_each_time_step():
    schema = StaticSchema.from_counts([3])
    refused(
        [entry([1, 2, 3, 4, 5, 6], feat_static_cat=[[1]] * 6)],
        r"feat_static_cat of item 'a' \(row 1\): its shape is \(6, 1\), so that .* has a time axis of 6",
        schema,
        SchemaMismatchError,
    )


@pytest.mark.parametrize("value", [[7], [[7]], 7, np.array([7])])
def test_c10_constant_category_among_the_dynamic_ones(value):
    refused(
        [entry([1, 2, 3, 4, 5, 6], feat_dynamic_cat=value)],
        r"feat_dynamic_cat of item 'a' \(row 1\): its length is 1, but the target has 6\. Did you mean feat_static_cat",
    )


def test_c10_real_dynamic_category_is_left_out_with_a_warning():
    with pytest.warns(
        IgnoredFieldWarning, match="feat_dynamic_cat is left out: Hugging Face time-series models have no"
    ):
        [out] = read([entry([1, 2, 3], feat_dynamic_cat=[[1, 2, 1]])])
    assert "feat_dynamic_cat" not in out
    refused([entry([1, 2, 3], feat_dynamic_cat=[[1], [1, 2]])], "its length is 1, but the target has 3")


def test_c22_two_categories_and_one_cardinality():
    with pytest.raises(ConfigMismatchError, match="num_static_categorical_features is 2, but cardinality is"):
        tiny_config("informer", NONE, num_static_categorical_features=2, cardinality=[3])
    refused(
        [entry(feat_static_cat=[0, 1])],
        r"feat_static_cat of item 'a' \(row 1\): 2 values, but the schema declares 1",
        StaticSchema.from_counts([3]),
        SchemaMismatchError,
    )


def test_c22_columns_in_swapped_order():
    refused(
        [entry([1, 2, 3, 4], feat_static_cat=[11, 2])],
        r"'feat_static_cat_0' is 11, but its cardinality is 3 \(ids 0\.\.2\)\. Columns 0 and 1 look swapped",
        StaticSchema.from_counts([3, 12]),
        SchemaMismatchError,
    )


def test_c23_cardinality_that_is_given_but_unused():
    fields = {"num_static_categorical_features": 0, "cardinality": [366], "embedding_dimension": [2]}
    with pytest.raises(ConfigMismatchError, match=r"cardinality is \[366\], but num_static_categorical_features is 0"):
        config_from_dict({"model_type": "informer", "prediction_length": 4, **fields})


def test_c53_past_is_context_and_longest_lag():
    config = tiny_config("informer", NONE)
    batch = last_window([entry()])
    assert batch["past_values"].shape == (1, 11)
    short = {**batch, "past_values": batch["past_values"][:, -8:]}
    with pytest.raises(
        ConfigMismatchError, match=r"\(1, 8\), but \(B, 11\) is needed\. A past has context_length \+ max"
    ):
        check_batch(short, config)


def test_c55_lags_are_bounded_by_the_history():
    free = complete_config("informer", schema=NONE, freq="D", prediction_length=4, context_length=30)
    bounded = complete_config("informer", schema=NONE, freq="D", prediction_length=4, context_length=30, history=200)
    assert max(free.lags_sequence) > 1000
    assert max(bounded.lags_sequence) <= 170
    assert bounded.lags_sequence == [lag for lag in free.lags_sequence if lag <= 170]


@pytest.mark.parametrize(("freq", "width"), [("Y", 1), ("M", 2), ("W", 3), ("D", 4), ("h", 5), ("min", 6), ("s", 7)])
def test_c56_number_of_time_features_follows_the_frequency(freq, width):
    config = tiny_config("informer", NONE, freq)
    assert config.num_time_features == width
    batch = stack(list(validation_chain(config, NONE, freq)([entry()], is_train=True)))
    assert batch["future_time_features"].shape == (1, HORIZON, width)
    message = rf"data at {freq} has {width} \(with age\), config has {width + 1}\. Set num_time_features={width}"
    with pytest.raises(ConfigMismatchError, match=message):
        tiny_config("informer", NONE, freq, num_time_features=width + 1)


def test_c58_univariate_target_with_an_axis_of_one():
    batch = last_window([entry([ONE_TO_TWELVE])])
    assert batch["past_values"].ndim == 2
    assert same_bits(batch, last_window([entry(ONE_TO_TWELVE)]))
    refused([entry([[t] for t in ONE_TO_TWELVE])], r"its shape is \(12, 1\), but .* needs \(T,\)\. Give a flat list")
    refused([entry([[ONE_TO_TWELVE]])], r"its shape is \(1, 1, 12\), but .* needs \(T,\)\. Drop an axis")


def test_c59_target_of_one_dimension_too_few_or_too_many():
    refused(
        [entry([1, 2, 3])],
        r"target of item 'a' \(row 1\): its shape is \(3,\), but the model's input_size of 2 needs \(2, T\)",
        input_size=2,
    )
    refused(
        [entry([[1, 2, 3], [4, 5, 6]])],
        r"its shape is \(2, 3\), but the model's input_size of 1 needs \(T,\)\. Set input_size to 2",
    )
    refused([entry([[1, 2]] * 3)], r"its shape is \(3, 2\), but .* needs \(2, T\)\. Transpose it", input_size=2)


def test_c61_known_future_is_needed_for_prediction_only():
    settings = {"num_dynamic_real_features": 1, "prediction_length": 2}
    data = [entry([1, 2, 3, 4], feat_dynamic_real=[[9, 9, 9, 9]])]
    [out] = read(data, **settings)
    assert out["time_feat"].shape == (3, 4)
    refused(
        data,
        r"feat_dynamic_real of item 'a' \(row 1\): it has 4 steps, but 6 are needed with the 2 future .*: 2 missing",
        is_train=False,
        **settings,
    )
    long = [entry([1, 2, 3, 4], feat_dynamic_real=[[9] * 6])]
    assert read(long, **settings)[0]["time_feat"].shape == (3, 4)
    assert read(long, is_train=False, **settings)[0]["time_feat"].shape == (3, 6)
    refused([entry([1, 2], feat_dynamic_real=[[9] * 5])], "it has 5 steps, but 2 are needed: 3 too many", **settings)


def test_c62_dynamic_feature_that_is_transposed_or_flat():
    settings = {"num_dynamic_real_features": 1}
    refused(
        [entry([1, 2, 3, 4], feat_dynamic_real=[[1], [2], [3], [4]])],
        r"its shape is \(4, 1\), but \(1, 4\) is needed, time last\. Transpose it",
        **settings,
    )
    refused(
        [entry([1, 2, 3, 4], feat_dynamic_real=[1, 2, 3, 4])],
        r"its shape is \(4,\), but \(1, 4\) is needed, time last\. Put each feature into a list of its own",
        **settings,
    )


def test_c64_fields_that_are_no_input_are_not_stacked_and_a_ragged_one_is_named():
    schema = StaticSchema.from_counts([3])
    rows = [
        {"item_id": "a", "start": "2022-01-01", "target": [1, 2, 3, 4, 5], "feat_static_cat": [0], "tags": ["x", "y"]},
        {"item_id": "b", "start": "2022-01-01", "target": [1, 2, 3, 4, 5], "feat_static_cat": [1], "tags": ["x"]},
    ]
    batch = last_window(rows, schema)
    assert batch.info.item_ids == ("a", "b")
    assert not {"tags", "item_id"} & batch.keys()
    rows[1]["feat_static_cat"] = [0, 1]
    refused(
        rows, r"feat_static_cat of item 'b' \(row 2\): 2 values, but the schema declares 1", schema, SchemaMismatchError
    )
    rows[1]["feat_static_cat"] = [[0], [0, 1]]
    refused(rows, r"feat_static_cat of item 'b' \(row 2\): it is ragged", schema, SchemaMismatchError)


@pytest.mark.parametrize("gap", [None, math.nan, "NaN", pd.NA])
def test_c65_gap_is_masked_before_it_is_filled(gap):
    batch = last_window([entry([1, gap, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])])
    assert all(torch.isfinite(tensor).all() for tensor in batch.values())
    assert batch["past_values"].tolist() == [[0, 0, 0, 1, 0, 3, 4, 5, 6, 7, 8]]
    assert batch["past_observed_mask"].tolist() == [[0, 0, 0, 1, 0, 1, 1, 1, 1, 1, 1]]


@pytest.mark.parametrize("family", FAMILIES)
def test_c66_gap_in_the_future_has_no_weight(family):
    config = tiny_config(family, NONE)
    data = [entry([1, 2, 3, 4, 5, 6, 7, 8, 9, None, 11, 12])]
    batch = stack(list(validation_chain(config, NONE, "M")(data, is_train=True)))
    assert batch["future_observed_mask"].tolist() == [[1, 0, 1, 1]]
    assert batch["future_values"].tolist() == [[9, 0, 11, 12]]
    unweighted = {key: value for key, value in batch.items() if key != "future_observed_mask"}
    weighted_loss, loss = (tiny_model(config).eval()(**b).loss.item() for b in (batch, unweighted))
    assert weighted_loss != loss


@pytest.mark.parametrize("bad", ["Infinity", math.inf, -math.inf, 1e39, -1e300])
def test_c67_infinity_is_an_error_or_missing(bad):
    data = [entry([1, 2, bad, 4, 5])]
    refused(data, r"target of item 'a' \(row 1\): 1 value\(s\) are infinite in float32, the first at index 2")
    config = tiny_config("informer", NONE)
    chain = series_chain(config, NONE, "M", infinity="missing")
    [out] = chain(data, is_train=True)
    assert out["target"].tolist() == [1, 2, 0, 4, 5]
    assert out["observed_values"].tolist() == [1, 1, 0, 1, 1]
    assert chain.transformations[0].counts["infinite target"] == 1
    with pytest.raises(ConfigMismatchError, match="infinity is 'ignore', but must be 'error' or 'missing'"):
        series_chain(config, NONE, "M", infinity="ignore")


@pytest.mark.parametrize("bad", [math.nan, math.inf, 1e39])
def test_c67_dynamic_feature_has_no_mask_so_that_it_must_be_finite(bad):
    refused(
        [entry([1, 2, 3], feat_dynamic_real=[[0, 1, 2], [0, bad, 2]])],
        r"feat_dynamic_real of item 'a' \(row 1\): feature 1 is .* at step 1, but dynamic features must be finite",
        num_dynamic_real_features=2,
    )


def test_c70_integers_become_float32_and_a_loss_is_told():
    for target in ([16777217, 2, 3, 4], np.array([16777217, 2, 3, 4]), np.array([16777217.0, 2, 3, 4])):
        with pytest.warns(
            PrecisionWarning,
            match=r"target of item 'a' \(row 1\): 1 value\(s\) beyond 2\*\*24 or too near to 0 are round",
        ):
            [out] = read([entry(target)])
        assert out["target"].dtype == np.float32
    [out] = read([entry(np.array([16777216, 2], dtype=np.int64))])
    assert out["target"].tolist() == [16777216.0, 2.0]
    seconds = [1_600_000_001.0, 1_600_000_002.0]
    with pytest.warns(PrecisionWarning, match=r"feat_dynamic_real of item 'a' \(row 1\): 2 value\(s\) beyond"):
        read([entry([1, 2], feat_dynamic_real=[seconds])], num_dynamic_real_features=1)


@pytest.mark.parametrize(
    "group",
    [("M", "ME", "MS"), ("Q", "QE", "QS", "Q-DEC"), ("Y", "YE", "A", "YS"), ("h", "H"), ("min", "T"), ("s", "S")],
)
def test_c71_every_spelling_of_a_frequency_gives_the_same_batch(group):
    batches, configs = [], []
    for spelling in group:
        config = complete_config("informer", schema=NONE, freq=spelling, prediction_length=4, history=20)
        chain = validation_chain(config, NONE, spelling)
        batches.append(stack(list(chain([entry(list(range(20)))], is_train=True))))
        configs.append((config.lags_sequence, config.num_time_features, str(Frequency.parse(spelling))))
    assert all(config == configs[0] for config in configs)
    assert all(same_bits(batch, batches[0]) for batch in batches)


@pytest.mark.parametrize("start", ["1600-01-01", "1700", "0001-01-01", "9990-06-01"])
def test_c73_yearly_data_of_any_century(start):
    config = tiny_config("informer", NONE, "Y")
    assert config.num_time_features == 1
    batch = stack(
        list(validation_chain(config, NONE, "Y")([entry([1, 2, 3, 4, 5, 6]) | {"start": start}], is_train=True))
    )
    check_batch(batch, config)
    assert batch["future_values"].tolist() == [[3, 4, 5, 6]]


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (None, "start is missing, but every series needs one"),
        (pd.NaT, "start is missing, but every series needs one"),
        ("03/04/2021", r"start is not an ISO date \(year-month-day\)"),
        (0, "start is an integer; did you pass a row number"),
        ("2022-03-27T01:30:00+02:00", "start has a time zone"),
    ],
)
def test_c79_start_that_is_accepted_but_wrong(start, message):
    refused([entry() | {"start": start}], rf"start of item 'a' \(row 1\): .*{message}")


def test_c79_start_off_the_calendar():
    config = tiny_config("informer", NONE, "B")
    with pytest.raises(DataError, match=r"start of item 'c' \(row 1\): .*is a Saturday, off the calendar of 'B'"):
        list(series_chain(config, NONE, "B")([entry() | {"item_id": "c", "start": "2021-03-06"}], is_train=True))


def test_c98_same_numbers_under_both_naming_schemes():
    schema = StaticSchema.from_counts([3], 1)
    config = tiny_config("informer", schema)
    for chain, future in (
        (validation_chain(config, schema, "M"), True),
        (prediction_chain(config, schema, "M"), False),
    ):
        windows = list(chain(series(feat_static_cat=[1], feat_static_real=[0.5]), is_train=future))
        hf, gluonts = (stack(windows, future=future, names=names) for names in ("hf", "gluonts"))
        names = {
            "past_values": "past_target",
            "past_time_features": "past_time_feat",
            "past_observed_mask": "past_observed_values",
            CAT: "feat_static_cat",
            REAL: "feat_static_real",
            "future_time_features": "future_time_feat",
        }
        if future:
            names |= {"future_values": "future_target", "future_observed_mask": "future_observed_values"}
        assert hf.keys() == names.keys()
        assert same_bits({names[key]: value for key, value in hf.items()}, gluonts)
    with pytest.raises(ConfigMismatchError, match="names is 'pytorch-ts', but must be 'hf' or 'gluonts'"):
        stack(windows, names="pytorch-ts")


def test_c100_categorical_and_real_are_two_tensors():
    schema = StaticSchema.from_counts([3], 1)
    batch = last_window([entry(feat_static_cat=[2], feat_static_real=[0.25])], schema)
    assert (batch[CAT].tolist(), batch[CAT].dtype) == ([[2]], torch.int64)
    assert (batch[REAL].tolist(), batch[REAL].dtype) == ([[0.25]], torch.float32)
    batch[REAL].zero_()
    assert batch[CAT].tolist() == [[2]]


def test_c106_autoformer_checks():
    with pytest.raises(ConfigMismatchError, match=r"moving_average is 4, but Autoformer needs an odd one\. Set .*=5"):
        tiny_config("autoformer", NONE, moving_average=4)
    with pytest.raises(
        ConfigMismatchError, match=r"label_length is 10, but must be from 1 to context_length, 8\. Set .*=8"
    ):
        tiny_config("autoformer", NONE, label_length=10)
    both = transformers.AutoformerConfig(
        prediction_length=4, context_length=8, moving_average=4, label_length=10, num_time_features=2
    )
    with pytest.raises(ConfigMismatchError, match="(?s)moving_average is 4.*label_length is 10"):
        check_config(both)
    assert tiny_config("autoformer", NONE).label_length == 8


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"context_length": 1},
            "context_length is 1, of which .*_factor of 3 takes 0 delays, but must take from 1 to 1",
        ),
        ({"autocorrelation_factor": 0}, "context_length is 8, of which .*_factor of 0 takes 0 delays"),
        ({"context_length": 4, "autocorrelation_factor": 4}, "takes 5 delays, but must take from 1 to 4"),
        ({"label_length": 0}, "label_length is 0, but must be from 1 to context_length, 8. Set label_length=8"),
        ({"label_length": -2}, "label_length is -2, but must be from 1"),
        ({"moving_average": -1}, "moving_average is -1, but Autoformer needs an odd one. Set moving_average=1"),
    ],
)
def test_c106_autoformer_settings_that_fail_deep_inside(settings, message):
    fields = {"prediction_length": 4, "context_length": 8, "lags_sequence": [1, 2, 3], "label_length": 1} | settings
    config = transformers.AutoformerConfig(**fields, **SMALL, num_time_features=2)
    plain = tiny_config("informer", NONE, context_length=config.context_length)
    batch = stack(list(validation_chain(plain, NONE, "M")(series(), is_train=True)))
    with pytest.raises((RuntimeError, ValueError)):
        tiny_model(config)(**batch)
    with pytest.raises(ConfigMismatchError, match=message):
        check_config(config)
