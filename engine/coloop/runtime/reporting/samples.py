"""Samples of a run: the rows of a step in a file, a few of them in an event. The first and the last
step are shown, and others at intervals of time.

    samples/step-N.jsonl           a row per line: texts, scores, reward, group, parents
    samples/step-N.tokens.jsonl    a row per line: the tokens of a few of them, as the loss saw them

A line of the second has `id`, `node` (that generated the row), `by`, `port`, `algorithm` (that
learned it), and lists with an entry per token of the completion: `ids`, `pieces` (text), `mask`
(whether the token is trained; tool results are not), and those that the loss has of `log_prob`,
`advantage`, `log_ratio` (new policy to old), `kl` (to the reference), `entropy`, `clipped` (whether
its gradient was stopped). `rewards` has token-level scores by scorer, null where there is none.
"""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from coloop.algorithms.batch import Sequence as TokenSequence
from coloop.data.tables import Row, Table
from coloop.runtime.checkpoints.storage import Storage
from coloop.runtime.run_files.events import SampleEvent
from coloop.runtime.schedule.calls import Unrolled
from coloop.workers.messages import LearnReply, TaughtBy

FOLDER = "samples"
ROWS_IN_EVENT = 6
ROWS_IN_FILE = 64
EVENT_TEXT = 400
INTERVAL_SECONDS = 2.0
DIGITS = 6
"""Significant digits of the numbers of a token."""
FLAGS = ("clipped",)
"""Boolean numbers of tokens."""


@dataclass(eq=False)
class Samples:
    folder: Path
    storage: Storage | None = None
    _left_out: tuple[int, Unrolled, Sequence[LearnReply]] | None = field(default=None, init=False)
    """The last step, if it came too soon after another."""

    def __post_init__(self) -> None:
        self._written_at = -INTERVAL_SECONDS

    def of_step(
        self, step: int, unrolled: Unrolled, replies: Sequence[LearnReply] = ()
    ) -> SampleEvent | None:
        """Write the step's rows; None if the last were written less than `INTERVAL_SECONDS` ago.
        `replies`: of the step's updates, with some rows as the losses saw them."""
        is_soon = time.monotonic() - self._written_at < INTERVAL_SECONDS
        self._left_out = (step, unrolled, replies) if is_soon else None
        return None if is_soon else self._shown(step, unrolled, replies)

    def of_last(self) -> SampleEvent | None:
        """Write the rows of the last step; None if they are written already."""
        last, self._left_out = self._left_out, None
        return None if last is None else self._shown(*last)

    def _shown(
        self, step: int, unrolled: Unrolled, replies: Sequence[LearnReply]
    ) -> SampleEvent | None:
        written = _written(unrolled)
        if not written:
            return None
        self._written_at = time.monotonic()
        scored = [table for table in unrolled.tables.values() if table.scores is not None]
        writers = {row.id: node for node, row in written}
        tokens = [
            _token_line(writers[row.id], by, row, pieces, scored)
            for reply in replies
            for by, own in reply.taught.items()
            for row, pieces in zip(own, reply.pieces[by], strict=True)
            if row.id in writers
        ]
        tokens.sort(key=lambda line: line["by"] != line["node"])  # first by who wrote it
        rows = _rows(written, scored, {line["id"] for line in tokens})
        name = f"{FOLDER}/step-{step}"
        path = self._write(f"{name}.jsonl", rows)
        path_of_tokens = self._write(f"{name}.tokens.jsonl", tokens) if tokens else None
        stride = max(1, len(rows) // ROWS_IN_EVENT)  # some of every writer
        few = [
            {key: text[:EVENT_TEXT] if isinstance(text, str) else text for key, text in row.items()}
            for row in rows[::stride][:ROWS_IN_EVENT]
        ]
        return SampleEvent(path=path, tokens=path_of_tokens, rows=few, step=step)

    def _write(self, name: str, rows: Iterable[Mapping[str, Any]]) -> str:
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        lines = (json.dumps(row, ensure_ascii=False) for row in rows)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        if self.storage is not None:
            self.storage.put_samples(path)
        return name


_Written = list[tuple[str, Row]]
"""Rows with the nodes that generated them."""


def _written(unrolled: Unrolled) -> _Written:
    """Rows of every writer, with reward and advantage if they were credited."""
    written = []
    for node in dict.fromkeys(node for node, port in unrolled.tables if port == "rollouts"):
        table = unrolled.tables.get((node, "credited")) or unrolled.tables[node, "rollouts"]
        own = [row for row in table.rows if row.writer == node]
        written += [(node, row) for row in own[:ROWS_IN_FILE]]
    return written


def _rows(written: _Written, tables: Sequence[Table], told: set[str]) -> list[dict[str, Any]]:
    """`told`: ids of rows that have a line of tokens."""
    ids = {row.id for _, row in written}
    scores = _scores(ids, tables)
    rows = []
    for node, row in written:
        above = [ancestor for ancestor in row.trail if ancestor != row.id and ancestor in ids]
        fields = {
            "id": row.id,
            "node": node,
            "prompt": row.scoped.get(f"{node}.prompt", row.columns.get("prompt")),
            "completion": row.columns.get("completion"),
            "target": row.columns.get("target", row.columns.get("answer")),
            "scores": scores[row.id],
            "reward": row.columns.get("reward"),
            "advantage": row.columns.get("advantage"),
            "group": row.group,
            "parents": sorted(above, key=lambda id_: len(row.trail[id_])) or None,
            "round": row.round if row.round > 1 else None,
            "finished": row.columns.get("finished"),
            "length": row.columns.get("length"),
            "version": row.version,
            "has_tokens": True if row.id in told else None,
        }
        rows.append({name: value for name, value in fields.items() if value is not None})
    return rows


def _scores(ids: set[str], tables: Sequence[Table]) -> dict[str, dict[str, float]]:
    """By row and scorer, or `scorer.part` for what a score was computed from; if only descendants
    of the row were scored, their mean."""
    by_row: dict[str, dict[str, list[float]]] = {row_id: {} for row_id in ids}
    named = [
        (name, scores, table)
        for table in tables
        if table.scorer is not None
        for name, scores in (
            (table.scorer, table.scores or {}),
            *((f"{table.scorer}.{part}", numbers) for part, numbers in table.parts.items()),
        )
    ]
    for scorer, scores, table in named:
        rows = {row.id: row for row in table.rows}
        own: dict[str, list[float]] = {}
        below: dict[str, list[float]] = {}
        for row_id, score in scores.items():
            if not isinstance(score, float | int):
                continue
            if row_id in ids:
                own.setdefault(row_id, []).append(float(score))
            above = rows[row_id].trail if row_id in rows else ()
            for ancestor in above:
                if ancestor in ids and ancestor != row_id:
                    below.setdefault(ancestor, []).append(float(score))
        for row_id, numbers in {**below, **own}.items():
            by_row[row_id][scorer] = numbers
    return {
        row_id: {scorer: sum(numbers) / len(numbers) for scorer, numbers in by_scorer.items()}
        for row_id, by_scorer in by_row.items()
    }


def _token_line(
    node: str,
    by: TaughtBy,
    row: TokenSequence,
    pieces: Sequence[str],
    tables: Sequence[Table],
) -> dict[str, Any]:
    role, port, algorithm = by
    numbers = {
        name: [
            bool(number) if name in FLAGS else float(f"{number:.{DIGITS}g}")
            for number in values.tolist()
        ]
        for name, values in row.numbers.items()
        if not isinstance(values, float)
    }
    size = len(row.token_ids)
    rewards = {
        table.scorer: [score.get(index) for index in range(size)]
        for table in tables
        if table.scorer and isinstance(score := (table.scores or {}).get(row.id), dict)
    }
    return {
        "id": row.id,
        "node": node,
        "by": role,
        "port": port,
        "algorithm": algorithm,
        "ids": row.token_ids.tolist(),
        "pieces": list(pieces),
        **numbers,
        "mask": row.loss_mask.tolist(),
        **({"rewards": rewards} if rewards else {}),
    }
