"""`import tsnorm` and `tsnorm --help` start at once: the heavy packages come in only where they are used."""

import json
import subprocess
import sys

import pytest

import tsnorm

HEAVY = ["torch", "gluonts", "transformers", "pandas", "pyarrow", "rich"]


def loaded_after(code):
    report = f"import sys, json\n{code}\nprint(json.dumps([m for m in {HEAVY!r} if m in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", report], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    "code",
    [
        "import tsnorm",
        "import tsnorm; tsnorm.StaticSchema.from_counts([3]); tsnorm.Frequency.parse('ME'); tsnorm.World.current()",
        "import runpy, contextlib\nsys.argv = ['tsnorm', '--help']\n"
        "with contextlib.suppress(SystemExit):\n    runpy.run_module('tsnorm', run_name='__main__')",
        "import runpy, contextlib\nsys.argv = ['tsnorm', 'train', '--help']\n"
        "with contextlib.suppress(SystemExit):\n    runpy.run_module('tsnorm', run_name='__main__')",
    ],
)
def test_nothing_heavy_is_loaded(code):
    assert loaded_after(code) == []


def test_scans_load_neither_torch_nor_gluonts_nor_pandas():
    assert set(loaded_after("import tsnorm.store, tsnorm.profile")) <= {"pyarrow"}


def test_every_public_name_is_there_and_no_other():
    assert [name for name in tsnorm.__all__ if getattr(tsnorm, name, None) is None] == []
    assert sorted(tsnorm._HOME) == sorted(tsnorm.__all__)
    with pytest.raises(AttributeError, match="module 'tsnorm' has no attribute 'StaticScheme'"):
        tsnorm.StaticScheme  # noqa: B018


def test_the_public_names_are_these():
    assert sorted(tsnorm.__all__) == [
        "CategoricalFeature",
        "DatasetProfile",
        "EncodeStaticCat",
        "EvaluationLoader",
        "FillStaticCat",
        "FillStaticReal",
        "Frequency",
        "MaskStaticCat",
        "RealFeature",
        "Scaling",
        "StaticSchema",
        "TimeSeriesDataset",
        "TrainingLoader",
        "TsnormError",
        "World",
        "check_batch",
        "check_ranks_agree",
        "complete_config",
        "model_from_config",
        "stack",
        "static_features",
        "test_chain",
        "training_chain",
        "unite",
        "validation_chain",
    ]
