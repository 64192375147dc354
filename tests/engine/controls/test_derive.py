"""Controls of the presets: what is changed, what stays, and why some kinds make no sense."""

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from coloop.errors import ControlRefused
from coloop.explain.controls import CONTROL_KINDS, Control, ControlKind, control_of, controls_of
from coloop.spec import presets
from coloop.spec.graph import LoopSpec
from coloop.spec.io import apply_changes, parse, require, to_dict
from coloop.validate import validate

LOOPS = presets.presets_root() / "loops"
EXAMPLES = Path(__file__).parents[4] / "shared" / "language" / "examples"


@cache
def loop(name: str) -> LoopSpec:
    return require(parse(presets.load_loop_text(name)))


@cache
def controls(name: str) -> dict[ControlKind, Control | ControlRefused]:
    return dict(controls_of(loop(name), root=LOOPS))


def control(name: str, kind: ControlKind) -> Control:
    found = controls(name)[kind]
    assert isinstance(found, Control), found
    return found


def refusal(name: str, kind: ControlKind) -> str:
    found = controls(name)[kind]
    assert isinstance(found, ControlRefused), found
    return str(found)


def edges(spec: LoopSpec) -> set[str]:
    return {edge.label for edge in spec.edges}


def learned(spec: LoopSpec) -> dict[str, tuple[str, ...]]:
    return {phase.name: phase.learn for phase in spec.schedule.flat_phases()}


OFFERED: dict[str, set[str]] = {
    "tango": {"frozen", "shuffled", "plain", "constant", "random"},
    "cooper": {"frozen", "shuffled", "plain", "constant", "random"},
    "prime": {"frozen", "shuffled", "plain", "constant", "random", "no_filter"},
    "spin": {"frozen", "shuffled", "plain"},
    "search-r1": {"shuffled", "constant", "random", "no_tool"},
    "two-halves": {"frozen", "shuffled", "plain", "constant", "random"},
    "dapo": {"shuffled", "constant", "random", "no_filter"},
}


@pytest.mark.parametrize("name", OFFERED)
def test_every_control_that_is_offered_is_valid_and_says_what_it_changes(name: str) -> None:
    found = controls(name)

    offered = {kind for kind, one in found.items() if isinstance(one, Control)}
    assert offered == OFFERED[name]
    for kind, one in found.items():
        if not isinstance(one, Control):
            assert re.search(r"`\w+`", str(one)), f"{kind} names no node"
            continue
        assert one.says.endswith(".")
        assert "`" in one.says
        assert not validate(one.spec, root=LOOPS).errors
        assert one.metric is not None
        assert one.spec.run.seed == loop(name).run.seed
        text = presets.patched(presets.load_loop_text(name), one.changes)
        assert require(parse(text)) == one.spec
        assert apply_changes(to_dict(loop(name)), one.changes) == to_dict(one.spec)


# frozen


def test_the_judge_of_tango_learns_until_the_solver_does() -> None:
    frozen = control("tango", "frozen")

    assert frozen.learner == "generator"
    assert frozen.begins == "generate"
    assert learned(frozen.spec) == {
        "first-solutions": ("generator.demonstrations",),
        "first-verdicts": ("verifier.demonstrations",),
        "verifier-warm-up": ("verifier.rewards",),
        "generate": ("generator.rewards",),
    }
    assert edges(frozen.spec) == edges(loop("tango"))


@pytest.mark.parametrize(
    ("name", "phase", "left"),
    [
        ("cooper", "co-training", "policy"),
        ("prime", "rl", "policy"),
        ("two-halves", "together", "tens"),
    ],
)
def test_partners_leave_the_joint_phase(name: str, phase: str, left: str) -> None:
    frozen = control(name, "frozen")

    assert learned(frozen.spec)[phase] == (f"{left}.rewards",)
    before = dict(learned(loop(name)))
    after = learned(frozen.spec)
    assert {key: ports for key, ports in before.items() if key != phase} == {
        key: ports for key, ports in after.items() if key != phase
    }


def test_what_only_taught_a_frozen_reward_model_leaves() -> None:
    spec = control("cooper", "frozen").spec

    assert {"right", "corrupt", "wrong", "right_or_corrupted"}.isdisjoint(spec.nodes)
    assert "judge.scores -> policy.rewards" in edges(spec)
    assert "lenient.scores -> judge.labels" in edges(spec)


@pytest.mark.parametrize(
    ("name", "frozen", "begins"),
    [
        ("mae", ("proposer", "question_judge", "answer_judge"), "evolve"),
        ("ssp", ("proposer",), "self-play"),
        ("mars", ("system_1",), "dual"),
    ],
)
def test_roles_on_shared_weights_learn_alike_until_they_are_frozen(
    name: str, frozen: tuple[str, ...], begins: str
) -> None:
    """What was learned before stays, from the same nodes and in as many updates; then the roles
    keep the weights of that moment."""
    before, after = loop(name), control(name, "frozen").spec
    phases = after.schedule.phases

    assert len(learned(after)["warm-up"]) == len(learned(before)["warm-up"])
    for role in frozen:
        node: Any = after.nodes[role]
        assert (node.model.type, node.model.refresh.every) == ("snapshot", 1)
        lessons = after.graph.edges_into(f"{role}_lessons", "demonstrations")
        taught = before.graph.edges_into(role, "demonstrations")
        assert [edge.source for edge in lessons] == [edge.source for edge in taught]
        (together,) = (phase for phase in phases if getattr(phase, "name", None) == begins)
        assert together.set[f"nodes.{role}.model.refresh.every"] == 10**9


def test_the_opponent_of_spin_stays_the_first_one() -> None:
    opponent: Any = control("spin", "frozen").spec.nodes["opponent"]

    assert opponent.model.type == "copy"
    assert (opponent.model.of, opponent.model.at) == ("policy", "collect")


@pytest.mark.parametrize("name", ["dapo", "search-r1"])
def test_a_loop_with_one_learner_has_nothing_to_freeze(name: str) -> None:
    assert "trains alone" in refusal(name, "frozen")
    assert "its own plain control" in refusal(name, "plain")


# shuffled


@pytest.mark.parametrize(
    ("name", "behind", "before"),
    [
        ("dapo", "exact", "informative.scores"),
        ("prime", "exact", "band.scores"),
        ("prime", "prm_step_scores", "policy.rewards"),
        ("cooper", "judge", "policy.rewards"),
        ("search-r1", "exact", "policy.rewards"),
        ("tango", "verifier_step_scores", "generator.rewards"),
        ("two-halves", "joint", "tens.rewards"),
    ],
)
def test_scores_of_other_rows_stand_behind_each_scorer(name: str, behind: str, before: str) -> None:
    spec = control(name, "shuffled").spec

    node: Any = spec.nodes[f"{behind}_shuffled"]
    assert node.source.name == "other_rows"
    assert f"{behind}_shuffled.scores -> {before}" in edges(spec)


@pytest.mark.parametrize("name", sorted(set(OFFERED) - {"spin"}))
def test_probes_read_the_true_scores(name: str) -> None:
    def read(spec: LoopSpec) -> set[str]:
        probes = {key for key, node in spec.nodes.items() if node.kind == "evaluate"}
        return {edge.label for edge in spec.edges if edge.target.node in probes}

    assert read(control(name, "shuffled").spec) == read(loop(name))


def test_pairs_without_scores_are_swapped_by_a_coin_for_learner_and_reference() -> None:
    assert {
        "iterations.pairs -> iterations_coin.comparisons",
        "iterations_coin.scores -> iterations_swapped.preference",
        "iterations_swapped.pairs -> policy.pairs",
        "iterations_swapped.pairs -> previous.pairs",
    } <= edges(control("spin", "shuffled").spec)


# plain


def test_tango_without_its_judge_is_grpo_on_outcomes() -> None:
    spec = control("tango", "plain").spec

    assert set(spec.nodes) == {
        *("problems", "held_out", "generator", "generator_start", "exact", "probe"),
    }
    [reward] = spec.graph.edges_into("generator", "rewards")
    assert (reward.source.node, reward.weight) == ("exact", 1.0)
    assert list(learned(spec)) == ["first-solutions", "generate"]
    assert spec.schedule.anneal == ()
    start: Any = spec.nodes["generator_start"]
    assert start.model.type == "copy"
    assert start.model.at == "generate"


def test_cooper_without_its_reward_model_is_paid_by_the_rule() -> None:
    plain = control("cooper", "plain")

    assert plain.metric == "probe.accuracy"
    assert plain.spec.run.best == "probe.accuracy"
    assert plain.spec.schedule.triggers[0].when.metric == "probe.accuracy"
    assert "rule.scores -> policy.rewards" in edges(plain.spec)
    assert "judge" not in plain.spec.nodes
    assert "start" in plain.spec.nodes


def test_prime_without_its_process_rewards_keeps_filter_and_updates() -> None:
    spec = control("prime", "plain").spec

    assert {"prm", "start", "fresh"}.isdisjoint(spec.nodes)
    assert [edge.source.node for edge in spec.graph.edges_into("policy", "rewards")] == ["band"]
    steps = {phase.name: phase.steps for phase in spec.schedule.flat_phases()}
    assert steps == {"warm-up": 2000, "rl": 240}


def test_spin_without_an_opponent_imitates_the_same_rows_in_the_same_steps() -> None:
    spec = control("spin", "plain").spec

    assert {"opponent", "real_or_own", "previous"}.isdisjoint(spec.nodes)
    assert {"gold.rows -> iterations.rows", "iterations.rows -> policy.demonstrations"} <= edges(
        spec
    )
    train = next(phase for phase in spec.schedule.flat_phases() if phase.name == "train")
    assert train.learn == ("policy.demonstrations",)
    assert sorted(train.set.values()) == [0.0, 1.0]
    before = next(phase for phase in loop("spin").schedule.flat_phases() if phase.name == "train")
    assert train.epochs == before.epochs


def test_two_halves_without_a_joint_reward_imitate() -> None:
    spec = control("two-halves", "plain").spec

    assert learned(spec)["together"] == ("tens.demonstrations", "units.demonstrations")
    assert "joint.scores -> probe.scores" in edges(spec)


# constant, random, no_tool, no_filter


def test_only_what_a_learned_judge_says_is_replaced() -> None:
    replaced: dict[ControlKind, str] = {"constant": "constant", "random": "coin"}
    for kind, name in replaced.items():
        spec = control("prime", kind).spec
        node: Any = spec.nodes[f"prm_step_scores_{kind}"]
        assert node.source.name == name
        assert "band.scores -> policy.rewards" in edges(spec)


def test_without_its_tool_a_policy_has_no_turns() -> None:
    spec = control("search-r1", "no_tool").spec
    policy: Any = spec.nodes["policy"]

    assert "index" not in spec.nodes
    assert policy.rollout.turns is None


def test_without_its_filter_scores_arrive_unfiltered() -> None:
    spec = control("dapo", "no_filter").spec

    assert {"exact.scores -> actor.rewards", "actor.rollouts -> overlong.rollouts"} <= edges(spec)


# The main learner


def test_another_learner_can_be_the_main_one() -> None:
    frozen = control_of(loop("tango"), "frozen", learner="verifier", root=LOOPS)

    assert frozen.learner == "verifier"
    assert "verify" in learned(frozen.spec)
    assert "generate" not in learned(frozen.spec)
    with pytest.raises(ControlRefused, match="`exact` does not learn; learners: `generator`, `ver"):
        control_of(loop("tango"), "frozen", learner="exact")


def changed(name: str, path: str, value: object) -> LoopSpec:
    text = presets.patched(
        presets.load_loop_text(name), [{"op": "set", "path": path, "value": value}]
    )
    return require(parse(text))


def test_the_metric_says_who_is_the_main_learner() -> None:
    exam = changed("tango", "run.best", "exam.agreement")
    judged = changed("cooper", "run.best", "fresh.agreement")

    assert control_of(exam, "frozen", root=LOOPS).learner == "verifier"
    assert control_of(judged, "frozen", root=LOOPS).learner == "judge"


# Every loop of the language


EXAMPLE_LOOPS = sorted(EXAMPLES.glob("*.yaml")) if EXAMPLES.exists() else []


@pytest.mark.slow
@pytest.mark.skipif(not EXAMPLE_LOOPS, reason="the examples of the language are not here")
@pytest.mark.parametrize("path", EXAMPLE_LOOPS, ids=lambda path: path.stem)
def test_controls_of_every_example_are_valid_or_refused_in_words(path: Path) -> None:
    spec = require(parse(path.read_text(encoding="utf-8")))

    found = dict(controls_of(spec, root=path.parent))

    assert tuple(found) == CONTROL_KINDS
    for one in found.values():
        if isinstance(one, Control):
            assert not [e for e in validate(one.spec).errors if e.code != "memory.over_budget"]


# Roles on shared weights, and other systems


def one(name: str, kind: ControlKind) -> Control:
    return control_of(loop(name), kind, root=LOOPS)


def test_a_role_on_shared_weights_leaves_them_when_it_is_frozen() -> None:
    frozen = one("ssp", "frozen")
    proposer: Any = frozen.spec.nodes["proposer"]
    solver: Any = frozen.spec.nodes["solver"]

    assert frozen.learner == "solver"
    assert (proposer.model.type, proposer.model.of) == ("snapshot", "solver")
    assert solver.model.type == "scratch"
    assert solver.training.optimizer.lr == 2e-4
    warm_up, self_play = frozen.spec.schedule.flat_phases()
    assert warm_up.set["nodes.solver.training.optimizer.lr"] == 2e-3
    assert self_play.learn == ("solver.rewards",)
    assert self_play.do is not None
    assert self_play.do.reset_optimizer == ("solver",)


def test_a_solver_without_its_proposer_gets_rows_of_the_data() -> None:
    spec = one("ssp", "plain").spec
    made: Any = spec.nodes["solver_answers"]
    probe: Any = spec.nodes["probe"]

    assert {"proposer", "reader", "extracted", "pool"}.isdisjoint(spec.nodes)
    assert "solver_answers.rows -> solver.prompts" in edges(spec)
    assert made.columns == {"wanted": "answer"}  # as the held-out rows have it
    assert made.source.split == "train"
    assert probe.instead_of == "solver_answers"


def test_self_play_without_its_own_judge_is_paid_by_the_truth_in_mini_batches_that_fit() -> None:
    spec = one("mae", "plain").spec
    solver: Any = spec.nodes["solver"]
    evolve = spec.schedule.flat_phases()[-1]

    assert {"truth.scores -> solver.rewards", "seeds.rows -> solver.prompts"} <= edges(spec)
    assert (32 * solver.rollout.completions_per_prompt) % evolve.set[
        "nodes.solver.training.mini_batch"
    ] == 0


def test_a_partner_that_the_learner_starts_from_trains_until_then() -> None:
    spec = one("marti-chain", "plain").spec

    assert "generator" in spec.nodes
    assert "verifier" not in spec.nodes
    assert learned(spec)["chain"] == ("refiner.rewards",)
    assert "problems.rows -> refiner.prompts" in edges(spec)


def test_the_outcome_chooses_where_a_judge_chose() -> None:
    assert "exact.scores -> best.scores" in edges(one("smolsolver", "plain").spec)


def test_partners_that_only_made_the_start_are_frozen_already() -> None:
    with pytest.raises(ControlRefused, match="`rm` does not learn any more when `policy` begins"):
        one("ppo-four-models", "frozen")


DISTILLED = """
coloop: 1
name: distilled
nodes:
  problems: {kind: dataset, source: {type: task, task: arithmetic, split: train}, rows_per_step: 8}
  held_out: {kind: dataset, source: {type: task, task: arithmetic, split: test}, rows_per_step: 8}
  teacher: {kind: reference, model: {type: scratch, architecture: tiny-qwen3}}
  student:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {completions_per_prompt: 4, max_new_tokens: 8}
    algorithm: {reference: {name: opd, support: full}, demonstrations: {name: sft}}
  exact: {kind: reward, source: {type: builtin, name: exact_match}}
  probe: {kind: evaluate, instead_of: problems, greedy: true, metrics: [accuracy]}
edges:
  - problems.rows -> student.prompts
  - problems.rows -> student.demonstrations
  - student.rollouts -> teacher.rollouts
  - teacher.log_probs -> student.reference
  - student.rollouts -> exact.rollouts
  - held_out.rows -> probe.rows
  - exact.scores -> probe.scores
schedule:
  phases:
    - {name: format, steps: 4, learn: [student.demonstrations]}
    - {name: distillation, steps: 6, learn: [student.reference]}
hardware: {preset: cpu}
"""


def test_a_student_without_distillation_imitates_texts_of_the_teacher() -> None:
    plain = control_of(require(parse(DISTILLED)), "plain")
    writer: Any = plain.spec.nodes["teacher_writes"]
    phase = plain.spec.schedule.flat_phases()[-1]

    assert (
        plain.says == "`student` imitates texts that `teacher` writes for the same prompts (SFT)."
    )
    assert writer.model.with_ == "teacher"
    assert writer.rollout.completions_per_prompt == 4
    assert {"problems.rows -> teacher_writes.prompts"} <= edges(plain.spec)
    assert "teacher_writes.rollouts -> student.demonstrations" in edges(plain.spec)
    assert phase.learn == ("student.demonstrations",)
    assert sorted(phase.set.values()) == [0.0, 1.0]
