"""Inputs of people whose model is not known, and the same loops with a model that is."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from coloop.cli.app import app

CASE = Path(__file__).resolve().parents[3].parent / "shared/cases/2026-11/23-estimate-of-unknown"

pytestmark = pytest.mark.skipif(not CASE.exists(), reason="the cases are not here")


def _run(*arguments):
    outcome = CliRunner().invoke(app, list(map(str, arguments)))
    return outcome.exit_code, " ".join(outcome.output.split())


@pytest.mark.parametrize("model", ["openai/gpt-oss-20b", "Qwen/Qwen3.5-9B", "unsloth/Some-4B"])
def test_a_model_that_nobody_knows_has_no_numbers(model):
    code, told = _run("estimate", CASE / "loop.yaml", "--set", f"nodes.actor.model.path={model}")

    assert code == 1
    assert "unknown: actor" in told
    assert model in told
    assert "fits" not in told
    assert "one step takes" not in told
    assert "config.json" in told


def test_validate_warns_of_it():
    code, told = _run("validate", CASE / "loop.yaml")

    assert code == 0
    assert "memory.unknown" in told
    assert "nodes.actor.model.path" in told


def test_the_same_loop_with_a_known_model_has_numbers():
    code, told = _run(
        "estimate", CASE / "loop.yaml", "--set", "nodes.actor.model.path=Qwen/Qwen3-8B"
    )

    assert code == 0
    assert "fits" in told
    assert "one step takes" in told
