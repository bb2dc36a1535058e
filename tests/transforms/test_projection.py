"""Two datasets, one model: each entry lands in the rows that the widened schema gives its categories."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import REFUSED, RESERVED, meaning_of_row, static_cat_rows, static_real_values
from schema_strategies import entries, static_schemas

from tsnorm.errors import SchemaError, SchemaMismatchError
from tsnorm.schema import CategoricalFeature, RealFeature, StaticSchema
from tsnorm.transforms import static_features

laws = settings(max_examples=120, deadline=None)
schemas = static_schemas(filled=True)


def transformed(schema, source, entry):
    try:
        [out] = static_features(schema, source)([entry], is_train=True)
    except SchemaMismatchError:
        return REFUSED
    return out


@laws
@given(st.data(), st.integers(0, 5), static_schemas(), schemas, schemas)
def test_it_is_what_the_oracle_says(data, odd, strict, a, b):
    a = strict if odd == 0 else a
    wide = a | b
    for source in (a, b, wide):
        entry = data.draw(entries(source))
        rows, values = static_cat_rows(entry, source, wide), static_real_values(entry, source, wide)
        out = transformed(wide, source, entry)
        if REFUSED in (rows, values):
            assert out == REFUSED
            continue
        assert ("feat_static_cat" in out) == bool(rows)
        assert ("feat_static_real" in out) == bool(values)
        if rows:
            assert out["feat_static_cat"].dtype == np.int64
            assert out["feat_static_cat"].tolist() == rows
            assert all(0 <= row < size for row, size in zip(rows, wide.cardinality, strict=True))
        if values:
            assert out["feat_static_real"].dtype == np.float32
            assert np.array_equal(out["feat_static_real"], np.array(values, dtype=np.float32))


@laws
@given(st.data(), schemas, schemas, schemas)
def test_a_checkpoint_keeps_its_rows_when_the_schema_grows(data, a, b, c):
    """What an entry of `a` meant to a model of `a | b` it means to a model of `a | b | c`."""
    entry = data.draw(entries(a))
    before, after = transformed(a | b, a, entry), transformed(a | b | c, a, entry)
    if REFUSED in (before, after):
        return
    if not (a | b).categorical:
        return
    num_columns = len((a | b).categorical)
    old_rows, new_rows = before["feat_static_cat"], after["feat_static_cat"][:num_columns]
    for feature, old_row, new_row in zip((a | b).categorical, old_rows, new_rows, strict=True):
        if meaning_of_row(feature, old_row) == RESERVED and new_row >= feature.cardinality:
            continue  # unseen then, known now: the one change that widening is for
        assert new_row == old_row


@laws
@given(st.data(), schemas)
def test_the_schema_is_its_own_source(data, a):
    entry = data.draw(entries(a))
    implicit, explicit = transformed(a, None, entry), transformed(a, a, entry)
    assert repr(implicit) == repr(explicit)


M3 = StaticSchema(
    categorical=[CategoricalFeature.make("domain", vocabulary=("MICRO", "MACRO"))],
    real=[RealFeature(name="length", fill=0.0)],
)
TOURISM = StaticSchema(
    categorical=[
        CategoricalFeature.make("region", num_known=3),
        CategoricalFeature.make("domain", vocabulary=("TOURISM", "MACRO")),
    ],
    real=[RealFeature(name="area", fill=-1.0)],
)


def test_two_datasets_and_one_model():
    wide = M3 | TOURISM  # domain: MICRO MACRO reserved TOURISM; region: 0 1 2 reserved
    assert wide.cardinality == (4, 4)
    m3 = [{"feat_static_cat": [k], "feat_static_real": [2.0]} for k in ("MICRO", "MACRO", 1, None, "NEW")]
    tourism = [{"feat_static_cat": pair, "feat_static_real": [3.0]} for pair in ([2, 0], [0, "MACRO"], [None, None])]
    out = [e["feat_static_cat"].tolist() for e in static_features(wide, M3)(m3, is_train=True)]
    assert out == [[0, 3], [1, 3], [1, 3], [2, 3], [2, 3]]
    out = list(static_features(wide, TOURISM)(tourism, is_train=True))
    assert [e["feat_static_cat"].tolist() for e in out] == [[3, 2], [1, 0], [2, 3]]
    assert [e["feat_static_real"].tolist() for e in out] == [[0.0, 3.0]] * 3


def test_without_a_source_the_entries_have_the_columns_of_the_schema():
    with pytest.raises(SchemaMismatchError, match=r"1 value, but the schema declares 2 \(domain, region\)"):
        list(static_features(M3 | TOURISM)([{"feat_static_cat": ["MICRO"]}], is_train=True))


def test_a_source_beside_the_schema_is_refused():
    with pytest.raises(SchemaError, match=r"'region' of the source is not in the schema\. Widen it: schema \| source"):
        static_features(M3, TOURISM)
