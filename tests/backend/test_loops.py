"""Saved loops: revisions, conflicts between tabs, downloads, imports."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from starlette.testclient import TestClient

from coloop_server.loops import service


def test_a_loop_is_created_read_listed_and_deleted(client: TestClient, loop: str) -> None:
    made = client.post("/api/loops", json={"yaml": loop})

    assert made.status_code == 201
    body = made.json()
    assert body["name"] == "grpo-arithmetic"
    assert body["version"] == 1
    assert body["yaml"] == loop
    assert body["spec"]["nodes"]["actor"]["kind"] == "actor"
    assert made.headers["etag"] == f'"{body["revision"]}"'
    assert client.get(f"/api/loops/{body['id']}").json() == body
    assert [entry["id"] for entry in client.get("/api/loops").json()] == [body["id"]]
    assert client.delete(f"/api/loops/{body['id']}").status_code == 204
    assert client.get(f"/api/loops/{body['id']}").json()["code"] == "loop.not_found"


def test_every_save_is_a_version_that_can_be_read_again(client: TestClient, loop: str) -> None:
    made = client.post("/api/loops", json={"yaml": loop}).json()
    path = f"/api/loops/{made['id']}"
    changed = loop.replace("steps: 3}", "steps: 4}")

    saved = client.put(
        path, json={"yaml": changed, "name": "Mine"}, headers={"If-Match": made["revision"]}
    ).json()

    assert saved["version"] == 2
    assert saved["name"] == "Mine"
    assert saved["revision"] != made["revision"]
    versions = client.get(f"{path}/versions").json()
    assert [entry["version"] for entry in versions] == [2, 1]
    assert client.get(f"{path}/versions/1").json()["yaml"] == loop
    assert client.get(f"{path}/versions/9").status_code == 404


def test_the_second_of_two_tabs_is_told_and_nothing_is_lost(client: TestClient, loop: str) -> None:
    made = client.post("/api/loops", json={"yaml": loop}).json()
    path = f"/api/loops/{made['id']}"
    seen = {"If-Match": f'"{made["revision"]}"'}
    first = client.put(path, json={"yaml": loop + "# first\n"}, headers=seen)

    second = client.put(path, json={"yaml": loop + "# second\n"}, headers=seen)

    assert first.status_code == 200
    assert second.status_code == 409
    assert second.json()["code"] == "loop.stale"
    assert second.json()["detail"]["yaml"].endswith("# first\n")
    assert client.get(path).json() == first.json()
    assert len(client.get(f"{path}/versions").json()) == 2


def test_a_save_says_what_it_replaces(client: TestClient, loop: str) -> None:
    made = client.post("/api/loops", json={"yaml": loop}).json()

    answer = client.put(f"/api/loops/{made['id']}", json={"yaml": loop})

    assert answer.status_code == 428
    assert answer.json()["code"] == "loop.revision_needed"


def test_saving_the_same_again_is_no_new_version(client: TestClient, loop: str) -> None:
    made = client.post("/api/loops", json={"yaml": loop}).json()
    headers = {"If-Match": made["revision"]}

    again = client.put(f"/api/loops/{made['id']}", json={"yaml": loop}, headers=headers)

    assert again.json() == made


def test_a_draft_with_errors_is_kept_and_unreadable_text_is_refused(
    client: TestClient, loop: str
) -> None:
    draft = loop.replace("kind: actor", "kind: acto")

    kept = client.post("/api/loops", json={"yaml": draft})
    refused = client.post("/api/loops", json={"yaml": "nodes: [unclosed"})

    assert kept.status_code == 201
    assert kept.json()["spec"]["nodes"]["actor"]["kind"] == "acto"
    assert refused.status_code == 422
    diagnostic = refused.json()["detail"]["diagnostics"][0]
    assert diagnostic["code"].startswith("yaml.")
    assert diagnostic["line"] is not None


def test_a_download_is_the_text_under_a_name_that_is_safe(client: TestClient, loop: str) -> None:
    name = '../../etc/"Überraschung"\r\nX-Evil: 1'
    made = client.post("/api/loops", json={"yaml": loop, "name": name}).json()

    answer = client.get(f"/api/loops/{made['id']}/yaml")

    assert answer.text == loop
    assert answer.headers["content-disposition"] == (
        'attachment; filename="etc-Uberraschung-X-Evil-1.yaml"'
    )
    assert "x-evil" not in answer.headers
    assert made["name"] == '../../etc/"Überraschung" X-Evil: 1'


def test_an_import_makes_a_new_loop_each_time(client: TestClient, loop: str) -> None:
    one = client.post("/api/loops/import", json={"yaml": loop})
    two = client.post("/api/loops/import", json={"yaml": loop})

    assert one.status_code == two.status_code == 201
    assert one.json()["id"] != two.json()["id"]


def save(client: TestClient, loop_id: str, yaml: str, **more: str) -> dict[str, Any]:
    path = f"/api/loops/{loop_id}"
    headers = {"If-Match": client.get(path).json()["revision"]}
    saved: dict[str, Any] = client.put(path, json={"yaml": yaml, **more}, headers=headers).json()
    return saved


def texts(client: TestClient, loop_id: str) -> list[str]:
    """What is kept of a loop, the oldest first."""
    path = f"/api/loops/{loop_id}/versions"
    numbers = [one["version"] for one in client.get(f"{path}?limit=1000").json()]
    return [client.get(f"{path}/{number}").json()["yaml"] for number in reversed(numbers)]


@pytest.mark.slow
def test_two_hundred_edits_of_an_edit_session_are_one_version(
    client: TestClient, loop: str
) -> None:
    made = client.post("/api/loops", json={"yaml": loop}).json()

    for number in range(200):
        last = save(client, made["id"], f"{loop}# {number}\n", edit_session="tab")

    assert last["version"] == 2
    assert texts(client, made["id"]) == [loop, f"{loop}# 199\n"]
    versions = client.get(f"/api/loops/{made['id']}/versions").json()
    assert [(one["reason"], one["is_kept"]) for one in versions] == [
        ("edited", False),
        ("created", True),
    ]
    assert versions[0]["revision"] == last["revision"]
    started, saved = (datetime.fromisoformat(versions[0][at]) for at in ("started_at", "saved_at"))
    assert started < saved


def test_another_tab_and_another_day_are_versions_of_their_own(
    client: TestClient, loop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = client.post("/api/loops", json={"yaml": loop}).json()
    save(client, made["id"], loop + "# one\n", edit_session="tab")
    save(client, made["id"], loop + "# two\n", edit_session="other tab")
    save(client, made["id"], loop + "# three\n", edit_session="tab")
    monkeypatch.setattr(service, "EDIT_SESSION", timedelta(0))
    save(client, made["id"], loop + "# four\n", edit_session="tab")

    assert [text[len(loop) :] for text in texts(client, made["id"])] == [
        "",
        "# one\n",
        "# two\n",
        "# three\n",
        "# four\n",
    ]


def test_what_a_label_or_a_run_holds_on_to_is_not_written_over(
    client: TestClient, loop: str, run_until: Callable[..., Any]
) -> None:
    made = client.post("/api/loops", json={"yaml": loop}).json()
    path = f"/api/loops/{made['id']}/versions"
    save(client, made["id"], loop + "# named\n", edit_session="tab")
    named = client.patch(f"{path}/2", json={"label": " good\nstart "}).json()
    ran = save(client, made["id"], loop + "# ran\n", edit_session="tab")
    body = {"yaml": ran["yaml"], "loop_id": made["id"]}
    run = client.post("/api/runs", json=body).json()
    save(client, made["id"], loop + "# later\n", edit_session="tab")

    assert (named["label"], named["is_kept"]) == ("good start", True)
    assert run["loop_version"] == 3
    versions = client.get(path).json()
    assert [(one["version"], one["runs"], one["is_kept"]) for one in versions] == [
        (4, 0, False),
        (3, 1, True),
        (2, 0, True),
        (1, 0, True),
    ]
    run_until(run["id"], "finished")
    client.delete(f"/api/runs/{run['id']}")
    assert [one["is_kept"] for one in client.get(path).json()] == [False, False, True, True]
    assert client.patch(f"{path}/2", json={"label": None}).json()["is_kept"] is False


def test_of_versions_that_nothing_holds_on_to_the_newest_stay(
    client: TestClient, loop: str
) -> None:
    made = client.post("/api/loops", json={"yaml": loop}).json()
    path = f"/api/loops/{made['id']}/versions"
    for number in range(2, 61):
        save(client, made["id"], f"{loop}# {number}\n")
        if number == 4:
            client.patch(f"{path}/4", json={"label": "keep me"})

    kept = [one["version"] for one in client.get(path).json()]

    assert kept == [*range(60, 10, -1), 4, 1]
    assert len(kept) - 2 == service.KEPT_VERSIONS
    page = client.get(f"{path}?limit=2&before=11")
    assert [one["version"] for one in page.json()] == [4, 1]
    assert page.headers["x-total-count"] == str(len(kept))


def test_a_version_is_restored_and_what_was_there_stays(client: TestClient, loop: str) -> None:
    made = client.post("/api/loops", json={"yaml": loop}).json()
    path = f"/api/loops/{made['id']}"
    now = save(client, made["id"], loop + "# later\n", edit_session="tab")

    stale = client.post(f"{path}/versions/1/restore", headers={"If-Match": made["revision"]})
    restored = client.post(f"{path}/versions/1/restore", headers={"If-Match": now["revision"]})
    after = save(client, made["id"], loop + "# again\n", edit_session="tab")

    assert stale.status_code == 409
    assert restored.json()["yaml"] == loop
    assert restored.headers["etag"] == f'"{restored.json()["revision"]}"'
    assert after["version"] == 4
    versions = client.get(f"{path}/versions").json()
    assert [(one["reason"], one["restored_from"]) for one in versions] == [
        ("edited", None),
        ("restored", 1),
        ("edited", None),
        ("created", None),
    ]
    assert client.post(f"{path}/versions/9/restore", headers={"If-Match": "*"}).status_code == 404


def test_versions_are_compared_line_by_line(client: TestClient, loop: str) -> None:
    made = client.post("/api/loops", json={"yaml": loop}).json()
    path = f"/api/loops/{made['id']}/versions"
    save(client, made["id"], loop.replace("schedule: {steps: 3}", "schedule: {steps: 4}"))

    lines = client.get(f"{path}/1/diff").json()["lines"]

    changed = [(one["kind"], one["text"]) for one in lines if one["kind"] in ("added", "removed")]
    assert changed == [("removed", "schedule: {steps: 3}"), ("added", "schedule: {steps: 4}")]
    assert lines[0]["kind"] == "gap"
    assert client.get(f"{path}/1/diff?to=2").json()["lines"] == lines
    assert client.get(f"{path}/2/diff").json()["lines"] == []
    assert client.get(f"{path}/1/diff?to=7").status_code == 404


def test_a_page_makes_the_loop_whose_address_it_chose(client: TestClient, loop: str) -> None:
    new = {"If-None-Match": "*"}

    made = client.put("/api/loops/chosen-1", json={"yaml": loop}, headers=new)
    again = client.put("/api/loops/chosen-1", json={"yaml": loop + "#\n"}, headers=new)
    odd = client.put("/api/loops/..%20x", json={"yaml": loop}, headers=new)

    assert made.json()["id"] == "chosen-1"
    assert made.json()["version"] == 1
    assert again.status_code == 409
    assert again.json()["detail"]["yaml"] == loop
    assert odd.status_code in (404, 422)


def test_a_node_is_found_by_name_kind_and_model_in_all_loops(client: TestClient, loop: str) -> None:
    first = client.post("/api/loops", json={"yaml": loop}).json()
    other = loop.replace("name: grpo-arithmetic", "name: second").replace("exact", "judge_of_all")
    second = client.post("/api/loops", json={"yaml": other}).json()

    def found(words: str, limit: int = 20) -> list[tuple[str, str | None]]:
        hits = client.get("/api/loops/search", params={"q": words, "limit": limit}).json()
        return [(hit["loop"], hit["node"]) for hit in hits]

    assert found("judge of") == [(second["id"], "judge_of_all")]
    assert found("TINY-qwen3 actor") == [(second["id"], "actor"), (first["id"], "actor")]
    assert found("arithmetic")[0] == (first["id"], None)
    assert found("second") == [(second["id"], None)]
    assert found("actor", limit=1) == [(second["id"], "actor")]
    assert found("100%") == []
    assert client.get("/api/loops/search").status_code == 422


def test_a_draft_that_is_no_whole_loop_is_found_too(client: TestClient) -> None:
    made = client.post("/api/loops", json={"yaml": "coloop: 1\nnodes: {half: {kind: dataset}}\n"})

    hits = client.get("/api/loops/search", params={"q": "half"}).json()

    assert hits == [
        {
            "loop": made.json()["id"],
            "loop_name": "untitled",
            "node": "half",
            "kind": "dataset",
            "model": None,
        }
    ]


@pytest.mark.parametrize(
    ("nodes", "is_found"),
    [
        ("{one: {kind: actor}, two: {kind: critic}}", False),
        ("{one: {kind: actor, model: critic-of-all}}", True),
        ("\n  one: {kind: actor}\n  # critic\n  two: {kind: critic}", False),
        ("\n    one:\n      kind: actor\n      model: {type: hub, path: critic/x}", True),
        ("\n  one:\n    kind: actor\n    model:\n      type: hub\n      path: a/critic", True),
        ("\n  one:\n    model: {type: scratch}\n    kind: actor\n    note: no critic", False),
        ("\n  first: {kind: critic, model: &m critic}\n  one: {kind: actor, model: *m}", True),
    ],
)
def test_all_words_of_a_search_are_of_one_node(
    client: TestClient, nodes: str, is_found: bool
) -> None:
    client.post("/api/loops", json={"yaml": f"coloop: 1\nnodes: {nodes}\n"})

    hits = client.get("/api/loops/search", params={"q": "critic actor"}).json()

    assert [hit["node"] for hit in hits] == (["one"] if is_found else [])
