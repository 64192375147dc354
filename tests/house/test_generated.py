"""What the front end has from the service is fresh: its API, catalog and presets."""

import json
from pathlib import Path

import pytest

from coloop.spec.catalog import catalog
from coloop.spec.presets import list_loops

FRONTEND = Path(__file__).resolve().parents[2] / "frontend"
RENEW = "run `npm run typegen` in frontend/ and commit the result"


def test_openapi_json_is_what_the_service_says() -> None:
    openapi = pytest.importorskip("coloop_server.openapi", reason="the server is not installed")
    written = json.loads((FRONTEND / "openapi.json").read_text(encoding="utf-8"))

    assert written == json.loads(openapi.dump()), RENEW


def test_the_catalog_of_the_front_ends_tests_is_the_catalog() -> None:
    path = FRONTEND / "tests" / "fixtures" / "catalog.json"
    written = json.loads(path.read_text(encoding="utf-8"))

    assert written == json.loads(catalog().model_dump_json()), RENEW


def test_the_presets_of_the_front_ends_tests_are_the_presets() -> None:
    language = pytest.importorskip("coloop_server.language", reason="the server is not installed")
    path = FRONTEND / "tests" / "fixtures" / "presets.json"
    written = json.loads(path.read_text(encoding="utf-8"))

    read = {loop.name: language.document(loop.path.read_text("utf-8")) for loop in list_loops()}
    assert written == read, RENEW
