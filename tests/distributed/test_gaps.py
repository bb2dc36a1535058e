"""With gaps in the future, ranks weigh unequally: the step must still be that of one process on the global batch."""

import numpy as np
import pytest
import torch
from ranks import run_on_ranks
from torch.nn.parallel import DistributedDataParallel

from tsnorm.pipeline import TimeSeriesDataset, TrainingLoader, complete_config, model_from_config
from tsnorm.train.loop import part_weights, split

ROWS, STEPS = 8, 3


def job():
    """Dataset in which half of the series have gaps, and a model without dropout."""
    rng = np.random.default_rng(0)
    entries = [{"item_id": str(i), "start": "2020-01", "target": rng.normal(5, 1, size=40)} for i in range(6)]
    for entry in entries[::2]:
        entry["target"][rng.random(40) < 0.6] = np.nan
    dataset = TimeSeriesDataset.from_entries(entries, freq="M")
    config = complete_config(
        "time-series-transformer", schema=dataset.schema, freq="M", prediction_length=4, context_length=8,
        lags_sequence=[1, 2], d_model=8, encoder_layers=1, decoder_layers=1, dropout=0.0, attention_dropout=0.0,
        activation_dropout=0.0,
    )  # fmt: skip
    torch.manual_seed(0)
    model = model_from_config(config)
    return model, TrainingLoader([dataset], config=config, global_batch_size=ROWS, num_steps=STEPS)


def train(weighted, num_parts=1):
    model, loader = job()
    if torch.distributed.is_initialized():
        model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    shares = []
    for batch in loader:
        parts = split(batch, num_parts)
        weights = part_weights([part["future_observed_mask"] for part in parts], weighted)
        optimizer.zero_grad()
        sum(model(**part).loss * weight for part, weight in zip(parts, weights, strict=True)).backward()
        optimizer.step()
        shares.append(float(sum(weights)))
    return shares, np.concatenate([p.detach().numpy().ravel() for p in model.parameters()])


@pytest.mark.slow
def test_two_ranks_make_the_step_of_one_process():
    shares, alone = train(weighted=True)
    assert shares == [1.0] * STEPS
    (shares_0, ranks_0), (shares_1, ranks_1) = run_on_ranks(train, 2, True)
    np.testing.assert_array_equal(ranks_0, ranks_1)
    np.testing.assert_allclose(ranks_0, alone, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(np.add(shares_0, shares_1), [2.0] * STEPS, rtol=1e-6)
    assert any(abs(share - 1) > 0.05 for share in shares_0)
    _, in_parts = train(weighted=True, num_parts=4)
    np.testing.assert_allclose(in_parts, alone, rtol=1e-3, atol=1e-5)
    (_, plain), _ = run_on_ranks(train, 2, False)
    assert np.abs(plain - alone).max() > 10 * np.abs(ranks_0 - alone).max()
