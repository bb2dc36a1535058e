"""GluonTS transforms that make every entry carry both static fields.

:func:`static_features`
    All of the following in their order.
:class:`EncodeStaticCat`
    Categories of the data to table rows.
:class:`FillStaticCat`, :class:`FillStaticReal`
    Every entry carries the field, or the row is named.
:class:`MaskStaticCat`
    Trains the reserved row.
"""

from tsnorm.transforms.base import Entry, EntryTransformation
from tsnorm.transforms.encode import EncodeStaticCat
from tsnorm.transforms.fill import FillStaticCat, FillStaticReal
from tsnorm.transforms.mask import MaskStaticCat
from tsnorm.transforms.static import static_features

__all__ = [
    "EncodeStaticCat",
    "Entry",
    "EntryTransformation",
    "FillStaticCat",
    "FillStaticReal",
    "MaskStaticCat",
    "static_features",
]
