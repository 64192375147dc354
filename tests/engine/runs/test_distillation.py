"""Runs in which teachers teach: one and several, by the class of a row, beside rewards and KL,
under a prompt of their own, and of texts that others wrote."""

from typing import Any

import pytest
from tests.engine.runs.conftest import Runner, same

from coloop.spec.diagnostics import Change
from coloop.spec.io import patch

LOOP = """
coloop: 1
name: distilled
nodes:
  problems: {kind: dataset, source: {type: task, task: arithmetic, size: 16}, rows_per_step: 4}
  teacher: {kind: actor, model: {type: scratch, architecture: tiny-qwen3-wide}}
  reads: {kind: reference, model: {type: shared, with: teacher}}
  student:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {completions_per_prompt: 2, max_new_tokens: 4}
    algorithm: {name: opd}
    training: {optimizer: {name: adamw, lr: 5.0e-3}}
edges:
  - problems.rows -> student.prompts
  - student.rollouts -> reads.rollouts
  - {from: reads.log_probs, to: student.reference, id: reading}
schedule: {steps: 3}
hardware: {preset: cpu}
run: {seed: 0}
"""


def changed(**values: Any) -> str:
    """The loop with values by path; `edges` are added."""
    edges = values.pop("edges", ())
    changes = [Change(op="set", path=path, value=value) for path, value in values.items()]
    changes += [Change(op="add_edge", path="edges", value=edge) for edge in edges]
    return patch(LOOP, changes)


SUPPORTS: dict[str, dict[str, Any]] = {
    "sampled": {"name": "opd"},
    "top_k": {"name": "opd", "support": "top_k", "k": 20},
    "full": {"name": "gkd", "dtype": "float16"},
    "at a temperature": {"name": "opd", "support": "full", "temperature": 2.0},
}


@pytest.mark.parametrize("name", SUPPORTS)
def test_a_student_learns_without_a_reward(runner: Runner, name: str) -> None:
    ended = runner(changed(**{"nodes.student.algorithm": SUPPORTS[name]}))

    assert ended.state == "finished", ended.error
    apart = ended.metrics("student", "distillation/kl")
    assert len(apart) == 3
    measured = ended.metrics("student", "distillation/divergence")
    assert len(measured) == (0 if name == "sampled" else 3)
    assert all(0 <= one < 5 for one in measured)
    assert bool(ended.metrics("student", "distillation/mass")) is (name == "top_k")


def test_each_teacher_reads_the_rows_that_a_filter_leaves_it(runner: Runner) -> None:
    ended = runner(
        changed(
            **{
                "nodes.second": {
                    "kind": "reference",
                    "model": {"type": "scratch", "architecture": "tiny-qwen3"},
                },
                "nodes.first_two": {"kind": "filter", "per_group": {"max": 1, "pick": "first"}},
            },
            edges=[
                "student.rollouts -> first_two.rollouts",
                "first_two.rollouts -> second.rollouts",
                {"from": "second.log_probs", "to": "student.reference", "weight": 3.0},
            ],
        )
    )

    assert ended.state == "finished", ended.error
    assert len(ended.metrics("student", "teacher/reads")) == 3
    [*seconds] = ended.metrics("student", "teacher/second")
    assert len(seconds) == 3
    assert ended.stages(1)[-1] == "student.sync"
    learned = ended.of("stage.finished", stage="student.learn")
    assert [event["samples"] for event in learned] == [8, 8, 8]


def test_rewards_and_a_teacher_are_one_loss_beside_a_kl(runner: Runner) -> None:
    ended = runner(
        changed(
            **{
                "nodes.student.algorithm": {
                    "rewards": {"name": "grpo", "kl": {"coefficient": 0.1, "reference": "start"}},
                    "reference": {"name": "opd", "weight": 0.5},
                },
                "nodes.start": {
                    "kind": "reference",
                    "model": {"type": "snapshot", "of": "student"},
                },
                "nodes.length": {
                    "kind": "reward",
                    "source": {"type": "builtin", "name": "regex", "pattern": "[0-9]"},
                },
            },
            edges=[
                "student.rollouts -> start.rollouts",
                "start.log_probs -> student.reference",
                "student.rollouts -> length.rollouts",
                "length.scores -> student.rewards",
            ],
        )
    )

    assert ended.state == "finished", ended.error
    kl = ended.metrics("student", "kl")
    assert kl[0] == pytest.approx(0, abs=1e-6)  # of the start, which is no teacher
    assert ended.metrics("student", "distillation/kl")[0] != pytest.approx(0, abs=1e-2)
    assert not ended.metrics("student", "teacher/start")
    for port in ("rewards", "reference"):
        assert len(ended.metrics("student", f"loss/{port}")) == 3


def test_the_same_weights_teach_under_a_prompt_that_knows_more(runner: Runner) -> None:
    ended = runner(
        changed(
            **{
                "nodes.reads.model": {"type": "shared", "with": "student"},
                "nodes.told": {"kind": "template", "text": "{{ prompt }} {{ target }}"},
            },
            edges=["problems.rows -> told.rows", "told.rows -> reads.prompts"],
        )
    )
    alone = runner(changed(**{"nodes.reads.model": {"type": "shared", "with": "student"}}))

    assert ended.state == "finished", ended.error
    # Under its own prompt a policy is its own teacher: nothing is left to learn.
    assert alone.metrics("student", "distillation/kl") == [pytest.approx(0, abs=1e-5)] * 3
    assert abs(ended.metrics("student", "distillation/kl")[0]) > 1e-4
    assert ended.metrics("reads", "rows/without_prompt") == [0, 0, 0]


def test_a_teachers_own_texts_are_learned_word_by_word(runner: Runner) -> None:
    """Forward KL on texts of the teacher: the rows come with what the teacher says of them."""
    ended = runner(
        changed(
            **{
                "nodes.teacher.rollout": {"completions_per_prompt": 2, "max_new_tokens": 4},
                "nodes.student.algorithm": {
                    "name": "opd",
                    "support": "full",
                    "divergence": "forward",
                },
                "edges.0": "problems.rows -> teacher.prompts",
                "edges.1": "teacher.rollouts -> reads.rollouts",
            },
        )
    )

    assert ended.state == "finished", ended.error
    measured = ended.metrics("student", "distillation/divergence")
    assert len(measured) == 3
    assert measured[-1] < measured[0]


def test_a_teacher_of_another_tokenizer_ends_the_run_before_it_starts(runner: Runner) -> None:
    ended = runner(changed(**{"nodes.teacher.model.architecture": "tiny-bytes"}))

    assert ended.state == "failed"
    assert ended.error is not None
    assert ended.error.code == "learning.teacher_tokenizer"
    assert "`reads` teaches `student`" in ended.error.message
    assert not ended.of("stage.finished")


def test_a_rollout_with_two_prompts_for_its_teacher_is_refused(runner: Runner) -> None:
    """Two texts of a critic stand below each rollout; which of them is the prompt is not said."""
    ended = runner(
        changed(
            **{
                "nodes.critic": {
                    "kind": "actor",
                    "model": {"type": "shared", "with": "teacher"},
                    "rollout": {"completions_per_prompt": 2, "max_new_tokens": 2},
                },
                "nodes.asked": {"kind": "template", "text": "{{ completion }}?"},
            },
            edges=[
                "student.rollouts -> asked.rows",
                "asked.rows -> critic.prompts",
                "critic.rollouts -> reads.prompts",
            ],
        )
    )

    assert ended.state == "failed"
    assert ended.error is not None
    assert "has several prompts at `reads.prompts`" in ended.error.message


def test_a_resumed_run_goes_on_bit_by_bit(runner: Runner) -> None:
    text = changed(
        **{
            "nodes.student.algorithm": SUPPORTS["top_k"],
            "nodes.reads.model": {"type": "snapshot", "of": "student", "refresh": {"every": 1}},
            "run.checkpoint_every": 1,
            "schedule.steps": 4,
        }
    )
    whole = runner(text)

    def is_second_checkpoint(event: dict[str, Any]) -> bool:
        return event["type"] == "checkpoint" and event["step"] == 2

    stopped = runner(text, stop_at=is_second_checkpoint)
    resumed = runner(text, resume=stopped)

    assert stopped.state == "stopped"
    assert resumed.state == whole.state == "finished"
    assert same(resumed.weights(), whole.weights())
    assert resumed.readings() == whole.readings()


def test_a_probe_measures_the_distance_on_other_rows(runner: Runner) -> None:
    ended = runner(
        changed(
            **{
                "nodes.held_out": {
                    "kind": "dataset",
                    "source": {"type": "task", "task": "arithmetic", "split": "test", "size": 4},
                    "rows_per_step": 2,
                },
                "nodes.probe": {
                    "kind": "evaluate",
                    "instead_of": "problems",
                    "of": ["student.reference"],
                    "every": 3,
                    "metrics": ["loss"],
                },
            },
            edges=["held_out.rows -> probe.rows"],
        )
    )

    assert ended.state == "finished", ended.error
    assert len(ended.metrics("probe", "loss")) == 2
