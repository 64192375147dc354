"""`coloop eval`: tasks of lm-evaluation-harness on a checkpoint of a run.

Exit codes: 0 the numbers are in the run, 1 there is no such run, checkpoint or task, or it failed,
2 the loop of the run cannot be read, 4 the run is going on.
"""

import tempfile
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.markup import escape

from coloop.cli.app import Json, Run, RunsDir
from coloop.cli.export import export_model, weights_of
from coloop.cli.output import console, fail, print_json, table_of
from coloop.cli.watch import run_folder
from coloop.errors import ColoopError, RunBusy
from coloop.runtime.run_files.events import MetricsEvent
from coloop.runtime.run_files.recorder import Recorder
from coloop.runtime.run_files.run_lock import RunLock
from coloop.suites.running import run_lm_eval

BUSY = 4


def eval_command(
    run: Run,
    node: Annotated[str, typer.Argument(help="Node whose weights are evaluated.")],
    tasks: Annotated[
        list[str],
        typer.Option("--tasks", metavar="NAME", help="Task, or several: `a,b`. May be repeated."),
    ],
    at: Annotated[
        Literal["last", "best"],
        typer.Option(help="The best checkpoint by `run.best`, if that is set; or the last."),
    ] = "best",
    task_folder: Annotated[
        Path | None,
        typer.Option(
            exists=True, file_okay=False, help="Folder with task files (YAML) of your own."
        ),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Rows of each task.")] = None,
    few_shot: Annotated[
        int | None, typer.Option(min=0, help="Examples in each prompt; default: as the task says.")
    ] = None,
    batch: Annotated[int, typer.Option(min=1, help="Rows at once.")] = 8,
    device: Annotated[
        str | None, typer.Option(help="Device of torch; default: a GPU if there is one.")
    ] = None,
    chat: Annotated[bool, typer.Option("--chat", help="Apply the model's chat template.")] = False,
    as_json: Json = False,
    runs_dir: RunsDir = Path("runs"),
) -> int:
    """Evaluate the trained weights of a node on tasks of lm-evaluation-harness. The numbers become
    metrics of the node at the step of the checkpoint, so the page of the run shows them."""
    folder = run_folder(console(), run, runs_dir)
    names = [name.strip() for given in tasks for name in given.split(",") if name.strip()]
    if not names:
        fail("--tasks names no task", 1)
    try:
        with RunLock(folder), tempfile.TemporaryDirectory(prefix="coloop-eval-") as above:
            weights = weights_of(folder, node, at, falls_back=True)
            model = Path(above) / "model"
            export_model(weights.folder, model, with_adapter=False)
            numbers = run_lm_eval(
                model,
                names,
                task_folder=task_folder,
                limit=limit,
                few_shot=few_shot,
                batch=batch,
                device=device,
                chat=chat,
            )
            record(folder, node, weights.step, numbers)
    except RunBusy as busy:
        fail(str(busy), BUSY)
    except ColoopError as error:
        fail(str(error), 1)
    if as_json:
        print_json({"node": node, "step": weights.step, "numbers": numbers})
        return 0
    table = table_of("metric", "value", right=("value",))
    for name, value in sorted(numbers.items()):
        table.add_row(escape(name), f"{value:.4g}")
    console().print(table)
    console().print(f"metrics of {escape(node)} at step {weights.step} of {escape(folder.name)}")
    return 0


def record(folder: Path, node: str, step: int, numbers: dict[str, float]) -> None:
    """Add the numbers to the events of a run that has ended, as part of its last attempt."""
    recorder = Recorder(folder, folder.name)
    recorder.attempt = max(1, recorder.attempt - 1)
    try:
        recorder.record(MetricsEvent(node=node, step=step, metrics=dict(numbers), evaluation=True))
    finally:
        recorder.close()
