"""A model of one's own with a static branch, on two real ranks whose batches have statics in turn.

The plain chain ends in DDP's reduction error. With the schema in the chain the same data trains, the flag off.
"""

import numpy as np
import pytest
import torch
from gluonts.dataset.loader import as_stacked_batches
from gluonts.transform import Chain
from ranks import RankError, run_on_ranks
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from tsnorm.pipeline import complete_config, series_chain, split_chain, stack
from tsnorm.pipeline.batch import BATCH_KEYS
from tsnorm.schema import StaticSchema
from tsnorm.transforms import EncodeStaticCat, FillStaticCat, FillStaticReal

STEPS, ROWS = 6, 4
SCHEMA = StaticSchema.from_counts(cardinality=[3], num_real=1, missing_real=0.5)
CONFIG = complete_config(
    "time-series-transformer", schema=SCHEMA, freq="M", prediction_length=4, context_length=8, lags_sequence=[1, 2]
)


class Branching(nn.Module):
    """Forecasts a mean; statics go through branches that a batch without them leaves out."""

    def __init__(self):
        super().__init__()
        self.past = nn.Linear(10, 4)
        self.real = nn.Linear(1, 4)
        self.embed = nn.Embedding(SCHEMA.cardinality[0], 4)

    def forward(
        self,
        past_values,
        future_values,
        static_categorical_features=None,
        static_real_features=None,
        **_,
    ):
        forecast = self.past(past_values)
        if static_real_features is not None:
            forecast = forecast + self.real(static_real_features)
        if static_categorical_features is not None:
            forecast = forecast + self.embed(static_categorical_features[:, 0])
        return (forecast - future_values).square().mean()


def entries(group):
    """Four series; those of group 0 carry statics, those of group 1 do not."""
    rng = np.random.default_rng(group)
    for i in range(ROWS):
        entry = {"item_id": f"{group}{i}", "start": "2020-01", "target": rng.normal(size=20).tolist()}
        if group == 0:
            entry |= {"feat_static_cat": [i % 3], "feat_static_real": [float(i)]}
        yield entry


def windows(group, with_schema):
    chain = series_chain(CONFIG, SCHEMA, "M")
    if not with_schema:
        ours = (EncodeStaticCat, FillStaticCat, FillStaticReal)
        chain = Chain([step for step in chain.transformations if not isinstance(step, ours)])
    marked = ({**entry, "split_points": [16]} for entry in chain(entries(group), is_train=True))
    return list(split_chain(CONFIG)(marked, is_train=True))


def plain_batch(group):
    """What the notebooks do: stack the fields that the first window has."""
    have = [name for name in BATCH_KEYS.values() if name in windows(group, with_schema=False)[0]]
    [batch] = as_stacked_batches(
        windows(group, with_schema=False), batch_size=ROWS, field_names=have, output_type=torch.tensor
    )
    return {key: batch[name].float() for key, name in BATCH_KEYS.items() if name in batch and "cat" not in key} | (
        {"static_categorical_features": batch["feat_static_cat"].long()} if "feat_static_cat" in batch else {}
    )


def schema_batch(group):
    return stack(windows(group, with_schema=True))


def train_rank(with_schema):
    """All-reduced losses and final parameters; statics present on one rank and absent on the other, in turn."""
    torch.manual_seed(0)
    model = DistributedDataParallel(Branching())
    assert model.find_unused_parameters is False
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    rank = torch.distributed.get_rank()
    losses = []
    for step in range(STEPS):
        batch = (schema_batch if with_schema else plain_batch)((step + rank) % 2)
        loss = model(**batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    total = torch.tensor(losses)  # at the end: a collective in between would meet the hanging reduction first
    torch.distributed.all_reduce(total)
    return (total / 2).tolist(), [p.detach().numpy() for p in model.parameters()]


def train_alone():
    torch.manual_seed(0)
    model = Branching()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    losses = []
    for step in range(STEPS):
        halves = [schema_batch((step + rank) % 2) for rank in range(2)]
        batch = {key: torch.cat([half[key] for half in halves]) for key in halves[0]}
        loss = model(**batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [p.detach().numpy() for p in model.parameters()]


@pytest.mark.slow
def test_a_plain_chain_ends_in_the_reduction_error():
    with pytest.raises(RankError, match="Expected to have finished reduction in the prior iteration"):
        run_on_ranks(train_rank, 2, False)


@pytest.mark.slow
def test_with_the_schema_two_ranks_equal_one_process_at_the_same_global_batch():
    (losses_0, parameters_0), (losses_1, parameters_1) = run_on_ranks(train_rank, 2, True)
    for a, b in zip(parameters_0, parameters_1, strict=True):
        np.testing.assert_array_equal(a, b)
    alone, parameters = train_alone()
    assert losses_0 == losses_1
    np.testing.assert_allclose(losses_0, alone, rtol=1e-5)
    for a, b in zip(parameters_0, parameters, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
    assert losses_0[-1] < losses_0[0]


def test_the_plain_batches_differ_in_keys_and_the_schema_batches_do_not():
    plain = [set(plain_batch(group)) for group in range(2)]
    assert plain[0] - plain[1] == {"static_categorical_features", "static_real_features"}
    ours = [{key: (v.dtype, v.shape) for key, v in schema_batch(group).items()} for group in range(2)]
    assert ours[0] == ours[1]
    assert schema_batch(1)["static_categorical_features"].tolist() == [[3]] * ROWS
    assert schema_batch(1)["static_real_features"].tolist() == [[0.5]] * ROWS


def metadata_rank(cardinalities):
    from tsnorm.train.agree import check_ranks_agree

    rank = torch.distributed.get_rank()
    schema = StaticSchema.from_counts(cardinality=[cardinalities[rank]])
    check_ranks_agree({"schema": schema.fingerprint()})
    return schema.cardinality


@pytest.mark.slow
def test_c25_ranks_with_other_metadata_are_named_before_the_first_step():
    assert run_on_ranks(metadata_rank, 2, [3, 3]) == [(4,), (4,)]
    with pytest.raises(RankError, match=r"ranks disagree on the schema: \w+ on rank 1, but \w+ on rank 0"):
        run_on_ranks(metadata_rank, 2, [3, 2])
