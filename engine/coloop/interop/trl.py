"""TRL: a script with one of its configurations, the YAML of `trl` and of recipes, or a command.

Names and defaults of `trl/trainer/*_config.py` in 1.16.0 and of the `TrainingArguments` beneath.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from coloop.errors import ImportRefused
from coloop.interop.draft import Draft
from coloop.interop.openrlhf import options
from coloop.interop.python import Call, Computed, Script, known
from coloop.interop.reading import File, Source
from coloop.interop.rewards import MATH
from coloop.interop.settings import Carried, Decides, Given, Left, Renamed, Row, Settings, Table
from coloop.interop.shell import Word
from coloop.interop.sources import file_source
from coloop.interop.values import lines_of, plain

KEY: Final = "trl"
NAMES: Final = "trl"
CONFIGS: Final = {
    "GRPOConfig": "grpo",
    "DPOConfig": "dpo",
    "SFTConfig": "sft",
    "RewardConfig": "reward",
    "DistillationConfig": "distillation",
}
PROGRAMS: Final = {
    "grpo": "grpo",
    "dpo": "dpo",
    "sft": "sft",
    "reward": "reward",
    "reward_modeling": "reward",
    "distillation": "distillation",
    "run_sft": "sft",
    "run_dpo": "dpo",
}
ALGORITHM: Final = "nodes.actor.algorithm"

SPEED: Final = Left("how the trainer computes, not what: the compiler decides it here")
ENGINE: Final = Left("a detail of the rollout engine, which the compiler or vLLM decides")
LOGS: Final = Left("what is logged and where: runs keep metrics, texts and logs in their folder")
FILES: Final = Left("where checkpoints are and what is in them: `run.storage` and `coloop export`")
DATA: Final = Left("how rows are read: datasets here are read row by row, without workers")
OTHER: Final = Left("has no counterpart in a loop")
SCHEDULES: Final = {
    "linear": "linear",
    "cosine": "cosine",
    "constant": "constant",
    "constant_with_warmup": "constant",
    "cosine_with_min_lr": "cosine",
    "cosine_with_restarts": "cosine",
}
OPTIMIZERS: Final = {
    "adamw_torch_fused": "adamw",
    "adamw_torch": "adamw",
    "adamw_hf": "adamw",
    "adamw_8bit": "adamw8bit",
    "paged_adamw_8bit": "adamw8bit",
    "adamw_bnb_8bit": "adamw8bit",
    "paged_adamw_32bit": "adamw",
    "lion_32bit": "lion",
    "sgd": "sgd",
    "rmsprop": "rmsprop",
}
LOSSES: Final = {
    "cispo": "trl-cispo",
    "sapo": "trl-sapo",
    "luspo": "trl-luspo",
    "vespo": "trl-vespo",
}
"""`loss_type` whose preset has its name; the others are aggregations of `trl-grpo`."""
AGGREGATIONS: Final = {
    "dapo": "token_mean",
    "grpo": "sequence_mean",
    "dr_grpo": "constant",
    "bnpo": "token_mean",
}
CORRECTIONS: Final = {
    "sequence_mask": "sequence_mask",
    "token_truncate": "token_tis",
    "token_mask": "icepop",
}
PREFERENCES: Final = {
    "sigmoid": "sigmoid",
    "hinge": "hinge",
    "ipo": "ipo",
    "robust": "robust",
    "exo_pair": "exo",
    "nca_pair": "nca",
    "bco_pair": "bco",
    "sppo_hard": "sppo",
    "aot": "aot",
    "apo_zero": "apo",
    "discopop": "discopop",
}
TRACKERS: Final = ("wandb", "tensorboard", "mlflow", "trackio")


def _training(node: str, lr: float) -> dict[str, Row]:
    """Settings of `TrainingArguments`, `ModelConfig` and `ScriptArguments`; `node` learns."""
    ours = f"nodes.{node}.training.optimizer"
    return {
        "learning_rate": Carried(f"{ours}.lr", lr),
        "weight_decay": Carried(f"{ours}.weight_decay", 0.0),
        "adam_beta1": Decides(f"{ours}.betas", 0.9),
        "adam_beta2": Decides(f"{ours}.betas", 0.999),
        "adam_epsilon": Carried(f"{ours}.epsilon", 1.0e-8),
        "lr_scheduler_type": Carried(f"{ours}.schedule", "linear", words=SCHEDULES),
        "lr_scheduler_kwargs": Decides(f"{ours}.min_lr"),
        "warmup_ratio": Decides(f"{ours}.warmup"),
        "warmup_steps": Decides(f"{ours}.warmup", 0),
        "optim": Carried(f"{ours}.name", "adamw_torch_fused", words=OPTIMIZERS),
        "max_grad_norm": Carried(f"nodes.{node}.training.gradient_clip", 1.0, words={0.0: None}),
        "gradient_checkpointing": Carried(f"nodes.{node}.training.gradient_checkpointing", True),
        "activation_offloading": Decides(f"nodes.{node}.training.gradient_checkpointing", False),
        "per_device_train_batch_size": Decides(f"nodes.{node}.training.micro_batch", 8),
        "gradient_accumulation_steps": Decides(f"nodes.{node}.training.mini_batch", 1),
        "num_train_epochs": Decides("schedule.epochs", 3),
        "max_steps": Decides("schedule.steps", -1),
        "bf16": Decides(f"nodes.{node}.training.dtype"),
        "fp16": Decides(f"nodes.{node}.training.dtype", False),
        "disable_dropout": Decides(f"nodes.{node}.training.dropout", True),
        "seed": Carried("run.seed", 42),
        "save_steps": Decides("run.checkpoint_every", 500),
        "save_strategy": Decides("run.checkpoint_every", "steps"),
        "save_total_limit": Carried("run.keep"),
        "eval_steps": Decides("nodes.probe.every"),
        "eval_strategy": Decides("nodes.probe.every", "no"),
        "evaluation_strategy": Renamed("eval_strategy"),
        "do_eval": Left("`eval_strategy` says when evaluations run"),
        "report_to": Decides("run.report_to"),
        "project": Carried("run.project"),
        # ModelConfig and its like
        "model_name_or_path": Decides(f"nodes.{node}.model.path"),
        "model_revision": Carried(f"nodes.{node}.model.revision"),
        "trust_remote_code": Carried(f"nodes.{node}.model.trust_remote_code", False),
        "torch_dtype": Renamed("dtype"),
        "dtype": Decides(f"nodes.{node}.model.dtype"),
        "use_peft": Decides(f"nodes.{node}.model.lora", False),
        "lora_r": Decides(f"nodes.{node}.model.lora.rank", 16),
        "lora_alpha": Decides(f"nodes.{node}.model.lora.alpha", 32),
        "lora_dropout": Decides(f"nodes.{node}.model.lora.dropout", 0.05),
        "lora_target_modules": Decides(f"nodes.{node}.model.lora.targets"),
        "load_in_4bit": Decides(f"nodes.{node}.model.quantization", False),
        "load_in_8bit": Decides(f"nodes.{node}.model.quantization", False),
        "chat_template": Carried(f"nodes.{node}.model.chat_template"),
        # data
        "dataset_name": Decides("nodes.prompts.source"),
        "dataset_config": Decides("nodes.prompts.source.name"),
        "dataset_train_split": Decides("nodes.prompts.source.split", "train"),
        "dataset_test_split": Decides("nodes.held_out.source.split", "test"),
        "dataset_mixer": Decides("nodes.prompts.source"),
        "dataset_mixture": Decides("nodes.prompts.source"),
        "dataset_splits": DATA,
        "dataset_*": DATA,
        "deepspeed": Left("the training backend: set `training.backend` and `zero_stage`"),
        "fsdp*": Left("the training backend: set `training.backend`"),
    }


GROUPS: Final[Table] = {
    "vllm_*": ENGINE,
    "*vllm*": ENGINE,
    "save_*": FILES,
    "*hub*": FILES,
    "output_dir": FILES,
    "*checkpoint*": FILES,
    "log*": LOGS,
    "run_name": LOGS,
    "wandb_*": LOGS,
    "hub_*": FILES,
    "dataloader_*": DATA,
    "preprocessing_*": DATA,
    "eval_*": Left("evaluations are `evaluate` nodes: their own fields say when and how"),
    "*eval*": Left("evaluations are `evaluate` nodes: their own fields say when and how"),
    "*": SPEED,
}

GRPO: Final[Table] = {
    **_training("actor", 1.0e-6),
    "reward_funcs": Decides("nodes.reward.source"),
    "reward_weights": Decides("edges"),
    "num_generations": Carried("nodes.actor.rollout.completions_per_prompt", 8),
    "max_completion_length": Carried("nodes.actor.rollout.max_new_tokens", 512),
    "max_prompt_length": Decides("nodes.prompts.tokens"),
    "generation_batch_size": Decides("nodes.prompts.rows_per_step"),
    "steps_per_generation": Decides("nodes.prompts.rows_per_step"),
    "shuffle_dataset": Carried("nodes.prompts.shuffle", True),
    "dataset_prompt_column": Decides("nodes.prompts.columns.prompt"),
    "temperature": Carried("nodes.actor.rollout.temperature", 1.0),
    "top_p": Carried("nodes.actor.rollout.top_p", 1.0),
    "top_k": Carried("nodes.actor.rollout.top_k", 0, words={0: None, -1: None, 50: 50}),
    "use_vllm": Decides("nodes.actor.rollout.engine", False),
    "vllm_mode": Decides("hardware.pools", "colocate"),
    "vllm_gpu_memory_utilization": Carried("nodes.actor.rollout.gpu_memory_utilization"),
    "vllm_tensor_parallel_size": Carried("nodes.actor.rollout.tensor_parallel"),
    "num_iterations": Carried("nodes.actor.training.epochs", 1),
    "beta": Decides(f"{ALGORITHM}.kl", 0.0),
    "use_bias_correction_kl": Decides(f"{ALGORITHM}.kl.by_ratio", True),
    "epsilon": Decides(f"{ALGORITHM}.clip_low", 0.2),
    "epsilon_high": Decides(f"{ALGORITHM}.clip_high"),
    "loss_type": Decides(f"{ALGORITHM}.aggregation", "dapo"),
    "scale_rewards": Decides(f"{ALGORITHM}.deviation", "group"),
    "importance_sampling_level": Decides(f"{ALGORITHM}.loss", "token"),
    "multi_objective_aggregation": Decides(f"{ALGORITHM}.name", "sum_then_normalize"),
    "entropy_coef": Decides(f"{ALGORITHM}.entropy", 0.0),
    "mask_truncated_completions": Decides("nodes.actor.rollout.truncated", False),
    "sapo_temperature_pos": Decides(f"{ALGORITHM}.tau_positive", 1.0),
    "sapo_temperature_neg": Decides(f"{ALGORITHM}.tau_negative", 1.05),
    "vespo_k_pos": Decides(f"{ALGORITHM}.k_positive", 2.0),
    "vespo_k_neg": Decides(f"{ALGORITHM}.k_negative", 3.0),
    "vespo_lambda_pos": Decides(f"{ALGORITHM}.lambda_positive", 3.0),
    "vespo_lambda_neg": Decides(f"{ALGORITHM}.lambda_negative", 2.0),
    "vllm_importance_sampling_correction": Decides(f"{ALGORITHM}.correction.method", True),
    "vllm_importance_sampling_mode": Decides(f"{ALGORITHM}.correction.method", "sequence_mask"),
    "vllm_importance_sampling_clip_max": Decides(f"{ALGORITHM}.correction.max", 3.0),
    "vllm_importance_sampling_clip_min": Decides(f"{ALGORITHM}.correction.min"),
    "vllm_importance_sampling_cap": Renamed("vllm_importance_sampling_clip_max"),
    "sync_ref_model": Decides("nodes.reference.model.refresh", False),
    "ref_model_mixup_alpha": Decides("nodes.reference.model.ema", 0.6),
    "ref_model_sync_steps": Decides("nodes.reference.model.refresh", 512),
    "delta": Left("a bound of the ratio before the clipping: `dual_clip` is near to it"),
    "top_entropy_quantile": Left("all tokens are trained on; `mask` leaves out tags"),
    "min_p": Left("sampling here has `top_p` and `top_k`"),
    "repetition_penalty": Left("sampling here has none; the reward `ngram_repetition` has"),
    "chat_template_kwargs": Decides("nodes.actor.model.chat_template_kwargs"),
    "system_prompt": Decides("nodes.prompts"),
    **GROUPS,
}
DPO: Final[Table] = {
    **_training("actor", 1.0e-6),
    "beta": Carried(f"{ALGORITHM}.beta", 0.1),
    "loss_type": Decides(f"{ALGORITHM}.loss", ["sigmoid"]),
    "loss_weights": Decides(f"{ALGORITHM}.sft"),
    "rpo_alpha": Decides(f"{ALGORITHM}.sft"),
    "label_smoothing": Carried(f"{ALGORITHM}.label_smoothing", 0.0),
    "max_length": Decides("nodes.preferences.tokens", 1024),
    "sync_ref_model": Decides("nodes.reference.model.refresh", False),
    "ref_model_mixup_alpha": Decides("nodes.reference.model.ema", 0.6),
    "ref_model_sync_steps": Decides("nodes.reference.model.refresh", 512),
    "reference_free": Left("`orpo` and `simpo` are losses without a reference"),
    "precompute_ref_log_probs": SPEED,
    **GROUPS,
}
SFT: Final[Table] = {
    **_training("actor", 2.0e-5),
    "max_length": Decides("nodes.demonstrations.tokens", 1024),
    "max_seq_length": Renamed("max_length"),
    "packing": Carried("nodes.actor.training.packing", False),
    "dataset_text_field": Decides("nodes.demonstrations.columns.target", "text"),
    "shuffle_dataset": Carried("nodes.demonstrations.shuffle"),
    "assistant_only_loss": Left("of a chat only the assistant's messages are learned"),
    "completion_only_loss": Left("of a prompt with an answer only the answer is learned"),
    "loss_type": Decides("nodes.actor.algorithm", "nll"),
    **GROUPS,
}
REWARD: Final[Table] = {
    **_training("rm", 1.0e-4),
    "center_rewards_coefficient": Carried("nodes.rm.algorithm.center"),
    "max_length": Decides("nodes.preferences.tokens", 1024),
    **GROUPS,
}
DISTILLATION: Final[Table] = {
    **_training("actor", 1.0e-6),
    "teacher_model_name_or_path": Decides("nodes.teacher.model.path"),
    "teacher_model_revision": Carried("nodes.teacher.model.revision"),
    "max_completion_length": Carried("nodes.actor.rollout.max_new_tokens", 512),
    "temperature": Carried("nodes.actor.rollout.temperature", 1.0),
    "top_p": Carried("nodes.actor.rollout.top_p", 1.0),
    "top_k": Carried("nodes.actor.rollout.top_k", 0, words={0: None, -1: None, 50: 50}),
    "beta": Decides(f"{ALGORITHM}.divergence", 1.0),
    "shuffle_dataset": Carried("nodes.prompts.shuffle", True),
    "use_vllm": Decides("nodes.actor.rollout.engine", False),
    "vllm_gpu_memory_utilization": Carried("nodes.actor.rollout.gpu_memory_utilization"),
    "vllm_tensor_parallel_size": Carried("nodes.actor.rollout.tensor_parallel"),
    **GROUPS,
}
TABLES: Final[Mapping[str, Table]] = {
    "grpo": GRPO,
    "dpo": DPO,
    "sft": SFT,
    "reward": REWARD,
    "distillation": DISTILLATION,
}


def table_of(trainer: str) -> Table:
    return TABLES[trainer]


def is_script(text: str) -> bool:
    """Whether a text is a Python script that uses TRL."""
    return re.search(r"^\s*(from trl\b|import trl\b)", text, re.MULTILINE) is not None


def is_config(data: Mapping[str, Any]) -> bool:
    """Whether a YAML file has settings of a TRL trainer."""
    named = {name for table in TABLES.values() for name in table if "*" not in name}
    return len(named & data.keys()) >= 2


def entry_of(word: str, rest: Sequence[Word]) -> tuple[str, int] | None:
    """The trainer that a word of a command starts, and how many words after it belong to that."""
    if word == "trl" and rest and rest[0].text in PROGRAMS:
        return PROGRAMS[rest[0].text], 1
    stem = word.rpartition("/")[2]
    if stem.endswith(".py") and stem[:-3] in PROGRAMS:
        return PROGRAMS[stem[:-3]], 0
    if word.startswith("trl.scripts.") and word.rpartition(".")[2] in PROGRAMS:
        return PROGRAMS[word.rpartition(".")[2]], 0
    return None


def read(file: File) -> tuple[str, list[Given]]:
    """Trainer and settings of a script, a command or a YAML file."""
    if file.words is not None:
        given = list(options(file.words))
        config = next((entry for entry in given if entry.name == "config"), None)
        if config is not None and len(given) < 4:
            raise ImportRefused(f"the settings are in `{config.value}`: give that file")
        return file.program, [entry for entry in given if entry.name != "config"]
    if file.data is not None:
        return _trainer_of(file.data, file.name), list(_top_level(file))
    return _of_script(Script(file.text))


def _top_level(file: File) -> Iterator[Given]:
    assert file.data is not None
    yield from lines_of(file.text, iter((str(key), value) for key, value in file.data.items()))


def _trainer_of(data: Mapping[str, Any], name: str) -> str:
    """The trainer that a YAML file is for, by settings that only one has, then by its name."""
    if data.keys() & {"num_generations", "reward_funcs", "reward_weights", "num_iterations"}:
        return "grpo"
    if data.keys() & {"teacher_model_name_or_path"}:
        return "distillation"
    if data.keys() & {"center_rewards_coefficient"}:
        return "reward"
    lower = name.lower()
    for trainer in ("grpo", "dpo", "reward", "distillation", "sft"):
        if trainer in lower:
            return trainer
    for other in ("orpo", "kto", "cpo", "ppo", "rloo"):
        if other in lower:
            raise ImportRefused(_unknown(other))
    if data.keys() & {"beta", "precompute_ref_log_probs", "rpo_alpha"}:
        return "dpo"
    return "sft"


def _unknown(trainer: str) -> str:
    names = ", ".join(f"`{name}`" for name in CONFIGS)
    return f"`{trainer}` is a trainer of TRL that is not imported; {names} are"


def _of_script(script: Script) -> tuple[str, list[Given]]:
    """The first configuration that a script makes, and what it gives its trainer."""
    calls = {call.name: call for call in reversed(script.calls)}
    config = next((call for call in script.calls if call.name in CONFIGS), None)
    kind = config.name if config else ""
    if config is None:
        trainers = {name.replace("Config", "Trainer"): name for name in CONFIGS}
        kind = next((name for trainer, name in trainers.items() if trainer in calls), "")
    if not kind:
        other = next((name for name in calls if name.endswith(("Config", "Trainer"))), "")
        if other:
            raise ImportRefused(_unknown(other))
        wanted = ", ".join(f"`{name}(...)`" for name in CONFIGS)
        raise ImportRefused(f"the script makes no configuration of TRL: one of {wanted}")
    given = [
        Given(name=name, value=value, line=line)
        for name, (value, line) in (config.keywords if config else {}).items()
    ]
    names = {entry.name for entry in given}
    given += [entry for entry in _beside(script) if entry.name not in names]
    return CONFIGS[kind], given


def _beside(script: Script) -> Iterator[Given]:
    """What a script gives its trainer beside the configuration: model, adapter, data."""
    trainer = next((call for call in script.calls if call.name.endswith("Trainer")), None)
    model = next((c for c in script.calls if c.name == "from_pretrained" and c.positional), None)
    if trainer is not None:
        value, line = trainer.keywords.get("model", (None, trainer.line))
        if isinstance(value, str):
            yield Given(name="model_name_or_path", value=value, line=line)
        elif model is not None:
            first = model.positional[0]
            yield Given(name="model_name_or_path", value=first, line=model.line)
    lora = script.find("LoraConfig")
    if lora is not None:
        yield Given(name="use_peft", value=True, line=lora.line)
        for theirs, ours in (
            ("r", "lora_r"),
            ("lora_alpha", "lora_alpha"),
            ("lora_dropout", "lora_dropout"),
            ("target_modules", "lora_target_modules"),
        ):
            if theirs in lora.keywords:
                value, line = lora.keywords[theirs]
                yield Given(name=ours, value=value, line=line)
    data = script.find("load_dataset")
    if data is not None:
        yield from _loaded(data)


def _loaded(call: Call) -> Iterator[Given]:
    """`load_dataset("name", "configuration", split="train")`."""
    name = call.positional[0] if call.positional else known(call.keywords, "path")
    files = known(call.keywords, "data_files")
    if name in ("json", "csv", "parquet") and isinstance(files, str):
        name = files
    if name is not None:
        yield Given(name="dataset_name", value=name, line=call.line)
    config = call.positional[1] if len(call.positional) > 1 else known(call.keywords, "name")
    if config is not None:
        yield Given(name="dataset_config", value=config, line=call.line)
    split = known(call.keywords, "split")
    if isinstance(split, str):
        yield Given(name="dataset_train_split", value=split, line=call.line)


def shape(s: Settings, draft: Draft, source: Source, trainer: str, file: File) -> None:
    """The nodes of a loop, and what several settings decide together."""
    gpus = _processes(draft, source, file)
    script = Script(file.text) if file.words is None and file.data is None else None
    match trainer:
        case "grpo":
            _grpo(s, draft, script, gpus)
        case "dpo":
            _dpo(s, draft, gpus)
        case "sft":
            _sft(s, draft, gpus)
        case "reward":
            _reward(s, draft, gpus)
        case _:
            _distillation(s, draft, gpus)
    node = "rm" if trainer == "reward" else "actor"
    _learner(s, draft, node)
    _schedule(s, draft, trainer)
    _trackers(s, draft)
    _hardware(s, draft, source, trainer, gpus)


def _processes(draft: Draft, source: Source, file: File) -> int:
    if source.gpus is not None:
        return source.gpus
    for option in ("num_processes", "nproc_per_node", "num_gpus"):
        if (value := plain(file.launcher.get(option, ""))) and isinstance(value, int):
            return value
    draft.assume(
        "one process on one GPU: the file does not say how many; `--gpus` does on the command line"
    )
    return 1


def _model(s: Settings, draft: Draft, node: str) -> None:
    path = s["model_name_or_path"]
    if path is None:
        path = "Qwen/Qwen2.5-0.5B-Instruct"
        draft.assume(f"no model is named: {path} assumed")
    draft.put(f"nodes.{node}.model.path", path)


def _rows(s: Settings, split: Any) -> dict[str, Any]:
    """The dataset of a file; of a mixture, the first."""
    name = s["dataset_name"]
    if name is None:
        for mixture in ("dataset_mixer", "dataset_mixture"):
            value = s[mixture]
            if isinstance(value, Mapping) and value:
                parts = value.get("datasets")
                if isinstance(parts, list) and parts:
                    name = parts[0].get("id") or parts[0].get("path")
                else:
                    name = next(iter(value))
                if len(parts or value) > 1:
                    s.miss(mixture, "several datasets: the first is used; add a node for each")
    if name is None:
        return {"type": "file", "path": "data/train.jsonl"}
    found = file_source(name)
    if found["type"] == "hub":
        found["split"] = str(split or "train").partition("[")[0]
        if s["dataset_config"] is not None:
            found["name"] = str(s["dataset_config"])
    return found


def _lengths(draft: Draft, node: str, longest: Any, setting: str) -> None:
    if longest:
        draft.put(f"nodes.{node}.tokens", {"mean": max(int(longest) // 2, 1), "max": int(longest)})
        draft.assume(f"rows have {int(longest) // 2} tokens on average, half of `{setting}`")


def _grpo(s: Settings, draft: Draft, script: Script | None, gpus: int) -> None:
    draft.node("prompts", kind="dataset", source=_rows(s, s["dataset_train_split"]))
    draft.node("actor", kind="actor", model={"type": "pretrained"})
    _model(s, draft, "actor")
    column = s["dataset_prompt_column"]
    if column and column != "prompt":
        draft.put("nodes.prompts.columns", {"prompt": column})
    _lengths(draft, "prompts", s["max_prompt_length"], "max_prompt_length")
    each, accumulation = (
        s.number("per_device_train_batch_size"),
        s.number("gradient_accumulation_steps"),
    )
    steps = s["steps_per_generation"] or accumulation
    whole = s["generation_batch_size"] or each * gpus * steps
    group = s.number("num_generations")
    if whole % group:
        draft.assume(
            f"{whole} completions are generated at once, which {group} of a prompt do not divide: "
            f"{max(whole // group, 1)} prompts a step"
        )
    draft.put("nodes.prompts.rows_per_step", max(whole // group, 1))
    draft.put("nodes.actor.training.mini_batch", each * gpus * accumulation)
    if s.is_given("per_device_train_batch_size"):
        draft.put("nodes.actor.training.micro_batch", each)
    rewards = _rewards(s, draft, script)
    _grpo_algorithm(s, draft, len(rewards))
    if s.number("beta"):
        _reference(s, draft)
    if s["mask_truncated_completions"]:
        draft.put("nodes.actor.rollout.truncated", "mask")
    if s["system_prompt"]:
        s.miss("system_prompt", "a `template` node before the actor writes it as a message")
    if isinstance(kwargs := s["chat_template_kwargs"], Mapping):
        draft.put("nodes.actor.model.chat_template_kwargs", dict(kwargs))
    every = s["eval_steps"]
    if s["eval_strategy"] == "steps" and isinstance(every, int) and every > 0:
        held_out = _rows(s, s["dataset_test_split"])
        draft.node("held_out", kind="dataset", source=held_out)
        draft.node("probe", kind="evaluate", instead_of="prompts", every=every, metrics=["score"])
    draft.connect(rewards)


def _reference(s: Settings, draft: Draft) -> None:
    model: dict[str, Any] = {"type": "snapshot", "of": "actor"}
    if s["sync_ref_model"]:
        model["refresh"] = {"every": s.number("ref_model_sync_steps")}
        model["ema"] = round(1 - s.number("ref_model_mixup_alpha"), 6)
    draft.node("reference", kind="reference", model=model)


def _rewards(s: Settings, draft: Draft, script: Script | None) -> dict[str, float]:
    """The scorers with their weights: functions of the script, reward models, or named ones."""
    named = _reward_names(s, script)
    weights = s["reward_weights"]
    rewards: dict[str, float] = {}
    for number, item in enumerate(named):
        node = re.sub(r"[^a-z0-9_]", "_", item.rpartition("/")[2].lower()).strip("_") or "reward"
        node = node if node[0].isalpha() else f"reward_{node}"
        node = f"{node}_score" if node in ("prompt", "completion", "answer") else node
        if script is not None and item in script.functions:
            section: dict[str, Any] = {"type": "python", "code": adapted(script, item)}
            draft.node(node, kind="reward", source=section)
        elif "/" in item:
            model = {"type": "pretrained", "path": item}
            draft.node(node, kind="reward", source={"type": "model"}, model=model)
        else:
            draft.node(node, kind="reward", source=_stand_in(item))
            s.miss(
                "reward_funcs",
                f"the reward function `{item}` is not in this file: `{_stand_in(item)['name']}` "
                "stands in its place; write it as `def reward(prompts, completions, **columns)`",
            )
        weight = weights[number] if isinstance(weights, list) and number < len(weights) else 1.0
        rewards[node] = float(weight)
    if not rewards:
        draft.node("reward", kind="reward", source=dict(MATH))
        draft.assume("no reward is named: `math_equal` against the column `answer` assumed")
        rewards["reward"] = 1.0
    return rewards


def _stand_in(name: str) -> dict[str, Any]:
    if "format" in name or "tag" in name:
        return {"type": "builtin", "name": "format", "shape": "tags"}
    if "length" in name:
        return {"type": "builtin", "name": "length", "max": 1024}
    return dict(MATH)


def _reward_names(s: Settings, script: Script | None) -> list[str]:
    value: Any = s["reward_funcs"]
    if script is not None:
        trainer = next((c for c in script.calls if c.name == "GRPOTrainer"), None)
        value = (trainer.keywords.get("reward_funcs", (None, 0))[0] if trainer else None) or value
    items = value if isinstance(value, list) else [value]
    names = [item.text if isinstance(item, Computed) else item for item in items]
    return [
        re.sub(r"\W+$", "", str(name)).rpartition(".")[2] if script else str(name)
        for name in names
        if name
    ]


def adapted(script: Script, name: str) -> str:
    """A reward of ours that calls a function of a script. TRL gives chats as lists of messages."""
    text = script.function(name)
    takes_messages = '["content"]' in text or "['content']" in text
    wrap = (
        '[[{"role": "assistant", "content": text}] for text in completions]'
        if takes_messages
        else "completions"
    )
    inner = script.functions[name]
    takes = {arg.arg for arg in (*inner.args.args, *inner.args.kwonlyargs)}
    prompts = "prompts=prompts, " if "prompts" in takes or inner.args.kwarg else ""
    given = (
        "**columns"
        if inner.args.kwarg
        else ", ".join(
            f"{arg}=columns.get({arg!r})" for arg in sorted(takes - {"prompts", "completions"})
        )
    )
    completions = f"completions={wrap}, " if "completions" in takes or inner.args.kwarg else ""
    call = f"{name}({prompts}{completions}{given})".replace(", )", ")")
    head = text.replace(f"def {name}(", f"def {name}(")
    if name == "reward":
        head, call = (
            text.replace("def reward(", "def _reward(", 1),
            call.replace("reward(", "_reward(", 1),
        )
    return f"{head}\n\n\ndef reward(prompts, completions, **columns):\n    return {call}\n"


def _grpo_algorithm(s: Settings, draft: Draft, rewards: int) -> None:
    loss, scale = s["loss_type"], s["scale_rewards"]
    fields: dict[str, Any] = {}
    name = LOSSES.get(loss, "trl-grpo")
    if loss not in LOSSES and loss not in AGGREGATIONS:
        s.miss("loss_type", f"`{loss}` has no counterpart; `dapo` is in its place")
        loss = "dapo"
    if loss == "bnpo":
        draft.assume(
            "`bnpo` divides by the tokens of each device; here by those of the whole batch"
        )
    low = s.number("epsilon")
    high = s.number("epsilon_high")
    if loss == "cispo":
        fields["ratio_max"] = high if high is not None else low
    elif loss in AGGREGATIONS or loss == "luspo":
        fields |= {"clip_low": low, "clip_high": low if high is None else high}
    if loss == "sapo":
        fields |= {
            "tau_positive": s.number("sapo_temperature_pos"),
            "tau_negative": s.number("sapo_temperature_neg"),
        }
    if loss == "vespo":
        fields |= {
            "k_positive": s.number("vespo_k_pos"),
            "k_negative": s.number("vespo_k_neg"),
            "lambda_positive": s.number("vespo_lambda_pos"),
            "lambda_negative": s.number("vespo_lambda_neg"),
        }
    if loss in AGGREGATIONS:
        fields["aggregation"] = AGGREGATIONS[loss]
    unscaled = scale in ("none", False)
    if s["importance_sampling_level"] == "sequence" and loss in AGGREGATIONS:
        name = "trl-gspo"
        if fields["aggregation"] == "token_mean":
            del fields["aggregation"]
            draft.assume("a ratio of whole texts is averaged over texts, not over tokens")
    elif loss == "dr_grpo" and unscaled:
        name, unscaled = "trl-dr_grpo", False
    if s["multi_objective_aggregation"] == "normalize_then_sum":
        name = "trl-gdpo" if name == "trl-grpo" else name
        if rewards < 2:
            name = "trl-grpo" if name == "trl-gdpo" else name
    if scale == "batch":
        fields["deviation"] = "batch"
    elif unscaled:
        fields["deviation"] = "none"
    if entropy := s.number("entropy_coef"):
        fields["entropy"] = entropy
    if beta := s.number("beta"):
        fields["kl"] = {"coefficient": beta}
        if not s["use_bias_correction_kl"]:
            fields["kl"]["by_ratio"] = False
    _correction(s, fields)
    draft.algorithm("actor", name, fields)


def _correction(s: Settings, fields: dict[str, Any]) -> None:
    """TRL corrects only where vLLM generates."""
    if not s["use_vllm"] or not s["vllm_importance_sampling_correction"]:
        fields["correction"] = {"method": "none"}
        return
    mode = s["vllm_importance_sampling_mode"]
    method = CORRECTIONS.get(mode)
    if method is None:
        s.miss("vllm_importance_sampling_mode", f"`{mode}` has no counterpart; `sequence_mask` is")
        method = "sequence_mask"
    high, low = (
        s.number("vllm_importance_sampling_clip_max"),
        s.number("vllm_importance_sampling_clip_min"),
    )
    if (method, high, low) != ("sequence_mask", 3.0, None):
        fields["correction"] = {"method": method, "max": high}
        if low is not None:
            fields["correction"]["min"] = low


def _dpo(s: Settings, draft: Draft, gpus: int) -> None:
    draft.mode = "offline"
    draft.node("preferences", kind="dataset", source=_rows(s, s["dataset_train_split"]))
    _lengths(draft, "preferences", s["max_length"], "max_length")
    _batch(s, draft, "preferences", "actor", gpus)
    draft.node("actor", kind="actor", model={"type": "pretrained"})
    _model(s, draft, "actor")
    losses = s["loss_type"]
    kinds = losses if isinstance(losses, list) else [losses]
    name, fields = "trl-dpo", dict[str, Any]()
    main = next((kind for kind in kinds if kind != "sft"), "sigmoid")
    if main == "ipo":
        name = "trl-ipo"
    elif main in PREFERENCES:
        fields["loss"] = PREFERENCES[main]
    else:
        s.miss("loss_type", f"`{main}` has no counterpart; `sigmoid` is in its place")
    share = s["rpo_alpha"]
    if "sft" in kinds:
        weights = s["loss_weights"] or [1.0] * len(kinds)
        share = weights[kinds.index("sft")] / weights[1 - kinds.index("sft")]
    if share:
        fields["sft"] = round(share / (1 + share), 6)
        draft.assume(
            f"{share:g} of SFT beside the loss is the share {share / (1 + share):.3g} of both here"
        )
    draft.algorithm("actor", name, fields)
    _reference(s, draft)
    _fit(s, draft, "actor.pairs", ["loss", "pair_accuracy"])
    draft.connect_pairs("actor")


def _sft(s: Settings, draft: Draft, gpus: int) -> None:
    draft.mode = "offline"
    draft.node("demonstrations", kind="dataset", source=_rows(s, s["dataset_train_split"]))
    if s.is_given("dataset_text_field"):
        draft.put("nodes.demonstrations.columns", {"target": s["dataset_text_field"]})
    _lengths(draft, "demonstrations", s["max_length"], "max_length")
    _batch(s, draft, "demonstrations", "actor", gpus)
    draft.node("actor", kind="actor", model={"type": "pretrained"}, algorithm={"name": "sft"})
    _model(s, draft, "actor")
    if s["loss_type"] != "nll":
        s.miss("loss_type", f"`{s['loss_type']}` has no counterpart; `nll` is in its place")
    _fit(s, draft, "actor.demonstrations", ["loss"])
    draft.connect_demonstrations()


def _reward(s: Settings, draft: Draft, gpus: int) -> None:
    draft.mode = "reward_modeling"
    draft.node("preferences", kind="dataset", source=_rows(s, s["dataset_train_split"]))
    _lengths(draft, "preferences", s["max_length"], "max_length")
    _batch(s, draft, "preferences", "rm", gpus)
    draft.node(
        "rm",
        kind="reward",
        source={"type": "model"},
        model={"type": "pretrained"},
        algorithm={"name": "bradley_terry"},
    )
    _model(s, draft, "rm")
    _fit(s, draft, "rm.pairs", ["loss", "pair_accuracy"])
    draft.connect_pairs("rm")


def _distillation(s: Settings, draft: Draft, gpus: int) -> None:
    draft.node("prompts", kind="dataset", source=_rows(s, s["dataset_train_split"]))
    draft.node("actor", kind="actor", model={"type": "pretrained"})
    _model(s, draft, "actor")
    _batch(s, draft, "prompts", "actor", gpus)
    teacher = s["teacher_model_name_or_path"]
    if teacher is None:
        teacher = "Qwen/Qwen2.5-7B-Instruct"
        draft.assume(f"no teacher is named: {teacher} assumed")
    draft.node("teacher", kind="reference", model={"type": "pretrained", "path": teacher})
    beta = s.number("beta")
    fields: dict[str, Any] = {"divergence": "jsd", "beta": beta}
    if beta in (0, 1):
        fields = {"divergence": "reverse" if beta else "forward"}
    draft.put("nodes.actor.algorithm", {"reference": {"name": "trl-distillation", **fields}})
    draft.connect({})


def _batch(s: Settings, draft: Draft, rows: str, node: str, gpus: int) -> None:
    each = s.number("per_device_train_batch_size")
    draft.put(f"nodes.{rows}.rows_per_step", each * gpus * s.number("gradient_accumulation_steps"))
    if s.is_given("per_device_train_batch_size"):
        draft.nodes.setdefault(node, {}).setdefault("training", {})["micro_batch"] = each


def _fit(s: Settings, draft: Draft, port: str, metrics: list[str]) -> None:
    every = s["eval_steps"]
    if s["eval_strategy"] != "steps" or not isinstance(every, int) or every < 1:
        return
    draft.node("held_out", kind="dataset", source=_rows(s, s["dataset_test_split"]))
    draft.node("fit", kind="evaluate", of=[port], every=every, metrics=metrics)


def _learner(s: Settings, draft: Draft, node: str) -> None:
    ours = f"nodes.{node}"
    betas = [s.number("adam_beta1"), s.number("adam_beta2")]
    if betas != [0.9, 0.999]:
        draft.put(f"{ours}.training.optimizer.betas", betas)
    warmup = s["warmup_ratio"] or s["warmup_steps"]
    if warmup:
        draft.put(f"{ours}.training.optimizer.warmup", warmup)
    kwargs = s["lr_scheduler_kwargs"]
    if isinstance(kwargs, Mapping):
        lr = s.number("learning_rate")
        least = kwargs.get("min_lr", kwargs.get("min_lr_rate", 0) * lr)
        if least:
            draft.put(f"{ours}.training.optimizer.min_lr", float(f"{least:.12g}"))
    if s["activation_offloading"]:
        draft.put(f"{ours}.training.gradient_checkpointing", "offload")
    if s["use_peft"]:
        lora: dict[str, Any] = {"rank": s.number("lora_r"), "alpha": s.number("lora_alpha")}
        if s["lora_dropout"]:
            lora["dropout"] = s.number("lora_dropout")
        targets = s["lora_target_modules"]
        if isinstance(targets, list):
            lora["targets"] = targets
        draft.put(f"{ours}.model.lora", lora)
    if s["load_in_4bit"] or s["load_in_8bit"]:
        draft.put(f"{ours}.model.quantization", "nf4" if s["load_in_4bit"] else "int8")
    dtype = s["dtype"]
    if dtype in ("bfloat16", "float16", "float32"):
        draft.put(f"{ours}.model.dtype", dtype)
    if s["bf16"]:
        draft.put(f"{ours}.training.dtype", "bfloat16")
    elif s["fp16"]:
        draft.put(f"{ours}.training.dtype", "float16")


def _schedule(s: Settings, draft: Draft, trainer: str) -> None:
    """TRL counts optimizer steps; a step of a loop is one generation."""
    steps = s.number("max_steps")
    if steps is not None and steps > 0:
        if trainer == "grpo":
            accumulation = s.number("gradient_accumulation_steps")
            each = s["steps_per_generation"] or accumulation
            updates = max(each // accumulation, 1) * s.number("num_iterations")
            steps = max(steps // updates, 1)
        draft.put("schedule.steps", int(steps))
    else:
        epochs = s.number("num_train_epochs")
        draft.put("schedule.epochs", max(int(epochs), 1))
        if epochs != int(epochs):
            draft.assume(f"{epochs} epochs: whole passes are counted here")
    if s["save_strategy"] == "steps" and isinstance(s["save_steps"], int):
        draft.put("run.checkpoint_every", max(s["save_steps"], 1))


def _trackers(s: Settings, draft: Draft) -> None:
    value = s["report_to"]
    names = value if isinstance(value, list) else [value]
    report_to = [name for name in names if name in TRACKERS]
    if report_to:
        draft.put("run.report_to", report_to)


def _hardware(s: Settings, draft: Draft, source: Source, trainer: str, gpus: int) -> None:
    is_online = trainer in ("grpo", "distillation")
    if is_online:
        draft.put("nodes.actor.rollout.engine", "vllm" if s["use_vllm"] else "torch")
    if trainer == "grpo" and s["use_vllm"] and s["vllm_mode"] == "server":
        whole = gpus + 1
        draft.put("nodes.actor.rollout.pool", "generate")
        for name in ("actor", "reference"):
            draft.put(f"nodes.{name}.pool", "train")
        draft.machines(1, whole, source.gpu)
        draft.put("hardware.pools", {"train": {"gpus": gpus}, "generate": {"gpus": 1}})
        draft.assume("the vLLM server has one GPU of its own")
        return
    draft.machines(-(-gpus // 8), min(gpus, 8), source.gpu)
