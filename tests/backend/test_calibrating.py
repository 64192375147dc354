"""The machine is measured once, beside the server."""

import threading

import pytest

from coloop.plan.settings.corrections import processor_name
from coloop.plan.settings.measured import Timed, add_measured, measured_here
from coloop.plan.settings.processor import processor_here
from coloop_server import calibrating


@pytest.fixture
def started(tmp_path, monkeypatch):
    """The commands that are started, in place of processes that run for ten seconds."""
    monkeypatch.setenv("COLOOP_MEASURED", str(tmp_path / "measured.json"))
    commands, began = [], threading.Event()

    class Process:
        pid = 0

        def __init__(self, command, **options):
            commands.append(command[1:])
            self.code = None
            began.set()

        def poll(self):
            return self.code

        def terminate(self):
            self.code = -15

        def wait(self):
            return self.code

    monkeypatch.setattr(calibrating.subprocess, "Popen", Process)
    monkeypatch.setattr(calibrating.os, "setpriority", lambda *_: None)
    return commands, began


def test_an_unknown_machine_is_measured_and_the_process_ends_with_the_server(started):
    commands, began = started

    with calibrating.calibrated(seconds=0.0):
        assert began.wait(30)

    assert commands == [["-m", "coloop", "calibrate", "--if-missing", "--json"]]


def test_a_server_that_ends_soon_starts_nothing(started):
    with calibrating.calibrated(seconds=1000.0):
        pass

    assert started[0] == []


def test_a_known_machine_is_not_measured_again(started):
    machine = processor_name(processor_here())
    add_measured(measured_here(), [(Timed(machine=machine, kind="learn", subject="x"), 1.0)])

    with calibrating.calibrated(seconds=0.0):
        pass

    assert started[0] == []


def test_nothing_is_measured_where_it_is_switched_off(started, monkeypatch):
    monkeypatch.setenv("COLOOP_MEASURED", "off")

    with calibrating.calibrated(seconds=0.0):
        pass

    assert started[0] == []
