"""Each test leaves the process as it found it: a leak would show as a failure of another test, in another order."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

OF_LIBRARIES = ("PYTEST_CURRENT_TEST", "TORCHINDUCTOR_", "KMP_", "TRITON_", "TF_", "CUDA_")
"""Variables that pytest and imports set for the whole process."""


def _process_state() -> dict[str, Any]:
    torch = sys.modules.get("torch")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(OF_LIBRARIES)}
    state: dict[str, Any] = {"current folder": str(Path.cwd()), "environment": environment}
    if torch is not None:
        state["default dtype"] = torch.get_default_dtype()
        state["process group"] = torch.distributed.is_available() and torch.distributed.is_initialized()
        distributions = sys.modules.get("torch.distributions")
        if distributions is not None:
            state["argument checks of distributions"] = distributions.Distribution._validate_args
    return state


@pytest.fixture(autouse=True)
def leaves_no_trace(request: pytest.FixtureRequest) -> Iterator[None]:
    before = _process_state()
    yield
    after = _process_state()
    changed = {name: (before[name], after[name]) for name in before if after.get(name) != before[name]}
    if "environment" in changed:
        old, new = changed["environment"]
        changed["environment"] = {
            key: (old.get(key), new.get(key)) for key in {*old, *new} if old.get(key) != new.get(key)
        }
    if changed:
        pytest.fail(f"{request.node.nodeid} changed the process for the tests after it: {changed}")
