"""What tsnorm's transforms share: they know the row they are at, and never write into the caller's entry."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from gluonts.transform import MapTransformation

from tsnorm.errors import Place
from tsnorm.schema.features import Stored

Entry = dict[str, Any]
"""One series with GluonTS field names."""


@dataclass(frozen=True)
class EntryTransformation(Stored, MapTransformation):
    """A GluonTS transform of one entry to one entry.

    It pickles, goes through the serde of GluonTS, and works in a ``Chain``, with ``+``, in an estimator's
    ``create_transformation`` and in ``DataLoader`` workers. Subclasses are frozen dataclasses; they implement
    :meth:`change`.
    """

    counts: Counter[str] = field(default_factory=Counter, init=False, compare=False, repr=False)
    """What was changed how often since the transform was made, in this process: nothing is changed in silence."""

    def __call__(self, data_it: Iterable[Entry], is_train: bool) -> Iterator[Entry]:
        """Transform a stream; the row of an entry is its position in it, unless a reader left a better one."""
        for row, entry in enumerate(data_it, start=1):
            yield self.change(dict(entry), Place.of(entry, row), is_train)

    def map_transform(self, data: Entry, is_train: bool) -> Entry:
        """Transform one entry; the entry given is left as it is."""
        return self.change(dict(data), Place.of(data), is_train)

    @abstractmethod
    def change(self, entry: Entry, place: Place, is_train: bool) -> Entry:
        """Change a shallow copy of an entry: its keys may be set and deleted, its values not written into."""
