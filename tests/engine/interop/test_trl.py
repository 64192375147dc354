"""TRL's scripts and YAML files as loops."""

from typing import Any

import pytest
from tests.engine.interop.loops import algorithm_of, fates, loop_of, spec_of, values

from coloop.errors import ImportRefused
from coloop.interop.bring import import_text
from coloop.interop.reading import Source
from coloop.spec.paths import find
from coloop.validate import validate

SCRIPT = """
import os
import re
from datasets import load_dataset
from peft import LoraConfig
from trl import GRPOConfig, GRPOTrainer

os.remove("never")
GROUP = 8
PATTERN = r"<answer>(.*?)</answer>"


def extract(text):
    found = re.search(PATTERN, text)
    return found[1] if found else ""


def correct(completions, answer, **kwargs):
    texts = [completion[0]["content"] for completion in completions]
    return [float(extract(text) == gold) for text, gold in zip(texts, answer)]


config = GRPOConfig(
    output_dir="out",
    learning_rate=5e-6,
    per_device_train_batch_size=GROUP,
    gradient_accumulation_steps=4,
    num_generations=GROUP,
    max_completion_length=2**8,
    beta=0.04,
    epsilon_high=0.28,
    scale_rewards="batch",
    warmup_ratio=0.1,
    lr_scheduler_type="cosine",
    num_train_epochs=1,
    save_steps=int(os.environ["SAVE"]),
    report_to="tensorboard",
)
trainer = GRPOTrainer(
    model="Qwen/Qwen2.5-1.5B-Instruct",
    reward_funcs=[correct],
    args=config,
    train_dataset=load_dataset("openai/gsm8k", "main", split="train"),
    peft_config=LoraConfig(r=8, lora_alpha=16, target_modules=["q_proj", "v_proj"]),
)
trainer.train()
"""


def test_a_grpo_script_is_read_and_not_run() -> None:
    imported = import_text(SCRIPT, name="train.py", source=Source(gpus=2))
    spec = spec_of(imported)
    expected: dict[str, Any] = {
        "nodes.prompts.source.path": "openai/gsm8k",
        "nodes.prompts.source.name": "main",
        "nodes.prompts.rows_per_step": 8,  # 8 a device * 2 devices * 4 / 8 of a prompt
        "nodes.actor.training.mini_batch": 64,  # 8 * 2 * 4
        "nodes.actor.rollout.max_new_tokens": 512,  # computed, so the default
        "nodes.actor.training.optimizer.lr": 5.0e-6,
        "nodes.actor.training.optimizer.warmup": 0.1,
        "nodes.actor.model.path": "Qwen/Qwen2.5-1.5B-Instruct",
        "nodes.actor.model.lora.rank": 8,
        "nodes.reference.model.of": "actor",
        "hardware.preset": "2xH100",
    }

    assert values(spec, expected) == expected
    full = algorithm_of(spec)
    assert (full.name, full.clip_low, full.clip_high) == ("trl-grpo", 0.2, 0.28)
    assert (full.deviation, full.kl.coefficient, full.kl.by_ratio) == ("batch", 0.04, True)
    assert full.correction.method == "none"  # vLLM does not generate
    kind, why = fates(imported)["save_steps"]
    assert kind == "not_understood"
    assert "is computed when the script runs" in why
    assert [found.code for found in validate(spec).errors] == []


def test_a_reward_function_of_the_script_comes_with_what_it_uses() -> None:
    spec = spec_of(import_text(SCRIPT, name="train.py"))

    space: dict[str, Any] = {}
    code = spec.nodes["correct"].source.code  # type: ignore[union-attr]
    exec(code, space)
    texts = ["<answer>4</answer>", "4"]
    assert space["reward"](["2+2", "2+2"], texts, answer=["4", "4"]) == [1.0, 0.0]
    assert "os.remove" not in code


@pytest.mark.parametrize(
    ("settings", "fields"),
    [
        ("loss_type: grpo", {"name": "trl-grpo", "aggregation": "sequence_mean"}),
        ("loss_type: dr_grpo\nscale_rewards: none", {"name": "trl-dr_grpo"}),
        ("loss_type: cispo\nepsilon_high: 5.0", {"name": "trl-cispo", "ratio_max": 5.0}),
        (
            "importance_sampling_level: sequence\nloss_type: grpo\nepsilon: 3.0e-4",
            {"name": "trl-gspo", "loss": "sequence_clipped", "clip_low": 3.0e-4},
        ),
        ("use_vllm: true", {"correction.method": "sequence_mask", "correction.max": 3.0}),
        (
            "use_vllm: true\nvllm_importance_sampling_mode: token_truncate\n"
            "vllm_importance_sampling_cap: 2.0",
            {"correction.method": "token_tis", "correction.max": 2.0},
        ),
    ],
)
def test_losses_of_a_yaml_file(settings: str, fields: dict[str, Any]) -> None:
    text = (
        "model_name_or_path: Qwen/Qwen2.5-0.5B\nlearning_rate: 1.0e-6\nnum_generations: 8\n"
        f"dataset_name: openai/gsm8k\n{settings}\n"
    )
    full = algorithm_of(loop_of(text, "grpo.yaml"))

    for path, expected in fields.items():
        value = full
        for word in path.split("."):
            value = getattr(value, word)
        assert value == expected, path


def test_dpo_sft_reward_and_distillation() -> None:
    head = "from trl import *\nfrom datasets import load_dataset\n"
    dpo = loop_of(
        f"{head}DPOConfig(beta=0.2, loss_type=['sigmoid', 'sft'], loss_weights=[1.0, 1.0], "
        "max_length=512, per_device_train_batch_size=4)",
        "a.py",
    )
    sft = loop_of(f"{head}SFTConfig(packing=True, max_steps=10, learning_rate=1e-4)", "a.py")
    reward = loop_of(f"{head}RewardConfig(center_rewards_coefficient=0.01)", "a.py")
    distillation = loop_of(
        f"{head}DistillationConfig(teacher_model_name_or_path='Qwen/Qwen3-8B', beta=0.5)", "a.py"
    )

    full = algorithm_of(dpo, "pairs")
    assert (full.name, full.beta, full.sft) == ("trl-dpo", 0.2, 0.5)  # 1 / (1 + 1)
    assert find(sft, "nodes.actor.training.optimizer.lr").value == 1.0e-4
    assert find(reward, "nodes.rm.algorithm.center").value == 0.01
    full = algorithm_of(distillation, "reference")
    assert (full.support, full.divergence, full.beta) == ("full", "jsd", 0.5)
    for spec in (dpo, sft, reward, distillation):
        codes = {found.code for found in validate(spec).errors}
        assert codes <= {"data.missing_file"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("from trl import KTOConfig\nKTOConfig()", "`KTOConfig` is a trainer of TRL that is not"),
        ("from trl import GRPOConfig\nx = (", "line 2: the script is no valid Python"),
        ("import trl\nprint(1)", "the script makes no configuration of TRL"),
    ],
)
def test_other_scripts_are_refused_in_one_sentence(text: str, message: str) -> None:
    with pytest.raises(ImportRefused, match=r"^[^\n]*$") as refused:
        import_text(text, name="a.py")
    assert message in str(refused.value)


def test_a_command_with_its_launcher() -> None:
    spec = loop_of(
        "accelerate launch --num_processes 4 examples/scripts/grpo.py "
        "--model_name_or_path Qwen/Qwen2.5-0.5B --learning_rate 2e-6 --num_generations 4 --use_vllm"
    )

    assert find(spec, "hardware.preset").value == "4xH100"
    assert find(spec, "nodes.actor.rollout.engine").value == "vllm"
