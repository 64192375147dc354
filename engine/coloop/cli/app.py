"""The command `coloop`: names and help of its sub-commands, each imported when it is called.

Imports nothing but typer, so that `coloop --help` is fast. Exit codes: 0 success, 1 the loop has
errors or does not fit, 2 it cannot be read, 3 a run failed, 4 another process writes to its folder,
130 it was stopped.
"""

import os
import re
import sys
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import _click
from typer.core import TyperGroup

from coloop.errors import SettingInvalid
from coloop.spec.lean import build_lean
from coloop.workers import collecting, openmp

COMMANDS: dict[str, tuple[str, str]] = {
    "validate": ("check", "Validate a loop: report every problem with its location and fix."),
    "estimate": ("predict", "Predict the memory of every GPU and the time of every stage."),
    "fit": ("predict", "Find settings that make a loop fit into memory."),
    "place": ("predict", "Find the placement on the GPUs with the fastest step."),
    "plan": ("predict", "Compile a loop: what runs where, in which order, and why."),
    "explain": (
        "explaining",
        "Explain a finding, an alert or an algorithm. Without a name, list all of them.",
    ),
    "new": ("begin", "Create a small loop to start from: online, offline or reward modeling."),
    "import": ("interop", "Make a loop of a configuration of TRL, verl or OpenRLHF."),
    "export-to": ("interop", "Write a loop as a configuration of verl or OpenRLHF."),
    "run": ("run", "Run a loop headless, with a live progress display."),
    "launch": ("launch", "Write the job file of a loop for Slurm, KubeRay or SkyPilot."),
    "control": ("control", "Run a loop and its control over seeds, and compare them."),
    "sweep": ("sweep", "Run a loop with several values of some settings, and compare them."),
    "rehearse": ("rehearse", "Dry-run a loop: tiny models, a few steps, on the CPU."),
    "watch": ("watch", "Follow a run from its start until it ends."),
    "report": ("report", "Report a run as an experiment: result, controls, seeds, time, cost."),
    "log": ("log", "Send a run to trackers: TensorBoard, Weights & Biases, MLflow, Trackio."),
    "runs": ("watch", "List runs; `runs check RUN` verifies a run folder."),
    "export": ("export", "Export the trained weights of a node as a model folder."),
    "eval": ("eval", "Evaluate a checkpoint of a run on tasks of lm-evaluation-harness."),
    "push": ("push", "Push the trained weights of a node to the Hugging Face Hub."),
    "backup": (
        "serving",
        "Back up loops and run records to a file; the server may keep running.",
    ),
    "restore": ("serving", "Restore loops and run records from a backup."),
    "schema": ("explaining", "Print the JSON Schema of the loop language."),
    "doctor": ("doctor", "Report what this machine supports and what is missing."),
    "calibrate": ("calibrate", "Measure this machine, so that predicted times fit it."),
    "serve": ("serving", "Start the composer: web page, API and run launcher."),
    "presets": ("begin", "Loops that ship with coloop."),
    "models": ("models", "Models on this machine and on the hub: list, show, download, add."),
    "datasets": ("datasets", "Datasets of the hub: first rows before a download."),
}
"""By name, the module of this package with `NAME_command` (or `NAME_app`, a group of commands), and
the line of help, which a function replaces by its docstring. A function returns the exit code, or
None for 0."""

LEAN = frozenset({"validate", "estimate", "fit", "place", "plan", "launch", "new", "presets"})
"""Commands that look at loops and end."""

Spec = Annotated[
    str,
    typer.Argument(metavar="SPEC", help="Loop file, `-` for standard input, or name of a preset."),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="PATH=VALUE", help="Override one field: path=value. May be repeated."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Run = Annotated[str, typer.Argument(help="Id or folder of a run.")]
RunsDir = Annotated[Path, typer.Option(help="Folder that contains the run folders.")]


class LazyGroup(TyperGroup):
    """A group that builds its commands when they are called."""

    def invoke(self, ctx: _click.Context) -> Any:
        """Run the command. An invalid environment variable or a missing library of an extra gives
        one line on standard error and exit code 1."""
        try:
            return super().invoke(ctx)
        except SettingInvalid as invalid:
            raise _click.ClickException(str(invalid)) from invalid
        except ModuleNotFoundError as missing:
            name = (missing.name or "").partition(".")[0]
            extra = extra_of(name)
            if extra is None:
                raise
            message = f"this command needs `{name}`: pip install 'coloop[{extra}]'"
            raise _click.ClickException(message) from missing

    def resolve_command(
        self, ctx: _click.Context, args: list[str]
    ) -> tuple[str | None, _click.Command | None, list[str]]:
        """The command that the arguments call."""
        if args and args[0] in COMMANDS:
            self.commands[args[0]] = build_command(args[0])
        return super().resolve_command(ctx, args)


def build_command(name: str) -> _click.Command:
    """The command of a name, with its own arguments."""
    with collecting.not_while_loading():
        module = import_module(f"coloop.cli.{COMMANDS[name][0]}")
    word = name.replace("-", "_")
    if (group := getattr(module, f"{word}_app", None)) is not None:
        return typer.main.get_command(group)
    single = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    command = getattr(module, f"{word}_command")
    line = None if command.__doc__ else COMMANDS[name][1]
    single.command(name, help=line)(exiting(command))
    return typer.main.get_command(single)


def exiting(command: Callable[..., int | None]) -> Callable[..., None]:
    """A command that ends the program with the exit code that it returns."""

    @wraps(command)
    def exits(*arguments: Any, **options: Any) -> None:
        raise typer.Exit(command(*arguments, **options) or 0)

    return exits


app = typer.Typer(
    name="coloop",
    cls=LazyGroup,
    help="Compose, validate, estimate, run and watch training loops.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _name, (_, _help) in COMMANDS.items():
    app.command(_name, help=_help)(lambda: None)


def main() -> None:
    os.environ.update(openmp.settings())  # read once, when a command imports torch
    if LEAN.intersection(sys.argv[1:2]):
        build_lean()
        collecting.less_often_until_exit()
    try:
        app()
    except BrokenPipeError:
        sys.stderr.close()
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None


def _print_version(requested: bool) -> None:
    if requested:
        try:
            typer.echo(f"coloop {version('coloop')}")
        except PackageNotFoundError:
            typer.echo("coloop (not installed)")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Compose, validate, estimate, run and watch training loops."""


LIBRARIES: tuple[tuple[str, str | None], ...] = (
    ("pydantic", None),
    ("torch", "engine"),
    ("transformers", "engine"),
    ("tokenizers", "engine"),
    ("huggingface_hub", "engine"),
    ("ray", "engine"),
    ("pyarrow", "engine"),
    ("fastapi", "server"),
    ("uvicorn", "server"),
    ("sqlalchemy", "server"),
    ("websockets", "server"),
    ("vllm", "vllm"),
    ("deepspeed", "deepspeed"),
    ("peft", "lora"),
    ("gguf", "real"),
)
"""Module (its distribution has the same name) and the extra that installs it."""


def extra_of(module: str) -> str | None:
    """The extra that installs a module; None if no extra does."""
    if module in dict(LIBRARIES):
        return dict(LIBRARIES)[module]
    for requirement in requirements():
        match = re.match(r"([\w.-]+).*extra == ['\"](\w+)['\"]", requirement)
        if match and match[1].replace("-", "_").lower() == module and match[2] != "all":
            return match[2]
    return None


def requirements() -> list[str]:
    """What coloop's own metadata requires, extras included; empty if it is not installed."""
    try:
        return requires("coloop") or []
    except PackageNotFoundError:
        return []
