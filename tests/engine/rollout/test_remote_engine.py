"""The engine whose weights are elsewhere: what it refuses, and which answers of a service are
none."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.engine.generating import generate
from tests.engine.numerics import forward_terms, near
from tests.engine.openai_service import completions_of
from tests.engine.web_service import Asked, WebService, serving
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from coloop.data.services.endpoint import Endpoint
from coloop.data.services.service import Service
from coloop.errors import RequestRefused, ServiceFailed, StopRequested, WeightsNotUpdated
from coloop.workers.rollout import TorchEngine
from coloop.workers.rollout.remote_engine import RemoteEngine

Ask = Callable[..., Any]
PROMPT = [5, 6, 7]


@pytest.fixture
def served(
    models: Callable[[str], PreTrainedModel],
    tokenizer: PreTrainedTokenizerFast,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Callable[..., tuple[RemoteEngine, WebService]]]:
    """An engine, and the service that writes for it; None: with the same model."""
    opened: list[Any] = []

    def start(behave: Any = None, **options: Any) -> tuple[RemoteEngine, WebService]:
        if behave is None:
            behave = completions_of(TorchEngine(models("qwen3"), tokenizer), tokenizer)
        block = serving(behave)
        web = block.__enter__()
        monkeypatch.setenv("COLOOP_ALLOWED_REMOTES", web.host)
        endpoint = Endpoint(
            node="judge",
            field="rollout.url",
            url=f"http://{web.host}/v1/completions",
            **{"retries": 0, **options},
        )
        engine = RemoteEngine(models("qwen3"), tokenizer, endpoint=endpoint)
        opened.append((engine, block))
        return engine, web

    yield start
    for engine, block in opened:
        engine.close()
        block.__exit__(None, None, None)


def test_a_request_is_that_of_openai_with_what_vllm_adds(served: Any, ask: Ask) -> None:
    engine, web = served()

    generate(engine, [ask(PROMPT, seed=7, max_new_tokens=3, temperature=0.5, top_k=9, stop=("x",))])

    assert web.asked[0].body == {
        "prompt": PROMPT,
        "max_tokens": 3,
        "temperature": 0.5,
        "top_p": 1.0,
        "top_k": 9,
        "seed": 7,
        "stop": ["x"],
        "logprobs": 1,
        "n": 1,
        "return_token_ids": True,
        "skip_special_tokens": True,
        "include_stop_str_in_output": True,
    }


def test_it_writes_what_the_engine_behind_the_service_writes(
    served: Any, ask: Ask, models: Any, tokenizer: Any
) -> None:
    requests = [ask(PROMPT, seed=seed, max_new_tokens=6, top_p=0.9) for seed in range(4)]
    requests += [ask(PROMPT, greedy=True), ask(PROMPT, seed=9, stop=("a", "e"), max_new_tokens=30)]

    rows = generate(served()[0], requests)

    own = generate(TorchEngine(models("qwen3"), tokenizer), requests)
    assert [row.token_ids for row in rows] == [row.token_ids for row in own]
    for row, one in zip(rows, own, strict=True):  # written alone there, together here
        terms = forward_terms(models("qwen3"), 40)
        assert row.log_probs == near(one.log_probs, terms=terms, scale=10.0)
    assert [row.reason for row in rows] == [row.reason for row in own]


@pytest.mark.parametrize("options", [{"keep": True}, {"script": (5,)}])
def test_a_text_in_several_requests_is_refused(options: Any, served: Any, ask: Ask) -> None:
    engine, _ = served()

    with pytest.raises(RequestRefused, match="row row: a remote engine generates a text in one"):
        engine.submit(ask(PROMPT, **options))

    assert engine.unfinished == 0


def test_what_wants_weights_is_refused(served: Any) -> None:
    engine, _ = served()

    with pytest.raises(RequestRefused, match="cannot return log-probs of given texts"):
        engine.score([PROMPT])
    with pytest.raises(WeightsNotUpdated, match="does not accept weights"):
        engine.load_weights([], 1)
    assert list(engine.held_weights()) == []
    assert engine.fingerprint() is None
    assert engine.max_concurrency() is None


def choice(**values: Any) -> dict[str, Any]:
    whole = {"token_ids": [5, 6], "logprobs": {"token_logprobs": [-0.5, -1.0]}, **values}
    return {"choices": [whole]}


NONSENSE = [
    ([1.0], "answered no completion"),
    ({"choices": []}, "answered no completion"),
    ({"choices": [{}, {}]}, "answered no completion"),
    (choice(token_ids=None), "answered no token ids"),
    (choice(token_ids=[5, -1]), "answered no token ids"),
    (choice(token_ids=[5, True]), "answered no token ids"),
    (choice(logprobs=None), "answered no log-probs of its tokens"),
    (choice(logprobs={"token_logprobs": [None, 0]}), "answered no log-probs"),
    (choice(logprobs={"token_logprobs": [0.5, 0]}), "answered no log-probs"),
    (choice(logprobs={"token_logprobs": [-0.5]}), "answered 1 log-probs of 2 tokens"),
    (choice(token_ids=[], logprobs={"token_logprobs": []}), "answered 0 tokens, but 1 to 8"),
    (choice(token_ids=[5] * 9, logprobs={"token_logprobs": [-1] * 9}), "answered 9 tokens, but"),
    (choice(token_ids=[5, 999]), "answered the token 999, and the node's model has 128"),
    (choice(text="another text"), "and another text there: another text; name the service's model"),
]


@pytest.mark.parametrize(("answer", "what"), NONSENSE)
def test_an_answer_that_is_none_is_told_and_leaves_nothing_behind(
    answer: Any, what: str, served: Any, ask: Ask
) -> None:
    engine, _ = served(lambda asked: answer)

    with pytest.raises(ServiceFailed) as failed:
        generate(engine, [ask(PROMPT), ask(PROMPT, seed=1)])

    assert what in str(failed.value)
    assert (failed.value.node, failed.value.field) == ("judge", "rollout.url")
    assert engine.unfinished == 0


def test_a_service_that_fails_for_a_while_is_asked_again(
    served: Any, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coloop.data.services.service.FIRST_PAUSE_SECONDS", 0.001)
    answers = iter([(503, "later"), choice()])
    engine, _ = served(lambda asked: next(answers), retries=1)

    assert generate(engine, [ask(PROMPT)])[0].token_ids == [5, 6]


def test_a_stop_is_obeyed_while_the_service_writes(served: Any, ask: Ask) -> None:
    def hang(asked: Asked) -> Iterator[bytes]:
        web.ended.wait(200)
        yield b""

    engine, web = served(hang)
    began = time.monotonic()

    with pytest.raises(StopRequested):
        generate(engine, [ask(PROMPT)], should_stop=lambda: time.monotonic() - began > 0.1)

    assert time.monotonic() - began < 60
    assert engine.unfinished == 0


def test_a_service_that_is_not_listed_writes_nothing(
    models: Any, tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLOOP_ALLOWED_REMOTES", raising=False)
    endpoint = Endpoint(node="judge", field="rollout.url", url="http://127.0.0.1:9/v1/completions")

    with pytest.raises(ServiceFailed, match="COLOOP_ALLOWED_REMOTES=127"):
        RemoteEngine(models("qwen3"), tokenizer, endpoint=endpoint)


def test_no_more_go_at_once_than_the_node_says(served: Any, ask: Ask) -> None:
    def slow(asked: Asked) -> Any:
        time.sleep(0.02)
        return choice()

    engine, web = served(slow, concurrency=2)

    generate(engine, [ask(PROMPT, seed=seed) for seed in range(6)])

    assert web.most_at_once == 2
    assert isinstance(engine._service, Service)
