"""What was probably meant: names of other frameworks, deeper keys, words that look alike."""

from __future__ import annotations

from dataclasses import dataclass

from coloop.spec.base import Section
from coloop.spec.diagnostics import closest, did_you_mean
from coloop.spec.fields import field_type, fields_by_key

OTHER_NAMES: dict[str, str] = {
    "batch_size": "rows_per_step",
    "train_batch_size": "mini_batch",
    "mini_batch_size": "mini_batch",
    "ppo_mini_batch_size": "mini_batch",
    "micro_batch_size": "micro_batch",
    "per_device_train_batch_size": "micro_batch",
    "learning_rate": "lr",
    "lr_scheduler": "schedule",
    "lr_scheduler_type": "schedule",
    "warmup_steps": "warmup",
    "warmup_ratio": "warmup",
    "max_grad_norm": "gradient_clip",
    "grad_clip": "gradient_clip",
    "num_generations": "completions_per_prompt",
    "group_size": "completions_per_prompt",
    "n": "completions_per_prompt",
    "n_samples": "completions_per_prompt",
    "max_tokens": "max_new_tokens",
    "max_completion_length": "max_new_tokens",
    "max_length": "max_new_tokens",
    "kl_coef": "kl",
    "kl_beta": "kl",
    "lam": "gae_lambda",
    "lambda": "gae_lambda",
    "clip_range": "clip_low",
    "cliprange": "clip_low",
    "clip_ratio": "clip_low",
    "epsilon_high": "clip_high",
    "num_train_epochs": "epochs",
    "num_epochs": "epochs",
    "max_steps": "steps",
    "total_steps": "steps",
    "save_steps": "checkpoint_every",
    "save_every": "checkpoint_every",
    "eval_every": "every",
    "gradient_accumulation_steps": "micro_batch",
    "prompt_template": "text",
    "system_prompt": "messages",
}
"""Names that other frameworks use, and ours."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a wrong word probably stands for."""

    hint: str | None
    """The sentence for people."""
    instead: str | None = None
    """The one right word, or key below this section, if there is one."""


def meant_key(section: type[Section] | None, key: str) -> Meaning:
    """What an unknown key of a section stands for."""
    if section is None:
        return Meaning(None)
    known = list(fields_by_key(section))
    other = OTHER_NAMES.get(key.lower())
    if other in known:
        return Meaning(f"did you mean `{other}`?", other)
    for wanted in (key, other):
        deeper = None if wanted is None else _deeper(section, wanted)
        if deeper is not None:
            return Meaning(f"did you mean `{deeper}`?", deeper)
    return _alike(key, known, did_you_mean(key, known))


def meant_word(word: object, words: list[str]) -> Meaning:
    """What a word that is not among the allowed ones stands for."""
    if not isinstance(word, str):
        return Meaning(None)
    hint = did_you_mean(word, words)
    is_near = hint is not None and hint.startswith("did you")
    return _alike(word, words, hint if is_near else None)


def _alike(word: str, words: list[str], hint: str | None) -> Meaning:
    near = closest(word, words, 1)
    is_one = hint is not None and " or " not in hint
    return Meaning(hint, near[0] if near and is_one else None)


def _deeper(section: type[Section], key: str, depth: int = 2) -> str | None:
    """Where a key stands in the sections below, e.g. `rollout.temperature`."""
    for name, info in fields_by_key(section).items():
        inner = field_type(info).section
        if inner is None or depth == 0:
            continue
        if key in fields_by_key(inner):
            return f"{name}.{key}"
        found = _deeper(inner, key, depth - 1)
        if found is not None:
            return f"{name}.{found}"
    return None
