"""Which text of a row is scored or learned: a rollout's own tokens, or `target` after `prompt`."""

from coloop.errors import DataError
from coloop.hosts.messages import Example, PairExample, Prompt
from coloop.spec.graph import LoopSpec
from coloop.tables import ABSENT, Row, Tokens


def as_example(row: Row, *, target: str = "target") -> Example:
    """A rollout keeps its tokens; any other row imitates its target column after its prompt."""
    if row.tokens is not None:
        return Example(id=row.id, tokens=row.tokens)
    return Example(id=row.id, prompt=prompt_of(row), target=_text(row, target))


def is_masked(row: Row, spec: LoopSpec) -> bool:
    """Whether the row was cut by its limit and its writer keeps such rows out of the loss."""
    rollout = getattr(spec.nodes.get(row.writer or ""), "rollout", None)
    is_cut = row.tokens is not None and row.columns.get("finished") is False
    return is_cut and rollout is not None and rollout.truncated == "mask"


def as_pair(row: Row) -> PairExample:
    """Both sides of a pair; a side that was drawn keeps its tokens."""
    return PairExample(id=row.id, chosen=_side(row, "chosen"), rejected=_side(row, "rejected"))


def _side(row: Row, side: str) -> Example:
    tokens = row.columns.get(f"{side}_tokens")
    if isinstance(tokens, Tokens):
        return Example(id=row.id, tokens=tokens)
    prompt = row.columns.get(f"{side}_prompt") or prompt_of(row)
    return Example(id=row.id, prompt=prompt, target=_text(row, side))


def prompt_of(row: Row, node: str | None = None) -> Prompt:
    """The text or chat to which a row answers."""
    prompt = row.column("prompt")
    if isinstance(prompt, str | list):
        return prompt
    raise _missing(row, "prompt", prompt, node)


def _text(row: Row, column: str) -> str:
    value = row.column(column)
    if isinstance(value, str):
        return value
    raise _missing(row, column, value, None)


def _missing(row: Row, column: str, found: object, node: str | None) -> DataError:
    where = "" if node is None else f"{node}: "
    what = "is not there" if found is ABSENT else f"is a {type(found).__name__}"
    return DataError(
        f"{where}row {row.id} has no text in column `{column}`: it {what}; its columns are "
        f"{', '.join(sorted(row.columns)) or 'none'}; map it with `columns: {{{column}: ...}}` at "
        "the dataset, or write it in a template",
        node,
        f"columns.{column}",
    )
