"""The static part of GluonTS estimators' arguments, on the real estimators."""

import pytest
from gluonts.torch.model.deepar.estimator import DeepAREstimator
from gluonts.torch.model.tft.estimator import TemporalFusionTransformerEstimator
from gluonts.torch.model.tide.estimator import TiDEEstimator
from gluonts.torch.model.wavenet.estimator import WaveNetEstimator

from tsnorm.schema import StaticSchema

COUNTS = {"num_feat_static_cat": 2, "num_feat_static_real": 2, "cardinality": [4, 6]}


@pytest.mark.parametrize(
    ("estimator", "kwargs"),
    [
        (DeepAREstimator, {**COUNTS, "embedding_dimension": [2, 3]}),
        (TiDEEstimator, {**COUNTS, "embedding_dimension": [2, 3]}),
        (WaveNetEstimator, COUNTS),
        (TemporalFusionTransformerEstimator, {"static_cardinalities": [4, 6], "static_dims": [2]}),
    ],
)
def test_each_estimator_gets_its_own_spelling_and_takes_it(estimator, kwargs):
    schema = StaticSchema.from_counts([3, 5], num_real=2)
    assert schema.estimator_kwargs(estimator) == kwargs
    estimator(freq="ME", prediction_length=3, **kwargs)
