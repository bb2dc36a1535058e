"""What an entry may hold, and the message where it may not."""

import datetime
from collections import deque

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsnorm.errors import DataError
from tsnorm.store import entries, record_batches


def packed(entry):
    [batch] = record_batches([entry], file="data.jsonl", first_row=3)
    return next(entries(batch))


def packed_target(target):
    return packed({"target": target})["target"]


class Tensor:
    """Stands in for a torch tensor, without torch."""

    def __init__(self, array, bfloat16=False):
        self.array, self.bfloat16 = array, bfloat16

    def detach(self):
        return Tensor(self.array, self.bfloat16)

    def cpu(self):
        return self

    def double(self):
        return Tensor(self.array.astype(float))

    def numpy(self):
        if self.bfloat16:
            raise TypeError("Got unsupported ScalarType BFloat16")
        return self.array


@pytest.mark.parametrize(
    "target",
    [
        [1, None, 3.5],
        (1, "NaN", 3.5),
        [1.0, "Nan", np.float32(3.5)],
        np.array([1, np.nan, 3.5]),
        np.array([1, None, 3.5], dtype=object),
        np.ma.masked_array([1, 2, 3.5], mask=[False, True, False]),
        deque([1, "nan", 3.5]),
        Tensor(np.array([1, np.nan, 3.5], dtype=np.float32)),
        Tensor(np.array([1, np.nan, 3.5]), bfloat16=True),
        [Tensor(np.array(1)), None, np.array(3.5)],
    ],
    ids=lambda target: type(target).__name__,
)
def test_a_target_may_come_in_any_container(target):
    seen = packed_target(target)
    assert seen.dtype == np.float64
    np.testing.assert_array_equal(seen, [1, np.nan, 3.5])


@pytest.mark.parametrize("target", [[[1, 2]], [np.array([1, 2])], np.array([[1, 2]]), [Tensor(np.array([1, 2]))]])
def test_a_list_of_one_list_is_multivariate(target):
    assert packed_target(target).shape == (1, 2)


def test_findings_of_a_validator_are_kept():
    entry = packed({"target": [], "feat_dynamic_real": [[1, "Infinity"]], "feat_static_real": ["-Infinity"]})
    assert entry["target"].shape == (0,)
    assert entry["feat_dynamic_real"].tolist() == [[1, np.inf]]
    assert entry["feat_static_real"] == [-np.inf]


def test_starts_are_kept_as_text():
    pd = pytest.importorskip("pandas")
    starts = [
        ("2022-01-01 00:00", "2022-01-01 00:00"),
        (datetime.date(2022, 3, 1), "2022-03-01"),
        (datetime.datetime(2022, 3, 1, 12), "2022-03-01T12:00:00"),
        (np.datetime64("2022-03"), "2022-03"),
        (np.array("2022-03-04", dtype="datetime64[D]"), "2022-03-04"),
        (pd.Timestamp("2022-03-01"), "2022-03-01T00:00:00"),
        (pd.Period("2022-03", "M"), "2022-03"),
        (pd.Period("2022-02", "Q"), "2022-01-01"),
        (pd.Period("1500-03-08", "W"), "1500-03-05"),
        (pd.Period("2022-03-01 10:30", "min"), "2022-03-01 10:30"),
    ]
    assert [packed({"target": [1], "start": start})["start"] for start, _ in starts] == [text for _, text in starts]


@pytest.mark.parametrize("freq", ["Y", "Q", "Q-JAN", "M", "2M", "W", "W-WED", "D", "3D", "h", "10min", "s"])
def test_a_period_is_read_back_as_itself(freq):
    pd = pytest.importorskip("pandas")
    from tsnorm.freq import Frequency, parse_start

    period = pd.Period("2021-08-19 14:20:33", freq)
    assert parse_start(packed({"target": [1], "start": period})["start"], Frequency.parse(freq)) == period


BAD = {
    "no target": ({"values": [1]}, r"target of row 3 of data\.jsonl: is missing \(fields: 'values'\).* Rename"),
    "null target": ({"target": None, "item_id": "a"}, r"target of item 'a' \(row 3 of data\.jsonl\): is missing"),
    "scalar target": ({"target": 1.0}, "is 1.0 .* whole series .* looks like a long table"),
    "0-d target": ({"target": np.array(3)}, "is 3 .* looks like a long table"),
    "text target": ({"target": "abc"}, r"is 'abc' \(str\)"),
    "dict target": ({"target": {0: 1.0}}, "is a dict of 1"),
    "text in target": ({"target": [1, "abc", "x"]}, r"is 'abc' at index 1 \(and 1 more\), but numbers are expected"),
    "number as text": ({"target": [1.0, "2.5"]}, "is '2.5' at index 1"),
    "text array": ({"target": np.array(["1", "2"])}, r"is '1' at index 0 \(and 1 more\)"),
    "true in target": ({"target": [1.0, True]}, "is True at index 1"),
    "bool array": ({"target": np.array([True])}, "is True at index 0"),
    "dates in target": ({"target": np.array(["2022-01-01"], dtype="datetime64[D]")}, "is datetime.date.* at index 0"),
    "too large": ({"target": [10**400]}, "too large .* float64 must hold it"),
    "ragged target": ({"target": [[1, 2], [3]]}, "ragged, with 2 steps in channel 0 and 1 in channel 1"),
    "mixed depth": ({"target": [[1, 2], 3]}, "is 3 in channel 1, but each channel must be a list"),
    "text in channel": ({"target": [[1], ["x"]]}, "is 'x' at index 0 in channel 1"),
    "3-d target": ({"target": np.zeros((1, 2, 3))}, r"has shape \(1, 2, 3\)"),
    "3-d lists": ({"target": [[[1]]]}, r"is \[1\] at index 0 in channel 0"),
    "list id": ({"target": [1], "item_id": ["y", "y"]}, "item_id of row 3 .*item_id must be scalar"),
    "float id": ({"target": [1], "item_id": 1.0}, r"is 1.0 \(float\), but item_id must be scalar"),
    "bool id": ({"target": [1], "item_id": True}, "item_id must be scalar"),
    "dict id": ({"target": [1], "item_id": {"a": 1}}, "item_id must be scalar"),
    "integer start": ({"target": [1], "start": 0}, "start of .* is the integer 0, .* Did you pass a row number"),
    "year": ({"target": [1], "start": np.int64(1990)}, "is the integer .*1990.*as the text '1990'"),
    "list start": ({"target": [1], "start": ["2022-01-01"]}, r"\(list\), but a date is expected"),
    "float start": ({"target": [1], "start": 1.5}, r"is 1.5 \(float\), but a date is expected"),
    "1-d dynamic": ({"target": [1, 2], "feat_dynamic_real": [1, 2]}, r"1 dimension, length 2.* Wrap the one feature"),
    "constant dynamic": ({"target": [1] * 6, "feat_dynamic_cat": [7]}, "length 1 .target: 6 .* mean feat_static_cat"),
    "constant past": ({"target": [1] * 6, "past_feat_dynamic_real": np.ones(1)}, "Did you mean feat_static_real"),
    "scalar dynamic": ({"target": [1], "feat_dynamic_real": 3}, "feat_dynamic_real of .* is 3, but a list of features"),
    "transposed": (
        {"target": [1, 2, 3, 4], "feat_dynamic_real": [[1], [2], [3], [4]]},
        r"\(4, 1\).*\(1, 4\).*Transpose",
    ),
    "ragged dynamic": ({"target": [1], "feat_dynamic_real": [[1, 2], [3]]}, "ragged, with 2 steps in feature 0 and 1"),
    "fraction": ({"target": [1], "feat_dynamic_cat": [[1.0, 2.5]]}, "holds 2.5 in feature 0 at step 1"),
    "missing": (
        {"target": [1], "feat_dynamic_cat": [[1, None]]},
        "holds nan in feature 0 at step 1.*an id of their own",
    ),
    "static per step": (
        {"target": [1], "feat_static_cat": [[1], [1]]},
        "is a list in column 0.* not for each time step",
    ),
    "2-d static": ({"target": [1], "feat_static_cat": np.ones((2, 1), int)}, r"shape \(2, 1\)"),
    "dict static": ({"target": [1], "feat_static_cat": {"color": "red"}}, "is a dict of 1"),
    "odd category": ({"target": [1], "feat_static_cat": [1, b"x"]}, r"b'x' \(bytes\) in column 1"),
    "huge category": ({"target": [1], "feat_static_cat": [2**63]}, "64 bits must hold it"),
    "text in reals": ({"target": [1], "feat_static_real": [1, "abc"]}, "feat_static_real of .* is 'abc' at index 1"),
    "surrogate": ({"target": [1], "item_id": "\ud800"}, "must be Unicode text"),
}


@pytest.mark.parametrize(("entry", "message"), BAD.values(), ids=BAD)
def test_bad_entries_are_refused_by_place_and_value(entry, message):
    with pytest.raises(DataError, match=message) as caught:
        packed(entry)
    assert "row 3 of data.jsonl" in str(caught.value)
    assert ", but " in str(caught.value)


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ([0, 1], ["a"], r"row 2.*is 'a' in column 0, but there are whole numbers in row 1"),
        (["a", 1], [], "row 1.*is 1 in column 1, but there are texts"),
        ([True], [2], "is 2 in column 0, but there are true and false"),
        ([2**53 + 1], [0.5], r"is 0.5 in column 0, but there are whole numbers above 2\*\*53"),
    ],
)
@pytest.mark.parametrize("rows", [1, 10])
def test_categories_are_of_one_kind_however_they_are_packed(first, second, message, rows):
    data = [{"target": [1], "feat_static_cat": first}, {"target": [1], "feat_static_cat": second}]
    with pytest.raises(DataError, match=message):
        list(record_batches(data, rows=rows))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([5], r"row 1: is 5 \(int\), but an entry must be a mapping"),
        ([{"target": [1]}, ["target"]], r"row 2: is \['target'\] \(list\)"),
        ({"target": [1]}, "entries is a dict of 1, but must be many entries. Put it in a list"),
    ],
)
def test_what_is_no_entry_is_refused(data, message):
    with pytest.raises(DataError, match=message):
        list(record_batches(data))


@pytest.mark.parametrize("rows", [0, -1, 2.5, None])
def test_rows_are_a_whole_number(rows):
    with pytest.raises(DataError, match="rows is"):
        record_batches([], rows=rows)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.binary(max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=8,
)
fields = st.sampled_from(
    ["target", "start", "item_id", "feat_static_cat", "feat_static_real", "feat_dynamic_real", "feat_dynamic_cat"]
)


@settings(max_examples=300)
@given(st.lists(st.dictionaries(fields | st.text(max_size=2), anything, max_size=5) | anything, max_size=3))
def test_any_input_is_packed_or_refused_by_a_data_error(data):
    try:
        batches = list(record_batches(data))
    except DataError:
        return
    for batch in batches:
        batch.validate(full=True)
        list(entries(batch))


def test_a_message_stays_short():
    with pytest.raises(DataError) as caught:
        packed({"target": [1], "item_id": list(range(100_000))})
    assert len(str(caught.value)) < 400
