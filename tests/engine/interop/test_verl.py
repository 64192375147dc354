"""verl commands as loops: what becomes of settings, and which are named as not carried."""

from typing import Any

import pytest
from tests.engine.interop.loops import algorithm_of, fates, loop_of, spec_of

from coloop.errors import ImportRefused
from coloop.interop.bring import import_text
from coloop.interop.reading import Source
from coloop.spec.paths import find
from coloop.validate import validate

GRPO = """python3 -m verl.trainer.main_ppo \\
    algorithm.adv_estimator=grpo \\
    data.train_files=$HOME/data/gsm8k/train.parquet \\
    data.train_batch_size=1024 \\
    data.max_response_length=1024 \\
    actor_rollout_ref.model.path=Qwen/Qwen2.5-7B-Instruct \\
    actor_rollout_ref.actor.ppo_mini_batch_size=256 \\
    actor_rollout_ref.actor.use_kl_loss=True \\
    actor_rollout_ref.rollout.n=5 \\
    trainer.total_epochs=15"""


def test_a_grpo_command() -> None:
    spec = loop_of(GRPO)
    values = {
        "nodes.prompts.rows_per_step": 1024,
        "nodes.actor.rollout.completions_per_prompt": 5,
        "nodes.actor.rollout.max_new_tokens": 1024,
        "nodes.actor.training.mini_batch": 256 * 5,
        "nodes.actor.training.optimizer.lr": 1.0e-6,
        "nodes.actor.training.optimizer.weight_decay": 0.01,
        "schedule.epochs": 15,
        "hardware.preset": "8xH100",
    }

    assert {path: find(spec, path).value for path in values} == values
    full = algorithm_of(spec)
    assert full.name == "verl-grpo"
    assert (full.clip_low, full.clip_high, full.dual_clip) == (0.2, 0.2, 3.0)
    assert (full.kl.coefficient, full.kl.estimator, full.kl.into) == (0.001, "k3", "loss")
    assert set(spec.nodes) == {"prompts", "actor", "reward", "reference"}
    assert [found.code for found in validate(spec).errors] == []


@pytest.mark.parametrize(
    ("more", "fields"),
    [
        ("algorithm.adv_estimator=rloo", {"advantage": "leave_one_out"}),
        ("algorithm.norm_adv_by_std_in_grpo=False", {"deviation": "none"}),
        (
            "actor_rollout_ref.actor.policy_loss.loss_mode=gspo "
            "actor_rollout_ref.actor.clip_ratio_low=3e-4",
            {"name": "verl-gspo", "loss": "sequence_clipped", "clip_low": 3.0e-4},
        ),
        (
            "actor_rollout_ref.actor.policy_loss.loss_mode=cispo "
            "actor_rollout_ref.actor.clip_ratio_high=4",
            {"loss": "cispo", "ratio_min": 0.8, "ratio_max": 5},
        ),
        (
            "actor_rollout_ref.actor.loss_agg_mode=seq-mean-token-sum-norm",
            {"aggregation": "constant", "divisor": None},
        ),
        ("actor_rollout_ref.actor.entropy_coeff=0.001", {"entropy": 0.001}),
        (
            "algorithm.rollout_correction.rollout_is=token",
            {"correction.method": "token_tis", "correction.max": 2.0},
        ),
    ],
)
def test_losses(more: str, fields: dict[str, Any]) -> None:
    full = algorithm_of(loop_of(f"{GRPO} {more}"))

    for path, expected in fields.items():
        value = full
        for word in path.split("."):
            value = getattr(value, word)
        assert value == expected, path


def test_ppo_has_a_critic_with_its_own_optimizer() -> None:
    command = GRPO.replace("=grpo", "=gae")
    spec = loop_of(f"{command} critic.optim.lr=2e-5 critic.model.path=Qwen/Qwen2.5-0.5B")

    assert find(spec, "nodes.critic.training.optimizer.lr").value == 2.0e-5
    assert find(spec, "nodes.critic.model.path").value == "Qwen/Qwen2.5-0.5B"
    assert algorithm_of(spec).name == "verl-ppo"
    assert [found.code for found in validate(spec).errors] == []


def test_dapo_has_a_filter_and_an_overlong_penalty() -> None:
    spec = loop_of(
        f"{GRPO} +algorithm.filter_groups.enable=True data.gen_batch_size=1536 "
        "+reward_model.overlong_buffer.enable=True +reward_model.overlong_buffer.len=256",
    )

    assert find(spec, "nodes.prompts.rows_per_step").value == 1536
    assert find(spec, "nodes.informative.fill.groups").value == 1024
    assert spec.nodes["overlong"].source.model_dump()["buffer"] == 256  # type: ignore[union-attr]
    assert [found.code for found in validate(spec).errors] == []


def test_settings_without_a_place_are_named_with_line_and_reason() -> None:
    imported = import_text(
        f"{GRPO} \\\n  actor_rollout_ref.rollout.temprature=0.7 \\\n"
        "  actor_rollout_ref.actor.clip_ratio=0.1 critic.kl_ctrl.type=fixed trainer.nnodes=$NODES"
    )
    by_name = {fate.name: fate for fate in imported.settings}

    misspelled = by_name["actor_rollout_ref.rollout.temprature"]
    assert (misspelled.kind, misspelled.line) == ("not_understood", 11)
    assert "did you mean `actor_rollout_ref.rollout.temperature`" in misspelled.why
    clip = by_name["actor_rollout_ref.actor.clip_ratio"]
    assert clip.kind == "not_carried"
    assert "are null; they are 0.2 and 0.2" in clip.why
    assert "a setting until 0.4.1" in by_name["critic.kl_ctrl.type"].why
    assert by_name["trainer.nnodes"].kind == "not_understood"
    assert "`$NODES` has no value in this text" in by_name["trainer.nnodes"].why


def test_a_yaml_file_with_interpolations() -> None:
    text = """
algorithm: {adv_estimator: grpo}
data: {train_batch_size: 64, max_response_length: 256, train_files: train.parquet}
actor_rollout_ref:
  model: {path: Qwen/Qwen2.5-0.5B}
  actor: {ppo_mini_batch_size: '${data.train_batch_size}'}
  rollout: {n: 4, response_length: '${data.max_response_length}'}
trainer: {total_training_steps: 10, default_local_dir: '${oc.env:HOME}/x'}
"""
    imported = import_text(text, name="config.yaml")
    spec = spec_of(imported)

    assert find(spec, "nodes.actor.training.mini_batch").value == 64 * 4
    assert find(spec, "nodes.actor.rollout.max_new_tokens").value == 256
    assert find(spec, "schedule.steps").value == 10


def test_a_reward_function_is_carried_where_its_file_is(tmp_path: Any) -> None:
    (tmp_path / "score.py").write_text(
        "def compute_score(data_source, solution_str, ground_truth, extra_info=None):\n"
        "    return float(solution_str == ground_truth)\n"
    )
    command = f"{GRPO} custom_reward_function.path=score.py"
    there = import_text(command, source=Source(root=tmp_path))
    not_there = import_text(command)

    space: dict[str, Any] = {}
    code = spec_of(there).nodes["reward"].source.code  # type: ignore[union-attr]
    exec(code, space)
    rows = [{"ground_truth": "4"}, {"ground_truth": "5"}]
    assert space["reward"](["2+2", "2+2"], ["4", "4"], reward_model=rows) == [1.0, 0.0]
    kind, why = fates(not_there)["reward.custom_reward_function.path"]
    assert kind == "not_understood"
    assert "`score.py` is not there in what was pasted: put the file beside the loop" in why


def test_a_value_that_fits_no_loop_is_left_out_and_named() -> None:
    imported = import_text(f"{GRPO} actor_rollout_ref.rollout.temperature=-1 trainer.nnodes=two")

    assert fates(imported)["actor_rollout_ref.rollout.temperature"][0] == "not_understood"
    assert "'two' is no number" in fates(imported)["trainer.nnodes"][1]


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        ("", "a.sh", "a.sh is empty"),
        ("hello world", "a.txt", "names no trainer that is known here"),
        ("python train.py --x 1", "a.sh", "names no trainer that is known here"),
        ("coloop: 1\nnodes: {}", "a.yaml", "is a loop of coloop already: open it"),
        ("a: 1\nb: 2", "a.yaml", "has `a`, `b`, which is no configuration known here"),
        ("a: [1", "a.yaml", "cannot be read"),
        ("x" * 2**21, "a.sh", "larger than 1 MiB"),
        ("python -m verl.trainer.main_ppo a='1", "a.sh", "line 1: the quote"),
    ],
)
def test_what_is_no_configuration_is_refused_in_one_sentence(
    text: str, name: str, message: str
) -> None:
    with pytest.raises(ImportRefused, match=r"^[^\n]*$") as refused:
        import_text(text, name=name)
    assert message in str(refused.value)
