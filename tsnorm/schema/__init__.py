"""What static features a dataset has.

:class:`StaticSchema`
    All features of a dataset, in column order; widens with ``|``.
:class:`CategoricalFeature`, :class:`RealFeature`, :class:`Scaling`
    One feature.
:func:`check_cardinality`
    Whether a model config agrees with itself.
"""

from tsnorm.schema.features import CategoricalFeature, MissingCategory, MissingReal, RealFeature, Scaling
from tsnorm.schema.sources import check_cardinality
from tsnorm.schema.static_schema import Placeholder, StaticSchema

__all__ = [
    "CategoricalFeature",
    "MissingCategory",
    "MissingReal",
    "Placeholder",
    "RealFeature",
    "Scaling",
    "StaticSchema",
    "check_cardinality",
]
