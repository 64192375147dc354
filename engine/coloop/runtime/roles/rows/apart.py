"""Scores of gathered rows, one for each row that was gathered (`per: row`)."""

from collections.abc import Mapping, Sequence

from coloop.data.tables import Row, Score
from coloop.data.tables.join import gathered_members
from coloop.errors import DataError
from coloop.runtime.roles.protocol import Call
from coloop.runtime.roles.rows.inputs import single_rows
from coloop.runtime.roles.rows.steps import StepScores


def taken_apart(
    node: str, call: Call, ports: Sequence[str], rows: Sequence[Row], said: Sequence[object]
) -> tuple[list[Row], list[Score]]:
    """The rows that were gathered, each with its number.

    Args:
        ports: that brought them.
        rows: gathered ones.
        said: of each a list, in the order of its rows, or one number or None for all of them.

    Raises:
        DataError: a list of another length.
    """
    inputs = [one for port in ports for one in call.inputs.get(port, ())]
    known = {row.id: row for row in single_rows(node, call.context, inputs)}
    members: list[Row] = []
    scores: list[Score] = []
    for row, one in zip(rows, said, strict=True):
        own = gathered_members(row)
        members += [known[name] for name in own]
        scores += _each(node, row, one, len(own))
    return members, scores


def _each(node: str, row: Row, said: object, count: int) -> Sequence[float | None]:
    if said is None or isinstance(said, float | int):
        return [None if said is None else float(said)] * count
    found: StepScores = [] if not isinstance(said, list) else said
    if isinstance(said, Mapping) or len(found) != count:
        raise DataError(
            f"{node}: row {row.id} gathers {count} rows and was given {len(found)} numbers; with "
            "`per: row` a list has one number (or None) for each row gathered, in their order",
            node,
            "per",
        )
    return found
