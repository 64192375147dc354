"""Building blocks: those that ship, and those of one's own."""

from typing import Any

import pytest
from starlette.testclient import TestClient

from coloop.spec import blocks

PARTS: dict[str, Any] = {
    "nodes": {
        "solver": {"kind": "actor", "rollout": {"temperature": 1.0e-6}},
        "exact": {"kind": "reward", "source": {"type": "builtin", "name": "exact_match"}},
    },
    "edges": ["solver.rollouts -> exact.rollouts"],
    "layout": {"solver": [0, 0], "exact": [400, 20]},
    "open": {"solver.prompts": "Rows"},
}


def test_the_blocks_that_ship_come_first(client: TestClient) -> None:
    found = client.get("/api/blocks").json()

    assert [one["id"] for one in found] == [block.name for block in blocks.list_blocks()]
    assert not any(one["is_own"] for one in found)
    assert all(one["nodes"] and one["title"] and one["tags"] for one in found)


def test_a_block_of_ones_own_is_saved_listed_and_deleted(client: TestClient) -> None:
    made = client.post("/api/blocks", json={"title": "  My solver ", **PARTS})

    assert made.status_code == 201
    own = made.json()
    assert own == {
        "id": own["id"],
        "title": "My solver",
        "description": "",
        "is_own": True,
        "tags": [],
        **PARTS,
    }
    assert client.get("/api/blocks").json()[-1] == own
    assert client.delete(f"/api/blocks/{own['id']}").status_code == 204
    assert not any(one["is_own"] for one in client.get("/api/blocks").json())
    assert client.delete(f"/api/blocks/{own['id']}").json()["code"] == "block.not_found"


def test_a_block_that_ships_is_not_deleted(client: TestClient) -> None:
    name = blocks.list_blocks()[0].name

    assert client.delete(f"/api/blocks/{name}").status_code == 404


@pytest.mark.parametrize(
    "wrong",
    [
        {"title": " "},
        {"nodes": {}},
        {"nodes": {"solver": {"rollout": {}}}},
        {"nodes": {"solver": 3}},
        {"schedule": {"steps": 3}},
    ],
)
def test_what_is_no_block_is_refused(client: TestClient, wrong: dict[str, Any]) -> None:
    answer = client.post("/api/blocks", json={"title": "Mine", **PARTS, **wrong})

    assert answer.status_code == 422
    assert len(client.get("/api/blocks").json()) == len(blocks.list_blocks())
