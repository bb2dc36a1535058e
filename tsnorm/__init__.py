"""tsnorm: every batch carries both static feature fields.

Public names, loaded on first use: `import tsnorm` brings in neither torch nor gluonts nor pandas.

Schema
    :class:`StaticSchema`, :class:`CategoricalFeature`, :class:`RealFeature`, :class:`Scaling`,
    :class:`DatasetProfile`, :class:`Frequency`
Transforms
    :func:`static_features`, :class:`EncodeStaticCat`, :class:`FillStaticCat`, :class:`FillStaticReal`,
    :class:`MaskStaticCat`
Pipeline
    :func:`complete_config`, :func:`model_from_config`, :func:`check_batch`, :func:`training_chain`,
    :func:`validation_chain`, :func:`test_chain`, :func:`stack`, :class:`TimeSeriesDataset`, :func:`unite`,
    :class:`TrainingLoader`, :class:`EvaluationLoader`
Ranks and errors
    :class:`World`, :func:`check_ranks_agree`, :class:`TsnormError`
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tsnorm.errors import TsnormError
    from tsnorm.freq import Frequency
    from tsnorm.pipeline import (
        EvaluationLoader,
        TimeSeriesDataset,
        TrainingLoader,
        check_batch,
        complete_config,
        model_from_config,
        stack,
        test_chain,
        training_chain,
        unite,
        validation_chain,
    )
    from tsnorm.profile import DatasetProfile
    from tsnorm.schema import CategoricalFeature, RealFeature, Scaling, StaticSchema
    from tsnorm.train.agree import check_ranks_agree
    from tsnorm.transforms import EncodeStaticCat, FillStaticCat, FillStaticReal, MaskStaticCat, static_features
    from tsnorm.world import World

_HOMES = {
    "tsnorm.errors": ["TsnormError"],
    "tsnorm.freq": ["Frequency"],
    "tsnorm.pipeline": [
        "EvaluationLoader",
        "TimeSeriesDataset",
        "TrainingLoader",
        "check_batch",
        "complete_config",
        "model_from_config",
        "stack",
        "test_chain",
        "training_chain",
        "unite",
        "validation_chain",
    ],
    "tsnorm.profile": ["DatasetProfile"],
    "tsnorm.schema": ["CategoricalFeature", "RealFeature", "Scaling", "StaticSchema"],
    "tsnorm.train.agree": ["check_ranks_agree"],
    "tsnorm.transforms": [
        "EncodeStaticCat",
        "FillStaticCat",
        "FillStaticReal",
        "MaskStaticCat",
        "static_features",
    ],
    "tsnorm.world": ["World"],
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "CategoricalFeature",
    "DatasetProfile",
    "EncodeStaticCat",
    "EvaluationLoader",
    "FillStaticCat",
    "FillStaticReal",
    "Frequency",
    "MaskStaticCat",
    "RealFeature",
    "Scaling",
    "StaticSchema",
    "TimeSeriesDataset",
    "TrainingLoader",
    "TsnormError",
    "World",
    "check_batch",
    "check_ranks_agree",
    "complete_config",
    "model_from_config",
    "stack",
    "static_features",
    "test_chain",
    "training_chain",
    "unite",
    "validation_chain",
]


def __getattr__(name: str) -> Any:
    """Load a public name from its module."""
    if name not in _HOME:
        raise AttributeError(f"module 'tsnorm' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    """Public names, loaded or not."""
    return sorted([*globals(), *__all__])
