"""What the page says about the sandbox for the Python of a loop."""

import pytest
from starlette.testclient import TestClient

from coloop.sandbox.inside.isolation import Isolation
from coloop.sandbox.process import WORDS, AvailableIsolation, available_isolation


def test_the_isolation_that_stands_is_told(client: TestClient) -> None:
    here = available_isolation()

    answer = client.get("/api/sandbox").json()

    words = WORDS[here.isolation]
    assert answer == {
        "isolation": here.isolation,
        "holds": words.holds,
        "remains": words.remains,
        "reason": here.reason,
    }


def test_where_none_stands_the_page_says_why(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "coloop_server.health.available_isolation",
        lambda: AvailableIsolation(Isolation.NONE, "an old kernel"),
    )

    answer = client.get("/api/sandbox").json()

    assert (answer["isolation"], answer["reason"]) == ("none", "an old kernel")
    assert "COLOOP_ALLOW_UNSANDBOXED_CODE" in answer["remains"]
