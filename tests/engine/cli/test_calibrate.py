"""`coloop calibrate`: a small loop, and what is kept of it."""

from math import inf

import pytest


@pytest.fixture
def store(tmp_path, monkeypatch):
    path = tmp_path / "measured.json"
    monkeypatch.setenv("COLOOP_MEASURED", str(path))
    monkeypatch.setattr("coloop.plan.settings.measured.BOUNDS", (0.0, inf))  # on a busy machine
    return path


def test_a_small_loop_corrects_later_predictions(coloop, store):
    found = coloop("calibrate", "--json").json["measured_over_predicted"]

    assert {"actor.generate", "actor.learn", "start.score", "actor.sync"} <= found.keys()
    before = store.read_bytes()
    assert coloop("calibrate", "--if-missing", "--json").json["measured_over_predicted"] == found
    assert store.read_bytes() == before


def test_a_store_that_is_switched_off_is_named(coloop, monkeypatch):
    monkeypatch.setenv("COLOOP_MEASURED", "off")

    done = coloop("calibrate")

    assert done.code != 0
    assert "COLOOP_MEASURED" in done.err
