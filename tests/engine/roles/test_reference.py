"""References: log-probs of what others wrote, at the temperature that it was drawn at."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from coloop.algorithms.batch import Sequence as TokenSequence
from coloop.data.arrays import Numbers
from coloop.errors import RequestRefused
from coloop.workers.messages import TooLong

Bench = Callable[..., Any]


def test_rows_of_different_temperatures_are_scored_each_at_its_own(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    rollout = {"completions_per_prompt": 2, "temperature": 0.7, "greedy_extra": True}
    nodes = {
        "sums": rows_of({"prompt": "p"}, {"prompt": "q"}),
        "actor": actor(rollout=rollout),
        "start": {"kind": "reference", "model": {"type": "snapshot", "of": "actor"}},
        "exact": {"kind": "reward", "source": {"type": "builtin", "name": "exact_match"}},
    }
    edges = [
        "sums.rows -> actor.prompts",
        "actor.rollouts -> start.rollouts",
        "actor.rollouts -> exact.rollouts",
        "exact.scores -> actor.rewards",
        "start.log_probs -> actor.reference",
    ]
    loop = bench(nodes, edges)
    asked: list[tuple[float, int]] = []

    def score(
        group: str, node: str, texts: Sequence[TokenSequence], temperature: float
    ) -> list[Numbers]:
        asked.append((temperature, len(texts)))
        return [np.full(len(one.token_ids) - one.prompt_length, -temperature) for one in texts]

    loop.hosts.score = score

    table = loop.give("start.log_probs")

    assert sorted(asked) == [(0.7, 4), (1.0, 2)]
    assert [row.columns["greedy"] for row in table.rows] == [False, False, True] * 2
    assert [table.log_probs[row.id][0] for row in table.rows] == [-0.7, -0.7, -1.0] * 2


def test_a_resumed_run_knows_that_rows_have_fitted(bench: Bench, rows_of: Any, actor: Any) -> None:
    """Rows of which none fits end a run that has never had one that did, and no other."""
    pair = {"prompt": "p", "chosen": "c", "rejected": "r"}
    nodes = {
        "given": rows_of(pair),
        "actor": {**actor(), "algorithm": {"name": "dpo"}},
        "start": {"kind": "reference", "model": {"type": "snapshot", "of": "actor"}},
    }
    edges = [
        "given.pairs -> actor.pairs",
        "given.pairs -> start.pairs",
        "start.log_probs -> actor.reference",
    ]
    whole, resumed, fresh = (bench(nodes, edges) for _ in range(3))
    whole.give("start.log_probs")
    resumed.roles["start"].load_state(json.loads(json.dumps(whole.roles["start"].state())))
    for loop in (resumed, fresh):
        loop.hosts.score_pairs = lambda group, node, pairs: (
            [TooLong(tokens=9, limit=5)] * len(pairs)
        )

    assert resumed.give("start.log_probs").log_probs == {}
    assert [code for code, _ in resumed.alerts] == ["rows.too_long"]
    with pytest.raises(RequestRefused, match="start: all 1 rows are too long"):
        fresh.give("start.log_probs")
