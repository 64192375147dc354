"""Which reading says how right a learner is, read off its loop."""

from collections.abc import Mapping
from typing import Any

import pytest

from coloop.runtime.health.checks import Truth, truths_of
from coloop.spec.io import from_dict

MODEL = {"type": "scratch", "architecture": "tiny-qwen3"}
NODES: Mapping[str, Any] = {
    "sums": {"kind": "dataset", "source": {"type": "task", "task": "arithmetic"}},
    "held_out": {"kind": "dataset", "source": {"type": "task", "task": "arithmetic"}},
    "actor": {"kind": "actor", "model": MODEL, "algorithm": {"name": "grpo"}},
    "exact": {"kind": "reward", "source": {"type": "builtin", "name": "exact_match"}},
    "taste": {"kind": "reward", "source": {"type": "model"}, "model": MODEL},
    "turned": {"kind": "reward", "source": {"type": "builtin", "name": "one_minus"}},
    "brief": {"kind": "reward", "source": {"type": "builtin", "name": "length", "max": 4}},
    "probe": {"kind": "evaluate", "instead_of": "sums", "metrics": ["tokens", "accuracy"]},
}
WRITES = "sums.rows -> actor.prompts"
LEARNED = ["actor.rollouts -> taste.rollouts", "taste.scores -> actor.rewards"]
CHECKED = ["actor.rollouts -> exact.rollouts"]
PROBED = ["held_out.rows -> probe.rows", "exact.scores -> probe.scores"]
PROBE = Truth(node="probe", metric="accuracy")
STEP = Truth(node="exact", metric="score/mean")


@pytest.mark.parametrize(
    ("edges", "truth"),
    [
        ([*LEARNED, *CHECKED, *PROBED], PROBE),
        ([*LEARNED, *CHECKED], STEP),
        # two scorers at the probe: the checker's own accuracy
        (
            [*LEARNED, *CHECKED, *PROBED, "taste.scores -> probe.scores"],
            Truth(node="probe", metric="exact.accuracy"),
        ),
        # the truth is among the rewards, and something else as well
        ([*CHECKED, "exact.scores -> actor.rewards", *LEARNED], STEP),
        # the truth alone is what is learned: nothing can part
        ([*CHECKED, "exact.scores -> actor.rewards", *PROBED], None),
        # nobody says what is true
        (LEARNED, None),
        # a reward that falls where the truth rises
        (
            [
                *CHECKED,
                LEARNED[0],
                "taste.scores -> turned.scores",
                "turned.scores -> actor.rewards",
            ],
            None,
        ),
    ],
)
def test_the_truth_is_what_a_checker_says_beside_the_reward(
    edges: list[str], truth: Truth | None
) -> None:
    every = [WRITES, *edges]
    named = {side.partition(".")[0] for edge in every for side in edge.split(" -> ")}
    parsed = from_dict(
        {
            "coloop": 1,
            "name": "small",
            "nodes": {name: node for name, node in NODES.items() if name in named},
            "edges": every,
            "schedule": {"steps": 1},
        }
    )
    assert parsed.spec is not None, [one.describe() for one in parsed.diagnostics]

    assert truths_of(parsed.spec) == ({} if truth is None else {"actor": truth})
