"""Everything that goes wrong leaves as one JSON shape: `{"code", "message", "detail"}`.

    ServerError
    ├── BadBody        400  the body is no plain JSON
    ├── NotFound       404  there is no such loop, run, preset
    ├── NotAllowed     403  a foreign origin, a path outside the allowed roots
    ├── SignInNeeded   401  the token is missing or wrong
    ├── Conflict       409  saved by someone else, already ended, over budget without `force`
    ├── Invalid        422  the request or the spec in it; the detail has the diagnostics
    ├── TooLarge       413  the body is larger than the limit
    ├── RevisionNeeded 428  a save does not say which revision it replaces
    ├── TooMany        429  too many wrong tokens, or previews at once; with Retry-After
    └── Unavailable    503  something outside that the request needs is not there

The status belongs to the class, the code to the case. A user can never cause a 500. What the
server itself gets wrong is caught inside of the connection (`Faults`), so that the answer is whole
and the connection goes on.
"""

import logging
from http import HTTPStatus
from typing import Any, ClassVar

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from sqlalchemy.exc import OperationalError
from sqlalchemy.exc import TimeoutError as DatabaseTimeout
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from coloop.errors import ColoopError

logger = logging.getLogger(__name__)


class ErrorBody(BaseModel):
    """Body of every error response.

    `code` is a stable name of the error, e.g. `run.not_queued`. `message` says for users what was
    found, what was expected and what to change. `detail` has data for programs, e.g. the
    diagnostics of a loop or the current document of a conflict, or is null.
    """

    code: str
    message: str
    detail: Any = None


class ServerError(Exception):
    status: ClassVar[int] = 500

    def __init__(self, code: str, message: str, detail: Any = None) -> None:
        super().__init__(message)
        self.body = ErrorBody(code=code, message=message, detail=detail)


class BadBody(ServerError):
    status = 400


class NotFound(ServerError):
    status = 404


class NotAllowed(ServerError):
    status = 403


class SignInNeeded(ServerError):
    status = 401


class Conflict(ServerError):
    status = 409


class Invalid(ServerError):
    status = 422


class TooLarge(ServerError):
    status = 413


class RevisionNeeded(ServerError):
    status = 428


class TooMany(ServerError):
    status = 429


class Unavailable(ServerError):
    status = 503


SCHEMA = {"$ref": f"#/components/schemas/{ErrorBody.__name__}"}
ERRORS: dict[int | str, dict[str, Any]] = {
    status: {
        "content": {"application/json": {"schema": SCHEMA}},
        "description": HTTPStatus(status).phrase,
    }
    for status in (400, 401, 403, 404, 409, 413, 422, 428, 429, 503)
}
"""What the description says of each route. A model in its place would be built anew for each."""


def router_of(tag: str, prefix: str = "") -> APIRouter:
    """Routes of one part, below `/api`. The application adds them directly, because including a
    router in another would create all routes twice."""
    return APIRouter(prefix=f"/api{prefix}", tags=[tag], responses=ERRORS)


RETRY_SECONDS = {429: 2, 503: 2}


def error_response(error: ServerError) -> JSONResponse:
    wait = RETRY_SECONDS.get(error.status)
    headers = None if wait is None else {"retry-after": str(wait)}
    return JSONResponse(error.body.model_dump(mode="json"), error.status, headers)


async def answer_error(_: Request, error: Exception) -> JSONResponse:
    if isinstance(error, HTTPException):
        phrase = HTTPStatus(error.status_code).phrase
        code = "http." + phrase.lower().replace(" ", "_").replace("-", "_")
        body = ErrorBody(code=code, message=str(error.detail))
        return JSONResponse(body.model_dump(), status_code=error.status_code, headers=error.headers)
    return error_response(as_server_error(error))


def as_server_error(error: Exception) -> ServerError:
    match error:
        case ServerError():
            return error
        case ColoopError():
            # What the light packages refuse without a diagnostic is the request's fault, not ours.
            return Invalid(error.code, str(error))
        case RequestValidationError():
            problems = [
                {"field": ".".join(str(part) for part in problem["loc"]), "message": problem["msg"]}
                for problem in error.errors()
            ]
            first = problems[0] if problems else {"field": "body", "message": "not readable"}
            message = f"the request is invalid: {first['field']}: {first['message']}"
            return Invalid("request.invalid", message, {"errors": problems})
    # Another writer keeps the database, or it cannot be reached: nothing was changed.
    logger.warning("the database did not answer in time: %s", error)
    message = "the database is busy or cannot be reached just now; nothing was changed, try again"
    return Unavailable("database.busy", message)


class Faults:
    """ASGI middleware: turns faults of the server into complete responses."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        has_begun = False

        async def send_and_note(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self.app(scope, receive, send_and_note)
        except Exception as error:
            logger.error("%s %s failed", scope["method"], scope["path"], exc_info=error)
            if has_begun:
                raise  # half an answer can only be broken off
            message = "internal error of the server; its log has the traceback"
            await error_response(ServerError("server.fault", message))(scope, receive, send)


def add_error_handlers(app: FastAPI) -> None:
    ours = (ServerError, ColoopError, RequestValidationError, HTTPException)
    for kind in (*ours, OperationalError, DatabaseTimeout):
        app.add_exception_handler(kind, answer_error)
