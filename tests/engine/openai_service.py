"""A service that writes as vLLM's does over HTTP, with the torch engine behind it."""

from threading import Lock
from typing import Any

from tests.engine.generating import generate
from tests.engine.web_service import Asked, Behaviour
from transformers import PreTrainedTokenizerBase

from coloop.workers.rollout import Generation, RolloutEngine


def completions_of(engine: RolloutEngine, tokenizer: PreTrainedTokenizerBase) -> Behaviour:
    """Answers `POST /v1/completions` with a prompt of token ids."""
    lock = Lock()

    def answer(asked: Asked) -> Any:
        if asked.line != "POST /v1/completions HTTP/1.1":
            return (404, asked.line)
        body = asked.body
        request = Generation(
            id="asked",
            prompt_ids=body["prompt"],
            seed=body["seed"],
            max_new_tokens=body["max_tokens"],
            temperature=body["temperature"] or 1.0,
            greedy=not body["temperature"],
            top_p=body["top_p"],
            top_k=body.get("top_k"),
            stop=tuple(body.get("stop", ())),
        )
        with lock:
            [row] = generate(engine, [request])
        text = tokenizer.decode(row.token_ids, skip_special_tokens=True)
        choice = {
            "index": 0,
            "text": text,
            "token_ids": row.token_ids,
            "logprobs": {"token_logprobs": row.log_probs},
            "finish_reason": "length" if row.reason == "length" else "stop",
        }
        return {"object": "text_completion", "choices": [choice]}

    return answer
