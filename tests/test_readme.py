"""Every Python snippet of the README runs as it stands, from the root of the repository."""

import contextlib
import io
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


@pytest.mark.slow
def test_the_snippets_run_one_after_the_other(monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("RANK", raising=False)
    shown, names = io.StringIO(), {}
    with contextlib.redirect_stdout(shown):
        for block in blocks("python"):
            exec(compile(block, "README.md", "exec"), names)
    assert re.search(r"^loss \d+\.\d+", shown.getvalue())
    assert "num_static_categorical_features" in shown.getvalue()
    assert names["samples"].shape == (8, 100, 18)


def test_the_metadata_of_the_readme_makes_a_schema():
    from tsnorm.schema import StaticSchema

    [block] = blocks("json")
    schema = StaticSchema.from_metadata(json.loads(block))
    assert schema.names == ("region", "area")
    assert schema.categorical[0].vocabulary == ("north", "south", "west")


def test_ci_runs_the_two_commands_of_the_readme():
    for marker, command in (("run", "pip install . && tsnorm train "), ("test", 'pip install ".[test]" && pytest')):
        [block] = re.findall(rf"<!-- {marker} -->\n```bash\n(.*?)```", README, re.DOTALL)
        assert block.startswith(command)
        assert f"readme {marker}" in (ROOT / ".ci/run").read_text()
