"""What a profile says of a small dataset, and how it is read off."""

import json
import subprocess
import sys

import pytest

from tsnorm.errors import DataError
from tsnorm.profile import profile_entries, profile_folder

DATA = [
    {
        "item_id": "a",
        "start": "2022-01",
        "target": [1, None, "Infinity"],
        "feat_static_cat": ["red", None],
        "feat_static_real": [1.0, None],
        "feat_dynamic_real": [[1, 2, 3]],
        "tags": ["x"],
    },
    {
        "item_id": "b",
        "start": "2021-05",
        "target": [2**53 + 1],
        "feat_static_cat": ["blue", "x"],
        "feat_static_real": [4.0, float("-inf")],
        "feat_dynamic_real": [[1]],
    },
    {"target": []},
    {"target": [None]},
]


def test_a_summary_can_be_read_and_written():
    summary = profile_entries(DATA, freq="MS").summary()
    assert json.loads(json.dumps(summary)) == summary
    assert {key: summary[key] for key in ("freq", "prediction_length", "num_series", "num_values")} == {
        "freq": "M",
        "prediction_length": None,
        "num_series": 4,
        "num_values": 5,
    }
    assert (summary["num_missing"], summary["num_infinite"]) == (2, 1)
    assert (summary["num_empty"], summary["num_all_missing"]) == (1, 1)
    assert (summary["lengths"], summary["mean_length"]) == ([0, 3], 1.25)
    assert summary["starts"] == ["2021-05", "2022-01"]
    assert summary["presence"]["feat_static_cat"] == 2
    assert summary["unknown_fields"] == {"tags": 1}
    assert summary["rounded"] == {"target": 1}
    assert summary["dynamic_widths"] == {"feat_dynamic_real": [1, 1]}
    color, size = summary["static_cat"][0], summary["static_real"][0]
    assert (color["kind"], color["distinct"], color["texts"]) == ("text", 2, ["blue", "red"])
    assert (size["mean"], size["std"], size["finite"], size["num_values"]) == (2.5, 1.5, [1.0, 4.0], 2)
    assert summary["static_real"][1]["mean"] is None
    assert (summary["static_real"][1]["num_missing"], summary["static_real"][1]["num_infinite"]) == (1, 1)


def test_shapes_that_a_model_needs_are_read_off():
    profile = profile_entries([{"target": [[1, 2], [3, 4]], "feat_dynamic_real": [[1, 2, 3]] * 3}])
    assert (profile.input_size, profile.num_dynamic_real, profile.max_length) == (2, 3, 2)
    empty = profile_entries([])
    assert (empty.input_size, empty.num_dynamic_real, empty.max_length, empty.mean_length) == (1, 0, 0, None)


def test_shapes_that_differ_are_refused():
    profile = profile_entries([{"target": [[1], [2]]}, {"target": [1], "feat_dynamic_real": [[1]]}])
    assert (str(profile.target_ndim), str(profile.target_channels)) == ("1 to 2", "1 to 2")
    with pytest.raises(DataError, match="target: has 1 to 2 channels"):
        _ = profile.input_size
    with pytest.raises(DataError, match="feat_dynamic_real: has 0 to 1 features"):
        _ = profile.num_dynamic_real


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2], "int"),
        ([1.0, None], "int"),
        ([1.0, 2.5], "float"),
        (["1"], "text"),
        ([True], "bool"),
        ([None, float("nan")], "none"),
    ],
)
def test_kinds_of_categories(values, kind):
    [column] = profile_entries([{"target": [1], "feat_static_cat": [value]} for value in values]).static_cat
    assert column.kind == kind


def test_a_folder_brings_its_metadata(tmp_path):
    (tmp_path / "train").mkdir()
    (tmp_path / "metadata.json").write_text('{"freq": "H", "prediction_length": 24}')
    (tmp_path / "train" / "data.json").write_text('{"target": [1, 2]}\n')
    profile = profile_folder(tmp_path)
    assert (profile.num_series, profile.freq, profile.prediction_length) == (1, "h", 24)


def test_heavy_modules_stay_out(tmp_path):
    program = (
        "import sys; from tsnorm.profile import DatasetProfile, profile_entries as profile;"
        "data = [{'target': [1, None], 'feat_static_cat': ['a'], 'feat_static_real': [1]}, {'target': [[1]]}];"
        "DatasetProfile.from_json(profile(data, freq='ME').to_json()).to_schema();"
        "print(*{'pandas', 'torch', 'gluonts', 'transformers'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
