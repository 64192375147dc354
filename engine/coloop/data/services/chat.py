"""Asks a chat model by URL: `POST <url>/chat/completions`, as the API of OpenAI describes it.

    questions -> known answers (the run's log) -> Service -> answer, or the request's ServiceFailed
                                                    └── fields that the server refuses are replaced

Every answer is appended to a log in the run's folder. It is the cache, which a resumed run reads
again, and the account of tokens, from which the cost of the whole run is computed.
"""

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Lock
from typing import IO, Any, Final

from coloop.data.services.endpoint import Endpoint
from coloop.data.services.replies import Answered, Busy, Nonsense, shown
from coloop.data.services.service import Service, collect
from coloop.errors import ServiceFailed
from coloop.spec.services import ChatService

HINT: Final = "it should answer as `/chat/completions` of OpenAI does: one choice with a message"
CUT: Final = frozenset({"length", "max_tokens"})
"""Values of `finish_reason` of an answer that the limit of tokens cut off."""
REFUSED: Final = "content_filter"

Tick = Callable[[int, int], None]
"""Called with the number of finished questions and their total."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One request."""

    messages: Sequence[Mapping[str, Any]]
    temperature: float
    max_tokens: int
    seed: int | None = None
    """None: greedy, or whatever the server draws."""
    top_p: float = 1.0
    top_k: int | None = None
    stop: Sequence[str] = ()
    schema: Mapping[str, Any] | None = None
    """JSON Schema of the answer; None: any text."""

    def body(self, service: ChatService) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": service.model,
            "messages": [dict(message) for message in self.messages],
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            **service.options,
        }
        optional = {"seed": self.seed, "top_k": self.top_k, "stop": list(self.stop) or None}
        body |= {name: value for name, value in optional.items() if value is not None}
        if self.top_p < 1.0:
            body["top_p"] = self.top_p
        if self.schema is not None:
            body["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "answer", "strict": True, "schema": dict(self.schema)},
            }
        return body


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    text: str
    """Empty if the model refused to answer."""
    is_cut: bool = False
    """Whether it ended at the limit of tokens."""
    refusal: str | None = None
    """Why the model refused; None: it answered."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    """Both as the server counted them; 0 if it does not say."""


@dataclass(slots=True)
class Counted:
    """What one call of `ask` needed."""

    asked: int = 0
    """Answers that a request brought."""
    cached: int = 0
    failed: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    """Time that all requests together took, side by side."""


class Chat:
    """A chat model by URL. Calls of `ask` may come from several threads."""

    def __init__(self, endpoint: Endpoint, service: ChatService, log: Path | None = None) -> None:
        """`log`: file of the answers; None: they are kept in memory. Raises ServiceFailed if the
        service may not be called."""
        self._settings = service
        self._forms = Forms()
        self._service = Service(endpoint, gate=self._gate, amend=self._forms.amended)
        self._log = Log(log, endpoint.target, service)

    @property
    def total_cost(self) -> float:
        """Cost of all answers of the run, those before it was resumed included."""
        return self._log.cost(self._settings)

    @property
    def is_over_cost(self) -> bool:
        most = self._settings.max_cost
        return most is not None and self.total_cost >= most

    def ask(
        self, questions: Sequence[Question], *, until_failure: bool, tick: Tick
    ) -> tuple[list[Answer | ServiceFailed], Counted]:
        """The answer to each question, or why there is none. Equal questions are asked once.

        Args:
            until_failure: the first failure cancels the other requests, and is raised.
            tick: called with the progress; what it raises ends the call.
        """
        bodies = [question.body(self._settings) for question in questions]
        keys = [self._log.key(body) for body in bodies]
        first = {key: index for index, key in reversed([*enumerate(keys)])}
        known = {key: answer for key in first if (answer := self._log.get(key)) is not None}
        counted = Counted(cached=sum(key in known for key in keys))
        asked = [key for key in dict.fromkeys(keys) if key not in known]
        futures: list[Future[Answer]] = [
            self._service.ask(self._forms.of(bodies[first[key]]), partial(self._take, key))
            for key in asked
        ]
        begun, before = time.monotonic(), len(questions) - len(asked)
        collect(
            futures,
            lambda done: tick(before + done, len(questions)),
            until_failure=until_failure,
        )
        counted.seconds = time.monotonic() - begun
        found: dict[str, Answer | ServiceFailed] = {**known}
        for key, future in zip(asked, futures, strict=True):
            error = None if future.cancelled() else future.exception()
            if isinstance(error, ServiceFailed):
                if until_failure:
                    raise error
                found[key], counted.failed = error, counted.failed + 1
            elif error is not None:
                raise error
            elif not future.cancelled():
                answer = found[key] = future.result()
                counted.asked += 1
                counted.prompt_tokens += answer.prompt_tokens
                counted.completion_tokens += answer.completion_tokens
        return [found[key] for key in keys], counted

    def close(self) -> None:
        self._service.close()
        self._log.close()

    def _gate(self) -> None:
        """Called before each request; raises ServiceFailed once the run has cost too much."""
        if self.is_over_cost:
            most = self._settings.max_cost
            raise self._service.endpoint.failure(
                f"is not asked any more: its answers have cost {self.total_cost:.4g}, and "
                f"`max_cost` is {most:g}",
                "raise `max_cost` and resume the run; answers that were paid for are kept",
                field="max_cost",
            )

    def _take(self, key: str, reply: Any) -> Answer:
        answer = read_answer(reply)
        if self._settings.max_cost is not None and not answer.prompt_tokens:
            raise Nonsense(
                "answered without `usage`, so the cost of its answers is unknown",
                "remove `max_cost`, or let the server count tokens",
            )
        self._log.put(key, answer)
        return answer


def read_answer(reply: Any) -> Answer:
    """The answer in a reply; raises Nonsense for one without a choice."""
    choices = reply.get("choices") if isinstance(reply, dict) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise Nonsense("answered no choice", HINT, shown(reply))
    message = choices[0].get("message")
    if not isinstance(message, dict):
        raise Nonsense("answered a choice without a message", HINT, shown(choices[0]))
    content, refusal = message.get("content"), message.get("refusal")
    if isinstance(content, list):  # parts, as some providers answer
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        content = "".join(part for part in parts if isinstance(part, str))
    if content is not None and not isinstance(content, str):
        raise Nonsense("answered a message that is no text", HINT, shown(content))
    reason = choices[0].get("finish_reason")
    usage = reply.get("usage")
    if not isinstance(refusal, str) or not refusal:
        refusal = None
        if reason == REFUSED:
            refusal = "its content filter stopped the answer"
        elif not content and reason not in CUT:
            refusal = "it answered an empty message"
    return Answer(
        text=content or "",
        is_cut=reason in CUT,
        refusal=refusal,
        prompt_tokens=_count(usage, "prompt_tokens"),
        completion_tokens=_count(usage, "completion_tokens"),
    )


def _count(usage: Any, name: str) -> int:
    value = usage.get(name) if isinstance(usage, dict) else None
    return value if type(value) is int and 0 <= value < 2**53 else 0


# Fields that not every server takes. A server that refuses a request because of one of them gets it
# in another form, and so do all later requests once one in that form was accepted.
#
#     response_format   json_schema -> json_object with a schema (llama-cpp-python) -> json_object
#                       -> none: the prompt has to ask for JSON
#     max_tokens        max_completion_tokens (newer models of OpenAI)
#     seed              none


FORMATS: Final = ("json_schema", "json_object, schema", "json_object", "none")


@dataclass(slots=True)
class Forms:
    """The forms of a server's requests, as far as they are known."""

    answer_format: int = 0
    """Index in FORMATS."""
    has_seed: bool = True
    is_newer: bool = False
    """Whether the limit of tokens is called `max_completion_tokens`."""

    def of(self, body: dict[str, Any]) -> dict[str, Any]:
        """The body in the form that the server takes."""
        if not self.has_seed:
            body = {key: value for key, value in body.items() if key != "seed"}
        if self.is_newer:
            body = _newer(body)
        for _ in range(self.answer_format):
            body = _other_format(body)
        return body

    def amended(self, body: dict[str, Any], told: Answered) -> dict[str, Any] | None:
        """Another form of a body that the server refused; None if there is none to try."""
        names: tuple[str, ...] = ("response_format", "json_schema", "schema")
        if isinstance(told, Busy):  # llama-cpp-python refuses a field with status 500
            names = ("response_format",)
        if "response_format" in body and told.mentions(*names):
            self.answer_format = max(self.answer_format, _format_of(body) + 1)
            return _other_format(body)
        if isinstance(told, Busy):
            return None
        if "max_tokens" in body and told.mentions("max_completion_tokens"):
            self.is_newer = True
            return _newer(body)
        if "seed" in body and told.mentions("seed"):
            self.has_seed = False
            return {key: value for key, value in body.items() if key != "seed"}
        return None


def _newer(body: dict[str, Any]) -> dict[str, Any]:
    return {"max_completion_tokens" if key == "max_tokens" else key: v for key, v in body.items()}


def _format_of(body: Mapping[str, Any]) -> int:
    sent = body.get("response_format")
    if sent is None:
        return FORMATS.index("none")
    if sent["type"] == "json_schema":
        return 0
    return 1 if "schema" in sent else 2


def _other_format(body: dict[str, Any]) -> dict[str, Any]:
    """The body with the next of FORMATS."""
    rest = {key: value for key, value in body.items() if key != "response_format"}
    match _format_of(body):
        case 0:
            schema = body["response_format"]["json_schema"]["schema"]
            return {**rest, "response_format": {"type": "json_object", "schema": schema}}
        case 1:
            return {**rest, "response_format": {"type": "json_object"}}
    return rest


@dataclass(eq=False)
class Log:
    """The answers of a node in the order in which they came, a line of JSON each, and where each is
    found by the content of its request. Without a file they are kept in memory."""

    path: Path | None
    target: str
    service: ChatService
    prompt_tokens: int = 0
    completion_tokens: int = 0
    _known: dict[str, Answer | int] = field(default_factory=dict, init=False)
    """By key, the answer or the position of its line."""
    _file: IO[bytes] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._lock = Lock()
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self.path.open("a+b")
        end = 0
        for position, line in _lines(self._file):
            end = position + len(line)
            key, answer = _of_line(line)
            self._remember(key, answer, position)
        self._file.truncate(end)  # the rest of a line that a killed run was writing
        self._file.seek(0, 2)

    def key(self, body: Mapping[str, Any]) -> str:
        text = json.dumps([self.target, body], sort_keys=True, allow_nan=False)
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()

    def get(self, key: str) -> Answer | None:
        if not self.service.cache:
            return None
        with self._lock:
            known = self._known.get(key)
            if not isinstance(known, int):
                return known
            assert self._file is not None
            self._file.seek(known)
            answer = _of_line(self._file.readline())[1]
            self._file.seek(0, 2)
            return answer

    def put(self, key: str, answer: Answer) -> None:
        with self._lock:
            position = 0
            if self._file is not None:
                position = self._file.seek(0, 2)
                self._file.write(_line(key, answer))
                self._file.flush()
            self._remember(key, answer, position)

    def cost(self, service: ChatService) -> float:
        with self._lock:
            return service.cost(self.prompt_tokens, self.completion_tokens)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _remember(self, key: str, answer: Answer, position: int) -> None:
        self.prompt_tokens += answer.prompt_tokens
        self.completion_tokens += answer.completion_tokens
        self._known[key] = answer if self._file is None else position


def _lines(file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """(position, line) of each complete line."""
    file.seek(0)
    position = 0
    for line in file:
        if not line.endswith(b"\n"):
            return
        with suppress(ValueError, KeyError, TypeError):
            _of_line(line)
            yield position, line
        position += len(line)


def _line(key: str, answer: Answer) -> bytes:
    fields: dict[str, Any] = {
        "key": key,
        "text": answer.text,
        "is_cut": answer.is_cut,
        "refusal": answer.refusal,
        "prompt_tokens": answer.prompt_tokens,
        "completion_tokens": answer.completion_tokens,
    }
    return json.dumps(fields).encode() + b"\n"


def _of_line(line: bytes) -> tuple[str, Answer]:
    fields = json.loads(line)
    return fields.pop("key"), Answer(**fields)
