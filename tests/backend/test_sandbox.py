"""What the page says of the wall around Python of a loop."""

import pytest
from starlette.testclient import TestClient

from coloop.sandbox.inside.walls import Wall
from coloop.sandbox.process import WallHere, wall_here
from coloop.sandbox.words import WORDS


def test_the_wall_that_stands_is_told(client: TestClient) -> None:
    here = wall_here()

    answer = client.get("/api/sandbox").json()

    words = WORDS[here.wall]
    assert answer == {
        "wall": here.wall,
        "holds": words.holds,
        "remains": words.remains,
        "reason": here.reason,
    }


def test_where_none_stands_the_page_says_why(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "coloop_server.sandbox.routes.wall_here", lambda: WallHere(Wall.NONE, "an old kernel")
    )

    answer = client.get("/api/sandbox").json()

    assert (answer["wall"], answer["reason"]) == ("none", "an old kernel")
    assert "COLOOP_CODE_WITHOUT_WALL" in answer["remains"]
