"""Saved loops: revisions, conflicts between tabs, downloads, imports."""

from starlette.testclient import TestClient


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
