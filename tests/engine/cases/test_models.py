"""Models that people brought: mixtures of experts that are written, dropout that is off."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests import forked

CASES = Path(__file__).resolve().parents[3].parent / "shared/cases/2026-11"
SECONDS = 300

pytestmark = pytest.mark.skipif(not CASES.exists(), reason="the cases are not here")


def brought(case: str, kind: str, folder: Path) -> Path:
    """A copy of a case, with the model that its script makes."""
    shutil.copytree(CASES / case, folder, dirs_exist_ok=True)
    made = forked.run(str(folder / "make.py"), kind, "model", cwd=folder, timeout=SECONDS)
    assert made.returncode == 0, made.stderr
    return folder


def run(loop: Path) -> tuple[int, list[dict[str, Any]], Path]:
    """Exit code, events and folder of a run, in a process of its own as it is typed."""
    command = ("-m", "coloop", "run", loop.name, "--local", "--json")
    done = forked.run(*command, "--run-id", "case", cwd=loop.parent, timeout=SECONDS)
    events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return done.returncode, events, loop.parent / "runs" / "case"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["qwen3_moe", "mixtral", "glm4_moe"])
def test_a_mixture_of_experts_is_written_and_loads_elsewhere(kind: str, tmp_path: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    case = brought("19-moe-checkpoint", kind, tmp_path)

    code, events, folder = run(case / "loop.yaml")

    assert code == 0, events[-1]
    [written] = {one.parent for one in folder.glob("checkpoints/*/**/config.json")}
    model, told = AutoModelForCausalLM.from_pretrained(written, output_loading_info=True)
    assert not told["missing_keys"]
    assert not told["unexpected_keys"]
    before = AutoModelForCausalLM.from_pretrained(case / "model").state_dict()
    changed = [
        name
        for name, weight in model.state_dict().items()
        if not torch.equal(weight, before[name].to(weight.dtype))
    ]
    assert any("experts" in name for name in changed)


def metrics_of(events: list[dict[str, Any]]) -> dict[str, float]:
    """Of the first step."""
    first = [one for one in events if one["type"] == "metrics" and one["step"] == 1]
    return {name: value for one in first for name, value in one["metrics"].items()}


def test_the_first_loss_of_dpo_is_log_2_whatever_dropout_the_model_has(tmp_path: Path) -> None:
    case = brought("22-dropout", "gpt2", tmp_path)

    code, events, _ = run(case / "dpo.yaml")

    assert code == 0, events[-1]
    found = metrics_of(events)
    assert found["loss"] == pytest.approx(0.693147, abs=1e-5)
    assert found["margin"] == pytest.approx(0.0, abs=1e-5)


@pytest.mark.slow
def test_what_a_model_with_dropout_learns_from_rewards_is_what_it_wrote(tmp_path: Path) -> None:
    case = brought("22-dropout", "gpt2", tmp_path)

    code, events, _ = run(case / "grpo.yaml")

    assert code == 0, events[-1]
    assert metrics_of(events)["mismatch/max"] < 1e-4
