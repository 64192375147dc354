"""Which text of a row is scored or learned: a rollout's own tokens, or `target` after `prompt`."""

from coloop.errors import DataError
from coloop.roles.messages import Example, PairExample
from coloop.tables import Row, Tokens


def as_example(row: Row, *, target: str = "target") -> Example:
    """A rollout keeps its tokens; any other row imitates its target column after its prompt."""
    if row.tokens is not None:
        return Example(id=row.id, tokens=row.tokens)
    return Example(id=row.id, prompt=row.columns["prompt"], target=_text(row, target))


def as_pair(row: Row) -> PairExample:
    """Both sides of a pair; a side that was drawn keeps its tokens."""
    return PairExample(id=row.id, chosen=_side(row, "chosen"), rejected=_side(row, "rejected"))


def _side(row: Row, side: str) -> Example:
    tokens = row.columns.get(f"{side}_tokens")
    if isinstance(tokens, Tokens):
        return Example(id=row.id, tokens=tokens)
    prompt = row.columns.get(f"{side}_prompt") or row.columns["prompt"]
    return Example(id=row.id, prompt=prompt, target=_text(row, side))


def _text(row: Row, column: str) -> str:
    value = row.column(column)
    if isinstance(value, str):
        return value
    raise DataError(
        f"row {row.id} has no text in column `{column}`; its columns are "
        f"{', '.join(sorted(row.columns)) or 'none'}; map it with `columns: {{{column}: ...}}` at "
        "the dataset, or write it in a template"
    )
