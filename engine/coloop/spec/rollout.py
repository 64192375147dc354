"""How a policy writes: the `rollout` section of actors and generative verifiers."""

from __future__ import annotations

from typing import Literal, get_args

from coloop.spec.base import Flag, Name, Number, OneOrMany, Section, Text, Whole, setting

Engine = Literal["torch", "vllm", "remote"]
RUNNABLE_ENGINES = frozenset(get_args(Engine))
OnSync = Literal["finish", "resume", "drop"]


class Turns(Section):
    """Calls of tools inside one trajectory."""

    max: Whole = setting(8, ge=1, hot=True)
    """Most turns; each ends with a call of a tool or with the end of the text."""
    tokens: Whole | None = setting(None, ge=1, level="advanced", unit="tokens")
    """Most tokens that the policy writes in one turn; null: what is left of `max_new_tokens`."""
    observation_tokens: Whole | None = setting(None, ge=1, level="advanced", unit="tokens")
    """Most tokens of one answer of a tool; the rest is cut. Null: no limit but the context."""
    invalid_action: Text | None = setting(None, level="advanced")
    """What the policy reads when it called nothing and did not end, by a text in `stop` where there
    are some; it counts as a turn. Null: the trajectory ends."""
    last: Literal["without_tools", "cut"] = setting("without_tools", level="advanced")
    """After the last turn: let it write once more without tools, or cut. Nothing is written after
    the last answer of an environment."""

    @property
    def answers(self) -> int:
        """Most answers of tools that a text holds."""
        return self.max if self.last == "without_tools" else self.max - 1


class Rollout(Section):
    """How a policy writes."""

    engine: Engine | None = setting(None, level="advanced", short="{}")
    """Who generates. Null: vLLM on GPUs where it is installed, else torch."""
    completions_per_prompt: Whole = setting(1, ge=1, le=4096, hot=True, short="{} a prompt")
    """Completions for each prompt row; with group baselines this is the group."""
    max_new_tokens: Whole = setting(256, ge=1, unit="tokens", hot=True, short="{} tokens")
    """Most tokens that the policy writes in the whole trajectory."""
    expected_tokens: Whole | None = setting(None, ge=1, level="advanced", unit="tokens")
    """Mean length of what it writes, for the estimate; null: half of `max_new_tokens`."""
    temperature: Number = setting(1.0, ge=0, le=10, hot=True, widget="slider", short="T {}")
    """Randomness of sampling; 0 is greedy."""
    top_p: Number = setting(1.0, gt=0, le=1, level="advanced", hot=True, widget="slider")
    """Sample from the likeliest tokens that hold this share; 1: all."""
    top_k: Whole | None = setting(None, ge=1, level="advanced", hot=True)
    """Sample from this many likeliest tokens; null: all."""
    stop: OneOrMany[Text] = setting((), level="advanced")
    """Text that ends a completion; it is kept."""
    greedy_extra: Flag = setting(False, level="advanced")
    """One more row a prompt, greedy: scored, never trained or counted in a group (ReMax)."""
    mask: tuple[Name, ...] = setting((), level="advanced")
    """Tags whose content is not trained, beside what tools wrote."""
    truncated: Literal["learn", "mask"] = setting("learn", level="advanced", hot=True)
    """A row cut by the limit: taught like others, or only counted in its group's baseline."""
    images: Flag = setting(False, level="advanced")
    """Hand the column `images` to a vision model."""
    turns: Turns | None = setting(None, level="advanced")
    """Calls of tools; null: as the fields in it are without a value, where tools are connected."""
    on_sync: OnSync = setting("finish", level="expert")
    """What becomes of unfinished rows when new weights arrive: the old ones finish them, the new
    ones go on with them, or the new ones write them anew."""
    script: tuple[Text, ...] = setting((), level="expert", hidden=True)
    """What completions say in place of what would be drawn, `$column` being one of their prompt's
    row; the seed decides which, or that it is drawn. Rehearsals have it."""
    pool: Name | None = setting(
        None,
        level="advanced",
        widget="select",
        choices="pools",
        title="Pool of generation",
        section="placement",
        short="writes in {}",
    )
    """Pool of the generate stage; null: the node's pool."""
    max_num_seqs: Whole | None = setting(None, ge=1, level="expert", solver=True)
    """Sequences that the engine writes at once; null: decided by the compiler."""
    gpu_memory_utilization: Number | None = setting(
        None, gt=0, le=1, level="expert", section="placement", solver=True
    )
    """Share of the GPU that the engine may hold; null: decided by the compiler."""
    tensor_parallel: Whole | None = setting(
        None,
        ge=1,
        level="expert",
        title="Tensor parallel, generation",
        section="placement",
        solver=True,
    )
    """GPUs that share one copy of the weights; null: decided by the compiler."""
    url: Text | None = setting(
        None, level="advanced", when={"engine": ("remote",)}, needed={"engine": ("remote",)}
    )
    """Address of a remote engine, to which `/completions` is added (OpenAI-like completions with
    token ids and log-probs, as vLLM has them)."""
    secret: Name | None = setting(None, level="advanced", when={"engine": ("remote",)})
    """Name of a secret that goes to a remote engine as `Authorization`: `judge` is the variable
    COLOOP_SECRET_JUDGE where the run starts."""
