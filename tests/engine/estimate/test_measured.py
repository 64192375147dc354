"""Corrections of predicted times by earlier runs on the same machine."""

import json
from dataclasses import replace

import pytest
from tests.engine.estimate.conftest import stage_of

from coloop.plan.cost import explain
from coloop.plan.settings.corrections import machine_name, timed_as
from coloop.plan.settings.measured import (
    KEPT,
    Correction,
    Timed,
    add_measured,
    measured_here,
)
from coloop.plan.unrolled import Unrolled

LEARN = Timed(machine="a", kind="learn", subject="tiny")


@pytest.fixture
def kept(tmp_path, monkeypatch):
    path = tmp_path / "measured.json"
    monkeypatch.setenv("COLOOP_MEASURED", str(path))
    return path


def test_a_stage_takes_the_median_of_its_own_ratios(kept):
    add_measured(measured_here(), [(LEARN, 2.0), (LEARN, 3.0), (LEARN, 2.5)])

    assert measured_here().correction(LEARN) == Correction(factor=2.5, runs=3, is_exact=True)


def test_another_model_takes_the_ratios_of_its_kind(kept):
    add_measured(measured_here(), [(LEARN, 2.0), (replace(LEARN, subject="wide"), 1.0)])

    other = replace(LEARN, subject="other")
    assert measured_here().correction(other) == Correction(factor=1.5, runs=2)
    assert measured_here().correction(replace(other, machine="b")) == Correction()
    assert measured_here().correction(replace(other, is_alike=False)) == Correction()


def test_only_the_last_ratios_are_kept_and_no_absurd_ones(kept):
    add_measured(measured_here(), [(LEARN, 1000.0), *((LEARN, 1.0 + i) for i in range(KEPT + 2))])

    ratios = json.loads(kept.read_text(encoding="utf-8"))["a"]["learn"]["tiny"]
    assert ratios == [3.0 + i for i in range(KEPT)]


@pytest.mark.parametrize(
    "text", ["", "[]", '{"a": {"learn": 3}}', '{"a": {"learn": {"tiny": "x"}}}']
)
def test_a_file_of_something_else_corrects_nothing_and_is_written_anew(kept, text):
    kept.write_text(text, encoding="utf-8")

    assert measured_here().correction(LEARN) == Correction()
    add_measured(measured_here(), [(LEARN, 2.0)])
    assert measured_here().correction(LEARN).factor == 2.0


def test_nothing_is_kept_where_it_is_switched_off(monkeypatch):
    monkeypatch.setenv("COLOOP_MEASURED", "off")

    assert measured_here() is None


def test_an_estimate_is_corrected_and_says_so(kept, tiny):
    loop = tiny()
    plain = explain(loop)
    survey = Unrolled(loop).settings().survey
    add_measured(
        measured_here(),
        [
            (timed_as(survey, "actor.learn"), 2.0),
            (timed_as(survey, "actor.generate"), 3.0),
        ],
    )

    found = explain(loop)

    before, after = (stage_of(one.estimate, "actor.learn") for one in (plain, found))
    assert after.seconds == pytest.approx(2 * before.seconds)
    assert {one.stage: (one.factor, one.runs) for one in found.corrections} == {
        "actor.learn": (2.0, 1),
        "actor.generate": (3.0, 1),
    }
    assert found.estimate.step_seconds > 2 * plain.estimate.step_seconds - 0.1


def test_python_is_corrected_by_runs_of_the_same_code_only(kept, tiny):
    def scored(body):
        code = f"def reward(prompts, completions, **columns): return {body}"
        return tiny(nodes={"exact": {"source": {"type": "python", "code": code, "name": None}}})

    survey = Unrolled(scored("[0.0]")).settings().survey
    add_measured(measured_here(), [(timed_as(survey, "exact.score"), 4.0)])

    same, other = (explain(scored(body)).corrections for body in ("[0.0]", "[1.0]"))
    assert [(one.stage, one.factor, one.is_same) for one in same] == [("exact.score", 4.0, True)]
    assert not other


def test_a_machine_is_named_by_hardware_and_versions(tiny, grpo):
    assert machine_name(Unrolled(tiny()).settings().survey).startswith("1 cores of ")
    assert machine_name(Unrolled(grpo()).settings().survey).startswith("8 GPUs of 8xH100")
