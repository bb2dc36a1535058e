"""Datasets from folders and entries: what is wrong is named with its place, and what is left out is told."""

import json
import os

import numpy as np
import pandas as pd
import pytest
from gluonts.dataset.common import MetaData

from tsnorm.errors import (
    ConfigMismatchError,
    DataError,
    FrequencyError,
    IgnoredFieldWarning,
    MetadataError,
    PlaceholderWarning,
    SchemaError,
    SchemaMismatchError,
    TsnormWarning,
)
from tsnorm.pipeline import EvaluationLoader, TimeSeriesDataset, TrainingLoader, complete_config, unite
from tsnorm.schema import StaticSchema

COLOR = {"name": "color", "cardinality": "3"}


def entry(i, **fields):
    return {"item_id": f"T{i}", "start": "2020-01", "target": [1.0 + i, 2.0, 3.0, 4.0], **fields}


def folder(path, rows, metadata=None, file="data.json"):
    (path / "train").mkdir(parents=True)
    (path / "metadata.json").write_text(json.dumps({"freq": "M"} | (metadata or {})))
    (path / "train" / file).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize(
    ("bad", "metadata", "message"),
    [
        ([3], [COLOR], "'color' is 3, but its cardinality is 3"),
        ([-1], [COLOR], "'color' is -1, but ids start at 0. pandas marks a missing category with -1"),
        ([1.7], [COLOR], "'color' is 1.7, but an id must be a whole number"),
        ([0, 1], [COLOR], "2 values, but the schema declares 1"),
        ([1.7], [], "'column 0' is 1.7, but an id must be a whole number"),
        ([-1], [], "'column 0' is -1, but ids start at 0"),
        ([0, 1], [], "2 values, but the schema declares 1"),
    ],
)
def test_a_misfit_names_folder_file_row_and_item(tmp_path, bad, metadata, message):
    rows = [entry(0, feat_static_cat=[0]), entry(1), entry(2, feat_static_cat=bad)]
    path = folder(tmp_path / "shop", rows, {"feat_static_cat": metadata})
    with pytest.raises(SchemaMismatchError, match="metadata.json: feat_static_cat") as caught:
        TimeSeriesDataset.from_folder(path)
    assert f"First: feat_static_cat of item 'T2' (row 3 of {path}/train/data.json): {message}" in str(caught.value)


def test_metadata_errors_name_the_file(tmp_path):
    for name, metadata, kind, message in (
        ("a", {"freq": None}, FrequencyError, "frequency: None is no string"),
        ("b", {"feat_static_cat": [{"name": "x", "cardinality": "abc"}]}, MetadataError, "cardinality of .* is 'abc'"),
        ("c", {"feat_static_cat": "color"}, MetadataError, "feat_static_cat is 'color', but must be a list"),
    ):
        path = folder(tmp_path / name, [entry(0, feat_static_cat=[0])], metadata)
        with pytest.raises(kind, match=f"{name}/metadata.json: .*{message}"):
            TimeSeriesDataset.from_folder(path)


def test_a_wrong_folder_is_told_with_the_right_one(tmp_path):
    folder(tmp_path / "shop", [entry(0)])
    with pytest.raises(MetadataError, match="nowhere: does not exist, but must be a dataset folder"):
        TimeSeriesDataset.from_folder(tmp_path / "nowhere")
    for near in (tmp_path, tmp_path / "shop/train"):
        with pytest.raises(MetadataError, match=r"is missing.*Did you mean .*shop\?"):
            TimeSeriesDataset.from_folder(near)
    folder(tmp_path / "empty", [])
    with pytest.raises(DataError, match="empty/metadata.json: the dataset has no entries"):
        TimeSeriesDataset.from_folder(tmp_path / "empty")


@pytest.mark.parametrize(
    ("field", "hint"),
    [
        ("feat_static_category", "Did you mean 'feat_static_cat'?"),
        ("static_categorical_features", "Did you mean 'feat_static_cat'?"),
        ("static_real_features", "Did you mean 'feat_static_real'?"),
        ("tags", "nothing reads it."),
    ],
)
def test_a_field_that_nothing_reads_is_told(field, hint):
    with pytest.warns(IgnoredFieldWarning, match=f"field '{field}' of 2 of 3 entries is left out") as caught:
        TimeSeriesDataset.from_entries([entry(0), entry(1, **{field: [1]}), entry(2, **{field: [1]})], freq="M")
    assert str(caught[0].message).endswith(hint)


def test_a_declared_feature_under_its_own_name_is_refused_also_beside_the_list():
    rows = [entry(0, feat_static_cat=[0]), entry(1, color=1)]
    with pytest.raises(SchemaMismatchError, match="'color' is a field of its own in 1 entries"):
        TimeSeriesDataset.from_entries(rows, freq="M", metadata={"feat_static_cat": [COLOR]})


def test_a_declared_feature_that_no_entry_carries_is_told():
    with pytest.warns(PlaceholderWarning, match="feat_static_cat is declared, but none of 1 entries has it"):
        dataset = TimeSeriesDataset.from_entries([entry(0)], freq="M", metadata={"feat_static_cat": [COLOR]})
    assert dataset.schema.names == ("color",)


def test_files_that_are_not_read_are_told_and_a_pipe_is_not_waited_for(tmp_path):
    path = folder(tmp_path / "shop", [entry(0)])
    (path / "train/README.md").write_text("about")
    (path / "train/part2.csv").write_text("a,b")
    os.mkfifo(path / "train/pipe.json")
    (path / "train/loop").symlink_to(path / "train")
    with pytest.warns(TsnormWarning, match=r"train/loop, .*part2.csv, .*pipe.json: not read"):
        dataset = TimeSeriesDataset.from_folder(path)
    assert len(dataset.entries) == 1


def test_an_item_id_of_several_series_is_told():
    with pytest.warns(TsnormWarning, match=r"1 item_id\(s\) stand for several series, such as 'T0' for 2"):
        TimeSeriesDataset.from_entries([entry(0), entry(0), entry(1)], freq="M")


def test_a_period_at_another_frequency_is_refused():
    rows = [entry(0), entry(1) | {"start": pd.Period("2020-03-15", "D")}]
    with pytest.raises(
        DataError, match=r"start of item 'T1' \(row 2\): it is a period at 'D', but the dataset is at 'M'"
    ):
        TimeSeriesDataset.from_entries(rows, freq="M")
    rows[1]["start"] = pd.Period("2020-03", "M")
    assert len(TimeSeriesDataset.from_entries(rows, freq="ME").entries) == 2


def test_unnamed_columns_of_two_datasets_of_one_name_never_share_a_table(tmp_path):
    paths = [folder(tmp_path / place / "data", [entry(0, feat_static_cat=[i])]) for i, place in enumerate("ab")]
    datasets = [TimeSeriesDataset.from_folder(path) for path in paths]
    with pytest.raises(
        DataError, match="2 datasets are named 'data', so that their unnamed static columns would share"
    ):
        unite(datasets)
    named = [TimeSeriesDataset.from_entries([entry(0, feat_static_cat=[0])], freq="M", name=name) for name in "ab"]
    assert unite(named).names == ("a/feat_static_cat_0", "b/feat_static_cat_0")


def test_a_given_schema_must_mean_the_same_columns(tmp_path):
    def load(name, columns, schema=None):
        path = folder(tmp_path / name, [entry(0, feat_static_cat=[0] * len(columns))], {"feat_static_cat": columns})
        return TimeSeriesDataset.from_folder(path, schema=schema)

    kind = {"name": "kind", "cardinality": "3"}
    schema = load("a", [COLOR, kind]).schema
    assert load("same", [COLOR, kind], schema).schema == schema
    with pytest.raises(SchemaMismatchError, match="static columns are kind, color, but the schema says color, kind"):
        load("b", [kind, COLOR], schema)
    words = load("c", [{"name": "color", "vocabulary": ["x", "y"]}]).schema
    with pytest.raises(SchemaMismatchError, match="the vocabulary of 'color' is .*'y', 'x'.*so that ids mean"):
        load("d", [{"name": "color", "vocabulary": ["y", "x"]}], words)


def test_unseen_categories_of_another_split_become_the_reserved_row():
    metadata = {"feat_static_cat": [{"name": "color", "vocabulary": ["red", "blue"]}]}
    train = TimeSeriesDataset.from_entries([entry(0, feat_static_cat=["red"])], freq="M", metadata=metadata)
    test = TimeSeriesDataset.from_entries([entry(1, feat_static_cat=["green"])], freq="M", schema=train.schema)
    config = complete_config(
        "time-series-transformer", schema=train.schema, freq="M", prediction_length=1, context_length=2,
        lags_sequence=[1],
    )  # fmt: skip
    loader = TrainingLoader([test], config=config, global_batch_size=2, num_steps=1)
    assert loader.counts == {"unknown color": 1}
    [batch] = loader
    assert batch["static_categorical_features"].tolist() == [[2], [2]]


def test_series_without_an_observed_value_give_no_window():
    rows = [entry(0), entry(1) | {"target": [None] * 4}]
    dataset = TimeSeriesDataset.from_entries(rows, freq="M")
    config = complete_config("informer", schema=dataset.schema, freq="M", prediction_length=1, lags_sequence=[1])
    loader = TrainingLoader([dataset], config=config, global_batch_size=64, num_steps=1)
    assert loader.skipped == ("T1",)
    assert set(next(iter(loader)).info.item_ids) == {"T0"}


def test_a_dataset_shows_itself_in_one_line():
    dataset = TimeSeriesDataset.from_entries([entry(0, target=np.ones(10_000))], freq="M", name="long")
    assert repr(dataset) == "<TimeSeriesDataset 'long': 1 series at M, statics: none>"
    assert dataset != dataset.profile
    assert len({dataset}) == 1


def test_codes_of_a_database_are_no_ids():
    rows = [entry(0, feat_static_cat=[17]), entry(1, feat_static_cat=[83_610_000])]
    with (
        pytest.warns(TsnormWarning, match="sparse ids: 2 distinct"),
        pytest.raises(SchemaError, match="a table has at most 10,000,000 rows.*recode=True makes a vocabulary"),
    ):
        TimeSeriesDataset.from_entries(rows, freq="M")
    dataset = TimeSeriesDataset.from_entries(rows, freq="M", recode=True)
    assert dataset.schema.categorical[0].vocabulary == (17, 83_610_000)


def test_a_config_and_a_loader_must_have_one_schema():
    """Without schema= a loader would make ids of its own: other vocabularies, other columns, in silence."""
    colors = [["blue", "green", "red"][i % 3] for i in range(6)]
    whole = TimeSeriesDataset.from_entries(
        [entry(i, feat_static_cat=[c]) for i, c in enumerate(colors)], freq="M", name="d"
    )
    part = TimeSeriesDataset.from_entries([entry(1, feat_static_cat=["green"])], freq="M", name="d")
    config = complete_config(
        "informer", schema=whole.schema, freq="M", prediction_length=1, context_length=2, lags_sequence=[1]
    )
    settings = {"config": config, "global_batch_size": 1, "num_steps": 1, "unknown_share": 0.0}
    with pytest.raises(
        ConfigMismatchError, match=r"config was completed for schema \w+, but the loader has \w+: ids or"
    ):
        TrainingLoader([part], **settings)
    [batch] = TrainingLoader([part], schema=whole.schema, **settings)
    assert batch["static_categorical_features"].tolist() == [[1]]


def test_a_missing_value_is_an_error_in_both_datasets_or_in_none():
    strict, lenient = (
        TimeSeriesDataset.from_entries(
            [entry(0, feat_static_cat=[0])], freq="M", name=name, missing_cat=policy,
            metadata={"feat_static_cat": [COLOR]},
        )
        for name, policy in (("a", "error"), ("b", "reserve"))
    )  # fmt: skip
    with pytest.raises(SchemaMismatchError, match="'color': a missing value is an error in a, but filled in b"):
        unite([strict, lenient])
    assert unite([strict]).categorical[0].fill_id is None


def test_policies_beside_a_schema_are_refused():
    with pytest.raises(ConfigMismatchError, match="missing_cat have no effect beside schema="):
        TimeSeriesDataset.from_entries([entry(0)], freq="M", schema=StaticSchema(), missing_cat="error")


def test_gluonts_metadata_is_taken_as_it_is():
    metadata = MetaData(freq="M", feat_static_cat=[{"name": "color", "cardinality": "3"}])
    dataset = TimeSeriesDataset.from_entries([entry(0, feat_static_cat=[0])], freq="M", metadata=metadata)
    assert dataset.schema.names == ("color",)


def test_an_unobserved_series_is_not_forecast_from_its_start():
    rows = [entry(0) | {"target": [None] * 4}, entry(1)]
    dataset = TimeSeriesDataset.from_entries(rows, freq="M")
    config = complete_config("informer", schema=dataset.schema, freq="M", prediction_length=1, lags_sequence=[1])
    loader = EvaluationLoader([dataset], config=config, global_batch_size=1, mode="test", min_past=0)
    assert loader.skipped == ("T0",)
    assert [batch.info.split_points.tolist() for batch in loader] == [[4]]
