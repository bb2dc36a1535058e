"""Whatever an entry or a batch holds: it comes out whole, or tsnorm says what is wrong; nothing fails deep inside."""

import datetime
import decimal
import fractions
import math
import warnings

import numpy as np
import pandas as pd
import torch
from chain_oracles import bits
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiny_models import HORIZON, PAST, series, tiny_config, tiny_model, train_step

from tsnorm.errors import ConfigMismatchError, TsnormError, TsnormWarning
from tsnorm.pipeline import check_batch, stack, training_chain, validation_chain
from tsnorm.pipeline import test_chain as prediction_chain
from tsnorm.schema import StaticSchema

SCHEMA = StaticSchema.from_counts([3], 1)
CONFIGS = [tiny_config("informer", SCHEMA, num_dynamic_real_features=num) for num in (0, 1)]

scalars = st.one_of(
    st.integers(-3, 5),
    st.integers(),
    st.floats(),
    st.text(max_size=3),
    st.sampled_from([None, True, 1j, b"x", {}, set(), object(), datetime.date(2020, 1, 1), decimal.Decimal(1)]),
    st.sampled_from([pd.NA, pd.NaT, np.float32(1), np.int8(1), np.datetime64("NaT"), np.array(2.0), np.ma.masked]),
    st.sampled_from([fractions.Fraction(1, 2), torch.tensor(1.0)]),
)
nested = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.lists(inner, max_size=3).map(tuple), max_leaves=9
)
arrays = st.sampled_from(
    [
        np.zeros((2, 0)),
        np.zeros((0, 3)),
        np.zeros((1, 1, 1)),
        np.arange(12),
        np.arange(12.0).reshape(12, 1),
        np.arange(16.0).reshape(1, 16),
        np.ma.masked_array(np.arange(12.0), [0, 1] * 6),
        [np.ma.masked_array([1.0, 2.0], [0, 1])],
        np.array(["a"] * 12),
        np.array([None] * 12),
        np.array([[1], [2, 3]], dtype=object),
        np.zeros(12, dtype="M8[s]"),
        np.zeros(12, dtype=complex),
        np.zeros(12, dtype=[("a", float)]),
        np.ones(12, dtype=np.longdouble),
        torch.arange(12),
        torch.zeros(1, 16, dtype=torch.bfloat16),
        [np.zeros(3), np.zeros(4)],
        [torch.zeros(3), torch.zeros(3)],
        pd.Series(range(12)),
        pd.Series([1, None] * 6, dtype="Int64"),
        pd.Categorical(["a", "b"]),
        pd.date_range("2020", periods=3),
        range(12),
        "123",
        b"123",
        memoryview(b"123"),
    ]
)
values = nested | arrays
starts = scalars | st.sampled_from(
    [
        "2020-01",
        pd.Period("2020-01", "M"),
        pd.Period("2020-01-01", "D"),
        pd.Timestamp("2020-01-01"),
        pd.Timestamp("2020-01-01", tz="UTC"),
        np.datetime64("2020-01"),
        ["2020-01"],
    ]
)
entries = st.fixed_dictionaries(
    {"target": st.lists(st.floats(width=32, allow_infinity=False), min_size=1, max_size=20) | values},
    optional={
        "start": starts,
        "item_id": values,
        "feat_static_cat": values,
        "feat_static_real": values,
        "feat_dynamic_real": values,
        "feat_dynamic_cat": values,
        "past_feat_dynamic_real": values,
        "feat_static_cat_0": values,
        "feat_static_real_0": values,
    },
).map(lambda entry: {"start": "2020-01"} | entry)


@given(entry=entries, mode=st.sampled_from(["train", "validation", "test"]), config=st.sampled_from(CONFIGS))
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
def test_entry_gives_a_fitting_batch_or_an_error_of_ours(entry, mode, config):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TsnormWarning)
        try:
            chain = {
                "train": training_chain(config, SCHEMA, "M", num_instances=5.0),
                "validation": validation_chain(config, SCHEMA, "M"),
                "test": prediction_chain(config, SCHEMA, "M"),
            }[mode]
            windows = list(chain([entry], is_train=mode != "test"))
            if windows:
                check_batch(stack(windows, future=mode != "test"), config)
        except TsnormError as error:
            assert "row 1" in str(error) or "item" in str(error)  # noqa: PT017 - there may be none


DECLARED = StaticSchema.from_counts([3, 2], 2, missing_cat="error")
MODEL = tiny_config("informer", DECLARED)
STATICS = {"feat_static_cat": [1, 1], "feat_static_real": [0.5, 1.5]}
GOOD = stack(list(validation_chain(MODEL, DECLARED, "M")(series(**STATICS), is_train=True)))
changes = {
    "drop": lambda tensor: None,
    "double": lambda tensor: tensor.double(),
    "float": lambda tensor: tensor.float(),
    "int": lambda tensor: tensor.int(),
    "long": lambda tensor: tensor.long(),
    "short": lambda tensor: tensor.short(),
    "bool": lambda tensor: tensor.bool(),
    "more": lambda tensor: tensor + 1,
    "less": lambda tensor: tensor - 2,
    "nan": lambda tensor: tensor.float() * math.nan,
    "zero": torch.zeros_like,
    "axis": lambda tensor: tensor.unsqueeze(-1),
    "flat": lambda tensor: tensor[..., 0],
    "narrow": lambda tensor: tensor[..., :-1],
    "none": lambda tensor: tensor[..., :0],
    "wide": lambda tensor: torch.cat([tensor, tensor], dim=-1),
    "wider by the embedding": lambda tensor: torch.cat([tensor, torch.zeros(*tensor.shape[:-1], 3)], dim=-1),
    "one row": lambda tensor: tensor[:1],
    "no rows": lambda tensor: tensor[:0],
    "list": lambda tensor: tensor.tolist(),
    "array": lambda tensor: tensor.numpy(),
    "shorter": lambda tensor: tensor[:, :-1],
}


@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_batch_that_is_let_through_trains_and_reaches_every_parameter(data):
    keys = data.draw(st.lists(st.sampled_from(sorted(GOOD)), min_size=1, max_size=3, unique=True))
    batch = dict(GOOD)
    for key in keys:
        changed = changes[data.draw(st.sampled_from(sorted(changes)))](batch.pop(key))
        if changed is not None:
            batch[key] = changed
    before = {key: bits(value) for key, value in batch.items() if isinstance(value, torch.Tensor)}
    try:
        check_batch(batch, MODEL)
    except ConfigMismatchError:
        return
    assert {key: bits(value) for key, value in batch.items()} == before
    if "future_values" not in batch:
        assert tiny_model(MODEL).eval().generate(
            **{key: value for key, value in batch.items() if key != "future_observed_mask"}
        ).sequences.shape == (4, 100, HORIZON)
        return
    loss, unreached = train_step(tiny_model(MODEL), batch)
    assert math.isfinite(loss)
    assert unreached == []
    assert batch["past_values"].shape == (4, PAST)
