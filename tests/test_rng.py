"""Counter-based random numbers: frozen answers, no order, no state, coarse uniformity."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import uniform_of

from tsnorm.rng import philox, text_key, uniform_at

whole = st.integers(-(2**70), 2**70)


def test_known_answers_are_frozen():
    """A release that changes these changes every plan: masks, split points, order."""
    assert uniform_at(0, 0) == 0.8833108082136426  # the first output of splitmix64 seeded with 0, 0xE220A8397B1DCDAF
    assert uniform_at(1, 2, 3) == 0.025410221573431424
    assert uniform_at(-1, -1) == 0.4016657329610429
    assert uniform_at(42, 7, np.arange(3, dtype=np.uint64)).tolist() == [
        0.8869125628706324,
        0.21970959749060204,
        0.3085089716391579,
    ]
    assert [text_key(""), text_key("T0042"), text_key("ä")] == [
        13020603013274838756,
        6459747670149376129,
        4152366542966443504,
    ]
    assert philox(1, 2, 3).integers(2**63, size=3).tolist() == [
        2413967852054771345,
        6216821930193095641,
        6342651008434885240,
    ]


@settings(max_examples=100, deadline=None)
@given(whole, st.lists(whole, min_size=1, max_size=4))
def test_it_is_what_the_oracle_says(seed, counters):
    assert uniform_at(seed, *counters) == uniform_of(seed, *counters)


@settings(max_examples=100, deadline=None)
@given(whole, st.lists(whole, max_size=3))
def test_it_is_a_function_into_the_unit_interval(seed, counters):
    value = uniform_at(seed, *counters)
    assert value.dtype == np.float64
    assert value.shape == ()
    assert 0.0 <= value < 1.0
    assert uniform_at(seed, *counters) == value
    assert uniform_at(seed + 2**64, *(c - 2**64 for c in counters)) == value


@settings(max_examples=50, deadline=None)
@given(whole, st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=5), st.permutations(range(5)))
def test_each_place_has_its_own_number_whatever_stands_beside_it(seed, counters, order):
    together = uniform_at(seed, np.array(counters, dtype=np.uint64), 3)
    assert together.tolist() == [uniform_at(seed, counter, 3).item() for counter in counters]
    shuffled = [counters[i] for i in order if i < len(counters)]
    again = uniform_at(seed, np.array(shuffled, dtype=np.uint64), 3)
    assert dict(zip(shuffled, again.tolist(), strict=True)) == dict(zip(counters, together.tolist(), strict=True))


def test_counters_broadcast():
    rows, columns = np.arange(3, dtype=np.uint64)[:, None], np.arange(4, dtype=np.uint64)
    grid = uniform_at(5, rows, columns)
    assert grid.shape == (3, 4)
    assert grid[2, 1] == uniform_at(5, 2, 1)
    assert uniform_at(5, np.empty(0, dtype=np.uint64)).shape == (0,)


def test_the_order_of_counters_matters():
    assert uniform_at(0, 1, 2) != uniform_at(0, 2, 1)
    assert uniform_at(1, 2) != uniform_at(2, 1)
    assert uniform_at(1) != uniform_at(1, 0)


def test_numpy_integers_are_integers():
    assert uniform_at(np.int64(-3), np.int64(-5)) == uniform_at(-3, -5)
    assert uniform_at(np.uint8(3), np.array([-5])).tolist() == [uniform_at(3, -5).item()]


def test_a_seed_is_never_rounded():
    for draw in (philox, lambda seed: uniform_at(seed, 0)):
        with pytest.raises(TypeError, match="cannot be interpreted as an integer"):
            draw(1.5)


def test_the_global_state_is_neither_read_nor_moved():
    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    first = uniform_at(1, 2), philox(1, 2).random()
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002
    np.random.seed(1)  # noqa: NPY002
    assert (uniform_at(1, 2), philox(1, 2).random()) == first


@pytest.mark.parametrize(
    "draw",
    [
        lambda n: uniform_at(0, np.arange(n, dtype=np.uint64)),
        lambda n: uniform_at(7, 1, np.arange(n, dtype=np.uint64), 2),
        lambda n: uniform_at(7, np.arange(n, dtype=np.uint64) << np.uint64(32)),
        lambda n: np.array([uniform_at(seed, 1).item() for seed in range(n)]),
        lambda n: np.array([uniform_at(0, text_key(f"T{i}")).item() for i in range(n)]),
    ],
    ids=["counter", "middle counter", "high bits", "seed", "text"],
)
def test_it_is_uniform(draw):
    n, bins = 20_000, 20
    values = draw(n)
    counts = np.histogram(values, bins=bins, range=(0.0, 1.0))[0]
    chi_square = ((counts - n / bins) ** 2 / (n / bins)).sum()
    assert chi_square < 43.8  # 19 degrees of freedom, one in a thousand
    assert abs(np.corrcoef(values[1:], values[:-1])[0, 1]) < 4 / np.sqrt(n)


def test_streams_of_distinct_keys_differ():
    keys = [(), (0,), (0, 0), (1,), (0, 1), (1, 0), (1, 0, 0), (11,), (1, 1), (-1,), (2**32,), (2**64, 1), (1, 2, 3)]
    first = [philox(*key).integers(2**63) for key in keys]
    assert len(set(first)) == len(keys)


def test_keys_of_numpy_integers_are_the_same():
    assert philox(np.int64(1), np.uint8(2)).random() == philox(1, 2).random()


def test_text_keys_are_the_same_in_every_process():
    code = "from tsnorm.rng import text_key; print(text_key('T0042'))"
    root = Path(__file__).parents[1]
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root)
    assert int(out.stdout) == text_key("T0042")


def test_any_text_has_a_key():
    texts = ["", " ", "a", "A", "ä", "a\u0308", "\0", "\ud800", "x" * 10_000]
    assert len({text_key(text) for text in texts}) == len(texts)
    assert all(0 <= text_key(text) < 2**64 for text in texts)
