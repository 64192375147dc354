"""`coloop report`: the report of a run as an experiment.

Exit codes: 0 the report was written, 1 there is no such run, 2 its loop cannot be read.
"""

import json
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markdown import Markdown

from coloop.cli.app import Json, Run, RunsDir
from coloop.cli.check import UNREADABLE
from coloop.cli.output import console, fail, print_json
from coloop.cli.watch import run_folder
from coloop.errors import SpecUnreadable
from coloop.explain.experiment import Experiment, experiment_of, markdown_of, record_of
from coloop.explain.experiment.record import RunRecord, read_rows
from coloop.explain.experiment.related import (
    FinishedRun,
    arms_of_run,
    folders_beside,
    measured_by,
    siblings_of,
)
from coloop.runtime.run_files.checkpoint_folders import whole_checkpoints
from coloop.runtime.run_files.event_file import EVENT_FILE, events_of
from coloop.spec.io import load


def report_command(
    run: Run,
    runs_dir: RunsDir = Path("runs"),
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write Markdown to this file.")
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
    as_json: Json = False,
) -> None:
    """Report a run as an experiment: result, controls, seeds, time, cost, samples, what next.

    Runs of the same loop with other seeds, and controls of the run, are looked for in the folder
    of runs.
    """
    folder = run_folder(console(), run, runs_dir)
    try:
        found = read_experiment(folder, runs_dir)
    except SpecUnreadable as unreadable:
        fail(str(unreadable), UNREADABLE)
    if as_json:
        print_json(asdict(found))
    elif output is not None:
        output.write_text(markdown_of(found), encoding="utf-8")
        console().print(f"written to {output}", highlight=False)
    elif markdown:
        print(markdown_of(found), end="")
    else:
        console().print(Markdown(markdown_of(found)))


def read_experiment(folder: Path, runs_dir: Path) -> Experiment:
    """The report of the run in a folder.

    Raises:
        SpecUnreadable: its loop cannot be read.
    """
    spec = load(folder / "spec.yaml")
    record = _record(folder, measured_by(spec, spec))
    others = []
    for path, other in folders_beside(folder, runs_dir, spec.name):
        known = _record(path, measured_by(spec, other))
        if known.state == "finished":
            others.append(FinishedRun(run=path.name, spec=other, record=known))
    own = FinishedRun(run=folder.name, spec=spec, record=record)
    return experiment_of(
        folder.name,
        spec,
        record,
        report=_report(folder),
        rows=partial(read_rows, folder),
        kept=list(whole_checkpoints(folder)),
        siblings=siblings_of(spec, others),
        arms=arms_of_run(own, others),
    )


def _record(folder: Path, metric: str | None) -> RunRecord:
    return record_of(events_of(folder / EVENT_FILE), also=metric)


def _report(folder: Path) -> dict[str, Any]:
    try:
        report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return report if isinstance(report, dict) else {}
