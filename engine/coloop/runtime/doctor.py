"""The learning doctor: reads the metrics that learners and scorers report, and says when a run goes
on without learning what it should.

    metrics of a step, by node ──> symptoms, each with its patience ──> findings, each with a hint

A symptom is raised once when it has held for its patience, and cleared when it has stayed away as
long; after that it can be raised again. At the end of a run that was shorter than a patience, what
held in every single reading is raised all the same. Pure: it knows no events, roles or machines.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from statistics import median
from typing import Any

from coloop.runtime.symptoms import BY_CODE, SYMPTOMS, Level, Look, Metrics, Symptom

FIRST_READINGS = 5
"""Readings that make the number that later ones are compared with, and those that count as now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something is wrong with what a node learns, or no longer is."""

    code: str
    level: Level
    node: str
    metric: str
    message: str
    hint: str
    step: int
    cleared: bool = False


@dataclass(slots=True, kw_only=True)
class _Case:
    """One symptom at one node in one phase."""

    readings: int = 0
    streak: int = 0
    """Readings in a row in which it held."""
    well: int = 0
    """Readings in a row in which it did not."""
    shown: str = ""
    """How it showed last."""
    raised: Finding | None = None


class Doctor:
    """See the module."""

    def __init__(self) -> None:
        self._heard: dict[str, dict[str, float]] = {}
        self._cases: dict[str, _Case] = {}
        self._first: dict[str, list[float]] = {}
        self._recent: dict[str, list[float]] = {}

    def hear(self, node: str, metrics: Metrics) -> None:
        """Readings of a node in the step at hand."""
        self._heard.setdefault(node, {}).update(metrics)

    def step_finished(self, step: int, phase: str) -> list[Finding]:
        """What is new after this step: findings that are raised, and that are cleared."""
        found: list[Finding] = []
        for node, metrics in self._heard.items():
            look = self._look(f"{phase}/{node}", metrics)
            for symptom in SYMPTOMS:
                if symptom.metric in metrics:
                    found += self._examine(symptom, node, phase, look, step)
        self._heard = {}
        return found

    def run_finished(self, step: int) -> list[Finding]:
        """What held in every reading of a run that was too short for its patience."""
        found = []
        for key, case in self._cases.items():
            symptom, node = self._place(key)
            always = 0 < case.streak == case.readings
            if symptom.holds_from_the_start and always and case.raised is None:
                case.raised = _finding(symptom, node, case.shown, case.streak, step)
                found.append(case.raised)
        return found

    @property
    def open(self) -> list[Finding]:
        """What was raised and has not been cleared."""
        return [case.raised for case in self._cases.values() if case.raised is not None]

    def _look(self, place: str, metrics: Metrics) -> Look:
        """The readings beside those before them in the same phase."""
        start, first, recent = {}, {}, {}
        for name, value in metrics.items():
            key = f"{place}/{name}"
            begin = self._first.setdefault(key, [])
            if len(begin) < FIRST_READINGS:
                begin.append(value)
            else:
                first[name] = median(begin)
            start[name] = begin[0]
            last = [*self._recent.get(key, ()), value][-FIRST_READINGS:]
            self._recent[key] = last
            recent[name] = median(last)
        return Look(now=metrics, start=start, first=first, recent=recent)

    def _examine(
        self, symptom: Symptom, node: str, phase: str, look: Look, step: int
    ) -> Iterator[Finding]:
        case = self._cases.setdefault(f"{phase}/{node}/{symptom.code}", _Case())
        shown = symptom.shows(look)
        case.readings += 1
        if shown is None:
            case.streak, case.well = 0, case.well + 1
            if case.raised is not None and case.well >= symptom.patience:
                yield _cleared(case.raised, step)
                case.raised = None
            return
        case.streak, case.well, case.shown = case.streak + 1, 0, shown
        if case.streak >= symptom.patience and case.raised is None:
            case.raised = _finding(symptom, node, shown, case.streak, step)
            yield case.raised

    def _place(self, key: str) -> tuple[Symptom, str]:
        place, _, code = key.rpartition("/")
        return BY_CODE[code], place.rpartition("/")[2]

    def state(self) -> dict[str, Any]:
        return {
            "cases": {key: asdict(case) for key, case in self._cases.items()},
            "first": {key: list(values) for key, values in self._first.items()},
            "recent": {key: list(values) for key, values in self._recent.items()},
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Go on with the streaks and comparisons of an earlier attempt."""
        self._cases = {key: _case_of(plain) for key, plain in state["cases"].items()}
        self._first = {key: list(values) for key, values in state["first"].items()}
        self._recent = {key: list(values) for key, values in state["recent"].items()}


def _case_of(plain: Mapping[str, Any]) -> _Case:
    raised = None if plain["raised"] is None else Finding(**plain["raised"])
    return _Case(**{**plain, "raised": raised})


def _finding(symptom: Symptom, node: str, shown: str, streak: int, step: int) -> Finding:
    times = "in one reading" if streak == 1 else f"in {streak} readings in a row"
    return Finding(
        code=symptom.code,
        level=symptom.level,
        node=node,
        metric=symptom.metric,
        message=f"{node}: {shown} ({times})",
        hint=symptom.hint,
        step=step,
    )


def _cleared(finding: Finding, step: int) -> Finding:
    message = f"{finding.node}: {finding.metric} is well again (told in step {finding.step})"
    return replace(finding, message=message, step=step, cleared=True)
