"""Frequencies: every spelling meets one noun, and GluonTS agrees with what is derived from it."""

from __future__ import annotations

import subprocess
import sys
import warnings
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsnorm.errors import DataError, FrequencyError
from tsnorm.freq import SEASONALITIES, Frequency, parse_start

MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
DAYS = ["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"]
BASES = tuple(SEASONALITIES)


@st.composite
def frequencies(draw: st.DrawFn) -> Frequency:
    base = draw(st.sampled_from(BASES))
    anchors = {"Y": MONTHS, "Q": MONTHS, "W": DAYS}.get(base, [])
    return Frequency(base, draw(st.integers(1, 400)), draw(st.sampled_from([None, *anchors])))


@pytest.mark.parametrize(
    ("text", "canonical", "alias"),
    [
        ("M", "M", "ME"),
        ("ME", "M", "ME"),
        ("MS", "M", "ME"),
        ("3M", "3M", "3ME"),
        ("12MS", "12M", "12ME"),
        ("Q", "Q", "QE-DEC"),
        ("QE", "Q", "QE-DEC"),
        ("Q-DEC", "Q", "QE-DEC"),
        ("QS", "Q", "QE-DEC"),
        ("QS-JAN", "Q", "QE-DEC"),
        ("QS-FEB", "Q-JAN", "QE-JAN"),
        ("QE-MAR", "Q-MAR", "QE-MAR"),
        ("2Q-JAN", "2Q-JAN", "2QE-JAN"),
        ("A", "Y", "YE-DEC"),
        ("Y", "Y", "YE-DEC"),
        ("YE", "Y", "YE-DEC"),
        ("AS", "Y", "YE-DEC"),
        ("YS", "Y", "YE-DEC"),
        ("A-DEC", "Y", "YE-DEC"),
        ("A-MAR", "Y-MAR", "YE-MAR"),
        ("YS-APR", "Y-MAR", "YE-MAR"),
        ("AS-JUL", "Y-JUN", "YE-JUN"),
        ("W", "W", "W-SUN"),
        ("W-SUN", "W", "W-SUN"),
        ("2W-MON", "2W-MON", "2W-MON"),
        ("D", "D", "D"),
        ("1D", "D", "D"),
        ("B", "B", "B"),
        ("H", "h", "h"),
        ("1H", "h", "h"),
        ("h", "h", "h"),
        ("15T", "15min", "15min"),
        ("10min", "10min", "10min"),
        (" 10 min ", "10min", "10min"),
        ("S", "s", "s"),
        ("30s", "30s", "30s"),
    ],
)
def test_spellings(text: str, canonical: str, alias: str) -> None:
    freq = Frequency.parse(text)
    assert str(freq) == freq.canonical == freq.period_freq == canonical
    assert freq.offset_alias == alias
    assert Frequency.parse(canonical) == freq


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ms", "frequency 'ms': 'ms' is finer than a second and has no lags or calendar features, but .*'s'"),
        ("10us", "no lags or calendar features"),
        ("ns", "no lags or calendar features"),
        ("L", "no lags or calendar features"),
        ("BM", "counts business months, .* Use 'M'"),
        ("BME", "counts business months, .* Use 'M'"),
        ("BQS-JAN", "counts business quarters, .* Use 'Q'"),
        ("BYE-DEC", "counts business years, .* Use 'Y'"),
        ("C", "Use 'B' or 'D'"),
        ("bh", "business hours"),
        ("SME-15", "unequal length"),
        ("WOM-1MON", "one day of a month"),
        ("m", "may be a month or a minute.* Write 'M' or 'min'"),
        ("0D", "multiple is '0', but must be a whole number from 1"),
        ("-2D", "multiple is '-2', but must be a whole number from 1"),
        ("+2D", r"multiple is '\+2', but must be a whole number from 1"),
        ("1.5h", "multiple is '1.5', .*'90min'"),
        ("99999999999D", "multiple is '99999999999'"),
        ("1D12h", "frequency '1D12h': is compound, .* Write it in one unit"),
        ("1D 12h", "is compound"),
        ("", "frequency '': is empty"),
        ("  ", "is empty"),
        ("fortnight", "frequency 'fortnight': 'fortnight' is not known, but expected Y, Q, M, W"),
        ("d", "'d' is not known.* Did you mean 'D'"),
        ("MIN", "Did you mean 'min'"),
        ("<DateOffset: months=1>", "is not known"),
        ("W-FOO", "anchor is 'FOO', but 'W' must be one of MON, .*SUN"),
        ("Q-MON", "anchor is 'MON', but 'Q' must be one of JAN"),
        ("QS-MON", "frequency 'QS-MON': anchor is 'MON', but must be one of JAN"),
        ("M-DEC", "anchor is 'DEC', but 'M' takes none"),
        (None, "None is no string, .* Write it like 'M'"),
        (1, "1 is no string"),
    ],
)
def test_refused(text: object, message: str) -> None:
    with pytest.raises(FrequencyError, match=message):
        Frequency.parse(text)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (("H",), "base is 'H'"),
        (("D", 0), "multiple is 0"),
        (("D", True), "multiple is True"),
        (("D", 1.0), "multiple is 1.0"),
        (("D", 1, "MON"), "anchor is 'MON'"),
    ],
)
def test_fields_are_checked(fields: tuple[object, ...], message: str) -> None:
    with pytest.raises(FrequencyError, match=message):
        Frequency(*fields)  # type: ignore[arg-type]


@given(frequencies())
def test_canonical_is_stable(freq: Frequency) -> None:
    assert Frequency.parse(str(freq)) == freq
    assert Frequency.parse(freq.offset_alias) == freq
    assert Frequency.parse(pd.tseries.frequencies.to_offset(freq.offset_alias)) == freq
    if freq.base != "B":
        assert Frequency.parse(pd.Period("2022-03-17", freq=freq.period_freq)) == freq


@pytest.mark.parametrize("month", MONTHS)
@pytest.mark.parametrize("base", ["Q", "Y"])
def test_start_anchors_cut_the_year_at_the_same_months(base: str, month: str) -> None:
    freq = Frequency.parse(f"{base}S-{month}")
    starts = pd.date_range("2020-01-01", "2023-01-01", freq=f"{base}S-{month}")
    assert [pd.Period(start, freq=freq.period_freq).start_time for start in starts] == list(starts)


@given(frequencies())
def test_gluonts_agrees(freq: Frequency) -> None:
    from gluonts.time_feature import get_lags_for_frequency, get_seasonality

    assert len(freq.time_features()) == freq.num_time_features(age=False) == freq.num_time_features() - 1
    if freq.base != "Q" or freq.multiple == 1:
        assert freq.lags() == get_lags_for_frequency(freq.offset_alias)
    ours = {alias: SEASONALITIES[base] for base in BASES for alias in (base, f"{base}E")}
    assert freq.seasonality == get_seasonality(freq.offset_alias, ours)
    if freq.base not in ("D", "W"):
        assert freq.seasonality == get_seasonality(freq.offset_alias)


@given(frequencies(), st.integers(1, 2000))
def test_lags_stay_below_upper(freq: Frequency, upper: int) -> None:
    lags = freq.lags(upper)
    assert lags
    assert lags == sorted(set(lags))
    assert 1 <= lags[0] <= lags[-1] <= upper


def test_lags_and_seasons_of_a_few() -> None:
    assert Frequency.parse("M").lags(upper=13) == [1, 2, 3, 4, 5, 6, 7, 11, 12, 13]
    assert Frequency.parse("2Q").lags() == Frequency.parse("6M").lags()
    assert Frequency.parse("M").lags(upper=3) == [1, 2, 3]
    with pytest.raises(FrequencyError, match="lags of M: upper is 0, but must be at least 1"):
        Frequency.parse("M").lags(upper=0)
    seasons = {text: Frequency.parse(text).seasonality for text in ("3M", "2h", "7D", "5D", "10min", "W", "D")}
    assert seasons == {"3M": 4, "2h": 12, "7D": 1, "5D": 1, "10min": 144, "W": 52, "D": 7}


@pytest.mark.parametrize(
    ("value", "freq", "period"),
    [
        ("2022-03", "M", "2022-03"),
        ("2022-03-01", "M", "2022-03"),
        ("2022-03-17", "M", "2022-03"),
        ("2022-03-01 00:00:00", "h", "2022-03-01 00:00"),
        ("2022-03-01T07:00:00.000", "h", "2022-03-01 07:00"),
        ("2022-03-01T07", "h", "2022-03-01 07:00"),
        ("2022-03-01 00:07", "10min", "2022-03-01 00:07"),
        ("1750", "Y", "1750"),
        ("1600-02-29", "D", "1600-02-29"),
        ("2500-06", "2Q-JAN", "2501Q2"),
        ("2022-03-17", "W-MON", "2022-03-15/2022-03-21"),
        ("2022-03-18", "B", "2022-03-18"),
        (date(2022, 3, 17), "M", "2022-03"),
        (datetime(2022, 3, 17, 5, 6, 7, 8), "s", "2022-03-17 05:06:07"),
        (np.datetime64("2022-03"), "M", "2022-03"),
        (np.datetime64("1600"), "Y", "1600"),
        (np.datetime64("2022-03-17T05:06:07.123456789"), "min", "2022-03-17 05:06"),
        (pd.Timestamp("2022-03-17 05:00:00.000000001"), "h", "2022-03-17 05:00"),
        (pd.Period("2022-03", "M"), "M", "2022-03"),
        (pd.Period("2022-03-01", "W-SUN"), "W", "2022-02-28/2022-03-06"),
        (pd.Period("2500Q1", "Q-JAN"), "Q-JAN", "2500Q1"),
        (np.str_("2022-03"), "M", "2022-03"),
    ],
)
def test_starts(value: object, freq: str, period: str) -> None:
    start = parse_start(value, Frequency.parse(freq))
    assert isinstance(start, pd.Period)
    assert str(start) == period
    assert Frequency.parse(start) == Frequency.parse(freq)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "^None: start is missing, but every series needs one. Give an ISO date"),
        (pd.NaT, "^NaT: start is missing"),
        (pd.NA, "^<NA>: start is missing"),
        (float("nan"), "^nan: start is missing"),
        (np.float32("nan"), "start is missing"),
        (np.datetime64("NaT"), "start is missing"),
        (np.datetime64(10**6, "Y"), "outside the years 1 to 9999"),
        (17, "^17: start is an integer; did you pass a row number?"),
        (np.int64(17), "start is an integer; did you pass a row number?"),
        (17.5, "^17.5: start is a float, but a date is expected"),
        (True, "^True: start is a bool"),
        (np.bool_(True), "start is a bool"),
        (["2022-03"], r"^\['2022-03'\]: start is a list"),
        (timedelta(1), "start is a timedelta"),
        ("", "^'': start is empty"),
        ("03/04/2021", "^'03/04/2021': start is not an ISO date .*Give an ISO date such as '2022-03-17'"),
        ("13/04/2021", "start is not an ISO date"),
        ("20220317", "start is not an ISO date"),
        ("2022-3-1", "start is not an ISO date"),
        ("2022-13-01", "start is no date of the calendar"),
        ("2023-02-29", "start is no date of the calendar"),
        ("0000-01-01", "start is no date of the calendar"),
        ("2022-03-27T01:30:00+02:00", "start has a time zone; convert to one wall clock first"),
        ("2022-03-27T01:30:00Z", "start has a time zone; convert to one wall clock first"),
        ("2022-03-27 01:30 Europe/Berlin", "start has a time zone; convert to one wall clock first"),
        (
            datetime(2022, 3, 27, tzinfo=UTC),
            "start has a time zone; convert to one wall clock first",
        ),
        (pd.Timestamp("2022-03-27", tz="Europe/Berlin"), "has a time zone; convert to one wall clock first"),
        (pd.Period("2022-03-17", "D"), "start is a period at 'D', but the dataset is at 'M'. .*asfreq"),
        (pd.Period("2022-03", "3M"), "start is a period at '3M', but the dataset is at 'M'"),
        (pd.Period("2022-03", "ms"), "start is a period at 'ms', but the dataset is at 'M'"),
    ],
)
def test_bad_starts(value: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        parse_start(value, Frequency("M"))


@pytest.mark.parametrize(("value", "day"), [("2022-03-19", "Saturday"), (date(2022, 3, 20), "Sunday")])
def test_weekends_are_off_the_business_calendar(value: object, day: str) -> None:
    with pytest.raises(DataError, match=f"start is a {day}, off the calendar of 'B' .* or use 'D'"):
        parse_start(value, Frequency("B"))


@given(st.datetimes(datetime(1600, 1, 1), datetime(2400, 1, 1)), frequencies())
def test_starts_are_what_pandas_makes_of_the_same_text(moment: datetime, freq: Frequency) -> None:
    if freq.base == "B" and moment.weekday() > 4:
        moment -= timedelta(2)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Period with BDay", FutureWarning)
        expected = pd.Period(moment.isoformat(), freq=freq.period_freq)
    for value in (moment, moment.isoformat(), str(moment), np.datetime64(moment), expected):
        assert parse_start(value, freq) == expected


def test_nothing_heavy_is_imported() -> None:
    code = (
        "import sys; from tsnorm.freq import Frequency as F; f = F.parse('15T'); "
        "f.offset_alias, f.seasonality, f.num_time_features(); "
        "sys.exit(bool({'numpy', 'pandas', 'gluonts', 'torch'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
