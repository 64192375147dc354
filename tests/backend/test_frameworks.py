"""Configurations of other frameworks over HTTP."""

from typing import Any

from starlette.testclient import TestClient

COMMAND = (
    "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo "
    "data.train_files=openai/gsm8k actor_rollout_ref.model.path=Qwen/Qwen2.5-7B-Instruct "
    "actor_rollout_ref.rollout.n=8 actor_rollout_ref.rollout.temprature=1.0"
)


def test_a_command_becomes_a_loop_with_findings_and_estimate(client: TestClient) -> None:
    answer = client.post("/api/frameworks/import", json={"text": COMMAND, "gpu": "A100-80GB"})

    body: dict[str, Any] = answer.json()
    assert answer.status_code == 200
    assert (body["framework"], body["trainer"]) == ("verl", "ppo")
    assert "preset: 8xA100-80" in body["yaml"]
    assert [node["id"] for node in body["sketch"]["nodes"]] == ["prompts", "actor", "reward"]
    assert body["check"]["estimate"]["step_seconds"] > 0
    unclear = [item for item in body["settings"] if item["kind"] == "not_understood"]
    assert [item["name"] for item in unclear] == ["actor_rollout_ref.rollout.temprature"]
    assert client.get("/api/loops").json() == []  # nothing is saved


def test_other_texts_are_refused_in_one_sentence(client: TestClient) -> None:
    answer = client.post("/api/frameworks/import", json={"text": "hello", "name": "a.txt"})

    assert answer.status_code == 422
    assert answer.json()["code"] == "import.refused"
    assert "a.txt names no trainer that is known here" in answer.json()["message"]


def test_a_file_that_a_configuration_names_is_not_opened(client: TestClient) -> None:
    text = f"{COMMAND} custom_reward_function.path=/etc/passwd"
    body = client.post("/api/frameworks/import", json={"text": text}).json()

    assert "root:" not in body["yaml"]
    assert any("is not there in what was pasted" in item["why"] for item in body["settings"])
