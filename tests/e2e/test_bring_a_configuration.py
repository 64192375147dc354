"""A configuration of another framework is pasted, looked at, mended by a button, and run."""

import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Page, expect

if TYPE_CHECKING:
    from tests.e2e.conftest import Server

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

MAKE_MODEL = """
import sys
from pathlib import Path
from coloop.models import build_model, save_hf
from coloop.spec.model import ScratchModel
section = ScratchModel.model_validate({"type": "scratch", "architecture": "tiny-qwen3"})
made = build_model(section, seed=0, root=Path("."))
save_hf(Path(sys.argv[1]), made.model, made.tokenizer)
"""


@pytest.fixture(scope="module")
def folder(server: "Server") -> Path:
    """A tiny model and rows as verl has them, where the server may read them."""
    folder = server.data / "files" / "mine"
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.executable, "-c", MAKE_MODEL, str(folder / "model")], check=True)
    rows = [
        {
            "question": f"{number}+1=",
            "data_source": "sums",
            "reward_model": {"style": "rule", "ground_truth": str(number + 1)},
        }
        for number in range(32)
    ]
    lines = "".join(f"{json.dumps(row)}\n" for row in rows)
    (folder / "train.jsonl").write_text(lines, encoding="utf-8")
    return folder


def command(folder: Path, **more: object) -> str:
    settings = {
        "algorithm.adv_estimator": "grpo",
        "data.train_files": folder / "train.jsonl",
        "data.prompt_key": "questoin",
        "data.train_batch_size": 4,
        "data.max_prompt_length": 16,
        "data.max_response_length": 4,
        "actor_rollout_ref.model.path": folder / "model",
        "actor_rollout_ref.actor.ppo_mini_batch_size": 4,
        "actor_rollout_ref.actor.optim.lr": "1e-5",
        "actor_rollout_ref.actor.clip_ratio": 0.1,
        "actor_rollout_ref.rollout.name": "hf",
        "actor_rollout_ref.rollout.n": 4,
        "actor_rollout_ref.rollout.temprature": 0.9,
        "trainer.n_gpus_per_node": 1,
        "trainer.total_training_steps": 2,
        "trainer.experiment_name": "from-verl",
        "trainer.logger": "'[console,tensorboard]'",
        **more,
    }
    lines = " \\\n    ".join(f"{name}={value}" for name, value in settings.items())
    return f"python3 -m verl.trainer.main_ppo \\\n    {lines} $@\n"


def test_a_verl_command_is_pasted_looked_at_mended_run_and_rehearsed(
    server: "Server",
    open_page: Callable[..., Page],
    saved_yaml: Callable[[Page], str],
    violations: Callable[[Page], list[str]],
    eventually: Callable[..., object],
    folder: Path,
    tmp_path: Path,
) -> None:
    page = open_page("/loops", bypass_csp=True)
    page.get_by_role("button", name="New loop").click()
    dialog = page.get_by_role("dialog", name="New loop")
    dialog.get_by_text("From another framework").click()
    dialog.get_by_label("Configuration", exact=True).fill("train --x 1")
    expect(dialog).to_contain_text("names no trainer that is known here")

    dialog.get_by_label("Configuration", exact=True).fill(command(folder))
    loop = dialog.get_by_role("region", name="The loop")
    expect(loop).to_contain_text("verl 0.9.1, ppo")
    expect(loop).to_contain_text("did you mean actor_rollout_ref.rollout.temperature")
    loop.get_by_text("Not carried").click()
    expect(loop).to_contain_text("are null; they are 0.2 and 0.2")
    expect(loop).to_contain_text("H100-80GB assumed")
    expect(loop).to_contain_text("has no column questoin")
    expect(loop.get_by_role("img", name=re.compile("usable"))).to_be_visible()
    expect(dialog.get_by_label("Name")).to_have_value("from-verl")
    assert violations(page) == []
    dialog.get_by_role("button", name="Create").click()

    # One finding is fixed by its button.
    page.get_by_role("tab", name="Problems").click()
    problems = page.get_by_role("tabpanel")
    problems.get_by_role("button", name=re.compile("^Use .*question")).click()
    expect(problems).not_to_contain_text("questoin")
    page.get_by_role("button", name="Hardware: 1xH100").click()
    page.get_by_placeholder("Find hardware").fill("cpu")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Hardware: cpu")).to_be_visible()
    text = saved_yaml(page)
    assert "prompt: question" in text

    loop_file = tmp_path / "from-verl.yaml"
    loop_file.write_text(text, encoding="utf-8")
    said = tmp_path / "rehearsal.txt"
    with said.open("w") as out:  # what a rehearsal starts would keep a pipe open
        rehearse = [sys.executable, "-m", "coloop", "rehearse", str(loop_file)]
        code = subprocess.run(rehearse, stdout=out, stderr=out, cwd=tmp_path).returncode
    assert code == 0, said.read_text()

    exported = subprocess.run(
        [sys.executable, "-m", "coloop", "export-to", "verl", str(loop_file), "--out", "-"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert "python3 -m verl.trainer.main_ppo" in exported.stdout, exported.stderr
    assert "data.prompt_key=question" in exported.stdout

    if importlib.util.find_spec("tensorboard") is None:
        text = re.sub(r"report_to: \[[^]]*\](, )?", "", text)
    run = server.post("/runs", {"yaml": text, "force": True})
    ended = eventually(
        lambda: (
            (found := server.get(f"/runs/{run['id']}"))["state"] in ("finished", "failed") and found
        ),
        seconds=180,
    )
    assert ended["state"] == "finished", ended  # type: ignore[index]
