"""Health checks: findings from the metrics that learners and scorers report.

    metrics of a step, by node ──> symptoms, each with its patience ──> findings, each with a hint

A finding is raised once its symptom has held for `patience` readings in a row, and cleared once the
symptom has been absent for as many. If a run ends before, symptoms with `holds_from_the_start` are
raised if they held in every reading.
"""

import copy
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from statistics import median
from typing import Any, Final

from coloop.runtime.health.symptoms import BY_CODE, SYMPTOMS, Level, Look, Metrics, Symptom
from coloop.spec.builtins import SCORE_TO_SCORE
from coloop.spec.graph import LoopSpec
from coloop.spec.nodes import EvaluateNode, RewardNode, VerifierNode

# The ground truth of a learner whose rewards do not come from checkers alone: if its reward rises
# while the ground truth falls, this is reward hacking. It is the accuracy or score of an evaluation
# on other rows by a checker without weights, else the checker's own mean score in the step.

TRUTH: Final = "truth"
"""Metric of a learner for the ground truth."""
CHECKERS: Final = frozenset({"task", "exact_match", "math_equal", "choice", "code_tests"})
"""Built-in rewards that check a text against a known answer or tests."""
TURNING: Final = frozenset({"one_minus", "band", "margin"})
"""Built-ins whose score can fall as the ground truth rises, which is no reward hacking."""
WHOLE: Final = ("accuracy", "score", "pass@1")
"""Metrics of an evaluation that can be the ground truth; the first that it has is used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    node: str
    metric: str


def truths_of(spec: LoopSpec) -> Mapping[str, Truth]:
    """The ground truth of each learner whose rewards do not come from checkers alone."""
    truths = {}
    for learner in spec.nodes:
        edges = spec.graph.edges_into(learner, "rewards")
        names = _scorers_between(spec, learner, {edge.source.node for edge in edges})
        scorers = {name for name in names if _builtin(spec, name) not in SCORE_TO_SCORE}
        if any(_builtin(spec, name) in TURNING for name in names):
            continue
        if not all(is_checker(spec, name) for name in scorers):
            truth = next(_truths(spec, learner), None)
            if truth is not None:
                truths[learner] = truth
    return truths


def is_checker(spec: LoopSpec, node: str) -> bool:
    """Whether a node checks the correctness of texts without weights."""
    section = spec.nodes[node]
    if isinstance(section, VerifierNode):
        return section.method in ("rule", "formal")
    return _builtin(spec, node) in CHECKERS


def _truths(spec: LoopSpec, learner: str) -> Iterator[Truth]:
    below = spec.graph.downstream([learner])
    for name, node in spec.nodes.items():
        measured = getattr(node, "metrics", ())
        metric = next((metric for metric in WHOLE if metric in measured), None)
        if not isinstance(node, EvaluateNode) or node.instead_of is None or metric is None:
            continue
        scorers = [edge.source.node for edge in spec.graph.edges_into(name, "scores")]
        for scorer in scorers:
            if is_checker(spec, scorer) and scorer in below:
                prefix = f"{scorer}." if len(scorers) > 1 else ""
                yield Truth(node=name, metric=f"{prefix}{metric}")
    for name in spec.nodes:
        if is_checker(spec, name) and any(
            edge.source.node == learner for edge in spec.graph.edges_into(name)
        ):
            yield Truth(node=name, metric="score/mean")


def _scorers_between(spec: LoopSpec, learner: str, sources: set[str]) -> set[str]:
    """Scorers on the way from the learner's texts to its rewards."""
    between = spec.graph.upstream(sources) & spec.graph.downstream([learner])
    return {name for name in between if isinstance(spec.nodes[name], RewardNode | VerifierNode)}


def _builtin(spec: LoopSpec, node: str) -> str | None:
    source = getattr(spec.nodes[node], "source", None)
    return getattr(source, "name", None) if getattr(source, "type", "") == "builtin" else None


PARTED = ("class_recall", "win_rate", "elo")
"""Metrics of an evaluation that have parts, e.g. `win_rate.actor`."""
NOTHING = "/none"
"""Suffix of metrics for the share of rows that yield nothing, e.g. `parse/none`."""
FIRST_READINGS = 5
"""The baseline and the current value are medians of so many readings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A learning problem of a node, or its recovery (`cleared`)."""

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
    """Readings in a row in which the symptom held."""
    well: int = 0
    """Readings in a row in which it did not hold."""
    shown: str = ""
    """Its description when it last held."""
    raised: Finding | None = None


class HealthChecks:
    def __init__(self, truths: Mapping[str, Truth] | None = None) -> None:
        self._truths = truths or {}
        self._fresh: dict[str, float] = {}
        """By learner, its latest ground truth, until its metrics are next examined."""
        self._heard: dict[str, dict[str, float]] = {}
        self._reasons: dict[str, dict[str, str]] = {}
        """By node and metric."""
        self._cases: dict[str, _Case] = {}
        self._first: dict[str, list[float]] = {}
        self._recent: dict[str, list[float]] = {}
        self._best: dict[str, float] = {}

    def hear(self, node: str, metrics: Metrics, reasons: Mapping[str, str] | None = None) -> None:
        """Record metrics of a node in the current step, with causes of abnormal values for
        messages. Of several rounds the last value counts, but of metrics that end in `/none` the
        smallest, as a last round may well yield nothing."""
        known = self._reasons.get(node, {}).items()
        kept = {name: why for name, why in known if name not in metrics}
        self._reasons[node] = {**kept, **(reasons or {})}
        heard = self._heard.setdefault(node, {})
        least = {
            name: heard[name] for name in metrics.keys() & heard.keys() if name.endswith(NOTHING)
        }
        heard.update(metrics)
        heard.update((name, min(value, metrics[name])) for name, value in least.items())

    def step_finished(self, step: int, phase: str) -> list[Finding]:
        """Findings that are raised or cleared after this step."""
        for node, metrics in self._heard.items():
            self._note_truth(node, metrics)
        findings: list[Finding] = []
        for node, metrics in self._heard.items():
            if node in self._fresh:
                metrics[TRUTH] = self._fresh.pop(node)
            findings += self._examined(node, metrics, step, phase, self._reasons[node])
        self._heard, self._reasons = {}, {}
        return findings

    def evaluated(self, node: str, metrics: Metrics, step: int, phase: str) -> list[Finding]:
        """Findings that an evaluation raises or clears; of several scorers, each has its own."""
        self._note_truth(node, metrics)
        return [
            finding
            for scorer, own_metrics in by_scorer(node, metrics).items()
            for finding in self._examined(scorer, own_metrics, step, phase, {})
        ]

    def _note_truth(self, node: str, metrics: Metrics) -> None:
        for learner, truth in self._truths.items():
            if truth.node == node and truth.metric in metrics:
                self._fresh[learner] = metrics[truth.metric]

    def _examined(
        self, node: str, metrics: Metrics, step: int, phase: str, reasons: Mapping[str, str]
    ) -> list[Finding]:
        look = self._look(f"{phase}/{node}", metrics, reasons)
        return [
            finding
            for symptom in SYMPTOMS
            if symptom.metric in metrics
            for finding in self._examine(symptom, node, phase, look, step)
        ]

    def run_finished(self, step: int) -> list[Finding]:
        """Symptoms that held in every reading of a run shorter than their patience."""
        findings = []
        for key, case in self._cases.items():
            phase_and_node, _, code = key.rpartition("/")
            symptom, node = BY_CODE[code], phase_and_node.rpartition("/")[2]
            always = 0 < case.streak == case.readings
            if symptom.holds_from_the_start and always and case.raised is None:
                case.raised = _finding(symptom, node, case.shown, case.streak, step)
                findings.append(case.raised)
        return findings

    @property
    def open(self) -> list[Finding]:
        return [case.raised for case in self._cases.values() if case.raised is not None]

    def _look(self, phase_and_node: str, metrics: Metrics, reasons: Mapping[str, str]) -> Look:
        start, first, recent, best = {}, {}, {}, {}
        for name, value in metrics.items():
            key = f"{phase_and_node}/{name}"
            baseline = self._first.setdefault(key, [])
            if len(baseline) < FIRST_READINGS:
                baseline.append(value)
            else:
                first[name] = median(baseline)
            start[name] = baseline[0]
            last = [*self._recent.get(key, ()), value][-FIRST_READINGS:]
            self._recent[key] = last
            recent[name] = median(last)
            best[name] = self._best[key] = max(recent[name], self._best.get(key, recent[name]))
        return Look(
            now=metrics, start=start, first=first, recent=recent, best=best, reasons=reasons
        )

    def _examine(
        self, symptom: Symptom, node: str, phase: str, look: Look, step: int
    ) -> Iterator[Finding]:
        case = self._cases.setdefault(f"{phase}/{node}/{symptom.code}", _Case())
        shown = symptom.shows(look)
        if shown is not None and symptom.metric in look.reasons:
            shown = f"{shown}: {look.reasons[symptom.metric]}"
        case.readings += 1
        if shown is None:
            case.streak, case.well = 0, case.well + 1
            if case.raised is not None and case.well >= symptom.patience:
                old = case.raised
                message = f"{old.node}: {old.metric} has recovered (reported in step {old.step})"
                yield replace(old, message=message, step=step, cleared=True)
                case.raised = None
            return
        case.streak, case.well, case.shown = case.streak + 1, 0, shown
        if case.streak >= symptom.patience and case.raised is None:
            case.raised = _finding(symptom, node, shown, case.streak, step)
            yield case.raised

    def state(self) -> dict[str, Any]:
        return {
            "cases": {key: asdict(case) for key, case in self._cases.items()},
            "first": copy.deepcopy(self._first),
            "recent": copy.deepcopy(self._recent),
            "best": dict(self._best),
            "truths": dict(self._fresh),
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        self._cases = {}
        for key, case in state["cases"].items():
            raised = None if case["raised"] is None else Finding(**case["raised"])
            self._cases[key] = _Case(**{**case, "raised": raised})
        self._first, self._recent = copy.deepcopy((state["first"], state["recent"]))
        self._best = dict(state.get("best", {}))
        self._fresh = dict(state.get("truths", {}))


def by_scorer(node: str, metrics: Metrics) -> dict[str, dict[str, float]]:
    """Metrics of an evaluation, by `node`, or by `node.scorer` if it has several scorers."""
    grouped: dict[str, dict[str, float]] = {}
    for name, value in metrics.items():
        scorer, _, rest = name.partition(".")
        is_one_of_several = rest != "" and scorer not in PARTED
        group, metric = (f"{node}.{scorer}", rest) if is_one_of_several else (node, name)
        grouped.setdefault(group, {})[metric] = value
    return grouped


def _finding(symptom: Symptom, node: str, shown: str, streak: int, step: int) -> Finding:
    times = "in one reading" if streak == 1 else f"in {streak} readings in a row"
    return Finding(
        code=symptom.code,
        level=symptom.level,
        node=node.partition(".")[0],
        metric=symptom.about or symptom.metric,
        message=f"{node}: {shown} ({times})",
        hint=symptom.hint,
        step=step,
    )
