"""Tests asked about a mutant: until the first that fails."""

import importlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

LOADED = (
    "torch",
    "transformers",
    "transformers.models.qwen3.modeling_qwen3",
    "torch.distributed.fsdp",
    "fastapi",
    "sqlalchemy",
    "hypothesis",
    "httpx",
    "yaml",
    "pyarrow.parquet",
    "_pytest.assertion.rewrite",
)
"""What is loaded once, before a process is copied for each mutant; nothing of the project."""
AT_MOST_S = 900


@dataclass(frozen=True)
class Verdict:
    """What the tests said of a program.

    Attributes:
        killed_by: the test that failed, or `hang`; None where all passed.
        seconds: processor seconds of the tests and of the processes that ended with them.
    """

    killed_by: str | None
    seconds: float


def preload() -> None:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    for name in LOADED:
        importlib.import_module(name)


def ask_python(tree: Path, tests: Sequence[str], marks: str) -> Verdict:
    """Tests of a copy of the checkout, in a copy of this process."""
    started = _spent()
    failed = tree / ".failed.json"
    failed.unlink(missing_ok=True)
    process = os.fork()
    if process == 0:
        code = 1
        try:
            code = _be_pytest(tree, tests, marks, failed)
        finally:
            os._exit(code)
    status = _wait(process)
    seconds = round(_spent() - started, 1)
    if status is None:
        return Verdict("hang", seconds)
    if failed.exists():
        return Verdict(json.loads(failed.read_text(encoding="utf-8")), seconds)
    return Verdict(None if status in (0, 5) else f"pytest ended with {status}", seconds)


def ask_page(tree: Path, tests: Sequence[str]) -> Verdict:
    """Unit tests of the page, in a copy of the checkout."""
    started = _spent()
    command = ["npx", "vitest", "run", "--bail", "1", "--reporter", "json", *tests]
    ended = subprocess.run(command, cwd=tree / "frontend", capture_output=True, text=True)
    seconds = round(_spent() - started, 1)
    if ended.returncode == 0:
        return Verdict(None, seconds)
    with suppress(ValueError):
        report = json.loads(ended.stdout[ended.stdout.index("{") :])
        for file in report["testResults"]:
            for case in file["assertionResults"]:
                if case["status"] == "failed":
                    name = os.path.relpath(file["name"], tree)
                    return Verdict(f"{name}::{case['fullName']}", seconds)
    return Verdict("vitest ended before its tests", seconds)


class _First:
    """Keeps the name of the first test that fails, or of the file that cannot be read.

    Files are asked in the order in which they are named here: those that take long come last.
    """

    def __init__(self, path: Path, files: Sequence[str]) -> None:
        self._path = path
        self._turns = {file: turn for turn, file in enumerate(files)}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.sort(key=lambda item: self._turns.get(item.nodeid.partition("::")[0], 0))

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self._keep(report.nodeid)

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self._keep(report.nodeid)

    def _keep(self, name: str) -> None:
        if not self._path.exists():
            self._path.write_text(json.dumps(name), encoding="utf-8")


def _be_pytest(tree: Path, tests: Sequence[str], marks: str, failed: Path) -> int:
    os.setsid()
    os.chdir(tree)
    # The tests begin with modules of the copy, not with those of the checkout that this tool is of.
    for name in [name for name in sys.modules if name.partition(".")[0] in ("tests", "coloop")]:
        del sys.modules[name]
    roots = [str(tree / "engine"), str(tree / "backend"), str(tree)]
    sys.path[:0] = roots
    os.environ["PYTHONPATH"] = os.pathsep.join(roots[:2])
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    options = ["-q", "-x", "-n", "0", "-p", "no:cacheprovider", "--timeout", "120", "-m", marks]
    return int(pytest.main([*options, *tests], plugins=[_First(failed, tests)]))


def _wait(process: int) -> int | None:
    """The exit status of a process, None after too long a time; what it left running is ended."""
    until = time.monotonic() + AT_MOST_S
    while time.monotonic() < until:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            _end_session(process)
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.1)
    _end_session(process)
    os.waitpid(process, 0)
    return None


def _end_session(session: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(session, signal.SIGKILL)


def _spent() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
