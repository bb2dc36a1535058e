"""What static features a dataset has: the one object that fills the batch and sizes the model."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tsnorm.errors import SchemaError
from tsnorm.files import write_atomically
from tsnorm.schema.features import CategoricalFeature, MissingCategory, RealFeature, Scaling, Stored, unnamed
from tsnorm.schema.sources import categorical_from_metadata, counts_from_config, real_names_from_metadata

Placeholder = Literal["column", "omit"]
FORMAT = "tsnorm.static_schema"
VERSION = 1


@dataclass(frozen=True, kw_only=True)
class StaticSchema(Stored):
    """Static features of a *dataset*, in column order.

    The fill and the model come from the same object: :func:`~tsnorm.transforms.static_features` makes every
    entry carry what :meth:`config_kwargs` told the model to expect.

    Raises
    ------
    SchemaError
        Two features share a name, or a field has the wrong type.

    Examples
    --------
    >>> schema = StaticSchema.from_counts(cardinality=[3], num_real=1, missing_real=0.0)
    >>> schema.config_kwargs()["cardinality"]  # ids 0..2 and the reserved row
    [4]
    """

    categorical: tuple[CategoricalFeature, ...] = ()
    """Categorical features; K columns of ``feat_static_cat``."""
    real: tuple[RealFeature, ...] = ()
    """Real features; the first columns of ``feat_static_real``, their missing-indicators follow in the same order."""
    placeholder: Placeholder = "column"
    """What stands in for a kind of which there is no feature: ``"column"`` is one constant column (category 0
    of 1, real 0.0) declared to the model, ``"omit"`` leaves the batch key out and declares a count of 0."""

    def __post_init__(self) -> None:
        kinds: tuple[tuple[str, type], ...] = (("categorical", CategoricalFeature), ("real", RealFeature))
        for field, kind in kinds:
            features = getattr(self, field)
            if isinstance(features, str) or not isinstance(features, Sequence):
                raise SchemaError(f"schema: {field} is {features!r}, but must be a list of features.")
            if stray := [f for f in features if not isinstance(f, kind)]:
                raise SchemaError(f"schema: {field} holds {stray[0]!r}, but only {kind.__name__} may stand there.")
            object.__setattr__(self, field, tuple(features))
        if self.placeholder not in ("column", "omit"):
            raise SchemaError(f"schema: placeholder is {self.placeholder!r}, but must be 'column' or 'omit'.")
        names = self.names
        if len(set(names)) < len(names):
            twice = next(name for i, name in enumerate(names) if name in names[:i])
            raise SchemaError(f"schema: the name {twice!r} stands for two features. Rename one of them.")

    @classmethod
    def from_counts(
        cls,
        cardinality: Sequence[int] = (),
        num_real: int = 0,
        *,
        missing_cat: Literal["reserve", "error"] | int = "reserve",
        missing_real: Literal["error"] | float = 0.0,
        placeholder: Placeholder = "column",
        namespace: str | None = None,
    ) -> StaticSchema:
        """Schema of features that have no names, as GluonTS users write it: ``cardinality=[3, 12]``.

        Parameters
        ----------
        cardinality
            Number of categories of each categorical feature, without a reserved row.
        num_real
            Number of real features.
        missing_cat, missing_real
            Policy for missing values; see :meth:`CategoricalFeature.make`.
        placeholder
            See :class:`StaticSchema`.
        namespace
            Prefix of the made-up names, usually the dataset's name; keeps unrelated columns apart in a union.
        """
        if isinstance(cardinality, str) or not isinstance(cardinality, Sequence):
            raise SchemaError(f"schema: cardinality is {cardinality!r}, but must be a list, such as [3, 12].")
        if not isinstance(num_real, int) or isinstance(num_real, bool) or num_real < 0:
            raise SchemaError(f"schema: num_real is {num_real!r}, but must be a whole number from 0.")
        fill = None if missing_real == "error" else missing_real
        return cls(
            categorical=tuple(
                CategoricalFeature.make(unnamed("feat_static_cat", k, namespace), num_known=n, missing=missing_cat)
                for k, n in enumerate(cardinality)
            ),
            real=tuple(RealFeature(name=unnamed("feat_static_real", r, namespace), fill=fill) for r in range(num_real)),
            placeholder=placeholder,
        )

    @classmethod
    def from_metadata(
        cls,
        metadata: Any,
        *,
        namespace: str | None = None,
        missing_cat: MissingCategory = "reserve",
        missing_real: Literal["error"] | float = 0.0,
        placeholder: Placeholder = "column",
    ) -> StaticSchema:
        """Schema that dataset metadata declares.

        Parameters
        ----------
        metadata
            GluonTS ``MetaData``, or the dict of a ``metadata.json``. Beyond GluonTS, an item of
            ``feat_static_cat`` may carry a ``vocabulary``.
        namespace
            Prefix for features that the metadata leaves unnamed (``feat_static_cat``, ``feat_static_cat_0``, ...).
        missing_cat
            Policy for missing categories; see :meth:`CategoricalFeature.make`.
        missing_real
            Value that a missing real gets, or ``"error"``. The mean over the dataset is known only to a
            profile: see :meth:`tsnorm.profile.DatasetProfile.to_schema`.
        placeholder
            See :class:`StaticSchema`.

        Raises
        ------
        MetadataError
            A field is no list, a name is missing, or a cardinality is not a whole number. GluonTS types it
            as a *string* and takes any text.
        """
        fill = None if missing_real == "error" else missing_real
        return cls(
            categorical=categorical_from_metadata(metadata, namespace, missing_cat),
            real=tuple(RealFeature(name=name, fill=fill) for name in real_names_from_metadata(metadata, namespace)),
            placeholder=placeholder,
        )

    @classmethod
    def from_config(
        cls,
        config: Any,
        *,
        missing_cat: Literal["error"] | int = "error",
        missing_real: Literal["error"] | float = "error",
        placeholder: Placeholder = "omit",
        namespace: str | None = None,
    ) -> StaticSchema:
        """Schema that a model config declares: as many unnamed features as it has columns, and no reserved row.

        Parameters
        ----------
        config
            Hugging Face config of a time-series model, or its dict.
        missing_cat
            Id that a missing category gets, or ``"error"``. The tables are as large as they are, so that no
            row can be reserved.
        missing_real
            Value that a missing real gets, or ``"error"``.
        placeholder, namespace
            See :meth:`from_counts`.

        Raises
        ------
        ConfigMismatchError
            Count and cardinality contradict each other.
        """
        cardinality, num_real = counts_from_config(config)
        return cls.from_counts(
            cardinality,
            num_real,
            missing_cat=missing_cat,
            missing_real=missing_real,
            placeholder=placeholder,
            namespace=namespace,
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all features, categorical first."""
        return (*(feature.name for feature in self.categorical), *(feature.name for feature in self.real))

    @property
    def cardinality(self) -> tuple[int, ...]:
        """Rows of each embedding table of the model, the placeholder's included."""
        if self.categorical:
            return tuple(feature.cardinality for feature in self.categorical)
        return (1,) if self.placeholder == "column" else ()

    @property
    def num_static_cat(self) -> int:
        """Columns of ``static_categorical_features``: K, or 1 for a placeholder."""
        return len(self.cardinality)

    @property
    def num_static_real(self) -> int:
        """Columns of ``static_real_features``: R with the indicators, or 1 for a placeholder."""
        if self.real:
            return len(self.real) + sum(feature.indicator for feature in self.real)
        return 1 if self.placeholder == "column" else 0

    def __or__(self, other: StaticSchema) -> StaticSchema:
        """Widen: features match by name, rows and order of ``self`` stay, what only ``other`` has is appended.

        Associative and idempotent. A placeholder gives way when a real feature arrives; the placeholder
        policy is that of ``self``.

        Raises
        ------
        SchemaError
            The same name means different things: categorical here and real there, or contradicting ids.
        """
        if not isinstance(other, StaticSchema):
            return NotImplemented
        for mine, theirs in ((self.categorical, other.real), (self.real, other.categorical)):
            if both := {f.name for f in mine} & {f.name for f in theirs}:
                raise SchemaError(
                    f"static feature {min(both)!r}: categorical in one schema and real in the other."
                    " Rename one, or load one of them under a namespace."
                )
        return StaticSchema(
            categorical=_widen(self.categorical, other.categorical),
            real=_widen(self.real, other.real),
            placeholder=self.placeholder,
        )

    def config_kwargs(self) -> dict[str, Any]:
        """Return the static part of a Hugging Face model config: counts, ``cardinality``, ``embedding_dimension``.

        The embedding dimension is transformers' own default, ``min(50, (cardinality + 1) // 2)``.
        """
        cardinality = list(self.cardinality)
        return {
            "num_static_categorical_features": len(cardinality),
            "cardinality": cardinality or None,
            "embedding_dimension": [min(50, (c + 1) // 2) for c in cardinality] or None,
            "num_static_real_features": self.num_static_real,
        }

    def estimator_kwargs(self, estimator: type | None = None) -> dict[str, Any]:
        """Return the static part of a GluonTS estimator's arguments.

        Parameters
        ----------
        estimator
            Estimator class. When given, only arguments that its constructor takes are returned, in its own
            spelling (the Temporal Fusion Transformer says ``static_cardinalities`` and ``static_dims``;
            WaveNet takes one embedding dimension for all tables and keeps its own).
        """
        config = self.config_kwargs()
        kwargs = {
            "num_feat_static_cat": self.num_static_cat,
            "num_feat_static_real": self.num_static_real,
            "cardinality": config["cardinality"] or [1],
            "embedding_dimension": config["embedding_dimension"] or [1],
        }
        if estimator is None:
            return kwargs
        kwargs |= {
            "static_cardinalities": list(self.cardinality),
            "static_dims": [self.num_static_real] if self.num_static_real else [],
        }
        taken = inspect.signature(estimator.__init__).parameters  # type: ignore[misc]
        one_for_all = {n for n, p in taken.items() if n == "embedding_dimension" and isinstance(p.default, int)}
        return {name: value for name, value in kwargs.items() if name in taken.keys() - one_for_all}

    def to_metadata(self, *, freq: str, prediction_length: int | None = None) -> dict[str, Any]:
        """Return GluonTS metadata of data that went through this schema: cardinalities are table rows, as text."""
        named = {feature.name: feature for feature in self.categorical}
        cat_names = list(named) or [unnamed("feat_static_cat", k, None) for k in range(self.num_static_cat)]
        real_names = [f.name for f in self.real] + [f"{f.name}_missing" for f in self.real if f.indicator]
        real_names = real_names or [unnamed("feat_static_real", r, None) for r in range(self.num_static_real)]
        return {
            "freq": freq,
            "prediction_length": prediction_length,
            "feat_static_cat": [
                {"name": name, "cardinality": str(cardinality)}
                for name, cardinality in zip(cat_names, self.cardinality, strict=True)
            ],
            "feat_static_real": [{"name": name} for name in real_names],
        }

    def to_json(self) -> str:
        """Return versioned JSON; :meth:`from_json` gives back an equal schema."""
        return json.dumps({"format": FORMAT, "version": VERSION, **dataclasses.asdict(self)}, indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> StaticSchema:
        """Read what :meth:`to_json` wrote.

        Raises
        ------
        SchemaError
            The text is no JSON, no tsnorm schema, of another version, or has unknown or missing fields.
        """
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise SchemaError(f"schema: not JSON ({error}).") from error
        if not isinstance(data, Mapping) or data.get("format") != FORMAT:
            raise SchemaError(f"schema: this JSON is no tsnorm schema, which says 'format': {FORMAT!r}.")
        if data.get("version") != VERSION:
            raise SchemaError(
                f"schema: version is {data.get('version')!r}, but this tsnorm reads version {VERSION}."
                " Update tsnorm, or write the schema anew."
            )
        fields = {name: value for name, value in data.items() if name not in ("format", "version")}
        if stray := [name for name in ("categorical", "real") if not isinstance(fields.get(name), list)]:
            raise SchemaError(f"schema: {stray[0]} is {fields.get(stray[0])!r}, but must be a list of features.")
        try:
            fields["categorical"] = tuple(CategoricalFeature(**feature) for feature in fields["categorical"])
            fields["real"] = tuple(_real_from_dict(feature) for feature in fields["real"])
            fields.setdefault("placeholder", None)
            return cls(**fields)
        except (TypeError, AttributeError) as error:
            raise SchemaError(f"schema: a field is missing, unknown or of the wrong type ({error}).") from error

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write :meth:`to_json` to a file, atomically."""
        write_atomically(path, self.to_json().encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> StaticSchema:
        """Read a file that :meth:`save` wrote; errors name the file."""
        try:
            return cls.from_json(Path(path).read_bytes())
        except SchemaError as error:
            raise SchemaError(f"{os.fspath(path)}: {error}") from error

    def fingerprint(self) -> str:
        """32 hexadecimal digits that change whenever anything in the schema does."""
        canonical = json.dumps(dataclasses.asdict(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(f"{FORMAT}/{VERSION}/{canonical}".encode()).hexdigest()[:32]


def _widen(mine: Sequence[Any], theirs: Sequence[Any]) -> tuple[Any, ...]:
    other = {feature.name: feature for feature in theirs}
    kept = [f.widen(other.pop(f.name)) if f.name in other else f for f in mine]
    return (*kept, *other.values())


def _real_from_dict(data: Mapping[str, Any]) -> RealFeature:
    scaling = data.get("scaling")
    return RealFeature(**{**data, "scaling": None if scaling is None else Scaling(**scaling)})
