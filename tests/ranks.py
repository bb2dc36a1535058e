"""Run a function on N real gloo ranks, spawned on this machine, and bring results and errors home."""

import os
import queue
import tempfile
import time
import traceback
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


class RankError(RuntimeError):
    """A rank failed; the text is its traceback."""


def run_on_ranks(fn, world_size, *args, deadline_s=120.0):
    """Results of ``fn(*args)`` on each rank, in rank order.

    ``fn`` is a function at the top of a module. The first rank to fail ends the others, and its traceback is raised.
    """
    context = mp.get_context("spawn")
    results = context.Queue()
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        ranks = [
            context.Process(target=_rank, args=(fn, rank, world_size, str(store), results, args), daemon=True)
            for rank in range(world_size)
        ]
        for process in ranks:
            process.start()
        home = {}
        end = time.monotonic() + deadline_s
        try:
            while len(home) < world_size:
                try:
                    rank, error, value = results.get(timeout=0.5)
                except queue.Empty:
                    dead = [r for r, p in enumerate(ranks) if p.exitcode not in (None, 0) and r not in home]
                    if dead and results.empty():
                        raise RankError(f"rank {dead[0]} died with exit code {ranks[dead[0]].exitcode}") from None
                    if time.monotonic() > end:
                        raise RankError(f"no answer within {deadline_s} s; answered: {sorted(home)}") from None
                    continue
                if error:
                    raise RankError(f"rank {rank}:\n{error}")
                home[rank] = value
        finally:
            for process in ranks:
                process.join(timeout=0 if len(home) < world_size else 10)
                if process.is_alive():
                    process.kill()
    return [home[rank] for rank in range(world_size)]


def _rank(fn, rank, world_size, store, results, args):
    torch.set_num_threads(1)
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(world_size)}
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world_size)
    try:
        value = fn(*args)
    except BaseException:
        results.put((rank, traceback.format_exc(), None))
    else:
        results.put((rank, None, value))
        dist.barrier()
        dist.destroy_process_group()
