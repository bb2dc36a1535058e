"""Whatever stands in a static field, the outcome is a finished entry or an error that names the place."""

import math
import re
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

from tsnorm.errors import SchemaMismatchError
from tsnorm.schema import CategoricalFeature, RealFeature, Scaling, StaticSchema
from tsnorm.transforms import static_features

CATS = {
    "ids": CategoricalFeature.make("x", num_known=3),
    "names": CategoricalFeature.make("x", vocabulary=("red", "", "1")),
    "codes": CategoricalFeature.make("x", vocabulary=(17, -1, 2**63)),
    "nothing": CategoricalFeature.make("x", vocabulary=()),
    "strict": CategoricalFeature.make("x", vocabulary=("red",), missing="error"),
}
REALS = {
    "plain": RealFeature(name="y", fill=0.0, indicator=True),
    "scaled": RealFeature(name="y", fill=0.0, scaling=Scaling(mean=1e308, std=1e-308)),
    "strict": RealFeature(name="y"),
}

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.integers(),
    st.integers(-(10**400), 10**400),
    st.floats(),
    st.complex_numbers(),
    st.decimals(),
    st.fractions(),
    st.text(max_size=3),
    st.binary(max_size=3),
    st.datetimes(),
    st.dates(),
    st.timedeltas(),
    st.sampled_from(
        [pd.NA, pd.NaT, math.nan, "red", "17", 17, Fraction(10**400), np.ma.masked, object(), Ellipsis, list, len]
    ),
    nps.from_dtype(np.dtype("M8[s]")),
    nps.scalar_dtypes().flatmap(lambda kind: nps.from_dtype(kind)),
)
arrays = st.one_of(
    nps.arrays(
        nps.scalar_dtypes() | nps.unicode_string_dtypes() | nps.byte_string_dtypes(), nps.array_shapes(min_dims=0)
    ),
    nps.arrays(np.dtype(object), st.integers(0, 2), elements=scalars, fill=st.nothing()),
    nps.arrays(st.sampled_from(["i8", "f4", "f8", "?", "u1"]), nps.array_shapes(min_dims=0)).map(torch.tensor),
)
values = st.recursive(
    scalars | arrays,
    lambda inner: st.one_of(
        st.lists(inner, max_size=2),
        st.tuples(inner),
        st.dictionaries(st.text(max_size=1), inner, max_size=2),
        st.sets(st.integers(), max_size=2),
    ),
    max_leaves=4,
)
schemas = st.builds(
    lambda cat, real: StaticSchema(categorical=[cat], real=[real]),
    st.sampled_from(list(CATS.values())),
    st.sampled_from(list(REALS.values())),
)


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@settings(max_examples=600, deadline=None)
@given(schemas, values, values, st.sampled_from(["fields", "columns"]))
def test_any_value_is_used_or_refused(schema, cat, real, form):
    entry = {"item_id": "T0042"}
    if form == "columns":
        entry |= {"x": cat, "y": real}
    else:
        entry |= {"feat_static_cat": cat, "feat_static_real": real}
    before = repr(entry)
    try:
        [out] = static_features(schema)([entry], is_train=True)
    except SchemaMismatchError as error:
        message = str(error)
    else:
        rows, numbers = out["feat_static_cat"], out["feat_static_real"]
        assert (rows.dtype, rows.shape) == (np.int64, (1,))
        assert 0 <= rows[0] < schema.cardinality[0]
        assert (numbers.dtype, numbers.shape) == (np.float32, (schema.num_static_real,))
        assert np.isfinite(numbers).all()
        message = None
    assert message is None or re.match(
        r"feat_static_(cat|real) of item 'T0042' \(row 1\): .*, but ", message, re.DOTALL
    )
    assert repr(entry) == before
