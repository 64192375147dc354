"""`coloop sweep`: runs of a loop with several values of some settings, over seeds, and a table.

Every run has a folder of its own, `<sweep>-<values>-<seed>`: a finished one is not run again, one
that was interrupted continues from its last checkpoint. Exit codes: 0 all runs have finished, 1 the
loop cannot run or there is nothing to try, 2 it cannot be read, 3 a run failed, 130 it was stopped.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from coloop.cli.app import Json, RunsDir, Spec
from coloop.cli.check import UNREADABLE, Source, read_source
from coloop.cli.group import PlannedRun, RunOptions, run_missing, state_of
from coloop.cli.output import console, fail, print_json, print_refusal, table_of
from coloop.cli.run import checked_loop
from coloop.errors import ColoopError, LoopRefused, SpecUnreadable, SweepRefused
from coloop.explain.controls import curve_of
from coloop.explain.sweeps import Sweep, Trial, Variant, stand, sweep_of
from coloop.runtime.run_files.event_file import EVENT_FILE, events_of
from coloop.runtime.run_files.events import RunStateName
from coloop.sandbox.inside.kernel import keep_private
from coloop.spec.io import load
from coloop.spec.text.reader import read

MOST_LETTERS = 60
"""Of the values in the name of a run folder."""


def sweep_command(
    spec: Spec,
    tried: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="PATH=V1,V2",
            help="A setting and the values to try, separated by commas, or a YAML list. May be "
            "repeated: all combinations are run.",
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(help="Number of seeds, from the loop's own on.")] = 1,
    best: Annotated[
        int | None,
        typer.Option(help="Run the further seeds of the best so many combinations only."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the runs, and run nothing.")
    ] = False,
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
    """Run a loop with several values of some settings over seeds, and compare."""
    keep_private()
    try:
        source = read_source(spec)
        sweep = sweep_of(source.text, dict(map(_tried, tried or [])), seeds=seeds)
        if best is not None and best < 1:
            raise SweepRefused(f"--best {best}: keep 1 or more")
        for variant in sweep.variants:
            checked_loop(_as_source(source, variant.text, variant.label), force=force)
        plan = Plan(sweep=sweep, source=source, runs_dir=runs_dir, best=best)
        if dry_run:
            return _print_plan(plan, as_json=as_json)
        options = RunOptions(local=local, threads=threads, force=force)
        code = 0
        for seed in sweep.seeds:
            planned = list(plan.missing(seed))
            code = run_missing(planned, source, options, runs_dir) or code
        _print_results(plan, as_json=as_json)
        return code
    except SpecUnreadable as unreadable:
        fail(str(unreadable), UNREADABLE)
    except (LoopRefused, ColoopError) as refused:
        findings = getattr(refused, "diagnostics", ())
        return print_refusal(str(refused), findings, as_json=as_json)


def _as_source(source: Source, text: str, name: str) -> Source:
    return Source(text=text, name=name, root=source.root)


def _tried(given: str) -> tuple[str, list[Any]]:
    """`path=1,2` or `path=[1, 2]`: the path, and the values as YAML."""
    path, equals, text = given.partition("=")
    if not equals or not path.strip():
        raise SweepRefused(f"--set needs PATH=V1,V2, got {given!r}")
    listed = text if text.lstrip().startswith("[") else f"[{text}]"
    reading = read(listed)
    if reading.diagnostics or not isinstance(reading.data, list):
        raise SweepRefused(
            f"--set {path}: {text!r} are no values; separate them by commas, and write texts with "
            "commas in quotes"
        )
    return path.strip(), reading.data


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The runs of a sweep in a folder."""

    sweep: Sweep
    source: Source
    runs_dir: Path
    best: int | None
    """Combinations that get further seeds; None: all."""

    def folder(self, variant: Variant, seed: int) -> Path:
        return self.runs_dir / f"{self.sweep.of}-{_slug(variant.label)}-{seed}"

    def missing(self, seed: int) -> Iterator[PlannedRun]:
        """The runs of one seed; after the first one, of the best combinations only."""
        variants: Sequence[Variant] = self.sweep.variants
        if self.best is not None and seed != self.sweep.seeds[0]:
            standing = stand(self.trials(), self.best, self.sweep.better)
            variants = [self.sweep.variants[place] for place in sorted(standing.best)]
        for variant in variants:
            yield PlannedRun(
                folder=self.folder(variant, seed),
                text=self.sweep.text_of(variant, seed),
                title=f"{variant.label}, seed {seed}",
            )

    def trials(self) -> list[Trial]:
        """The curves of finished runs, by combination."""
        return [
            Trial(
                values=variant.values,
                curves=tuple(
                    curve_of(
                        events_of(folder / EVENT_FILE),
                        self.sweep.metric,
                        begins=None,
                        seed=seed,
                        run=folder.name,
                    )
                    for seed in self.sweep.seeds
                    if self.is_ours(folder := self.folder(variant, seed))
                ),
            )
            for variant in self.sweep.variants
        ]

    def is_ours(self, folder: Path) -> bool:
        """Whether a folder has a finished run of this sweep."""
        if state_of(folder) != RunStateName.FINISHED:
            return False
        with suppress(OSError, SpecUnreadable):
            relation = load(folder / "spec.yaml").run.sweep
            return relation is not None and relation.of == self.sweep.of
        return False


def _slug(label: str) -> str:
    """The label for a file name, with a hash where letters are lost."""
    name = re.sub(r"[^\w.+-]+", "-", label).strip("-")
    if len(name) <= MOST_LETTERS and name == label.replace(", ", "-").replace(" ", "-"):
        return name
    return f"{name[:MOST_LETTERS]}-{hashlib.sha256(label.encode()).hexdigest()[:4]}"


def _print_plan(plan: Plan, *, as_json: bool) -> int:
    sweep = plan.sweep
    runs = [
        {"run": plan.folder(variant, seed).name, "values": dict(variant.values), "seed": seed}
        for variant, seed in sweep.runs()
    ]
    if as_json:
        print_json({"of": sweep.of, "metric": sweep.metric, "fields": sweep.fields, "runs": runs})
        return 0
    table = table_of("run", "seed", right=("seed",))
    for run in runs:
        table.add_row(str(run["run"]), str(run["seed"]))
    console().print(table)
    return 0


def _print_results(plan: Plan, *, as_json: bool) -> None:
    sweep, trials = plan.sweep, plan.trials()
    standing = stand(trials, len(trials), sweep.better)
    if as_json:
        print_json(
            {
                "of": sweep.of,
                "metric": sweep.metric,
                "better": sweep.better,
                "fields": sweep.fields,
                "trials": [_as_json(trial) for trial in trials],
                "best": dict(trials[standing.best[0]].values) if standing.best else None,
            }
        )
        return
    out = console()
    out.print(f"{sweep.metric}, mean over seeds; spread: standard deviation of the end")
    numbers = ("runs", "start", "end", "spread")
    table = table_of("values", *numbers, right=numbers)
    for place in (*standing.best, *standing.not_judged):
        trial = trials[place]
        numbers_of = (trial.start, trial.end, trial.spread)
        cells = ("–" if value is None else f"{value:.3f}" for value in numbers_of)
        table.add_row(sweep.variants[place].label, str(len(trial.curves)), *cells)
    out.print(table)


def _as_json(trial: Trial) -> dict[str, Any]:
    return {
        "values": dict(trial.values),
        "start": trial.start,
        "end": trial.end,
        "spread": trial.spread,
        "runs": [
            {"run": curve.run, "seed": curve.seed, "start": curve.start, "end": curve.end}
            for curve in trial.curves
        ],
    }
