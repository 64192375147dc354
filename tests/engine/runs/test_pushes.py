"""A run is pushed to a hub on loopback by the real `huggingface_hub`, and loaded from there."""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
import torch
import yaml
from tests.engine.models.architectures import byte_tokenizer, make_model
from tests.hub_server import Hub, hub, token
from transformers import AutoModelForCausalLM, AutoTokenizer
from typer.testing import CliRunner

from coloop.cli.app import app
from coloop.hub.about import describe_model
from coloop.hub.download import download
from coloop.hub.pushing import SETTING
from coloop.models import save_hf
from coloop.models.folder import weights_in
from coloop.runtime.checkpoints.checkpoint import list_checkpoints

__all__ = ["hub", "token"]

LOOP = """
coloop: 1
name: sums
nodes:
  gold: {kind: dataset, source: {type: task, task: arithmetic, size: 16}, rows_per_step: 2}
  actor:
    kind: actor
    model: MODEL
    algorithm: {name: sft}
  fit: {kind: evaluate, of: [actor.demonstrations], every: 1, metrics: [loss]}
  held_out: {kind: dataset, source: {type: task, task: arithmetic, size: 4}, rows_per_step: 2}
edges:
  - gold.rows -> actor.demonstrations
  - held_out.rows -> fit.rows
schedule: {steps: 2}
hardware: {preset: cpu}
run: {checkpoint_every: 1, best: fit.loss}
"""
SCRATCH = "{type: scratch, architecture: tiny-qwen3}"


def push(run: Path, *arguments: str) -> Any:
    return CliRunner().invoke(app, ["push", str(run), *arguments])


def test_whole_weights_are_pushed_and_loaded_again(
    runner: Any, hub: Hub, token: str, tmp_path: Path
) -> None:
    ended = runner(LOOP.replace("MODEL", SCRATCH))

    pushed = push(ended.folder, "actor", "user/sums", "--private")

    assert pushed.exit_code == 0, pushed.output
    assert f"pushed: {hub.url}/user/sums" in pushed.output
    repo = hub.repos["user/sums"]
    assert repo.private
    assert not [name for name in repo.files if name.endswith((".pt", ".bin"))]
    assert {"config.json", "tokenizer.json", "loop.yaml", "loop.svg", "curves.svg"} <= set(
        repo.files
    )
    card = repo.files["README.md"].decode()
    header = yaml.safe_load(card.split("---")[1])
    assert header == {
        "library_name": "transformers",
        "pipeline_tag": "text-generation",
        "tags": ["coloop", "sft"],
    }
    assert "![The loop](loop.svg)" in card
    assert "| fit.loss |" in card
    assert "the best by its evaluation" in card
    assert "- `gold`: the task `arithmetic`" in card
    assert repo.files["loop.svg"].startswith(b"<svg")
    assert repo.files["curves.svg"].count(b"<polyline") == 1
    assert token.encode() not in b"".join(repo.files.values())

    folder = download(describe_model("user/sums").repo)
    loaded = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    best = [saved for saved in list_checkpoints(ended.folder / "checkpoints") if saved.best][-1]
    weights = weights_in(best.path / "actor")
    named = dict(loaded.named_parameters())
    assert all(torch.equal(named[name], weight) for name, weight in weights if name in named)
    assert AutoTokenizer.from_pretrained(folder)("1+1")["input_ids"]

    hub.asked.clear()
    again = push(ended.folder, "actor", "user/sums")
    assert again.exit_code == 0, again.output
    assert not [path for method, path, _ in hub.asked if method == "PUT"]


@pytest.mark.skipif(find_spec("peft") is None, reason="needs peft")
def test_an_adapter_stays_one_and_names_its_base(
    runner: Any, hub: Hub, token: str, tmp_path: Path
) -> None:
    save_hf(tmp_path / "base", make_model("llama"), byte_tokenizer())
    files = {path.name: path.read_bytes() for path in (tmp_path / "base").iterdir()}
    hub.add("other/base", {**files, "README.md": b"---\nlicense: apache-2.0\n---\n"})
    download(describe_model("other/base").repo)
    model = "{type: pretrained, path: other/base, lora: {rank: 2}}"
    ended = runner(LOOP.replace("MODEL", model))

    pushed = push(ended.folder, "actor", "user/adapter")

    assert pushed.exit_code == 0, pushed.output
    got = hub.repos["user/adapter"].files
    assert "model.safetensors" not in got
    assert json.loads(got["adapter_config.json"])["base_model_name_or_path"] == "other/base"
    header = yaml.safe_load(got["README.md"].decode().split("---")[1])
    assert header["license"] == "apache-2.0"
    assert header["base_model"] == "other/base"
    assert header["library_name"] == "peft"

    from peft import PeftModel

    out = tmp_path / "out"
    for name, data in got.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_bytes(data)
    base = AutoModelForCausalLM.from_pretrained(tmp_path / "base")
    apart = PeftModel.from_pretrained(base, str(out)).eval()
    merged = tmp_path / "merged"
    written = push(ended.folder, "actor", "user/adapter", "--merged", "--to", str(merged))
    assert written.exit_code == 0, written.output
    whole = AutoModelForCausalLM.from_pretrained(merged).eval()
    ids = torch.arange(12)[None, :] % whole.config.vocab_size
    with torch.no_grad():
        assert torch.allclose(apart(ids).logits, whole(ids).logits, atol=1e-4)


def test_what_cannot_be_pushed_is_said(
    runner: Any, hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = runner(LOOP.replace("MODEL", SCRATCH))

    def refused(*arguments: str) -> str:
        answer = push(ended.folder, *arguments)
        assert answer.exit_code == 1
        assert answer.output.count("\n") == 1
        return answer.output

    assert "pushing needs a token of http://127" in refused("actor", "user/sums")
    assert "names no user or organization" in refused("actor", "sums")
    assert "has no weights for 'gold', only for actor" in refused("gold", "user/sums")
    assert "--gguf q9: types are f32" in refused("actor", "user/sums", "--gguf", "q9")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "and there is no convert_hf_to_gguf.py; clone llama.cpp" in (
        refused("actor", "user/sums", "--gguf", "f16")
    )
    monkeypatch.setenv("HF_TOKEN", "hf_of_somebody_else")
    assert "does not allow it with this token (403)" in refused("actor", "user/sums")
    monkeypatch.setenv("HF_TOKEN", "hf_test")
    hub.fault("503", "/commit/")
    monkeypatch.setattr(huggingface_hub.utils._http.time, "sleep", lambda _: None)
    assert "failed (503); try again later" in refused("actor", "user/sums")
    converter = tmp_path / "convert_hf_to_gguf.py"
    converter.write_text("import sys\nsys.exit('Model Foo is not supported')\n")
    monkeypatch.setenv(SETTING, str(converter))
    assert "could not convert the model: Model Foo is not supported" in (
        refused("actor", "user/sums", "--gguf", "f16")
    )
