"""What every arm of the GRPO bench does: the same model folder, rows, batch, optimizer and loss.

Imported by arms of every environment: nothing but the standard library here.
"""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

PROMPTS, SAMPLES = 16, 8
"""Prompts of a step and completions of each: 128 rows."""
LEARNING_RATE = 1e-4
CLIP_NORM = 1.0
EPSILON = 0.2
DEVIATION_EPSILON = 1e-6

Length = Literal["short", "long"]
NEW_TOKENS: dict[Length, int] = {"short": 4, "long": 128}
"""Tokens that every row of the timed workloads writes; none ends before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """A Qwen3-shaped model with the vocabulary of single characters."""

    width: int
    inner: int
    layers: int
    heads: int
    kv_heads: int
    head_width: int
    vocabulary: int = 128

    def facts(self) -> dict[str, Any]:
        """As a Hugging Face config names them."""
        return {
            "model_type": "qwen3",
            "vocab_size": self.vocabulary,
            "hidden_size": self.width,
            "intermediate_size": self.inner,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "head_dim": self.head_width,
            "tie_word_embeddings": True,
            "max_position_embeddings": 512,
            "rms_norm_eps": 1e-6,
            "hidden_act": "silu",
            "initializer_range": 0.04,
        }


SIZES: dict[str, Size] = {
    "1M": Size(width=128, inner=512, layers=4, heads=4, kv_heads=2, head_width=32),
    "5M": Size(width=256, inner=1024, layers=5, heads=4, kv_heads=2, head_width=64),
    "20M": Size(width=512, inner=2048, layers=5, heads=8, kv_heads=4, head_width=64),
    "0.5B": Size(
        width=896,
        inner=4864,
        layers=24,
        heads=14,
        kv_heads=2,
        head_width=64,
        vocabulary=151_936,
    ),
}
"""By their parameters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One arm's task; travels as JSON on its command line."""

    size: str
    folder: str
    """Model folder in Hugging Face format, with a tokenizer of single characters."""
    rows: str
    """jsonl with `prompt` and `answer`."""
    new_tokens: int
    reward: Literal["digits", "answer"] = "digits"
    """`digits`: share of nothing but whether a digit is written; `answer`: the completion is the
    answer."""
    precision: Literal["float32", "bfloat16"] = "bfloat16"
    settings: Literal["default", "best"] = "best"
    """Of our own arm: what a user gets who sets nothing, or what is fastest."""
    threads: int = 1
    processes: int = 1
    is_compiled: bool = True
    seed: int = 0
    steps: int = 10_000
    """Most steps; an arm ends earlier where it is told to."""
    learning_rate: float = LEARNING_RATE
    theirs: dict[str, Any] | None = None
    """The algorithm in TRL's words; what is not said is TRL's default. None: the bench's."""
    iterations: int = 1
    """Optimizer steps on the same texts."""
    gpu: str | None = None
    """Name of the GPU, as `hardware.gpu` has it; None: on the processor."""
    keep: str | None = None
    """Where the model is saved after the last step."""

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Work":
        return cls(**json.loads(text))

    def with_(self, **changes: Any) -> "Work":
        return replace(self, **changes)


def read_rows(path: str) -> list[dict[str, str]]:
    """Rows of a jsonl file."""
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def score(kind: str, text: str, answer: str) -> float:
    """The reward of a completion; our own arm says the same with built-in rewards."""
    if kind == "answer":
        return float(text.strip() == answer.strip())
    return float(any("0" <= character <= "9" for character in text))
