"""What completions say in place of what would be drawn: `rollout.script`, a rehearsal's lines."""

from collections.abc import Sequence
from string import Template

from coloop.tables import Row


def scripts_of(lines: Sequence[str], row: Row, seeds: Sequence[int]) -> tuple[str | None, ...]:
    """Of each completion about a row what it says; none without lines.

    The seed of a completion decides: one of the lines, or what is drawn. A line that names what the
    row does not have is drawn as well.
    """
    said = [*lines, None] if lines else []
    return tuple(_filled(said[seed % len(said)], row) for seed in seeds if said)


def _filled(line: str | None, row: Row) -> str | None:
    if line is None:
        return None
    known = {name: value for name, value in row.columns.items() if value is not None}
    try:
        return Template(line).substitute(known) or None
    except (KeyError, ValueError):
        return None
