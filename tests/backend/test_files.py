"""Data files that a user adds: where they are written, under which names, and what is refused."""

import base64
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from coloop_server.settings import Settings


def upload(client: TestClient, name: str, content: bytes) -> Any:
    body = {"name": name, "content": base64.b64encode(content).decode()}
    return client.post("/api/files", json=body)


def test_a_file_is_stored_where_datasets_read_it(client: TestClient, settings: Settings) -> None:
    rows = b'{"prompt": "1+1=", "answer": "2"}\n' * 3

    stored = upload(client, "C:\\data\\my rows.jsonl", rows)

    assert stored.status_code == 201
    assert stored.json() == {"path": "uploads/my-rows.jsonl", "bytes": len(rows)}
    path = settings.allowed_roots[0] / "uploads" / "my-rows.jsonl"
    assert path.read_bytes() == rows
    assert path.stat().st_mode & 0o077 == 0
    loop = (
        "coloop: 1\nname: x\nnodes:\n  data: {kind: dataset, source: {type: file, "
        "path: uploads/my-rows.jsonl}}\nedges: []\nschedule: {steps: 1}\n"
    )
    page = client.post("/api/previews/rows", json={"yaml": loop, "node": "data"}).json()
    assert page.get("total") == 3, page
    assert [column["name"] for column in page["columns"]] == ["prompt", "answer"]


def test_a_file_is_never_overwritten(client: TestClient) -> None:
    names = [
        upload(client, "a.jsonl.gz", content).json()["path"]
        for content in (b"one", b"two", b"one", b"two", b"three")
    ]

    assert names == [
        f"uploads/{name}"
        for name in ("a.jsonl.gz", "a-2.jsonl.gz", "a.jsonl.gz", "a-2.jsonl.gz", "a-3.jsonl.gz")
    ]


@pytest.mark.parametrize("name", ["notes", "run.py", ".jsonl", "..", "a.parquet.gz", "spec.yaml"])
def test_what_is_no_data_is_refused(client: TestClient, settings: Settings, name: str) -> None:
    answer = upload(client, name, b"x")

    assert answer.status_code == 422
    assert answer.json()["code"] == "file.unknown_format"
    assert not list((settings.allowed_roots[0]).glob("uploads/*"))


@pytest.mark.parametrize("name", ["../../etc/a.csv", "/etc/a.csv", "..\\a.csv"])
def test_folders_of_a_name_are_dropped(client: TestClient, name: str) -> None:
    assert upload(client, name, b"x").json()["path"] == "uploads/a.csv"


def test_no_link_is_followed(client: TestClient, settings: Settings, tmp_path: Path) -> None:
    root = settings.allowed_roots[0]
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir()
    root.mkdir(parents=True, exist_ok=True)
    (root / "uploads").symlink_to(outside)

    refused = upload(client, "a.csv", b"x")

    assert refused.status_code == 403
    assert refused.json()["code"] == "path.outside"
    (root / "uploads").unlink()
    (root / "uploads").mkdir()
    (root / "uploads" / "a.csv").symlink_to(outside / "a.csv")
    assert upload(client, "a.csv", b"x").json()["path"] == "uploads/a-2.csv"
    assert not list(outside.iterdir())


def test_bytes_that_are_no_base64_are_refused(client: TestClient) -> None:
    assert client.post("/api/files", json={"name": "a.csv", "content": "§"}).status_code == 422
