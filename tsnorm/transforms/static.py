"""The transforms that make every entry carry both static fields, as one."""

from __future__ import annotations

from gluonts.transform import Chain

from tsnorm.schema import StaticSchema
from tsnorm.transforms.encode import EncodeStaticCat
from tsnorm.transforms.fill import FillStaticCat, FillStaticReal


def static_features(schema: StaticSchema, source: StaticSchema | None = None) -> Chain:
    """Chain that encodes categories and fills both static fields.

    Put it first in a GluonTS chain, or before an estimator's own transformation.

    Parameters
    ----------
    schema
        Schema that the model was built with.
    source
        Schema of the dataset's own columns; None means ``schema``. Needed when ``schema`` was widened over
        several datasets and this one has only some of the columns, or other ids for the same names.

    Returns
    -------
    gluonts.transform.Chain
        After it, entries hold ``feat_static_cat``, int64 (K,), and ``feat_static_real``, float32 (R,).

    Examples
    --------
    >>> schema = StaticSchema.from_counts(cardinality=[3], num_real=1)
    >>> [entry] = static_features(schema)([{"target": [1.0, 2.0], "start": "2022-01"}], is_train=True)
    >>> entry["feat_static_cat"], entry["feat_static_real"]
    (array([3]), array([0.], dtype=float32))
    """
    return Chain([EncodeStaticCat(schema, source), FillStaticCat(schema), FillStaticReal(schema, source)])
