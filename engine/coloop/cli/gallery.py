"""`coloop presets`: list and show the loops that ship with coloop."""

import sys

from rich.markup import escape
from rich.table import Table

from coloop.cli.output import complain, console, print_json
from coloop.errors import PresetNotFound
from coloop.spec import presets

NOT_FOUND = 2


def list_command(*, as_json: bool) -> int:
    """Print name, title and description of every preset."""
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
        return 0
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("name", no_wrap=True)
    table.add_column("title")
    for loop in loops:
        table.add_row(escape(loop.name), escape(loop.title))
    console().print(table)
    return 0


def show_command(name: str) -> int:
    """Print the YAML of a preset."""
    try:
        sys.stdout.write(presets.load_loop_text(name))
    except PresetNotFound as missing:
        complain(str(missing))
        return NOT_FOUND
    return 0
