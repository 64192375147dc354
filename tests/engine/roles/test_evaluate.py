"""Metrics of rows: on held-out rows, on the step's own, of teaching ports; nothing learns."""

from collections.abc import Callable
from typing import Any

import pytest

from coloop.runtime.evaluations import Probes
from coloop.runtime.schedule.calls import StepContext

Bench = Callable[..., Any]

ENDS = {
    "kind": "reward",
    "source": {
        "type": "python",
        "code": "def reward(prompts, completions, **columns):\n"
        "    return [float(c[-1] == 'a') for c in completions]\n",
    },
}


def probed(rows_of: Any, actor: Any, **fields: Any) -> Any:
    """A probe on two held-out rows; the first completion of a prompt is right, others are not."""
    nodes = {
        "sums": rows_of({"prompt": "p"}),
        "held_out": rows_of({"prompt": "x"}, {"prompt": "y"}),
        "actor": {**actor(), "algorithm": {"name": "grpo"}},
        "mark": ENDS,
        "probe": {"kind": "evaluate", "instead_of": "sums", **fields},
    }
    edges = [
        "sums.rows -> actor.prompts",
        "actor.rollouts -> mark.rollouts",
        "mark.scores -> actor.rewards",
        "held_out.rows -> probe.rows",
        "mark.scores -> probe.scores",
    ]
    return nodes, edges


def test_greedy_text_is_one_and_at_temperature_zero(bench: Bench, rows_of: Any, actor: Any) -> None:
    loop = bench(*probed(rows_of, actor, greedy=True, metrics=["accuracy", "score", "tokens"]))

    assert loop.probe("probe") == {"accuracy": 1.0, "score": 1.0, "tokens": 2.0}
    assert [sampling.temperature for sampling in loop.hosts.samplings] == [0.0]
    assert loop.hosts.orders == []


def test_k_samples_are_drawn_besides_the_greedy_text(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    loop = bench(*probed(rows_of, actor, greedy=True, metrics=["accuracy", "pass@2", "pass@4"]))

    # one of four is right: pass@2 = 1 - C(3,2)/C(4,2) = 1/2
    assert loop.probe("probe") == {"accuracy": 1.0, "pass@2": 0.5, "pass@4": 1.0}
    assert [len(seeds) for seeds in loop.hosts.seeds] == [1, 1, 4, 4]


def test_without_greedy_everything_is_of_the_samples(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    fields = {"samples": 4, "temperature": 0.7, "metrics": ["accuracy", "pass@2"]}
    loop = bench(*probed(rows_of, actor, **fields))

    assert loop.probe("probe") == {"accuracy": 0.25, "pass@2": 0.5}
    assert [sampling.temperature for sampling in loop.hosts.samplings] == [0.7]


def test_several_scorers_have_metrics_of_their_own(bench: Bench, rows_of: Any, actor: Any) -> None:
    nodes, edges = probed(rows_of, actor, greedy=True, metrics=["score"])
    nodes["brief"] = {"kind": "reward", "source": {"type": "builtin", "name": "length", "max": 4}}
    edges += ["actor.rollouts -> brief.rollouts", "brief.scores -> probe.scores"]

    assert bench(nodes, edges).probe("probe") == {"mark.score": 1.0, "brief.score": 0.5}


def judged(rows_of: Any, actor: Any, **fields: Any) -> tuple[Any, Any]:
    """Three readings of every answer, of which the first says yes to the answers that end in a."""
    nodes, edges = probed(rows_of, actor, **fields)
    nodes["ask"] = {"kind": "template", "text": "{{ completion }}"}
    nodes["reader"] = {**actor(), "rollout": {"completions_per_prompt": 2}}
    nodes["mark"] = {
        "kind": "reward",
        "source": {
            "type": "python",
            "code": "def reward(prompts, completions, **columns):\n"
            "    return [float(c[-2:] == 'aa') for c in completions]\n",
        },
    }
    edges = [
        "sums.rows -> actor.prompts",
        "actor.rollouts -> ask.rows",
        "ask.rows -> reader.prompts",
        "reader.rollouts -> mark.rollouts",
        "held_out.rows -> probe.rows",
        {"from": "mark.scores", "to": "probe.scores", "aggregate": "max"},
    ]
    nodes["actor"] = actor()
    return nodes, edges


def test_scores_rise_to_the_rollouts_that_are_graded(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    nodes, edges = judged(rows_of, actor, samples=2, metrics=["accuracy", "pass@2", "tokens"])
    loop = bench(nodes, [*edges, "actor.rollouts -> probe.rollouts"])

    # of two answers the one in `a` gets a reading in `aa`: half is right, each pair holds a right
    # one; readings are one sign longer than answers, which are two
    assert loop.probe("probe") == {"accuracy": 0.5, "pass@2": 1.0, "tokens": 2.0}


def test_scores_rise_to_the_rows_that_another_scorer_graded(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    nodes, edges = judged(rows_of, actor, samples=2, metrics=["score"])
    nodes["brief"] = {"kind": "reward", "source": {"type": "builtin", "name": "length", "max": 4}}
    edges += ["actor.rollouts -> brief.rollouts", "brief.scores -> probe.scores"]

    assert bench(nodes, edges).probe("probe") == {"mark.score": 0.5, "brief.score": 0.5}


def test_only_the_rollouts_that_come_in_are_graded(bench: Bench, rows_of: Any, actor: Any) -> None:
    nodes, edges = probed(rows_of, actor, samples=2, metrics=["score"])
    nodes["few"] = {"kind": "filter", "keep": [{"rule": "regex", "pattern": "a$"}]}
    edges += ["actor.rollouts -> few.rollouts", "few.rollouts -> probe.rollouts"]

    assert bench(nodes, edges).probe("probe") == {"score": 1.0}


def test_texts_that_pass_a_template_keep_the_length_that_was_drawn(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    nodes, edges = probed(rows_of, actor, greedy=True, metrics=["tokens"])
    nodes["neat"] = {"kind": "template", "columns": {"completion": "{{ completion | trim }}"}}
    edges = [edges[0], "actor.rollouts -> neat.rows", "neat.rows -> mark.rows", *edges[2:]]

    assert bench(nodes, edges).probe("probe") == {"tokens": 2.0}


def test_selectors_choose_among_the_samples(bench: Bench, rows_of: Any, actor: Any) -> None:
    nodes, edges = probed(rows_of, actor, samples=4, metrics=["best_of@4", "majority@4"])
    nodes["brief"] = {"kind": "reward", "source": {"type": "builtin", "name": "length", "max": 9}}
    edges += ["actor.rollouts -> brief.rollouts", "brief.scores -> probe.selectors"]
    loop = bench(nodes, edges)
    loop.hosts.write = lambda prompt, k: ("bbb", "a", "bbb", "bbb")[k]

    assert loop.probe("probe") == {"best_of@4": 1.0, "majority@4": 0.0}


def test_the_probes_rows_stand_under_the_name_of_those_they_replace(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    nodes, edges = probed(rows_of, actor, greedy=True, metrics=["score"])
    nodes["ask"] = {"kind": "template", "text": "{{ sums.prompt }}?"}
    edges = ["sums.rows -> ask.rows", "ask.rows -> actor.prompts", *edges[1:]]
    seen = []
    loop = bench(nodes, edges)
    loop.hosts.write = lambda prompt, k: seen.append(prompt) or "a"  # type: ignore[func-returns-value]

    loop.probe("probe")

    assert seen == ["x?", "y?"]


def test_a_probe_moves_no_cursor_and_draws_the_same_again(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    loop = bench(*probed(rows_of, actor, samples=2, metrics=["score"]))
    before = {name: role.state() for name, role in loop.roles.items()}

    loop.probe("probe", 3)
    loop.probe("probe", 3)

    assert {name: role.state() for name, role in loop.roles.items()} == before
    assert loop.hosts.seeds[:2] == loop.hosts.seeds[2:]
    loop.step(3)
    assert not set(loop.hosts.seeds[0]) & set(loop.hosts.seeds[-1])


@pytest.mark.parametrize(
    ("total", "read_at"), [(7, [0, 2, 4, 6, 7]), (6, [0, 2, 4, 6]), (1, [0, 1])]
)
def test_readings_ahead_are_those_that_will_come(
    total: int, read_at: list[int], bench: Bench, rows_of: Any, actor: Any
) -> None:
    """Every second step, before the first and after the last."""
    nodes, edges = probed(rows_of, actor, every=2, metrics=["score"])
    nodes["tables"] = {"kind": "evaluate", "every": 2, "metrics": ["score"]}
    loop = bench(nodes, [*edges, "mark.scores -> tables.scores"])
    roles = {name: loop.roles[name] for name in ("probe", "tables")}
    probes = Probes(loop.plan, roles)
    phase = loop.plan.phases[0]
    found = []
    for step in range(total + 1):
        ahead = probes.ahead(step, total, loop.context)
        # what reads tables of steps reads none before the first and none beside the beat
        assert ahead["tables"] == len([s for s in read_at if s > step and s % 2 == 0])
        assert ahead["probe"] == len(read_at) - len(found)
        for plan in probes.due(step, phase, loop.context, is_last=step == total):
            probes.mark_read(plan, step)
            found.append(step)
        assert probes.ahead(step, total, loop.context)["probe"] == len(read_at) - len(found)

    assert found == read_at


def test_a_probe_runs_as_its_phase_plans_it(bench: Bench, rows_of: Any, actor: Any) -> None:
    loop = bench(*probed(rows_of, actor, every=1, metrics=["score"]))
    probes = Probes(loop.plan, {"probe": loop.roles["probe"]})
    usual = loop.plan.phases[0]
    [plan] = probes.due(1, usual, loop.context, is_last=False)
    own = plan.model_copy(update={"stages": plan.stages[:1]})

    assert probes.due(
        1, usual.model_copy(update={"probes": (own,)}), loop.context, is_last=False
    ) == [own]


def test_the_steps_own_tables_are_read_without_running_anything(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    nodes, edges = probed(rows_of, actor)
    nodes["probe"] = {"kind": "evaluate", "metrics": ["accuracy", "pass@2"]}
    edges = [edge for edge in edges if "held_out" not in edge]
    del nodes["held_out"]
    loop = bench(nodes, edges)
    unrolled = loop.step()
    probes = Probes(loop.plan, {"probe": loop.roles["probe"]})
    [plan] = probes.of_tables(20, loop.plan.phases[0], loop.context)

    step_context = StepContext(step=20, phase="main", context=loop.context)
    read = probes.read_tables(plan, unrolled, step_context, lambda edge, rows: None)
    assert read == {"accuracy": 0.5, "pass@2": 1.0}
    assert probes.of_tables(21, loop.plan.phases[0], loop.context) == []


def test_losses_of_a_teaching_port_are_measured_without_learning(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    nodes = {
        "gold": rows_of({"prompt": "p", "target": "t"}),
        "held_out": rows_of(*({"prompt": "p", "target": "t"} for _ in range(3))),
        "actor": {**actor(), "algorithm": {"name": "sft"}},
        "fit": {"kind": "evaluate", "of": ["actor.demonstrations"], "metrics": ["loss"]},
    }
    edges = ["gold.rows -> actor.demonstrations", "held_out.rows -> fit.rows"]
    loop = bench(nodes, edges)

    assert loop.probe("fit") == {"loss": 3.0}  # the script's loss is the number of its rows
    assert loop.hosts.orders == []


@pytest.mark.parametrize("is_drawn", [True, False])
def test_a_reference_scores_the_probes_rows_too(
    is_drawn: bool, bench: Bench, rows_of: Any, actor: Any
) -> None:
    pair = {"prompt": "p", "chosen": "c", "rejected": "r"}
    nodes = {
        "gold": rows_of(pair),
        "held_out": rows_of(pair, pair),
        "actor": {**actor(), "algorithm": {"name": "dpo"}},
        "start": {"kind": "reference", "model": {"type": "snapshot", "of": "actor"}},
        "fit": {"kind": "evaluate", "of": ["actor.pairs"], "metrics": ["loss"]},
    }
    edges = [
        "gold.pairs -> actor.pairs",
        "gold.pairs -> start.pairs",
        "start.log_probs -> actor.reference",
        "held_out.pairs -> fit.pairs",
    ]
    if is_drawn:
        edges.append("held_out.pairs -> start.pairs")

    assert bench(nodes, edges).probe("fit") == {"loss": 2.0}


def test_a_probe_tells_whether_a_judge_prefers_the_better_side_whatever_the_order(
    bench: Bench, rows_of: Any
) -> None:
    """It likes `good` in both orders of the first pair, and whatever is shown first of the second;
    `chosen` is the better side of each."""
    pairs = ({"prompt": "p", "chosen": "good", "rejected": "bad"},)
    pairs += ({"prompt": "q", "chosen": "x", "rejected": "y"},)
    judge = {
        "kind": "verifier",
        "method": "generative",
        "model": {"type": "scratch", "architecture": "tiny-qwen3"},
        "template": {"text": "{{ a }}|{{ b }}"},
        "read": {"verdict": "(A|B)", "values": {"A": 1, "B": 0}, "order": "both"},
        "rollout": {"completions_per_prompt": 1},
    }
    probe = {
        "kind": "evaluate",
        "instead_of": "pairs",
        "metrics": ["pair_accuracy", "swap_consistency"],
    }
    nodes = {"pairs": rows_of(*pairs), "held_out": rows_of(*pairs), "judge": judge, "probe": probe}
    edges = [
        "pairs.pairs -> judge.comparisons",
        "held_out.rows -> probe.rows",
        "judge.scores -> probe.scores",
    ]
    loop = bench(nodes, edges)
    loop.hosts.write = lambda prompt, k: "B" if prompt == "bad|good" else "A"

    # right in both orders of the first pair, and in one of two of the second
    assert loop.probe("probe") == {"pair_accuracy": 0.75, "swap_consistency": 0.5}


def test_a_probe_compares_step_scores_with_the_truth(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    letters = {"task": "last_letter", "prompt": "ab cd:", "answer": "bd", "steps": ["b", "bd"]}
    judge = {
        "kind": "verifier",
        "method": "generative",
        "model": {"type": "scratch", "architecture": "tiny-qwen3"},
        "template": {"text": "{{ completion }}?"},
        "read": {
            "step_verdicts": r"(\d): (right|wrong)",
            "values": {"right": 1, "wrong": -1},
            "step_scale": "per_step_count",
        },
        "rollout": {"completions_per_prompt": 1},
    }
    nodes = {
        "sums": rows_of(letters),
        "held_out": rows_of(letters),
        "actor": actor(),
        "judge": judge,
        "gold": {"kind": "verifier", "method": "rule", "read": {"granularity": "step"}},
        "probe": {
            "kind": "evaluate",
            "instead_of": "sums",
            "right_at": 0.001,
            "metrics": ["step_f1"],
        },
    }
    edges = [
        "sums.rows -> actor.prompts",
        "actor.rollouts -> judge.rollouts",
        "actor.rollouts -> gold.rollouts",
        "held_out.rows -> probe.rows",
        {"from": "judge.step_scores", "to": "probe.scores", "aggregate": "mean"},
        "gold.step_scores -> probe.labels",
    ]
    loop = bench(nodes, edges)
    answers = ("b\nbd", "x\nbx")
    verdicts = {"b\nbd?": "1: right 2: wrong", "x\nbx?": "1: wrong 2: right"}
    loop.hosts.write = lambda prompt, k: verdicts.get(prompt) or answers[k]

    # of two wrong steps one is found; one right step is called wrong
    assert loop.probe("probe") == {"step_f1": 0.5}


def test_writers_of_one_problem_are_compared_by_their_scores(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    """Both write two texts a prompt, of which the first ends in `a`; the other one's are longer."""
    nodes, edges = probed(rows_of, actor, samples=2, metrics=["win_rate"])
    nodes["other"] = actor()
    nodes["mark"] = {
        "kind": "reward",
        "join": "concat",
        "source": {"type": "builtin", "name": "length", "max": 9},
    }
    edges += ["sums.rows -> other.prompts", "other.rollouts -> mark.rollouts"]
    loop = bench(nodes, edges)
    loop.hosts.write = lambda prompt, k: f"{prompt}{'a' * (2 * k + 1)}"

    # of a prompt's four games between one and three signs, two are draws, one won and one lost
    assert loop.probe("probe") == {
        "win_rate": 0.5,
        "win_rate.actor": 0.5,
        "win_rate.other": 0.5,
    }


def test_judged_pairs_are_games_between_who_wrote_their_sides(
    bench: Bench, rows_of: Any, actor: Any
) -> None:
    nodes = {
        "sums": rows_of({"prompt": "p"}),
        "held_out": rows_of(*({"prompt": sign} for sign in "wxyz")),
        "fresh": actor(rollout={"completions_per_prompt": 1}),
        "old": actor(rollout={"completions_per_prompt": 1}),
        "two": {"kind": "pairs", "method": "direct"},
        "judge": {
            "kind": "verifier",
            "method": "generative",
            "model": {"type": "scratch", "architecture": "tiny-qwen3"},
            "template": {"text": "{{ a }}|{{ b }}"},
            "read": {"verdict": "(A|B)", "values": {"A": 1, "B": 0}, "order": "given"},
            "rollout": {"completions_per_prompt": 1},
        },
        "probe": {"kind": "evaluate", "instead_of": "sums", "metrics": ["win_rate", "elo"]},
    }
    edges = [
        "sums.rows -> fresh.prompts",
        "sums.rows -> old.prompts",
        "fresh.rollouts -> two.chosen",
        "old.rollouts -> two.rejected",
        "two.pairs -> judge.comparisons",
        "held_out.rows -> probe.rows",
        "judge.scores -> probe.scores",
    ]
    loop = bench(nodes, edges)
    written: list[str] = []

    def write(prompt: str, k: int) -> str:
        if "|" in prompt:
            return "B" if prompt.startswith("z") else "A"
        loop.hosts.writer = "fresh" if len(written) < 4 else "old"
        written.append(prompt)
        return f"{prompt}{loop.hosts.writer}"

    loop.hosts.write = write

    found = loop.probe("probe")

    # three of four for the first: with one draw 3.5 of 5, 147.2 points apart
    assert found["win_rate"] == 0.75
    assert found["elo"] == pytest.approx(1073.6, abs=0.05)
    assert found["win_rate.old"] == 0.25
    assert found["elo.fresh"] + found["elo.old"] == pytest.approx(2000.0)
