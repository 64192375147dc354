"""OpenRLHF: arguments of `openrlhf.cli.train_ppo_ray`, `train_sft`, `train_dpo` and `train_rm`.

Names and defaults of their argument parsers in 0.11.2; names without dots are those of 0.9 and
before.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from coloop.errors import ExportRefused
from coloop.interop.draft import Draft
from coloop.interop.reading import File, Source
from coloop.interop.rewards import MATH, defines
from coloop.interop.settings import (
    Carried,
    Decides,
    Given,
    Left,
    Renamed,
    Row,
    Settings,
    Table,
)
from coloop.interop.shell import Word
from coloop.interop.sources import file_source
from coloop.interop.values import plain

KEY: Final = "openrlhf"
NAMES: Final = "openrlhf"
TRAINERS: Final = {
    "train_ppo_ray": "ppo",
    "train_ppo": "ppo",
    "train_sft": "sft",
    "train_dpo": "dpo",
    "train_rm": "rm",
}
ALGORITHM: Final = "nodes.actor.algorithm"
ESTIMATORS: Final = {
    "gae": "openrlhf-ppo",
    "reinforce": "openrlhf-reinforce-pp",
    "reinforce_baseline": "openrlhf-reinforce-pp-baseline",
    "rloo": "openrlhf-rloo",
    "group_norm": "openrlhf-grpo",
    "dr_grpo": "openrlhf-dr_grpo",
}
"""`algo.advantage.estimator` and the preset of ours with OpenRLHF's defaults."""
AGGREGATIONS: Final = {"token-mean": "token_mean", "seq-mean-token-mean": "sequence_mean"}
SCHEDULES: Final = {
    "cosine_with_min_lr": "cosine",
    "cosine": "cosine",
    "constant": "constant",
    "constant_with_warmup": "constant",
    "linear": "linear",
}

SPEED: Final = Left("how the trainer computes, not what: the compiler decides it here")
ENGINE: Final = Left("a detail of the rollout engine, which the compiler or vLLM decides")
LOGS: Final = Left("what is logged and where: runs keep metrics, texts and logs in their folder")
FILES: Final = Left("where checkpoints are and what is in them: `run.storage` and `coloop export`")
DATA: Final = Left("how rows are read: datasets here are read row by row, without workers")
TEMPLATE: Final = Left(
    "prompts as chats take the model's template; a `template` node writes others"
)
OTHER: Final = Left("has no counterpart in a loop")

OLD: Final[Mapping[str, str]] = {
    "actor_learning_rate": "actor.adam.lr",
    "critic_learning_rate": "critic.adam.lr",
    "adam_offload": "ds.adam_offload",
    "advantage_estimator": "algo.advantage.estimator",
    "agent_func_path": "train.agent_func_path",
    "async_train": "train.async_enable",
    "beta": "model.beta",
    "colocate_actor_ref": "train.colocate_actor_ref",
    "colocate_all_models": "train.colocate_all",
    "colocate_critic_reward": "train.colocate_critic_reward",
    "critic_pretrain": "critic.model_name_or_path",
    "dataset": "data.dataset",
    "dataset_split": "data.dataset_split",
    "dual_clip": "actor.dual_clip",
    "dynamic_filtering": "algo.dynamic_filtering_enable",
    "dynamic_filtering_reward_range": "algo.dynamic_filtering_range",
    "entropy_loss_coef": "actor.entropy_coef",
    "eps_clip": "actor.eps_clip",
    "eps_clip_low_high": "actor.eps_clip_low_high",
    "eval_dataset": "eval.dataset",
    "eval_n_samples_per_prompt": "eval.n_samples_per_prompt",
    "eval_split": "eval.split",
    "eval_steps": "eval.steps",
    "eval_temperature": "eval.temperature",
    "freezing_actor_steps": "critic.freezing_steps",
    "gamma": "algo.advantage.gamma",
    "generate_max_len": "rollout.max_new_tokens",
    "init_kl_coef": "algo.kl.init_coef",
    "input_key": "data.input_key",
    "ipo": "model.ipo_enable",
    "kl_estimator": "algo.kl.estimator",
    "kl_horizon": "algo.kl.horizon",
    "kl_target": "algo.kl.target",
    "label_key": "data.label_key",
    "label_smoothing": "model.label_smoothing",
    "lambd": "algo.advantage.lambd",
    "load_in_4bit": "ds.load_in_4bit",
    "lora_alpha": "ds.lora.alpha",
    "lora_dropout": "ds.lora.dropout",
    "lora_rank": "ds.lora.rank",
    "loss": "model.loss_type",
    "margin_loss": "model.margin_loss_enable",
    "max_ckpt_num": "ckpt.max_num",
    "max_epochs": "train.max_epochs",
    "max_len": "data.max_len",
    "max_new_tokens": "rollout.max_new_tokens",
    "micro_train_batch_size": "train.micro_batch_size",
    "n_samples_per_prompt": "rollout.n_samples_per_prompt",
    "nll_loss_coef": "model.nll_loss_coef",
    "no_advantage_std_norm": "algo.advantage.no_std_norm",
    "num_episodes": "train.num_episodes",
    "output_key": "data.output_key",
    "overlong_buffer_len": "reward.overlong_buffer_len",
    "overlong_penalty_factor": "reward.overlong_penalty_factor",
    "packing_samples": "ds.packing_samples",
    "policy_loss_type": "actor.policy_loss_type",
    "prompt_data": "data.prompt_dataset",
    "prompt_split": "data.prompt_split",
    "prompt_key": "data.prompt_key",
    "chosen_key": "data.chosen_key",
    "rejected_key": "data.rejected_key",
    "ref_pretrain": "ref.model_name_or_path",
    "remote_rm_url": "reward.remote_url",
    "reward_clip_range": "reward.clip_range",
    "reward_pretrain": "reward.model_name_or_path",
    "ring_attn_size": "ds.ring_attn_size",
    "rollout_batch_size": "rollout.batch_size",
    "save_steps": "ckpt.save_steps",
    "seed": "train.seed",
    "target_modules": "ds.lora.target_modules",
    "temperature": "rollout.temperature",
    "top_p": "rollout.top_p",
    "train_batch_size": "train.batch_size",
    "use_kl_loss": "algo.kl.use_loss",
    "use_tensorboard": "logger.tensorboard_dir",
    "use_wandb": "logger.wandb.key",
    "value_clip": "critic.value_clip",
    "vllm_gpu_memory_utilization": "vllm.gpu_memory_utilization",
    "vllm_num_engines": "vllm.num_engines",
    "vllm_tensor_parallel_size": "vllm.tensor_parallel_size",
    "wandb_project": "logger.wandb.project",
    "zero_stage": "ds.zero_stage",
    **{
        f"{role}_num_{what}": f"{role}.num_{what}"
        for role in ("actor", "critic", "ref", "reward")
        for what in ("nodes", "gpus_per_node")
    },
}
"""Names of 0.9 and before."""

GROUPS: Final[Table] = {
    "ckpt.*": FILES,
    "logger.*": LOGS,
    "vllm.*": ENGINE,
    "ds.*": SPEED,
    "data.*template*": TEMPLATE,
    "data.*": DATA,
    "*chat_template": TEMPLATE,
    "input_template": TEMPLATE,
    "system_prompt": TEMPLATE,
    "wandb_*": LOGS,
    "vllm_*": ENGINE,
    "enforce_eager": ENGINE,
    "enable_prefix_caching": ENGINE,
    "*ckpt*": FILES,
    "save_*": FILES,
    "*checkpoint*": FILES,
    "logging_steps": LOGS,
    "*.aux_loss_coef": OTHER,
    "*": SPEED,
}
"""What is known by name and not carried, by the beginning of its name."""


def _optimizer(theirs: str, node: str, lr: float) -> dict[str, Row]:
    ours = f"nodes.{node}.training.optimizer"
    dot = f"{theirs}." if theirs else ""
    return {
        f"{dot}optim": Decides(f"{ours}.name", "adam"),
        f"{dot}adam.lr": Carried(f"{ours}.lr", lr),
        f"{dot}adam.betas": Carried(f"{ours}.betas", [0.9, 0.95]),
        f"{dot}adam.eps": Carried(f"{ours}.epsilon", 1.0e-8),
        f"{dot}adam.weight_decay": Carried(f"{ours}.weight_decay", 0.0),
        f"{dot}muon.lr": Decides(f"{ours}.lr", 0.02),
        f"{dot}lr_scheduler": Carried(f"{ours}.schedule", "cosine_with_min_lr", words=SCHEDULES),
        f"{dot}lr_warmup_ratio": Carried(f"{ours}.warmup", 0.03),
        f"{dot}min_lr_ratio": Carried(f"{ours}.min_lr", 0.1, times=f"{ours}.lr"),
        f"{dot}max_norm": Carried(f"nodes.{node}.training.gradient_clip", 1.0),
    }


def _common(node: str, save: int = -1) -> dict[str, Row]:
    """Settings of every trainer; `node` learns."""
    return {
        "train.seed": Carried("run.seed", 42),
        "ckpt.save_steps": Carried("run.checkpoint_every", save, words={-1: None}),
        "ckpt.max_num": Carried("run.keep", 3),
        "logger.wandb.key": Decides("run.report_to"),
        "logger.tensorboard_dir": Decides("run.report_to"),
        "logger.wandb.project": Decides("run.project"),
        "ds.zero_stage": Decides(f"nodes.{node}.training.zero_stage", 2),
        "ds.adam_offload": Decides(f"nodes.{node}.training.offload", False),
        "ds.ring_attn_size": Carried(f"nodes.{node}.training.context_parallel"),
        "ds.tensor_parallel_size": Carried(f"nodes.{node}.training.tensor_parallel"),
        "ds.packing_samples": Carried(f"nodes.{node}.training.packing"),
        "ds.load_in_4bit": Decides(f"nodes.{node}.model.quantization", False),
        "ds.lora.rank": Decides(f"nodes.{node}.model.lora.rank", 0),
        "ds.lora.alpha": Decides(f"nodes.{node}.model.lora.alpha", 16),
        "ds.lora.dropout": Decides(f"nodes.{node}.model.lora.dropout", 0),
        "ds.lora.target_modules": Decides(f"nodes.{node}.model.lora.targets", "all-linear"),
    }


PPO: Final[Table] = {
    **_common("actor"),
    "actor.model_name_or_path": Carried("nodes.actor.model.path"),
    "critic.model_name_or_path": Carried("nodes.critic.model.path"),
    "reward.model_name_or_path": Decides("nodes.reward.model.path"),
    "reward.remote_url": Decides("nodes.reward.source"),
    "train.agent_func_path": Decides("nodes.reward.source"),
    "actor.gradient_checkpointing_enable": Carried(
        "nodes.actor.training.gradient_checkpointing", False
    ),
    "data.prompt_dataset": Decides("nodes.prompts.source"),
    "data.prompt_split": Decides("nodes.prompts.source.split", "train"),
    "data.input_key": Decides("nodes.prompts.columns.prompt", "input"),
    "data.label_key": Decides("nodes.prompts.columns.answer"),
    "data.max_len": Decides("nodes.prompts.tokens", 2048),
    "prompt_max_len": Decides("nodes.prompts.tokens"),
    "rollout.batch_size": Carried("nodes.prompts.rows_per_step", 1024),
    "rollout.n_samples_per_prompt": Carried("nodes.actor.rollout.completions_per_prompt", 1),
    "rollout.max_new_tokens": Decides("nodes.actor.rollout.max_new_tokens"),
    "rollout.temperature": Carried("nodes.actor.rollout.temperature", 1.0),
    "rollout.top_p": Carried("nodes.actor.rollout.top_p", 1.0),
    "rollout.vllm_generate_batch_size": Left(
        "more prompts than are trained on: set `rows_per_step` and a `filter`"
    ),
    "vllm.num_engines": Decides("hardware.pools.generate"),
    "vllm.tensor_parallel_size": Carried("nodes.actor.rollout.tensor_parallel"),
    "vllm.gpu_memory_utilization": Carried("nodes.actor.rollout.gpu_memory_utilization"),
    "train.batch_size": Carried("nodes.actor.training.mini_batch", 128),
    "train.micro_batch_size": Decides("nodes.actor.training.micro_batch", 1),
    "train.dynamic_batch_enable": Decides("nodes.actor.training.micro_batch", False),
    "train.max_epochs": Carried("nodes.actor.training.epochs", 1),
    "train.num_episodes": Carried("schedule.epochs", 1),
    "train.async_enable": Decides("schedule.max_staleness", False),
    "train.async_queue_size": Decides("schedule.max_staleness", 1),
    "train.colocate_all": Decides("hardware.pools", False),
    "train.colocate_actor_ref": Decides("hardware.pools", False),
    "train.colocate_critic_reward": Decides("hardware.pools", False),
    **{
        f"{role}.num_nodes": Decides(f"hardware.pools.{role}", 1)
        for role in ("actor", "critic", "ref", "reward")
    },
    **{
        f"{role}.num_gpus_per_node": Decides(f"hardware.pools.{role}", 8)
        for role in ("actor", "critic", "ref", "reward")
    },
    "actor.eps_clip": Decides(f"{ALGORITHM}.clip_low", 0.2),
    "actor.eps_clip_low_high": Decides(f"{ALGORITHM}.clip_high"),
    "actor.dual_clip": Decides(f"{ALGORITHM}.dual_clip"),
    "actor.entropy_coef": Decides(f"{ALGORITHM}.entropy"),
    "actor.policy_loss_type": Decides(f"{ALGORITHM}.loss", "ppo"),
    "actor.loss_agg_mode": Decides(f"{ALGORITHM}.aggregation", "token-mean"),
    "algo.advantage.estimator": Decides(f"{ALGORITHM}.name", "gae"),
    "algo.advantage.lambd": Decides(f"{ALGORITHM}.gae_lambda", 1),
    "algo.advantage.gamma": Decides(f"{ALGORITHM}.gamma", 1),
    "algo.advantage.no_std_norm": Decides(f"{ALGORITHM}.deviation", False),
    "algo.advantage.is_correction_level": Decides(f"{ALGORITHM}.correction.method", "off"),
    "algo.advantage.is_correction_mode": Decides(f"{ALGORITHM}.correction.method", "mask"),
    "algo.advantage.is_correction_threshold": Decides(f"{ALGORITHM}.correction.max", [0.5, 5.0]),
    "algo.advantage.is_correction_gating": Decides(f"{ALGORITHM}.correction.method", "ratio"),
    "algo.kl.init_coef": Decides(f"{ALGORITHM}.kl.coefficient", 0.01),
    "algo.kl.estimator": Decides(f"{ALGORITHM}.kl.estimator", "k1"),
    "algo.kl.use_loss": Decides(f"{ALGORITHM}.kl.into", False),
    "algo.kl.unbiased_gradient": Decides(f"{ALGORITHM}.kl.by_ratio", False),
    "algo.kl.target": Decides(f"{ALGORITHM}.kl.target"),
    "algo.kl.horizon": Decides(f"{ALGORITHM}.kl.horizon", 10_000),
    "algo.dynamic_filtering_enable": Decides("nodes.informative", False),
    "algo.dynamic_filtering_range": Decides("nodes.informative.keep", [0, 1]),
    "reward.clip_range": Decides(f"{ALGORITHM}.reward_clip", [-10, 10]),
    "reward.overlong_buffer_len": Decides("nodes.overlong.source.buffer"),
    "reward.overlong_penalty_factor": Decides("nodes.overlong.source.factor", 1),
    "reward.normalize_enable": Left("rewards are not normalized by a running mean here"),
    "normalize_reward": Left("rewards are not normalized by a running mean here"),
    "critic.value_clip": Carried("nodes.critic.algorithm.clip", 0.5),
    "critic.freezing_steps": Decides("schedule.learn.actor.after", -1),
    "eval.dataset": Decides("nodes.held_out.source"),
    "eval.split": Decides("nodes.held_out.source.split", "train"),
    "eval.steps": Decides("nodes.probe.every", -1),
    "eval.temperature": Decides("nodes.probe.temperature", 0.6),
    "eval.n_samples_per_prompt": Decides("nodes.probe.samples", 4),
    **_optimizer("actor", "actor", 1.0e-6),
    **_optimizer("critic", "critic", 9.0e-6),
    "rollout.*": SPEED,
    **{old: Renamed(new) for old, new in OLD.items()},
    "pretrain": Renamed("actor.model_name_or_path"),
    "l2": Renamed("actor.adam.weight_decay"),
    "adam_betas": Renamed("actor.adam.betas"),
    "max_norm": Renamed("actor.max_norm"),
    "lr_scheduler": Renamed("actor.lr_scheduler"),
    "lr_warmup_ratio": Renamed("actor.lr_warmup_ratio"),
    "min_lr_ratio": Renamed("actor.min_lr_ratio"),
    "gradient_checkpointing": Renamed("actor.gradient_checkpointing_enable"),
    **GROUPS,
}


def _offline(node: str, lr: float, epochs: int, rows: str, longest: int) -> dict[str, Row]:
    """Settings of the trainers without rollouts."""
    return {
        **_common(node),
        "model.model_name_or_path": Carried(f"nodes.{node}.model.path"),
        "model.gradient_checkpointing_enable": Carried(
            f"nodes.{node}.training.gradient_checkpointing", False
        ),
        "data.dataset": Decides(f"nodes.{rows}.source"),
        "data.dataset_split": Decides(f"nodes.{rows}.source.split", "train"),
        "data.max_len": Decides(f"nodes.{rows}.tokens", longest),
        "train.batch_size": Carried(f"nodes.{rows}.rows_per_step", 128),
        "train.micro_batch_size": Carried(f"nodes.{node}.training.micro_batch"),
        "train.max_epochs": Carried("schedule.epochs", epochs),
        "eval.dataset": Decides("nodes.held_out.source"),
        "eval.split": Decides("nodes.held_out.source.split", "train"),
        "eval.steps": Decides("nodes.fit.every", -1),
        **_optimizer("", node, lr),
        **{old: Renamed(new) for old, new in OLD.items()},
        "pretrain": Renamed("model.model_name_or_path"),
        "learning_rate": Renamed("adam.lr"),
        "l2": Renamed("adam.weight_decay"),
        "adam_betas": Renamed("adam.betas"),
        "gradient_checkpointing": Renamed("model.gradient_checkpointing_enable"),
    }


SFT: Final[Table] = {
    **_offline("actor", 5.0e-6, 2, "demonstrations", 2048),
    "data.input_key": Decides("nodes.demonstrations.columns.prompt", "input"),
    "data.output_key": Decides("nodes.demonstrations.columns.target"),
    "model.pretrain_mode_enable": Left("learning whole texts: put the text into `target`"),
    "pretrain_mode": Left("learning whole texts: put the text into `target`"),
    **GROUPS,
}
_PAIRS: Final[Table] = {
    "data.prompt_key": Decides("nodes.preferences.columns.prompt"),
    "data.chosen_key": Decides("nodes.preferences.columns.chosen", "chosen"),
    "data.rejected_key": Decides("nodes.preferences.columns.rejected", "rejected"),
}
DPO: Final[Table] = {
    **_offline("actor", 1.0e-5, 1, "preferences", 512),
    **_PAIRS,
    "model.beta": Carried(f"{ALGORITHM}.beta", 0.1),
    "model.label_smoothing": Carried(f"{ALGORITHM}.label_smoothing", 0.0),
    "model.ipo_enable": Decides(f"{ALGORITHM}.name", False),
    "model.nll_loss_coef": Decides(f"{ALGORITHM}.sft", 0),
    "ref.model_name_or_path": Decides("nodes.reference.model"),
    **GROUPS,
}
RM: Final[Table] = {
    **_offline("rm", 9.0e-6, 1, "preferences", 512),
    **_PAIRS,
    "model.margin_loss_enable": Decides("nodes.rm.algorithm.margin", False),
    "model.loss_type": Decides("nodes.rm.algorithm", "sigmoid"),
    **GROUPS,
}
TABLES: Final[Mapping[str, Table]] = {"ppo": PPO, "sft": SFT, "dpo": DPO, "rm": RM}


def table_of(trainer: str) -> Table:
    return TABLES[trainer]


def entry_of(word: str, rest: Sequence[Word]) -> tuple[str, int] | None:
    """The trainer that a word of a command starts, and how many words after it belong to that."""
    if "openrlhf" in word or word.endswith(".py"):
        stem = word.removesuffix(".py").replace("/", ".").rpartition(".")[2]
        if stem in TRAINERS:
            return f"openrlhf.cli.{stem}", 0
    return None


def is_command(words: Sequence[Word]) -> bool:
    """Whether bare arguments are OpenRLHF's."""
    names = {word.text[2:].partition("=")[0] for word in words if word.text.startswith("--")}
    return len(names & (OLD.keys() | PPO.keys() | DPO.keys())) >= 3 and bool(
        names & {"pretrain", "actor.model_name_or_path", "model.model_name_or_path"}
    )


def program_of(words: Sequence[Word]) -> str:
    """The trainer of bare arguments."""
    names = {word.text[2:].partition("=")[0] for word in words if word.text.startswith("--")}
    if names & {"prompt_data", "data.prompt_dataset", "rollout_batch_size", "rollout.batch_size"}:
        return "openrlhf.cli.train_ppo_ray"
    if names & {"beta", "model.beta", "ref_pretrain", "ref.model_name_or_path"}:
        return "openrlhf.cli.train_dpo"
    if names & {"chosen_key", "data.chosen_key"}:
        return "openrlhf.cli.train_rm"
    return "openrlhf.cli.train_sft"


def read(file: File) -> tuple[str, list[Given]]:
    """Trainer and settings of a command."""
    trainer = TRAINERS[file.program.rpartition(".")[2]]
    return trainer, list(options(file.words or ()))


def options(words: Sequence[Word]) -> Iterator[Given]:
    """`--name value`, `--name=value`, `--name a b`, and `--name` alone for true."""
    name, line, values = "", 0, list[Any]()

    def done() -> Iterator[Given]:
        if name:
            value = True if not values else values[0] if len(values) == 1 else list(values)
            yield Given(name=name, value=value, line=line)

    for word in words:
        if word.text.startswith("--"):
            yield from done()
            name, equals, value = word.text[2:].partition("=")
            line, values = word.line, [plain(value)] if equals else []
        elif name:
            values.append(plain(word.text))
    yield from done()


def shape(s: Settings, draft: Draft, source: Source, trainer: str, file: File) -> None:
    """The nodes of a loop, and what several settings decide together."""
    match trainer:
        case "ppo":
            _ppo(s, draft, source)
        case "sft":
            _sft(s, draft)
        case "dpo":
            _dpo(s, draft)
        case _:
            _rm(s, draft)
    node = "rm" if trainer == "rm" else "actor"
    _training(s, draft, node)
    _trackers(s, draft)
    if trainer != "ppo":
        gpus = source.gpus or int(plain(file.launcher.get("num_gpus", "8")))
        if source.gpus is None and "num_gpus" not in file.launcher:
            draft.assume("one machine with 8 GPUs: the launcher uses all that it finds")
        draft.machines(1, gpus, source.gpu)


def _ppo(s: Settings, draft: Draft, source: Source) -> None:
    estimator = s["algo.advantage.estimator"]
    draft.node("prompts", kind="dataset")
    draft.node("actor", kind="actor", model={"type": "pretrained"})
    if s["actor.model_name_or_path"] is None:
        draft.put("nodes.actor.model.path", "Qwen/Qwen2.5-7B")
        draft.assume("no model is named (`--actor.model_name_or_path`): Qwen/Qwen2.5-7B assumed")
    columns = {"prompt": s["data.input_key"]}
    if s["data.label_key"]:
        columns["answer"] = s["data.label_key"]
    new = s.number("rollout.max_new_tokens")
    longest = s.number("data.max_len")
    of_prompt = s["prompt_max_len"] or max(longest - (new or longest // 2), 1)
    draft.put("nodes.actor.rollout.max_new_tokens", new or max(longest - of_prompt, 1))
    draft.node(
        "prompts",
        source=_rows(s, "data.prompt_dataset", s["data.prompt_split"]),
        columns=columns,
        tokens={"mean": max(of_prompt // 2, 1), "max": of_prompt},
    )
    draft.assume(f"prompts have {of_prompt // 2} tokens on average, half of the longest")
    rewards = _rewards(s, draft, source)
    if estimator == "gae":
        critic = s["critic.model_name_or_path"]
        of_reward = draft.get("nodes.reward.model.path")
        model = (
            {"type": "pretrained", "path": critic or of_reward}
            if critic or of_reward
            else {"type": "copy", "of": "actor"}
        )
        draft.node("critic", kind="critic", model=model, algorithm={"name": "value"})
        draft.put("nodes.critic.training.mini_batch", s.number("train.batch_size"))
        draft.put("nodes.critic.training.epochs", s.number("train.max_epochs"))
        if (checkpointing := s["actor.gradient_checkpointing_enable"]) is not None:
            draft.put("nodes.critic.training.gradient_checkpointing", bool(checkpointing))
    _algorithm(s, draft)
    if draft.get("nodes.actor.algorithm.kl") is not None or s.number("algo.kl.init_coef"):
        draft.node("reference", kind="reference", model={"type": "snapshot", "of": "actor"})
    _filter(s, draft)
    _evaluation(s, draft)
    _placement(s, draft, source)
    if (steps := s.number("critic.freezing_steps")) and steps > 0:
        draft.put("schedule.learn", {"actor": {"after": steps}})
    draft.connect(rewards)


def _rows(s: Settings, name: str, split: Any) -> dict[str, Any]:
    """A dataset source for `path`, `path@folder` or several joined by commas."""
    value = s[name]
    if value is None:
        return {"type": "file", "path": "data/prompts.jsonl"}
    first, *others = str(value).split(",")
    if others:
        s.miss(name, f"{len(others) + 1} datasets: the first is used; add a node for each")
    path, _, part = first.partition("@")
    found = file_source(path)
    if found["type"] == "hub":
        found["split"] = str(split or "train")
        if part:
            found["name"] = part
    return found


def _rewards(s: Settings, draft: Draft, source: Source) -> dict[str, float]:
    """The scorers with their weights."""
    url, path = s["reward.remote_url"], s["reward.model_name_or_path"]
    agent = s["train.agent_func_path"]
    rewards: dict[str, float] = {}
    if agent:
        s.miss(
            "train.agent_func_path",
            "an agent is a Python class of OpenRLHF: draw its environment as a `tool` node of the "
            "type `environment`; `math_equal` scores the answers until then",
        )
        draft.node("reward", kind="reward", source=dict(MATH))
        rewards["reward"] = 1.0
    elif url and not str(url).startswith("http"):
        code = _function(source, str(url))
        if code is None:
            s.miss("reward.remote_url", source.missing(str(url)))
            draft.node("reward", kind="reward", source={"type": "python", "file": str(url)})
        else:
            draft.node("reward", kind="reward", source={"type": "python", "code": code})
        rewards["reward"] = 1.0
    elif url:
        first = str(url).partition(",")[0]
        draft.node("reward", kind="reward", source={"type": "remote", "url": first})
        draft.assume(
            "the reward service is asked as services of coloop are: with `prompts`, `completions` "
            "and the columns of the rows"
        )
        rewards["reward"] = 1.0
    elif path:
        for number, one_path in enumerate(str(path).split(",")):
            name = "reward" if number == 0 else f"reward_{number + 1}"
            model = {"type": "pretrained", "path": one_path}
            draft.node(name, kind="reward", source={"type": "model"}, model=model)
            rewards[name] = 1.0
    else:
        draft.node("reward", kind="reward", source=dict(MATH))
        draft.assume("no reward is named: `math_equal` against the column `answer` assumed")
        rewards["reward"] = 1.0
    buffer = s["reward.overlong_buffer_len"]
    if buffer:
        draft.node(
            "overlong",
            kind="reward",
            source={
                "type": "builtin",
                "name": "overlong",
                "max": draft.get("nodes.actor.rollout.max_new_tokens"),
                "buffer": int(buffer),
                "factor": s.number("reward.overlong_penalty_factor"),
            },
        )
        rewards["overlong"] = 1.0
    return rewards


def _function(source: Source, path: str) -> str | None:
    """A reward of ours around `reward_func(queries, prompts, labels)` of a file."""
    text = source.read(path)
    if text is None or not defines(text, "reward_func"):
        return None
    return f"""{text.rstrip()}


def reward(prompts, completions, answer=None, **columns):
    queries = [f"{{prompt}}{{text}}" for prompt, text in zip(prompts, completions)]
    found = reward_func(queries, prompts, answer or [None] * len(prompts))
    scores = found["rewards"] if isinstance(found, dict) else found
    return [float(score) for score in scores]
"""


def _algorithm(s: Settings, draft: Draft) -> None:
    estimator = s["algo.advantage.estimator"]
    name = ESTIMATORS.get(estimator)
    if name is None:
        s.miss(
            "algo.advantage.estimator",
            f"`{estimator}` has no counterpart; `reinforce` is in its place",
        )
        name = "openrlhf-reinforce-pp"
    fields: dict[str, Any] = {}
    if s["actor.policy_loss_type"] == "gspo":
        if name == "openrlhf-grpo":
            name = "openrlhf-gspo"
        else:
            fields |= {"loss": "sequence_clipped", "aggregation": "sequence_mean", "reduce": "mean"}
    both = s["actor.eps_clip_low_high"]
    low, high = both if isinstance(both, list) and len(both) == 2 else (s["actor.eps_clip"],) * 2
    fields |= {"clip_low": low, "clip_high": high, "dual_clip": s["actor.dual_clip"]}
    mode = AGGREGATIONS.get(s["actor.loss_agg_mode"])
    if mode == "sequence_mean":
        fields["aggregation"] = mode
    if entropy := s.number("actor.entropy_coef"):
        fields["entropy"] = entropy
    fields["gamma"] = float(s.number("algo.advantage.gamma"))
    if estimator == "gae":
        fields["gae_lambda"] = float(s.number("algo.advantage.lambd"))
    if s["algo.advantage.no_std_norm"]:
        if estimator in ("reinforce", "reinforce_baseline", "gae"):
            fields["whiten"] = False
        else:
            fields["deviation"] = "none"
    bounds = s["reward.clip_range"]
    if isinstance(bounds, list) and len(bounds) == 2 and bounds[0] == -bounds[1]:
        fields["reward_clip"] = float(bounds[1])
    _correction(s, fields)
    fields["kl"] = _kl(s)
    draft.algorithm("actor", name, fields)


def _correction(s: Settings, fields: dict[str, Any]) -> None:
    level = s["algo.advantage.is_correction_level"]
    if level == "off":
        return
    bounds = s["algo.advantage.is_correction_threshold"]
    low, high = bounds if isinstance(bounds, list) and len(bounds) == 2 else (0.0, bounds)
    if s["algo.advantage.is_correction_gating"] != "ratio" or level != "token":
        s.miss("algo.advantage.is_correction_level", "only ratios of tokens are corrected here")
        return
    method = "token_tis" if s["algo.advantage.is_correction_mode"] == "clip" else "icepop"
    fields["correction"] = {"method": method, "min": low, "max": high}


def _kl(s: Settings) -> dict[str, Any] | None:
    coefficient = s.number("algo.kl.init_coef")
    if not coefficient:
        return None
    section: dict[str, Any] = {
        "coefficient": coefficient,
        "estimator": s["algo.kl.estimator"],
        "into": "loss" if s["algo.kl.use_loss"] else "reward",
    }
    if s["algo.kl.use_loss"] and s["algo.kl.unbiased_gradient"]:
        section["by_ratio"] = True
    if s["algo.kl.target"] is not None:
        section |= {"target": s.number("algo.kl.target"), "horizon": s.number("algo.kl.horizon")}
    return section


def _filter(s: Settings, draft: Draft) -> None:
    if not s["algo.dynamic_filtering_enable"]:
        return
    bounds = s["algo.dynamic_filtering_range"]
    low, high = bounds if isinstance(bounds, list) and len(bounds) == 2 else (0, 1)
    rule = {"rule": "accuracy_band", "min": float(low), "max": float(high), "open": True}
    draft.node(
        "informative",
        kind="filter",
        keep=[rule],
        fill={"groups": s.number("rollout.batch_size"), "max_rounds": 10},
    )
    draft.assume("groups are drawn again without limit in OpenRLHF; at most 10 rounds assumed")


def _evaluation(s: Settings, draft: Draft) -> None:
    every, samples = s.number("eval.steps"), s.number("eval.n_samples_per_prompt")
    if not s["eval.dataset"] or every is None or every <= 0:
        s.leave("eval.dataset", "`--eval.steps` is not set, so nothing is evaluated")
        return
    draft.node(
        "held_out",
        kind="dataset",
        source=_rows(s, "eval.dataset", s["eval.split"]),
        columns=dict(draft.get("nodes.prompts.columns")),
    )
    metrics = ["accuracy", f"pass@{samples}"] if samples > 1 else ["accuracy"]
    draft.node(
        "probe",
        kind="evaluate",
        instead_of="prompts",
        every=every,
        samples=samples,
        temperature=s.number("eval.temperature"),
        metrics=metrics,
    )


def _placement(s: Settings, draft: Draft, source: Source) -> None:
    """Pools: everything on the same GPUs, or models apart as their options say."""
    own = {
        role: s.number(f"{role}.num_nodes") * s.number(f"{role}.num_gpus_per_node")
        for role in ("actor", "critic", "ref", "reward")
    }
    engines = s["vllm.num_engines"] or 0
    generate = engines * (s.number("vllm.tensor_parallel_size") or 1)
    is_async = bool(s["train.async_enable"])
    train = own["actor"]
    if s["train.colocate_all"] and not is_async:
        _machines(draft, train, source)
        return
    pools = {"train": train}
    placed = {"actor": "train"}
    for role, node in (("ref", "reference"), ("critic", "critic"), ("reward", "reward")):
        if node not in draft.nodes or draft.get(f"nodes.{node}.model") is None:
            continue
        together = s["train.colocate_all"] or (role == "ref" and s["train.colocate_actor_ref"])
        if together:
            placed[node] = "train"
        elif role == "reward" and s["train.colocate_critic_reward"] and "critic" in pools:
            placed[node] = "critic"
        else:
            pools[node], placed[node] = own[role], node
    if generate:
        pools["generate"] = generate
        draft.put("nodes.actor.rollout.pool", "generate")
    for node, pool in placed.items():
        draft.put(f"nodes.{node}.pool", pool)
    for node in draft.nodes:
        if node.startswith("reward_") and draft.get(f"nodes.{node}.model") is not None:
            draft.put(f"nodes.{node}.pool", placed.get("reward", "train"))
    _machines(draft, sum(pools.values()), source)
    draft.put("hardware.pools", {name: {"gpus": gpus} for name, gpus in pools.items()})
    if is_async:
        draft.put("schedule.max_staleness", s.number("train.async_queue_size"))


def _machines(draft: Draft, gpus: int, source: Source) -> None:
    nodes = -(-gpus // 8)
    draft.machines(nodes, gpus if nodes == 1 else 8, source.gpu)


def _sft(s: Settings, draft: Draft) -> None:
    draft.mode = "offline"
    columns = {"prompt": s["data.input_key"]}
    if s["data.output_key"]:
        columns["target"] = s["data.output_key"]
    draft.node("demonstrations", kind="dataset", source=_data(s), columns=columns)
    _lengths(s, draft, "demonstrations")
    _actor(draft, s)
    draft.put("nodes.actor.algorithm", {"name": "sft"})
    _fit(s, draft, columns, "actor.demonstrations", ["loss"])
    draft.connect_demonstrations()


def _dpo(s: Settings, draft: Draft) -> None:
    draft.mode = "offline"
    _pairs(s, draft)
    _actor(draft, s)
    name = "openrlhf-ipo" if s["model.ipo_enable"] else "openrlhf-dpo"
    draft.put("nodes.actor.algorithm", {"name": name})
    if s.number("model.nll_loss_coef"):
        share = s.number("model.nll_loss_coef")
        draft.put("nodes.actor.algorithm.sft", round(share / (1 + share), 6))
        draft.assume(
            f"`nll_loss_coef` {share} beside the loss is the share {share / (1 + share):.3g} of "
            "both here: the learning rate counts for their mean"
        )
    own = s["ref.model_name_or_path"]
    is_same = own is None or own == s["model.model_name_or_path"]
    model = {"type": "snapshot", "of": "actor"} if is_same else {"type": "pretrained", "path": own}
    draft.node("reference", kind="reference", model=model)
    _fit(s, draft, draft.get("nodes.preferences.columns"), "actor.pairs", ["loss", "pair_accuracy"])
    draft.connect_pairs("actor")


def _rm(s: Settings, draft: Draft) -> None:
    draft.mode = "reward_modeling"
    _pairs(s, draft)
    algorithm: dict[str, Any] = {"name": "bradley_terry"}
    if s["model.margin_loss_enable"]:
        algorithm["margin"] = "margin"
    draft.node(
        "rm",
        kind="reward",
        source={"type": "model"},
        model={"type": "pretrained"},
        algorithm=algorithm,
    )
    _model(draft, s, "rm")
    _fit(s, draft, draft.get("nodes.preferences.columns"), "rm.pairs", ["loss", "pair_accuracy"])
    draft.connect_pairs("rm")


def _actor(draft: Draft, s: Settings) -> None:
    draft.node("actor", kind="actor", model={"type": "pretrained"})
    _model(draft, s, "actor")


def _model(draft: Draft, s: Settings, node: str) -> None:
    if s["model.model_name_or_path"] is None:
        draft.put(f"nodes.{node}.model.path", "Qwen/Qwen2.5-7B")
        draft.assume("no model is named (`--model.model_name_or_path`): Qwen/Qwen2.5-7B assumed")


def _data(s: Settings) -> dict[str, Any]:
    return _rows(s, "data.dataset", s["data.dataset_split"])


def _pairs(s: Settings, draft: Draft) -> None:
    columns = {
        name: s[f"data.{name}_key"]
        for name in ("prompt", "chosen", "rejected")
        if s[f"data.{name}_key"] not in (None, name)
    }
    draft.node("preferences", kind="dataset", source=_data(s), columns=columns)
    _lengths(s, draft, "preferences")


def _lengths(s: Settings, draft: Draft, node: str) -> None:
    longest = s.number("data.max_len")
    draft.put(f"nodes.{node}.tokens", {"mean": max(longest // 2, 1), "max": longest})
    draft.assume(f"rows have {longest // 2} tokens on average, half of `data.max_len`")


def _fit(
    s: Settings, draft: Draft, columns: Mapping[str, Any], port: str, metrics: list[str]
) -> None:
    every = s.number("eval.steps")
    if not s["eval.dataset"] or every is None or every <= 0:
        s.leave("eval.dataset", "`--eval.steps` is not set, so nothing is evaluated")
        return
    source = _rows(s, "eval.dataset", s["eval.split"])
    draft.node("held_out", kind="dataset", source=source, columns=dict(columns))
    draft.node("fit", kind="evaluate", of=[port], every=every, metrics=metrics)


def _training(s: Settings, draft: Draft, node: str) -> None:
    at = f"nodes.{node}"
    draft.put(f"{at}.training.backend", "deepspeed")
    if s.is_given("ds.zero_stage"):
        draft.put(f"{at}.training.zero_stage", s.number("ds.zero_stage"))
    if s["ds.adam_offload"]:
        draft.put(f"{at}.training.offload", "optimizer")
    if s["ds.load_in_4bit"]:
        draft.put(f"{at}.model.quantization", "nf4")
    if rank := s.number("ds.lora.rank"):
        lora: dict[str, Any] = {"rank": rank, "alpha": s.number("ds.lora.alpha")}
        if s["ds.lora.dropout"]:
            lora["dropout"] = s.number("ds.lora.dropout")
        targets = s["ds.lora.target_modules"]
        if isinstance(targets, list):
            lora["targets"] = targets
        draft.put(f"{at}.model.lora", lora)
    if node == "actor" and "critic" in draft.nodes:
        draft.put("nodes.critic.training.backend", "deepspeed")
    micro = s["train.micro_batch_size"]
    is_ppo = "actor.eps_clip" in s.table
    if is_ppo and s.is_given("train.micro_batch_size") and not s["train.dynamic_batch_enable"]:
        draft.put(f"{at}.training.micro_batch", micro)
    prefixes = ("actor", "critic") if is_ppo else ("",)
    for prefix in prefixes:
        dot = f"{prefix}." if prefix else ""
        target = prefix or node
        if s[f"{dot}optim"] == "muon" and target in draft.nodes:
            ours = f"nodes.{target}.training.optimizer"
            draft.put(f"{ours}.name", "muon")
            draft.put(f"{ours}.adamw", {"lr": s.number(f"{dot}adam.lr")})
            draft.put(f"{ours}.lr", s.number(f"{dot}muon.lr"))


def _trackers(s: Settings, draft: Draft) -> None:
    names = {"logger.wandb.key": "wandb", "logger.tensorboard_dir": "tensorboard"}
    report_to = [name for setting, name in names.items() if s[setting]]
    if report_to:
        draft.put("run.report_to", report_to)
        if s["logger.wandb.project"]:
            draft.put("run.project", str(s["logger.wandb.project"]))


_ESTIMATORS_OF: Final = {
    "gae": "gae",
    "discounted_return": "reinforce",
    "leave_one_out": "rloo",
    "group_mean_std": "group_norm",
    "group_mean": "dr_grpo",
}


def unshape(parts: Any) -> tuple[Table, dict[str, Any]]:
    """The settings of `train_ppo_ray` that are no single value of a loop."""
    if parts.port != "rewards" or parts.learner != "actor":
        raise ExportRefused(f"`{parts.port}`: only loops that learn from rewards are written here")
    full = parts.algorithm
    estimator = _ESTIMATORS_OF.get(full.advantage)
    if estimator is None:
        raise ExportRefused(
            f"nodes.actor.algorithm: OpenRLHF has no estimator for `{full.advantage}`"
        )
    if full.advantage == "group_mean" and full.whiten:
        estimator = "reinforce_baseline"
    out: dict[str, Any] = {"algo.advantage.estimator": estimator}
    if full.advantage == "gae" and full.gae_lambda != 1.0:
        out["algo.advantage.lambd"] = full.gae_lambda
    if full.gamma != 1.0:
        out["algo.advantage.gamma"] = full.gamma
    if estimator in ("gae", "reinforce", "reinforce_baseline"):
        out |= {} if full.whiten else {"algo.advantage.no_std_norm": True}
    elif estimator == "group_norm" and full.deviation == "none":
        out["algo.advantage.no_std_norm"] = True
    if full.loss == "sequence_clipped":
        out["actor.policy_loss_type"] = "gspo"
    elif full.aggregation == "sequence_mean":
        out["actor.loss_agg_mode"] = "seq-mean-token-mean"
    if (full.clip_low, full.clip_high) != (0.2, 0.2) and None not in (
        full.clip_low,
        full.clip_high,
    ):
        out["actor.eps_clip_low_high"] = [full.clip_low, full.clip_high]
    if full.dual_clip is not None:
        out["actor.dual_clip"] = full.dual_clip
    if full.entropy:
        out["actor.entropy_coef"] = full.entropy
    if full.reward_clip not in (None, 10.0):
        out["reward.clip_range"] = [-full.reward_clip, full.reward_clip]
    if full.correction.method in ("token_tis", "icepop"):
        is_clip = full.correction.method == "token_tis"
        out |= {
            "algo.advantage.is_correction_level": "token",
            "algo.advantage.is_correction_mode": "clip" if is_clip else "mask",
            "algo.advantage.is_correction_threshold": [
                full.correction.min or 0.0,
                full.correction.max,
            ],
        }
    return PPO, out | _kl_out(full) | _rows_out(parts) | _training_out(parts)


def _kl_out(full: Any) -> dict[str, Any]:
    if full.kl is None:
        return {"algo.kl.init_coef": 0}
    out: dict[str, Any] = {
        "algo.kl.init_coef": full.kl.coefficient,
        "algo.kl.estimator": full.kl.estimator,
    }
    if full.kl.into == "loss":
        out["algo.kl.use_loss"] = True
        if full.kl.by_ratio:
            out["algo.kl.unbiased_gradient"] = True
    if full.kl.target is not None:
        out |= {"algo.kl.target": full.kl.target, "algo.kl.horizon": full.kl.horizon}
    return out


def _rows_out(parts: Any) -> dict[str, Any]:
    out: dict[str, Any] = {}
    if (path := parts.dataset("prompts")) is not None:
        out["data.prompt_dataset"] = path
    columns = parts.draft.get("nodes.prompts.columns") or {}
    out["data.input_key"] = columns.get("prompt", "prompt")
    if columns.get("answer"):
        out["data.label_key"] = columns["answer"]
    split = parts.draft.get("nodes.prompts.source.split")
    if split not in (None, "train"):
        out["data.prompt_split"] = split
    new = parts.get("nodes.actor.rollout.max_new_tokens")
    out["rollout.max_new_tokens"] = new
    longest = parts.get("nodes.prompts.tokens.max")
    out["data.max_len"] = new + (longest or new)
    source = parts.draft.get("nodes.reward.source") or {}
    if source.get("type") == "model":
        models = [
            parts.get(f"nodes.{role}.model.path") for role in parts.rewards if role != "overlong"
        ]
        out["reward.model_name_or_path"] = ",".join(str(model) for model in models)
    elif source.get("type") == "remote":
        out["reward.remote_url"] = source["url"]
    elif source.get("file"):
        out["reward.remote_url"] = source["file"]
    if "overlong" in parts.roles:
        out["reward.overlong_buffer_len"] = parts.get("nodes.overlong.source.buffer")
        factor = (parts.draft.get("nodes.overlong.source") or {}).get("factor", 1.0)
        out["reward.overlong_penalty_factor"] = factor
    if "informative" in parts.roles:
        out["algo.dynamic_filtering_enable"] = True
    if "probe" in parts.roles:
        if (path := parts.dataset("held_out")) is not None:
            out["eval.dataset"] = path
        out |= {
            "eval.steps": parts.get("nodes.probe.every"),
            "eval.n_samples_per_prompt": parts.get("nodes.probe.samples") or 1,
            "eval.temperature": parts.get("nodes.probe.temperature"),
        }
    return out


def _training_out(parts: Any) -> dict[str, Any]:
    nodes, gpus = parts.gpus
    out: dict[str, Any] = {}
    pools = parts.get("hardware.pools") or {}
    if pools:
        counts = {name: pool["gpus"] for name, pool in pools.items()}
        train = counts.get("train", nodes * gpus)
        out |= _machines_out("actor", train)
        if "generate" in counts:
            each = parts.get("nodes.actor.rollout.tensor_parallel") or 1
            out["vllm.num_engines"] = max(counts["generate"] // each, 1)
        for role, node in (("ref", "reference"), ("critic", "critic"), ("reward", "reward")):
            pool = parts.draft.get(f"nodes.{node}.pool")
            if node in parts.roles and pool in counts and pool != "train":
                out |= _machines_out(role, counts[pool])
        if parts.draft.get("nodes.reference.pool") == "train":
            out["train.colocate_actor_ref"] = True
        if parts.draft.get("nodes.reward.pool") == "critic":
            out["train.colocate_critic_reward"] = True
            out |= _machines_out("reward", counts["critic"])
        if staleness := parts.spec.schedule.max_staleness:
            out |= {"train.async_enable": True, "train.async_queue_size": int(staleness)}
    else:
        out |= _machines_out("actor", nodes * gpus)
        out["train.colocate_all"] = True
    if (micro := parts.get("nodes.actor.training.micro_batch")) is not None:
        out["train.micro_batch_size"] = micro
    if (stage := parts.get("nodes.actor.training.zero_stage")) is not None:
        out["ds.zero_stage"] = stage
    if parts.get("nodes.actor.training.offload") == "optimizer":
        out["ds.adam_offload"] = True
    lora = parts.draft.get("nodes.actor.model.lora")
    if lora:
        out |= {"ds.lora.rank": lora.get("rank", 16), "ds.lora.alpha": int(lora.get("alpha", 32))}
        if lora.get("dropout"):
            out["ds.lora.dropout"] = lora["dropout"]
        if lora.get("targets"):
            out["ds.lora.target_modules"] = lora["targets"]
    if parts.get("nodes.actor.model.quantization") == "nf4":
        out["ds.load_in_4bit"] = True
    rule = (parts.get("schedule.learn") or {}).get("actor") or {}
    if rule.get("after"):
        out["critic.freezing_steps"] = rule["after"]
    if "tensorboard" in parts.spec.run.report_to:
        out["logger.tensorboard_dir"] = "tensorboard"
    if "wandb" in parts.spec.run.report_to:
        out["logger.wandb.key"] = "KEY"
    if parts.spec.run.project and parts.spec.run.report_to:
        out["logger.wandb.project"] = parts.spec.run.project
    return out


def _machines_out(role: str, gpus: int) -> dict[str, int]:
    nodes = -(-gpus // 8)
    return {f"{role}.num_nodes": nodes, f"{role}.num_gpus_per_node": gpus // nodes}


def write(settings: Mapping[str, Any], parts: Any) -> tuple[str, str]:
    """A shell script with the command."""
    lines = []
    for name, value in settings.items():
        if value is None or value is False:
            continue
        values = [] if value is True else value if isinstance(value, list) else [value]
        lines.append(" ".join([f"    --{name}", *(shlex.quote(str(item)) for item in values)]))
    head = "#!/bin/sh\npython3 -m openrlhf.cli.train_ppo_ray \\\n"
    return f"{parts.spec.name}.sh", head + " \\\n".join(lines) + "\n"
