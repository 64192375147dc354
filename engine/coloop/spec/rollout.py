"""How a policy generates: the `rollout` section of actors and generative verifiers."""

from collections.abc import Mapping
from typing import Any, Final, Literal, get_args

from coloop.spec.base import Flag, Name, Number, OneOrMany, Section, Text, Whole, setting
from coloop.spec.services import ChatService

Engine = Literal["torch", "vllm", "remote"]
"""Engines of models with a tokenizer here: their texts have tokens and log-probs."""
RUNNABLE_ENGINES = frozenset(get_args(Engine))
CHAT: Final = "chat"
"""Engine of judges by URL: texts without tokens, from a model that nothing here loads."""
WITH_TOKENS: Final = (None, *get_args(Engine))
"""Values of `engine` with which a node has a model here."""
OnSync = Literal["finish", "resume", "drop"]


_TOKENS: Final[Mapping[str, tuple[Any, ...]]] = {"engine": WITH_TOKENS}


class Turns(Section):
    """Tool calls within one trajectory."""

    max: Whole = setting(8, ge=1, hot=True)
    """Maximum number of turns; each ends with a tool call or with the end of the text."""
    tokens: Whole | None = setting(None, ge=1, level="advanced", unit="tokens")
    """Maximum tokens that the policy generates in one turn; null: the rest of `max_new_tokens`."""
    observation_tokens: Whole | None = setting(None, ge=1, level="advanced", unit="tokens")
    """Maximum tokens of one tool answer; the rest is cut. Null: limited only by the context."""
    invalid_action: Text | None = setting(None, level="advanced")
    """What the policy reads if it neither called a tool nor ended the text (with a text in `stop`,
    if any are set); it counts as a turn. Null: the trajectory ends."""
    last: Literal["without_tools", "cut"] = setting("without_tools", level="advanced")
    """After the last turn: generate once more without tools, or stop. Nothing is generated after
    the last answer of an environment."""

    @property
    def answers(self) -> int:
        """Maximum number of tool answers in one text."""
        return self.max if self.last == "without_tools" else self.max - 1


class Rollout(Section):
    """How a policy generates text."""

    engine: Engine | None = setting(None, level="advanced", short="{}")
    """What generates the text. Null: vLLM on GPUs where it is installed, else torch."""
    completions_per_prompt: Whole = setting(1, ge=1, le=4096, hot=True, short="{} a prompt")
    """Completions for each prompt row; with group baselines this is the group."""
    max_new_tokens: Whole = setting(256, ge=1, unit="tokens", hot=True, short="{} tokens")
    """Maximum number of tokens that the policy generates in the whole trajectory."""
    expected_tokens: Whole | None = setting(None, ge=1, level="advanced", unit="tokens")
    """Mean number of generated tokens, for the estimate; null: assumed from `max_new_tokens` and
    the kind of model."""
    temperature: Number = setting(1.0, ge=0, le=10, hot=True, widget="slider", short="T {}")
    """Randomness of sampling; 0 is greedy."""
    top_p: Number = setting(1.0, gt=0, le=1, level="advanced", hot=True, widget="slider")
    """Sample from the most likely tokens that make up this probability; 1: all."""
    top_k: Whole | None = setting(None, ge=1, level="advanced", hot=True)
    """Sample from this many most likely tokens; null: all."""
    stop: OneOrMany[Text] = setting((), level="advanced")
    """Text that ends a completion; it is kept."""
    greedy_extra: Flag = setting(False, level="advanced", when=_TOKENS)
    """One extra greedy row per prompt (ReMax): scored, but never trained on or counted in a
    group."""
    mask: tuple[Name, ...] = setting((), level="advanced", when=_TOKENS)
    """Tags whose content is not trained on, in addition to tool results."""
    truncated: Literal["learn", "mask"] = setting("learn", level="advanced", hot=True, when=_TOKENS)
    """A row truncated by the limit: trained on like others, or only counted in its group's
    baseline."""
    images: Flag = setting(False, level="advanced", when=_TOKENS)
    """Pass the column `images` to a vision model."""
    turns: Turns | None = setting(None, level="advanced", when=_TOKENS)
    """Tool calls; null: the defaults of its fields, if tools are connected."""
    on_sync: OnSync = setting("finish", level="expert", when=_TOKENS)
    """What happens to unfinished rows when new weights arrive: finish them with the old weights,
    continue them with the new ones, or generate them again with the new ones."""
    script: tuple[Text, ...] = setting((), level="expert", hidden=True, when=_TOKENS)
    """Texts in place of sampled completions, where `$column` is a column of the prompt's row; the
    seed decides which one, or that the completion is sampled. Used by rehearsals."""
    pool: Name | None = setting(
        None,
        level="advanced",
        widget="select",
        choices="pools",
        title="Pool of generation",
        section="placement",
        short="writes in {}",
        when=_TOKENS,
    )
    """Pool of the generate stage; null: the node's pool."""
    max_num_seqs: Whole | None = setting(None, ge=1, level="expert", solver=True, when=_TOKENS)
    """Sequences that the engine generates at once; null: decided by the compiler."""
    gpu_memory_utilization: Number | None = setting(
        None, gt=0, le=1, level="expert", section="placement", solver=True, when=_TOKENS
    )
    """Share of the GPU's memory that the engine may use; null: decided by the compiler."""
    tensor_parallel: Whole | None = setting(
        None,
        ge=1,
        level="expert",
        title="Tensor parallel, generation",
        section="placement",
        solver=True,
        when=_TOKENS,
    )
    """GPUs that share one copy of the weights; null: decided by the compiler."""
    url: Text | None = setting(
        None, level="advanced", when={"engine": ("remote",)}, needed={"engine": ("remote",)}
    )
    """Address of a remote engine, to which `/completions` is added (OpenAI-compatible completions
    with token ids and log-probs, as served by vLLM)."""
    secret: Name | None = setting(None, level="advanced", when={"engine": ("remote",)})
    """Name of a secret that is sent to a remote engine as `Authorization`: `judge` is the variable
    COLOOP_SECRET_JUDGE on the machine where the run starts."""


_CHAT: Final[Mapping[str, tuple[Any, ...]]] = {"engine": (CHAT,)}


class JudgeRollout(Rollout):
    """How a generative verifier generates its verdicts: with a model of the loop, or by URL."""

    engine: Literal[Engine, "chat"] | None = setting(  # type: ignore[assignment]
        None, short="{}"
    )
    """What generates the text; `chat`: a chat model by URL, without a model here. Null: vLLM on
    GPUs where it is installed, else torch."""
    chat: ChatService | None = setting(None, when=_CHAT, needed=_CHAT)
    """The chat model that is asked."""
