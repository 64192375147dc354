"""Replies of an OpenAI-compatible chat server, for tests over real sockets."""

from collections.abc import Callable
from typing import Any

from tests.engine.web_service import Asked, Behaviour

PATH = "POST /v1/chat/completions HTTP/1.1"


def reply(
    text: str | None,
    *,
    finish_reason: str = "stop",
    refusal: str | None = None,
    usage: tuple[int, int] | None = (10, 5),
) -> dict[str, Any]:
    """A chat completion. `usage`: tokens of the prompt and of the answer; None: not counted."""
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if refusal is not None:
        message["refusal"] = refusal
    answer: dict[str, Any] = {
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
    }
    if usage is not None:
        prompt, completion = usage
        answer["usage"] = {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
        }
    return answer


def prompt_of(asked: Asked) -> str:
    """The text of the last message of a request."""
    return str(asked.body["messages"][-1]["content"])


def judged_by(verdict: Callable[[str], str]) -> Behaviour:
    """A server whose model answers with a function of the last message."""

    def behave(asked: Asked) -> Any:
        if asked.line != PATH:
            return (404, asked.line)
        return reply(verdict(prompt_of(asked)))

    return behave
