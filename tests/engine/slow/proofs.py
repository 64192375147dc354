"""What each preset of a system is to prove: that its reading rises by what should teach it, as the
mean of three seeds, and not by what chance says. Tests and `bench_proofs` read this table."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tests.engine.shuffles import (
    Changes,
    coin_for_outcome,
    lessons_of_a_coin,
    shuffled,
    swapped,
)
from tests.engine.slow.curves import Trained

SEEDS = (1, 2, 3)
LEAST_RISE = 0.2
"""Of the mean of all seeds."""
MOST_BY_CHANCE = 0.1

Arm = Literal["taught", "shuffled"]
ARMS: tuple[Arm, ...] = ("taught", "shuffled")


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """One preset, the phase whose rise is shown, and the reading that shows it."""

    preset: str
    phase: str
    reading: str = "probe.accuracy"
    """`<node>.<metric>`, on held-out rows; greedy accuracy unless the metric says otherwise."""
    control: Changes
    """What takes its teaching away."""
    start: float | None = None
    """Where the phase begins by definition; None: the reading before it."""
    earlier: str | None = None
    """A preset whose run it begins with."""

    def changes(self, arm: Arm, seed: int) -> list[Mapping[str, Any]]:
        control = self.control if arm == "shuffled" else ()
        return [seeded(seed), *control]

    def span(self, run: Trained) -> tuple[float, float]:
        """The reading at the start and at the end."""
        start = run.before(self.phase, self.reading) if self.start is None else self.start
        return start, run.last(self.reading)


def seeded(seed: int) -> Mapping[str, Any]:
    return {"op": "set", "path": "run.seed", "value": seed}


# A pair is as likely to be in the right order as not before anything is learned.
COIN = 0.5

PROOFS = (
    Proof(
        preset="dapo",
        phase="rl",
        control=shuffled(readers=("informative.scores",)),
    ),
    Proof(
        preset="vapo",
        phase="rl",
        control=shuffled(readers=("actor.rewards", "right.scores")),
    ),
    Proof(preset="reinforce-pp", phase="rl", control=shuffled()),
    Proof(preset="remax", phase="rl", control=shuffled()),
    Proof(
        preset="prime",
        phase="rl",
        # What the band keeps, the outcome, and the labels of the process reward model.
        control=shuffled(actor="policy", readers=("band.scores",)),
    ),
    Proof(
        preset="retool",
        phase="critic-warm-up",
        control=shuffled(actor="policy", reward="boxed"),
    ),
    Proof(preset="search-r1", phase="rl", control=shuffled(actor="policy")),
    Proof(
        preset="omegaprm",
        phase="train",
        reading="fit.step_f1",
        # As often right as the policy is when the search begins.
        control=coin_for_outcome(0.7, search="tree"),
    ),
    Proof(
        preset="reward-model",
        phase="pairs",
        reading="fit.pair_accuracy",
        start=COIN,
        control=swapped(rows="preferences.rows", pairs="preferences.pairs", learner="rm.pairs"),
    ),
    Proof(
        preset="reward-model-sums",
        phase="pairs",
        reading="fit.pair_accuracy",
        start=COIN,
        control=swapped(rows="mistakes.rows", pairs="pairs.pairs", learner="rm.pairs"),
    ),
    Proof(
        preset="ppo-learned-reward",
        phase="ppo",
        earlier="reward-model-sums",
        control=shuffled(actor="policy", reward="rm"),
    ),
    Proof(
        preset="ppo-four-models",
        phase="ppo",
        reading="policy_probe.truth.score",
        control=shuffled(actor="policy", reward="rm"),
    ),
    Proof(
        preset="genrm",
        phase="train",
        reading="judged.pair_accuracy",
        start=COIN,
        control=lessons_of_a_coin("genrm", lesson="lesson"),
    ),
    Proof(
        preset="ttrl",
        phase="test-time",
        # Samples come nearer to their majority: its share of right answers bounds what can be won,
        # and the greedy answer is the majority from the start.
        reading="sampled.accuracy",
        # The vote of another problem's answers.
        control=shuffled(actor="policy", reward="majority", readers=("half.scores",)),
    ),
    Proof(
        preset="cooper",
        phase="co-training",
        reading="probe.rule.accuracy",
        # What the reward model says of other rows; its own pairs stay.
        control=shuffled(actor="policy", reward="judge"),
    ),
)
