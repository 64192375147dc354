"""`coloop control`: runs of a loop and of its controls over seeds, one after another, and a table.

Every run has a folder of its own, `<run>-<kind>-<seed>`: a finished one is not run again, one that
was interrupted continues from its last checkpoint. Exit codes: 0 all runs have finished, 1 the loop
has no such control or cannot run, 2 it cannot be read, 3 a run failed, 130 it was stopped.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from coloop.cli.app import Json, RunsDir, Settings
from coloop.cli.check import UNREADABLE, Source, read_source, with_settings
from coloop.cli.group import PlannedRun, RunOptions, run_missing, state_of
from coloop.cli.output import console, fail, print_json, print_refusal, table_of
from coloop.cli.run import checked_loop
from coloop.errors import ColoopError, ControlRefused, LoopRefused, SpecUnreadable
from coloop.explain.controls import (
    CONTROL_KINDS,
    Arm,
    ArmLoop,
    Comparison,
    ControlKind,
    Curve,
    arm_of,
    curve_of,
    runs_of,
    seeded,
)
from coloop.runtime.checkpoints.run_folder import read_base_folder
from coloop.runtime.run_files.event_file import EVENT_FILE, events_of
from coloop.runtime.run_files.events import RunStateName
from coloop.sandbox.inside.kernel import keep_private
from coloop.spec.io import content_hash, load

HASH_DIGITS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What controls are made of: a finished run, or a loop."""

    of: str
    """Name in `run.control`: the run's id, or the loop's name with the start of its hash."""
    source: Source
    folder: Path | None = None
    """The folder of the run; None for a loop."""


def control_command(
    run: Annotated[
        str,
        typer.Argument(metavar="RUN", help="Id or folder of a finished run, loop file, or preset."),
    ],
    kinds: Annotated[
        list[str] | None,
        typer.Option("--kind", help=f"{', '.join(CONTROL_KINDS)}. May be repeated."),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds, from the loop's own on.")] = 3,
    learner: Annotated[
        str | None,
        typer.Option(help="Main learner; default: the one that the loop's main metric measures."),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full/--no-full", help="Also run the whole loop over the seeds.")
    ] = True,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the control loop, and run nothing.")
    ] = False,
    settings: Settings = None,
    runs_dir: RunsDir = Path("runs"),
    local: Annotated[
        bool, typer.Option("--local", help="Run without Ray, in this process.")
    ] = False,
    threads: Annotated[
        int | None,
        typer.Option(help="CPU threads per process; also limits each pool to one process."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Run even if the memory estimate is over budget.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Run a control of a run over several seeds, and compare. Without --kind, list the controls."""
    keep_private()
    try:
        compared = _compared(run, settings or [], runs_dir)
        unknown = [kind for kind in kinds or () if kind not in CONTROL_KINDS]
        if unknown:
            raise ControlRefused(
                f"there is no kind {unknown[0]!r} of control; kinds: {', '.join(CONTROL_KINDS)}"
            )
        wanted = [kind for kind in CONTROL_KINDS if kind in (kinds or ())]
        if not wanted:
            return _list(compared, learner, as_json=as_json)
        arms = [_arm(compared, kind, learner) for kind in wanted]
        if dry_run:
            return _print_loops(arms, as_json=as_json)
        arms = [_arm(compared, "full", learner), *arms]
        if arms[0].metric is None:
            raise ControlRefused(
                "no evaluation or scorer without weights measures the main learner; add an "
                "evaluation, or set `run.best`"
            )
        plan = Plan(
            compared=compared,
            arms=arms,
            seeds=seeds,
            learner=learner,
            full=full,
            runs_dir=runs_dir,
        )
        options = RunOptions(local=local, threads=threads, force=force)
        code = run_missing(_missing(plan), compared.source, options, runs_dir)
        _print_comparison(plan, as_json=as_json)
        return code
    except SpecUnreadable as unreadable:
        fail(str(unreadable), UNREADABLE)
    except (LoopRefused, ColoopError) as refused:
        findings = getattr(refused, "diagnostics", ())
        return print_refusal(str(refused), findings, as_json=as_json)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmRun:
    arm: ArmLoop
    seed: int
    folder: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The runs of all arms."""

    compared: Compared
    arms: list[ArmLoop]
    """The whole loop first."""
    seeds: int
    learner: str | None
    full: bool
    """Whether the whole loop is run where runs of it are missing."""
    runs_dir: Path

    def runs(self) -> Iterator[ArmRun]:
        """Seed by seed, so that an interrupted command has compared arms."""
        first = self.arms[0].spec.run.seed
        for seed in range(first, first + self.seeds):
            for arm in self.arms:
                yield ArmRun(arm=arm, seed=seed, folder=self._folder(arm, seed))

    def _folder(self, arm: ArmLoop, seed: int) -> Path:
        compared = self.compared
        is_own = compared.folder is not None and seed == self.arms[0].spec.run.seed
        if arm.kind == "full" and is_own:
            assert compared.folder is not None
            return compared.folder
        about = f"-{self.learner}" if self.learner else ""
        return self.runs_dir / f"{compared.of}{about}-{arm.kind}-{seed}"


def _compared(run: str, settings: list[str], runs_dir: Path) -> Compared:
    for folder in (Path(run), runs_dir / run):
        if not (folder / "spec.yaml").exists():
            continue
        if settings:
            raise ControlRefused("a control has the settings of its run; leave out --set")
        source = replace(read_source(str(folder / "spec.yaml")), root=read_base_folder(folder))
        relation = load(folder / "spec.yaml").run.control
        if relation is not None:
            raise ControlRefused(
                f"{folder.name} is itself a `{relation.kind}` control of {relation.of}; name that"
            )
        state = state_of(folder)
        if state != RunStateName.FINISHED:
            raise ControlRefused(
                f"{folder.name} is {state}, and a control is compared with a finished run; finish "
                f"it with `coloop run --resume {folder.name}`"
            )
        checked_loop(source, force=True)
        return Compared(of=folder.resolve().name, source=source, folder=folder)
    source = with_settings(read_source(run), settings)
    spec, _ = checked_loop(source, force=True)
    return Compared(of=f"{spec.name}-{content_hash(spec)[:HASH_DIGITS]}", source=source)


def _arm(compared: Compared, kind: ControlKind, learner: str | None) -> ArmLoop:
    source = compared.source
    return arm_of(source.text, kind, learner=learner, root=source.root)


def _list(compared: Compared, learner: str | None, *, as_json: bool) -> int:
    """Every kind with what it changes, or why the loop has none."""
    answers: dict[ControlKind, tuple[bool, str]] = {}
    for kind in CONTROL_KINDS:
        try:
            answers[kind] = (True, _arm(compared, kind, learner).says)
        except ControlRefused as refused:
            answers[kind] = (False, str(refused))
    if as_json:
        kinds = [{"kind": kind, "has": has, "says": says} for kind, (has, says) in answers.items()]
        print_json({"of": compared.of, "controls": kinds})
        return 0
    table = table_of("kind", "what is changed")
    for kind, (has, says) in answers.items():  # what there is none of in grey
        table.add_row(kind if has else f"[dim]{kind}[/]", escape(says))
    console().print(table)
    return 0


def _print_loops(arms: list[ArmLoop], *, as_json: bool) -> int:
    if as_json:
        print_json(
            [
                {
                    "kind": arm.kind,
                    "says": arm.says,
                    "changes": [change.model_dump(mode="json") for change in arm.changes],
                    "yaml": arm.text,
                }
                for arm in arms
            ]
        )
        return 0
    for arm in arms:
        console(stderr=True).print(f"{arm.kind}: {escape(arm.says)}")
        console().print(arm.text, markup=False, end="")
    return 0


def _missing(plan: Plan) -> Iterator[PlannedRun]:
    """The runs of a plan but the one that is compared, which has finished."""
    for planned in plan.runs():
        arm, folder = planned.arm, planned.folder
        if folder == plan.compared.folder or (arm.kind == "full" and not plan.full):
            continue
        yield PlannedRun(
            folder=folder,
            text=seeded(arm, seed=planned.seed, of=plan.compared.of, learner=plan.learner),
            title=f"{arm.kind}, seed {planned.seed}: {arm.says}",
        )


def compared_arms(plan: Plan) -> list[Arm]:
    """The curves of all finished runs, by arm."""
    known = {arm_run.folder.name for arm_run in runs_of(plan.compared.of, plan.runs_dir)}
    if plan.compared.folder is not None:
        known.add(plan.compared.folder.name)
    found: Mapping[ControlKind, list[Curve]] = {arm.kind: [] for arm in plan.arms}
    for planned in plan.runs():
        arm, folder = planned.arm, planned.folder
        if folder.name in known and state_of(folder) == RunStateName.FINISHED and arm.metric:
            events = events_of(folder / EVENT_FILE)
            found[arm.kind].append(
                curve_of(events, arm.metric, begins=arm.begins, seed=planned.seed, run=folder.name)
            )
    return [Arm(kind=kind, curves=tuple(curves)) for kind, curves in found.items()]


def _print_comparison(plan: Plan, *, as_json: bool) -> None:
    full, *controls = compared_arms(plan)
    metric = plan.arms[0].metric
    says = {arm.kind: arm.says for arm in plan.arms}
    comparisons = [Comparison(full=full, control=arm) for arm in controls]
    if as_json:
        arms = [_arm_as_json(arm, says[arm.kind]) for arm in (full, *controls)]
        print_json(
            {
                "of": plan.compared.of,
                "metric": metric,
                "begins": plan.arms[0].begins,
                "arms": arms,
                "comparisons": [
                    {
                        "kind": comparison.control.kind,
                        "difference": comparison.difference,
                        "leads": comparison.leads,
                    }
                    for comparison in comparisons
                ],
            }
        )
        return
    out = console()
    out.print(f"{metric}, mean over seeds; spread: standard deviation of the end")
    numbers = ("runs", "start", "end", "spread", "full leads by")
    table = table_of("arm", *numbers, "by more than the spread", right=numbers)
    table.add_row("full", str(len(full.curves)), *map(_number, (full.start, full.end, full.spread)))
    for comparison in comparisons:
        arm = comparison.control
        numbers_of = (arm.start, arm.end, arm.spread, comparison.difference)
        verdict = {True: "yes", False: "no", None: "needs two seeds"}[comparison.leads]
        table.add_row(arm.kind, str(len(arm.curves)), *map(_number, numbers_of), verdict)
    out.print(table)


def _arm_as_json(arm: Arm, says: str) -> dict[str, Any]:
    runs = [
        {"run": curve.run, "seed": curve.seed, "start": curve.start, "end": curve.end}
        for curve in arm.curves
    ]
    return {
        "kind": arm.kind,
        "says": says,
        "start": arm.start,
        "end": arm.end,
        "spread": arm.spread,
        "runs": runs,
    }


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
