"""A trained model with all that its forecasts need, from the folder that `tsnorm train` wrote."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tsnorm.errors import ConfigMismatchError, SchemaMismatchError
from tsnorm.files import FACTS
from tsnorm.freq import Frequency
from tsnorm.pipeline.config import MODELS
from tsnorm.pipeline.quiet import without_bars
from tsnorm.schema import StaticSchema


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainedModel:
    """A model, and the schema and frequency it was trained under."""

    model: Any
    """``...ForPrediction`` model of transformers, in evaluation mode."""
    schema: StaticSchema
    """Schema of its static inputs."""
    freq: Frequency
    """Frequency of the data it was trained on."""

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, schema: StaticSchema | None = None) -> TrainedModel:
        """Read the folder of a model.

        Parameters
        ----------
        path
            Folder with ``config.json``, ``model.safetensors``, ``schema.json`` and ``tsnorm.json``; for the ``best``
            model inside it, the last is taken from the folder around.
        schema
            Schema that is expected; another one is refused.

        Raises
        ------
        ConfigMismatchError
            A file is missing or does not belong to the others.
        SchemaMismatchError
            The model was trained under another schema than the expected one.
        """
        import transformers

        folder = Path(path)
        facts_file = next((f for f in (folder / FACTS, folder.parent / FACTS) if f.is_file()), None)
        if not folder.is_dir() or facts_file is None or not (folder / "config.json").is_file():
            raise ConfigMismatchError(
                f"{folder}: is no model of tsnorm, but must be a folder that `tsnorm train` wrote."
            )
        facts = json.loads(facts_file.read_bytes())
        stored = StaticSchema.load(folder / "schema.json")
        if stored.fingerprint() != facts.get("schema_fingerprint"):
            raise ConfigMismatchError(
                f"{folder}: the model was trained under schema {facts.get('schema_fingerprint')}, but schema.json is"
                f" {stored.fingerprint()}. Put the right schema.json back."
            )
        if schema is not None and schema.fingerprint() != stored.fingerprint():
            raise SchemaMismatchError(
                f"{folder}: the model was trained under the static features {', '.join(stored.names) or 'none'}"
                f" ({stored.fingerprint()}), but {', '.join(schema.names) or 'none'} ({schema.fingerprint()}) is given."
                " Use the schema of the model."
            )
        model_type = json.loads((folder / "config.json").read_bytes()).get("model_type", "").replace("_", "-")
        if model_type not in MODELS:
            raise ConfigMismatchError(
                f"{folder}: model_type is {model_type!r}, but must be one of {', '.join(MODELS)}."
            )
        with without_bars():
            model = getattr(transformers, MODELS[model_type][1]).from_pretrained(folder, use_safetensors=True)
        return cls(model=model.eval(), schema=stored, freq=Frequency.parse(facts.get("freq")))
