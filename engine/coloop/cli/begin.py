"""`coloop new`, a small loop to start from for a mode or a preset, and `coloop presets`.

Exit codes: 0 written, 1 the file exists or cannot be written, 2 no such mode, preset or name.
"""

import re
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from coloop.cli.app import Json
from coloop.cli.output import console, fail, print_json, table_of
from coloop.errors import PresetNotFound
from coloop.spec import presets
from coloop.spec.base import NAME_PATTERN
from coloop.spec.data import FileSource
from coloop.spec.diagnostics import Change
from coloop.spec.graph import LoopSpec
from coloop.spec.io import parse, patch
from coloop.spec.modes import MODES, ModeName
from coloop.spec.nodes import DatasetNode

EXISTS = 1
NOT_FOUND = 2
STDOUT = Path("-")
SUFFIXES = (".yaml", ".yml")


def new_command(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Name of the loop, or the file to write.")
    ] = None,
    mode: Annotated[
        str | None,
        typer.Option("--mode", "-m", help="online (default), offline or reward-modeling."),
    ] = None,
    preset: Annotated[
        str | None, typer.Option("--preset", "-p", help="Start from this preset instead.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="File to write, NAME.yaml by default; `-` prints it."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    listed: Annotated[bool, typer.Option("--list", help="List the modes.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --list: print JSON.")] = False,
) -> None:
    """Create a small loop to start from."""
    if listed:
        _list_modes(as_json=as_json)
        return
    if mode is not None and preset is not None:
        fail("give --mode or --preset, not both: a preset already has a mode", NOT_FOUND)
    name, out = _name_and_file(name, out)
    text = _text(mode, preset)
    if name is not None:
        text = patch(text, [Change(op="set", path="name", value=name)])
    if out == STDOUT:
        sys.stdout.write(text)
        return
    target = _target(out, name or _spec_of(text).name)
    instead = "choose another file or give --force"
    _write(text, target, preset, force=force, instead=instead)
    shown = escape(str(target))
    console().print(f"next: [bold]coloop rehearse {shown}[/], then [bold]coloop run {shown}[/]")


def mode_named(text: str) -> ModeName | None:
    """The mode for a name as users write it: `reward-modelling` is `reward_modeling`."""
    plain = text.strip().lower().replace("-", "_").replace("modelling", "modeling")
    return next((name for name in MODES if name == plain), None)


def _list_modes(*, as_json: bool) -> None:
    if as_json:
        print_json(
            [{"name": name, "title": mode.title, "help": mode.help} for name, mode in MODES.items()]
        )
        return
    table = table_of("mode", "description")
    for name, mode in MODES.items():
        table.add_row(name.replace("_", "-"), mode.help)
    console().print(table)


def _name_and_file(name: str | None, out: Path | None) -> tuple[str | None, Path | None]:
    """The name of a loop and its file; a name such as `loop.yaml` gives both."""
    given = None if name is None else Path(name)
    if given is not None and given.suffix.lower() in SUFFIXES:
        name, out = given.stem, out or given
    if name is not None and re.match(NAME_PATTERN, name) is None:
        rule = "use letters, digits, `.`, `_` and `-`"
        fail(f"{name!r} is not a valid loop name; {rule}", NOT_FOUND)
    return name, out


def _text(mode: str | None, preset: str | None) -> str:
    if preset is not None:
        return _preset_text(preset)
    known_mode = mode_named(mode or "online")
    if known_mode is None:
        known = ", ".join(name.replace("_", "-") for name in MODES)
        fail(f"there is no mode {mode!r}; choose one of {known}", NOT_FOUND)
    return presets.load_new_text(known_mode)


def _preset_text(name: str) -> str:
    try:
        return presets.load_loop_text(name)
    except PresetNotFound as missing:
        fail(f"{missing}; `coloop presets` lists them", NOT_FOUND)


def _spec_of(text: str) -> LoopSpec:
    spec = parse(text).spec
    assert spec is not None, "presets parse"
    return spec


def _target(out: Path | None, name: str) -> Path:
    if out is None:
        return Path(f"{name}.yaml")
    return out / f"{name}.yaml" if out.is_dir() else out


def _write(
    text: str,
    target: Path,
    preset: str | None,
    *,
    force: bool = False,
    instead: str = "choose another file",
) -> None:
    """Write a loop and the data files of its preset; existing files stay, unless `force`."""
    try:
        with target.open("w" if force else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        fail(f"{target} exists; {instead}", EXISTS)
    except OSError as error:
        fail(f"{target} cannot be written: {error.strerror or error}", EXISTS)
    console().print(f"wrote {escape(str(target))}")
    if preset is not None:
        _copy_data_files(presets.load_loop(preset).path, text, target)


def _copy_data_files(source: Path, text: str, target: Path) -> None:
    """Copy the data files of a preset to the new loop; existing files stay."""
    for node in _spec_of(text).nodes.values():
        if not isinstance(node, DatasetNode) or not isinstance(node.source, FileSource):
            continue
        theirs, ours = source.parent / node.source.path, target.parent / node.source.path
        if theirs.is_file() and not ours.exists():
            ours.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(theirs, ours)
            console().print(f"wrote {escape(str(ours))}")


presets_app = typer.Typer(
    help="Loops that ship with coloop.",
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
PresetName = Annotated[str, typer.Argument(metavar="NAME")]


@presets_app.callback()
def _presets(context: typer.Context) -> None:
    """Loops that ship with coloop."""
    if context.invoked_subcommand is None:
        _list_presets()


@presets_app.command("list")
def _list_presets(as_json: Json = False) -> None:
    """List the presets."""
    loops = presets.list_loops()
    if as_json:
        from coloop.explain.about import tags_of

        print_json(
            [
                {
                    "name": loop.name,
                    "title": loop.title,
                    "description": loop.description,
                    "tags": list(tags_of(loop.name)),
                }
                for loop in loops
            ]
        )
        return
    table = table_of("name", "title")
    for loop in loops:
        table.add_row(escape(loop.name), escape(loop.title))
    console().print(table)


@presets_app.command("show")
def _show_preset(name: PresetName) -> None:
    """Print the YAML of a preset."""
    sys.stdout.write(_preset_text(name))


@presets_app.command("copy")
def _copy_preset(
    name: PresetName,
    target: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="Target file; the current folder by default."),
    ] = None,
) -> None:
    """Copy a preset to a file, together with its data files."""
    _write(_preset_text(name), _target(target, name), name)
