"""From a model config and a schema to batches.

:func:`complete_config`, :func:`check_config`, :func:`check_batch`
    A config that fits the data, and the checks before the first step.
:func:`training_chain`, :func:`validation_chain`, :func:`test_chain`
    The GluonTS chains that people copy from notebooks; :func:`series_chain` is what they share.
:class:`TimeSeriesDataset`, :func:`unite`
    Data in memory, and the schema of several datasets.
:class:`TrainingLoader`, :class:`EvaluationLoader`
    Batches for any number of ranks and workers.
:class:`Batch`, :class:`BatchInfo`, :func:`stack`
    Tensors with Hugging Face names, and what travels beside them.
"""

from tsnorm.pipeline.batch import Batch, BatchInfo, check_batch, stack
from tsnorm.pipeline.chain import series_chain, split_chain, test_chain, training_chain, validation_chain
from tsnorm.pipeline.config import (
    check_config,
    complete_config,
    config_from_dict,
    fit_schema,
    model_from_config,
    past_length,
)
from tsnorm.pipeline.dataset import TimeSeriesDataset, unite
from tsnorm.pipeline.loader import EvaluationLoader, TrainingLoader

__all__ = [
    "Batch",
    "BatchInfo",
    "EvaluationLoader",
    "TimeSeriesDataset",
    "TrainingLoader",
    "check_batch",
    "check_config",
    "complete_config",
    "config_from_dict",
    "fit_schema",
    "model_from_config",
    "past_length",
    "series_chain",
    "split_chain",
    "stack",
    "test_chain",
    "training_chain",
    "unite",
    "validation_chain",
]
