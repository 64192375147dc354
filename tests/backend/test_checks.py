"""What the editor asks while a loop is drawn."""

import time
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from coloop.spec.io import parse
from coloop_server.errors import NotAllowed
from coloop_server.settings import Settings


def codes(answer: dict[str, Any]) -> list[str]:
    return [found["code"] for found in answer["report"]["diagnostics"]]


def test_the_catalog_has_a_version_to_ask_by(client: TestClient) -> None:
    first = client.get("/api/catalog")
    again = client.get("/api/catalog", headers={"If-None-Match": first.headers["etag"]})

    assert set(first.json()) >= {"version", "kinds", "port_types", "algorithms", "schema", "levels"}
    assert "actor" in first.json()["kinds"]
    assert any(one["name"] == "tiny-qwen3" for one in first.json()["architectures"])
    assert again.status_code == 304
    assert again.content == b""


def test_a_check_gives_report_estimate_and_plan_in_one_answer(
    client: TestClient, loop: str
) -> None:
    by_text = client.post("/api/check", json={"yaml": loop}).json()
    spec = client.post("/api/spec/parse", json={"yaml": loop}).json()["spec"]
    by_spec = client.post("/api/check", json={"spec": spec}).json()

    assert by_text["report"]["ok"] is True
    assert by_text["estimate"]["parameters"]["actor"] > 0
    assert by_text["estimate"]["gpus"][0]["fits"] is True
    phase = by_text["plan"]["phases"][0]
    assert phase["learn"] == ["actor.rewards"]
    assert phase["stages"][0] == "problems.load"
    assert "actor.learn" in phase["stages"]
    assert by_spec["plan"] == by_text["plan"]


def test_formulas_of_an_estimate_on_demand(client: TestClient, loop: str) -> None:
    checked = client.post("/api/check", json={"yaml": loop}).json()
    terms = client.post("/api/terms", json={"yaml": loop}).json()

    seconds = {one["stage"]: one["seconds"] for one in checked["estimate"]["stages"]}
    told = {one["stage"]: one["term"] for one in terms["stages"] if one["phase"] is None}
    assert {stage: term["value"] for stage, term in told.items()} == seconds
    assert told["actor.learn"]["lines"][0]["formula"].startswith("3 × a forward pass")
    assert client.post("/api/terms", json={"yaml": "nodes: 3"}).status_code == 422


def test_a_check_says_rows_of_every_stage_and_who_trains(client: TestClient, loop: str) -> None:
    plan = client.post("/api/check", json={"yaml": loop}).json()["plan"]

    phase = plan["phases"][0]
    assert [one["stage"] for one in phase["rows"]] == phase["stages"]
    rows = {one["stage"]: one["rows"] for one in phase["rows"]}
    assert int(rows["actor.generate"]) > int(rows["problems.load"]) > 0
    assert rows["actor.sync"] is None
    assert phase["updates"] == [f"actor.learn: actor (rewards; {rows['actor.learn']} rows)"]


def test_errors_of_a_loop_are_findings_with_a_place(client: TestClient, loop: str) -> None:
    broken = loop.replace("exact.scores -> actor.rewards", "exact.scores -> actor.reward")

    answer = client.post("/api/check", json={"yaml": broken})

    assert answer.status_code == 200
    report = answer.json()["report"]
    assert report["ok"] is False
    finding = report["diagnostics"][0]
    assert finding["line"] == broken[: broken.index("actor.reward\n")].count("\n") + 1
    assert answer.json()["plan"] is None


def test_text_that_is_no_yaml_is_a_finding_too(client: TestClient) -> None:
    answer = client.post("/api/check", json={"yaml": "nodes: {a: [1, 2"}).json()

    assert answer["report"]["ok"] is False
    assert codes(answer)[0].startswith("yaml.")
    assert answer["estimate"] is None


def test_what_does_not_run_yet_is_said_before_run_is_pressed(
    client: TestClient, loop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLOOP_ALLOWED_REMOTES", "localhost:1")
    later = loop.replace("engine: torch", "engine: remote, url: 'http://localhost:1/v1'")

    checked = client.post("/api/check", json={"yaml": later}).json()
    started = client.post("/api/runs", json={"yaml": later})

    assert checked["report"]["ok"] is True
    assert "run.not_yet_runnable" in codes(checked)
    assert started.status_code == 422
    assert started.json()["code"] == "spec.invalid"
    found = started.json()["detail"]["diagnostics"]
    assert [one["code"] for one in found] == ["run.not_yet_runnable"]


def test_a_loop_with_errors_is_not_run(client: TestClient, loop: str) -> None:
    broken = loop.replace("  - exact.scores -> actor.rewards\n", "")

    answer = client.post("/api/runs", json={"yaml": broken})

    assert answer.status_code == 422
    assert answer.json()["detail"]["ok"] is False
    assert client.get("/api/runs").json() == []


@pytest.mark.slow
def test_a_loop_over_its_budget_wants_to_be_forced(
    client: TestClient, loop: str, run_until: Any
) -> None:
    big = loop.replace("hardware: {preset: cpu}", "hardware: {preset: cpu, memory_budget: 0.0001}")

    asked = client.post("/api/runs", json={"yaml": big})
    forced = client.post("/api/runs", json={"yaml": big, "force": True})

    assert asked.status_code == 409
    assert asked.json()["code"] == "memory.over_budget"
    assert "force" in asked.json()["message"]
    assert forced.status_code == 201
    run_until(forced.json()["id"], "finished")


def test_parsing_gives_the_data_as_it_is_written(client: TestClient, loop: str) -> None:
    text = loop + "layout: {actor: [1, 2]}\n"

    answer = client.post("/api/spec/parse", json={"yaml": text}).json()

    assert answer["diagnostics"] == []
    assert answer["layout"] == {"actor": [1, 2]}
    assert answer["spec"]["edges"][0] == "problems.rows -> actor.prompts"
    assert "run" not in answer["spec"]


def test_patching_keeps_comments_and_number_formats(client: TestClient, loop: str) -> None:
    change = {"op": "set", "path": "nodes.actor.rollout.temperature", "value": 0.7}

    by_change = client.post("/api/spec/patch", json={"yaml": loop, "changes": [change]}).json()
    spec = client.post("/api/spec/parse", json={"yaml": loop}).json()["spec"]
    spec["nodes"]["actor"]["rollout"]["temperature"] = 0.7
    by_spec = client.post("/api/spec/patch", json={"yaml": loop, "spec": spec}).json()

    assert by_change["yaml"] == by_spec["yaml"]
    assert by_change["spec"]["nodes"]["actor"]["rollout"]["temperature"] == 0.7
    assert "# A loop that a person wrote." in by_change["yaml"]
    assert "lr: 3.0e-4" in by_change["yaml"]
    assert "# kept as it is written" in by_change["yaml"]


@pytest.mark.slow
def test_patching_to_a_draft_with_errors_still_writes_it(client: TestClient, loop: str) -> None:
    spec = client.post("/api/spec/parse", json={"yaml": loop}).json()["spec"]
    spec["nodes"]["judge"] = {"kind": "reward"}

    answer = client.post("/api/spec/patch", json={"yaml": loop, "spec": spec})

    assert answer.status_code == 200
    assert answer.json()["spec"] is None
    assert answer.json()["diagnostics"]
    assert "judge" in answer.json()["yaml"]
    assert "# A loop that a person wrote." in answer.json()["yaml"]


def test_a_patch_of_nothing_is_refused_with_its_path(client: TestClient, loop: str) -> None:
    change = {"op": "remove", "path": "nodes.nobody"}

    answer = client.post("/api/spec/patch", json={"yaml": loop, "changes": [change]})

    assert answer.status_code == 422
    assert answer.json()["detail"]["diagnostics"][0]["code"] == "structure.unknown_path"


def test_what_is_exported_says_nothing_that_forms_made_untrue(client: TestClient) -> None:
    """As the page does: the loop with another machine, written into the text that was there."""
    preset = client.get("/api/presets/loops/grpo-qwen2.5-7b-8xH100").json()
    made = client.post("/api/loops", json={"name": "mine", "yaml": preset["yaml"]}).json()
    spec = preset["spec"] | {"hardware": {"preset": "32xH100"}}

    patched = client.post("/api/spec/patch", json={"yaml": preset["yaml"], "spec": spec}).json()
    seen = {"If-Match": f'"{made["revision"]}"'}
    saved = client.put(f"/api/loops/{made['id']}", json={"yaml": patched["yaml"]}, headers=seen)
    exported = client.get(f"/api/loops/{made['id']}").json()["yaml"]

    assert saved.status_code == 200
    assert "eight H100" in preset["yaml"]
    assert exported == patched["yaml"]
    assert "32xH100" in exported
    assert "eight H100" not in exported
    again = client.post("/api/spec/patch", json={"yaml": preset["yaml"], "spec": preset["spec"]})
    assert again.json()["yaml"] == preset["yaml"]


def test_a_dump_reads_back_as_the_same_loop(client: TestClient, loop: str) -> None:
    spec = client.post("/api/spec/parse", json={"yaml": loop}).json()["spec"]

    text = client.post("/api/spec/dump", json={"spec": spec}).json()["yaml"]

    again = client.post("/api/check", json={"yaml": text}).json()
    assert again["report"]["ok"] is True
    assert "#" not in text


def test_fitting_changes_the_text_and_says_why(client: TestClient) -> None:
    preset = client.get("/api/presets/loops/grpo-qwen2.5-7b-8xH100").json()["yaml"]

    answer = client.post("/api/fit", json={"yaml": preset, "budget_gib": 60})

    assert answer.status_code == 200
    body = answer.json()
    assert body["changes"]
    assert all(change["reason"] for change in body["changes"])
    assert body["spec"]["hardware"]["memory_budget"] < 1
    first = body["changes"][0]
    assert str(first["new"]) in body["yaml"]


def _preset(client: TestClient, name: str) -> dict[str, Any]:
    found: dict[str, Any] = client.get(f"/api/presets/loops/{name}").json()["spec"]
    return found


def _fit(client: TestClient, spec: dict[str, Any], **asked: Any) -> dict[str, Any]:
    answer = client.post("/api/fit", json={"spec": spec, **asked})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_a_budget_says_what_changes_and_what_each_costs(client: TestClient) -> None:
    spec = _preset(client, "grpo-qwen2.5-7b-8xH100")

    more = _fit(client, spec, budget_fraction=1.0)
    less = _fit(client, spec, budget_fraction=0.45)

    assert (more["fits"], less["fits"]) == (True, True)
    assert (more["refusal"], less["refusal"]) == (None, None)
    assert more["verdict"].startswith("Fits:")
    path = "nodes.actor.training.gradient_checkpointing"
    freed = next(one for one in more["changes"] if one["path"] == path)
    assert (freed["old_text"], freed["new_text"]) == ("on", "off")
    assert freed["seconds"] < 0
    assert {"op": "remove", "path": path}.items() <= more["edits"][-1].items()
    for found in (more, less):
        assert sum(one["seconds"] or 0 for one in found["changes"]) == pytest.approx(
            found["after"]["step_seconds"] - found["before"]["step_seconds"]
        )
    gpu = less["after"]["gpus"][0]
    assert gpu["peak_bytes"] <= gpu["usable_bytes"] < less["before"]["gpus"][0]["usable_bytes"]
    assert less["after"]["step_seconds"] >= more["after"]["step_seconds"]
    assert less["after_time"]["phases"][0]["spans"]


def test_locks_of_a_loop_hold_and_those_of_the_question_go_before_them(client: TestClient) -> None:
    path = "nodes.actor.training.gradient_checkpointing"
    spec = _preset(client, "grpo-qwen2.5-7b-8xH100") | {"layout": {"$locks": [path]}}

    held = _fit(client, spec, budget_fraction=1.0)
    free = _fit(client, spec, budget_fraction=1.0, locks=[])

    assert path not in [one["path"] for one in held["edits"]]
    assert path in [one["path"] for one in free["edits"]]
    assert held["after"]["step_seconds"] > free["after"]["step_seconds"]


@pytest.mark.slow
def test_what_cannot_fit_names_ways_that_each_do(client: TestClient) -> None:
    path = "nodes.actor.training.micro_batch"
    chunk = "nodes.actor.training.loss_chunk"
    spec = _preset(client, "grpo-qwen2.5-7b-8xH100") | {"layout": {"$locks": [path, chunk]}}
    spec["nodes"]["actor"]["training"] |= {"micro_batch": 32, "loss_chunk": 1 << 20}

    found = _fit(client, spec, budget_fraction=0.6)
    bare = _fit(client, spec, budget_fraction=0.6, with_ways=False)

    assert found["fits"] is False
    assert found["ways"][0]["touches"] == "lock"
    assert found["ways"][0]["unlocks"][0] in (path, chunk)
    assert found["ways"][0]["edits"][-1]["path"] == "layout.$locks"
    assert bare["ways"] == []


LARGE = {
    "nodes.actor.model.path": "meta-llama/Llama-3.1-70B",
    "nodes.actor.rollout.tensor_parallel": 16,
    "hardware.preset": "16xH100",
}
"""Its engines would reach over two machines."""


def _changed(client: TestClient, name: str, values: dict[str, Any]) -> dict[str, Any]:
    edits = [{"op": "set", "path": path, "value": value} for path, value in values.items()]
    text = client.get(f"/api/presets/loops/{name}").json()["yaml"]
    changed = client.post("/api/spec/patch", json={"yaml": text, "changes": edits}).json()
    found: dict[str, Any] = changed["spec"]
    return found


def test_an_answer_that_a_run_refuses_says_so(client: TestClient) -> None:
    beyond = {"nodes.actor.training.dtype": "float16"}
    spec = _changed(client, "grpo-qwen2.5-7b-8xH100", beyond)

    found = _fit(client, spec)
    checked = client.post("/api/check", json={"spec": spec}).json()
    told = [one for one in checked["report"]["diagnostics"] if one["code"].startswith("run.")]

    assert found["fits"] is True
    assert found["refusal"] == "`run` refuses it: " + told[0]["message"].partition(": ")[2]
    assert found["refusal"] in found["verdict"]
    assert found["verdict"].startswith("Fits: ")
    assert "over" not in found["verdict"].partition("`run`")[0]


@pytest.mark.slow
def test_the_smallest_budget_is_found_with_engines_on_several_gpus(client: TestClient) -> None:
    spec = _preset(client, "grpo-qwen2.5-7b-8xH100")

    found = _fit(client, spec, budget_fraction=0.2)

    assert found["fits"] is False
    assert found["after"]["step_seconds"] is None
    assert [one["seconds"] for one in found["changes"] if one["seconds"] is not None] == []
    assert found["over_bytes"] > 0
    way = next(one for one in found["ways"] if one["touches"] == "budget")
    assert f"The smallest that fits is {way['reason']}." in found["verdict"]
    least = next(one["value"] for one in way["edits"] if one["path"] == "hardware.memory_budget")
    assert _fit(client, spec, budget_fraction=least)["fits"] is True
    assert _fit(client, spec, budget_fraction=least - 0.01, with_ways=False)["fits"] is False


def test_what_a_run_refuses_is_not_told_to_be_forced(client: TestClient) -> None:
    hints = {}
    for name, values in (("refused", LARGE), ("taken", {"hardware.preset": "1xH100"})):
        spec = _changed(client, "grpo-qwen2.5-7b-8xH100", values)
        checked = client.post("/api/check", json={"spec": spec}).json()
        found = checked["report"]["diagnostics"]
        hints[name] = next(one["hint"] for one in found if one["code"] == "memory.over_budget")

    assert "`run` refuses it: `rollout.tensor_parallel: 16`" in hints["refused"]
    assert "must be forced" not in hints["refused"]
    assert "a run must be forced" in hints["taken"]


def test_two_budgets_are_refused(client: TestClient) -> None:
    answer = client.post("/api/fit", json={"spec": {}, "budget_gib": 1, "budget_fraction": 0.5})

    assert answer.status_code == 422
    assert "budget" in answer.text


def test_a_placement_is_suggested_beside_the_loops_own(client: TestClient) -> None:
    spec = _preset(client, "genrm-gemma-2-9b-8xH100")

    found = client.post("/api/place", json={"spec": spec}).json()

    assert found["suggested"]["step_seconds"] < found["yours"]["step_seconds"]
    assert found["suggested"]["fits"] is True
    assert found["edits"][0]["path"] == "hardware.pools"
    assert found["tried"] > 1
    assert found["reason"]
    learner = next(one for one in found["backends"] if one["node"] == "verifier")
    assert learner["advised"] == "fsdp2"
    refused = next(one for one in learner["options"] if one["backend"] == "megatron")
    assert refused["problem"]


def test_a_check_says_how_the_time_comes_about_and_the_batch_as_a_breakdown(
    client: TestClient, loop: str
) -> None:
    found = client.post("/api/check", json={"yaml": loop}).json()

    phase = found["time"]["phases"][0]
    assert phase["spans"][0]["start"] == 0
    assert max(one["end"] for one in phase["spans"]) == pytest.approx(
        phase["step_seconds"], rel=0.5
    )
    (breakdown,) = [one for one in found["plan"]["breakdowns"] if one["phase"] == phase["name"]]
    assert breakdown["counts"][0]["name"] == "prompts"
    assert breakdown["counts"][-1]["name"] == "updates"


@pytest.mark.slow
def test_presets_are_listed_with_what_runs_here(client: TestClient) -> None:
    loops = {one["name"]: one for one in client.get("/api/presets/loops").json()}
    hardware = client.get("/api/presets/hardware").json()
    models = client.get("/api/presets/models").json()

    assert loops["grpo-arithmetic"]["runnable_here"] is True
    assert loops["grpo-arithmetic"]["title"]
    text = client.get("/api/presets/loops/grpo-arithmetic").json()
    assert text["spec"]["name"] == "grpo-arithmetic"
    assert {"cpu", "8xH100"} <= {one["name"] for one in hardware}
    assert "tiny-qwen3" in {one["name"] for one in models}
    missing = client.get("/api/presets/loops/grpo-arithmetik")
    assert missing.status_code == 404
    assert missing.json()["code"] == "preset.not_found"
    assert "grpo-arithmetic" in missing.json()["message"]


def test_a_preset_finds_its_own_data_wherever_the_server_stands(
    client: TestClient, settings: Settings
) -> None:
    text = client.get("/api/presets/loops/grpo-from-file").json()["yaml"]

    answer = client.post("/api/check", json={"yaml": text}).json()

    assert answer["report"]["ok"] is True, answer["report"]


def test_a_check_names_what_lies_outside_of_the_roots_and_does_not_look_at_it(
    client: TestClient, settings: Settings, loop: str, tmp_path: Path
) -> None:
    (tmp_path / "secret.jsonl").write_text('{"prompt": "1", "answer": "2"}\n')
    task = "{type: task, task: arithmetic, split: train}"
    inside = loop.replace(task, "{type: file, path: none.jsonl}")
    outside = loop.replace(task, f"{{type: file, path: {tmp_path}/none.jsonl}}")
    settings.allowed_roots[0].mkdir()

    seen = client.post("/api/check", json={"yaml": inside}).json()
    unseen = client.post("/api/check", json={"yaml": outside}).json()
    secret = client.post(
        "/api/check", json={"yaml": outside.replace("none.jsonl", "secret.jsonl")}
    ).json()

    assert [found["code"] for found in seen["report"]["diagnostics"]] == ["data.missing_file"]
    [finding] = unseen["report"]["diagnostics"]
    assert (finding["code"], finding["field"]) == ("data.outside", "source.path")
    assert finding["message"].startswith(f"'{tmp_path}/none.jsonl' lies outside of the folders")
    assert [found["code"] for found in secret["report"]["diagnostics"]] == ["data.outside"]


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("storage", "codes"),
    [
        ("s3://bucket/runs", []),
        ("file:///etc", ["data.outside"]),
        ("local:///etc", ["data.outside"]),
        ("simplecache::file:///etc", ["data.outside"]),
        ("../elsewhere", ["data.outside"]),
        ("~", ["data.outside"]),
        ("~root/../etc", ["data.outside"]),
    ],
)
def test_storage_leads_to_another_machine_or_stays_inside(
    storage: str, codes: list[str], client: TestClient, loop: str
) -> None:
    text = f"{loop}\nrun: {{storage: '{storage}'}}\n"

    report = client.post("/api/check", json={"yaml": text}).json()["report"]

    assert [found["code"] for found in report["diagnostics"]] == codes


@pytest.mark.sample(1)
@pytest.mark.parametrize("path", ["/etc/passwd", "~root/../etc/passwd", "~/rows.jsonl"])
def test_what_a_phase_or_trigger_will_set_is_checked_as_well(
    path: str, client: TestClient, loop: str
) -> None:
    document = parse(loop).document
    assert document is not None
    document["nodes"]["problems"]["source"] = {"type": "inline", "rows": [{"prompt": "1"}]}
    source = {"type": "file", "path": path}
    by_phase = {"phases": [{"name": "p", "steps": 1, "set": {"nodes.problems.source": source}}]}
    when = {"metric": "actor.reward/mean", "above": 0.5}
    by_trigger = {
        "steps": 3,
        "triggers": [{"when": when, "do": {"set": {"nodes.problems.source": source}}}],
    }

    for schedule in (by_phase, by_trigger):
        spec = {**document, "schedule": schedule}
        report = client.post("/api/check", json={"spec": spec}).json()["report"]
        refused = client.post("/api/runs", json={"spec": spec})

        assert "data.outside" in [found["code"] for found in report["diagnostics"]]
        assert refused.status_code in (403, 422)


def test_the_servers_own_data_lies_in_no_root(settings: Settings, tmp_path: Path) -> None:
    roots = settings.model_copy(update={"allowed_roots": (tmp_path,)}).roots

    assert roots.admits(tmp_path / "mine.jsonl")
    assert roots.admits(settings.runs_dir / "r" / "samples" / "step-1.jsonl")
    assert not roots.admits(settings.data_dir / "ray" / "token")
    assert not roots.admits(settings.data_dir / "coloop.db")


def test_a_relative_path_means_the_same_wherever_the_server_was_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for place in ("here", "there"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "near.jsonl").write_text('{"prompt": "1+1=", "answer": "2"}\n')
        monkeypatch.chdir(tmp_path / place)
        settings = Settings(data_dir=tmp_path / "data")
        found.append(settings.roots.check("near.jsonl", "source.path"))

    assert found == [tmp_path / "data" / "files" / "near.jsonl"] * 2
    roots = settings.roots
    assert not roots.admits(tmp_path / "there" / "near.jsonl")
    assert not roots.admits(tmp_path / "data" / "coloop.db")
    with pytest.raises(NotAllowed, match=f"'../coloop.db' in {tmp_path}/data/files lies outside"):
        roots.check("../coloop.db", "source.path")


@pytest.mark.slow
@pytest.mark.parametrize("count", [5])
def test_a_check_is_quick(client: TestClient, loop: str, count: int) -> None:
    client.post("/api/check", json={"yaml": loop})

    seconds = []
    for _ in range(count):
        start = time.process_time()
        client.post("/api/check", json={"yaml": loop})
        seconds.append(time.process_time() - start)

    assert min(seconds) < 0.1


@pytest.mark.parametrize(
    "change",
    [
        {"op": "insert", "path": "schedule.steps.x", "value": 1},
        {"op": "add_edge", "path": "schedule.steps.x", "value": "a.b -> c.d"},
        {"op": "remove_edge", "path": "."},
    ],
)
def test_a_change_of_a_place_that_cannot_be_is_refused(
    change: dict[str, Any], client: TestClient, loop: str
) -> None:
    answer = client.post("/api/spec/patch", json={"yaml": loop, "changes": [change]})

    assert answer.status_code == 422, answer.text


NODES = "actor:\n  kind: actor\n  model: {type: scratch}\nexact: {kind: reward}\n"


@pytest.mark.parametrize(
    "text",
    [
        NODES,
        "".join(f"    {line}\n" for line in NODES.splitlines()),
        "nodes:\n" + "".join(f"  {line}\n" for line in NODES.splitlines()),
    ],
)
def test_nodes_are_read_from_any_piece_of_a_loop(client: TestClient, text: str) -> None:
    read = client.post("/api/spec/fragment", json={"yaml": text}).json()

    assert list(read["nodes"]) == ["actor", "exact"]
    assert read["nodes"]["actor"] == {"kind": "actor", "model": {"type": "scratch"}}
    assert read["edges"] == []
    assert read["diagnostics"] == []


def test_a_whole_loop_is_a_piece_with_its_edges_and_places(client: TestClient, loop: str) -> None:
    text = loop + "layout: {actor: [1, 2]}\n"

    read = client.post("/api/spec/fragment", json={"yaml": text}).json()

    assert "actor.rollouts -> exact.rollouts" in read["edges"]
    assert read["layout"] == {"actor": [1, 2]}


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("text", "codes"),
    [("a sentence", ["yaml.not_a_mapping"]), ("nodes: [", ["yaml.syntax"]), ("nodes: {a: 3}", [])],
)
def test_a_text_without_nodes_is_no_piece(client: TestClient, text: str, codes: list[str]) -> None:
    read = client.post("/api/spec/fragment", json={"yaml": text}).json()

    assert read["nodes"] == {}
    assert [found["code"] for found in read["diagnostics"]] == codes


def test_what_was_copied_is_written_so_that_it_can_be_read_again(client: TestClient) -> None:
    piece = {
        "nodes": {"actor": {"kind": "actor", "training": {"optimizer": {"lr": 1e-6}}}},
        "edges": ["actor.rollouts -> exact.rollouts"],
        "layout": {"actor": [0, 16]},
    }

    text = client.post("/api/spec/dump", json={"spec": piece}).json()["yaml"]

    assert text.startswith("nodes:\n  actor:")
    read = client.post("/api/spec/fragment", json={"yaml": text}).json()
    assert {name: read[name] for name in piece} == piece
