"""What is in a dataset, counted in one pass that can be split and merged.

:func:`scan`, :func:`profile_folder`, :func:`profile_entries`
    From record batches, a GluonTS folder or entries to a profile.
:class:`DatasetProfile`
    The result; merges with ``|`` and becomes a schema by :meth:`~DatasetProfile.to_schema`.
:class:`CategoricalColumn`, :class:`RealColumn`, :class:`MinMax`, :class:`Distinct`, :class:`ExactMoments`
    Its parts.
"""

from tsnorm.profile.accumulators import CategoricalColumn, Distinct, MinMax, RealColumn
from tsnorm.profile.exact import ExactMoments
from tsnorm.profile.profile import DatasetProfile
from tsnorm.profile.scan import profile_entries, profile_folder, scan

__all__ = [
    "CategoricalColumn",
    "DatasetProfile",
    "Distinct",
    "ExactMoments",
    "MinMax",
    "RealColumn",
    "profile_entries",
    "profile_folder",
    "scan",
]
