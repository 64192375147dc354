"""OpenRLHF's arguments as loops."""

from typing import Any

import pytest
from tests.engine.interop.loops import algorithm_of, fates, loop_of, spec_of, values

from coloop.interop.bring import import_text
from coloop.spec.paths import find
from coloop.validate import validate

PPO = """ray job submit --address="http://127.0.0.1:8265" \\
   --runtime-env-json='{"working_dir": "/openrlhf"}' \\
   -- python3 -m openrlhf.cli.train_ppo_ray \\
   --ref_num_nodes 1 --ref_num_gpus_per_node 2 \\
   --reward_num_nodes 1 --reward_num_gpus_per_node 2 \\
   --critic_num_nodes 1 --critic_num_gpus_per_node 2 \\
   --actor_num_nodes 1 --actor_num_gpus_per_node 2 \\
   --vllm_num_engines 2 --vllm_tensor_parallel_size 2 \\
   --colocate_critic_reward --colocate_actor_ref \\
   --pretrain OpenRLHF/Llama-3-8b-sft-mixture \\
   --reward_pretrain OpenRLHF/Llama-3-8b-rm-700k \\
   --micro_train_batch_size 8 --train_batch_size 128 \\
   --rollout_batch_size 1024 --n_samples_per_prompt 1 \\
   --prompt_max_len 1024 --generate_max_len 512 \\
   --zero_stage 3 --actor_learning_rate 5e-7 --critic_learning_rate 9e-6 \\
   --init_kl_coef 0.01 \\
   --prompt_data OpenRLHF/prompt-collection-v0.1 --input_key context_messages \\
   --apply_chat_template --normalize_reward --packing_samples --gradient_checkpointing"""


def test_ppo_with_four_models_on_pools() -> None:
    spec = loop_of(PPO)
    expected: dict[str, Any] = {
        "nodes.prompts.rows_per_step": 1024,
        "nodes.prompts.tokens.max": 1024,
        "nodes.actor.rollout.max_new_tokens": 512,
        "nodes.actor.training.mini_batch": 128,
        "nodes.actor.training.zero_stage": 3,
        "nodes.actor.training.optimizer.lr": 5.0e-7,
        "nodes.actor.training.optimizer.schedule": "cosine",
        "nodes.actor.training.optimizer.min_lr": 5.0e-8,  # a tenth of the rate
        "nodes.critic.training.optimizer.lr": 9.0e-6,
        "nodes.critic.model.path": "OpenRLHF/Llama-3-8b-rm-700k",
        "nodes.actor.pool": "train",
        "nodes.reference.pool": "train",
        "nodes.critic.pool": "critic",
        "nodes.reward.pool": "critic",
        "nodes.actor.rollout.pool": "generate",
        "hardware.pools.train.gpus": 2,
        "hardware.pools.critic.gpus": 2,
        "hardware.pools.generate.gpus": 4,
        "hardware.preset": "8xH100",
    }

    assert values(spec, expected) == expected
    full = algorithm_of(spec)
    assert (full.name, full.reward_clip, full.kl.into) == ("openrlhf-ppo", 10.0, "reward")
    assert [found.code for found in validate(spec).errors] == []


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ("--advantage_estimator reinforce", "openrlhf-reinforce-pp"),
        ("--advantage_estimator group_norm --n_samples_per_prompt 8", "openrlhf-grpo"),
        ("--algo.advantage.estimator rloo --rollout.n_samples_per_prompt 4", "openrlhf-rloo"),
        (
            "--advantage_estimator group_norm --policy_loss_type gspo --n_samples_per_prompt 8",
            "openrlhf-gspo",
        ),
    ],
)
def test_estimators(arguments: str, name: str) -> None:
    spec = loop_of(f"python -m openrlhf.cli.train_ppo_ray --pretrain Qwen/Qwen3-4B {arguments}")

    assert algorithm_of(spec).name == name
    assert "critic" not in spec.nodes
    assert [found.code for found in validate(spec).errors if "file" not in found.code] == []


def test_async_training_is_a_version_off_with_its_own_pool() -> None:
    spec = loop_of(
        "python -m openrlhf.cli.train_ppo_ray --actor.model_name_or_path Qwen/Qwen3-4B "
        "--train.async_enable --algo.advantage.estimator reinforce_baseline "
        "--rollout.n_samples_per_prompt 8 --vllm.num_engines 4 --actor.num_gpus_per_node 4 "
        "--algo.kl.init_coef 1e-5 --algo.kl.use_loss --algo.kl.estimator k2 "
        "--algo.advantage.is_correction_level token --ref.num_gpus_per_node 4 "
        "--train.colocate_actor_ref"
    )

    assert values(spec, {"schedule.max_staleness": 1}) == {"schedule.max_staleness": 1}
    full = algorithm_of(spec)
    assert (full.kl.estimator, full.kl.into) == ("k2", "loss")
    correction = full.correction
    assert (correction.method, correction.min, correction.max) == ("icepop", 0.5, 5.0)


def test_dpo_reward_model_and_sft() -> None:
    dpo = loop_of(
        "deepspeed --num_gpus 4 --module openrlhf.cli.train_dpo --pretrain m/a --dataset d/b "
        "--beta 0.2 --ipo --learning_rate 5e-7 --chosen_key c --lora_rank 8"
    )
    rm = loop_of(
        "deepspeed --module openrlhf.cli.train_rm --pretrain m/a --dataset d/b --margin_loss"
    )
    sft = loop_of(
        "deepspeed --module openrlhf.cli.train_sft --pretrain m/a --dataset d/b "
        "--input_key question --output_key response --max_epochs 1"
    )

    expected = {
        "nodes.preferences.columns.chosen": "c",
        "nodes.actor.model.lora.rank": 8,
        "nodes.actor.training.optimizer.lr": 5.0e-7,
        "hardware.preset": "4xH100",
    }
    assert values(dpo, expected) == expected
    full = algorithm_of(dpo, "pairs")
    assert (full.name, full.beta, full.loss) == ("openrlhf-ipo", 0.2, "ipo")
    assert find(rm, "nodes.rm.algorithm.margin").value == "margin"
    assert find(sft, "nodes.demonstrations.columns.target").value == "response"
    for spec in (dpo, rm, sft):
        assert [found.code for found in validate(spec).errors] == []


def test_a_reward_function_is_carried_where_its_file_is(tmp_path: Any) -> None:
    from coloop.interop.reading import Source

    (tmp_path / "score.py").write_text(
        "def reward_func(queries, prompts, labels):\n"
        "    return {'rewards': [float(q.endswith(l)) for q, l in zip(queries, labels)]}\n"
    )
    command = (
        "python -m openrlhf.cli.train_ppo_ray --pretrain m/a --remote_rm_url score.py "
        "--advantage_estimator reinforce --label_key answer"
    )
    there = spec_of(import_text(command, source=Source(root=tmp_path)))

    space: dict[str, Any] = {}
    exec(there.nodes["reward"].source.code, space)  # type: ignore[union-attr]
    assert space["reward"](["1+1=", "1+1="], ["2", "3"], answer=["2", "2"]) == [1.0, 0.0]
    kind, why = fates(import_text(command))["reward.remote_url"]
    assert kind == "not_understood"
    assert "`score.py` is not there" in why


def test_a_share_of_the_default_rate_is_a_rate() -> None:
    spec = loop_of("python -m openrlhf.cli.train_ppo_ray --actor.model_name_or_path Qwen/Qwen3-4B")

    # 1e-6 by default, here as there, and a tenth of it at the end
    assert find(spec, "nodes.actor.training.optimizer.min_lr").value == 1.0e-7
