"""One edit of a loop in one request: written, checked, saved."""

from typing import Any

import pytest
from starlette.testclient import TestClient

from coloop.spec import io
from coloop.spec.graph import LoopSpec
from coloop.spec.text import reader

RATE = "lr: 3.0e-4"


@pytest.fixture
def made(client: TestClient, loop: str) -> dict[str, Any]:
    answer: dict[str, Any] = client.post("/api/loops", json={"yaml": loop}).json()
    return answer


def address(made: dict[str, Any]) -> str:
    return f"/api/loops/{made['id']}"


def edit(client: TestClient, made: dict[str, Any], **body: Any) -> Any:
    whole = {"base": made["revision"], "yaml": made["yaml"], **body}
    return client.put(f"{address(made)}/document", json=whole)


def seeded(made: dict[str, Any], seed: object) -> dict[str, Any]:
    return {**made["spec"], "run": {"seed": seed}}


def test_a_changed_loop_is_written_checked_and_saved(
    client: TestClient, made: dict[str, Any]
) -> None:
    answer = edit(client, made, spec=seeded(made, 7))

    assert answer.status_code == 200
    saved = answer.json()
    assert set(saved) == {"revision", "yaml", "spec", "check"}
    assert saved["spec"] is None
    assert saved["revision"] != made["revision"]
    assert answer.headers["etag"] == f'"{saved["revision"]}"'
    now = client.get(address(made)).json()
    assert (now["yaml"], now["revision"]) == (saved["yaml"], saved["revision"])
    assert now["spec"]["run"] == {"seed": 7}
    assert saved["check"] == client.post("/api/check", json={"yaml": saved["yaml"]}).json()


def test_comments_and_number_formats_are_kept_as_by_a_patch(
    client: TestClient, made: dict[str, Any]
) -> None:
    spec = seeded(made, 7)

    saved = edit(client, made, spec=spec).json()

    patched = client.post("/api/spec/patch", json={"yaml": made["yaml"], "spec": spec}).json()
    assert saved["yaml"] == patched["yaml"]
    assert "# A loop that a person wrote." in saved["yaml"]
    assert RATE in saved["yaml"]


def test_a_text_is_saved_as_it_is_written_and_comes_back_as_data(
    client: TestClient, made: dict[str, Any]
) -> None:
    text = made["yaml"].replace(RATE, "lr:   2.0e-4") + "# by hand\n"

    saved = edit(client, made, yaml=text, strict=True).json()

    assert saved["yaml"] == text
    assert client.get(address(made)).json()["yaml"] == text
    assert saved["spec"] == client.post("/api/spec/parse", json={"yaml": text}).json()["spec"]


def test_what_is_there_already_is_no_new_version(client: TestClient, made: dict[str, Any]) -> None:
    same = edit(client, made, spec=made["spec"])

    assert same.json()["revision"] == made["revision"]
    assert same.json()["yaml"] == made["yaml"]
    assert client.get(address(made)).json() == {**made}


def test_the_second_of_two_tabs_gets_both_versions_and_nothing_is_lost(
    client: TestClient, made: dict[str, Any]
) -> None:
    first = edit(client, made, spec=seeded(made, 1)).json()

    second = edit(client, made, spec=seeded(made, 2))

    assert second.status_code == 409
    body = second.json()
    assert (set(body), body["code"]) == ({"code", "message", "detail"}, "loop.stale")
    theirs, mine = body["detail"]["theirs"], body["detail"]["mine"]
    assert theirs == client.get(address(made)).json()
    assert (theirs["revision"], theirs["spec"]["run"]) == (first["revision"], {"seed": 1})
    assert "seed: 2" in mine["yaml"]
    assert mine["check"]["report"]["ok"] is True
    assert len(client.get(f"{address(made)}/versions").json()) == 2

    over = edit(client, {**made, "revision": theirs["revision"]}, yaml=mine["yaml"])
    assert over.status_code == 200
    assert client.get(address(made)).json()["spec"]["run"] == {"seed": 2}


@pytest.mark.parametrize("text", ["nodes: [unclosed", "- a list", "name: x\nname: y\n"])
@pytest.mark.parametrize("is_strict", [True, False])
def test_a_text_that_cannot_be_read_is_refused_with_its_findings(
    client: TestClient, made: dict[str, Any], text: str, is_strict: bool
) -> None:
    answer = edit(client, made, yaml=text, strict=is_strict)

    assert answer.status_code == 422
    assert answer.json()["code"] == "spec.invalid"
    read = client.post("/api/spec/parse", json={"yaml": text}).json()
    found = answer.json()["detail"]["diagnostics"]
    assert [one["code"] for one in found] == [one["code"] for one in read["diagnostics"]]
    assert found[0]["line"] is not None
    assert client.get(address(made)).json() == made


def test_a_drawing_with_errors_is_saved_with_its_findings(
    client: TestClient, made: dict[str, Any]
) -> None:
    nodes = {**made["spec"]["nodes"], "judge": {"kind": "reward"}}

    answer = edit(client, made, spec={**made["spec"], "nodes": nodes})

    assert answer.status_code == 200
    saved = answer.json()
    assert saved["check"]["report"]["ok"] is False
    assert saved["check"]["plan"] is None
    assert "# A loop that a person wrote." in saved["yaml"]
    assert client.get(address(made)).json()["spec"]["nodes"]["judge"] == {"kind": "reward"}


def test_a_draft_is_saved_unless_a_loop_is_asked_for(
    client: TestClient, made: dict[str, Any]
) -> None:
    draft = made["yaml"].replace("kind: actor", "kind: acto")

    refused = edit(client, made, yaml=draft, strict=True)
    kept = edit(client, made, yaml=draft)

    assert refused.status_code == 422
    assert refused.json()["detail"]["diagnostics"][0]["node"] == "actor"
    assert kept.status_code == 200
    assert kept.json()["spec"]["nodes"]["actor"]["kind"] == "acto"
    assert kept.json()["check"]["report"]["ok"] is False


def test_a_text_that_takes_no_changes_is_written_anew(
    client: TestClient, made: dict[str, Any]
) -> None:
    saved = edit(client, made, yaml="{ broken", spec=made["spec"]).json()

    dumped = client.post("/api/spec/dump", json={"spec": made["spec"]}).json()
    assert saved["yaml"] == dumped["yaml"]


def test_a_value_that_no_loop_can_hold_is_refused(client: TestClient, made: dict[str, Any]) -> None:
    answer = edit(client, made, spec=seeded(made, 10**30))

    assert answer.status_code == 422
    assert answer.json()["detail"]["diagnostics"]
    assert client.get(address(made)).json() == made


def test_a_loop_is_made_where_there_is_none(client: TestClient, loop: str) -> None:
    body = {"base": None, "yaml": loop, "edit_session": "tab"}

    made = client.put("/api/loops/chosen-2/document", json=body)
    again = client.put("/api/loops/chosen-2/document", json=body)

    assert made.status_code == 200
    there = client.get("/api/loops/chosen-2").json()
    assert (there["version"], there["revision"]) == (1, made.json()["revision"])
    assert again.status_code == 409
    assert again.json()["detail"]["theirs"] == there


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"base": "0123456789abcdef"}, 409, "loop.stale"),
        ({"base": "*"}, 409, "loop.stale"),
        ({"base": "x" * 101}, 422, "request.invalid"),
        ({"base": 1}, 422, "request.invalid"),
        ({"yaml": None}, 422, "request.invalid"),
        ({"yaml": "x" * (4 * 1024 * 1024 + 1)}, 422, "request.invalid"),
        ({"yaml": "x: " + "y" * 1024 * 1024}, 422, "spec.invalid"),
        ({"yaml": "x" * (9 * 1024 * 1024)}, 413, "request.too_large"),
        ({"spec": []}, 422, "request.invalid"),
        ({"edit_session": "x" * 65}, 422, "request.invalid"),
        ({"name": "other"}, 422, "request.invalid"),
    ],
)
def test_a_request_that_does_not_fit_changes_nothing(
    client: TestClient, made: dict[str, Any], change: dict[str, Any], status: int, code: str
) -> None:
    answer = edit(client, made, **change)

    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert set(answer.json()) == {"code", "message", "detail"}
    assert client.get(address(made)).json() == made


def test_a_base_is_named_and_the_loop_is_there(client: TestClient, made: dict[str, Any]) -> None:
    without = client.put(f"{address(made)}/document", json={"yaml": made["yaml"]})
    nowhere = edit(client, {**made, "id": "nowhere"})

    assert without.status_code == 422
    assert (nowhere.status_code, nowhere.json()["code"]) == (404, "loop.not_found")


def test_edits_of_an_edit_session_are_one_version(client: TestClient, made: dict[str, Any]) -> None:
    last = made
    for seed in range(5):
        last = {**made, **edit(client, last, spec=seeded(made, seed), edit_session="tab").json()}

    assert client.get(address(made)).json()["version"] == 2


def test_an_edit_reads_its_text_once(
    client: TestClient, made: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    read, validated = _counted(monkeypatch)
    spec = seeded(made, 7)

    saved = edit(client, made, spec=spec)
    one = (read.count(saved.json()["yaml"]), len(validated))
    read.clear()
    validated.clear()
    again = client.post("/api/spec/patch", json={"yaml": made["yaml"], "spec": seeded(made, 8)})
    text = {"yaml": again.json()["yaml"]}
    headers = {"If-Match": saved.json()["revision"]}
    assert client.put(address(made), json=text, headers=headers).status_code == 200
    assert client.post("/api/check", json=text).status_code == 200
    three = (read.count(text["yaml"]), len(validated))

    assert one == (1, 1)
    assert three == (4, 2)


def _counted(monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], list[object]]:
    """Texts that are read as a loop, and documents that are made a spec, as they come."""
    texts: list[str] = []
    documents: list[object] = []
    read, validate = reader.read, LoopSpec.model_validate

    def read_and_note(text: str) -> Any:
        texts.append(text)
        return read(text)

    def validate_and_note(document: object) -> LoopSpec:
        documents.append(document)
        return validate(document)

    monkeypatch.setattr(io, "read", read_and_note)
    monkeypatch.setattr(LoopSpec, "model_validate", validate_and_note)
    return texts, documents


def test_a_stranger_edits_nothing(client: TestClient, made: dict[str, Any]) -> None:
    body = {"base": made["revision"], "yaml": "coloop: 1\n"}

    answer = client.put(
        f"{address(made)}/document", json=body, headers={"Authorization": "Bearer wrong"}
    )

    assert answer.status_code == 401
    assert client.get(address(made)).json() == made
