"""Every draw follows from the run's seed, the node, the salt of a probe or of a pass, the step and,
where there is a row, its id: nothing is drawn twice, nothing depends on its neighbours."""

from collections.abc import Callable
from typing import Any

import pytest

Bench = Callable[..., Any]

LETTERS = [{"prompt": sign} for sign in "abcdef"]
SCORING = """
import random

def reward(prompts, completions, **columns):
    return [random.random() for _ in prompts]
"""
WRITING = "import random\ndef write(prompt, **c):\n    return {'drawn': random.random()}\n"
KEEPING = "import random\ndef keep(prompt, **c):\n    return random.random() < 0.5\n"


def drawing(rows_of: Any, actor: Any, **more: Any) -> tuple[Any, Any]:
    """A reward, a template and a filter whose code draws."""
    nodes = {
        "letters": rows_of(*LETTERS, rows_per_step=6),
        "actor": {**actor(), "algorithm": {"name": "reinforce", "advantage": "none"}},
        "mark": {"kind": "reward", "source": {"type": "python", "code": SCORING}},
        "draw": {"kind": "template", "code": WRITING},
        "coin": {"kind": "filter", "keep": [{"rule": "python", "code": KEEPING}]},
        "few": {
            "kind": "filter",
            "per_group": {"by": "role", "max": 3, "pick": "random"},
        },
        "again": {"kind": "filter", "resample": {"weight": "power", "exponent": 1.0}},
        **more,
    }
    edges = [
        "letters.rows -> actor.prompts",
        "actor.rollouts -> mark.rollouts",
        "actor.rollouts -> draw.rows",
        "actor.rollouts -> coin.rollouts",
        "actor.rollouts -> few.rollouts",
        "mark.scores -> again.scores",
        "again.scores -> actor.rewards",
    ]
    return nodes, edges


def of_mark(loop: Any, **options: Any) -> list[Any]:
    return list((loop.give("mark.scores", **options).scores or {}).values())


def of_draw(loop: Any, **options: Any) -> list[Any]:
    return [row.column("drawn") for row in loop.give("draw.rows", **options).rows]


def of_coin(loop: Any, **options: Any) -> list[Any]:
    return [row.column("prompt") for row in loop.give("coin.rollouts", **options).rows]


def of_few(loop: Any, **options: Any) -> list[Any]:
    return [row.id.split(":", 1)[1] for row in loop.give("few.rollouts", **options).rows]


def of_again(loop: Any, **options: Any) -> list[Any]:
    return [row.column("drawn") for row in loop.give("again.scores", **options).rows]


@pytest.mark.sample(1)
@pytest.mark.parametrize("drawn", [of_mark, of_draw, of_coin, of_few, of_again])
def test_a_pass_a_step_and_a_probe_draw_each_for_itself(
    drawn: Callable[..., list[Any]], bench: Bench, rows_of: Any, actor: Any
) -> None:
    nodes, edges = drawing(rows_of, actor)

    def fresh(**options: Any) -> list[Any]:
        return drawn(bench(nodes, edges), **options)

    first = fresh()

    assert first == fresh()
    assert len({tuple(first), tuple(fresh(number=2)), tuple(fresh(salt="refill-2"))}) == 3
    assert fresh(salt="refill-2") != fresh(salt="refill-3")


def test_a_refill_does_not_repeat_its_draws(bench: Bench, rows_of: Any, actor: Any) -> None:
    few = {
        "kind": "filter",
        "keep": [{"rule": "score", "min": 2.0}],
        "fill": {"groups": 9, "max_rounds": 3},
    }
    nodes, _ = drawing(rows_of, actor)
    nodes = {name: nodes[name] for name in ("letters", "actor", "mark")} | {"few": few}
    nodes["letters"] = rows_of(*LETTERS, rows_per_step=2)
    edges = [
        "letters.rows -> actor.prompts",
        "actor.rollouts -> mark.rollouts",
        "mark.scores -> few.scores",
        "few.scores -> actor.rewards",
    ]

    unrolled = bench(nodes, edges).step()

    scores = list((unrolled.tables["mark", "scores"].scores or {}).values())
    assert len(scores) == 12
    assert len(set(scores)) == 12


@pytest.mark.parametrize("name", ["draw", "coin"])
def test_a_row_draws_the_same_beside_other_rows(
    name: str, bench: Bench, rows_of: Any, actor: Any
) -> None:
    """Every second row is cut before the code sees it; the others draw what they drew."""
    port = {"draw": "rows", "coin": "rollouts"}[name]

    def drawn(cut: str) -> dict[str, Any]:
        nodes, edges = drawing(rows_of, actor)
        nodes["some"] = {"kind": "filter", "keep": [{"rule": "regex", "pattern": cut}]}
        edges = [
            edge for edge in edges if "few" not in edge and not edge.endswith(f"{name}.{into}")
        ]
        edges += ["actor.rollouts -> some.rollouts", f"some.rollouts -> {name}.{into}"]
        nodes.pop("few")
        table = bench(nodes, edges).give(f"{name}.{port}")
        return {row.id: row.columns.get("drawn") for row in table.rows}

    into = {"draw": "rows", "coin": "rollouts"}[name]
    every, half = drawn("."), drawn("[bdf].$")

    assert half == {row: every[row] for row in every if row.split(".")[1] in "135"}
