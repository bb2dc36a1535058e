"""Ranks really start, a failure is told once and quickly, and nothing outlives the launcher."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tsnorm.errors import WorldError
from tsnorm.train.launch import _say, launch, rank_main, under_launcher
from tsnorm.train.slurm import _hosts, adopt_slurm

JOB = """
import os, subprocess, sys, time
from pathlib import Path

import torch
import torch.distributed as dist

from tsnorm.errors import DataError
from tsnorm.train.launch import rank_main

def main():
    dist.init_process_group("gloo")
    rank, total = dist.get_rank(), torch.ones(1)
    dist.all_reduce(total)
    case = sys.argv[1]
    if case == "ok":
        print(f"rank {rank}: {total.item()} {sys.argv[1:]} {os.environ['OMP_NUM_THREADS']}\\n", end="", flush=True)
        dist.destroy_process_group()
        return
    if case == "forever":
        below = subprocess.Popen(["sleep", "600"])
        Path(sys.argv[2], f"{rank}.tmp").write_text(f"{os.getpid()} {below.pid}")
        Path(sys.argv[2], f"{rank}.tmp").rename(Path(sys.argv[2], f"{rank}.pids"))
    if rank == 0 and case in ("busy", "forever"):
        while True:
            pass
    if rank == 1 and case != "forever":
        print(f"crash at {time.time()}", flush=True)
        if case == "data":
            try:
                raise DataError("item 'T1': start is missing.")
            finally:
                dist.destroy_process_group()  # the other rank sees it before this one has told why
                time.sleep(0.5)
        if case == "killed":
            os.kill(os.getpid(), 9)
        if case == "exit":
            sys.exit(4)
        raise KeyError("boom")
    dist.all_reduce(total)

if __name__ == "__main__":
    rank_main(main)()
"""
RUN = "import sys; from tsnorm.train.launch import launch; sys.exit(launch(2, sys.argv[2:], module=sys.argv[1]))"

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start the launcher on a module in a process group of its own; end it whatever happens."""
    (tmp_path / "job.py").write_text(JOB)
    started = []

    def popen(*args: str, module: str = "job", code: str = RUN, **env: str) -> subprocess.Popen[str]:
        path = os.pathsep.join([str(tmp_path), *sys.path])
        inherited = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
        process = subprocess.Popen(
            [sys.executable, "-c", code, module, *args],
            env=inherited | {"PYTHONPATH": path, "TMPDIR": str(tmp_path)} | env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield popen
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def wait_for(what: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if what():
            return True
        time.sleep(0.05)
    return what()


@pytest.mark.slow
def test_ranks_meet(start: Start, tmp_path: Path) -> None:
    out, err = (process := start("ok", "$x $$", "${local_rank}", "-P")).communicate(timeout=120)
    threads = max(1, len(os.sched_getaffinity(0)) // 2)
    assert err == ""
    args = "['ok', '$x $$', '${local_rank}', '-P']"
    assert sorted(filter(None, out.splitlines())) == [f"rank {r}: 2.0 {args} {threads}" for r in (0, 1)]
    assert process.returncode == 0
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(("tsnorm_", "torchelastic"))] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("boom", r"rank 1 failed:\nTraceback .*main\n    raise KeyError\(\"boom\"\)\nKeyError: 'boom'\n"),
        ("busy", r"rank 1 failed:\nTraceback .*KeyError: 'boom'\n"),
        ("data", r"rank 1 failed:\nitem 'T1': start is missing\.\n"),
        ("killed", r"rank 1 failed:\nit was ended by SIGKILL\. Did the machine run out of memory\?\n"),
        ("exit", r"rank 1 failed:\nit ended with exit code 4\. See what it wrote above\.\n"),
    ],
)
def test_a_failure_is_told_once(start: Start, case: str, message: str) -> None:
    out, err = (process := start(case)).communicate(timeout=120)
    ended = time.time()
    assert re.fullmatch(message, err, re.DOTALL)
    assert process.returncode == 1
    assert ended - float(re.findall(r"crash at (\S+)", out)[0]) < 10


@pytest.mark.slow
def test_a_module_that_does_not_import_is_told_once(start: Start) -> None:
    _, err = (process := start(module="no_such_module")).communicate(timeout=120)
    assert re.fullmatch(
        r"rank [01] failed:\nTraceback .*ImportError: No module named .*no_such_module\n", err, re.DOTALL
    )
    assert process.returncode == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sig", "whole_group"), [(signal.SIGINT, True), (signal.SIGINT, False), (signal.SIGTERM, False)]
)
def test_interrupted(start: Start, tmp_path: Path, sig: signal.Signals, whole_group: bool) -> None:
    process = start("forever", str(tmp_path))
    files = [tmp_path / f"{rank}.pids" for rank in (0, 1)]
    assert wait_for(lambda: all(file.exists() for file in files), 120)
    pids = [int(pid) for file in files for pid in file.read_text().split()]
    assert all(map(is_alive, pids))
    begun = time.monotonic()
    (os.killpg if whole_group else os.kill)(process.pid, sig)
    _, err = process.communicate(timeout=60)
    assert time.monotonic() - begun < 5
    assert err == "interrupted\n"
    assert process.returncode == 130
    assert not any(map(is_alive, pids))


@pytest.mark.slow
def test_interrupted_while_torch_is_imported(start: Start) -> None:
    process = start("ok")
    assert wait_for(lambda: "libtorch" in Path(f"/proc/{process.pid}/maps").read_text(), 60)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert err == "interrupted\n"
    assert process.returncode == 130


@pytest.mark.slow
def test_ranks_do_not_outlive_a_killed_launcher(start: Start, tmp_path: Path) -> None:
    process = start("forever", str(tmp_path))
    files = [tmp_path / f"{rank}.pids" for rank in (0, 1)]
    assert wait_for(lambda: all(file.exists() for file in files), 120)
    ranks, below = zip(*(map(int, file.read_text().split()) for file in files), strict=True)
    process.kill()
    assert wait_for(lambda: not any(map(is_alive, ranks)), 5)
    for pid in below:
        os.kill(pid, signal.SIGKILL)


@pytest.mark.slow
def test_below_another_launcher_a_traceback_is_printed(start: Start) -> None:
    arguments = "['--standalone', '--nproc-per-node=2', '-m', *sys.argv[1:]]"
    code = f"import sys; from torch.distributed.run import main; main({arguments})"
    _, err = (process := start("boom", code=code)).communicate(timeout=120)
    assert re.search(r"^(\[rank1\]: )?KeyError: 'boom'$", err, re.MULTILINE)
    assert "Root Cause" in err
    assert process.returncode == 1


def test_launch_leaves_the_process_as_it_was(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    before = dict(os.environ), [signal.getsignal(sig) for sig in (signal.SIGINT, signal.SIGTERM)]
    assert launch(1, ["-n"], module="this") == 0
    assert "Beautiful is better than ugly" in capfd.readouterr().out
    assert before == (dict(os.environ), [signal.getsignal(sig) for sig in (signal.SIGINT, signal.SIGTERM)])


def test_the_cursor_is_shown_again(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    _say("interrupted")
    assert capsys.readouterr().err == "\x1b[?25h\ninterrupted\n"


def test_launch_needs_a_rank() -> None:
    with pytest.raises(WorldError, match="launch: nproc is 0, but at least 1 rank is expected"):
        launch(0, [], module="job")


def test_rank_main_passes_values_and_errors_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TSNORM_LAUNCHED", raising=False)
    assert rank_main(divmod)(7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError, match="by zero"):
        rank_main(divmod)(7, 0)


TORCHRUN = {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0"}
BATCH = {"SLURM_JOB_ID": "1234567", "SLURM_PROCID": "0", "SLURM_NTASKS": "4", "SLURM_LOCALID": "0"}
TASK = BATCH | {
    "SLURM_STEP_ID": "1",
    "SLURM_PROCID": "3",
    "SLURM_LOCALID": "1",
    "SLURM_NODEID": "1",
    "SLURM_JOB_NODELIST": "gpu[07-09],login",
    "SLURM_STEP_TASKS_PER_NODE": "2(x2)",
}


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, False),
        (TORCHRUN, True),
        ({"RANK": "0", "WORLD_SIZE": "2"}, False),
        (BATCH, False),
        (TASK, True),
        (TASK | {"SLURM_NTASKS": "1"}, False),
        (TASK | {"SLURM_STEP_NUM_TASKS": "4"}, True),
        (TASK | {"SLURM_STEP_NUM_TASKS": "1"}, False),  # a shell of srun --pty in a job of four tasks
    ],
)
def test_under_launcher(environ: dict[str, str], expected: bool) -> None:
    assert under_launcher(environ) is expected


def test_under_launcher_reads_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in TORCHRUN.items():
        monkeypatch.setenv(name, value)
    assert under_launcher()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, {}),
        ({"SLURM_STEP_NODELIST": "gpu09"}, {"MASTER_ADDR": "gpu09"}),
        ({"MASTER_ADDR": "head", "MASTER_PORT": "29500"}, {"MASTER_ADDR": "head", "MASTER_PORT": "29500"}),
        ({"SLURM_STEP_TASKS_PER_NODE": "1,3"}, {"LOCAL_WORLD_SIZE": "3"}),
        ({"SLURM_STEP_TASKS_PER_NODE": ""}, {"LOCAL_WORLD_SIZE": "1"}),
        ({"SLURM_STEP_NUM_TASKS": "8"}, {"WORLD_SIZE": "8"}),
    ],
)
def test_adopt_slurm(change: dict[str, str], expected: dict[str, str]) -> None:
    environ = TASK | change
    adopt_slurm(environ)
    plain = {
        "RANK": "3",
        "WORLD_SIZE": "4",
        "LOCAL_RANK": "1",
        "LOCAL_WORLD_SIZE": "2",
        "MASTER_ADDR": "gpu07",
        "MASTER_PORT": "19668",
    }
    assert {name: environ[name] for name in plain} == plain | expected


def test_adopt_slurm_leaves_torchrun_alone() -> None:
    environ = TASK | TORCHRUN
    adopt_slurm(environ)
    assert environ == TASK | TORCHRUN


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"SLURM_LOCALID": ""}, "Slurm environment: SLURM_LOCALID is not set, .*with srun"),
        ({"SLURM_JOB_NODELIST": "gpu[1-x]"}, r"node list 'gpu\[1-x\]'.* cannot be read .*Set these by hand"),
        ({"SLURM_STEP_TASKS_PER_NODE": "2"}, "tasks per node cannot be read"),
        ({"SLURM_JOB_ID": "12x"}, "job id '12x'.* cannot be read"),
    ],
)
def test_adopt_slurm_says_what_is_wrong(change: dict[str, str], message: str) -> None:
    with pytest.raises(WorldError, match=message):
        adopt_slurm(TASK | change)


@pytest.mark.parametrize(
    ("nodelist", "hosts"),
    [
        ("node", ["node"]),
        ("node[01-03],x", ["node01", "node02", "node03", "x"]),
        ("a,b[1,3-4],c-2", ["a", "b1", "b3", "b4", "c-2"]),
        ("r[1-2]n[08-09]-ib", ["r1n08-ib", "r1n09-ib", "r2n08-ib", "r2n09-ib"]),
    ],
)
def test_hosts(nodelist: str, hosts: list[str]) -> None:
    assert _hosts(nodelist) == hosts
