"""Entries come back from record batches as they went in, however they are packed."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from store.entry_strategies import comparable, datasets

from tsnorm.errors import SOURCE_FIELD, Place
from tsnorm.store import entries, record_batches
from tsnorm.store.record_batch import FIELDS, ROUNDED_KEY, UNKNOWN_KEY, counts_in


@given(datasets, st.integers(1, 9))
def test_entries_come_back_as_they_went_in(data, rows):
    back = [entry for batch in record_batches(data, rows=rows) for entry in entries(batch)]
    assert [comparable(entry) for entry in back] == [comparable(entry) for entry in data]


@given(datasets, st.integers(1, 9), st.integers(1, 9))
def test_packing_again_changes_nothing(data, rows, other_rows):
    once = [entry for batch in record_batches(data, file="a.jsonl", rows=rows) for entry in entries(batch)]
    twice = [entry for batch in record_batches(once, rows=other_rows) for entry in entries(batch)]
    assert [comparable(entry) for entry in twice] == [comparable(entry) for entry in once]
    assert [entry[SOURCE_FIELD] for entry in twice] == [entry[SOURCE_FIELD] for entry in once]


@given(datasets, st.data())
def test_a_slice_holds_its_entries(data, draw):
    for batch in record_batches(data, rows=100):
        start = draw.draw(st.integers(0, batch.num_rows))
        stop = draw.draw(st.integers(start, batch.num_rows))
        whole = [comparable(entry) for entry in entries(batch)]
        assert [comparable(entry) for entry in entries(batch.slice(start, stop - start))] == whole[start:stop]


@given(datasets, st.integers(1, 9))
def test_batches_are_valid_arrow_and_of_the_layout(data, rows):
    for batch in record_batches(data, rows=rows):
        batch.validate(full=True)
        assert batch.schema.names == [*FIELDS, "source_row"]
        assert 1 <= batch.num_rows <= rows


@given(datasets, st.integers(1, 9))
def test_fields_that_are_not_stored_are_counted(data, rows):
    counts = [counts_in(batch, UNKNOWN_KEY).get("note", 0) for batch in record_batches(data, rows=rows)]
    assert sum(counts) == sum("note" in entry for entry in data)


def test_targets_are_read_only_views_of_the_batch():
    [batch] = record_batches([{"target": [1, 2, 3]}, {"target": [4]}])
    first, second = (entry["target"] for entry in entries(batch))
    assert second.ctypes.data == first.ctypes.data + 3 * 8
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 5.0


def test_what_the_caller_writes_later_does_not_reach_the_batch():
    scratch = np.zeros(2)

    def stream():
        for number in (1.0, 2.0):
            scratch[:] = number
            yield {"target": scratch}

    [batch] = record_batches(stream())
    assert [entry["target"].tolist() for entry in entries(batch)] == [[1.0, 1.0], [2.0, 2.0]]


def test_places_go_with_the_entries():
    data = [{"target": [1.0], "item_id": "a"}, {"target": [2.0]}]
    places = [e[SOURCE_FIELD] for batch in record_batches(data, file="x.parquet", first_row=7) for e in entries(batch)]
    assert places == [Place(file="x.parquet", row=7, item_id="a"), Place(file="x.parquet", row=8)]


def test_a_batch_holds_entries_of_one_file_and_one_target_dimension():
    def entry(file, target):
        return {"target": target, SOURCE_FIELD: Place(file=file, row=1)}

    data = [entry("a", [1]), entry("a", [1]), entry("b", [1]), entry("b", [[1]]), entry("b", [[1], [2]])]
    assert [batch.num_rows for batch in record_batches(data)] == [2, 1, 2]


def test_whole_numbers_become_text_ids():
    [batch] = record_batches([{"target": [1], "item_id": 17}, {"target": [1], "item_id": np.int32(3)}])
    assert [entry["item_id"] for entry in entries(batch)] == ["17", "3"]
    assert "decimal text" in batch.schema.field("item_id").metadata[b"tsnorm.remark"].decode()


@pytest.mark.parametrize(
    ("categories", "kind"),
    [
        ([[1], [2]], pa.int64()),
        ([[1], [2.5]], pa.float64()),
        ([[None], None], pa.int64()),
        ([["a"], [float("nan")]], pa.large_string()),
        ([[True], [float("nan"), False]], pa.bool_()),
        ([3, np.int64(4)], pa.int64()),
        (["red", np.array(["blue"])], pa.large_string()),
    ],
)
def test_categories_keep_their_type(categories, kind):
    [batch] = record_batches([{"target": [1.0], "feat_static_cat": cell} for cell in categories])
    assert batch.column("feat_static_cat").type.value_type == kind


def test_null_and_nan_stay_apart_in_static_reals():
    [batch] = record_batches([{"target": [1], "feat_static_real": [None, float("nan"), "NaN", "-Infinity", 2]}])
    [entry] = entries(batch)
    assert str(entry["feat_static_real"]) == "[None, nan, nan, -inf, 2.0]"
    assert batch.column("feat_static_real").values.null_count == 1


def test_whole_numbers_that_are_rounded_are_counted():
    data = [{"target": [2**53 + 1, 2**53, 2.0**80, 2**60]}, {"target": np.array([2**63 - 1, -(2**62)])}]
    assert counts_in(next(record_batches(data)), ROUNDED_KEY) == {"target": 2}


def test_no_features_have_as_many_steps_as_the_target():
    [batch] = record_batches([{"target": [1, 2], "feat_dynamic_real": []}])
    assert next(entries(batch))["feat_dynamic_real"].shape == (0, 2)


def test_no_entries_make_no_batches():
    assert list(record_batches([])) == []
