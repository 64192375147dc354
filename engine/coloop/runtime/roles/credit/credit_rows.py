"""The rows that a learner is credited for, and their scores from each edge at `rewards`.

A missing score and the score `None` count the same here; a row without any score is left out. A
learner with `off_policy` also takes rows of other nodes: those of edges without `aggregate`, with
the score of that edge alone, in the group of the prompt row from which they descend.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace

from coloop.algorithms.recipes.protocol import EdgeScores, Score
from coloop.algorithms.recipes.rows import CreditBatch, returns_over_rounds
from coloop.data.arrays import Ids, mask_of
from coloop.data.tables import Row
from coloop.data.tables.row import merge_columns
from coloop.errors import DataError
from coloop.runtime.roles.protocol import Call, Context, Inputs
from coloop.runtime.roles.rows.inputs import deliver
from coloop.runtime.roles.rows.scored import last_trained
from coloop.spec.algorithm import OffPolicy
from coloop.spec.nodes import ActorNode, VerifierNode
from coloop.spec.training import Credit


def own_rows(node: str, call: Call, *, greedy: bool = False) -> tuple[Row, ...]:
    """Rows of the learner from this step, and its own rows from a buffer, with columns that nodes
    on the way (a filter that resamples) have added. `greedy`: only greedy extra rows; else all
    others."""
    rows: dict[str, Row] = {row.id: row for row in (call.own.rows if call.own else ())}
    for table in call.tables("rewards"):
        for row in table.rows:
            if row.id in rows:
                rows[row.id] = merge_columns(rows[row.id], [row])
            elif row.writer == node:
                rows[row.id] = row
    return tuple(row for row in rows.values() if row.tokens is not None and row.is_greedy is greedy)


def score_rows(node: str, context: Context, rows: Sequence[Row], inputs: Inputs) -> CreditBatch:
    """The scores of own rows from each edge, with those of later rounds if `credit.rounds` is
    set."""
    edges = []
    for edge, table in inputs.items():
        values = deliver(context, rows, edge, table)
        scores = [_number(values.get(row.id)) for row in rows]
        known = [values[row.id] for row in rows if row.id in values]
        edges.append(
            EdgeScores(
                name=edge.id or edge.source.node,
                weight=edge.weight,
                scores=_over_rounds(node, context, rows, scores),
                key=edge.key,
                delivered=len(known),
                none=known.count(None),
            )
        )
    return batch_of(rows, edges, [False] * len(rows))


def with_rows_of_others(
    node: str, own: CreditBatch, inputs: Inputs, prompts: "Prompts", how: OffPolicy
) -> tuple[CreditBatch, int]:
    """Own rows, then those of other nodes for the same prompt rows; and how many rows of other
    nodes answer no prompt row of the learner."""
    known = {row.id for row in own.rows}
    answers: list[Row] = []
    by_edge: list[list[Score]] = [[] for _ in own.edges]  # scores of these rows
    without_prompt = 0
    for index, (edge, table) in enumerate(inputs.items()):
        for row in () if edge.aggregate else table.rows:
            score = _number((table.scores or {}).get(row.id))
            if score is None or row.id in known or row.writer in (None, node) or row.is_greedy:
                continue
            answer = prompts.answered_by(row, how)
            if answer is None:
                without_prompt += row.tokens is not None
                continue
            known.add(row.id)
            answers.append(answer)
            for number, column in enumerate(by_edge):
                column.append(score if number == index else None)
    edges = [
        replace(
            edge,
            scores=[*edge.scores, *scores],
            delivered=edge.delivered + len(scores) - scores.count(None),
        )
        for edge, scores in zip(own.edges, by_edge, strict=True)
    ]
    of_others = [False] * len(own) + [True] * len(answers)
    return batch_of([*own.rows, *answers], edges, of_others), without_prompt


def batch_of(
    rows: Sequence[Row], edges: Sequence[EdgeScores], of_others: Sequence[bool]
) -> CreditBatch:
    return CreditBatch(
        rows=rows,
        edges=edges,
        loss_masks=[row.tokens.loss_mask if row.tokens else mask_of([]) for row in rows],
        counts=[row.drawn for row in rows],
        of_others=of_others,
    )


class Prompts:
    """The prompts that a learner has answered, by prompt row."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._ids: dict[Hashable, Ids] = {
            row.group: row.tokens.prompt_ids
            for row in rows
            if row.group is not None and row.tokens is not None
        }

    def answered_by(self, row: Row, how: OffPolicy) -> Row | None:
        """The row as an answer to the learner's prompt row from which it descends, in that group;
        None if there is none. With `prompt: as_written` it keeps its own prompt."""
        if row.tokens is None:
            return None
        above = [ancestor for ancestor in row.trail if ancestor in self._ids]
        nearest = min(above, key=lambda ancestor: len(row.trail[ancestor]), default=None)
        if how.prompt == "as_written":
            return replace(row, group=nearest or row.group)
        if nearest is None:
            return None
        tokens = replace(row.tokens, prompt_ids=self._ids[nearest])
        return replace(row, group=nearest, tokens=tokens)


def credit_of(node: str, context: Context) -> Credit:
    section = context.spec.nodes[node]
    assert isinstance(section, ActorNode | VerifierNode)
    return section.credit


def _over_rounds(
    node: str, context: Context, rows: Sequence[Row], scores: list[Score]
) -> list[Score]:
    rounds = credit_of(node, context).rounds
    if rounds is None:
        return scores
    index_of = {row.id: index for index, row in enumerate(rows)}
    below: list[list[int]] = [[] for _ in rows]
    for index, row in enumerate(rows):
        for above in (index_of[name] for name in row.trail if name in index_of):
            if rows[above].round == row.round - 1:
                below[above].append(index)
    return returns_over_rounds(
        scores,
        rounds=[row.round for row in rows],
        below=below,
        last_tokens=[last_trained(row) for row in rows],
        discount=rounds.discount,
    )


def _number(value: object) -> Score:
    return value if isinstance(value, float | int | dict) else None


# Keys of groups: by default the prompt row, or else what `group_by` names.


def group_keys(
    node: str, context: Context, group_by: Sequence[str] | None
) -> Callable[[Row], Hashable]:
    """Returns the key that a row of `node` shares with its group: by default the row that was its
    prompt, or else what `group_by` names."""
    if not group_by:
        return lambda row: row.group
    keys = [_key_of(node, context, name) for name in group_by]
    return lambda row: tuple(key(row) for key in keys)


def _key_of(node: str, context: Context, name: str) -> Callable[[Row], Hashable]:
    match name:
        case "prompt":  # a row that a buffer gives has no ancestors any more
            return lambda row: (row.group if not row.parents else None) or problem_of(row)
        case "role":
            return lambda row: row.writer
        case "round":
            return lambda row: row.round
        case "state":
            return lambda row: b"" if row.tokens is None else row.tokens.prompt_ids.tobytes()
        case "source":
            nodes = context.spec.nodes
            return _source_of([one for one, node in nodes.items() if node.kind == "dataset"])
    if name not in context.spec.nodes:
        return lambda row: row.columns.get(name)
    births = context.lineage.births_of(name)

    def ancestor(row: Row) -> str:
        row_id = row.passed.get(name) or row.ancestor_born_at(*births)
        if row_id is None:
            raise DataError(
                f"{node}: rows are grouped by `{name}`, but row {row.id} does not descend from a "
                f"row of `{name}`; set a node from which all rows descend, or `prompt`",
                node,
            )
        return row_id

    return ancestor


def _source_of(datasets: Sequence[str]) -> Callable[[Row], str]:
    """The dataset whose columns a row has, several joined by `+`; rows of a buffer have no
    ancestors any more, but keep the exact names of their columns."""

    def source(row: Row) -> str:
        nodes = {name.partition(".")[0] for name in row.scoped}
        return "+".join(one for one in datasets if one in nodes)

    return source


def problem_of(row: Row) -> str:
    """Id of the oldest ancestor of a row, which is the problem that it is about."""
    return max(row.trail, key=lambda ancestor: len(row.trail[ancestor]))
