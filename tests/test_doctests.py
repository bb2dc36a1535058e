"""The examples in the docstrings, of the package as it is installed."""

import doctest
import importlib
import pkgutil

import pytest

import tsnorm

MODULES = [
    module.name for module in pkgutil.walk_packages(tsnorm.__path__, "tsnorm.") if not module.name.endswith("__main__")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


def test_there_are_examples():
    finder = doctest.DocTestFinder(exclude_empty=True)
    examples = [test for name in MODULES for test in finder.find(importlib.import_module(name)) if test.examples]
    assert len(examples) >= 8
