"""verl: `python -m verl.trainer.main_ppo` with Hydra overrides, or a YAML file of it.

Names and defaults of `verl/trainer/config/_generated_ppo_trainer.yaml`, which of two settings
counts of `trainer/ppo/core_algos.py` and `workers/config/actor.py`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from coloop.errors import ExportRefused
from coloop.interop.draft import Draft
from coloop.interop.reading import File, Source
from coloop.interop.rewards import MATH, foreign_reward
from coloop.interop.settings import (
    Carried,
    Decides,
    Given,
    Left,
    Renamed,
    Settings,
    Table,
)
from coloop.interop.shell import Word
from coloop.interop.sources import file_source
from coloop.interop.values import hydra

KEY: Final = "verl"
"""Prefix of its presets among our algorithms."""
NAMES: Final = "verl"
"""File of `names` with every setting that it has, or had."""
ENTRIES: Final = ("verl.trainer.main_ppo", "verl.trainer.main_ppo_sync", "verl/trainer/main_ppo.py")
ACTOR: Final = "actor_rollout_ref.actor"
REF: Final = "actor_rollout_ref.ref"
ROLLOUT: Final = "actor_rollout_ref.rollout"
MODEL: Final = "actor_rollout_ref.model"
GROUP: Final = "nodes.actor.rollout.completions_per_prompt"
ALGORITHM: Final = "nodes.actor.algorithm"

SPEED: Final = Left("how the trainer computes, not what: the compiler decides it here")
PACKED: Final = Left("the compiler decides how many rows are computed at once and packs them")
ENGINE: Final = Left("a detail of the rollout engine, which the compiler or vLLM decides")
LOGS: Final = Left("what is logged and where: runs keep metrics, texts and logs in their folder")
FILES: Final = Left("paths of checkpoints: `run.storage` says where a run keeps them")
DATA: Final = Left("how rows are read: datasets here are read row by row, without workers")
MULTIMODAL: Final = Left(
    "images, video and audio: set `rollout.images` by hand where rows have them"
)
TOOLS: Final = Left("tools and agents are Python classes of verl: draw them as `tool` nodes")
MEGATRON: Final = Left(
    "details of Megatron beside its degrees: the backend `megatron` is only planned"
)
PROFILER: Final = Left("profiling: a run here records the time of each stage")
OTHER: Final = Left("has no counterpart in a loop")

STRATEGIES: Final = {
    "fsdp2": "fsdp2",
    "fsdp": "fsdp2",
    "megatron": "megatron",
    "torchtitan": "fsdp2",
    "veomni": "fsdp2",
}
SCHEDULES: Final = {"constant": "constant", "cosine": "cosine", "linear": "linear"}
AGGREGATIONS: Final = {
    "token-mean": "token_mean",
    "seq-mean-token-mean": "sequence_mean",
    "seq-mean-token-sum": "sequence_sum",
    "seq-mean-token-sum-norm": "constant",
}
ESTIMATORS: Final = {
    "gae": "verl-ppo",
    "grpo": "verl-grpo",
    "grpo_vectorized": "verl-grpo",
    "grpo_passk": "verl-grpo",
    "gdpo": "verl-gdpo",
    "rloo": "verl-rloo",
    "rloo_vectorized": "verl-rloo",
    "opo": "verl-opo",
    "remax": "verl-remax",
    "reinforce_plus_plus": "verl-reinforce_pp",
    "reinforce_plus_plus_baseline": "verl-reinforce_pp_baseline",
}
"""`algorithm.adv_estimator` and the preset of ours with verl's defaults; the first counts for an
export."""
OF_GRPO: Final = {
    "gspo": "verl-gspo",
    "cispo": "verl-cispo",
    "dppo_tv": "verl-dppo_tv",
    "dppo_kl": "verl-dppo_kl",
}
"""`policy_loss.loss_mode` whose combination with `grpo` is a preset of its own."""
LOSSES: Final = {
    "vanilla": "clipped",
    "gspo": "sequence_clipped",
    "cispo": "cispo",
    "sapo": "sapo",
    "geo_mean": "gmpo",
    "dppo_tv": "dppo",
    "dppo_kl": "dppo",
    "clip_cov": "clip_cov",
    "kl_cov": "kl_cov",
}
KL_LOSSES: Final = {"low_var_kl": "k3", "k3": "k3", "kl": "k1", "k1": "k1", "mse": "k2", "k2": "k2"}
KL_REWARDS: Final = {
    "kl": "k1",
    "k1": "k1",
    "mse": "k2",
    "k2": "k2",
    "low_var_kl": "k3",
    "k3": "k3",
}
ENGINES: Final = {"vllm": "vllm", "sglang": "vllm", "hf": "torch", "trtllm": "vllm"}
TRACKERS: Final = ("wandb", "tensorboard", "mlflow", "trackio")


def _optimizer(theirs: str, node: str, lr: float) -> dict[str, Any]:
    ours = f"nodes.{node}.training.optimizer"
    return {
        f"{theirs}.lr": Carried(f"{ours}.lr", lr),
        f"{theirs}.weight_decay": Carried(f"{ours}.weight_decay", 0.01),
        f"{theirs}.betas": Carried(f"{ours}.betas", [0.9, 0.999]),
        f"{theirs}.lr_scheduler_type": Carried(f"{ours}.schedule", "constant", words=SCHEDULES),
        f"{theirs}.min_lr_ratio": Carried(f"{ours}.min_lr", 0.0, times=f"{ours}.lr"),
        f"{theirs}.lr_warmup_steps": Decides(f"{ours}.warmup", -1),
        f"{theirs}.lr_warmup_steps_ratio": Decides(f"{ours}.warmup", 0.0),
        f"{theirs}.optimizer": Carried(
            f"{ours}.name",
            "AdamW",
            words={"AdamW": "adamw", "AdamW8bit": "adamw8bit", "adam": "adamw", "Adam": "adamw"},
        ),
        f"{theirs}.warmup_style": Renamed(f"{theirs}.lr_scheduler_type"),
        f"{theirs}.clip_grad": Left("`grad_clip` beside it is what the trainer reads"),
        f"{theirs}.*": OTHER,
    }


TABLE: Final[Table] = {
    # data
    "data.train_files": Decides("nodes.prompts.source", "~/data/rlhf/gsm8k/train.parquet"),
    "data.val_files": Decides("nodes.held_out.source", "~/data/rlhf/gsm8k/test.parquet"),
    "data.prompt_key": Decides("nodes.prompts.columns", "prompt"),
    "data.train_batch_size": Decides("nodes.prompts.rows_per_step", 1024),
    "data.gen_batch_size": Decides("nodes.prompts.rows_per_step"),
    "data.val_batch_size": Carried("nodes.held_out.rows_per_step"),
    "data.max_prompt_length": Decides("nodes.prompts.tokens", 512),
    "data.max_response_length": Carried("nodes.actor.rollout.max_new_tokens", 512),
    "data.shuffle": Carried("nodes.prompts.shuffle", True),
    "data.apply_chat_template_kwargs.*": Left(
        "variables of the chat template: `model.chat_template_kwargs` has them here"
    ),
    "data.reward_fn_key": Decides("nodes.reward.source", "data_source"),
    "data.tool_config_path": TOOLS,
    "data.function_tool_path": TOOLS,
    "data.custom_cls.*": Left("a dataset class of your own: write the rows to a file instead"),
    "data.*_key": MULTIMODAL,
    "data.return_multi_modal_inputs": MULTIMODAL,
    "data.mm_processor_kwargs*": MULTIMODAL,
    "data.image_patch_size": MULTIMODAL,
    "data.filter_overlong_prompts": Left(
        "prompts are not cut or dropped here; a `filter` with the rule `length` drops long ones"
    ),
    "data.truncation": Left("prompts are not cut here: one that does not fit stops the run"),
    "data.*_max_samples": Left("how many rows are used: cut the file, or set `source.split`"),
    "data.datagen.*": DATA,
    "data.sampler.*": Left("a sampler of your own: `curriculum` draws rows by difficulty here"),
    "data.*": DATA,
    # model
    f"{MODEL}.path": Carried("nodes.actor.model.path", "~/models/deepseek-llm-7b-chat"),
    f"{MODEL}.trust_remote_code": Carried("nodes.actor.model.trust_remote_code", False),
    f"{MODEL}.custom_chat_template": Carried("nodes.actor.model.chat_template"),
    f"{MODEL}.enable_gradient_checkpointing": Carried(
        "nodes.actor.training.gradient_checkpointing", True
    ),
    f"{MODEL}.enable_activation_offload": Decides(
        "nodes.actor.training.gradient_checkpointing", False
    ),
    f"{MODEL}.lora_rank": Decides("nodes.actor.model.lora.rank", 0),
    f"{MODEL}.lora_alpha": Decides("nodes.actor.model.lora.alpha", 16),
    f"{MODEL}.target_modules": Decides("nodes.actor.model.lora.targets", "all-linear"),
    f"{MODEL}.lora.*": Left("adapters of the Megatron backend: set `model.lora`"),
    f"{MODEL}.*": SPEED,
    # actor
    f"{ACTOR}.strategy": Carried("nodes.actor.training.backend", "fsdp", words=STRATEGIES),
    f"{ACTOR}.ppo_mini_batch_size": Carried("nodes.actor.training.mini_batch", 256, times=GROUP),
    f"{ACTOR}.ppo_micro_batch_size_per_gpu": Decides("nodes.actor.training.micro_batch"),
    f"{ACTOR}.ppo_micro_batch_size": Decides("nodes.actor.training.micro_batch"),
    f"{ACTOR}.use_dynamic_bsz": Decides("nodes.actor.training.micro_batch", False),
    f"{ACTOR}.ppo_max_token_len_per_gpu": PACKED,
    f"{ACTOR}.ppo_epochs": Carried("nodes.actor.training.epochs", 1),
    f"{ACTOR}.grad_clip": Carried("nodes.actor.training.gradient_clip", 1.0),
    f"{ACTOR}.clip_ratio": Decides(f"{ALGORITHM}.clip_low", 0.2),
    f"{ACTOR}.clip_ratio_low": Decides(f"{ALGORITHM}.clip_low", 0.2),
    f"{ACTOR}.clip_ratio_high": Decides(f"{ALGORITHM}.clip_high", 0.2),
    f"{ACTOR}.clip_ratio_c": Decides(f"{ALGORITHM}.dual_clip", 3.0),
    f"{ACTOR}.loss_agg_mode": Decides(f"{ALGORITHM}.aggregation", "token-mean"),
    f"{ACTOR}.loss_scale_factor": Decides(f"{ALGORITHM}.divisor"),
    f"{ACTOR}.entropy_coeff": Decides(f"{ALGORITHM}.entropy", 0),
    f"{ACTOR}.tau_pos": Decides(f"{ALGORITHM}.tau_positive", 1.0),
    f"{ACTOR}.tau_neg": Decides(f"{ALGORITHM}.tau_negative", 1.05),
    f"{ACTOR}.policy_loss.loss_mode": Decides(f"{ALGORITHM}.loss", "vanilla"),
    f"{ACTOR}.policy_loss.clip_cov_ratio": Decides(f"{ALGORITHM}.covariance_share", 2.0e-4),
    f"{ACTOR}.policy_loss.kl_cov_ratio": Decides(f"{ALGORITHM}.covariance_share", 2.0e-4),
    f"{ACTOR}.policy_loss.*": Left("a bound of Clip-Cov or KL-Cov that is fixed here"),
    f"{ACTOR}.use_kl_loss": Decides(f"{ALGORITHM}.kl", False),
    f"{ACTOR}.kl_loss_coef": Decides(f"{ALGORITHM}.kl.coefficient", 0.001),
    f"{ACTOR}.kl_loss_type": Decides(f"{ALGORITHM}.kl.estimator", "low_var_kl"),
    f"{ACTOR}.fsdp_config.param_offload": Decides("nodes.actor.training.offload", False),
    f"{ACTOR}.fsdp_config.optimizer_offload": Decides("nodes.actor.training.offload", False),
    f"{ACTOR}.fsdp_config.reshard_after_forward": Carried(
        "nodes.actor.training.reshard_after_forward"
    ),
    f"{ACTOR}.fsdp_config.ulysses_sequence_parallel_size": Renamed(
        f"{ACTOR}.ulysses_sequence_parallel_size"
    ),
    f"{ACTOR}.ulysses_sequence_parallel_size": Carried("nodes.actor.training.context_parallel"),
    f"{ACTOR}.megatron.tensor_model_parallel_size": Decides("nodes.actor.training.tensor_parallel"),
    f"{ACTOR}.megatron.pipeline_model_parallel_size": Decides(
        "nodes.actor.training.pipeline_parallel"
    ),
    f"{ACTOR}.megatron.context_parallel_size": Decides("nodes.actor.training.context_parallel"),
    f"{ACTOR}.megatron.expert_model_parallel_size": Decides("nodes.actor.training.expert_parallel"),
    f"{ACTOR}.megatron.param_offload": Decides("nodes.actor.training.offload", False),
    f"{ACTOR}.megatron.optimizer_offload": Decides("nodes.actor.training.offload", False),
    f"{ACTOR}.megatron.*": MEGATRON,
    f"{ACTOR}.profile*": PROFILER,
    f"{ACTOR}.checkpoint.*": FILES,
    **_optimizer(f"{ACTOR}.optim", "actor", 1.0e-6),
    f"{ACTOR}.*": SPEED,
    # reference
    f"{REF}.fsdp_config.param_offload": Left("the compiler moves models that wait to the host"),
    f"{REF}.profile*": PROFILER,
    f"{REF}.*": SPEED,
    # rollout
    f"{ROLLOUT}.name": Carried("nodes.actor.rollout.engine", "vllm", words=ENGINES),
    f"{ROLLOUT}.n": Carried(GROUP, 1),
    f"{ROLLOUT}.temperature": Carried("nodes.actor.rollout.temperature", 1.0),
    f"{ROLLOUT}.top_p": Carried("nodes.actor.rollout.top_p", 1),
    f"{ROLLOUT}.top_k": Carried("nodes.actor.rollout.top_k", -1, words={-1: None, 0: None}),
    f"{ROLLOUT}.do_sample": Decides("nodes.actor.rollout.temperature", True),
    f"{ROLLOUT}.gpu_memory_utilization": Carried("nodes.actor.rollout.gpu_memory_utilization"),
    f"{ROLLOUT}.tensor_model_parallel_size": Carried("nodes.actor.rollout.tensor_parallel"),
    f"{ROLLOUT}.max_num_seqs": Carried("nodes.actor.rollout.max_num_seqs"),
    f"{ROLLOUT}.response_length": Renamed("data.max_response_length"),
    f"{ROLLOUT}.prompt_length": Renamed("data.max_prompt_length"),
    f"{ROLLOUT}.val_kwargs.do_sample": Decides("nodes.probe.greedy", False),
    f"{ROLLOUT}.val_kwargs.n": Decides("nodes.probe.samples", 1),
    f"{ROLLOUT}.val_kwargs.temperature": Decides("nodes.probe.temperature", 0),
    f"{ROLLOUT}.val_kwargs.*": Left("evaluations use `top_p` and `top_k` of the rollout"),
    f"{ROLLOUT}.nnodes": Decides("hardware.pools.generate", 0),
    f"{ROLLOUT}.n_gpus_per_node": Decides("hardware.pools.generate"),
    f"{ROLLOUT}.multi_turn.*": TOOLS,
    f"{ROLLOUT}.agent.*": TOOLS,
    f"{ROLLOUT}.log_prob_*": PACKED,
    f"{ROLLOUT}.profile*": PROFILER,
    f"{ROLLOUT}.trace.*": LOGS,
    f"{ROLLOUT}.*": ENGINE,
    "actor_rollout_ref.hybrid_engine": Decides("hardware.pools", True),
    "actor_rollout_ref.nccl_timeout": OTHER,
    # critic
    "critic.enable": Decides("nodes.critic"),
    "critic.model.path": Carried("nodes.critic.model.path"),
    "critic.model.enable_gradient_checkpointing": Carried(
        "nodes.critic.training.gradient_checkpointing", True
    ),
    "critic.model.*": SPEED,
    "critic.strategy": Carried("nodes.critic.training.backend", "fsdp", words=STRATEGIES),
    "critic.ppo_mini_batch_size": Decides("nodes.critic.training.mini_batch"),
    "critic.ppo_micro_batch_size_per_gpu": Decides("nodes.critic.training.micro_batch"),
    "critic.ppo_micro_batch_size": Decides("nodes.critic.training.micro_batch"),
    "critic.ppo_epochs": Decides("nodes.critic.training.epochs"),
    "critic.grad_clip": Carried("nodes.critic.training.gradient_clip", 1.0),
    "critic.cliprange_value": Carried("nodes.critic.algorithm.clip", 0.5),
    **_optimizer("critic.optim", "critic", 1.0e-5),
    "critic.profile*": PROFILER,
    "critic.checkpoint.*": FILES,
    "critic.*": SPEED,
    # reward
    "reward.custom_reward_function.path": Decides("nodes.reward.source"),
    "reward.custom_reward_function.name": Decides("nodes.reward.source", "compute_score"),
    "reward.custom_reward_function.reward_kwargs.*": Left(
        "arguments of the reward function: give its parameters these defaults"
    ),
    "reward.reward_model.enable": Decides("nodes.rm", False),
    "reward.reward_model.model_path": Decides("nodes.rm.model"),
    "reward.reward_kwargs.overlong_buffer_cfg.enable": Decides("nodes.overlong", False),
    "reward.reward_kwargs.overlong_buffer_cfg.len": Decides("nodes.overlong.source.buffer"),
    "reward.reward_kwargs.overlong_buffer_cfg.penalty_factor": Decides(
        "nodes.overlong.source.factor", 1.0
    ),
    "reward.reward_kwargs.*": Left("arguments of a reward manager"),
    "reward.reward_manager.name": Decides("nodes.reward.source", "naive"),
    "reward.*": Left("how rewards are computed in processes: here each reward is a node"),
    "custom_reward_function.path": Renamed("reward.custom_reward_function.path"),
    "custom_reward_function.name": Renamed("reward.custom_reward_function.name"),
    "custom_reward_function.*": Left(
        "arguments of the reward function: give its parameters these defaults"
    ),
    "reward_model.enable": Renamed("reward.reward_model.enable"),
    "reward_model.model.path": Renamed("reward.reward_model.model_path"),
    "reward_model.reward_manager": Renamed("reward.reward_manager.name"),
    **{
        f"reward_model.{section}.{name}": Renamed(
            f"reward.reward_kwargs.overlong_buffer_cfg.{name}"
        )
        for section in ("overlong_buffer", "reward_kwargs.overlong_buffer_cfg")
        for name in ("enable", "len", "penalty_factor")
    },
    "reward_model.*": Left("how rewards are computed in processes: here each reward is a node"),
    "sandbox_fusion.*": Left("a service that runs programs: the reward `code_tests` has a sandbox"),
    # algorithm
    "algorithm.adv_estimator": Decides(f"{ALGORITHM}.name", "gae"),
    "algorithm.gamma": Decides(f"{ALGORITHM}.gamma", 1.0),
    "algorithm.lam": Decides(f"{ALGORITHM}.gae_lambda", 1.0),
    "algorithm.norm_adv_by_std_in_grpo": Decides(f"{ALGORITHM}.deviation", True),
    "algorithm.use_kl_in_reward": Decides(f"{ALGORITHM}.kl", False),
    "algorithm.kl_penalty": Decides(f"{ALGORITHM}.kl.estimator", "kl"),
    "algorithm.kl_ctrl.type": Decides(f"{ALGORITHM}.kl.target", "fixed"),
    "algorithm.kl_ctrl.kl_coef": Decides(f"{ALGORITHM}.kl.coefficient", 0.001),
    "algorithm.kl_ctrl.target_kl": Decides(f"{ALGORITHM}.kl.target", 0.1),
    "algorithm.kl_ctrl.horizon": Decides(f"{ALGORITHM}.kl.horizon", 10_000),
    "algorithm.filter_groups.enable": Decides("nodes.informative", False),
    "algorithm.filter_groups.max_num_gen_batches": Decides("nodes.informative.fill.max_rounds", 0),
    "algorithm.filter_groups.metric": Decides("nodes.informative.keep", "reward"),
    "algorithm.filter_groups.*": OTHER,
    "algorithm.use_pf_ppo": Left("resampling by score is a `filter` with `resample` here"),
    "algorithm.pf_ppo.*": Left("resampling by score is a `filter` with `resample` here"),
    "algorithm.rollout_correction.rollout_is": Decides(f"{ALGORITHM}.correction.method"),
    "algorithm.rollout_correction.rollout_is_threshold": Decides(
        f"{ALGORITHM}.correction.max", 2.0
    ),
    "algorithm.rollout_correction.bypass_mode": Decides(f"{ALGORITHM}.old_policy", False),
    "algorithm.rollout_correction.*": Left("a form of rejection or correction that is not here"),
    "algorithm.rollout_is": Renamed("algorithm.rollout_correction.rollout_is"),
    "algorithm.rollout_is_threshold": Renamed("algorithm.rollout_correction.rollout_is_threshold"),
    "algorithm.*": OTHER,
    # trainer
    "trainer.nnodes": Decides("hardware.nodes", 1),
    "trainer.n_gpus_per_node": Decides("hardware.gpus_per_node", 8),
    "trainer.total_epochs": Decides("schedule.epochs", 30),
    "trainer.total_training_steps": Decides("schedule.steps"),
    "trainer.save_freq": Carried("run.checkpoint_every", -1, words={-1: None, 0: None}),
    "trainer.test_freq": Decides("nodes.probe.every", -1),
    "trainer.max_actor_ckpt_to_keep": Carried("run.keep"),
    "trainer.logger": Decides("run.report_to", ["console", "wandb"]),
    "trainer.project_name": Carried("run.project"),
    "trainer.experiment_name": Decides("name"),
    "trainer.critic_warmup": Decides("schedule.learn.actor.after", 0),
    "trainer.v1.trainer_mode": Decides("schedule.max_staleness", "sync"),
    "trainer.v1.separate_async.parameter_sync_step": OTHER,
    "trainer.val_only": OTHER,
    "trainer.val_before_train": Left("evaluations are always due before the first step"),
    "trainer.default_local_dir": FILES,
    "trainer.default_hdfs_dir": FILES,
    "trainer.resume*": Left("`coloop run --resume RUN` goes on with a run"),
    "trainer.*_data_dir": LOGS,
    "trainer.log_val_generations": LOGS,
    "trainer.*": OTHER,
    "distillation.*": Left("a teacher beside rewards: add a `reference` node with an algorithm"),
    "global_profiler.*": PROFILER,
    "ray_kwargs.*": Left("settings of Ray: those of `coloop run --address`"),
    "ray_init.*": Left("settings of Ray: those of `coloop run --address`"),
    "transfer_queue.*": OTHER,
    "skip.*": OTHER,
    "global_batch_size": OTHER,
    "hydra.*": Left("a setting of Hydra itself"),
}


def overrides(words: Sequence[Word]) -> Iterator[Given]:
    """Hydra overrides of a command: `name=value`, `+name=value`, `++name=value`; `~name` and
    `--config-name` are passed over."""
    for word in words:
        name, equals, value = word.text.partition("=")
        name = name.lstrip("+")
        if not equals or name.startswith(("-", "~", "@")) or not name:
            continue
        yield Given(name=name, value=hydra(value), line=word.line)


def filled(given: Sequence[Given]) -> list[Given]:
    """Settings with `${other.setting}` replaced by that setting's value, where that is known."""
    values = {entry.name: entry.value for entry in given}

    def value_of(value: Any, depth: int = 0) -> Any:
        if not isinstance(value, str) or depth > 8 or not value.startswith("${"):
            return value
        name = value[2:-1] if value.endswith("}") else ""
        if name.startswith("oc.select:"):
            name, _, default = name.removeprefix("oc.select:").partition(",")
            if name not in values:
                return hydra(default)
        if name in values:
            return value_of(values[name], depth + 1)
        row = TABLE.get(name)
        if isinstance(row, Carried | Decides) and row.default is not None:
            return row.default if isinstance(row.default, int | float | str | list) else value
        return value

    return [Given(name=entry.name, value=value_of(entry.value), line=entry.line) for entry in given]


def shape(settings: Settings, draft: Draft, source: Source) -> None:
    """The nodes of a loop, and what several settings decide together."""
    s = settings
    estimator = s["algorithm.adv_estimator"]
    critic = s["critic.enable"]
    has_critic = estimator == "gae" if critic is None else bool(critic) and estimator == "gae"
    draft.node("prompts", kind="dataset")
    draft.node("actor", kind="actor", model={"type": "pretrained"})
    rewards = _rewards(s, draft, source)
    _rows(s, draft)
    if has_critic:
        draft.node(
            "critic", kind="critic", model={"type": "pretrained"}, algorithm={"name": "value"}
        )
        _critic(s, draft)
    _algorithm(s, draft, has_critic=has_critic)
    if "kl" in draft.nodes["actor"]["algorithm"]:
        draft.node("reference", kind="reference", model={"type": "snapshot", "of": "actor"})
    _filter(s, draft)
    _training(s, draft)
    _evaluation(s, draft)
    _schedule(s, draft)
    _hardware(s, draft, source)
    draft.connect(rewards)


def _rewards(s: Settings, draft: Draft, source: Source) -> dict[str, float]:
    """The scorers with their weights."""
    rewards: dict[str, float] = {}
    path = s["reward.custom_reward_function.path"]
    if s["reward.reward_model.enable"] and s["reward.reward_model.model_path"]:
        draft.node(
            "rm",
            kind="reward",
            source={"type": "model"},
            model={"type": "pretrained", "path": s["reward.reward_model.model_path"]},
        )
        rewards["rm"] = 1.0
        if not path:
            return rewards
    if path:
        name = s["reward.custom_reward_function.name"]
        code = foreign_reward(
            source,
            str(path),
            str(name),
            columns=("data_source", "reward_model", "extra_info"),
            call=f"{name}(data_source=data_source, solution_str=completion, ground_truth="
            "(reward_model or {}).get('ground_truth'), extra_info=extra_info)",
        )
        if code is None:
            s.miss("reward.custom_reward_function.path", source.missing(str(path)))
            draft.node("reward", kind="reward", source={"type": "python", "file": str(path)})
        else:
            draft.node("reward", kind="reward", source={"type": "python", "code": code})
    else:
        draft.node("reward", kind="reward", source=dict(MATH))
        draft.assume(
            "verl chooses its reward by the rows' `data_source`; `math_equal` against "
            "`reward_model.ground_truth` assumed"
        )
    rewards["reward"] = 1.0
    cfg = "reward.reward_kwargs.overlong_buffer_cfg"
    if s[f"{cfg}.enable"] and s[f"{cfg}.len"]:
        draft.node(
            "overlong",
            kind="reward",
            source={
                "type": "builtin",
                "name": "overlong",
                "max": s.number("data.max_response_length"),
                "buffer": s.number(f"{cfg}.len"),
                "factor": s.number(f"{cfg}.penalty_factor"),
            },
        )
        rewards["overlong"] = 1.0
    return rewards


def _rows(s: Settings, draft: Draft) -> None:
    files = s["data.train_files"]
    if isinstance(files, list) and len(files) > 1:
        s.miss("data.train_files", f"{len(files)} files: the first is used; add a dataset for each")
    columns = {} if s["data.prompt_key"] == "prompt" else {"prompt": s["data.prompt_key"]}
    columns["answer"] = "reward_model.ground_truth"
    longest = s.number("data.max_prompt_length")
    draft.node(
        "prompts",
        source=file_source(files),
        columns=columns,
        rows_per_step=s["data.gen_batch_size"] or s.number("data.train_batch_size"),
        tokens={"mean": max(longest // 2, 1), "max": longest},
    )
    draft.assume(
        f"prompts have {longest // 2} tokens on average, half of `data.max_prompt_length`, where "
        "the rows cannot be read"
    )


def _critic(s: Settings, draft: Draft) -> None:
    path = s["critic.model.path"]
    if path is None:
        draft.put("nodes.critic.model", {"type": "copy", "of": "actor"})
    mini = s["critic.ppo_mini_batch_size"] or s.number(f"{ACTOR}.ppo_mini_batch_size")
    draft.put("nodes.critic.training.mini_batch", mini * s.number(f"{ROLLOUT}.n"))
    draft.put(
        "nodes.critic.training.epochs", s["critic.ppo_epochs"] or s.number(f"{ACTOR}.ppo_epochs")
    )
    micro = s["critic.ppo_micro_batch_size_per_gpu"]
    if micro is not None:
        draft.put("nodes.critic.training.micro_batch", micro)
    _warmup(s, draft, "critic.optim", "critic")


def _warmup(s: Settings, draft: Draft, theirs: str, node: str) -> None:
    steps, ratio = (
        s.number(f"{theirs}.lr_warmup_steps"),
        s.number(f"{theirs}.lr_warmup_steps_ratio"),
    )
    warmup = steps if steps is not None and steps > 0 else ratio
    if warmup:
        draft.put(f"nodes.{node}.training.optimizer.warmup", warmup)


def _algorithm(s: Settings, draft: Draft, *, has_critic: bool) -> None:
    """`algorithm` of the actor: a preset with verl's defaults, and what differs."""
    estimator, mode = s["algorithm.adv_estimator"], s[f"{ACTOR}.policy_loss.loss_mode"]
    name = ESTIMATORS.get(estimator)
    if name is None:
        s.miss(
            "algorithm.adv_estimator", f"`{estimator}` has no counterpart; `grpo` is in its place"
        )
        name = "verl-grpo"
    if mode not in LOSSES:
        s.miss(
            f"{ACTOR}.policy_loss.loss_mode",
            f"`{mode}` has no counterpart; the clipped loss of PPO is in its place",
        )
        mode = "vanilla"
    if name == "verl-grpo" and mode in OF_GRPO:
        name = OF_GRPO[mode]
    fields: dict[str, Any] = {"loss": LOSSES[mode]}
    if mode == "gspo":
        fields["reduce"] = "mean"
    low, high = _bounds(s)
    cap = s.number(f"{ACTOR}.clip_ratio_c")
    if LOSSES[mode] == "dppo":
        fields |= {
            "divergence": mode.removeprefix("dppo_"),
            "divergence_low": low,
            "divergence_high": high,
            "ratio_max": cap,
        }
    elif mode == "cispo":
        fields |= {"ratio_min": max(1 - low, 0.0), "ratio_max": 1 + high}
    elif mode != "sapo":
        fields |= {"clip_low": low, "clip_high": high}
    if mode == "vanilla":
        fields["dual_clip"] = cap
    if mode == "sapo":
        fields |= {
            "tau_positive": s.number(f"{ACTOR}.tau_pos"),
            "tau_negative": s.number(f"{ACTOR}.tau_neg"),
        }
    if mode in ("clip_cov", "kl_cov"):
        fields["covariance_share"] = s.number(f"{ACTOR}.policy_loss.{mode}_ratio")
    _aggregation(s, fields)
    if entropy := s.number(f"{ACTOR}.entropy_coeff"):
        fields["entropy"] = entropy
    if estimator == "grpo_passk":
        fields["advantage"] = "best_minus_second"
    if not s["algorithm.norm_adv_by_std_in_grpo"] and name.startswith("verl-grpo"):
        fields["deviation"] = "none"
    fields["gamma"] = s.number("algorithm.gamma")
    if has_critic:
        fields["gae_lambda"] = s.number("algorithm.lam")
    if estimator == "remax":
        draft.put("nodes.actor.rollout.greedy_extra", True)
    _correction(s, fields)
    if (kl := _kl(s)) is not None:
        fields["kl"] = kl
    draft.algorithm("actor", name, fields)


def _bounds(s: Settings) -> tuple[Any, Any]:
    """Both clip ratios. `clip_ratio` counts only where the two others are null, which they are not
    by default (`compute_policy_loss_vanilla`)."""
    low, high = s[f"{ACTOR}.clip_ratio_low"], s[f"{ACTOR}.clip_ratio_high"]
    if s.is_given(f"{ACTOR}.clip_ratio") and low is not None and high is not None:
        s.leave(
            f"{ACTOR}.clip_ratio",
            f"verl reads it only where `clip_ratio_low` and `clip_ratio_high` are null; they are "
            f"{low} and {high}",
        )
    both = s[f"{ACTOR}.clip_ratio"]
    return (both if low is None else low), (both if high is None else high)


def _aggregation(s: Settings, fields: dict[str, Any]) -> None:
    mode = s[f"{ACTOR}.loss_agg_mode"]
    if mode not in AGGREGATIONS:
        s.miss(
            f"{ACTOR}.loss_agg_mode", f"`{mode}` has no counterpart; `token-mean` is in its place"
        )
        mode = "token-mean"
    ours = AGGREGATIONS[mode]
    if fields["loss"] == "sequence_clipped" and ours == "token_mean":
        return  # of verl-gspo itself
    fields["aggregation"] = ours
    if ours == "constant" and (divisor := s[f"{ACTOR}.loss_scale_factor"]) is not None:
        fields["divisor"] = int(divisor)


def _correction(s: Settings, fields: dict[str, Any]) -> None:
    level = s["algorithm.rollout_correction.rollout_is"]
    if s["algorithm.rollout_correction.bypass_mode"]:
        fields["old_policy"] = "engine"
        return
    if level == "token":
        limit = s["algorithm.rollout_correction.rollout_is_threshold"]
        fields["correction"] = {"method": "token_tis", "max": limit}
        if isinstance(limit, str) and "_" in limit:
            low, _, high = limit.partition("_")
            fields["correction"] = {"method": "icepop", "min": float(low), "max": float(high)}
    elif level is not None:
        s.miss(
            "algorithm.rollout_correction.rollout_is",
            f"weights of whole texts (`{level}`) are not here; `token` is",
        )


def _kl(s: Settings) -> dict[str, Any] | None:
    if s[f"{ACTOR}.use_kl_loss"]:
        kind = str(s[f"{ACTOR}.kl_loss_type"])
        if kind.rstrip("+") not in KL_LOSSES:
            s.miss(
                f"{ACTOR}.kl_loss_type",
                f"`{kind}` has no counterpart; `low_var_kl` is in its place",
            )
        if s["algorithm.use_kl_in_reward"]:
            s.miss("algorithm.use_kl_in_reward", "one KL term is carried: that in the loss")
        return {
            "coefficient": s.number(f"{ACTOR}.kl_loss_coef"),
            "estimator": KL_LOSSES.get(kind.rstrip("+"), "k3"),
        }
    if not s["algorithm.use_kl_in_reward"]:
        return None
    kind = s["algorithm.kl_penalty"]
    if kind not in KL_REWARDS:
        s.miss("algorithm.kl_penalty", f"`{kind}` has no counterpart; `kl` is in its place")
    section = {
        "coefficient": s.number("algorithm.kl_ctrl.kl_coef"),
        "estimator": KL_REWARDS.get(kind, "k1"),
        "into": "reward",
    }
    if s["algorithm.kl_ctrl.type"] == "adaptive":
        section |= {
            "target": s.number("algorithm.kl_ctrl.target_kl"),
            "horizon": s.number("algorithm.kl_ctrl.horizon"),
        }
    return section


def _filter(s: Settings, draft: Draft) -> None:
    if not s["algorithm.filter_groups.enable"]:
        return
    rounds = s.number("algorithm.filter_groups.max_num_gen_batches")
    if not rounds or rounds < 1:
        rounds = 10
        draft.assume("groups are drawn again without limit in verl; at most 10 rounds assumed")
    draft.node(
        "informative",
        kind="filter",
        keep=[{"rule": "nonzero_variance"}],
        fill={"groups": s.number("data.train_batch_size"), "max_rounds": rounds},
    )


def _training(s: Settings, draft: Draft) -> None:
    micro = s[f"{ACTOR}.ppo_micro_batch_size_per_gpu"]
    if micro is None and (whole := s[f"{ACTOR}.ppo_micro_batch_size"]) is not None:
        gpus = s.number("trainer.nnodes") * s.number("trainer.n_gpus_per_node")
        micro = max(1, int(whole) // gpus)
    if micro is not None and not s[f"{ACTOR}.use_dynamic_bsz"]:
        draft.put("nodes.actor.training.micro_batch", micro)
    config = f"{ACTOR}.megatron" if s[f"{ACTOR}.strategy"] == "megatron" else f"{ACTOR}.fsdp_config"
    offloads = {
        (True, True): "all",
        (True, False): "all",
        (False, True): "optimizer",
        (False, False): "none",
    }
    both = bool(s[f"{config}.param_offload"]), bool(s[f"{config}.optimizer_offload"])
    if s.is_given(f"{config}.param_offload") or s.is_given(f"{config}.optimizer_offload"):
        draft.put("nodes.actor.training.offload", offloads[both])
    if s[f"{MODEL}.enable_activation_offload"]:
        draft.put("nodes.actor.training.gradient_checkpointing", "offload")
    if s[f"{ACTOR}.strategy"] == "megatron":
        for theirs, ours in (
            ("tensor_model_parallel_size", "tensor_parallel"),
            ("pipeline_model_parallel_size", "pipeline_parallel"),
            ("context_parallel_size", "context_parallel"),
            ("expert_model_parallel_size", "expert_parallel"),
        ):
            if (degree := s[f"{ACTOR}.megatron.{theirs}"]) is not None:
                draft.put(f"nodes.actor.training.{ours}", degree)
    if rank := s.number(f"{MODEL}.lora_rank"):
        lora: dict[str, Any] = {"rank": rank, "alpha": s.number(f"{MODEL}.lora_alpha")}
        targets = s[f"{MODEL}.target_modules"]
        if isinstance(targets, list):
            lora["targets"] = targets
        draft.put("nodes.actor.model.lora", lora)
    if not s[f"{ROLLOUT}.do_sample"]:
        draft.put("nodes.actor.rollout.temperature", 0.0)
    _warmup(s, draft, f"{ACTOR}.optim", "actor")


def _evaluation(s: Settings, draft: Draft) -> None:
    every = s.number("trainer.test_freq")
    if every is None or every <= 0:
        s.leave("data.val_files", "`trainer.test_freq` is not set, so nothing is evaluated")
        return
    samples = s.number(f"{ROLLOUT}.val_kwargs.n")
    columns = dict(draft.get("nodes.prompts.columns"))
    draft.node("held_out", kind="dataset", source=file_source(s["data.val_files"]), columns=columns)
    probe: dict[str, Any] = {"kind": "evaluate", "instead_of": "prompts", "every": every}
    if samples > 1:
        probe |= {"samples": samples, "metrics": ["accuracy", f"pass@{samples}"]}
    else:
        probe["metrics"] = ["accuracy"]
    if not s[f"{ROLLOUT}.val_kwargs.do_sample"]:
        probe["greedy"] = True
    elif (temperature := s.number(f"{ROLLOUT}.val_kwargs.temperature")) is not None:
        probe["temperature"] = temperature
    draft.node("probe", **probe)


def _schedule(s: Settings, draft: Draft) -> None:
    steps = s["trainer.total_training_steps"]
    if steps is not None:
        draft.put("schedule.steps", s.number("trainer.total_training_steps"))
    else:
        draft.put("schedule.epochs", s.number("trainer.total_epochs"))
    if warmup := s.number("trainer.critic_warmup"):
        draft.put("schedule.learn", {"actor": {"after": warmup}})
    logger = s["trainer.logger"]
    names = logger if isinstance(logger, list) else [logger]
    report_to = [name for name in names if name in TRACKERS] if s.is_given("trainer.logger") else []
    if report_to:
        draft.put("run.report_to", report_to)
    if name := s["trainer.experiment_name"]:
        draft.name = Draft(str(name), "").name


def _hardware(s: Settings, draft: Draft, source: Source) -> None:
    nodes, gpus = s.number("trainer.nnodes"), s.number("trainer.n_gpus_per_node")
    apart = s[f"{ROLLOUT}.nnodes"]
    is_apart = s["trainer.v1.trainer_mode"] == "separate_async" or bool(apart)
    if not is_apart or not apart:
        draft.machines(nodes, gpus, source.gpu)
        return
    each = s[f"{ROLLOUT}.n_gpus_per_node"] or gpus
    draft.machines(nodes + apart, gpus, source.gpu)
    draft.put(
        "hardware.pools", {"train": {"gpus": nodes * gpus}, "generate": {"gpus": apart * each}}
    )
    for name in ("actor", "critic", "reference", "rm"):
        if name in draft.nodes:
            draft.put(f"nodes.{name}.pool", "train")
    draft.put("nodes.actor.rollout.pool", "generate")
    draft.put("schedule.max_staleness", 1)


def read(file: File) -> tuple[str, list[Given]]:
    """Trainer and settings of a command or a YAML file."""
    if file.words is not None:
        return "ppo", filled(list(overrides(file.words)))
    assert file.data is not None
    return "ppo", filled(list(file.given()))


def entry_of(word: str, rest: Sequence[Word]) -> tuple[str, int] | None:
    """The trainer that a word of a command starts, and how many words after it belong to that."""
    if word in ENTRIES or word.endswith(("/main_ppo.py", "verl/trainer/main_ppo.py")):
        return "verl.trainer.main_ppo", 0
    if word.endswith(".main_ppo") or word.endswith((".main_dapo", "/main_dapo.py")):
        return "verl.trainer.main_ppo", 0
    return None


_ESTIMATORS_OF: Final = {
    "gae": "gae",
    "group_mean_std": "grpo",
    "group_mean": "grpo",
    "leave_one_out": "rloo",
    "length_weighted": "opo",
    "greedy": "remax",
    "discounted_return": "reinforce_plus_plus",
    "best_minus_second": "grpo_passk",
}


def unshape(parts: Any) -> tuple[Table, dict[str, Any]]:
    """The settings that are no single value of a loop."""
    if parts.port != "rewards" or parts.learner != "actor":
        raise ExportRefused(f"`{parts.port}`: verl's `main_ppo` learns from rewards")
    nodes, gpus = parts.gpus
    out: dict[str, Any] = {"trainer.nnodes": nodes, "trainer.n_gpus_per_node": gpus}
    out |= _data_of(parts) | _algorithm_of(parts) | _training_of(parts) | _rewards_of(parts)
    if "probe" in parts.roles:
        out |= _evaluation_of(parts)
    if parts.spec.schedule.steps is not None:
        out["trainer.total_training_steps"] = parts.spec.schedule.steps
    elif parts.epochs is not None:
        out["trainer.total_epochs"] = parts.epochs
    rule = (parts.get("schedule.learn") or {}).get("actor") or {}
    if rule.get("after"):
        out["trainer.critic_warmup"] = rule["after"]
    out["trainer.logger"] = ["console", *parts.spec.run.report_to]
    out["trainer.experiment_name"] = parts.spec.name
    pools = parts.get("hardware.pools") or {}
    if set(pools) == {"train", "generate"}:
        train, generate = (pools[name]["gpus"] for name in ("train", "generate"))
        out |= {
            "trainer.nnodes": max(train // gpus, 1),
            "trainer.n_gpus_per_node": min(train, gpus),
            f"{ROLLOUT}.nnodes": max(generate // gpus, 1),
            f"{ROLLOUT}.n_gpus_per_node": min(generate, gpus),
            "trainer.v1.trainer_mode": "separate_async",
        }
    return TABLE, out


def _data_of(parts: Any) -> dict[str, Any]:
    out: dict[str, Any] = {}
    if (path := parts.dataset("prompts")) is not None:
        out["data.train_files"] = path
    prompt = (parts.get("nodes.prompts.columns") or {}).get("prompt")
    if prompt:
        out["data.prompt_key"] = prompt
    rows = parts.get("nodes.prompts.rows_per_step")
    groups = parts.get("nodes.informative.fill.groups")
    out["data.train_batch_size"] = groups if isinstance(groups, int) else rows
    if groups is not None:
        out |= {
            "data.gen_batch_size": rows,
            "algorithm.filter_groups.enable": True,
            "algorithm.filter_groups.max_num_gen_batches": parts.get(
                "nodes.informative.fill.max_rounds"
            ),
        }
    if (longest := parts.get("nodes.prompts.tokens.max")) is not None:
        out["data.max_prompt_length"] = longest
    return out


def _algorithm_of(parts: Any) -> dict[str, Any]:
    full = parts.algorithm
    if full.advantage not in _ESTIMATORS_OF:
        raise ExportRefused(f"nodes.actor.algorithm: verl has no estimator for `{full.advantage}`")
    estimator = _ESTIMATORS_OF[full.advantage]
    out: dict[str, Any] = {}
    if full.advantage == "group_mean":
        if full.whiten:
            estimator = "reinforce_plus_plus_baseline"
        else:
            out["algorithm.norm_adv_by_std_in_grpo"] = False
    elif full.combine == "separate_advantages":
        estimator = "gdpo"
    elif full.advantage == "group_mean_std" and full.deviation == "none":
        out["algorithm.norm_adv_by_std_in_grpo"] = False
    out["algorithm.adv_estimator"] = estimator
    modes = {loss: mode for mode, loss in reversed(LOSSES.items())}
    mode = f"dppo_{full.divergence}" if full.loss == "dppo" else modes.get(full.loss, "vanilla")
    low, high = full.clip_low, full.clip_high
    if full.loss == "dppo":
        low, high = full.divergence_low, full.divergence_high
        if full.ratio_max is not None:
            out[f"{ACTOR}.clip_ratio_c"] = full.ratio_max
    elif full.loss == "cispo":
        low = 1 - (full.ratio_min or 0.0)
        high = None if full.ratio_max is None else full.ratio_max - 1
    if mode != "vanilla":
        out[f"{ACTOR}.policy_loss.loss_mode"] = mode
    if full.loss in ("clip_cov", "kl_cov"):
        out[f"{ACTOR}.policy_loss.{full.loss}_ratio"] = full.covariance_share
    for name, value in (("low", low), ("high", high)):
        if value is not None and abs(value - 0.2) > 1e-12:
            out[f"{ACTOR}.clip_ratio_{name}"] = float(f"{value:.12g}")
    if mode == "vanilla" and full.dual_clip not in (None, 3.0):
        out[f"{ACTOR}.clip_ratio_c"] = full.dual_clip
    aggregations = {ours: mode for mode, ours in AGGREGATIONS.items()}
    if full.aggregation != "token_mean":
        out[f"{ACTOR}.loss_agg_mode"] = aggregations[full.aggregation]
    new_tokens = parts.get("nodes.actor.rollout.max_new_tokens")
    if full.aggregation == "constant" and full.divisor not in (None, new_tokens):
        out[f"{ACTOR}.loss_scale_factor"] = full.divisor
    if full.entropy:
        out[f"{ACTOR}.entropy_coeff"] = full.entropy
    for setting, name in (("gamma", "gamma"), ("lam", "gae_lambda")):
        value = getattr(full, name)
        if value != 1.0 and (name == "gamma" or full.advantage == "gae"):
            out[f"algorithm.{setting}"] = value
    if full.loss == "sapo":
        out |= {f"{ACTOR}.tau_pos": full.tau_positive, f"{ACTOR}.tau_neg": full.tau_negative}
    if full.old_policy == "engine":
        out["algorithm.rollout_correction.bypass_mode"] = True
    elif full.correction.method in ("token_tis", "icepop"):
        limit: Any = full.correction.max
        if full.correction.method == "icepop":
            limit = f"{full.correction.min or 0.0}_{full.correction.max}"
        out |= {
            "algorithm.rollout_correction.rollout_is": "token",
            "algorithm.rollout_correction.rollout_is_threshold": limit,
        }
    return out | _kl_of(full)


def _kl_of(full: Any) -> dict[str, Any]:
    kl = full.kl
    if kl is None:
        return {}
    if kl.into == "loss":
        kinds = {ours: kind for kind, ours in reversed(KL_LOSSES.items())}
        return {
            f"{ACTOR}.use_kl_loss": True,
            f"{ACTOR}.kl_loss_coef": kl.coefficient,
            f"{ACTOR}.kl_loss_type": kinds[kl.estimator],
        }
    kinds = {ours: kind for kind, ours in reversed(KL_REWARDS.items())}
    out = {
        "algorithm.use_kl_in_reward": True,
        "algorithm.kl_ctrl.kl_coef": kl.coefficient,
        "algorithm.kl_penalty": kinds[kl.estimator],
    }
    if kl.target is not None:
        out |= {
            "algorithm.kl_ctrl.type": "adaptive",
            "algorithm.kl_ctrl.target_kl": kl.target,
            "algorithm.kl_ctrl.horizon": kl.horizon,
        }
    return out


def _training_of(parts: Any) -> dict[str, Any]:
    out: dict[str, Any] = {}
    at = "nodes.actor.training"
    micro = parts.get(f"{at}.micro_batch")
    if micro is not None:
        out[f"{ACTOR}.ppo_micro_batch_size_per_gpu"] = micro
    else:
        out[f"{ACTOR}.use_dynamic_bsz"] = True
    group = parts.get(GROUP)
    if parts.get(f"{at}.mini_batch") is None:
        rows = parts.get("nodes.informative.fill.groups") or parts.get(
            "nodes.prompts.rows_per_step"
        )
        out[f"{ACTOR}.ppo_mini_batch_size"] = rows
    offload = parts.get(f"{at}.offload")
    if offload is not None:
        out |= {
            f"{ACTOR}.fsdp_config.param_offload": offload == "all",
            f"{ACTOR}.fsdp_config.optimizer_offload": offload != "none",
        }
    lora = parts.draft.get("nodes.actor.model.lora")
    if lora:
        out |= {
            f"{MODEL}.lora_rank": lora.get("rank", 16),
            f"{MODEL}.lora_alpha": lora.get("alpha", 32.0),
        }
        if lora.get("targets"):
            out[f"{MODEL}.target_modules"] = lora["targets"]
    for node, theirs in (("actor", f"{ACTOR}.optim"), ("critic", "critic.optim")):
        warmup = parts.get(f"nodes.{node}.training.optimizer.warmup") if node in parts.roles else 0
        if warmup:
            kind = "lr_warmup_steps_ratio" if warmup < 1 else "lr_warmup_steps"
            out[f"{theirs}.{kind}"] = warmup
    if "critic" in parts.roles:
        mini = parts.get("nodes.critic.training.mini_batch")
        if mini is not None and group:
            out["critic.ppo_mini_batch_size"] = max(mini // group, 1)
        out["critic.ppo_epochs"] = parts.get("nodes.critic.training.epochs")
        if (own := parts.get("nodes.critic.training.micro_batch")) is not None:
            out["critic.ppo_micro_batch_size_per_gpu"] = own
    return out


def _rewards_of(parts: Any) -> dict[str, Any]:
    out: dict[str, Any] = {}
    others = [role for role in parts.rewards if role not in ("reward", "overlong")]
    for role in others:
        parts.unsaid.append(f"nodes.{parts.roles[role]}: verl has one reward function")
    source = parts.draft.get("nodes.reward.source") or {}
    if source.get("type") == "model":
        out |= {
            "reward.reward_model.enable": True,
            "reward.reward_model.model_path": parts.get("nodes.reward.model.path"),
        }
    elif source.get("type") == "python" and source.get("file"):
        out["reward.custom_reward_function.path"] = source["file"]
    elif source.get("name") != "math_equal":
        parts.unsaid.append(
            f"nodes.{parts.roles['reward']}.source: write it as `compute_score(data_source, "
            "solution_str, ground_truth, extra_info)` and name it by `custom_reward_function.path`"
        )
    if "overlong" in parts.roles:
        cfg = "+reward.reward_kwargs.overlong_buffer_cfg"
        out |= {
            f"{cfg}.enable": True,
            f"{cfg}.len": parts.get("nodes.overlong.source.buffer"),
            f"{cfg}.penalty_factor": (parts.draft.get("nodes.overlong.source") or {}).get(
                "factor", 1.0
            ),
            "reward.reward_manager.name": "dapo",
        }
    return out


def _evaluation_of(parts: Any) -> dict[str, Any]:
    out: dict[str, Any] = {"trainer.test_freq": parts.get("nodes.probe.every")}
    if (path := parts.dataset("held_out")) is not None:
        out["data.val_files"] = path
    kwargs = f"{ROLLOUT}.val_kwargs"
    if not parts.get("nodes.probe.greedy"):
        out[f"{kwargs}.do_sample"] = True
        temperature = parts.get("nodes.probe.temperature")
        if temperature is None:
            temperature = parts.get("nodes.actor.rollout.temperature")
        out[f"{kwargs}.temperature"] = temperature
    if samples := parts.get("nodes.probe.samples"):
        out[f"{kwargs}.n"] = samples
    return out


def write(settings: Mapping[str, Any], parts: Any) -> tuple[str, str]:
    """A shell script with the command."""
    lines = [f"    {name}={override(value)}" for name, value in settings.items()]
    head = "#!/bin/sh\npython3 -m verl.trainer.main_ppo \\\n"
    return f"{parts.spec.name}.sh", head + " \\\n".join(lines) + "\n"


def override(value: Any) -> str:
    """A value in the grammar of Hydra, quoted for a shell."""
    return shlex.quote(_hydra_text(value))


def _hydra_text(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, list | tuple):
        return f"[{','.join(map(_hydra_text, value))}]"
    text = str(value)
    is_plain = re.fullmatch(r"[\w./~:@%+*?|-]+", text) is not None
    return text if is_plain or not isinstance(value, str) else "'" + text.replace("'", "\\'") + "'"
