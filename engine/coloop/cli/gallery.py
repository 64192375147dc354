"""`coloop presets`: list, show and copy the loops that ship with coloop."""

import sys
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from coloop import presets
from coloop.cli.output import complain, console, print_json
from coloop.errors import PresetNotFound

NOT_FOUND = 2
EXISTS = 1


def list_command(*, as_json: bool) -> int:
    """Prints name, title and description of every loop."""
    loops = presets.list_loops()
    if as_json:
        print_json(
            [
                {
                    "name": loop.name,
                    "title": loop.title,
                    "description": loop.description,
                    "tags": list(loop.tags),
                }
                for loop in loops
            ]
        )
        return 0
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("name", no_wrap=True)
    table.add_column("what it is")
    for loop in loops:
        table.add_row(escape(loop.name), escape(loop.title))
    console().print(table)
    return 0


def show_command(name: str) -> int:
    """Prints the YAML of a loop as it was written."""
    try:
        sys.stdout.write(presets.load_loop_text(name))
    except PresetNotFound as missing:
        complain(str(missing))
        return NOT_FOUND
    return 0


def copy_command(name: str, target: Path | None) -> int:
    """Writes the YAML of a loop to a file; an existing file stays as it is."""
    try:
        text = presets.load_loop_text(name)
    except PresetNotFound as missing:
        complain(str(missing))
        return NOT_FOUND
    path = target or Path(f"{name}.yaml")
    return write_loop(text, path / f"{name}.yaml" if path.is_dir() else path)


def write_loop(
    text: str, path: Path, *, force: bool = False, instead: str = "name another file"
) -> int:
    """Writes a loop to a file; one that exists stays as it is, unless it is forced."""
    try:
        with path.open("w" if force else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        complain(f"{path} exists; {instead}")
        return EXISTS
    except OSError as error:
        complain(f"{path} cannot be written: {error.strerror or error}")
        return EXISTS
    console().print(f"wrote {escape(str(path))}")
    return 0
