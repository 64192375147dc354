"""What completions say in place of what would be drawn: `rollout.script`, a rehearsal's lines."""

from collections.abc import Sequence
from string import Template

from coloop.tables import Row


def scripts_of(lines: Sequence[str], row: Row, count: int, turn: int) -> tuple[str | None, ...]:
    """Of each completion about a row what it says; none without lines.

    Completions take turns: one line each, and what is drawn after the last. A line that names what
    the row does not have is drawn as well.

    Args:
        turn: of the first completion.
    """
    said = [*lines, None] if lines else []
    return tuple(_filled(said[(turn + k) % len(said)], row) for k in range(count) if said)


def _filled(line: str | None, row: Row) -> str | None:
    if line is None:
        return None
    known = {name: value for name, value in row.columns.items() if value is not None}
    try:
        return Template(line).substitute(known) or None
    except (KeyError, ValueError):
        return None
