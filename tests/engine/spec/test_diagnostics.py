"""Diagnostics, reports and errors: shapes that everything else relies on."""

from __future__ import annotations

import inspect
import json
import pickle

import pytest

from coloop import errors
from coloop.spec.diagnostics import CODES, Diagnostic, Report, Severity, closest, did_you_mean
from coloop.spec.io import from_dict, parse


def test_a_code_that_is_not_listed_is_refused() -> None:
    with pytest.raises(ValueError, match="not listed"):
        Diagnostic(code="made.up", message="x")


def test_a_place_is_inside_of_its_node_or_a_full_path() -> None:
    inside = Diagnostic(code="yaml.syntax", message="x", node="actor", field="rollout.top_p")
    whole = Diagnostic(code="yaml.syntax", message="x", field="edges.3")

    assert inside.path == "nodes.actor.rollout.top_p"
    assert whole.path == "edges.3"
    assert Diagnostic(code="yaml.syntax", message="x", node="actor").path == "nodes.actor"
    assert Diagnostic(code="yaml.syntax", message="x").path is None


def test_a_report_is_ok_without_errors() -> None:
    warning = Diagnostic(code="yaml.syntax", message="x", severity=Severity.WARNING)
    error = Diagnostic(code="yaml.syntax", message="x")

    assert Report(diagnostics=(warning,)).ok
    assert not Report(diagnostics=(warning, error)).ok
    assert Report(diagnostics=(warning, error)).errors == (error,)
    assert Report(diagnostics=(warning, error)).warnings == (warning,)


def test_a_report_has_the_shape_of_the_command_line() -> None:
    shown = Report(diagnostics=(Diagnostic(code="yaml.syntax", message="x", line=2),)).to_json()

    assert json.loads(json.dumps(shown)) == shown
    assert shown["ok"] is False
    assert {"code", "severity", "message", "hint", "node", "field"} <= set(shown["diagnostics"][0])


def test_a_finding_reads_well_on_one_line() -> None:
    found = Diagnostic(
        code="yaml.syntax", message="broken", hint="mend it", field="edges.0", line=3, column=5
    )

    assert found.describe() == "3:5: error: edges.0: broken (mend it) [yaml.syntax]"


def test_every_code_is_dotted_and_documented() -> None:
    assert all(code.count(".") == 1 and text.endswith(".") for code, text in CODES.items())


@pytest.mark.parametrize(
    ("word", "options", "hint"),
    [
        ("temprature", ["temperature", "top_p"], "did you mean `temperature`?"),
        ("ACTOR", ["actor", "critic"], "did you mean `actor`?"),
        ("zzz", ["actor", "critic"], "known: actor, critic"),
        ("zzz", [str(number) for number in range(100)], None),
        ("zzz", [], None),
        ("step", ["steps", "max_steps"], "did you mean `steps`?"),
    ],
)
def test_what_was_meant_is_found(word: str, options: list[str], hint: str | None) -> None:
    assert did_you_mean(word, options) == hint


def test_the_closest_words_come_first() -> None:
    assert closest("step", ["max_steps", "steps", "epochs"])[0] == "steps"


@pytest.mark.parametrize(
    "error",
    [
        cls("words")
        for _, cls in inspect.getmembers(errors, inspect.isclass)
        if issubclass(cls, errors.ColoopError)
    ],
    ids=lambda error: type(error).__name__,
)
def test_every_error_travels_between_processes(error: errors.ColoopError) -> None:
    again = pickle.loads(pickle.dumps(error))

    assert type(again) is type(error)
    assert (str(again), again.args) == ("words", error.args)
    assert again.code


def test_errors_keep_what_they_carry() -> None:
    found = (Diagnostic(code="yaml.syntax", message="x"),)
    user = errors.UserCodeError("broken", node="exact", row=3, traceback="...")

    assert pickle.loads(pickle.dumps(errors.PlanRefused("no", found))).diagnostics == found
    again = pickle.loads(pickle.dumps(user))
    assert (again.node, again.row, again.traceback) == ("exact", 3, "...")


def test_findings_of_later_checks_get_their_line(small: str) -> None:
    parsed = parse(small)
    found = Diagnostic(code="structure.conflict", message="x", node="actor", field="rollout.top_p")
    edge = Diagnostic(code="structure.conflict", message="x", field="edges.outcome.weight")

    assert parsed.locate(found).line == 9
    assert parsed.locate(edge).line == 18
    assert parsed.locate(Diagnostic(code="structure.conflict", message="x")).line is None
    assert from_dict(parsed.document).locate(found).line is None


@pytest.mark.parametrize(
    ("document", "code"),
    [
        ([1], "yaml.not_a_mapping"),
        ({"coloop": 1, "x": float("inf")}, "yaml.not_finite"),
        ({"coloop": 1, "x": 10**30}, "yaml.not_finite"),
        ({"coloop": 1, 3: "x"}, "yaml.key"),
        ({"coloop": 1, "x": "\ud800"}, "yaml.character"),
        ({"coloop": 1, "\ud800": 1}, "yaml.character"),
        ({"coloop": 1, "x": object()}, "structure.wrong_type"),
        ({"coloop": 1, "x": [0] * 60_000}, "yaml.too_many_values"),
    ],
)
def test_plain_data_is_held_to_the_limits_of_text(document: object, code: str) -> None:
    (found,) = from_dict(document).diagnostics

    assert found.code == code
    found.describe().encode("utf-8")


def test_plain_data_may_not_be_too_deep() -> None:
    deep: object = 1
    for _ in range(5000):
        deep = {"phases": [deep]}

    (found,) = from_dict({"coloop": 1, "schedule": deep}).diagnostics

    assert (found.code, found.field) == ("yaml.too_deep", "schedule.phases.0")
