"""Whatever is sent, the answer is one of the documented ones and never a 500."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from starlette.testclient import TestClient
from tests.backend.signed_in import found_run

from coloop_server.settings import Settings

UNASKED = [
    HealthCheck.function_scoped_fixture,
    HealthCheck.too_slow,
    HealthCheck.data_too_large,
]
"""A list here takes the place of the profile's."""
ROUTES = [
    ("POST", "/api/check"),
    ("POST", "/api/spec/parse"),
    ("POST", "/api/spec/patch"),
    ("POST", "/api/spec/dump"),
    ("POST", "/api/fit"),
    ("POST", "/api/place"),
    ("POST", "/api/loops"),
    ("POST", "/api/loops/import"),
    ("PUT", "/api/loops/none"),
    ("PUT", "/api/loops/none/document"),
    ("POST", "/api/runs"),
    ("POST", "/api/runs/none/stop"),
    ("POST", "/api/runs/none/edit"),
    ("POST", "/api/runs/none/fork"),
    ("POST", "/api/session"),
    ("POST", "/api/previews/scores"),
    ("POST", "/api/previews/rows"),
    ("POST", "/api/previews/tokens"),
    ("POST", "/api/previews/overlap"),
]
BODIES = [
    b"",
    b"{",
    b"null",
    b"[]",
    b"\xff\xfe",
    b'{"yaml": NaN}',
    b'{"yaml": 1e999}',
    b'{"spec": {"a": Infinity}}',
    b'{"yaml": "\\ud800"}',
    b'{"yaml": "a\\u0000b", "name": "\\u0000"}',
    b'{"spec": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    b'{"spec": ' + b'{"a":' * 500 + b"1" + b"}" * 501,
    b'{"spec": {"coloop": ' + b"9" * 5000 + b"}}",
    b'{"path": "\\u0000"}',
    b'{"path": "' + b"a/" * 2000 + b'"}',
    b'{"yaml": "a: &a [x]\\nb: *a"}',
    json.dumps(
        {
            "yaml": "a: &a [1,1]\n"
            + "".join(
                f"{chr(98 + i)}: &{chr(98 + i)} [*{chr(97 + i)},*{chr(97 + i)}]\n"
                for i in range(24)
            )
        }
    ).encode(),
]


@pytest.mark.sample(8)
@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_bad_bodies_end_in_a_clear_error(client: TestClient, method: str, path: str) -> None:
    for body in BODIES:
        answer = client.request(
            method, path, content=body, headers={"Content-Type": "application/json"}
        )

        assert answer.status_code < 500, (body[:80], answer.text)
        if answer.status_code >= 400:
            assert set(answer.json()) == {"code", "message", "detail"}


def test_other_content_types_are_refused_in_the_same_shape(client: TestClient) -> None:
    for kind in ("text/plain", "multipart/form-data; boundary=x", "application/x-yaml"):
        answer = client.post("/api/loops", content=b"name: x", headers={"Content-Type": kind})

        assert answer.status_code == 422
        assert answer.json()["code"] == "request.invalid"


def test_a_body_over_the_limit_is_not_read(client: TestClient) -> None:
    huge = b'{"yaml": "' + b"x" * (9 * 1024 * 1024) + b'"}'

    declared = client.post("/api/check", content=huge)
    streamed = client.post("/api/check", content=iter([huge]))

    for answer in (declared, streamed):
        assert answer.status_code == 413
        assert answer.json()["code"] == "request.too_large"


def test_bad_queries_end_in_a_clear_error(client: TestClient, settings: Settings) -> None:
    folder = settings.runs_dir / "known"
    folder.mkdir(parents=True)
    (folder / "spec.yaml").write_text("coloop: 1\nname: known\n", encoding="utf-8")
    (folder / "events.jsonl").touch()
    known = found_run(client, "known")

    for query in ("after=-1", "after=x", "limit=0", "limit=999999999999999999999", "after=1e5"):
        answer = client.get(f"/api/runs/{known}/events?{query}")
        assert answer.status_code == 422
        assert answer.json()["code"] == "request.invalid"
    assert client.get("/api/runs/none/events?after=99999999999999999999").status_code == 404
    assert client.get("/api/runs/" + "x" * 5000).status_code == 422
    assert client.get("/api/loops/x/versions/99999999999999999999").status_code == 422
    assert client.get("/api/loops/%00").status_code == 422


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=12,
)
names = st.sampled_from(
    ["yaml", "spec", "changes", "name", "set", "path", "force", "rows", "code", "source"]
)


@hypothesis_settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=UNASKED,
)
@given(route=st.sampled_from(ROUTES), body=st.dictionaries(names, plain, max_size=4))
def test_no_json_makes_the_server_fail(
    client: TestClient, route: tuple[str, str], body: dict[str, Any]
) -> None:
    answer = client.request(*route, json=body)

    assert answer.status_code < 500, answer.text


mutations = st.lists(
    st.tuples(
        st.integers(0, 2000),
        st.sampled_from(["", ":", "{", "- ", "\n", "\t", "&a", "*a", "!", "%", "0", "é"]),
    ),
    min_size=1,
    max_size=6,
)


@pytest.mark.slow
@hypothesis_settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=UNASKED,
)
@given(changes=mutations)
def test_no_broken_loop_makes_a_check_fail(
    client: TestClient, loop: str, changes: list[tuple[int, str]]
) -> None:
    text = loop
    for at, word in changes:
        place = at % (len(text) + 1)
        text = text[:place] + word + text[place + 1 :]

    answer = client.post("/api/check", json={"yaml": text})

    assert answer.status_code == 200, answer.text
    report = answer.json()["report"]
    assert report["ok"] == (not any(d["severity"] == "error" for d in report["diagnostics"]))
