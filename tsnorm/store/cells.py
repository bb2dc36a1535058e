"""One field of one entry: from whatever Python holds to one numpy form, or an error that says where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tsnorm.errors import DataError, Place
from tsnorm.store.plain import NotANumber, number_in, plain, shown

Floats = npt.NDArray[np.float64]
Category = str | int | float | bool | None

_EXACT = 2**53
_QUICK = {float, int, type(None)}
_LISTS = (list, tuple, np.ndarray)


class Cells:
    """Converts the fields of one entry after the other; knows the entry's place for messages."""

    def __init__(self) -> None:
        self.place = Place()
        """Place of the entry at hand."""
        self.rounded: Counter[str] = Counter()
        """Whole numbers by field that float64 cannot hold exactly, so that they were rounded."""

    def item_id(self, value: Any) -> str | None:
        """Return the id as text; a whole number becomes its decimal text."""
        value = plain(value)
        if value is None or isinstance(value, str):
            return None if value is None else self._text("item_id", value)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        raise self.wrong(
            "item_id",
            f"is {shown(value)} ({type(value).__name__})",
            "item_id must be scalar: a text or a whole number",
            "Give each series one id of its own.",
        )

    def start(self, value: Any) -> str | None:
        """Return the start as text: a text as it is, dates in ISO form, a pandas Period at its own detail."""
        if isinstance(value, np.ndarray) and value.ndim == 0:
            value = value[()]
        if value is None or isinstance(value, str):
            return None if value is None else self._text("start", value)
        if isinstance(value, np.datetime64):
            return str(value)
        if hasattr(value, "isoformat"):
            return str(value.isoformat())
        if hasattr(value, "freqstr") and hasattr(value, "asfreq"):
            text = str(value)
            return str(value.asfreq("D", how="start")) if "Q" in text or "/" in text else text
        number = isinstance(value, int | np.integer) and not isinstance(value, bool)
        seen = f"is the integer {value!r}" if number else f"is {shown(value)} ({type(value).__name__})"
        raise self.wrong(
            "start",
            seen,
            "a date is expected",
            "Did you pass a row number? Write a year as the text '1990'."
            if number
            else "Give an ISO text such as '2022-03-17', a datetime or a Period.",
        )

    def target(self, value: Any) -> Floats:
        """Return the target, ``(T,)`` or ``(C, T)`` float64; null is NaN."""
        value = plain(value)
        if not isinstance(value, _LISTS):
            raise self.wrong(
                "target",
                f"is {shown(value)} ({type(value).__name__})",
                "a list of the values of the whole series is expected",
                "This looks like a long table, one row a time step: group its rows by item_id first."
                if isinstance(value, int | float)
                else "Write [1.0, null, 2.5], or one such list a channel.",
            )
        if isinstance(value, list) and any(isinstance(plain(item), _LISTS) for item in value[:1] + value[-1:]):
            return self._rows("target", value, "channel")
        if isinstance(value, np.ndarray) and value.ndim > 1:
            return self._rows("target", value, "channel")
        return self._floats("target", value)

    def dynamic(self, field: str, value: Any, num_steps: int) -> npt.NDArray[Any]:
        """Return a dynamic feature, ``(F, T)``: int64 for ``feat_dynamic_cat``, else float64 with null as NaN.

        Parameters
        ----------
        field
            Name of the field.
        value
            What the entry holds.
        num_steps
            T of the target, to tell features by steps from steps by features.
        """
        value = plain(value)
        if not isinstance(value, _LISTS):
            raise self.wrong(field, f"is {shown(value)}", "a list of features, each a list of steps, is expected")
        flat = (
            value.ndim == 1 if isinstance(value, np.ndarray) else not isinstance(plain(next(iter(value), [])), _LISTS)
        )
        if flat and len(value):
            static = field.removeprefix("past_").replace("dynamic", "static")
            raise self.wrong(
                field,
                f"has 1 dimension, length {len(value)} (target: {num_steps} steps)",
                "features by time steps (F, T) is expected",
                "Wrap the one feature in a list: [[...]]." if len(value) >= num_steps else f"Did you mean {static}?",
            )
        rows = self._rows(field, value, "feature")
        if 1 <= rows.shape[1] < num_steps == rows.shape[0]:
            raise self.wrong(
                field,
                f"has shape {rows.shape} and the target {num_steps} steps",
                f"features by time steps (F, T), that is {rows.shape[::-1]}, is expected",
                "Transpose it.",
            )
        if field != "feat_dynamic_cat":
            return rows
        whole = np.isfinite(rows) & (np.floor(rows) == rows) & (np.abs(rows) <= _EXACT)
        if not whole.all():
            f, t = np.argwhere(~whole)[0]
            raise self.wrong(
                field,
                f"holds {rows[f, t]} in feature {f} at step {t}{_more((~whole).sum())}",
                "whole numbers are expected, none missing",
                "Give missing and other values an id of their own.",
            )
        return rows.astype(np.int64)

    def feat_static_real(self, value: Any) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Return static reals ``(R,)`` float64 and where they are given ``(R,)``: null is not, NaN is."""
        field = "feat_static_real"
        items = self._static(field, value)
        valid = np.array([item is not None for item in items], dtype=np.bool_)
        return self._floats(field, items), valid

    def feat_static_cat(self, value: Any) -> list[Category]:
        """Return static categories as the data says them: int, float, text or bool each, null None."""
        field = "feat_static_cat"
        items = self._static(field, value)
        for k, item in enumerate(items):
            if item is not None and not isinstance(item, str | int | float):
                kind = type(item).__name__
                raise self.wrong(field, f"is {shown(item)} ({kind}) in column {k}", "a number or a text is expected")
            if isinstance(item, str):
                self._text(field, item)
            if isinstance(item, int) and not -(2**63) <= item < 2**63:
                raise self.wrong(
                    field, f"is {shown(item)} in column {k}", "64 bits must hold it", "Give such ids as text."
                )
        return items

    def wrong(self, field: str, seen: str, expected: str, way_out: str = "Correct the entry.") -> DataError:
        """Error about a field of the entry at hand: what was seen, what was expected, the way out."""
        return DataError(f"{self.place.field(field)}: {seen}, but {expected}. {way_out}")

    def _text(self, field: str, value: str) -> str:
        try:
            value.encode()
        except UnicodeEncodeError as error:
            wrong = self.wrong(field, f"is {shown(value)}", "it must be Unicode text", "Correct its encoding.")
            raise wrong from error
        return str(value)

    def _static(self, field: str, value: Any) -> list[Any]:
        value = plain(value)
        if isinstance(value, np.ndarray):
            if value.ndim > 1:
                raise self.wrong(
                    field, f"has shape {value.shape}", "one value a column is expected", "Give each column once."
                )
            return list(value.tolist()) if value.dtype.kind in "iufbU" else [plain(item) for item in value]
        if isinstance(value, list):
            items = [plain(item) for item in value]
            for k, item in enumerate(items):
                if isinstance(item, _LISTS):
                    way_out = "A static feature is given once, not for each time step."
                    raise self.wrong(field, f"is a list in column {k}", "one value a column is expected", way_out)
            return items
        if isinstance(value, str | int | float):
            return [value]
        raise self.wrong(
            field, f"is {shown(value)} ({type(value).__name__})", "a list of one value a column is expected"
        )

    def _rows(self, field: str, value: Any, what: str) -> Floats:
        """Read ``(rows, T)``; an error names the first row that is no list or of another length."""
        if isinstance(value, np.ndarray) and value.ndim > 2:
            raise self.wrong(field, f"has shape {value.shape}", f"{what}s by time steps is expected", "Drop an axis.")
        rows = [plain(row) for row in value]
        for i, row in enumerate(rows):
            if not isinstance(row, _LISTS):
                raise self.wrong(
                    field, f"is {shown(row)} in {what} {i}", f"each {what} must be a list, as the first is"
                )
            if len(row) != len(rows[0]):
                raise self.wrong(
                    field,
                    f"is ragged, with {len(rows[0])} steps in {what} 0 and {len(row)} in {what} {i}",
                    f"all {what}s of a series must have one length",
                    "Pad with null where a value is missing.",
                )
        if not rows:
            return np.empty((0, 0))
        return np.stack([self._floats(field, row, f" in {what} {i}") for i, row in enumerate(rows)])

    def _floats(self, field: str, values: Any, where: str = "") -> Floats:
        """Read numbers, null and GluonTS's texts for NaN and infinity as ``(T,)`` float64."""
        if isinstance(values, np.ndarray):
            if values.ndim != 1:
                raise self.wrong(field, f"has shape {values.shape}{where}", "one axis of time steps is expected")
            if values.dtype.kind not in "iuf":
                values = values.tolist()
            else:
                if values.dtype.kind != "f" and len(values) and max(values.max(), -int(values.min())) > _EXACT:
                    self._count_rounded(field, values.tolist())
                return values.astype(np.float64)  # a copy: its owner may write to it before the batch is full
        kinds = set(map(type, values))
        if not kinds <= _QUICK:
            values = [number_in(value) for value in values]
            kinds = set(map(type, values))
            if wrong := [i for i, value in enumerate(values) if isinstance(value, NotANumber)]:
                raise self.wrong(
                    field,
                    f"is {shown(values[wrong[0]].value)} at index {wrong[0]}{where}{_more(len(wrong))}",
                    "numbers are expected, or null where a value is missing",
                    "Convert it before it is read.",
                )
        try:
            numbers = np.array(values, dtype=np.float64)
        except OverflowError as error:
            raise DataError(f"{self.place.field(field)}: {error}, but float64 must hold it. Scale it.") from error
        if int in kinds and np.nanmax(np.abs(numbers)) >= _EXACT:
            self._count_rounded(field, values)
        return numbers

    def _count_rounded(self, field: str, values: Sequence[Any]) -> None:
        count = sum(1 for v in values if type(v) is int and abs(v) > _EXACT and int(float(v)) != v)
        if count:
            self.rounded[field] += count


def _more(count: int) -> str:
    return f" (and {count - 1} more)" if count > 1 else ""
