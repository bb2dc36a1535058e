"""Sums are exact: the same bits in any order and grouping, and equal to rational arithmetic."""

import math
from decimal import Context
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsnorm.profile import ExactMoments

finite = st.floats(allow_nan=False, allow_infinity=False)
values = st.lists(finite, max_size=20)


def moments(numbers):
    return ExactMoments.of(np.array(numbers, dtype=np.float64))


@given(values)
def test_sums_are_those_of_rational_arithmetic(numbers):
    seen = moments(numbers)
    assert Fraction(seen.total, 2**1074) == sum(map(Fraction, numbers))
    assert Fraction(seen.squares, 2**2148) == sum(Fraction(x) ** 2 for x in numbers)


@given(values.filter(bool))
def test_mean_and_std_are_rounded_once(numbers):
    exact = [Fraction(x) for x in numbers]
    mean = sum(exact) / len(exact)
    variance = sum((x - mean) ** 2 for x in exact) / len(exact)
    precise = Context(prec=60, Emin=-999_999, Emax=999_999)
    root = precise.sqrt(precise.divide(variance.numerator, variance.denominator))
    assert moments(numbers).mean == float(mean)
    assert abs(moments(numbers).std - float(root)) <= math.ulp(float(root))


@given(values, st.randoms(use_true_random=False), st.integers(0, 20))
def test_any_order_and_grouping_gives_the_same(numbers, random, cut):
    shuffled = random.sample(numbers, len(numbers))
    assert moments(shuffled[cut:]) | moments(shuffled[:cut]) == moments(numbers)
    assert ExactMoments.from_wire(moments(numbers).to_wire()) == moments(numbers)


@pytest.mark.parametrize(
    ("numbers", "mean", "std"),
    [
        ([], None, None),
        ([0.1] * 10, 0.1, 0.0),
        ([1e300, 1.0, -1e300], 1 / 3, 1e300 * math.sqrt(2 / 3)),
        ([1.7976931348623157e308] * 3, 1.7976931348623157e308, 0.0),
        ([5e-324, 5e-324], 5e-324, 0.0),
        ([-1.0, 1.0], 0.0, 1.0),
    ],
)
def test_where_floats_fail(numbers, mean, std):
    assert moments(numbers).mean == mean
    assert moments(numbers).std == (std if not std else pytest.approx(std, rel=1e-15))


def test_many_values_over_several_blocks():
    numbers = np.random.default_rng(7).normal(size=50_000) * 10.0 ** np.random.default_rng(8).integers(-9, 9, 50_000)
    assert moments(numbers).mean == math.fsum(numbers) / 50_000
    assert moments(numbers) == moments(numbers[:33_333]) | moments(numbers[33_333:])
    largest = np.full(300_001, 2.0 - 2.0**-52)
    assert moments(largest).mean == 2.0 - 2.0**-52
    assert moments(largest).std == 0.0
