"""`coloop models`: models that loops name by name alone.

Exit codes: 0 listed or written, 1 it is not installed, exists or cannot be written, 2 no such
model.
"""

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from coloop.cli.app import Json
from coloop.cli.output import console, fail, print_json, table_of
from coloop.errors import ColoopError, PresetNotFound
from coloop.spec import presets
from coloop.spec.model_folders import models_dir

FAILED = 1
NOT_FOUND = 2

models_app = typer.Typer(
    help="Models on this machine, and those that can be added.",
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@models_app.callback()
def _models(context: typer.Context) -> None:
    """Models on this machine, and those that can be added."""
    if context.invoked_subcommand is None:
        _list_models()


@models_app.command("list")
def _list_models(as_json: Json = False) -> None:
    """List the models in the folder of models, and those that can be added."""
    rows = list(_listed())
    if as_json:
        print_json(rows)
        return
    table = table_of("name", "state", "title")
    for row in rows:
        state = row["folder"] or f"coloop models add {row['name']}"
        if row["folder"] is None and not row["is_installed"]:
            state = "pip install 'coloop\\[real]', then " + state
        table.add_row(escape(row["name"]), state, escape(row["title"]))
    console().print(table)


def _listed() -> list[dict[str, Any]]:
    above = models_dir()
    folders = sorted(above.iterdir()) if above.is_dir() else []
    there = {path.name: path for path in folders if (path / "config.json").is_file()}
    known = {preset.name: preset for preset in presets.packaged_models()}
    rows = []
    for name in sorted({*there, *known}):
        preset = known.get(name)
        rows.append(
            {
                "name": name,
                "title": preset.title if preset is not None else "",
                "folder": str(there[name]) if name in there else None,
                "is_installed": preset is not None and _is_installed(preset),
            }
        )
    return rows


def _is_installed(preset: presets.ModelPreset) -> bool:
    try:
        return preset.package is not None and bool(version(preset.package.name))
    except PackageNotFoundError:
        return False


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
