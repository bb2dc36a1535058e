"""Tiny real models of the three families, series for them, and which parameters a batch reaches."""

import numpy as np
import torch

from tsnorm.pipeline import complete_config, model_from_config
from tsnorm.schema import StaticSchema

FAMILIES = ("time-series-transformer", "informer", "autoformer")
SMALL = {
    "d_model": 8,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 8,
    "decoder_ffn_dim": 8,
}
HORIZON, CONTEXT, LAGS = 4, 8, [1, 2, 3]
PAST = CONTEXT + 3


def tiny_config(family="informer", schema=None, freq="M", **settings):
    """Config of a tiny model: H 4, context 8, lags 1 to 3, so a past of 11 steps."""
    lengths = {"prediction_length": HORIZON, "context_length": CONTEXT, "lags_sequence": LAGS}
    return complete_config(
        family, schema=StaticSchema() if schema is None else schema, freq=freq, **(lengths | SMALL | settings)
    )


def tiny_model(config):
    """Untrained model of a config, the same at every call."""
    torch.manual_seed(0)
    return model_from_config(config)


def series(num=4, length=24, channels=1, **fields):
    """Monthly entries with the given further fields."""
    rng = np.random.default_rng(0)
    shape = (length,) if channels == 1 else (channels, length)
    return [
        {"item_id": f"item{i}", "start": "2020-01", "target": (rng.normal(size=shape) + 10).tolist(), **fields}
        for i in range(num)
    ]


def train_step(model, batch):
    """Loss of one forward and backward pass, and the trainable parameters that got no gradient."""
    loss = model(**batch).loss
    loss.backward()
    return loss.item(), [name for name, p in model.named_parameters() if p.requires_grad and p.grad is None]
