"""Arms of a comparison: a loop, its controls, and their runs over seeds.

`run.control` in the loop of a run says which run it is compared with and by which kind; so the
relation is in the run folder, whoever started the run.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coloop.errors import ControlRefused, SpecUnreadable
from coloop.explain.controls.derive import CONTROL_KINDS, Control, beginning, control_of
from coloop.explain.controls.roles import roles_of
from coloop.spec import presets
from coloop.spec.diagnostics import Change
from coloop.spec.graph import LoopSpec
from coloop.spec.io import load, parse, require
from coloop.spec.placement import ControlKind

SPEC_FILE = "spec.yaml"
ABLATIONS: tuple[ControlKind, ...] = ("frozen", "no_tool", "no_filter")
"""Kinds that leave out one part of a loop; the first that a loop has is its ablation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmLoop:
    """The loop of one arm."""

    kind: ControlKind
    says: str
    """What was changed, in a sentence."""
    text: str
    spec: LoopSpec
    metric: str | None
    """`node.metric` by which the arms are compared, under its name in this loop."""
    begins: str | None
    """The phase in which the arms begin to differ; None: the whole run."""
    changes: tuple[Change, ...] = ()


def arm_of(
    text: str, kind: ControlKind, *, learner: str | None = None, root: Path | None = None
) -> ArmLoop:
    """One arm of a loop that is valid.

    Args:
        learner: the main learner; None: the one that the loop's main metric measures.
        root: folder of the loop's files.

    Raises:
        ControlRefused: there is no control of this kind.
        SpecProblem: the text cannot be read.
    """
    spec = require(parse(text))
    if kind == "full":
        roles = roles_of(spec, learner)
        return ArmLoop(
            kind=kind,
            says="The whole loop.",
            text=text,
            spec=spec,
            metric=roles.metric,
            begins=beginning(roles, spec),
        )
    control = control_of(spec, kind, learner=learner, root=root)
    return as_arm(text, control)


def as_arm(text: str, control: Control) -> ArmLoop:
    return ArmLoop(
        kind=control.kind,
        says=control.says,
        text=presets.patched(text, control.changes),
        spec=control.spec,
        metric=control.metric,
        begins=control.begins,
        changes=control.changes,
    )


def arms_of_preset(
    name: str, kinds: Sequence[ControlKind] = (), *, learner: str | None = None
) -> Mapping[ControlKind, ArmLoop]:
    """The arms of a preset: the loop itself, its ablation and its controls.

    Args:
        kinds: the controls; empty: every kind that the preset has.

    Raises:
        ControlRefused: a kind of `kinds` makes no sense for the preset.
        PresetNotFound
    """
    text = presets.load_loop_text(name)
    root = presets.presets_root() / "loops"
    arms: dict[ControlKind, ArmLoop] = {"full": arm_of(text, "full", learner=learner)}
    for kind in kinds or CONTROL_KINDS:
        try:
            arms[kind] = arm_of(text, kind, learner=learner, root=root)
        except ControlRefused:
            if kinds:
                raise
    return arms


def ablation_of(arms: Mapping[ControlKind, ArmLoop]) -> ArmLoop | None:
    """The arm that leaves out one part: a partner's learning, a tool or a filter."""
    return next((arms[kind] for kind in ABLATIONS if kind in arms), None)


def seeded(arm: ArmLoop, *, seed: int, of: str | None = None, learner: str | None = None) -> str:
    """The text of one run of an arm.

    Args:
        of: the run that it is compared with, for `run.control`; None: it is not recorded.
        learner: the main learner that was asked for.
    """
    changes: list[dict[str, Any]] = [{"op": "set", "path": "run.seed", "value": seed}]
    if of is not None:
        relation = {"of": of, "kind": arm.kind}
        if learner is not None:
            relation["learner"] = learner
        changes.append({"op": "set", "path": "run.control", "value": relation})
    return presets.patched(arm.text, changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmRun:
    """A run of an arm that is in a folder."""

    folder: Path
    kind: ControlKind
    learner: str | None
    seed: int
    spec: LoopSpec

    @property
    def run(self) -> str:
        """Id of the run."""
        return self.folder.name


def runs_of(of: str, runs_dir: Path) -> Iterator[ArmRun]:
    """The runs in a folder that are compared with a run, by name."""
    for path in sorted(runs_dir.glob(f"*/{SPEC_FILE}")):
        with suppress(OSError, SpecUnreadable, UnicodeDecodeError):
            if of not in path.read_text(encoding="utf-8"):
                continue
            spec = load(path)
            relation = spec.run.control
            if relation is not None and relation.of == of:
                yield ArmRun(
                    folder=path.parent,
                    kind=relation.kind,
                    learner=relation.learner,
                    seed=spec.run.seed,
                    spec=spec,
                )
