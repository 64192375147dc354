"""The experiments: a preset for each system, the metric that should rise, and other arms.

All arms of an experiment start from the same weights with the same seed. `full` is the preset.
`shuffled` gives scores, labels or votes to other rows: what rises there rises by chance. The
`control` takes as many updates of the same learner with the same optimizer on the same problems,
without the part of the system that the paper is about. Further arms are ablations.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from tests.engine.shuffles import (
    Changes,
    coin_for_outcome,
    lessons_of_a_coin,
    shuffled,
    swapped,
)
from tests.engine.slow.curves import Trained

from coloop.explain.controls import ArmLoop, arm_of
from coloop.spec import presets
from coloop.spec.placement import ControlKind

SEEDS = (1, 2, 3)
"""None of them was used to choose settings."""
LEAST_RISE = 0.2
"""Least rise of `full`, mean over the seeds, unless an experiment has its own."""
MOST_BY_CHANCE = 0.1
"""Most rise of `shuffled`."""

FULL = "full"
SHUFFLED = "shuffled"
CONTROL = "control"


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """One preset, the phase whose rise is measured, and its arms."""

    preset: str
    phase: str
    reading: str = "probe.accuracy"
    """`<node>.<metric>`, on held-out rows."""
    arms: Mapping[str, Changes | ControlKind] = field(default_factory=dict)
    """Each arm but `full`: a kind of control, as `coloop control` makes it, or changes of the
    preset."""
    paper: str = ""
    """What should happen by the paper."""
    control: str = ""
    """What the control does, for the table."""
    finding: str = ""
    """What was found, where the number does not say it."""
    least_rise: float = LEAST_RISE
    start: float | None = None
    """Where the phase begins by definition; None: the reading before it."""
    earlier: str | None = None
    """A preset whose run this one begins with."""

    @property
    def every_seed(self) -> tuple[str, ...]:
        """Arms that are trained with every seed; `shuffled` with the first only."""
        return (FULL, *(arm for arm in self.arms if arm != SHUFFLED))

    def changes(self, arm: str, seed: int) -> list[Mapping[str, Any]]:
        return [seeded(seed), *(() if arm == FULL else changes_of(self.preset, self.arms[arm]))]

    def reading_of(self, arm: str) -> str:
        """The metric under its name in the arm: where one of several scorers leaves the loop, the
        metric of the other loses its name."""
        kind = self.arms.get(arm)
        metric = control_arm(self.preset, kind).metric if isinstance(kind, str) else None
        return (
            metric
            if metric is not None and self.reading == full_metric(self.preset)
            else self.reading
        )

    def span(self, run: Trained, arm: str) -> tuple[float, float]:
        """The reading at the start of the phase and at the end of the run."""
        reading = self.reading_of(arm)
        start = run.starting(self.phase, reading) if self.start is None else self.start
        return start, run.last(reading)


@cache
def control_arm(preset: str, kind: ControlKind) -> ArmLoop:
    root = presets.presets_root() / "loops"
    return arm_of(presets.load_loop_text(preset), kind, root=root)


def full_metric(preset: str) -> str | None:
    return control_arm(preset, "full").metric


def changes_of(preset: str, arm: Changes | ControlKind) -> Changes:
    """An arm as changes of its preset."""
    if not isinstance(arm, str):
        return arm
    changes = control_arm(preset, arm).changes
    return tuple(change.model_dump(exclude_unset=True) for change in changes)


def seeded(seed: int) -> Mapping[str, Any]:
    return {"op": "set", "path": "run.seed", "value": seed}


def _edge(op: str, value: Any) -> Mapping[str, Any]:
    return {"op": op, "path": "edges", "value": value}


def _set(path: str, value: Any) -> Mapping[str, Any]:
    return {"op": "set", "path": path, "value": value}


def _remove(path: str) -> Mapping[str, Any]:
    return {"op": "remove", "path": path}


GRAM_WITHOUT_UNLABELED_PAIRS: Changes = (
    _edge("remove_edge", "both.rows -> gram.demonstrations"),
    _set("schedule.phases.2.steps", 360),
    _remove("schedule.phases.1"),
)

TTRL_IMITATES_ITSELF: Changes = (
    _edge("remove_edge", "lessons.rows -> policy.demonstrations"),
    _edge("add_edge", {"from": "lessons.rows", "to": "policy.demonstrations", "id": "lessons"}),
    _edge("add_edge", {"from": "half.rollouts", "to": "policy.demonstrations", "id": "own"}),
    *(
        _edge("remove_edge", edge)
        for edge in (
            "half.scores -> policy.rewards",
            "half.rollouts -> start.rollouts",
            "start.log_probs -> policy.reference",
        )
    ),
    _remove("nodes.start"),
    _remove("nodes.policy.algorithm.rewards"),
    _set("schedule.phases.0.set.edges.own.weight", 0.0),
    _set("schedule.phases.1.set.edges.lessons.weight", 0.0),
    _set("schedule.phases.1.learn", ["policy.demonstrations"]),
)


def own_texts(
    learner: str,
    *,
    texts: str,
    through: str,
    lessons: Sequence[str],
    without: Sequence[str],
    edges: Sequence[str],
    phase: str,
) -> Changes:
    """SFT on a learner's own texts in place of DPO on pairs of them: through the same buffer, in as
    many updates.

    Args:
        texts: Port with the texts.
        through: The buffer of the pairs.
        lessons: Ports whose rows teach the learner before.
        without, edges: Nodes and edges of the pairs.
        phase: Path of the phase that learns from the pairs.
    """
    taught = f"{learner}.demonstrations"
    named = {f"lesson_{place}": port for place, port in enumerate(lessons)}
    return (
        *(_remove(f"nodes.{node}") for node in without),
        _remove(f"nodes.{learner}.algorithm.pairs"),
        *(_edge("remove_edge", edge) for edge in edges),
        *(_edge("remove_edge", f"{port} -> {taught}") for port in lessons),
        *(
            _edge("add_edge", {"from": port, "to": taught, "id": name})
            for name, port in named.items()
        ),
        _edge("add_edge", f"{texts} -> {through}.rollouts"),
        _edge(
            "add_edge", {"from": f"{through}.rollouts", "to": taught, "id": "own", "weight": 0.0}
        ),
        _set(f"{phase}.learn", [taught]),
        _set(
            f"{phase}.set",
            {"edges.own.weight": 1.0, **{f"edges.{name}.weight": 0.0 for name in named}},
        ),
    )


SELF_REWARDING_IMITATES_ITSELF: Changes = own_texts(
    "policy",
    texts="policy.rollouts",
    through="iteration",
    lessons=("instructions.rows", "few_shot.rows"),
    without=("best_worst", "previous"),
    edges=(
        "policy.rollouts -> best_worst.rollouts",
        "judge.scores -> best_worst.scores",
        "best_worst.pairs -> iteration.pairs",
        "iteration.pairs -> policy.pairs",
        "iteration.pairs -> previous.pairs",
        "previous.log_probs -> policy.reference",
    ),
    phase="schedule.phases.2.phases.1",
)
DEBATE_IMITATES_ITSELF: Changes = own_texts(
    "debater",
    texts="debater.rollouts",
    through="debates",
    lessons=("shown.rows",),
    without=("better", "previous"),
    edges=(
        "debater.rollouts -> better.rollouts",
        "judge.scores -> better.scores",
        "better.pairs -> debates.pairs",
        "debates.pairs -> debater.pairs",
        "debates.pairs -> previous.pairs",
        "previous.log_probs -> debater.reference",
    ),
    phase="schedule.phases.2.phases.1",
)
SSP_IMITATES_DEMONSTRATIONS: Changes = (
    *(
        _edge("remove_edge", edge)
        for edge in (
            "exact.scores -> solver.rewards",
            "hard.scores -> proposer.rewards",
            "proposer.rollouts -> start.rollouts",
            "solver.rollouts -> start.rollouts",
            "start.log_probs -> proposer.reference",
            "start.log_probs -> solver.reference",
        )
    ),
    _remove("nodes.start"),
    _remove("nodes.proposer.algorithm.rewards"),
    _remove("nodes.solver.algorithm.rewards"),
    _set("schedule.phases.1.learn", ["proposer.demonstrations", "solver.demonstrations"]),
)
OPD_BY_OUTCOME: Changes = (
    _remove("nodes.reads"),
    _remove("nodes.student.algorithm.reference"),
    _set("nodes.student.algorithm.rewards", {"name": "grpo"}),
    _edge("remove_edge", "student.rollouts -> reads.rollouts"),
    _edge("remove_edge", "reads.log_probs -> student.reference"),
    _edge("add_edge", "exact.scores -> student.rewards"),
    _set("schedule.phases.2.learn", ["student.rewards"]),
    _set("schedule.phases.2.set", {"nodes.student.training.optimizer.lr": 3e-4}),
)
NIM_IMITATES: Changes = (
    _edge("remove_edge", "game.scores -> white.rewards"),
    _edge("remove_edge", "game.scores -> black.rewards"),
    _remove("nodes.white.algorithm.rewards"),
    _remove("nodes.black.algorithm.rewards"),
    _remove("nodes.white.credit"),
    _remove("nodes.black.credit"),
    _set("schedule.phases.1.learn", ["white.demonstrations", "black.demonstrations"]),
)

COIN = 0.5
"""Pair accuracy before anything is learned."""

EXPERIMENTS = (
    Experiment(
        preset="dapo",
        phase="rl",
        arms={SHUFFLED: shuffled(readers=("informative.scores",))},
    ),
    Experiment(
        preset="vapo",
        phase="rl",
        arms={SHUFFLED: shuffled(readers=("actor.rewards", "right.scores"))},
    ),
    Experiment(preset="reinforce-pp", phase="rl", arms={SHUFFLED: shuffled()}),
    Experiment(preset="remax", phase="rl", arms={SHUFFLED: shuffled()}),
    Experiment(
        preset="prime",
        phase="rl",
        # Shuffled is what the band keeps, the outcome, and the labels of the process reward model.
        arms={
            SHUFFLED: shuffled(actor="policy", readers=("band.scores",)),
            CONTROL: "plain",
            "frozen": "frozen",
        },
        paper="dense rewards of a process reward model that keeps learning beat outcomes alone.",
        control="the same RLOO and filter with the outcome as the only reward.",
        finding="Each answer has four digits, so that the outcome says nearly all. With seed 0 on "
        "the last letters of five words, from 0.699, it ends at 0.949 and its control at 0.938; "
        "after 20 steps they stand at 0.809 and 0.770, after 80 at 0.848 and 0.871.",
    ),
    Experiment(
        preset="retool",
        phase="critic-warm-up",
        arms={SHUFFLED: shuffled(actor="policy", reward="boxed")},
    ),
    Experiment(
        preset="search-r1",
        phase="rl",
        arms={
            SHUFFLED: shuffled(actor="policy"),
            CONTROL: "no_tool",
        },
        paper="a policy that may search while it answers learns to, and beats RL without search.",
        control="the same PPO without the search tool.",
    ),
    Experiment(
        preset="omegaprm",
        phase="train",
        reading="fit.step_f1",
        # As often right as the policy is when the search begins.
        arms={SHUFFLED: coin_for_outcome(0.7, search="tree")},
    ),
    Experiment(
        preset="reward-model",
        phase="pairs",
        reading="fit.pair_accuracy",
        start=COIN,
        arms={
            SHUFFLED: swapped(
                rows="preferences.rows", pairs="preferences.pairs", learner="rm.pairs"
            )
        },
    ),
    Experiment(
        preset="reward-model-sums",
        phase="pairs",
        reading="fit.pair_accuracy",
        start=COIN,
        arms={SHUFFLED: swapped(rows="mistakes.rows", pairs="pairs.pairs", learner="rm.pairs")},
    ),
    Experiment(
        preset="ppo-learned-reward",
        phase="ppo",
        earlier="reward-model-sums",
        arms={SHUFFLED: shuffled(actor="policy", reward="rm")},
    ),
    Experiment(
        preset="ppo-four-models",
        phase="ppo",
        reading="policy_probe.truth.score",
        arms={SHUFFLED: shuffled(actor="policy", reward="rm")},
    ),
    Experiment(
        preset="genrm",
        phase="train",
        reading="judged.pair_accuracy",
        start=COIN,
        arms={SHUFFLED: lessons_of_a_coin("genrm", lesson="lesson")},
    ),
    Experiment(
        preset="ttrl",
        phase="test-time",
        # Samples come nearer to their majority: its share of right answers bounds what can be won,
        # and the greedy answer is the majority from the start.
        reading="sampled.accuracy",
        arms={
            # The vote of another problem's answers.
            SHUFFLED: shuffled(actor="policy", reward="majority", readers=("half.scores",)),
            CONTROL: TTRL_IMITATES_ITSELF,
        },
        paper="with the majority vote as label, a policy improves on a test set without answers.",
        control="SFT on the same samples of the policy, without a vote.",
    ),
    Experiment(
        preset="cooper",
        phase="co-training",
        reading="probe.rule.accuracy",
        # What the reward model says of other rows; its own pairs stay.
        arms={SHUFFLED: shuffled(actor="policy", reward="judge"), CONTROL: "frozen"},
        paper="a fixed reward model is exploited, and one that learns beside the policy is not.",
        control="the same GRPO with the reward model as it was after its pre-training.",
        finding="Chosen with seed 10: learning rates of 2e-4 for the policy and 3e-4 for the "
        "reward model, and 300 steps. After 180 steps (seeds 1 to 3) it stands at "
        "0.807 ± 0.104 and the control at 0.716 ± 0.034; with 4e-4 and 1e-4, at 0.788 ± 0.102 "
        "and 0.711 ± 0.044.",
    ),
    Experiment(
        preset="spin",
        phase="collect",
        arms={CONTROL: "plain"},
        paper="self-play on pairs of gold and own answers goes on where SFT has stopped to help.",
        control="SFT on the gold answers of the same pairs, in as many updates.",
        finding="Settings tried with seed 0, SPIN and its control: from 0.449 to 0.715 and 0.773 "
        "(sampled 0.293 and 0.364); from 0.914 to 0.949 and 0.977; countdown with three numbers, "
        "where SFT has stood at 0.6 for 800 steps, from 0.590 to 0.633 and 0.641. The optimum of "
        "both is the distribution of the gold answers, which models of this size reach by SFT; "
        "pairs of equal answers are dropped, so that better policies get fewer updates.",
    ),
    Experiment(
        preset="tango",
        phase="generate",
        arms={CONTROL: "plain"},
        paper="rewards for steps from a judge that learns too beat the outcome alone.",
        control="the same GRPO with the outcome as the only reward.",
        finding="On five words, where outcomes are rare, with a weight of steps from 0.5 to 0.1 "
        "(seed 0), accuracy falls from 0.164 to 0 and that of the control rises to 0.55: the "
        "judge finds wrong steps with an F1 of 0.3 to 0.5, and its errors are learned.",
    ),
    Experiment(
        preset="mae",
        phase="evolve",
        # Ablation: proposer and judges as they were when self-play began.
        arms={SHUFFLED: "shuffled", CONTROL: "random", "frozen": "frozen"},
        paper="a model gets better at its task from its own questions and grades, without answers.",
        control="the same updates with a coin in place of the judge's grades.",
        finding="Chosen with seeds 10 and 11: a learning rate of 3e-5 in self-play. With 1e-4 it "
        "rises in 20 steps and falls again, as the judge, paid for its format alone, forgets "
        "(0.203 ± 0.158). With seed 0, 1e-4 and a frozen judge it gains as much: from 0.098 to "
        "0.340.",
        least_rise=0.1,
    ),
    Experiment(
        preset="self-rewarding",
        phase="collect",
        reading="probe.score",
        # The grades of other answers.
        arms={SHUFFLED: "shuffled", CONTROL: SELF_REWARDING_IMITATES_ITSELF},
        paper="DPO on a model's own grades of its own answers improves its answers.",
        control="SFT on the same answers of the model, in as many updates, without grades.",
        least_rise=0.04,
    ),
    Experiment(
        preset="debate",
        phase="collect",
        reading="judged.agreement",
        # The judge's opinion of other debates.
        arms={SHUFFLED: "shuffled", CONTROL: DEBATE_IMITATES_ITSELF},
        paper="training debaters to convince a judge makes the judge's verdicts more accurate.",
        control="SFT on the same speeches of the debaters, in as many updates, without a judge.",
        least_rise=0.05,
    ),
    Experiment(
        preset="opd",
        phase="distillation",
        arms={CONTROL: OPD_BY_OUTCOME, "sft": "plain"},
        paper="a student learns much faster from a teacher's distribution at each token of its "
        "texts than from rewards, and no worse than from the teacher's texts.",
        control="GRPO on the same prompts with the right answer as reward, at a learning rate of "
        "3e-4; at that of the distillation, 1e-3, it falls to 0.05. `sft`: SFT on as many texts "
        "of the teacher.",
    ),
    Experiment(
        preset="mars",
        phase="dual",
        arms={CONTROL: "frozen"},
        paper="a policy and the reader of what its tools find, trained together, answer more "
        "questions than a policy that learns beside a fixed reader.",
        control="the same updates with the reader as it was when both began.",
        least_rise=0.1,
    ),
    Experiment(
        preset="ssp",
        phase="self-play",
        # Ablation: the proposer as it was when self-play began.
        arms={SHUFFLED: "shuffled", CONTROL: SSP_IMITATES_DEMONSTRATIONS, "frozen": "frozen"},
        paper="a model that writes search questions for itself gets better at answering them.",
        control="SFT of proposer and solver on their demonstrations, in as many updates.",
        finding="Seed 0, with two other settings: a proposer that begins with few questions of two "
        "links, 0.086 to 0.422, and 0.234 to 0.484 with the proposer frozen; a reader with the "
        "weights of the proposer rejects every question, because names are copied wrongly. A "
        "warm-up that ends with the first reading above 0.2 may end before the reader can read "
        "(seed 1: 0.219 to 0.156).",
        least_rise=0.1,
    ),
    Experiment(
        preset="alphaproof",
        phase="search",
        reading="solved.accuracy",
        arms={SHUFFLED: "shuffled"},
        finding="Search finds proofs of what the prover could prove already. Three settings with "
        "seed 10 (60 to 140 steps of search, 8 or 24 searches a statement, 4 or 8 samples a state, "
        "learning rates of 3e-4 and 1e-3) end between 0.333 and 0.396, from 0.354.",
    ),
    Experiment(
        preset="constitutional",
        phase="revise",
        reading="harmless.accuracy",
        arms={SHUFFLED: "shuffled"},
    ),
    Experiment(preset="critique-grpo", phase="rl", arms={CONTROL: "plain"}),
    Experiment(
        preset="deepseek-grm",
        phase="rl",
        reading="probe.vote.accuracy",
        arms={SHUFFLED: "shuffled"},
    ),
    Experiment(
        preset="dpo-from-file",
        phase="prefer",
        arms={SHUFFLED: "shuffled"},
    ),
    Experiment(
        preset="genprm",
        phase="train",
        reading="steps.step_f1",
        arms={SHUFFLED: "shuffled", CONTROL: "no_tool"},
    ),
    Experiment(
        preset="gram",
        phase="label",
        reading="judged.pair_accuracy",
        arms={SHUFFLED: "shuffled", CONTROL: GRAM_WITHOUT_UNLABELED_PAIRS},
        paper="a judge that first writes both answers of unlabeled pairs needs fewer labels.",
        control="as many updates of the judge, all of them on labeled pairs.",
        finding="The policy gains nothing from this judge: 0.414 to 0.371 with seed 1. With four "
        "times the labels, 600 steps on them, and one or four answers a prompt (seed 10) it goes "
        "from 0.426 to 0.430 and from 0.379 to 0.305: the judge, right on 0.97 of the held-out "
        "pairs, agrees with itself on half of the pairs that the policy and its start write.",
    ),
    *(
        Experiment(preset=preset, phase="rl", arms={SHUFFLED: "shuffled"})
        for preset in (
            "fully-async",
            "grpo-arithmetic",
            "grpo-two-pools",
            "grpo-two-rewards",
            "one-step-off",
            "openrlhf-async-agent",
            "pf-ppo",
            "rloo-countdown",
            "simple-rl",
        )
    ),
    Experiment(
        preset="grpo-from-file",
        phase="rl",
        reading="progress.accuracy",
        arms={SHUFFLED: "shuffled"},
    ),
    Experiment(
        preset="logic-rl",
        phase="two-people",
        reading="probe.verdict.score",
        arms={SHUFFLED: "shuffled"},
    ),
    Experiment(
        preset="magrpo",
        phase="together",
        reading="probe.score",
        arms={SHUFFLED: "shuffled", CONTROL: "frozen"},
    ),
    Experiment(
        preset="marti-chain",
        phase="chain",
        reading="final.accuracy",
        arms={SHUFFLED: "shuffled", CONTROL: "frozen"},
    ),
    Experiment(
        preset="marti-debate",
        phase="debate",
        reading="final.accuracy",
        arms={SHUFFLED: "shuffled", CONTROL: "frozen"},
    ),
    Experiment(
        preset="medvlsynther",
        phase="learn",
        arms={SHUFFLED: "shuffled"},
    ),
    Experiment(
        preset="nanochat-rl",
        phase="rl",
        reading="probe.pass@1",
        arms={SHUFFLED: "shuffled"},
    ),
    Experiment(
        preset="opd-two-teachers",
        phase="distillation",
        reading="adding.accuracy",
    ),
    Experiment(preset="opsd", phase="distillation", arms={CONTROL: "plain"}),
    Experiment(preset="prorl", phase="short-sums", arms={SHUFFLED: "shuffled"}),
    Experiment(
        preset="rm-r1",
        phase="rl",
        reading="judged.pair_accuracy",
        arms={SHUFFLED: "shuffled"},
    ),
    Experiment(preset="smolsolver", phase="improve", arms={CONTROL: "plain"}),
    Experiment(
        preset="ssrl",
        phase="rl",
        reading="by_memory.accuracy",
        arms={SHUFFLED: "shuffled"},
    ),
    Experiment(
        preset="reasoning-gym",
        phase="rl",
        arms={SHUFFLED: "shuffled"},
        finding="Three settings tried with seed 0. By the verifier's own score, which has partial "
        "credit, its mean rises from 0.64 to 0.78 in the first phase while accuracy stays at 0.2, "
        "and in the second accuracy falls to 0.12 and answers grow from 5.7 to 7.4 tokens. By "
        "right answers only, accuracy goes from 0.26 to 0.29 (32 problems a step), 0.41 to 0.42 "
        "(64).",
    ),
    Experiment(
        preset="textarena-two-players",
        phase="self-play",
        reading="skill.accuracy",
        # Games of other turns; the partner as it was when self-play began.
        arms={SHUFFLED: "shuffled", CONTROL: NIM_IMITATES, "frozen": "frozen"},
        paper="two policies get better at a game by playing against each other, without examples "
        "of good play.",
        control="SFT of both on the valid moves of the warm-up, in as many updates.",
        finding="Seven runs with seed 0 led to these settings. With three piles and learning rates "
        "of 3e-4 to 1e-3 both players settle on taking whole piles, which leaves who begins the "
        "winner. With two piles, accuracy of all greedy moves says little, as most are forced, so "
        "sampled openings are read instead: from 0.177 to 0.375 in 100 steps. It does not last: "
        "with 160 steps it stands at 0.417 after 80 and at 0.229 at the end.",
    ),
    Experiment(preset="think-rm", phase="rlhf", arms={SHUFFLED: "shuffled"}),
    Experiment(
        preset="two-halves",
        phase="together",
        reading="probe.score",
        arms={SHUFFLED: "shuffled", CONTROL: "frozen"},
    ),
)
