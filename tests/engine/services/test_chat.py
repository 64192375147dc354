"""Chat models by URL: requests, answers of every kind, what is remembered, what it costs."""

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from tests.engine.chat_service import judged_by, prompt_of, reply
from tests.engine.web_service import Asked, WebService, whole

from coloop.data.services import service as at_work
from coloop.data.services.chat import Answer, Chat, Question, read_answer
from coloop.data.services.endpoint import Endpoint
from coloop.data.services.replies import Nonsense, check_status
from coloop.errors import ServiceFailed
from coloop.spec.services import ChatService

Served = Callable[[Any], WebService]
Asking = Callable[..., Chat]

SCHEMA = {"type": "object", "properties": {"score": {"type": "number"}}, "required": ["score"]}


@pytest.fixture
def chat(monkeypatch: pytest.MonkeyPatch) -> Iterator[Asking]:
    """A client of a server, with pauses of milliseconds."""
    monkeypatch.setattr(at_work, "FIRST_PAUSE_SECONDS", 0.001)
    made: list[Chat] = []

    def make(web: WebService, log: Path | None = None, **settings: Any) -> Chat:
        url = f"http://{web.host}/v1"
        service = ChatService(url=url, model="judge-1", **{"retries": 0, **settings})
        endpoint = Endpoint(
            node="judge",
            field="rollout.chat.url",
            url=f"{url}/chat/completions",
            secret=service.secret,
            timeout_seconds=service.timeout_seconds,
            retries=service.retries,
            concurrency=service.concurrency,
        )
        made.append(Chat(endpoint, service, log))
        return made[-1]

    yield make
    for one in made:
        one.close()


def question(text: str = "good?", **settings: Any) -> Question:
    message = {"role": "user", "content": text}
    return Question(messages=[message], **{"temperature": 0.0, "max_tokens": 16, **settings})


def asked(chat: Chat, *questions: Question, until_failure: bool = True) -> list[Any]:
    return chat.ask(questions, until_failure=until_failure, tick=lambda done, total: None)[0]


def test_a_question_is_sent_as_the_api_of_openai_describes_it(served: Served, chat: Asking) -> None:
    web = served(judged_by(lambda text: f"said {text}"))
    judge = chat(web, options={"reasoning_effort": "low"})

    [answer] = asked(judge, question(temperature=0.5, seed=7, top_p=0.9, top_k=5, stop=["\n"]))

    assert answer == Answer(text="said good?", prompt_tokens=10, completion_tokens=5)
    assert web.asked[0].body == {
        "model": "judge-1",
        "messages": [{"role": "user", "content": "good?"}],
        "temperature": 0.5,
        "max_tokens": 16,
        "reasoning_effort": "low",
        "seed": 7,
        "top_k": 5,
        "stop": ["\n"],
        "top_p": 0.9,
    }


def test_a_schema_is_sent_as_a_response_format(served: Served, chat: Asking) -> None:
    web = served(judged_by(lambda text: "{}"))
    asked(chat(web), question(schema=SCHEMA))

    assert web.asked[0].body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "answer", "strict": True, "schema": SCHEMA},
    }


@pytest.mark.parametrize(
    ("accepts", "form"),
    [
        (lambda sent: "schema" in (sent or {}), {"type": "json_object", "schema": SCHEMA}),
        (lambda sent: sent == {"type": "json_object"}, {"type": "json_object"}),
        (lambda sent: sent is None, None),
    ],
)
@pytest.mark.parametrize("status", [400, 422, 500])
def test_a_server_that_refuses_a_response_format_gets_another_one(
    status: int, accepts: Callable[[Any], bool], form: Any, served: Served, chat: Asking
) -> None:
    def behave(one: Asked) -> Any:
        if accepts(one.body.get("response_format")):
            return reply('{"score": 3}')
        return (status, {"detail": [{"loc": ["body", "response_format"], "msg": "unknown"}]})

    web = served(behave)
    judge = chat(web)
    assert [one.text for one in asked(judge, question(schema=SCHEMA))] == ['{"score": 3}']
    before = len(web.asked)
    asked(judge, question("another", schema=SCHEMA))

    assert web.asked[-1].body.get("response_format") == form
    assert len(web.asked) == before + 1  # the form that was accepted is used from now on


@pytest.mark.parametrize(
    ("field", "message", "instead"),
    [
        ("max_tokens", "use 'max_completion_tokens' instead", {"max_completion_tokens": 16}),
        ("seed", "extra field: seed", {}),
    ],
)
def test_a_field_that_a_server_does_not_know_is_replaced(
    field: str, message: str, instead: dict[str, Any], served: Served, chat: Asking
) -> None:
    def behave(one: Asked) -> Any:
        return (400, {"error": {"message": message}}) if field in one.body else reply("fine")

    web = served(behave)
    asked(chat(web), question(seed=1, temperature=1.0))

    assert field not in web.asked[-1].body
    assert instead.items() <= web.asked[-1].body.items()


def test_another_error_of_the_request_is_told_once(served: Served, chat: Asking) -> None:
    web = served(lambda one: (400, {"error": {"message": "the prompt is too long"}}))

    with pytest.raises(ServiceFailed) as told:
        asked(chat(web, retries=3), question())
    assert str(told.value).startswith("judge: rollout.chat.url: http://127.0.0.1:")
    assert "answered status 400" in str(told.value)
    assert "the prompt is too long" in str(told.value)
    assert len(web.asked) == 1


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        (reply("half a", finish_reason="length"), Answer(text="half a", is_cut=True)),
        (reply(None, finish_reason="length"), Answer(text="", is_cut=True)),
        (
            reply(None, refusal="I can't judge that."),
            Answer(text="", refusal="I can't judge that."),
        ),
        (
            reply("", finish_reason="content_filter"),
            Answer(text="", refusal="its content filter stopped the answer"),
        ),
        (reply(None), Answer(text="", refusal="it answered an empty message")),
        (reply("no usage", usage=None), Answer(text="no usage")),
    ],
)
def test_cut_and_refused_answers_are_marked(said: Any, answer: Answer) -> None:
    read = read_answer(said)

    assert replace(read, prompt_tokens=0, completion_tokens=0) == answer


def test_an_answer_in_parts_is_one_text() -> None:
    said = reply("")
    said["choices"][0]["message"]["content"] = [{"type": "text", "text": "a"}, {"text": "b"}, {}]

    assert read_answer(said).text == "ab"


@pytest.mark.parametrize(
    ("said", "what"),
    [
        ({"choices": []}, "answered no choice"),
        ([1, 2], "answered no choice"),
        ({"error": "overloaded"}, "answered no choice"),
        ({"choices": [{"text": "as completions do"}]}, "answered a choice without a message"),
        ({"choices": [{"message": {"content": 5}}]}, "answered a message that is no text"),
    ],
)
def test_a_reply_that_is_no_chat_completion_is_told(said: Any, what: str) -> None:
    with pytest.raises(Nonsense, match=what):
        read_answer(said)


def test_text_that_is_no_json_is_told_with_node_and_field(served: Served, chat: Asking) -> None:
    web = served(lambda one: whole((200, "<html>welcome</html>")))

    with pytest.raises(ServiceFailed, match=r"judge: rollout.chat.url: .* other than JSON"):
        asked(chat(web), question())


def test_a_server_error_is_retried_and_then_told(served: Served, chat: Asking) -> None:
    web = served(lambda one: (503, "loading the model"))

    with pytest.raises(ServiceFailed, match=r"status 503.*at the last of 3 attempts"):
        asked(chat(web, retries=2), question())
    assert len(web.asked) == 3


def test_an_answer_that_is_too_slow_is_told(served: Served, chat: Asking) -> None:
    gate = threading.Event()

    def behave(one: Asked) -> Any:
        gate.wait(30)
        return reply("late")

    web = served(behave)
    try:
        with pytest.raises(ServiceFailed, match=r"within 0\.2 seconds.*raise `timeout_seconds`"):
            asked(chat(web, timeout_seconds=0.2), question())
    finally:
        gate.set()


def test_no_more_requests_than_allowed_are_sent_at_once(served: Served, chat: Asking) -> None:
    both = threading.Barrier(2)

    def behave(one: Asked) -> Any:
        both.wait(30)
        return reply(prompt_of(one))

    web = served(behave)
    texts = [f"q{number}" for number in range(6)]
    answers = asked(chat(web, concurrency=2), *map(question, texts))

    assert [one.text for one in answers] == texts
    assert web.most_at_once == 2


def test_a_failed_request_leaves_the_others_their_answers(served: Served, chat: Asking) -> None:
    def behave(one: Asked) -> Any:
        return (500, "no") if prompt_of(one) == "bad" else reply("yes")

    judge = chat(served(behave))
    questions = [question("a"), question("bad"), question("b")]
    answers, counted = judge.ask(questions, until_failure=False, tick=lambda done, total: None)

    assert [isinstance(one, ServiceFailed) for one in answers] == [False, True, False]
    assert (counted.asked, counted.failed, counted.prompt_tokens) == (2, 1, 20)


def test_equal_questions_are_asked_once(served: Served, chat: Asking) -> None:
    web = served(judged_by(lambda text: text))
    judge = chat(web)
    asked(judge, question("a"), question("a"), question("b"))
    answers, counted = judge.ask(
        [question("a"), question("c")], until_failure=True, tick=lambda done, total: None
    )

    assert sorted(prompt_of(one) for one in web.asked) == ["a", "b", "c"]
    assert [one.text for one in answers] == ["a", "c"]
    assert (counted.asked, counted.cached) == (1, 1)


def test_seeds_schemas_and_models_make_other_questions(served: Served, chat: Asking) -> None:
    web = served(judged_by(lambda text: text))
    judge = chat(web)
    asked(judge, question(seed=1), question(seed=2), question(schema=SCHEMA), question(seed=1))

    assert len(web.asked) == 3


def test_answers_are_found_again_by_a_run_that_goes_on(
    served: Served, chat: Asking, tmp_path: Path
) -> None:
    web = served(judged_by(lambda text: f"said {text}"))
    log = tmp_path / "answers" / "judge.jsonl"
    first = chat(web, log)
    before = asked(first, question("a"), question("b"))
    first.close()
    with log.open("ab") as file:
        file.write(b'{"key": "half of a line, as of a killed run')

    again = chat(web, log)
    assert asked(again, question("b"), question("a")) == before[::-1]
    assert len(web.asked) == 2
    asked(again, question("c"))

    lines = log.read_text(encoding="utf-8").splitlines()
    assert sorted(json.loads(line)["text"] for line in lines) == ["said a", "said b", "said c"]


def test_without_a_cache_every_question_is_asked(
    served: Served, chat: Asking, tmp_path: Path
) -> None:
    web = served(judged_by(lambda text: text))
    judge = chat(web, tmp_path / "log.jsonl", cache=False)
    asked(judge, question("a"))
    asked(judge, question("a"))

    assert len(web.asked) == 2


PRICES = {"input_price": 2.0, "output_price": 10.0}


def test_a_cost_is_the_price_of_its_tokens(served: Served, chat: Asking, tmp_path: Path) -> None:
    """Two answers of 10 and 5 tokens: 2 * (10 * 2 + 5 * 10) / 10^6."""
    web = served(judged_by(lambda text: text))
    log = tmp_path / "log.jsonl"
    judge = chat(web, log, **PRICES)
    asked(judge, question("a"), question("b"), question("a"))
    assert judge.total_cost == pytest.approx(140e-6)
    judge.close()

    assert chat(web, log, **PRICES).total_cost == pytest.approx(140e-6)


def test_above_its_cost_limit_nothing_is_asked_any_more(served: Served, chat: Asking) -> None:
    web = served(judged_by(lambda text: text))
    judge = chat(web, concurrency=1, max_cost=100e-6, **PRICES)
    questions = [question(text) for text in "abcd"]
    answers = asked(judge, *questions, until_failure=False)

    assert [getattr(one, "text", None) for one in answers] == ["a", "b", None, None]
    assert len(web.asked) == 2
    told = str(answers[-1])
    assert told.startswith("judge: rollout.chat.max_cost: ")
    assert "have cost 0.00014, and `max_cost` is 0.0001" in told
    assert "raise `max_cost` and resume the run" in told
    assert asked(judge, question("b"))[0].text == "b"  # what is known costs nothing


def test_a_cost_limit_needs_a_server_that_counts_tokens(served: Served, chat: Asking) -> None:
    web = served(lambda one: reply("yes", usage=None))

    with pytest.raises(ServiceFailed, match="answered without `usage`"):
        asked(chat(web, max_cost=1.0, **PRICES), question())


def test_a_secret_is_sent_and_never_told(
    served: Served, chat: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLOOP_SECRET_JUDGE", "sk-very-secret")
    web = served(lambda one: (401, {"error": "wrong key sk-very-secret"}))

    with pytest.raises(ServiceFailed, match="status 401") as told:
        asked(chat(web, secret="judge"), question())
    assert web.asked[0].headers["authorization"] == "Bearer sk-very-secret"
    assert "very-secret" not in str(told.value)


def test_a_time_to_wait_may_be_a_date() -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)

    with pytest.raises(Exception, match="status 429") as busy:
        check_status(429, [(b"Retry-After", later.encode())], b"")
    assert 80 < busy.value.seconds <= 90  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("settings", "field", "what"),
    [
        ({"max_cost": 1.0}, "max_cost", "needs `input_price` and `output_price`"),
        ({"options": {"max_tokens": 5}}, "options", "contains `max_tokens`"),
    ],
)
def test_settings_that_contradict_each_other_are_told(
    settings: dict[str, Any], field: str, what: str
) -> None:
    with pytest.raises(ValueError, match=what) as told:
        ChatService(url="http://localhost/v1", model="m", **settings)
    assert field in str(told.value.errors())  # type: ignore[attr-defined]
