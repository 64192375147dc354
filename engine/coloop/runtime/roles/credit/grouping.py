"""What a row shares with its group: the row that it was written for, or what `group_by` names."""

from collections.abc import Callable, Hashable, Sequence

from coloop.data.tables import Row
from coloop.errors import DataError
from coloop.runtime.roles.protocol import Context


def group_keys(
    node: str, context: Context, group_by: Sequence[str] | None
) -> Callable[[Row], Hashable]:
    """Says of a row of `node` what it shares with its group: the row at the writer's input port, or
    what `group_by` names."""
    if not group_by:
        return lambda row: row.group
    keys = [_key_of(node, context, name) for name in group_by]
    return lambda row: tuple(key(row) for key in keys)


def _key_of(node: str, context: Context, name: str) -> Callable[[Row], Hashable]:
    match name:
        case "prompt":
            return _prompt_of
        case "role":
            return lambda row: row.writer
        case "round":
            return lambda row: row.round
    if name not in context.spec.nodes:
        return lambda row: row.columns.get(name)
    births = context.lineage.births_of(name)

    def ancestor(row: Row) -> str:
        found = row.passed.get(name) or row.ancestor_born_at(*births)
        if found is None:
            raise DataError(
                f"{node}: rows are grouped by `{name}`, but row {row.id} descends from no row of "
                f"`{name}`; name a node from which all of them come, or `prompt`",
                node,
            )
        return found

    return ancestor


def _prompt_of(row: Row) -> str:
    """The first row from which a row descends; of one that a buffer gives, which has no ancestors
    any more, the row that it was written for."""
    if not row.parents and row.group is not None:
        return row.group
    return max(row.trail, key=lambda ancestor: len(row.trail[ancestor]))
