"""A learner's rewards on rows: sources are called through their roles, and combined like in the
learner's credit."""

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from coloop.algorithms.recipes.credit import reward_of_rows
from coloop.algorithms.recipes.protocol import EdgeScores
from coloop.data.arrays import ids_of, mask_of, numbers_of
from coloop.data.rewards.user_code import RowFailure
from coloop.data.tables import Row, Table, Tokens
from coloop.data.tables.row import child_row, root_row
from coloop.errors import ColoopError
from coloop.runtime.roles.credit.credit_rows import credit_of, score_rows
from coloop.spec.algorithm import ResolvedRewards, node_algorithms, resolve_algorithm
from coloop.spec.graph import Edge, LoopSpec
from coloop.spec.groups import rollout_of
from coloop.spec.io import parse
from coloop.spec.nodes import RewardNode
from coloop.spec.paths import apply_overrides
from coloop.spec.training import Credit
from coloop.workers.encoder import Encoder
from coloop_server.previews.inside.sources import EarlierRows, rows_of
from coloop_server.previews.inside.walk import NotHere, StagePreview, Walk, as_json
from coloop_server.previews.schemas import (
    AskScores,
    DatasetRows,
    Job,
    PastedRows,
    RowProblem,
    ScoredRow,
    Scores,
    SourceScores,
)

PORT = "rewards"
GOLD = ("completion", "target", "answer", "chosen")
"""Dataset columns that may replace a completion; the first that exists is used."""
OWN = ("prompt", "completion", "target")
LINE = re.compile(r'File "<[^"]*>", line (\d+)')
NO_CODE_LINE = re.compile(r"\bline (\d+)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    rows: tuple[Row, ...]
    """Completions of the learner."""
    sources: Mapping[str, tuple[Row, ...]]
    """Dataset rows among their ancestors."""
    recorded: Sequence[Mapping[str, Any]] = ()
    """Recorded values of each row."""
    note: str | None = None


def scores_of(job: Job, spec: LoopSpec) -> Scores:
    asked = job.asked
    assert isinstance(asked, AskScores)
    began = time.monotonic()
    edges = _edges_of(spec, asked.learner)
    walk = Walk(spec=_to_preview(spec, edges), root=Path(job.root), step=job.step or 0)
    given = _given(job, spec, walk)
    walk.give(asked.learner, "rollouts", Table(rows=given.rows))
    for node, rows in given.sources.items():
        walk.give(node, "rows", Table(rows=rows))
    walk.run(walk.upstream(asked.learner, PORT))
    scored = {edge.key: _scored(edge, walk, asked.learner, given) for edge in edges}
    totals = _totals(asked.learner, spec, walk, edges, scored, given.rows)
    credit = credit_of(asked.learner, walk.context)
    places = {row.id: index for index, row in enumerate(given.rows)}
    return Scores(
        rows=[_shown(row) for row in given.rows],
        sources=[_source(edge, walk, scored[edge.key], places) for edge in edges],
        totals=totals,
        combine=_combine(asked.learner, spec, credit),
        missing=credit.missing,
        note=_note(given, walk),
        seconds=time.monotonic() - began,
    )


def _combine(learner: str, spec: LoopSpec, credit: Credit) -> str:
    settings = [resolve_algorithm(one) for one in node_algorithms(spec, learner).get(PORT, ())]
    return credit.combine or next((one.combine for one in settings), "sum_then_normalize")


def _note(given: Given, walk: Walk) -> str | None:
    told = [given.note] if given.note else []
    if walk.recorded:
        names = " and ".join(dict.fromkeys(walk.recorded))
        told.append(f"What {names} gave is shown as it was recorded.")
    return " ".join(told) or None


def _edges_of(spec: LoopSpec, learner: str) -> list[Edge]:
    if learner not in spec.nodes:
        raise NotHere(f"the loop has no node `{learner}`")
    edges = list(spec.graph.edges_into(learner, PORT))
    if not edges:
        raise NotHere(f"nothing is connected to `{learner}.{PORT}`")
    return edges


def _to_preview(spec: LoopSpec, edges: Sequence[Edge]) -> LoopSpec:
    """The loop with all sources alive, and with failing rows left out one by one, whatever a run
    would do with them."""
    changes: dict[str, Any] = {
        f"edges.{spec.edges.index(edge)}.weight": 1.0 for edge in edges if edge.weight == 0
    }
    for name, node in spec.nodes.items():
        if isinstance(node, RewardNode) and node.source.type != "model" and node.on_error == "stop":
            changes[f"nodes.{name}.on_error"] = "skip_row"
    return apply_overrides(spec, changes)


# ---- rows


def _given(job: Job, spec: LoopSpec, walk: Walk) -> Given:
    asked = job.asked
    assert isinstance(asked, AskScores)
    match asked.rows:
        case PastedRows(rows=rows):
            return _pasted(rows, asked.learner, walk)
        case DatasetRows() as wanted:
            return _of_dataset(wanted, asked.learner, spec, walk)
        case _:
            return _recorded(job, asked.learner, walk)


def _pasted(rows: Sequence[Mapping[str, Any]], learner: str, walk: Walk) -> Given:
    parents: dict[Any, Row] = {}
    counts: dict[Any, int] = {}
    written: list[Row] = []
    for index, row in enumerate(rows):
        group = row.get("group", f"#{index}")
        key = group if isinstance(group, str | int) else str(group)
        columns = {name: value for name, value in row.items() if name not in ("group", "scores")}
        above = {name: value for name, value in columns.items() if name != "completion"}
        parent = parents.setdefault(key, root_row("pasted", f"{len(parents)}", above))
        written.append(_written(learner, parent, counts.get(key, 0), columns, walk))
        counts[key] = counts.get(key, 0) + 1
    return Given(rows=tuple(written), sources={})


def _of_dataset(wanted: DatasetRows, learner: str, spec: LoopSpec, walk: Walk) -> Given:
    parents = rows_of(spec, wanted.node, walk.root, offset=wanted.offset, count=wanted.count)
    if not parents:
        raise NotHere(f"`{wanted.node}` has no rows from {wanted.offset} on")
    names = (wanted.completion,) if wanted.completion else GOLD
    column = next((name for name in names if name in parents[0].columns), None)
    if column is None:
        there = ", ".join(sorted(parents[0].columns))
        raise NotHere(
            f"the rows of `{wanted.node}` have no text that could stand for the completion: none "
            f"of {', '.join(names)} is among their columns ({there})"
        )
    written = [
        _written(learner, row, 0, {"completion": as_text(row.columns[column])}, walk)
        for row in parents
    ]
    note = f"Column {column} stands for the completion."
    return Given(rows=tuple(written), sources={wanted.node: tuple(parents)}, note=note)


def as_text(value: Any) -> str:
    """A column's text; of a chat the last message."""
    if isinstance(value, list) and value and isinstance(value[-1], Mapping):
        return str(value[-1].get("content") or "")
    return value if isinstance(value, str) else str(value)


def _recorded(job: Job, learner: str, walk: Walk) -> Given:
    """Rows of a run with the columns of the dataset rows from which they descend."""
    own = [row for row in job.samples if row.get("node") == learner]
    if not own:
        writers = sorted({str(row.get("node")) for row in job.samples})
        told = f"; it has some of {', '.join(writers)}" if writers else ""
        raise NotHere(f"the run recorded no samples that `{learner}` wrote{told}")
    parsed = parse(job.sampled_by or "")
    earlier = EarlierRows(parsed.spec, Path(job.sampled_in or job.root)) if parsed.spec else None
    parents: dict[str, Row] = {}
    counts: dict[str, int] = {}
    written, bare = [], 0
    for row in own:
        group = str(row.get("group") or row.get("id"))
        if group not in parents:
            source_row = earlier.of(str(row.get("id"))) if earlier is not None else None
            bare += source_row is None
            texts = {name: row[name] for name in ("prompt", "target") if row.get(name) is not None}
            texts |= {"answer": texts["target"]} if "target" in texts else {}
            parents[group] = source_row or root_row("recorded", str(len(parents)), texts)
        columns = {"completion": row.get("completion") or ""}
        columns |= {name: row[name] for name in ("finished", "length") if row.get(name) is not None}
        k = counts.get(group, 0)
        counts[group] = k + 1
        prompt = row.get("prompt")
        written.append(_written(learner, parents[group], k, columns, walk, prompt))
    note = (
        f"{bare} of {len(parents)} prompts are known by their text alone: other columns of their "
        "rows are missing."
        if bare
        else None
    )
    sources: dict[str, list[Row]] = {}
    for parent in parents.values():
        sources.setdefault(parent.id.partition(":")[0], []).append(parent)
    known = {name: tuple(rows) for name, rows in sources.items() if name in walk.spec.nodes}
    recorded = [row["scores"] if isinstance(row.get("scores"), dict) else {} for row in own]
    return Given(rows=tuple(written), sources=known, recorded=recorded, note=note)


def _written(
    learner: str, parent: Row, k: int, columns: Mapping[str, Any], walk: Walk, prompt: Any = None
) -> Row:
    own: dict[str, Any] = {"finished": True, **columns}
    text = own.get("completion")
    tokens = _tokens(learner, text, walk, own) if isinstance(text, str) else None
    if tokens is not None:
        own.setdefault("length", len(tokens.token_ids))
    read = parent.columns.get("prompt") if prompt is None else prompt
    return child_row(learner, parent, k, own, tokens=tokens, prompt=read)


def _tokens(learner: str, text: str, walk: Walk, own: Mapping[str, Any]) -> Tokens | None:
    """The tokens of a text by the learner's tokenizer, with an end token if it has one; None if
    there is no tokenizer, or it cannot encode the text."""
    try:
        encoder = Encoder(walk.tokenizers.of(learner), node=learner, mark="-")
        ids = encoder.target(text) if own["finished"] else encoder.said(text)
    except ColoopError:
        return None
    return Tokens(
        prompt_ids=ids_of([]),
        token_ids=ids_of(ids),
        loss_mask=mask_of([True] * len(ids)),
        log_probs=numbers_of([0.0] * len(ids)),
        writer=learner,
        text=text,
    )


# ---- scores


def _scored(edge: Edge, walk: Walk, learner: str, given: Given) -> EdgeScores | None:
    """Scores of an edge for the learner's rows, or recorded ones if the source cannot be called
    here; None if there are none."""
    node = edge.source.node
    table = walk.tables.tables.get((node, edge.source.port))
    if table is not None:
        current = next(other for other in walk.spec.edges if other.key == edge.key)
        return score_rows(learner, walk.context, given.rows, {current: table}).edges[0]
    preview = walk.said.get(node)
    is_recorded = any(node in recorded for recorded in given.recorded)
    if not is_recorded or (preview is not None and not preview.is_left_out):
        return None
    walk.said[node] = StagePreview()
    walk.recorded.append(node)
    scores = [_number(recorded.get(node)) for recorded in given.recorded]
    return EdgeScores(name=edge.id or node, weight=edge.weight, scores=scores)


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _totals(
    learner: str,
    spec: LoopSpec,
    walk: Walk,
    edges: Sequence[Edge],
    scored: Mapping[str, EdgeScores | None],
    rows: Sequence[Row],
) -> list[float | None]:
    """The reward of each row, with the weights of the loop."""
    parts = [
        replace(of_edge, weight=edge.weight)
        for edge in edges
        if (of_edge := scored[edge.key]) is not None and edge.weight != 0
    ]
    settings = _settings(spec, learner)
    if not parts or settings is None:
        return [None] * len(rows)
    single = mask_of([True])
    masks = [
        row.tokens.loss_mask if row.tokens is not None and len(row.tokens.loss_mask) else single
        for row in rows
    ]
    rewards = reward_of_rows(parts, masks, settings, credit_of(learner, walk.context))
    return [as_json(reward) for reward in rewards]


def _settings(spec: LoopSpec, learner: str) -> ResolvedRewards | None:
    entries = node_algorithms(spec, learner).get(PORT) or ()
    if not entries:
        return None
    rollout = rollout_of(spec, learner)
    longest = rollout.max_new_tokens if rollout is not None else None
    resolved = resolve_algorithm(entries[0], max_new_tokens=longest)
    return resolved if isinstance(resolved, ResolvedRewards) else None


def _source(
    edge: Edge, walk: Walk, scored: EdgeScores | None, places: Mapping[str, int]
) -> SourceScores:
    node = edge.source.node
    preview = walk.said.get(node, StagePreview(error=f"`{node}` is not part of what a run asks"))
    scores = [None] * len(places) if scored is None else list(scored.scores)
    every = len(preview.failures) == len(places) > 0
    first = preview.failures[0] if preview.failures else None
    error = preview.error or (first.message if every and first is not None else None)
    trace = preview.traceback or (first.traceback if every and first is not None else None)
    return SourceScores(
        edge=edge.key,
        node=node,
        weight=edge.weight,
        scores=[as_json(score) for score in scores],
        failures=[_problem(failure, preview, places) for failure in preview.failures],
        error=error,
        line=_line(trace, error),
        printed=preview.printed,
        seconds=preview.seconds,
    )


def _problem(failure: RowFailure, preview: StagePreview, places: Mapping[str, int]) -> RowProblem:
    """A failure with the index of its row among all rows; a source may have seen fewer."""
    row = failure.row
    if preview.outcome is not None and "scores" in preview.outcome.outputs:
        seen = preview.outcome.outputs["scores"].rows
        if row < len(seen):
            row = places.get(seen[row].id, row)
    return RowProblem(
        row=row, message=failure.message, line=_line(failure.traceback, failure.message)
    )


def _line(trace: str | None, message: str | None) -> int | None:
    """Line of the innermost frame in the user's code."""
    lines = LINE.findall(trace or "")
    if lines:
        return int(lines[-1])
    line = NO_CODE_LINE.search(message or "") if trace is not None or message else None
    return int(line[1]) if line is not None and "Error" in (message or "") else None


def _shown(row: Row) -> ScoredRow:
    others = {
        name: as_json(value)
        for name, value in row.columns.items()
        if name not in OWN and not name.endswith("_tokens")
    }
    prompt = row.scoped.get(f"{row.writer}.prompt", row.columns.get("prompt"))
    target = row.columns.get("target", row.columns.get("answer"))
    return ScoredRow(
        id=row.id,
        prompt=as_json(prompt),
        completion=as_json(row.columns.get("completion")),
        target=as_json(target),
        columns=others,
    )
