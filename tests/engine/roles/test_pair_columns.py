"""Columns of pairs that a scorer reads beside their sides: it is told when none of them has one."""

from collections.abc import Callable
from typing import Any

import pytest

Bench = Callable[..., Any]

PAIR = {"prompt": "p", "chosen": "c", "rejected": "r", "strength": 0.5}
SCORER = {
    "kind": "reward",
    "source": {"type": "model"},
    "model": {"type": "scratch", "architecture": "tiny-qwen3"},
    "training": {"optimizer": {"name": "adamw", "lr": 1e-3}},
}


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"margin": "strenght"}, "algorithm.pairs.margin: none of 2 pairs has a number in the"),
        ({"soft": True}, "algorithm.pairs.soft: none of 2 pairs has a number in the column `prob"),
        ({"margin": "strength"}, None),
        ({}, None),
    ],
)
def test_a_column_that_no_pair_has_is_told(
    fields: dict[str, Any], told: str | None, bench: Bench, rows_of: Any
) -> None:
    nodes = {
        "given": rows_of(PAIR, {**PAIR, "prompt": "q"}),
        "rm": {**SCORER, "algorithm": {"name": "bradley_terry", **fields}},
    }
    loop = bench(nodes, ["given.pairs -> rm.pairs"])

    loop.step()

    alerts = [message for code, message in loop.alerts if code == "learn.no_column"]
    assert len(alerts) == (told is not None)
    assert told is None or (told in alerts[0] and "`strength`" in alerts[0])


def test_one_pair_with_the_column_is_enough(bench: Bench, rows_of: Any) -> None:
    nodes = {
        "given": rows_of({**PAIR, "probability": 0.7}),
        "others": rows_of(PAIR),
        "rm": {**SCORER, "algorithm": {"name": "bradley_terry", "soft": True}},
    }
    loop = bench(nodes, ["given.pairs -> rm.pairs", "others.pairs -> rm.pairs"])

    loop.step()

    assert loop.alerts == []
