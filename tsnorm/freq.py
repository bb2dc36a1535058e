"""The frequency of a dataset: one noun for every spelling, and what a model derives from it."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from datetime import date, datetime
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from tsnorm.errors import DataError, FrequencyError

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
_ANCHORS = {"Y": _MONTHS, "Q": _MONTHS, "W": _DAYS}  # the last of each is the default
_OFFSET_NAMES = {"Y": "YE", "Q": "QE", "M": "ME"}

_NUM_TIME_FEATURES = {"Y": 0, "Q": 1, "M": 1, "W": 2, "D": 3, "B": 3, "h": 4, "min": 5, "s": 6}
SEASONALITIES = {"Y": 1, "Q": 4, "M": 12, "W": 52, "D": 7, "B": 5, "h": 24, "min": 1440, "s": 3600}
"""Steps of one season by base; as GluonTS, but a week for ``D`` and a year for ``W``, where it says 1."""

_OTHER_SPELLINGS = {"MS": "M", "QS": "Q", "YS": "Y", "A": "Y", "AS": "Y", "H": "h", "T": "min", "S": "s"}
_SPELLINGS = {
    **{base: base for base in _NUM_TIME_FEATURES},
    **{offset: base for base, offset in _OFFSET_NAMES.items()},
    **_OTHER_SPELLINGS,
}
_REFUSED = {
    name: (seen, way_out)
    for names, seen, way_out in (
        ("ms us ns L U N", "is finer than a second and has no lags or calendar features", "Resample to 's'."),
        ("BM BME BMS CBM CBME CBMS", "counts business months", "Use 'M', which holds the same months."),
        ("BQ BQE BQS", "counts business quarters", "Use 'Q', which holds the same quarters."),
        ("BA BAS BY BYE BYS", "counts business years", "Use 'Y', which holds the same years."),
        ("C", "counts days of a calendar that the name does not hold", "Use 'B' or 'D'."),
        ("bh BH cbh CBH", "counts business hours", "Use 'h', with NaN when closed."),
        ("SM SME SMS", "has steps of unequal length", "Resample to 'D' or 'M'."),
        ("WOM LWOM", "names one day of a month", "Use 'M'."),
        ("RE REQ", "is a 52-53-week year or its quarter", "Use 'W', 'Q' or 'Y'."),
        ("m", "may be a month or a minute", "Write 'M' or 'min'."),
    )
    for name in names.split()
}
_FORM = re.compile(r"(?P<sign>[+-]?)(?P<multiple>[0-9.]*) ?(?P<name>[A-Za-z]+)(?:-(?P<anchor>[A-Za-z0-9]+))?")
_COMPOUND = re.compile(r"(?:[0-9]+ ?[A-Za-z]+ ?){2,}")
_EXPECTED = "expected Y, Q, M, W, D, B, h, min or s, with a whole multiple in front if not 1"


@dataclass(frozen=True)
class Frequency:
    """Length of one step of every series of a dataset.

    GluonTS, pandas periods and pandas offsets spell the same step differently, and some spellings are refused
    or warned about in one place and needed in another. This is the one noun; each place gets its spelling.
    Equal steps compare equal: ``W-SUN`` is ``W``, ``Q-DEC`` is ``Q``, ``QS-FEB`` is ``Q-JAN``. Quarters keep
    their anchor, since it decides which fiscal year a quarter belongs to.

    Parameters
    ----------
    base
        One of ``Y Q M W D B h min s``, as pandas periods spell it.
    multiple
        Number of base steps in one step, at least 1.
    anchor
        Weekday on which a ``W`` ends, or month in which a ``Q`` or ``Y`` ends; None for Sunday or December.

    Raises
    ------
    FrequencyError
        A field is outside its range.

    Examples
    --------
    >>> Frequency.parse("15T"), str(Frequency.parse("QS-FEB"))
    (Frequency(base='min', multiple=15, anchor=None), 'Q-JAN')
    """

    base: str
    multiple: int = 1
    anchor: str | None = None

    def __post_init__(self) -> None:
        if self.base not in _NUM_TIME_FEATURES:
            raise FrequencyError(f"frequency: base is {self.base!r}, but {_EXPECTED}. Use Frequency.parse.")
        if type(self.multiple) is not int or self.multiple < 1:
            raise FrequencyError(
                f"frequency: multiple is {self.multiple!r}, but must be a whole number from 1. Write '2h' or 'h'."
            )
        anchors = _ANCHORS.get(self.base, ())
        if self.anchor is None:
            return
        if self.anchor not in anchors:
            expected = f"must be one of {', '.join(anchors)}" if anchors else "takes none"
            raise FrequencyError(
                f"frequency: anchor is {self.anchor!r}, but {self.base!r} {expected}. Correct it or leave it out."
            )
        if self.anchor == anchors[-1]:
            object.__setattr__(self, "anchor", None)

    @classmethod
    def parse(cls, text: Any) -> Frequency:
        """Read any spelling: ``ME``, ``15T``, ``2W-MON``, ``QS-FEB``, or a pandas offset with a ``freqstr``.

        Raises
        ------
        FrequencyError
            Not a frequency, or one for which there are no lags or calendar features.
        """
        text = getattr(text, "freqstr", text)
        if not isinstance(text, str):
            raise FrequencyError(f"frequency: {text!r} is no string, but {_EXPECTED}. Write it like 'M' or '10min'.")
        where, text = f"frequency {text!r}", text.strip()
        form = _FORM.fullmatch(text)
        if form is None:
            what = "is compound" if _COMPOUND.fullmatch(text) else "is not known" if text else "is empty"
            raise FrequencyError(f"{where}: {what}, but {_EXPECTED}. Write it in one unit, like '36h'.")
        name, multiple, anchor = form["name"], form["multiple"] or "1", form["anchor"]
        if name in _REFUSED:
            seen, way_out = _REFUSED[name]
            raise FrequencyError(f"{where}: {name!r} {seen}, but {_EXPECTED}. {way_out}")
        if name not in _SPELLINGS:
            near = next((s for s in _SPELLINGS if s.lower() == name.lower()), None)
            hint = f"Did you mean {near!r}?" if near else "Write it like 'M' or '10min'."
            raise FrequencyError(f"{where}: {name!r} is not known, but {_EXPECTED}. {hint}")
        if form["sign"] or not multiple.isdigit() or len(multiple) > 9 or int(multiple) == 0:
            raise FrequencyError(
                f"{where}: multiple is {form['sign'] + multiple!r}, but must be a whole number from 1. "
                f"Write it in one unit without a sign, like '90min'."
            )
        base = _SPELLINGS[name]
        if name in ("QS", "YS", "AS"):  # a period that starts with a month ends with the one before it
            if (anchor or "JAN") not in _MONTHS:
                raise FrequencyError(
                    f"{where}: anchor is {anchor!r}, but must be one of {', '.join(_MONTHS)}. Correct it."
                )
            anchor = _MONTHS[_MONTHS.index(anchor or "JAN") - 1]
        return cls(base, int(multiple), anchor)

    def __str__(self) -> str:
        return self.canonical

    @property
    def canonical(self) -> str:
        """The one stored form, in period spelling: ``M``, ``10min``, ``W-MON``, ``2Q-JAN``."""
        return self._spell(self.base, self.anchor)

    @property
    def period_freq(self) -> str:
        """What ``pandas.Period(..., freq=...)`` and GluonTS datasets take."""
        return self.canonical

    @property
    def offset_alias(self) -> str:
        """What GluonTS's time-feature and lag functions take without a warning: ``ME``, ``QE-DEC``, ``h``."""
        anchor = self.anchor or (_ANCHORS[self.base][-1] if self.base in _ANCHORS else None)
        return self._spell(_OFFSET_NAMES.get(self.base, self.base), anchor)

    def _spell(self, name: str, anchor: str | None) -> str:
        return f"{self.multiple if self.multiple > 1 else ''}{name}{f'-{anchor}' if anchor else ''}"

    @property
    def seasonality(self) -> int:
        """Steps of one season (:data:`SEASONALITIES`); 1 if the multiple does not divide it, as GluonTS."""
        season, remainder = divmod(SEASONALITIES[self.base], self.multiple)
        return 1 if remainder else season

    def num_time_features(self, age: bool = True) -> int:
        """Length of :meth:`time_features`, plus one for GluonTS's age feature. Imports nothing."""
        return _NUM_TIME_FEATURES[self.base] + age

    def time_features(self) -> list[Callable[[pd.PeriodIndex], Any]]:
        """GluonTS's calendar features for this frequency, without age; none for years."""
        from gluonts.time_feature import time_features_from_frequency_str

        return list(time_features_from_frequency_str(self.offset_alias))

    def lags(self, upper: int = 1200) -> list[int]:
        """GluonTS's lags for this frequency, in steps, ascending and at most ``upper``.

        Several quarters are counted in months, since GluonTS refuses them.

        Raises
        ------
        FrequencyError
            ``upper`` is below 1.
        """
        from gluonts.time_feature import get_lags_for_frequency

        if upper < 1:
            raise FrequencyError(f"lags of {self}: upper is {upper!r}, but must be at least 1. Raise it.")
        many_quarters = self.base == "Q" and self.multiple > 1
        alias = f"{3 * self.multiple}ME" if many_quarters else self.offset_alias
        return [lag for lag in get_lags_for_frequency(alias, lag_ub=upper) if lag <= upper]


_ISO = re.compile(
    r"(?P<year>[0-9]{4})(?:-(?P<month>[0-9]{2})(?:-(?P<day>[0-9]{2})"
    r"(?:[ T](?P<hour>[0-9]{2})(?::(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:\.[0-9]+)?)?)?"
    r"(?P<zone> ?(?:[Zz]|[+-][0-9]{2}(?::?[0-9]{2})?|[A-Za-z]+(?:/[A-Za-z_/]+)?))?)?)?)?"
)
_PARTS = (("year", 1), ("month", 1), ("day", 1), ("hour", 0), ("minute", 0), ("second", 0))
_WAY_OUT = "Give an ISO date such as '2022-03-17' or '2022-03-17 14:30:00'."
_ZONE = "has a time zone; convert to one wall clock first"


def parse_start(value: Any, freq: Frequency) -> pd.Period:
    """Read the start of a series as the period in which its first step lies.

    Detail below the period is dropped as in GluonTS: 2022-03-17 at ``M`` is March 2022. Years 1 to 9999 work.

    Parameters
    ----------
    value
        ISO string, ``date``, ``datetime``, ``numpy.datetime64``, ``pandas.Timestamp``, or ``pandas.Period``
        at this frequency.
    freq
        Frequency of the dataset.

    Raises
    ------
    DataError
        Not a date, ambiguous, at a time zone, at another frequency, or off the business days. The message
        starts with the value: put the place in front.

    Examples
    --------
    >>> parse_start("1750", Frequency("Y"))
    Period('1750', 'Y-DEC')
    """
    import pandas as pd

    if isinstance(value, pd.Period):
        if value.freqstr != freq.period_freq and not _same(value.freqstr, freq):
            raise DataError(
                f"{value!r}: start is a period at {value.freqstr!r}, but the dataset is at "
                f"{freq.canonical!r}. Convert with Period.asfreq, or set the frequency of the dataset."
            )
        return value
    moment = _moment(value)
    if freq.base != "B":
        return pd.Period(moment, freq=freq.period_freq)
    if moment.weekday() > 4:
        raise DataError(
            f"{value!r}: start is a {moment:%A}, off the calendar of {freq.canonical!r} (Monday to Friday). "
            f"Start on a business day, or use 'D'."
        )
    with warnings.catch_warnings():  # pandas means to drop business-day periods, and GluonTS needs them
        warnings.filterwarnings("ignore", "Period with BDay freq", FutureWarning)
        return pd.Period(moment, freq=freq.period_freq)


def _same(freqstr: str, freq: Frequency) -> bool:
    try:
        return Frequency.parse(freqstr) == freq
    except FrequencyError:
        return False


def _moment(value: Any) -> datetime:
    """Wall-clock time of any start but a period, to the second."""
    import numpy as np
    import pandas as pd

    seen = value
    if isinstance(value, np.datetime64) and not np.isnat(value):
        value = value.astype("datetime64[s]").item()  # an integer outside the years 1 to 9999
        if not isinstance(value, datetime):
            raise DataError(f"{seen!r}: start is outside the years 1 to 9999. {_WAY_OUT}")
    if isinstance(value, str):
        return _read(value)
    missing = value is None or value is pd.NaT or value is pd.NA or isinstance(value, np.datetime64)
    if missing or (isinstance(value, Real) and value != value):
        raise DataError(f"{seen!r}: start is missing, but every series needs one. {_WAY_OUT}")
    if isinstance(value, datetime):
        if value.tzinfo is not None:
            raise DataError(f"{seen!r}: start {_ZONE}. Drop the zone with replace(tzinfo=None) after that.")
        return datetime(value.year, value.month, value.day, value.hour, value.minute, value.second)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    kind = type(value).__name__
    if isinstance(value, Integral) and kind != "bool":
        raise DataError(f"{seen!r}: start is an integer; did you pass a row number? {_WAY_OUT}")
    raise DataError(f"{seen!r}: start is a {kind}, but a date is expected. {_WAY_OUT}")


def _read(text: str) -> datetime:
    form = _ISO.fullmatch(text.strip())
    if form is None:
        what = "not an ISO date (year-month-day)" if text.strip() else "empty, but every series needs one"
        raise DataError(f"{text!r}: start is {what}. {_WAY_OUT}")
    if form["zone"]:
        raise DataError(f"{text!r}: start {_ZONE}. {_WAY_OUT}")
    year, month, day, hour, minute, second = (int(form[part] or default) for part, default in _PARTS)
    try:
        return datetime(year, month, day, hour, minute, second)
    except ValueError as error:
        raise DataError(f"{text!r}: start is no date of the calendar ({error}). {_WAY_OUT}") from error
