"""Tests in several processes: `-p tests.workers --workers 4`.

What all tests import, and their cases, are made once: the workers are copies of the process that
has them (`fork`), and take files from one queue in the order of the collection. Files that share a
cluster, or a server and a browser, are one group.

    collect -> queue, a pipe of numbers of groups -> worker -> pipe of reports -> terminal

A worker that dies fails the test that it was at; another takes its place.
"""

import atexit
import os
import pickle
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import Any

import pytest
from tests.forked import share_server

LOADED = (
    "coloop.cli.run",
    "coloop_server.app",
    "torch.distributed.fsdp",
    "transformers.models.qwen3.modeling_qwen3",
)
"""What tests of several files import while they run."""
NONE = -1
NAME = "PYTEST_WORKER"
ROOT = Path(__file__).resolve().parents[1]
SHARED = ("ray", "e2e")
"""Marks of tests that have one cluster, or one server and browser, in common: they take longest."""


@cache
def group_of(path: str) -> str:
    """What a file of tests shares a worker with: a mark that stands in it, or itself."""
    text = (ROOT / path).read_text(encoding="utf-8")
    marked = [name for name in SHARED if f"pytest.mark.{name}" in text]
    return marked[-1] if marked else path


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--workers", type=int, default=0, help="processes that run tests")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    options = session.config.option
    if options.collectonly or options.workers < 2 or len(session.items) < 2:
        return None
    if session.testsfailed and not options.continue_on_collection_errors:
        return None
    for name in LOADED:
        import_module(name)
    share_server()
    Workers(session).run(options.workers)
    return True


@dataclass
class Worker:
    """
    Attributes:
        reports: where its reports come from.
        at: the test that it is at, by its number in the session; before the first and after the
            last `NONE`.
    """

    pid: int
    reports: Connection
    at: int = NONE


class Workers:
    """The workers of a session."""

    def __init__(self, session: pytest.Session) -> None:
        self._session = session
        self._groups = grouped(session.items)
        self._queue, numbers = os.pipe()
        for index in range(len(self._groups)):
            os.write(numbers, index.to_bytes(2, "little"))
        os.close(numbers)
        self._running: dict[Connection, Worker] = {}
        self._started = 0

    def run(self, count: int) -> None:
        for _ in range(count):
            self._start([])
        try:
            while self._running:
                for reports in wait(list(self._running)):
                    assert isinstance(reports, Connection)
                    self._hear(self._running[reports])
        finally:
            for worker in self._running.values():
                os.kill(worker.pid, signal.SIGTERM)
        session = self._session
        if session.shouldfail:
            raise session.Failed(session.shouldfail)

    def _start(self, first: list[int]) -> None:
        """A worker that begins with these tests."""
        reports, theirs = Pipe(duplex=False)
        name = f"w{self._started}"
        self._started += 1
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            for other in self._running:
                other.close()
            reports.close()
            _work(self._session, name, self._tests(first), theirs)
        theirs.close()
        self._running[reports] = Worker(pid, reports)

    def _tests(self, first: list[int]) -> Iterator[int]:
        """Numbers of the tests of a worker; it takes a group when it is asked for its first."""
        yield from first
        while taken := os.read(self._queue, 2):
            yield from self._groups[int.from_bytes(taken, "little")]

    def _hear(self, worker: Worker) -> None:
        """The next message of a worker: a number of a test it begins, a report, or its end."""
        config = self._session.config
        try:
            message = pickle.loads(worker.reports.recv_bytes())
        except EOFError:
            message = None
        if message is None:
            self._end(worker)
        elif isinstance(message, int):
            worker.at = message
        else:
            report = config.hook.pytest_report_from_serializable(config=config, data=message)
            self._tell(report)

    def _tell(self, report: pytest.TestReport) -> None:
        self._session.config.hook.pytest_runtest_logreport(report=report)
        if self._session.shouldfail:
            while os.read(self._queue, 1024):
                pass

    def _end(self, worker: Worker) -> None:
        _, status = os.waitpid(worker.pid, 0)
        del self._running[worker.reports]
        worker.reports.close()
        if worker.at == NONE:
            return
        item = self._session.items[worker.at]
        said = f"the worker ended with {os.waitstatus_to_exitcode(status)}"
        self._tell(pytest.TestReport(item.nodeid, item.location, {}, "failed", said, "call"))
        group = next(group for group in self._groups if worker.at in group)
        self._start(group[group.index(worker.at) + 1 :])


def grouped(items: list[pytest.Item]) -> list[list[int]]:
    """Numbers of the tests that one worker runs, in the order of the first of each."""
    groups: dict[str, list[int]] = {}
    for index, item in enumerate(items):
        groups.setdefault(group_of(item.nodeid.partition("::")[0]), []).append(index)
    return list(groups.values())


def _work(session: pytest.Session, name: str, tests: Iterator[int], reports: Connection) -> None:
    """Be a worker: run what it takes, then end as an interpreter does."""
    code = 0
    try:
        _be_alone(session.config, name)
        session.config.pluginmanager.register(_Reporter(session.config, reports), "reporter")
        index = next(tests, None)
        while index is not None and not session.shouldfail:
            following = next(tests, None)
            item = session.items[index]
            after = None if following is None else _sharing(item, session.items[following])
            reports.send_bytes(pickle.dumps(index))
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            index = following
        reports.send_bytes(pickle.dumps(NONE))
    except BaseException:
        code = 1
        traceback.print_exc()
    finally:
        with suppress(BaseException):
            session._setupstate.teardown_exact(None)
        with suppress(BaseException):
            atexit._run_exitfuncs()
        os._exit(code)


def _sharing(item: pytest.Item, following: pytest.Item) -> pytest.Item | None:
    """The next test; None where a cluster or a browser ends with its group: they would go on
    working, and the loop of the browser's events lets no other run."""
    own, other = (group_of(one.nodeid.partition("::")[0]) for one in (item, following))
    return None if own in SHARED and own != other else following


def _be_alone(config: pytest.Config, name: str) -> None:
    """No more of the terminal, and folders and captured output of its own."""
    os.environ[NAME] = name
    plugins = config.pluginmanager
    plugins.unregister(name="terminalreporter")
    capturing = plugins.get_plugin("capturemanager")
    assert capturing is not None
    capturing.stop_global_capturing()
    capturing.start_global_capturing()
    folders: Any = config._tmp_path_factory
    folders._basetemp = folders.getbasetemp() / name
    folders._basetemp.mkdir(mode=0o700)


class _Reporter:
    """Sends the reports of a worker."""

    def __init__(self, config: pytest.Config, reports: Connection) -> None:
        self._config = config
        self._reports = reports

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        told = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._reports.send_bytes(pickle.dumps(told))
