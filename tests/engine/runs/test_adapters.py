"""Two learners with an adapter each on one base: a run, its resume, its export."""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.engine.numerics import rounding
from tests.engine.runs.test_ranks import begins, finished
from transformers import AutoModelForCausalLM
from typer.testing import CliRunner

from coloop.cli.app import app
from coloop.models import build_model, save_hf
from coloop.models.folder import read_adapter, weights_in
from coloop.models.heads import SCORE
from coloop.runtime.checkpoints.checkpoint import list_checkpoints
from coloop.runtime.run_files.events import RunStateName
from coloop.spec.model import ScratchModel

pytestmark = [pytest.mark.skipif(find_spec("peft") is None, reason="needs peft"), pytest.mark.slow]

LORA = {"rank": 2}


@pytest.fixture
def text(tiny: Callable[..., str], tmp_path: Path) -> str:
    made = build_model(
        ScratchModel(type="scratch", architecture="tiny-qwen3"), seed=3, root=tmp_path
    )
    save_hf(tmp_path / "start", made.model, made.tokenizer)
    owner = {"type": "pretrained", "path": str(tmp_path / "start"), "lora": LORA}
    twin = {"type": "shared", "with": "tens", "lora": LORA}
    return tiny("two-halves", {"nodes.tens.model": owner, "nodes.units.model": twin})


def test_a_run_that_was_stopped_ends_with_the_same_adapters_and_exports_what_they_make(
    text: str, runner: Any, tmp_path: Path
) -> None:
    whole = finished(runner(text))
    stopped = runner(text, stop_at=begins(3, "units.learn"))
    resumed = finished(runner(text, resume=stopped))

    assert stopped.state is RunStateName.STOPPED, stopped.error
    plan = {one["name"]: one for one in whole.plan()["weights"]}
    assert plan["units"]["beside"] == "tens"
    ends = [list_checkpoints(run.folder / "checkpoints")[-1].path for run in (whole, resumed)]
    for node in ("tens", "units"):
        ours, theirs = (read_adapter(end / node) for end in ends)
        assert ours.keys() == theirs.keys()
        assert all(torch.equal(ours[name], theirs[name]) for name in ours), node
    saved = [path for end in ends for path in end.rglob("model.safetensors")]
    assert len({path.stat().st_ino for path in saved}) == len(ends)

    out = tmp_path / "exported"
    told = CliRunner().invoke(app, ["export", str(whole.folder), "units", str(out)])

    assert told.exit_code == 0, told.output
    check_export(ends[0] / "units", out)
    again = CliRunner().invoke(app, ["export", str(whole.folder), "sums", str(tmp_path / "no")])
    assert again.exit_code == 1
    assert "has no weights for 'sums', only for tens, units" in again.output


def check_export(saved: Path, out: Path) -> None:
    """What plain transformers loads says what base and adapter say, by peft."""
    from peft import PeftModel

    merged = AutoModelForCausalLM.from_pretrained(out)
    base = AutoModelForCausalLM.from_pretrained(saved / "base")
    ids = torch.arange(12)[None, :] % merged.config.vocab_size
    apart = PeftModel.from_pretrained(base, str(out / "adapter")).eval()
    with torch.no_grad():
        ours, theirs = merged(ids).logits, apart(ids).logits
        plain = AutoModelForCausalLM.from_pretrained(saved / "base")(ids).logits
    assert not torch.equal(ours, plain)
    assert torch.allclose(
        ours, theirs, rtol=0, atol=rounding(3000, scale=float(theirs.abs().max()))
    )
    named = dict(merged.named_parameters())
    for name, weight in weights_in(saved):
        assert name.startswith(SCORE) or torch.equal(named.get(name, weight), weight)
