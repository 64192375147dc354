"""A row of a table: its lineage, its columns, and the tokens that it was generated as.

Rows are immutable. Adding columns makes a copy with the same id; a new row is a child with a new
id. The module does not know nodes or edges.

Fields of a `Row`:
- `id` is `<node>:<key>`, where node is the one that created the row (`join` for joined rows). It is
  unique within a step. The same parents in the same order always give the same joined row.
- `trail[a]` is the path from ancestor `a` down to this row, as steps (row id, k), where k is the
  index of a row among the children of its parent. A row is its own ancestor, with an empty path.
- `places[a]` are the paths from ancestor `a` as tuples of k, if several lead to this row.
- `columns` are values by bare name (the nearest one wins), `scoped` by exact name (`node.column`).
- `depths[c]` is the number of births since bare column `c` was written. It decides which value is
  nearest when several parents are joined.
- `passed[n]` is the id of the row that node `n` of a rounds region passed on last above this row.
  It decides which round an exact name refers to. Empty for rows that were in no such region.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Final

from coloop.data.arrays import Ids, Mask, Numbers, are_equal, ids_of, mask_of, numbers_of, owned
from coloop.errors import DataError

Score = float | None | dict[int, float]
"""A number, None if the score does not apply, or numbers by position (step or token) of a text."""

Step = tuple[str, int]

JOINED: Final = "join"
DRAWN: Final = "#.drawn"
"""Internal exact name for the draw count; no node or column can have it."""
LONGEST_ID: Final = 160


def whole(score: Score) -> float | None:
    """A score that is one number or None; raises DataError for numbers by position."""
    if isinstance(score, dict):
        raise DataError(
            "scores of steps arrived where one number a row is needed; connect the scorer's "
            "`scores` instead of its `step_scores` (`read: {reduce: min | product | last | mean}` "
            "sets how it reduces them to one number)"
        )
    return score


class Absent(Enum):
    """Marks a column that the row does not have, unlike a column whose value is None."""

    ABSENT = "absent"

    def __repr__(self) -> str:
        return "ABSENT"

    def __bool__(self) -> bool:
        return False


ABSENT: Final = Absent.ABSENT


@dataclass(frozen=True, kw_only=True, eq=False)
class Tokens:
    """A generated text with the token ids that were sampled; the text is never tokenized again.

    Lists are accepted and stored as read-only arrays. L is the length of the completion.
    """

    prompt_ids: Ids
    token_ids: Ids
    """Completion, (L,)."""
    loss_mask: Mask
    """True for tokens that the writer generated, False for those it was given, (L,)."""
    log_probs: Numbers
    """Log-probabilities at the sampling temperature, (L,)."""
    temperature: float = 1.0
    writer: str = ""
    """The node that generated them."""
    tokenizer: str = ""
    """Fingerprint of the tokenizer; empty: unknown."""
    text: str = ""
    """The completion without special tokens such as the end of text."""
    finished: bool = True
    """False if cut at `max_new_tokens`."""
    version: int = 0
    """Weight version at the first token."""
    switches: tuple[tuple[int, int], ...] = ()
    """(token, version): first token of each newer weight version, in order."""
    heard: int = 0
    """Number of completion tokens that were inserted, such as tool results."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "prompt_ids", ids_of(self.prompt_ids))
        object.__setattr__(self, "token_ids", ids_of(self.token_ids))
        object.__setattr__(self, "loss_mask", mask_of(self.loss_mask))
        object.__setattr__(self, "log_probs", numbers_of(self.log_probs))
        if not isinstance(self.switches, tuple):
            object.__setattr__(self, "switches", tuple(map(tuple, self.switches)))

    def __eq__(self, other: object) -> bool:
        return are_equal(self, other)

    @classmethod
    def of_all(cls, **fields: Any) -> "Tokens":
        """Construct from all fields without conversion; arrays need the types of `data.arrays`."""
        tokens = object.__new__(cls)
        vars(tokens).update(fields)
        return tokens

    def owned(self) -> "Tokens":
        """A copy whose arrays are no views of a larger buffer."""
        return replace(
            self,
            prompt_ids=owned(self.prompt_ids),
            token_ids=owned(self.token_ids),
            loss_mask=owned(self.loss_mask),
            log_probs=owned(self.log_probs),
        )


@dataclass(frozen=True, kw_only=True)
class Row:
    """An immutable row; its fields are described above. No slots, so that `but` copies fast."""

    id: str
    parents: tuple[str, ...] = ()
    trail: Mapping[str, tuple[Step, ...]]
    places: Mapping[str, tuple[tuple[int, ...], ...]] = field(default_factory=dict)
    k: int = 0
    round: int = 1
    writer: str | None = None
    version: int = 0
    group: str | None = None
    columns: Mapping[str, Any] = field(default_factory=dict)
    scoped: Mapping[str, Any] = field(default_factory=dict)
    depths: Mapping[str, int] = field(default_factory=dict)
    passed: Mapping[str, str] = field(default_factory=dict)
    tokens: Tokens | None = None

    @property
    def is_greedy(self) -> bool:
        """Whether it is an extra greedy completion, or a join with one. Such rows are scored, but
        neither trained on nor counted."""
        if self.writer is not None:
            return bool(self.scoped.get(f"{self.writer}.greedy"))
        if born_at(self.id) != JOINED or not self.columns.get("greedy"):
            return False
        above = {born_at(name) for way in self.trail.values() for name, _ in way}
        return any(self.scoped.get(f"{node}.greedy") is True for node in above)

    @property
    def drawn(self) -> float:
        """How often a resampling filter drew it; 1 without such a filter. A column `drawn` of the
        data has no effect."""
        count = self.scoped.get(DRAWN)
        return 1.0 if count is None or self.columns.get("drawn") != count else float(count)

    def drawn_by(self, node: str, count: int) -> "Row":
        return self.with_columns(node, {"drawn": count}).with_exact({DRAWN: count})

    def column(self, name: str) -> Any:
        if "." in name:
            return self.scoped.get(name, ABSENT)
        return self.columns.get(name, ABSENT)

    def ancestor_born_at(self, *nodes: str, least: int = 0) -> str | None:
        """Id of the nearest ancestor that one of the nodes created, at least `least` births up; 0
        includes the row itself. None if there is none."""
        best: tuple[int, str] | None = None
        for ancestor, way in self.trail.items():
            if len(way) < least or born_at(ancestor) not in nodes:
                continue
            if best is None or len(way) < best[0]:
                best = (len(way), ancestor)
        return best[1] if best else None

    def handed_on(self, node: str) -> str | None:
        """Id of the ancestor that this node of a rounds region passed on last; None without one."""
        name = self.passed.get(node)
        return name if name != self.id and name in self.trail else None

    def ways_from(self, ancestor: str) -> tuple[tuple[int, ...], ...]:
        """The values of k on each path from an ancestor to this row; several only below a join."""
        known = self.places.get(ancestor)
        return known if known is not None else (tuple(k for _, k in self.trail[ancestor]),)

    def with_columns(self, node: str, columns: Mapping[str, Any]) -> "Row":
        """A copy with more columns, written by `node`."""
        return self.but(
            columns={**self.columns, **columns},
            scoped={**self.scoped, **{f"{node}.{name}": v for name, v in columns.items()}},
            depths={**self.depths, **dict.fromkeys(columns, 0)},
        )

    def with_exact(self, columns: Mapping[str, Any]) -> "Row":
        """A copy with more columns under exact names only."""
        return self.but(scoped={**self.scoped, **columns})

    def but(self, **fields: Any) -> "Row":
        """A copy with other fields; faster than `dataclasses.replace`, as every row comes here."""
        changed = object.__new__(Row)
        vars(changed).update(vars(self), **fields)
        return changed

    def in_round(self, number: int) -> "Row":
        """A copy for the given round."""
        return self if self.round == number else self.but(round=number)

    def handed_on_by(self, node: str) -> "Row":
        """A copy marked as passed on by a node of a rounds region."""
        return self.but(passed={**self.passed, node: self.id})

    def owned(self) -> "Row":
        """A copy with its own arrays, for a row that outlives the message that it came in."""
        known: dict[int, Tokens] = {}

        def own(value: Any) -> Any:
            if isinstance(value, Tokens):
                return known.setdefault(id(value), value.owned())
            return [own(part) for part in value] if isinstance(value, list) else value

        return self.but(
            columns={name: own(value) for name, value in self.columns.items()},
            scoped={name: own(value) for name, value in self.scoped.items()},
            tokens=own(self.tokens),
        )

    def without_columns(self, names: Sequence[str]) -> "Row":
        """A copy without these bare names; exact names stay."""
        gone = set(names)
        return self.but(
            columns={name: v for name, v in self.columns.items() if name not in gone},
            depths={name: d for name, d in self.depths.items() if name not in gone},
        )


def born_at(row_id: str) -> str:
    return row_id.partition(":")[0]


def root_row(node: str, key: str, columns: Mapping[str, Any]) -> Row:
    row_id = f"{node}:{key}"
    return Row(
        id=row_id,
        trail={row_id: ()},
        columns=dict(columns),
        scoped={f"{node}.{name}": value for name, value in columns.items()},
        depths=dict.fromkeys(columns, 0),
    )


def child_row(
    node: str,
    parent: Row,
    k: int,
    columns: Mapping[str, Any],
    *,
    tokens: Tokens | None = None,
    version: int = 0,
    key: str | None = None,
    prompt: Any = ABSENT,
) -> Row:
    """The k-th child that `node` wrote from one parent.

    Args:
        prompt: the prompt, stored only under the exact name `<node>.prompt`.
    """
    row_id = _short(f"{node}:{parent.id}.{k if key is None else key}")
    trail = {ancestor: (*way, (row_id, k)) for ancestor, way in parent.trail.items()}
    trail[row_id] = ()
    depths = {name: depth + 1 for name, depth in parent.depths.items()}
    depths.update(dict.fromkeys(columns, 0))
    scoped = {**parent.scoped, **{f"{node}.{name}": v for name, v in columns.items()}}
    if prompt is not ABSENT:
        scoped[f"{node}.prompt"] = prompt
    return Row(
        id=row_id,
        parents=(parent.id,),
        trail=trail,
        places={a: tuple((*way, k) for way in ways) for a, ways in parent.places.items()},
        k=k,
        round=parent.round,
        writer=node,
        version=version,
        group=parent.id,
        columns={**parent.columns, **columns},
        scoped=scoped,
        depths=depths,
        passed=parent.passed,
        tokens=tokens,
    )


def joined_row(
    parents: Sequence[Row], *, columns: Mapping[str, Any] | None = None, k: int = 0
) -> Row:
    """The child of several rows; the same parents in the same order give the same row.

    A bare column with different values at the same distance is ambiguous and left out.
    """
    row_id = _joined_id([parent.id for parent in parents])
    trail: dict[str, tuple[Step, ...]] = {}
    for parent in parents:
        for ancestor, way in parent.trail.items():
            known = trail.get(ancestor)
            if known is None:
                trail[ancestor] = (*way, (row_id, k))
            elif known[:-1] != way:
                trail[ancestor] = (*known[:-1], *(s for s in way if s not in known), (row_id, k))
    trail[row_id] = ()
    bare, depths = _nearest_columns(parents)
    scoped, passed = exact_names(parents)
    if columns:
        bare.update(columns)
        depths.update(dict.fromkeys(columns, 0))
    return Row(
        id=row_id,
        parents=tuple(parent.id for parent in parents),
        trail=trail,
        places=_places_below(parents, k),
        k=k,
        round=max(parent.round for parent in parents),
        version=min(parent.version for parent in parents),
        columns=bare,
        scoped=scoped,
        depths=depths,
        passed=passed,
    )


def is_joined_of(row_id: str, parents: Sequence[str]) -> bool:
    return row_id == _joined_id(parents)


def merge_columns(row: Row, others: Sequence[Row]) -> Row:
    """A copy of a row with the columns that `others` have: the row in other tables, or ancestors.

    The nearest value of a bare column wins; an ancestor's never replaces one that the row wrote.
    """
    columns, depths = dict(row.columns), dict(row.depths)
    scoped, passed = exact_names([row, *others])
    for other in others:
        distance = 0 if other.id == row.id else max(1, len(row.trail.get(other.id, ())))
        for name, value in other.columns.items():
            depth = other.depths.get(name, 0) + distance
            if name not in columns or depth < depths.get(name, 0):
                columns[name] = value
                depths[name] = depth
    tokens = row.tokens or next((o.tokens for o in others if o.id == row.id and o.tokens), None)
    return row.but(columns=columns, scoped=scoped, depths=depths, passed=passed, tokens=tokens)


def exact_names(rows: Sequence[Row]) -> tuple[dict[str, Any], Mapping[str, str]]:
    """Merged `scoped` and `passed` of rows; where they are of several rounds, the latest wins."""
    scoped: dict[str, Any] = {}
    latest: dict[str, Row] = {}
    for row in rows:
        earlier = {
            node
            for node, name in row.passed.items()
            if node in latest and _is_earlier(name, row, latest[node].passed[node], latest[node])
        }
        latest.update((node, row) for node in row.passed if node not in earlier)
        if earlier:
            given = row.scoped.items()
            scoped.update((n, value) for n, value in given if n.partition(".")[0] not in earlier)
        else:
            scoped.update(row.scoped)
    return scoped, {node: row.passed[node] for node, row in latest.items()}


def _is_earlier(name: str, row: Row, other_name: str, other: Row) -> bool:
    """Whether `name`, an ancestor of `row`, is of an earlier round than `other_name`."""
    return name != other_name and name in other.trail and other_name not in row.trail


def _joined_id(parents: Sequence[str]) -> str:
    return _short(f"{JOINED}:({'+'.join(parents)})")


def _places_below(parents: Sequence[Row], k: int) -> Mapping[str, tuple[tuple[int, ...], ...]]:
    """`places` of a joined row: all paths from those ancestors that have more than one."""
    below: dict[str, list[tuple[int, ...]]] = {}
    for parent in parents:
        for ancestor in parent.trail:
            ways = [(*way, k) for way in parent.ways_from(ancestor)]
            below.setdefault(ancestor, []).extend(ways)
    return {ancestor: tuple(sorted(set(ways))) for ancestor, ways in below.items() if len(ways) > 1}


def _nearest_columns(parents: Sequence[Row]) -> tuple[dict[str, Any], dict[str, int]]:
    columns: dict[str, Any] = {}
    depths: dict[str, int] = {}
    ambiguous: set[str] = set()
    for parent in parents:
        for name, value in parent.columns.items():
            depth = parent.depths.get(name, 0) + 1
            if name not in columns or depth < depths[name]:
                columns[name], depths[name] = value, depth
                ambiguous.discard(name)
            elif depth == depths[name] and columns[name] is not value and columns[name] != value:
                ambiguous.add(name)
    for name in ambiguous:
        del columns[name], depths[name]
    return columns, depths


def _short(row_id: str) -> str:
    if len(row_id) <= LONGEST_ID:
        return row_id
    node, _, key = row_id.partition(":")
    return f"{node}:#{hashlib.blake2b(key.encode(), digest_size=12).hexdigest()}"
