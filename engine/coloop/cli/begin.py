"""`coloop new`: a small loop to begin with, by what it is made for, or a preset under a name of
one's own.

Exit codes: 0 written, 1 the file is there already or cannot be written, 2 no such mode, preset or
name.
"""

import re
import shutil
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.markup import escape
from rich.table import Table

from coloop import presets
from coloop.cli.gallery import NOT_FOUND, write_loop
from coloop.cli.output import complain, console, print_json
from coloop.diagnostics import Change
from coloop.errors import PresetNotFound
from coloop.spec.base import NAME_PATTERN
from coloop.spec.data import FileSource
from coloop.spec.io import parse, patch
from coloop.spec.modes import MODES, ModeName
from coloop.spec.nodes import DatasetNode

STDOUT = Path("-")
SUFFIXES = (".yaml", ".yml")


def new_command(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="What the loop is called; or its file.")
    ] = None,
    mode: Annotated[
        str | None,
        typer.Option("--mode", "-m", help="online, offline or reward-modeling; else online."),
    ] = None,
    preset: Annotated[
        str | None, typer.Option("--preset", "-p", help="Begin with this preset instead.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Where to; NAME.yaml by default, `-` prints it."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over a file that exists.")] = False,
    listed: Annotated[bool, typer.Option("--list", help="Say which modes there are.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --list: print JSON.")] = False,
) -> None:
    """Write a small loop to begin with."""
    if listed:
        _list_modes(as_json=as_json)
        return
    if mode is not None and preset is not None:
        _refuse("give --mode or --preset, not both: a preset has its mode")
    name, out = _name_and_file(name, out)
    text = _text(mode, preset)
    text = text if name is None else _renamed(text, name)
    if out == STDOUT:
        sys.stdout.write(text)
        return
    target = _target(out, name or _name_of(text))
    instead = "name another file or give --force"
    if (code := write_loop(text, target, force=force, instead=instead)) != 0:
        raise typer.Exit(code)
    if preset is not None:
        _bring_files(presets.load_loop(preset).path, text, target)
    _say_what_next(target)


def mode_named(text: str) -> ModeName | None:
    """The mode that a user means: `reward-modelling` is `reward_modeling`."""
    plain = text.strip().lower().replace("-", "_").replace("modelling", "modeling")
    return next((name for name in MODES if name == plain), None)


def _list_modes(*, as_json: bool) -> None:
    if as_json:
        print_json(
            [{"name": name, "title": one.title, "help": one.help} for name, one in MODES.items()]
        )
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("mode", no_wrap=True)
    table.add_column("what such a loop does")
    for name, one in MODES.items():
        table.add_row(name.replace("_", "-"), one.help)
    console().print(table)


def _name_and_file(name: str | None, out: Path | None) -> tuple[str | None, Path | None]:
    """The loop's name and where it goes; a name that ends like a file is both."""
    given = None if name is None else Path(name)
    if given is not None and given.suffix.lower() in SUFFIXES:
        name, out = given.stem, out or given
    if name is not None and re.match(NAME_PATTERN, name) is None:
        _refuse(f"{name!r} cannot be the name of a loop: letters, digits, `.`, `_` and `-`")
    return name, out


def _text(mode: str | None, preset: str | None) -> str:
    if preset is not None:
        try:
            return presets.load_loop_text(preset)
        except PresetNotFound as missing:
            _refuse(f"{missing}; `coloop presets` lists them")
    found = mode_named(mode or "online")
    if found is None:
        known = ", ".join(name.replace("_", "-") for name in MODES)
        _refuse(f"no mode is named {mode!r}; there are {known}")
    return presets.load_new_text(found)


def _renamed(text: str, name: str) -> str:
    return patch(text, [Change(op="set", path="name", value=name)])


def _name_of(text: str) -> str:
    spec = parse(text).spec
    assert spec is not None, "what ships with coloop reads"
    return spec.name


def _target(out: Path | None, name: str) -> Path:
    if out is None:
        return Path(f"{name}.yaml")
    return out / f"{name}.yaml" if out.is_dir() else out


def _bring_files(source: Path, text: str, target: Path) -> None:
    """Files of rows that lie beside a preset go beside the new loop; those that are there stay."""
    spec = parse(text).spec
    assert spec is not None, "what ships with coloop reads"
    for node in spec.nodes.values():
        if not isinstance(node, DatasetNode) or not isinstance(node.source, FileSource):
            continue
        theirs, ours = source.parent / node.source.path, target.parent / node.source.path
        if theirs.is_file() and not ours.exists():
            ours.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(theirs, ours)
            console().print(f"wrote {escape(str(ours))}")


def _say_what_next(target: Path) -> None:
    shown = escape(str(target))
    console().print(f"try it: [bold]coloop rehearse {shown}[/], then [bold]coloop run {shown}[/]")


def _refuse(message: str) -> NoReturn:
    complain(message)
    raise typer.Exit(NOT_FOUND)
