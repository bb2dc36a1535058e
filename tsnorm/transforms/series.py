"""Reading the series themselves: target, start and dynamic features, checked once where they enter."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from gluonts.dataset.field_names import FieldName

from tsnorm.errors import ConfigMismatchError, DataError, IgnoredFieldWarning, Place, PrecisionWarning
from tsnorm.freq import Frequency, parse_start
from tsnorm.store.plain import NotANumber, number_in, plain, shown
from tsnorm.transforms.base import Entry, EntryTransformation

TARGET, START = FieldName.TARGET, FieldName.START
DYNAMIC_REAL, DYNAMIC_CAT = FieldName.FEAT_DYNAMIC_REAL, FieldName.FEAT_DYNAMIC_CAT
_UNUSED = (DYNAMIC_CAT, FieldName.PAST_FEAT_DYNAMIC_REAL, FieldName.PAST_FEAT_DYNAMIC_CAT)
_EXACT = 2.0**24
_LARGEST = np.finfo(np.float32).max


@dataclass(frozen=True)
class ReadSeries(EntryTransformation):
    """Bring target, start and dynamic features into the form the rest of a chain trusts.

    Parameters
    ----------
    freq
        Frequency of the dataset, any spelling.
    prediction_length
        Steps to forecast (H).
    input_size
        Target channels (C). With 1 the target comes out as float32 (T,), also from (1, T); else as (C, T).
    num_dynamic_real
        Dynamic real features (F) that the model takes: float32 (F, T) in training, (F, T + H) in prediction.
    infinity
        Whether an infinite target is an ``"error"`` or ``"missing"`` (then it becomes NaN and is counted).

    Raises
    ------
    DataError
        When iterated: a field is missing, has another shape or length, or a value is not usable.
    """

    freq: str
    prediction_length: int
    input_size: int = 1
    num_dynamic_real: int = 0
    infinity: Literal["error", "missing"] = "error"

    def __post_init__(self) -> None:
        object.__setattr__(self, "freq", str(Frequency.parse(self.freq)))
        if self.infinity not in ("error", "missing"):
            raise ConfigMismatchError(f"infinity is {self.infinity!r}, but must be 'error' or 'missing'.")

    def change(self, entry: Entry, place: Place, is_train: bool) -> Entry:
        """Set ``target``, ``start`` and ``feat_dynamic_real``; fields that are no input of the model are dropped."""
        target = self._target(entry.get(TARGET), place)
        entry[TARGET] = target
        try:
            entry[START] = parse_start(entry.get(START), Frequency.parse(self.freq))
        except DataError as error:
            raise DataError(f"{place.field(START)}: {error}") from error
        length = target.shape[-1]
        if self.num_dynamic_real:
            entry[DYNAMIC_REAL] = self._dynamic_real(entry.get(DYNAMIC_REAL), length, is_train, place)
        else:
            self._ignore(entry, DYNAMIC_REAL, "the model's num_dynamic_real_features is 0")
        _check_dynamic_cat(entry.get(DYNAMIC_CAT), length, place)
        for field in _UNUSED:
            self._ignore(entry, field, "Hugging Face time-series models have no such input")
        return entry

    def _target(self, value: Any, place: Place) -> npt.NDArray[np.float32]:
        where = place.field(TARGET)
        target = _as_array(value, where)
        want = "(T,)" if self.input_size == 1 else f"({self.input_size}, T)"
        if target.ndim == 0:
            raise DataError(
                f"{where}: it is the single number {value!r}, but must be a list of values."
                " A table with one row a time step is a long table: group it by item_id first."
            )
        if self.input_size == 1 and target.ndim == 2 and target.shape[0] == 1:
            self.counts["squeezed target"] += 1
            target = target[0]
        if target.ndim != (1 if self.input_size == 1 else 2) or (
            self.input_size > 1 and target.shape[0] != self.input_size
        ):
            raise DataError(
                f"{where}: its shape is {target.shape}, but the model's input_size of {self.input_size} needs {want}."
                f" {_reshape_hint(target, self.input_size)}"
            )
        if target.size == 0:
            raise DataError(f"{where}: it has no values, but needs at least one. Leave the series out.")
        infinite = np.abs(target) > _LARGEST
        if infinite.any():
            if self.infinity == "error":
                at = int(np.flatnonzero(infinite.any(axis=0) if target.ndim == 2 else infinite)[0])
                raise DataError(
                    f"{where}: {int(infinite.sum())} value(s) are infinite in float32, the first at index {at},"
                    " but values must be finite. Correct them, or take them as missing with infinity='missing'."
                )
            self.counts["infinite target"] += int(infinite.sum())
            target = np.where(infinite, np.nan, target)
        return self._to_float32(target, TARGET, where)

    def _dynamic_real(self, value: Any, length: int, is_train: bool, place: Place) -> npt.NDArray[np.float32]:
        where = place.field(DYNAMIC_REAL)
        want = length + (0 if is_train else self.prediction_length)
        if value is None:
            raise DataError(
                f"{where}: it is missing, but the model takes {self.num_dynamic_real} dynamic real features."
                " Add the field, or set num_dynamic_real_features to 0."
            )
        array = _as_array(value, where)
        shape = f"({self.num_dynamic_real}, {want})"
        if array.ndim != 2 or (array.shape[0] != self.num_dynamic_real and array.shape[0] in (length, want)):
            turn = "Transpose it." if array.ndim == 2 else "Put each feature into a list of its own."
            raise DataError(f"{where}: its shape is {array.shape}, but {shape} is needed, time last. {turn}")
        if array.shape[0] != self.num_dynamic_real:
            raise DataError(
                f"{where}: it has {array.shape[0]} features, but the model takes {self.num_dynamic_real}."
                f" Set num_dynamic_real_features to {array.shape[0]}, or correct the entry."
            )
        if array.shape[1] < want or array.shape[1] > length + self.prediction_length:
            future = "" if is_train else f" with the {self.prediction_length} future steps, known in advance"
            raise DataError(
                f"{where}: it has {array.shape[1]} steps, but {want} are needed{future}:"
                f" {abs(want - array.shape[1])} {'missing' if array.shape[1] < want else 'too many'}."
            )
        array = array[:, :want]
        unusable = ~(np.abs(array) <= _LARGEST)
        if unusable.any():
            f, t = (int(axis[0]) for axis in np.nonzero(unusable))
            raise DataError(
                f"{where}: feature {f} is {array[f, t]} at step {t}, but dynamic features must be finite in float32."
                " Fill them; a model has no mask for them."
            )
        return self._to_float32(array, DYNAMIC_REAL, where)

    def _to_float32(self, array: npt.NDArray[np.float64], field: str, where: str) -> npt.NDArray[np.float32]:
        values = array.astype(np.float32)
        lost = ((np.abs(array) > _EXACT) & (array != values)) | ((array != 0) & (values == 0))
        inexact = int(lost.sum())
        if inexact:
            self.counts[f"inexact {field}"] += inexact
            text = f"{where}: {inexact} value(s) beyond 2**24 or too near to 0 are rounded in float32. Scale them."
            _warn_once(self, PrecisionWarning, text, key=field)
        return values

    def _ignore(self, entry: Entry, field: str, why: str) -> None:
        if entry.pop(field, None) is not None:
            self.counts[f"ignored {field}"] += 1
            _warn_once(self, IgnoredFieldWarning, f"{field} is left out: {why}.", key=f"ignored {field}")


def _warn_once(transform: EntryTransformation, kind: type[Warning], text: str, key: str = "") -> None:
    """Warn the first time a transform meets something; its counts tell how often it was."""
    key = f"warned {kind.__name__} {key}".strip()
    if not transform.counts[key]:
        transform.counts[key] = 1
        warnings.warn(text, kind, stacklevel=6)


def _as_array(value: Any, where: str) -> npt.NDArray[np.float64]:
    if value is None:
        raise DataError(f"{where}: it is missing, but every series needs one.")
    try:
        return _numbers(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(
            f"{where}: {shown(value)} cannot be read as numbers ({error}), but must be a list of numbers or null,"
            " or a list of equally long lists."
        ) from error


def _numbers(value: Any) -> npt.NDArray[np.float64]:
    """Read what the store reads: numbers, null, and GluonTS's texts for NaN and infinity; no bools, no dates."""
    value = plain(value)
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiu":
        return value.astype(np.float64, copy=False)
    if isinstance(value, list) and set(map(type, value)) <= {int, float, type(None)}:
        return np.array(value, dtype=np.float64)
    if isinstance(value, list) and any(isinstance(item, list | np.ndarray) for item in map(plain, value)):
        return np.stack([_numbers(row) for row in value])
    if isinstance(value, np.ndarray) and value.dtype.kind != "U":
        raise TypeError(f"its dtype is {value.dtype}")
    numbers = [number_in(item) for item in (value if isinstance(value, list | np.ndarray) else [value])]
    if strange := [number.value for number in numbers if isinstance(number, NotANumber)]:
        raise TypeError(f"{shown(strange[0])} is no number")
    array = np.array(numbers, dtype=np.float64)
    return array if isinstance(value, list | np.ndarray) else array[0].reshape(())


def _reshape_hint(target: npt.NDArray[np.float64], input_size: int) -> str:
    if target.ndim > 2:
        return "Drop an axis: time is the last one."
    if input_size == 1 and target.shape[1] == 1:
        return "Give a flat list of values."
    if input_size == 1:
        return f"Set input_size to {target.shape[0]} for a multivariate model, or give each channel as its own series."
    if target.ndim == 2 and target.shape[1] == input_size:
        return "Transpose it: time is the last axis."
    return f"Give {input_size} lists of equal length, or set input_size to {1 if target.ndim == 1 else len(target)}."


def _check_dynamic_cat(value: Any, length: int, place: Place) -> None:
    """Refuse a categorical that does not run along the target: it is usually a static one in the wrong field."""
    if value is None:
        return
    value = plain(value)
    rows = [plain(row) for row in value] if isinstance(value, list | np.ndarray) else [value]
    if not any(isinstance(row, list | np.ndarray) for row in rows):
        rows = [value]
    for row in rows:
        size = len(row) if isinstance(row, list | np.ndarray) else 1
        if size < length:
            hint = "Did you mean feat_static_cat?" if size == 1 else "Give one value a time step."
            raise DataError(f"{place.field(DYNAMIC_CAT)}: its length is {size}, but the target has {length}. {hint}")
