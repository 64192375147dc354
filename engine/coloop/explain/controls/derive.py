"""Derives the control loops of a loop, each checked before it is offered."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from coloop.errors import ControlRefused
from coloop.explain.controls.draft import Draft
from coloop.explain.controls.frozen import Edit, frozen_edits
from coloop.explain.controls.parts import toolless_edits, unfiltered_edits
from coloop.explain.controls.plain import plain_edits
from coloop.explain.controls.roles import Roles, roles_of
from coloop.explain.controls.scores import judged_edits, shuffled_edits
from coloop.plan.run_check import check_run
from coloop.spec.changes import diff
from coloop.spec.diagnostics import Change, Diagnostic
from coloop.spec.graph import LoopSpec
from coloop.spec.io import from_dict, to_dict
from coloop.spec.nodes import EvaluateNode
from coloop.spec.placement import ControlKind as ControlKind
from coloop.validate import validate

CONTROL_KINDS: tuple[ControlKind, ...] = tuple(
    kind for kind in get_args(ControlKind) if kind != "full"
)

MEANINGS: Mapping[ControlKind, str] = {
    "full": "The whole loop.",
    "frozen": "The partners of the main learner do not learn.",
    "shuffled": "Scores reach other rows of the step.",
    "plain": "The same updates and data without the partners.",
    "constant": "Every learned judge gives one number to all rows.",
    "random": "Every learned judge is a coin.",
    "no_tool": "The main learner calls no tool.",
    "no_filter": "Every row passes the filters.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """A loop that differs from another one by what it is to be compared in."""

    kind: ControlKind
    learner: str
    """The main learner."""
    says: str
    """What was changed, in a sentence."""
    changes: tuple[Change, ...]
    """The changes to the loop's document."""
    spec: LoopSpec
    metric: str | None
    """The metric of this loop that compares with that of the loop that it was made from."""
    begins: str | None
    """The phase with which what is compared begins; None: the whole run."""


def control_of(
    spec: LoopSpec, kind: ControlKind, *, learner: str | None = None, root: Path | None = None
) -> Control:
    """A control of a valid loop.

    Args:
        learner: the main learner; None: the one that the loop's main metric measures.
        root: folder of the loop's files.

    Raises:
        ControlRefused: the kind makes no sense for this loop; the message says what was found.
    """
    roles = roles_of(spec, learner)
    problem: str | None = None
    for edit in _edits(roles, kind):
        draft = Draft(spec)
        try:
            says = edit(draft)
        except ControlRefused as refused:
            problem = problem or str(refused)
            continue
        probe = (roles.metric or "").partition(".")[0]
        if roles.metric is not None and probe not in draft.nodes:
            problem = problem or f"`{roles.metric}`, by which runs are compared, would be gone"
            continue
        _rename_metrics(roles, draft)
        document = draft.finish()
        parsed = from_dict(document)
        begins = roles.begins
        if parsed.spec is not None and begins is not None and not begins.is_whole:
            left = {phase.name for phase in parsed.spec.schedule.flat_phases()}
            if begins.name not in left:
                problem = problem or f"nothing would be left to train in phase `{begins.name}`"
                continue
        findings = list(parsed.diagnostics) if parsed.spec is None else _errors(parsed.spec, root)
        if findings:  # what is wrong with the loop itself is no reason against its controls
            known = {(one.code, one.node) for one in _errors(spec, root)}
            findings = [one for one in findings if (one.code, one.node) not in known]
        if parsed.spec is not None and not findings:
            changes = tuple(diff(to_dict(spec), to_dict(parsed.spec)))
            return Control(
                kind=kind,
                learner=roles.main,
                says=f"{says[0].upper()}{says[1:]}.",
                changes=changes,
                spec=parsed.spec,
                metric=metric_in(roles, parsed.spec),
                begins=beginning(roles, parsed.spec),
            )
        problem = problem or f"the changed loop would not run: {findings[0].describe()}"
    raise ControlRefused(f"no `{kind}` control of `{roles.main}`: {problem}", roles.main)


def controls_of(
    spec: LoopSpec, *, learner: str | None = None, root: Path | None = None
) -> Iterator[tuple[ControlKind, Control | ControlRefused]]:
    """Every kind with its control, or why there is none."""
    for kind in CONTROL_KINDS:
        try:
            yield kind, control_of(spec, kind, learner=learner, root=root)
        except ControlRefused as refused:
            yield kind, refused


def beginning(roles: Roles, spec: LoopSpec) -> str | None:
    """The phase in which the loops begin to differ: the one with which training together begins,
    else the last that trains the main learner; None if the schedule has no phases, or `spec` lacks
    that phase."""
    phases = [phase for phase in roles.phases if not phase.is_whole]
    mine = [phase for phase in phases if any(node == roles.main for node, _ in phase.live)]
    chosen = roles.begins if roles.begins is not None else next(reversed(mine), None)
    names = {phase.name for phase in spec.schedule.flat_phases()}
    return chosen.name if chosen is not None and chosen.name in names else None


def _edits(roles: Roles, kind: ControlKind) -> Iterator[Edit]:
    coin = {"type": "builtin", "name": "coin"}
    half = {"type": "builtin", "name": "constant", "value": 0.5}
    edits: Mapping[ControlKind, Callable[[], Iterator[Edit]]] = {
        "frozen": lambda: frozen_edits(roles),
        "shuffled": lambda: shuffled_edits(roles),
        "plain": lambda: plain_edits(roles),
        "constant": lambda: judged_edits(roles, "constant", half, "the same number for every row"),
        "random": lambda: judged_edits(roles, "random", coin, "a coin for every row"),
        "no_tool": lambda: toolless_edits(roles),
        "no_filter": lambda: unfiltered_edits(roles),
    }
    if kind not in edits:
        raise ControlRefused("`full` is the loop itself, and no control of it", roles.main)
    return edits[kind]()


def _errors(spec: LoopSpec, root: Path | None) -> list[Diagnostic]:
    """What a run of a loop would be refused for."""
    report = validate(spec, root=root)
    errors = [finding for finding in report.errors if finding.code != "memory.over_budget"]
    return errors or list(check_run(spec, root=root).refusals)


def metric_in(roles: Roles, spec: LoopSpec) -> str | None:
    """The main metric under its name in an arm of the loop."""
    if roles.metric is None:
        return None
    probe = roles.metric.partition(".")[0]
    left = {edge.source.node for edge in spec.graph.edges_into(probe, "scores")}
    return _renamed(roles.spec, roles.metric, left)


def _renamed(spec: LoopSpec, metric: str, left: set[str]) -> str:
    """A metric of an evaluation that has only these scorers left; with one it is `node.metric`."""
    probe, _, rest = metric.partition(".")
    scorer, _, word = rest.partition(".")
    is_probe = isinstance(spec.nodes.get(probe), EvaluateNode) and word != ""
    return f"{probe}.{word}" if is_probe and left == {scorer} else metric


def _rename_metrics(roles: Roles, draft: Draft) -> None:
    """Names metrics in triggers and `run.best` as the changed evaluations report them."""

    def renamed(metric: str) -> str:
        edges = draft.edges_into(metric.partition(".")[0], "scores")
        left = {edge["from"].partition(".")[0] for edge in edges}
        return _renamed(roles.spec, metric, left)

    for trigger in draft.schedule.get("triggers", ()):
        trigger["when"]["metric"] = renamed(trigger["when"]["metric"])
    run = draft.document.get("run", {})
    if run.get("best") is not None:
        run["best"] = renamed(run["best"])
