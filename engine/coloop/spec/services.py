"""How services on other machines are called: scorers, and chat models that judge."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from coloop.spec.base import Flag, Name, Number, PlainValue, Section, Text, Whole, problem, setting

MILLION = 1_000_000
"""Tokens that a price is for."""

OWN_FIELDS = frozenset(
    {
        *("model", "messages", "n", "stream", "seed", "stop", "temperature", "top_p", "top_k"),
        *("max_tokens", "max_completion_tokens", "response_format"),
    }
)
"""Fields of a chat request that other settings decide."""


class Service(Section):
    """An HTTP service on another machine."""

    url: Annotated[Text, Field(pattern=r"^https?://")] = setting()
    """Its address."""
    secret: Name | None = setting(None, level="advanced")
    """Name of a secret that is sent as `Authorization`: `judge` is the variable COLOOP_SECRET_JUDGE
    on the machine where the run starts."""
    timeout_seconds: Number = setting(60.0, gt=0, le=3600, level="advanced", unit="seconds")
    """Maximum time for one request."""
    retries: Whole = setting(3, ge=0, le=100, level="advanced")
    """How often a failed request is retried."""
    concurrency: Whole = setting(8, ge=1, le=4096, level="advanced")
    """Concurrent requests."""


class ChatService(Service):
    """A chat model behind an OpenAI-compatible API: a vLLM or llama.cpp server, Ollama, a
    provider."""

    url: Annotated[Text, Field(pattern=r"^https?://")] = setting()
    """Address of the API, to which `/chat/completions` is added, e.g. `https://host/v1`."""
    model: Text = setting(short="{}", title="Name of the model")
    """Name of the model there."""
    answer_schema: dict[str, PlainValue] | None = setting(None, level="advanced", widget="text")
    """JSON Schema of the answer. Null: derived from `read`, if that expects JSON; else the answer
    is plain text."""
    cache: Flag = setting(True, level="advanced")
    """Whether a request that was answered earlier in the run, or before it was resumed, is answered
    from the run's folder."""
    input_price: Number | None = setting(None, ge=0, level="advanced")
    """Price of a million prompt tokens; null: unknown."""
    output_price: Number | None = setting(None, ge=0, level="advanced")
    """Price of a million generated tokens; null: unknown."""
    max_cost: Number | None = setting(None, gt=0, level="advanced")
    """Once answers of the whole run have cost this much, nothing more is asked. Null: no limit."""
    options: dict[Text, PlainValue] = setting({}, level="expert", widget="text")
    """Further fields of each request, e.g. `reasoning_effort: low`."""

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        if self.max_cost is not None and (self.input_price is None or self.output_price is None):
            words = "needs `input_price` and `output_price`, from which the cost is computed"
            raise problem("conflict", words, field="max_cost")
        taken = sorted(OWN_FIELDS & self.options.keys())
        if taken:
            words = f"contains `{taken[0]}`, which another setting of the node decides"
            raise problem("conflict", words, field="options")
        return self

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Cost of tokens, in the currency of the prices; unknown prices count as 0."""
        asked = prompt_tokens * (self.input_price or 0.0)
        return (asked + completion_tokens * (self.output_price or 0.0)) / MILLION
