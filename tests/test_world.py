"""Which part of the work this process does: ranges, environment, process group, loader workers."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch.distributed as dist
from torch.utils.data import DataLoader, IterableDataset

from tsnorm.errors import WorldError
from tsnorm.world import World


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.delenv("WORLD_SIZE", raising=False)


@pytest.fixture
def process_group(tmp_path):
    def start():
        dist.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)

    yield start
    if dist.is_initialized():
        dist.destroy_process_group()


@pytest.mark.parametrize(
    ("world", "message"),
    [
        ({"rank": 1}, "World: rank is 1, but must be in 0..0."),
        ({"rank": -1}, "World: rank is -1, but must be in 0..0."),
        ({"rank": 8, "world_size": 8}, "World: rank is 8, but must be in 0..7."),
        ({"world_size": 0}, "World: rank is 0, but must be in 0..-1."),
        ({"worker": 2, "num_workers": 2}, "World: worker is 2, but must be in 0..1."),
        ({"worker": -1, "num_workers": 2}, "World: worker is -1, but must be in 0..1."),
        ({"num_workers": 0}, "World: worker is 0, but"),
    ],
)
def test_ranges(world, message):
    with pytest.raises(WorldError, match=re.escape(message)):
        World(**world)


def test_it_is_a_value_with_names():
    assert World() == World(rank=0, world_size=1, worker=0, num_workers=1)
    assert len({World(), World(rank=0)}) == 1
    with pytest.raises(TypeError, match="positional"):
        World(0, 1)


def test_a_process_alone():
    assert World.current() == World()


def test_the_environment_of_torchrun(monkeypatch):
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "8")
    assert World.current() == World(rank=3, world_size=8)


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"RANK": "3"}, "World: rank is 3, but must be in 0..0."),
        ({"RANK": "8", "WORLD_SIZE": "8"}, "World: rank is 8, but must be in 0..7."),
        ({"RANK": "-1", "WORLD_SIZE": "8"}, "World: rank is -1, but must be in 0..7."),
        ({"RANK": "first"}, "World: RANK in the environment is 'first', but must be a whole number."),
        ({"RANK": ""}, "World: RANK in the environment is '', but must be a whole number."),
        ({"WORLD_SIZE": "8.0"}, "World: WORLD_SIZE in the environment is '8.0', but must be a whole number."),
    ],
)
def test_an_environment_that_makes_no_sense(monkeypatch, environment, message):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(WorldError, match=re.escape(message)):
        World.current()


def test_the_process_group_is_read_at_the_call_and_goes_before_the_environment(monkeypatch, process_group):
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "8")
    assert World.current() == World(rank=3, world_size=8)
    process_group()
    assert World.current() == World(rank=0, world_size=1)
    dist.destroy_process_group()
    assert World.current() == World(rank=3, world_size=8)


class Worlds(IterableDataset):
    """Gives the world that its worker sees."""

    def __iter__(self):
        yield World.current()


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
def test_the_workers_of_a_dataloader(monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    loader = DataLoader(Worlds(), batch_size=None, num_workers=2)
    assert list(loader) == [World(rank=1, world_size=2, worker=k, num_workers=2) for k in (0, 1)]
    assert list(DataLoader(Worlds(), batch_size=None)) == [World(rank=1, world_size=2)]


def test_torch_is_never_imported_for_it():
    code = (
        "import sys; from tsnorm.world import World; print(World.current());"
        " sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    )
    root = Path(__file__).parents[1]
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root)
    assert out.stdout.strip() == "World(rank=0, world_size=1, worker=0, num_workers=1)"
