"""The command `coloop`: names, arguments and help of its sub-commands.

Imports nothing but typer, so that `coloop --help` is fast; each command imports its
implementation when it runs. Exit codes: 0 success, 1 the loop has errors or does not fit, 2 it
cannot be read, 3 a run failed, 4 another process writes to its folder, 130 it was stopped.
"""

import sys
from pathlib import Path
from typing import Annotated

import typer

from coloop.cli.lazy import LazyGroup

app = typer.Typer(
    name="coloop",
    cls=LazyGroup,
    help="Compose, validate, estimate, run and watch training loops.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
presets_app = typer.Typer(help="Loops that ship with coloop.", invoke_without_command=True)
app.add_typer(presets_app, name="presets")

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


def main() -> None:
    """Entry point of the program."""
    try:
        app()
    except BrokenPipeError:
        sys.stderr.close()
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None


def _print_version(requested: bool) -> None:
    if requested:
        from importlib.metadata import PackageNotFoundError, version

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


@app.command()
def validate(
    spec: Spec,
    settings: Settings = None,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings count as errors.")] = False,
    json: Json = False,
) -> None:
    """Validate a loop: report every problem with its location and fix."""
    from coloop.cli.check import validate_command

    raise typer.Exit(validate_command(spec, settings or (), strict=strict, as_json=json))


@app.command()
def estimate(
    spec: Spec,
    settings: Settings = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Also print the assumptions behind the numbers.")
    ] = False,
    json: Json = False,
) -> None:
    """Predict the memory of every GPU and the time of every stage."""
    from coloop.cli.predict import estimate_command

    raise typer.Exit(estimate_command(spec, settings or (), explain=explain, as_json=json))


@app.command()
def fit(
    spec: Spec,
    settings: Settings = None,
    budget_gib: Annotated[
        float | None, typer.Option("--budget-gib", min=0.0, help="Memory of each GPU, in GiB.")
    ] = None,
    budget_fraction: Annotated[
        float | None,
        typer.Option("--budget-fraction", min=0.0, max=1.0, help="Share of each GPU's memory."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", help="Write the fitted loop to this file; `-` prints it."),
    ] = None,
) -> None:
    """Find settings that make a loop fit into memory."""
    from coloop.cli.fitting import fit_command

    if budget_gib is not None and budget_fraction is not None:
        raise typer.BadParameter("give --budget-gib or --budget-fraction, not both")
    raise typer.Exit(
        fit_command(spec, settings or (), budget_gib=budget_gib, fraction=budget_fraction, out=out)
    )


@app.command()
def plan(spec: Spec, settings: Settings = None, json: Json = False) -> None:
    """Compile a loop: what runs where, in which order, and why."""
    from coloop.cli.predict import plan_command

    raise typer.Exit(plan_command(spec, settings or (), as_json=json))


@app.command()
def explain(
    what: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Code of a finding or alert, or an algorithm."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="FIELD=VALUE", help="Override a setting of the algorithm."),
    ] = None,
    json: Json = False,
) -> None:
    """Explain a finding, an alert or an algorithm. Without a name, list all of them."""
    from coloop.cli.explaining import explain_command

    raise typer.Exit(explain_command(what, settings=settings or [], as_json=json))


def _delegate(name: str, text: str, *, hidden: bool = False) -> None:
    """Register the help line of a command that is imported when it is called."""

    def unreachable() -> None:
        raise typer.Exit(1)

    app.command(name, help=text, hidden=hidden)(unreachable)


_delegate("new", "Create a small loop to start from: online, offline or reward modeling.")
_delegate("run", "Run a loop headless, with a live progress display.")
_delegate("rehearse", "Dry-run a loop: tiny models, a few steps, on the CPU.")
_delegate("watch", "Follow a run from its start until it ends.")
_delegate("runs", "List runs; `runs check RUN` verifies a run folder.")
_delegate("export", "Export the trained weights of a node as a model folder.")
_delegate("backup", "Back up loops and run records to a file; the server may keep running.")
_delegate("restore", "Restore loops and run records from a backup.")


@app.command()
def schema() -> None:
    """Print the JSON Schema of the loop language."""
    from coloop.cli.explaining import schema_command

    raise typer.Exit(schema_command())


@app.command()
def doctor(json: Json = False) -> None:
    """Report what this machine supports and what is missing."""
    from coloop.cli.doctor import doctor_command

    raise typer.Exit(doctor_command(as_json=json))


@app.command()
def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 8321,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Do not open a browser.")
    ] = False,
    data: Annotated[
        Path | None, typer.Option("--data", help="Folder for the database and runs.")
    ] = None,
    allow_remote_code: Annotated[
        bool,
        typer.Option(
            "--allow-remote-code",
            help="Let loops run Python from model folders, after confirmation.",
        ),
    ] = False,
) -> None:
    """Start the composer: web page, API and run launcher."""
    from coloop.cli.serving import serve_command

    raise typer.Exit(
        serve_command(
            host=host,
            port=port,
            open_browser=not no_browser,
            data=data,
            allow_remote_code=allow_remote_code,
        )
    )


@presets_app.callback()
def _presets(context: typer.Context) -> None:
    """Loops that ship with coloop."""
    if context.invoked_subcommand is None:
        from coloop.cli.begin import list_command

        raise typer.Exit(list_command(as_json=False))


@presets_app.command("list")
def _list_presets(json: Json = False) -> None:
    """List the presets."""
    from coloop.cli.begin import list_command

    raise typer.Exit(list_command(as_json=json))


@presets_app.command("show")
def _show_preset(name: Annotated[str, typer.Argument(metavar="NAME")]) -> None:
    """Print the YAML of a preset."""
    from coloop.cli.begin import show_command

    raise typer.Exit(show_command(name))


@presets_app.command("copy")
def _copy_preset(
    name: Annotated[str, typer.Argument(metavar="NAME")],
    target: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="Target file; the current folder by default."),
    ] = None,
) -> None:
    """Copy a preset to a file, together with its data files."""
    from coloop.cli.begin import copy_command

    raise typer.Exit(copy_command(name, target))
