"""What others declare of static features: GluonTS metadata and Hugging Face configs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tsnorm.errors import ConfigMismatchError, MetadataError
from tsnorm.schema.features import CategoricalFeature, MissingCategory, unnamed

_GENERIC = re.compile(r"feat_static_(cat|real)(_\d+)?")


def categorical_from_metadata(
    metadata: Any, namespace: str | None, missing: MissingCategory
) -> tuple[CategoricalFeature, ...]:
    """Categorical features that dataset metadata declares."""
    declared = _feature_list(metadata, "feat_static_cat")
    return tuple(_categorical(feature, k, namespace, missing) for k, feature in enumerate(declared))


def real_names_from_metadata(metadata: Any, namespace: str | None) -> tuple[str, ...]:
    """Names of the real features that dataset metadata declares."""
    declared = _feature_list(metadata, "feat_static_real")
    return tuple(_name(feature, "feat_static_real", r, namespace) for r, feature in enumerate(declared))


def counts_from_config(config: Any) -> tuple[list[int], int]:
    """``cardinality`` and number of real columns that a Hugging Face config, or its dict, declares."""
    if not isinstance(config, Mapping) and not hasattr(config, "__dict__"):
        raise ConfigMismatchError(f"config: it is {config!r}, but must be a Hugging Face config or its dict.")
    fields = config if isinstance(config, Mapping) else vars(config)
    count = fields.get("num_static_categorical_features", 0)
    cardinality = fields.get("cardinality")
    check_cardinality(count, cardinality)
    return list(cardinality or [])[:count], fields.get("num_static_real_features", 0)


def check_cardinality(count: int, cardinality: Sequence[int] | None) -> None:
    """Refuse a config whose count of categorical features and ``cardinality`` contradict each other.

    transformers replaces the cardinality by ``[0]`` when the count is 0, without a word.
    """
    if cardinality is not None and (isinstance(cardinality, str) or not isinstance(cardinality, Sequence)):
        raise ConfigMismatchError(f"config: cardinality is {cardinality!r}, but must be a list, such as [3, 12].")
    sizes = [] if cardinality is None or list(cardinality) == [0] else list(cardinality)
    if count == 0 and sizes:
        raise ConfigMismatchError(
            f"config: cardinality is {sizes}, but num_static_categorical_features is 0, so that the ids would be"
            f" ignored. Set num_static_categorical_features to {len(sizes)}, or drop cardinality."
        )
    if len(sizes) != count:
        raise ConfigMismatchError(
            f"config: num_static_categorical_features is {count}, but cardinality is {cardinality!r}."
            f" Give {count} sizes, one for each feature."
        )
    if bad := [size for size in sizes if not isinstance(size, int) or isinstance(size, bool) or size < 1]:
        raise ConfigMismatchError(f"config: cardinality holds {bad[0]!r}, but sizes are whole numbers from 1.")


def _feature_list(metadata: Any, field: str) -> list[Any]:
    if not isinstance(metadata, Mapping) and not hasattr(metadata, field):
        raise MetadataError(
            f"metadata: it is {metadata!r}, but must be GluonTS MetaData or the dict of a metadata.json."
        )
    value = _get(metadata, field)
    if value is None:
        return []
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise MetadataError(
            f"metadata: {field} is {value!r}, but must be a list, such as [{{'name': 'region', 'cardinality': '12'}}]."
        )
    return list(value)


def _get(feature: Any, key: str) -> Any:
    return feature.get(key) if isinstance(feature, Mapping) else getattr(feature, key, None)


def _name(feature: Any, field: str, column: int, namespace: str | None) -> str:
    name = _get(feature, "name")
    if not isinstance(name, str) or not name:
        raise MetadataError(f"metadata: {field}[{column}] is {feature!r}, but must have a name.")
    return unnamed(field, column, namespace) if _GENERIC.fullmatch(name) else name


def _categorical(feature: Any, column: int, namespace: str | None, missing: MissingCategory) -> CategoricalFeature:
    name = _name(feature, "feat_static_cat", column, namespace)
    vocabulary = _get(feature, "vocabulary")
    seen = _get(feature, "cardinality")
    if seen is None and isinstance(vocabulary, list | tuple):
        seen = len(vocabulary)
    if isinstance(seen, bool) or not re.fullmatch(r"[0-9]{1,18}", str(seen)) or int(seen) < 1:
        raise MetadataError(
            f"metadata: cardinality of feat_static_cat[{column}] ({name!r}) is {seen!r}, but must be a whole number"
            " from 1, such as '12'. Correct it in metadata.json."
        )
    if vocabulary is None:
        return CategoricalFeature.make(name, num_known=int(seen), missing=missing)
    if isinstance(vocabulary, str) or not isinstance(vocabulary, Sequence) or len(vocabulary) != int(seen):
        raise MetadataError(
            f"metadata: vocabulary of feat_static_cat[{column}] ({name!r}) is {vocabulary!r}, but must be a list of"
            f" {seen} categories, as many as its cardinality."
        )
    return CategoricalFeature.make(name, vocabulary=tuple(vocabulary), missing=missing)
