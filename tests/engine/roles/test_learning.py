"""What an update does to known texts, by real weights: the way from rows to the optimizer."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.engine.numerics import near

from coloop.algorithms.batch import Sequence, Text
from coloop.data.tables import Tokens
from coloop.runtime.roles.rows.texts import drawn_sequence
from coloop.workers.messages import LearnRequest
from coloop.workers.settings import HostSettings
from coloop.workers.sync.folders import TransferFolders
from coloop.workers.weight_sync import WeightSync
from coloop.workers.worker import Worker
from coloop.workers.worker_group import WorkerGroup

Bench = Callable[..., Any]

MODEL = {"type": "scratch", "architecture": "tiny-qwen3"}
PAIRS = [
    {"prompt": "1+1=", "chosen": "2", "rejected": "7"},
    {"prompt": "2+3=", "chosen": "5", "rejected": "14"},
    {"prompt": "9+9=", "chosen": "18", "rejected": "3"},
]
START = {"kind": "reference", "model": {"type": "snapshot", "of": "actor"}}
PREFERENCES: dict[str, dict[str, Any]] = {
    "dpo": {"name": "dpo"},
    "dpo, smoothed": {"name": "dpo", "label_smoothing": 0.1},
    "dpo, by means": {"name": "dpo", "reduce": "mean"},
    "dpo with imitation": {"name": "dpo", "sft": 0.2},
    "hinge": {"name": "dpo", "loss": "hinge"},
    "robust": {"name": "dpo", "loss": "robust", "label_smoothing": 0.1},
    "exo": {"name": "dpo", "loss": "exo"},
    "nca": {"name": "dpo", "loss": "nca"},
    "sppo": {"name": "dpo", "loss": "sppo"},
    "apo": {"name": "dpo", "loss": "apo"},
    "kto": {"name": "kto"},
    "spin": {"name": "spin"},
}


def learner(algorithm: Any, *, rate: float = 1e-3, **training: Any) -> dict[str, Any]:
    return {
        "kind": "actor",
        "model": MODEL,
        "rollout": {"completions_per_prompt": 2, "max_new_tokens": 4},
        "algorithm": algorithm,
        "training": {"optimizer": {"name": "sgd", "lr": rate}, "gradient_clip": None, **training},
    }


class Here:
    """One host, asked without a cluster."""

    def __init__(self, host: Worker) -> None:
        self._host = host

    def asking(self, tick: Any = None) -> Any:
        return lambda pool, method, *arguments: getattr(self._host, method.__name__)(*arguments)


def with_weights(loop: Any, root: Path) -> Worker:
    """The loop's stages ask real weights instead of a script."""
    host = Worker(
        HostSettings(spec=loop.spec, weights=loop.plan.weights, root=root, seed=0, threads=1)
    )
    host.build()
    pools = {group.name: group.pool for group in loop.plan.weights}
    weight_sync = WeightSync(loop.plan, TransferFolders([root]))
    loop.stand(hosts=WorkerGroup(Here(host), pools, weight_sync))
    return host


def text_of(pair: dict[str, Any], side: str) -> Sequence:
    """One side of a pair, not encoded yet."""
    return Sequence(id=side, text=Text(prompt=pair["prompt"], target=pair[side]))


def margins(host: Worker) -> list[float]:
    """log π(chosen) − log π(rejected) of each pair of `PAIRS`."""
    found = []
    for pair in PAIRS:
        chosen, rejected = (
            sum(
                host.score(
                    "actor",
                    "actor",
                    [text_of(pair, side)],
                    1.0,
                )[0]
            )
            for side in ("chosen", "rejected")
        )
        found.append(chosen - rejected)
    return found


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", PREFERENCES)
def test_a_step_makes_chosen_texts_likelier_against_rejected_ones(
    name: str, bench: Bench, rows_of: Any, tmp_path: Path
) -> None:
    nodes = {"given": rows_of(*PAIRS), "actor": learner(PREFERENCES[name]), "start": START}
    edges = [
        "given.pairs -> actor.pairs",
        "given.pairs -> start.pairs",
        "start.log_probs -> actor.reference",
    ]
    loop = bench(nodes, edges)
    host = with_weights(loop, tmp_path)
    before = margins(host)

    loop.step()

    assert all(new > old for new, old in zip(margins(host), before, strict=True))


JUDGE = """
def reward(prompts, completions, **columns):
    return [0.1] * len(prompts)
"""


@pytest.mark.parametrize("is_turned", [False, True])
def test_a_step_follows_the_preference_that_relabels_the_pairs(
    is_turned: bool, bench: Bench, rows_of: Any, tmp_path: Path
) -> None:
    """A preference of 0.1 for `chosen` turns every pair."""
    nodes = {
        "given": rows_of(*PAIRS),
        "judge": {"kind": "reward", "source": {"type": "python", "code": JUDGE}},
        "again": {"kind": "pairs", "method": "relabel"},
        "actor": learner({"name": "dpo"}),
        "start": START,
    }
    preference = ["given.rows -> judge.rows", "judge.scores -> again.preference"]
    edges = [
        "given.pairs -> again.pairs",
        "again.pairs -> actor.pairs",
        "again.pairs -> start.pairs",
        "start.log_probs -> actor.reference",
        *(preference if is_turned else []),
    ]
    if not is_turned:
        del nodes["judge"]
    loop = bench(nodes, edges)
    host = with_weights(loop, tmp_path)
    before = margins(host)

    loop.step()

    moves = [new - old for new, old in zip(margins(host), before, strict=True)]
    assert all(move < 0 if is_turned else move > 0 for move in moves)


def test_a_step_prefers_real_texts_to_own_ones(bench: Bench, rows_of: Any, tmp_path: Path) -> None:
    """SPIN: gold against what the policy itself wrote, joined by lineage."""
    nodes = {
        "gold": rows_of(*({"prompt": p["prompt"], "target": p["chosen"]} for p in PAIRS)),
        "self": {
            "kind": "actor",
            "model": {"type": "snapshot", "of": "actor"},
            "rollout": {"completions_per_prompt": 1, "max_new_tokens": 4},
        },
        "own": {
            "kind": "pairs",
            "method": "direct",
            "columns": {"chosen": "target", "rejected": "completion"},
        },
        "actor": learner({"name": "spin"}),
        "start": {"kind": "reference", "model": {"type": "shared", "with": "self"}},
    }
    edges = [
        "gold.rows -> self.prompts",
        "gold.rows -> own.chosen",
        "self.rollouts -> own.rejected",
        "own.pairs -> actor.pairs",
        "own.pairs -> start.pairs",
        "start.log_probs -> actor.reference",
    ]
    loop = bench(nodes, edges)
    host = with_weights(loop, tmp_path)

    tables = loop.step().tables
    pairs = tables["own", "pairs"].rows
    gold = [text_of(pair, "chosen") for pair in PAIRS]
    written = [drawn_sequence("own", row.columns["rejected_tokens"]) for row in pairs]
    for texts, sign in ((gold, 1), (written, -1)):
        new = host.score("actor", "actor", texts, 1.0)
        old = host.score("self", "self", texts, 1.0)
        moves = [sum(a) - sum(b) for a, b in zip(new, old, strict=True)]
        assert sum(moves) * sign > 0


def rewarded(host: Worker) -> tuple[Sequence, ...]:
    """Known texts, every other one to be raised, with the log-probs of the weights as they are."""
    items = []
    for place, text in enumerate(("2", "7", "11", "0")):
        ids = host._homes["actor"].weights.encoder("actor").target(text)
        prompt = host._homes["actor"].weights.encoder("actor").prompt("1+1=")
        tokens = Tokens(
            prompt_ids=prompt,
            token_ids=ids,
            loss_mask=[True] * len(ids),
            log_probs=[0.0] * len(ids),
            writer="actor",
        )
        [own] = host.score("actor", "actor", [drawn_sequence("row", tokens)], 1.0)
        advantage = 1.0 if place % 2 else -1.0
        known = replace(tokens, log_probs=own)
        items.append(drawn_sequence(str(place), known, advantages=advantage))
    return tuple(items)


REWARDED_EDGES = ["sums.rows -> actor.prompts", "actor.rollouts -> exact.rollouts"]


def rewarded_loop(bench: Bench, rows_of: Any, algorithm: Any, **training: Any) -> Any:
    nodes = {
        "sums": rows_of({"prompt": "1+1=", "answer": "2"}),
        "actor": learner({"rewards": algorithm}, **training),
        "exact": {"kind": "reward", "source": {"type": "builtin", "name": "exact_match"}},
    }
    return bench(nodes, [*REWARDED_EDGES, "exact.scores -> actor.rewards"])


@pytest.mark.parametrize("order", [(), ("actor",)])
def test_repeated_updates_learn_against_the_policy_before_the_first(
    order: tuple[str, ...], bench: Bench, rows_of: Any, tmp_path: Path
) -> None:
    """A large rate moves the policy far in one update; what follows meets clipped ratios."""
    loop = rewarded_loop(bench, rows_of, {"name": "grpo"}, rate=0.5)
    host = with_weights(loop, tmp_path)
    items = rewarded(host)

    def learn(updates: int) -> Any:
        asked = LearnRequest(
            group="actor",
            items={("actor", "rewards"): items},
            seed=0,
            updates=updates,
            order=order,
        )
        return host.learn(asked).metrics["actor"]

    repeated = learn(3)

    assert repeated["ratio/max"] > 1.2
    assert repeated["clip_fraction"] > 0.0
    # The rows' writer is the policy before the first update: what is measured is not a mismatch.
    assert repeated["mismatch_kl"] == near(0.0, terms=64)
    assert host.version("actor") == 1

    again = learn(1)
    assert again["ratio/max"] == near(1.0)
    assert again["mismatch_kl"] > 0.01


def test_roles_in_order_learn_against_the_policy_that_wrote_their_rows(
    bench: Bench, rows_of: Any, tmp_path: Path
) -> None:
    """The second role's update meets weights that the first one's has moved."""
    twin = {**learner({"rewards": {"name": "grpo"}}), "model": {"type": "shared", "with": "actor"}}
    del twin["training"]
    nodes = {
        "sums": rows_of({"prompt": "1+1=", "answer": "2"}),
        "actor": learner({"rewards": {"name": "grpo"}}, rate=0.5),
        "twin": twin,
        "exact": {"kind": "reward", "source": {"type": "builtin", "name": "exact_match"}},
    }
    edges = ["sums.rows -> actor.prompts", "sums.rows -> twin.prompts"]
    for writer in ("actor", "twin"):
        edges += [f"{writer}.rollouts -> exact.rollouts", f"exact.scores -> {writer}.rewards"]
    nodes["exact"]["join"] = "concat"
    loop = bench(nodes, edges)
    host = with_weights(loop, tmp_path)
    items = {(role, "rewards"): rewarded(host) for role in ("actor", "twin")}

    metrics = host.learn(
        LearnRequest(group="actor", items=items, seed=0, order=("actor", "twin"))
    ).metrics

    assert metrics["actor"]["ratio/max"] == near(1.0, terms=64)
    assert metrics["twin"]["ratio/max"] > 1.2
    for role in ("actor", "twin"):
        assert metrics[role]["mismatch_kl"] == near(0.0, terms=64)


def test_repeats_equal_epochs_where_nothing_is_drawn(
    bench: Bench, rows_of: Any, tmp_path: Path
) -> None:
    """Three passes over one batch, said in either way."""

    def run(updates: int, epochs: int) -> list[list[float]]:
        loop = rewarded_loop(bench, rows_of, {"name": "grpo"}, rate=0.5, epochs=epochs)
        host = with_weights(loop, tmp_path)
        items = rewarded(host)
        asked = {("actor", "rewards"): items}
        host.learn(LearnRequest(group="actor", items=asked, seed=0, updates=updates))
        return [one.tolist() for one in host.score("actor", "actor", items, 1.0)]

    for ours, theirs in zip(run(3, 1), run(1, 3), strict=True):
        assert ours == near(theirs, terms=10_000, scale=10.0)


def test_a_rate_warms_up_anew_with_each_phase(bench: Bench, rows_of: Any, tmp_path: Path) -> None:
    optimizer = {"name": "sgd", "lr": 0.3, "schedule": "linear", "warmup": 2}
    nodes = {
        "gold": rows_of({"prompt": "1+1=", "target": "2"}),
        "actor": {**learner({"name": "sft"}), "training": {"optimizer": optimizer}},
    }
    phases = [
        {"name": "first", "steps": 4, "learn": ["actor.demonstrations"]},
        {"name": "second", "steps": 3, "learn": ["actor.demonstrations"]},
    ]
    loop = bench(nodes, ["gold.rows -> actor.demonstrations"], {"phases": phases})
    with_weights(loop, tmp_path)
    rates = []
    for number, phase in enumerate(("first", "second", "first")):
        steps = loop.plan.phase(phase)
        count = next(p["steps"] for p in phases if p["name"] == phase)
        loop.groups["actor"].phase_starts(steps, {"actor": count}, loop.context)
        for step in range(count):
            loop.step(10 * number + step, phase)
            metrics = loop.outcomes["actor.learn"].member_metrics["actor"]
            rates.append(metrics["lr"])

    # up in thirds, then down to 0 over what is left of the phase's updates
    assert rates == near([0.1, 0.2, 0.3, 0.15, 0.1, 0.2, 0.3, 0.1, 0.2, 0.3, 0.15])
