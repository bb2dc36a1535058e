"""Ranks on this machine: start them, tell once why they failed, leave none behind."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import faulthandler
import functools
import json
import logging
import os
import re
import runpy
import signal
import sys
import tempfile
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, ParamSpec, TypeVar

from tsnorm.errors import TsnormError, WorldError
from tsnorm.train.slurm import TORCHRUN

_P = ParamSpec("_P")
_R = TypeVar("_R")

_LAUNCHED = "TSNORM_LAUNCHED"
_ERROR_FILE = "TORCHELASTIC_ERROR_FILE"
_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT") if hasattr(signal, name)]
_GRACE = 3.0
_PEER_LOST = re.compile(
    r"gloo/|Connection (closed|reset|refused)|Broken pipe|Socket (closed|Timeout)|recvValue failed"
    r"|failed to recv|ncclRemoteError|ncclSystemError|NCCL communicator was aborted"
)

# SIGINT ends a rank at once, also inside a collective or an import, where Python would not look at it.
_BOOT = "import signal; signal.signal(signal.SIGINT, signal.SIG_DFL); from tsnorm.train.launch import _boot; _boot()"


def under_launcher(environ: Mapping[str, str] | None = None) -> bool:
    """Whether this process already is one rank of several: started by torchrun, or as a task of srun.

    A Slurm batch script is no task: it has ``SLURM_PROCID`` and ``SLURM_NTASKS`` too, but no step.
    """
    environ = os.environ if environ is None else environ
    if all(environ.get(name) for name in TORCHRUN):
        return True
    num_tasks = environ.get("SLURM_STEP_NUM_TASKS") or (
        environ.get("SLURM_NTASKS", "1") if "SLURM_STEP_ID" in environ else "1"
    )
    return "SLURM_PROCID" in environ and num_tasks.isdigit() and int(num_tasks) > 1


def launch(nproc: int, args: Sequence[str], *, module: str) -> int:
    """Run ``python -m module *args`` as ``nproc`` ranks of this machine, with torchrun's own agent.

    When a rank fails, the others are ended within seconds, and stderr says once which rank failed first and why:
    the message of a :class:`~tsnorm.errors.TsnormError`, the traceback of anything else. What the other ranks
    meet afterwards, a lost connection as a rule, is not shown. The module wraps its main function in
    :func:`rank_main`.

    ``OMP_NUM_THREADS`` is the share of the cores that falls to a rank, unless it is set. The environment and the
    signal handlers of this process are as before when it returns.

    Parameters
    ----------
    nproc
        Number of ranks, at least 1.
    args
        Arguments for each rank, the same for all.
    module
        Name of the module to run, as after ``python -m``.

    Returns
    -------
    int
        0, or 1 when a rank failed, or 130 when this process was interrupted (SIGINT, SIGTERM).

    Raises
    ------
    WorldError
        ``nproc`` is below 1.
    """
    if nproc < 1:
        raise WorldError(f"launch: nproc is {nproc!r}, but at least 1 rank is expected. Raise it.")
    # Without -P a rank would look for modules in the working directory also where this process does not.
    safe_path = [] if {"", str(Path.cwd())} & set(sys.path) else ["-P"]
    command = [*safe_path, "-c", _BOOT, module, *args]
    logs = tempfile.TemporaryDirectory(prefix="tsnorm_", ignore_cleanup_errors=True)
    with _signals() as interrupts, _environment(nproc), _quiet(), logs as folder:
        try:
            code = _run(nproc, command, folder, interrupts)
        except BaseException:
            if not interrupts:
                raise
            code = 130
        if code == 130:
            _say("interrupted")
        return code


def _run(nproc: int, command: list[str], folder: str, interrupts: list[int]) -> int:
    from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    if interrupts:  # and an import has swallowed the exception
        return 130
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=nproc,
        run_id=str(uuid.uuid4()),
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        local_addr="localhost",
        max_restarts=0,
        monitor_interval=0.1,
        logs_specs=DefaultLogsSpecs(log_dir=folder),
    )
    agent: Any = elastic_launch(config, sys.executable)
    try:
        agent(*(argument.replace("$", "$$") for argument in command))  # the agent fills in ${local_rank}
    except SignalException:
        return 130
    except ChildFailedError as error:
        _say(_first_failure(error.failures))
        return 1
    return 0


def _say(text: str) -> None:
    """Write to stderr, below a progress bar that a rank left behind and with its hidden cursor shown again."""
    print(("\x1b[?25h\n" if sys.stderr.isatty() else "") + text, file=sys.stderr)


def _first_failure(failures: Mapping[int, Any]) -> str:
    """Which rank failed first and why; torch's own times are whole seconds and take no account of causes."""

    def order(item: tuple[int, Any]) -> tuple[int, int, int]:
        rank, failure = item
        record = failure.error_file_data.get("tsnorm")
        if record is not None:
            return (2 if record["peer_lost"] else 0), record["time_ns"], rank
        return (3 if failure.exitcode == -signal.SIGTERM else 1), failure.timestamp * 10**9, rank

    rank, failure = min(failures.items(), key=order)
    record = failure.error_file_data.get("tsnorm")
    if record is not None:
        why = record["text"].rstrip()
    elif failure.exitcode < 0:
        why = f"it was ended by {failure.signal_name()}."
        if failure.exitcode == -signal.SIGKILL:
            why += " Did the machine run out of memory?"
    else:
        why = f"it ended with exit code {failure.exitcode}. See what it wrote above."
    return f"rank {rank} failed:\n{why}"


@contextlib.contextmanager
def _signals() -> Iterator[list[int]]:
    """Note SIGINT and SIGTERM until the agent takes over; take the handlers back from it at the end."""
    interrupts: list[int] = []

    def note(signum: int, _frame: object) -> NoReturn:
        interrupts.append(signum)
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield interrupts
        return
    handlers = {sig: signal.getsignal(sig) for sig in _SIGNALS}
    signal.signal(signal.SIGINT, note)
    signal.signal(signal.SIGTERM, note)
    try:
        yield interrupts
    finally:
        for sig, handler in handlers.items():
            signal.signal(sig, handler if handler is not None else signal.SIG_DFL)


@contextlib.contextmanager
def _environment(nproc: int) -> Iterator[None]:
    before = dict(os.environ)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, cores // nproc)))
    os.environ[_LAUNCHED] = "1"
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep what torch elastic logs about a failure to itself: it is told once, by :func:`launch`."""
    logger, sink = logging.getLogger("torch.distributed.elastic"), logging.NullHandler()
    propagate = logger.propagate
    logger.addHandler(sink)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(sink)
        logger.propagate = propagate


def rank_main(fn: Callable[_P, _R]) -> Callable[_P, _R]:
    """Wrap the main function of a rank so that its failure reaches the launcher.

    An exception is written to torch elastic's error file. Below :func:`launch` the rank then exits with 1 and
    prints nothing, since the launcher tells; below any other launcher the exception goes on as usual.
    """

    @functools.wraps(fn)
    def wrapper(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        with contextlib.suppress(OSError, RuntimeError, ValueError):  # stderr without a file
            faulthandler.enable()
        try:
            return fn(*args, **kwargs)
        except Exception as error:
            peer_lost = _is_peer_lost(error)
            if os.environ.get(_ERROR_FILE):
                _record(error, peer_lost)
            if os.environ.get(_LAUNCHED) != "1":
                raise
            if peer_lost:
                time.sleep(_GRACE)  # the launcher ends this rank as soon as it sees the one that is the cause
            _leave(1)
        except SystemExit as stop:
            if os.environ.get(_LAUNCHED) != "1" or not isinstance(stop.code, int) or stop.code == 0:
                raise
            _leave(stop.code)

    return wrapper


def _is_peer_lost(error: BaseException | None) -> bool:
    """Whether an error most likely follows from the end of another rank."""
    while error is not None:
        if isinstance(error, RuntimeError) and _PEER_LOST.search(str(error)):
            return True
        error = error.__cause__
    return False


def _record(error: Exception, peer_lost: bool) -> None:
    """Write torch elastic's error file, whole or not at all, with what :func:`_first_failure` needs."""
    from torch.distributed.elastic.multiprocessing.errors import get_error_handler

    time_ns, path = time.time_ns(), os.environ[_ERROR_FILE]
    draft = Path(f"{path}.draft")
    os.environ[_ERROR_FILE] = str(draft)
    try:
        get_error_handler().record_exception(error)
    finally:
        os.environ[_ERROR_FILE] = path
    told = json.loads(draft.read_text())
    text = str(error) if isinstance(error, TsnormError) else traceback.format_exc()
    told["tsnorm"] = {"text": text, "time_ns": time_ns, "peer_lost": peer_lost}
    draft.write_text(json.dumps(told))
    draft.replace(path)


def _leave(code: int) -> NoReturn:
    """Exit without the destructors of a process group, which may hang or abort while other threads live."""
    faulthandler.dump_traceback_later(_GRACE, exit=True, file=os.open(os.devnull, os.O_WRONLY))
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, OSError, ValueError):
            stream.flush()
    os._exit(code)


def _boot() -> None:
    """Be a rank of :func:`launch`: run the module named by the first argument with the others."""
    with contextlib.suppress(AttributeError, OSError):  # Linux only
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG: do not outlive a launcher that is killed
    del sys.argv[0]
    rank_main(runpy.run_module)(sys.argv[0], run_name="__main__", alter_sys=True)
    _leave(0)
