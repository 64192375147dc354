"""Health checks on learning: reads the metrics that learners and scorers report, and reports when a
run does not learn what it should.

    metrics of a step, by node ──> symptoms, each with its patience ──> findings, each with a hint

A symptom is raised once when it has held for its patience, and cleared when it has stayed away as
long; after that it can be raised again. At the end of a run that was shorter than a patience, what
held in every single reading is raised all the same. Pure: it knows no events, roles or machines.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import median
from typing import Any, Final

from coloop.errors import NothingLearned
from coloop.runtime.health.symptoms import BY_CODE, SYMPTOMS, Level, Look, Metrics, Symptom
from coloop.spec.builtins import SCORE_TO_SCORE
from coloop.spec.graph import LoopSpec
from coloop.spec.nodes import EvaluateNode, RewardNode, VerifierNode

# Which reading says how right a learner is, where something else than that is what it learns
# from: a reward can rise while the truth falls, and then it is gamed.
#
# The truth is what a checker without weights says of the learner's texts: the accuracy or score
# of an evaluation on other rows, else the checker's own mean score of the step.

TRUTH: Final = "truth"
"""The name under which a learner's symptoms find the reading."""
CHECKERS: Final = frozenset({"task", "exact_match", "math_equal", "choice", "code_tests"})
"""Built-in rewards that compare with an answer."""
TURNING: Final = frozenset({"one_minus", "band", "margin"})
"""Built-ins whose score falls where the truth rises: who learns from them may want it to fall."""
WHOLE: Final = ("accuracy", "score", "pass@1")
"""Metrics of an evaluation that say how right texts are, the first that it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """A reading."""

    node: str
    metric: str


def truths_of(spec: LoopSpec) -> Mapping[str, Truth]:
    """By learner of rewards that are not a checker's alone."""
    found = {}
    for learner in spec.nodes:
        edges = spec.graph.edges_into(learner, "rewards")
        names = _scorers_between(spec, learner, {edge.source.node for edge in edges})
        if any(_builtin(spec, name) in TURNING for name in names):
            continue
        if any(
            _builtin(spec, name) not in SCORE_TO_SCORE and not is_checker(spec, name)
            for name in names
        ):
            truth = next(_truths(spec, learner), None)
            if truth is not None:
                found[learner] = truth
    return found


def is_checker(spec: LoopSpec, node: str) -> bool:
    """Whether a node compares texts with what is right, without weights."""
    section = spec.nodes[node]
    if isinstance(section, VerifierNode):
        return section.method in ("rule", "formal")
    return _builtin(spec, node) in CHECKERS


def _truths(spec: LoopSpec, learner: str) -> Iterator[Truth]:
    below = spec.graph.downstream([learner])
    for name, node in spec.nodes.items():
        metric = next((one for one in WHOLE if one in getattr(node, "metrics", ())), None)
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
    """Scorers of what the learner writes, on the way to its rewards."""
    between = spec.graph.upstream(sources) & spec.graph.downstream([learner])
    return {name for name in between if isinstance(spec.nodes[name], RewardNode | VerifierNode)}


def _builtin(spec: LoopSpec, node: str) -> str | None:
    source = getattr(spec.nodes[node], "source", None)
    return getattr(source, "name", None) if getattr(source, "type", "") == "builtin" else None


PARTED = ("class_recall", "win_rate", "elo")
"""Metrics of an evaluation that have parts, `win_rate.actor`."""
NOTHING = "/none"
"""How the names of shares of rows end that come to nothing, `parse/none`."""
FIRST_READINGS = 5
"""Readings that make the number that later ones are compared with, and those that count as now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A problem with what a node learns, or its end."""

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


class HealthChecks:
    """Findings of a run, from the metrics of its steps and evaluations."""

    def __init__(self, truths: Mapping[str, Truth] | None = None) -> None:
        self._truths = truths or {}
        self._fresh: dict[str, float] = {}
        """By learner, what was read of its truth since its last readings."""
        self._heard: dict[str, dict[str, float]] = {}
        self._reasons: dict[str, dict[str, str]] = {}
        """By node and metric."""
        self._cases: dict[str, _Case] = {}
        self._first: dict[str, list[float]] = {}
        self._recent: dict[str, list[float]] = {}
        self._best: dict[str, float] = {}

    def hear(self, node: str, metrics: Metrics, reasons: Mapping[str, str] | None = None) -> None:
        """Readings of a node in the step at hand: of each of its rounds, of which the last counts;
        of shares of rows that come to nothing the least, as a last round may well have none.

        Args:
            reasons: by metric, why it is not as it should be: said with what it shows.
        """
        kept = self._reasons.get(node, {}).items()
        self._reasons[node] = {name: why for name, why in kept if name not in metrics}
        self._reasons[node].update(reasons or {})
        known = self._heard.setdefault(node, {})
        least = {
            name: known[name] for name in metrics.keys() & known.keys() if name.endswith(NOTHING)
        }
        known.update(metrics)
        known.update((name, min(value, metrics[name])) for name, value in least.items())

    def step_finished(self, step: int, phase: str) -> list[Finding]:
        """What is new after this step: findings that are raised, and that are cleared."""
        for node, metrics in self._heard.items():
            self._note_truth(node, metrics)
        found: list[Finding] = []
        for node, metrics in self._heard.items():
            if node in self._fresh:
                metrics[TRUTH] = self._fresh.pop(node)
            found += self._examined(node, metrics, step, phase, self._reasons[node])
        self._heard, self._reasons = {}, {}
        return found

    def evaluated(self, node: str, metrics: Metrics, step: int, phase: str) -> list[Finding]:
        """What is new after an evaluation; with several scorers each is looked at for itself."""
        self._note_truth(node, metrics)
        return [
            finding
            for who, own in by_scorer(node, metrics).items()
            for finding in self._examined(who, own, step, phase, {})
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
        """What held in every reading of a run that was too short for its patience."""
        found = []
        for key, case in self._cases.items():
            place, _, code = key.rpartition("/")
            symptom, node = BY_CODE[code], place.rpartition("/")[2]
            always = 0 < case.streak == case.readings
            if symptom.holds_from_the_start and always and case.raised is None:
                case.raised = _finding(symptom, node, case.shown, case.streak, step)
                found.append(case.raised)
        return found

    @property
    def open(self) -> list[Finding]:
        return [case.raised for case in self._cases.values() if case.raised is not None]

    def _look(self, place: str, metrics: Metrics, reasons: Mapping[str, str]) -> Look:
        start, first, recent, best = {}, {}, {}, {}
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
            "first": {key: list(values) for key, values in self._first.items()},
            "recent": {key: list(values) for key, values in self._recent.items()},
            "best": dict(self._best),
            "truths": dict(self._fresh),
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        self._cases = {key: _case_of(plain) for key, plain in state["cases"].items()}
        self._first = {key: list(values) for key, values in state["first"].items()}
        self._recent = {key: list(values) for key, values in state["recent"].items()}
        self._best = dict(state.get("best", {}))
        self._fresh = dict(state.get("truths", {}))


def by_scorer(node: str, metrics: Metrics) -> dict[str, dict[str, float]]:
    """Readings of an evaluation by `node`, or `node.scorer` where several scorers are read."""
    found: dict[str, dict[str, float]] = {}
    for name, value in metrics.items():
        scorer, _, rest = name.partition(".")
        is_one_of_several = rest != "" and scorer not in PARTED
        who, own = (f"{node}.{scorer}", rest) if is_one_of_several else (node, name)
        found.setdefault(who, {})[own] = value
    return found


def _case_of(plain: Mapping[str, Any]) -> _Case:
    raised = None if plain["raised"] is None else Finding(**plain["raised"])
    return _Case(**{**plain, "raised": raised})


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


# Notices that a run turns without learning: steps in a row in which no goal came any nearer.
#
# A goal is a learn stage or the write of a buffer. A step without any (every learner pauses) says
# nothing. The alerts of the last step tell why.

LONGEST_IDLE_STEPS = 20


class Idleness:
    """How many steps went by without a goal that came nearer."""

    def __init__(self) -> None:
        self.steps = 0
        """In a row up to now; a run that ended for them and goes on has as many again."""

    def step_finished(
        self, step: int, phase: str, goals: Sequence[tuple[str, bool]], alerts: Sequence[str]
    ) -> None:
        """Count the step; raises `NothingLearned` after too many idle ones.

        Args:
            goals: the learn and write stages of the step, and whether each was idle.
            alerts: what the step told: perhaps the reason.
        """
        if not goals:
            return
        if not all(is_idle for _, is_idle in goals):
            self.steps = 0
            return
        self.steps += 1
        if self.steps >= LONGEST_IDLE_STEPS:
            self.steps = 0
            stages = ", ".join(stage for stage, _ in goals)
            reasons = "; ".join(dict.fromkeys(alerts))
            raise NothingLearned(
                f"{stages} had no effect in {LONGEST_IDLE_STEPS} steps in a row, up to step {step} "
                f"of phase {phase}" + (f": {reasons}" if reasons else "")
            )
