"""Reads request bodies completely, up to a size limit, and validates JSON.

Python's parser accepts more than JSON allows: NaN, lone surrogates, nesting as deep as the stack.
None of it can be stored or sent back, so it is rejected here with a 400, and routes need not
handle it.
"""

import asyncio
import json
from typing import Any, NoReturn

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from coloop_server.errors import BadBody, ServerError, TooLarge, error_response

MAX_DEPTH = 100
BODY_TIMEOUT = 60.0
"""Timeout for receiving a complete body."""
METHODS_WITH_BODY = frozenset({"POST", "PUT", "PATCH", "DELETE"})


class JsonBodyMiddleware:
    """ASGI middleware: reads the body, checks it, and passes it on."""

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self.app = app
        self.max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] not in METHODS_WITH_BODY:
            await self.app(scope, receive, send)
            return
        try:
            headers = Headers(scope=scope)
            self.check_length(headers)
            async with asyncio.timeout(BODY_TIMEOUT):
                body = await self.read(receive)
            if "json" in headers.get("content-type", "") and body:
                check_plain_json(body)
        except TimeoutError:
            slow = BadBody(
                "request.cut_off", f"the body did not arrive within {BODY_TIMEOUT:g} seconds"
            )
            await error_response(slow)(scope, receive, send)
            return
        except ServerError as error:
            await error_response(error)(scope, receive, send)
            return
        await self.app(scope, replay(body, receive), send)

    def check_length(self, headers: Headers) -> None:
        text = headers.get("content-length", "0")
        if not text.isdecimal() or len(text) > 18 or int(text) > self.max_bytes:
            raise self.too_large()

    async def read(self, receive: Receive) -> bytes:
        chunks: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise BadBody("request.cut_off", "the request ended before its body did")
            chunks.append(message.get("body", b""))
            size += len(chunks[-1])
            if size > self.max_bytes:
                raise self.too_large()
            if not message.get("more_body", False):
                return b"".join(chunks)

    def too_large(self) -> TooLarge:
        limit = f"{self.max_bytes} bytes"
        return TooLarge("request.too_large", f"the request's body is larger than {limit}")


def replay(body: bytes, receive: Receive) -> Receive:
    is_replayed = False

    async def receive_again() -> Message:
        nonlocal is_replayed
        if is_replayed:
            return await receive()
        is_replayed = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_again


def check_plain_json(body: bytes) -> None:
    try:
        value = json.loads(body.decode("utf-8"), parse_constant=refuse_constant)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise BadBody("request.not_json", f"the body is not JSON: {reason}") from error
    check_values(value)


def refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def check_values(value: Any) -> None:
    """Breadth-first, so that deep nesting cannot overflow the stack."""
    level = [value]
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for item in level:
            match item:
                case str():
                    check_text(item)
                case list():
                    below.extend(item)
                case dict():
                    below.extend(item.keys())
                    below.extend(item.values())
                case float() if item in (float("inf"), float("-inf")):
                    raise BadBody("request.not_json", "a number is larger than a float can be")
        if not below:
            return
        level = below
    raise BadBody("request.not_json", f"the body is nested deeper than {MAX_DEPTH} levels")


def check_text(text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise BadBody("request.not_json", "a string contains a lone surrogate") from error
    if "\0" in text:
        raise BadBody("request.not_json", "a string contains a null character")
