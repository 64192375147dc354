"""What completions say in place of what would be drawn: `rollout.script`, a rehearsal's lines."""

from collections.abc import Sequence
from string import Template

from coloop.data.tables import Row


def scripts_of(lines: Sequence[str], row: Row, seeds: Sequence[int]) -> tuple[str | None, ...]:
    """Of each completion about a row what it says; none without lines.

    The seed of a completion decides: one of the lines, or what is drawn. A line that names what the
    row does not have is none of them.
    """
    if not lines:
        return ()
    said = [*(text for line in lines if (text := _filled(line, row)) is not None), None]
    return tuple(said[seed % len(said)] for seed in seeds)


def _filled(line: str, row: Row) -> str | None:
    known = {name: value for name, value in row.columns.items() if value is not None}
    try:
        return Template(line).substitute(known) or None
    except (KeyError, ValueError):
        return None
