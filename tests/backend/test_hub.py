"""The hub over HTTP: what is here, what a hub on loopback has, downloads in processes of their
own."""

import json
import time
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.hub_server import Hub, hub

from coloop_server.settings import Settings

__all__ = ["hub"]

CONFIG = {
    **{"model_type": "qwen3", "vocab_size": 512, "hidden_size": 64, "head_dim": 16},
    **{"intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4},
    **{"num_key_value_heads": 2, "tie_word_embeddings": True, "max_position_embeddings": 512},
}
WEIGHTS = bytes(range(256)) * 4000
LINES = "".join(json.dumps({"prompt": f"{n}+1=", "answer": n + 1}) + "\n" for n in range(50))


@pytest.fixture
def filled(hub: Hub) -> Hub:
    files = {"config.json": json.dumps(CONFIG).encode(), "model.safetensors": WEIGHTS}
    hub.add("user/tiny", files, card={"license": "mit"})
    hub.add("user/sums", {"train.jsonl": LINES.encode()}, kind="datasets")
    return hub


def ended(client: TestClient) -> dict[str, Any]:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        [download] = client.get("/api/hub").json()["downloads"]
        if download["state"] != "running":
            return download
        time.sleep(0.1)
    raise AssertionError(download)


def test_a_model_is_described_with_what_fits(client: TestClient, filled: Hub) -> None:
    body = {"id": "user/tiny", "hardware": {"preset": "8xH100"}}

    model = client.post("/api/hub/models", json=body).json()

    assert model["license"] == "mit"
    assert model["bytes"] == len(WEIGHTS) + len(json.dumps(CONFIG))
    assert model["refusal"] is None
    # 512 * 64 embeddings; each layer 64 * (64 + 2 * 32) + 64 * 64 of attention, 3 * 64 * 128 of
    # the MLP, 2 * 64 + 2 * 16 of norms; 64 of the last norm
    assert model["parameters"] == 32768 + 2 * (8192 + 4096 + 24576 + 160) + 64
    here, loops = model["fits"]
    assert (here["is_here"], loops["is_here"]) == (True, False)
    assert loops["hardware"] == "8x H100 80 GB"
    assert [way["fits"] for way in loops["ways"]] == [True, True]


@pytest.mark.parametrize(
    ("route", "body", "says"),
    [
        ("models", {"id": "user/none"}, "there is no model user/none at http://127"),
        ("models", {"id": "../etc"}, "is no id of the hub"),
        ("models", {"id": "user/tiny", "hardware": {"preset": "9xK80"}}, "9xK80"),
        ("models", {"id": "user/tiny", "hardware": {"nodes": "x"}}, "hardware"),
        ("datasets", {"id": "user/none"}, "there is no dataset user/none"),
        ("datasets", {"id": "user/sums", "split": "test"}, "has no split test; it has train"),
        ("datasets", {"id": "--help"}, "is no id of the hub"),
    ],
)
def test_what_cannot_be_had_is_one_sentence(
    client: TestClient, filled: Hub, route: str, body: dict[str, Any], says: str
) -> None:
    answer = client.post(f"/api/hub/{route}", json=body)

    assert answer.status_code == 422
    assert says in answer.json()["message"]


def test_rows_of_a_dataset_and_its_download(
    client: TestClient, filled: Hub, settings: Settings
) -> None:
    seen = client.post("/api/hub/datasets", json={"id": "user/sums", "rows": 2}).json()

    assert seen["rows"] == [{"prompt": "0+1=", "answer": 1}, {"prompt": "1+1=", "answer": 2}]
    assert seen["parts"] == [{"config": None, "split": "train", "files": 1, "bytes": len(LINES)}]
    started = client.post("/api/hub/downloads", json={"kind": "dataset", "id": "user/sums"})
    assert started.status_code == 202
    download = ended(client)
    assert (download["state"], download["paths"]) == ("finished", ["uploads/user-sums-train.jsonl"])
    path = settings.allowed_roots[0] / download["paths"][0]
    assert path.read_text() == LINES


def test_a_download_is_cancelled_and_continues(client: TestClient, filled: Hub) -> None:
    filled.fault("trickle", "/lfs/", times=1)
    body = {"kind": "model", "id": "user/tiny"}
    key = client.post("/api/hub/downloads", json=body).json()["key"]
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        [download] = client.get("/api/hub").json()["downloads"]
        if download["done"] > len(json.dumps(CONFIG)) + 20_000:
            break
        time.sleep(0.05)
    assert client.post("/api/hub/downloads", json=body).json()["key"] == key
    assert client.delete(f"/api/hub/downloads/{key}").status_code == 204
    assert ended(client)["state"] == "cancelled"
    assert client.delete(f"/api/hub/downloads/{'0' * 16}").status_code == 404

    client.post("/api/hub/downloads", json=body)

    assert ended(client)["state"] == "finished"
    [ranged] = [asked for _, path, asked in filled.asked if path.startswith("/lfs/") and asked]
    assert ranged is not None
    assert int(ranged.removeprefix("bytes=").removesuffix("-")) > 0
    [model] = [one for one in client.get("/api/hub").json()["models"] if one["place"] == "cache"]
    assert (model["name"], model["missing"]) == ("user/tiny", None)


def test_a_download_that_fails_says_why(client: TestClient, filled: Hub) -> None:
    filled.fault("gated", "/resolve/")

    client.post("/api/hub/downloads", json={"kind": "model", "id": "user/tiny"})

    download = ended(client)
    assert download["state"] == "failed"
    assert "is gated: accept its terms at http://127" in download["message"]
