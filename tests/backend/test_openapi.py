"""The API's description: complete, stable, and with the messages of the live stream in it."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest
from starlette.testclient import TestClient

from coloop.runtime.run_files.events import RunEvent
from coloop_server.openapi import dump

TICKET = Path(__file__).resolve().parents[2] / "frontend/src/api/ticket.ts"


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    read: dict[str, Any] = json.loads(dump())
    return read


def operations(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for path in document["paths"].values() for one in path.values()]


def test_every_operation_has_a_name_of_its_own(document: dict[str, Any]) -> None:
    names = [one["operationId"] for one in operations(document)]

    assert len(names) == len(set(names))
    assert {"createRun", "checkLoop", "saveLoop", "getCatalog", "previewScores"} <= set(names)
    assert all(name.isidentifier() for name in names)


def test_every_operation_declares_the_one_error_shape(document: dict[str, Any]) -> None:
    for one in operations(document):
        for status in ("401", "404", "409", "422"):
            schema = one["responses"][status]["content"]["application/json"]["schema"]
            assert schema["$ref"].endswith("/ErrorBody"), one["operationId"]


def test_events_and_stream_messages_are_tagged_unions(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]

    events = schemas["RunEvent"]["discriminator"]["mapping"]
    kinds = get_args(get_args(RunEvent)[0])
    assert set(events) == {kind.model_fields["type"].default for kind in kinds}
    messages = schemas["StreamMessage"]["discriminator"]["mapping"]
    assert set(messages) == {"hello", "events", "gauges", "ping", "end"}
    for reference in (*events.values(), *messages.values()):
        assert reference.removeprefix("#/components/schemas/") in schemas


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    def references(value: Any) -> list[str]:
        match value:
            case dict():
                own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
                return own + [one for item in value.values() for one in references(item)]
            case list():
                return [one for item in value for one in references(item)]
        return []

    for reference in references(document):
        assert reference.removeprefix("#/components/schemas/") in document["components"]["schemas"]


@pytest.mark.slow
def test_the_dump_is_the_same_each_time_and_what_is_served(
    client: TestClient, document: dict[str, Any]
) -> None:
    again = subprocess.run(
        [sys.executable, "-m", "coloop_server.openapi"], capture_output=True, text=True, check=True
    ).stdout
    served = client.get("/api/openapi.json").json()

    assert again == dump()
    served["info"]["version"] = document["info"]["version"]
    assert served == document


def test_the_docs_page_brings_all_its_files(client: TestClient) -> None:
    page = client.get("/api/docs")

    assert page.status_code == 200
    named = re.findall(r'(?:src|href)="(/api/docs/[^"]+)"', page.text)
    assert len(named) == 3
    for address in named:
        file = client.get(address)
        assert file.status_code == 200
        assert file.headers["content-type"].split(";")[0] in ("text/css", "text/javascript")
    start = client.get("/api/docs/start.js").text
    assert "/api/openapi.json" in start
    key = re.search(r'const KEY = ("[^"]+")', TICKET.read_text(encoding="utf-8"))
    assert key is not None
    assert f"localStorage.getItem({key[1]})" in start
    assert client.get("/api/docs/favicon.png").status_code == 404
    assert client.get("/api/docs/..%2fcore.py").status_code == 404
