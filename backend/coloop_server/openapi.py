"""The OpenAPI document, including types that no route returns: errors and messages of the live
stream.

`python -m coloop_server.openapi` prints it; the front end's types are generated from that text.
"""

import json
import sys
from typing import Any

from fastapi import FastAPI
from fastapi.encoders import jsonable_encoder
from fastapi.openapi.utils import get_openapi
from pydantic import TypeAdapter

from coloop.runtime.run_files.events import ControlRequest, RunEvent
from coloop_server.errors import ErrorBody
from coloop_server.runs.schemas import StreamMessage

TEMPLATE = "#/components/schemas/{model}"
UNIONS: dict[str, Any] = {
    "RunEvent": RunEvent,
    "StreamMessage": StreamMessage,
    "ControlRequest": ControlRequest,
}


def build_openapi(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document; built once, because it is requested often and never changes."""
    if app.openapi_schema is None:
        document = generate_openapi(app)
        schemas = document.setdefault("components", {}).setdefault("schemas", {})
        errors = ErrorBody.model_json_schema(ref_template=TEMPLATE)
        schemas[ErrorBody.__name__] = jsonable_encoder(errors, exclude_none=True)
        for name, union in UNIONS.items():
            schema = TypeAdapter(union).json_schema(mode="serialization", ref_template=TEMPLATE)
            for nested, definition in schema.pop("$defs", {}).items():
                schemas.setdefault(nested, definition)
            schemas[name] = schema
        app.openapi_schema = document
    return app.openapi_schema


def generate_openapi(app: FastAPI) -> dict[str, Any]:
    """FastAPI's own document. pydantic parses source code for it, which sometimes fails on CPython
    3.11 if another thread does the same (python/cpython#106905), so it is tried twice."""
    try:
        return get_openapi(title=app.title, version=app.version, routes=app.routes)
    except SystemError:
        return get_openapi(title=app.title, version=app.version, routes=app.routes)


def dump() -> str:
    """The document as stable text, for a file under version control."""
    from coloop_server.app import create_app
    from coloop_server.settings import Settings

    document = build_openapi(create_app(Settings(token=None)))
    document["info"]["version"] = "0"
    return json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(dump())
