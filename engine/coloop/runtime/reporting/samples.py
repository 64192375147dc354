"""Texts of a run for people: every so often the rows of a step, whole in a file, a few of them in
an event. Which steps are shown is a matter of time, but for the first and the last; what is shown
of a step is not.

    samples/step-N.jsonl           a row a line: texts, scores, reward, group, what it answers to
    samples/step-N.tokens.jsonl    a row a line: what the loss saw of each token of a few of them

A line of the second: `id`, `node` (who wrote it), `by`, `port`, `algorithm` (who learned it, and
how), then lists with an entry for each token of the completion, nothing else among them: `ids`,
`pieces` (their text, which together is the completion), `mask` (whether the token is trained;
what a tool said is not), and of those that the loss has `log_prob`, `advantage`, `log_ratio` (new
policy to old), `kl` (to the reference), `entropy`, `clipped` (whether its gradient was stopped).
`rewards` has by scorer the scores that stand at tokens, null where there is none.
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
"""Significant ones of a number of a token."""
FLAGS = ("clipped",)
"""Numbers of tokens that are yes or no."""


@dataclass(eq=False)
class Samples:
    """Writes the samples folder of a run."""

    folder: Path
    storage: Storage | None = None
    _left_out: tuple[int, Unrolled, Sequence[LearnReply]] | None = field(default=None, init=False)
    """The last step, where it came too soon after another."""

    def __post_init__(self) -> None:
        self._written_at = -INTERVAL_SECONDS

    def of_step(
        self, step: int, unrolled: Unrolled, replies: Sequence[LearnReply] = ()
    ) -> SampleEvent | None:
        """The step's rows, where some time has passed since the last ones.

        Args:
            replies: of the step's updates, with some rows as the losses saw them.
        """
        is_soon = time.monotonic() - self._written_at < INTERVAL_SECONDS
        self._left_out = (step, unrolled, replies) if is_soon else None
        return None if is_soon else self._shown(step, unrolled, replies)

    def of_last(self) -> SampleEvent | None:
        """The rows of the last step, where they have not been shown: what a run ends with."""
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
        stride = max(1, len(rows) // ROWS_IN_EVENT)  # so that every writer is among them
        few = [
            {name: _shortened(value) for name, value in row.items()}
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
"""Rows with the nodes that wrote them."""


def _written(unrolled: Unrolled) -> _Written:
    """Rows of every writer: with reward and advantage where it was credited."""
    found = []
    for node in dict.fromkeys(node for node, port in unrolled.tables if port == "rollouts"):
        table = unrolled.tables.get((node, "credited")) or unrolled.tables[node, "rollouts"]
        own = [row for row in table.rows if row.writer == node]
        found += [(node, row) for row in own[:ROWS_IN_FILE]]
    return found


def _rows(written: _Written, tables: Sequence[Table], told: set[str]) -> list[dict[str, Any]]:
    ids = {row.id for _, row in written}
    scores = _scores(ids, tables)
    return [
        _row(node, row, scores[row.id], _above(row, ids), row.id in told) for node, row in written
    ]


def _row(
    node: str, row: Row, scores: Mapping[str, float], above: Sequence[str], has_tokens: bool
) -> dict[str, Any]:
    prompt = row.scoped.get(f"{node}.prompt", row.columns.get("prompt"))
    found = {
        "id": row.id,
        "node": node,
        "prompt": prompt,
        "completion": row.columns.get("completion"),
        "target": row.columns.get("target", row.columns.get("answer")),
        "scores": scores,
        "reward": row.columns.get("reward"),
        "advantage": row.columns.get("advantage"),
        "group": row.group,
        "parents": list(above) or None,
        "round": row.round if row.round > 1 else None,
        "finished": row.columns.get("finished"),
        "length": row.columns.get("length"),
        "version": row.version,
        "has_tokens": has_tokens or None,
    }
    return {name: value for name, value in found.items() if value is not None}


def _above(row: Row, ids: set[str]) -> list[str]:
    found = [one for one in row.trail if one != row.id and one in ids]
    return sorted(found, key=lambda one: len(row.trail[one]))


def _scores(ids: set[str], tables: Sequence[Table]) -> dict[str, dict[str, float]]:
    """By row and scorer; where it scored what was made of the row, the mean of that."""
    said: dict[str, dict[str, list[float]]] = {one: {} for one in ids}
    for table in tables:
        scorer, rows = table.scorer, {row.id: row for row in table.rows}
        if scorer is None:
            continue
        own: dict[str, list[float]] = {}
        below: dict[str, list[float]] = {}
        for row_id, score in (table.scores or {}).items():
            if not isinstance(score, float | int):
                continue
            if row_id in ids:
                own.setdefault(row_id, []).append(float(score))
            above = rows[row_id].trail if row_id in rows else ()
            for one in (one for one in above if one in ids and one != row_id):
                below.setdefault(one, []).append(float(score))
        for row_id, scores in {**below, **own}.items():
            said[row_id][scorer] = scores
    return {
        row_id: {scorer: sum(scores) / len(scores) for scorer, scores in by_scorer.items()}
        for row_id, by_scorer in said.items()
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


def _shortened(value: Any) -> Any:
    return value[:EVENT_TEXT] if isinstance(value, str) else value
