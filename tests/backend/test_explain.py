"""Help over HTTP: the same as on the command line, and refusals with near ones."""

import json
from typing import Any

import pytest
from httpx import Client

from coloop.explain.algorithm import explain_algorithm
from coloop.explain.codes import explain


def asked(client: Client, settings: dict[str, Any], **more: Any) -> Any:
    return client.get("/api/explain/algorithm", params={"settings": json.dumps(settings), **more})


def test_the_help_of_a_code_is_that_of_the_command(client: Client) -> None:
    wanted = explain("learning.companion")
    assert wanted is not None

    found = client.get("/api/explain/learning.companion")

    assert found.json() == wanted.model_dump(mode="json")


def test_an_unknown_code_is_refused_with_near_ones(client: Client) -> None:
    found = client.get("/api/explain/learning.compnion")

    assert found.status_code == 404
    assert "learning.companion" in found.json()["message"]


def test_an_algorithm_is_explained_with_the_settings_of_a_node(client: Client) -> None:
    settings = {"name": "dr_grpo", "clip_high": 0.28}

    found = asked(client, settings, rollout=json.dumps({"max_new_tokens": 64}))

    assert found.json() == explain_algorithm(settings, max_new_tokens=64).model_dump(mode="json")
    assert "64" in found.text


def test_settings_that_do_not_fit_are_refused_by_name(client: Client) -> None:
    wrong = asked(client, {"name": "grpo", "clip_high": "much"})
    broken = client.get("/api/explain/algorithm", params={"settings": "{grpo"})

    assert (wrong.status_code, broken.status_code) == (422, 422)
    assert "clip_high" in wrong.json()["message"]


def test_a_preset_tells_what_it_teaches(client: Client) -> None:
    found = client.get("/api/presets/loops/spin/about").json()
    missing = client.get("/api/presets/loops/no-such/about")

    assert found["lesson"]
    assert found["nodes"][0]["does"]
    assert missing.status_code == 404


@pytest.mark.slow
def test_the_gallery_gets_traits_and_a_sketch_of_each_graph(client: Client) -> None:
    listed = {one["name"]: one for one in client.get("/api/presets/loops").json()}

    tango = listed["tango"]
    assert tango["traits"]["learners"] == ["generator", "verifier"]
    assert not tango["traits"]["needs_gpus"]
    assert {"source": "exact", "target": "generator", "teaches": True} in tango["sketch"]["edges"]
