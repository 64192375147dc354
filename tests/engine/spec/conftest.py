"""Loops to test with: the examples of the language where present, and a small one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from coloop.spec.changes import diff
from coloop.spec.io import patch, read_document

ROOT = Path(__file__).resolve().parents[3]
LANGUAGE = ROOT.parent / "shared" / "language"
EXAMPLES = sorted((LANGUAGE / "examples").glob("*.yaml"))
PRESETS = sorted((ROOT / "presets" / "loops").glob("*.yaml"))

SMALL = """\
# A small loop.
coloop: 1
name: small                      # what it is called
nodes:
  problems: {kind: dataset, source: {type: task, task: arithmetic, digits: 2}, rows_per_step: 32}
  actor:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {completions_per_prompt: 8, temperature: 1.0}   # a group of eight
    algorithm:
      rewards: {name: grpo}
    training: {optimizer: {lr: 3.0e-4}}
  exact: {kind: reward, source: {type: builtin, name: exact_match}}

edges:
  - problems.rows -> actor.prompts
  - actor.rollouts -> exact.rollouts
  - {from: exact.scores, to: actor.rewards, id: outcome, weight: 0.9}
schedule: {steps: 3}
"""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`example` is each loop file: of the language where it is present, and of the presets."""
    if "example" in metafunc.fixturenames:
        files = [*EXAMPLES, *PRESETS]
        names = [f"{path.parent.name}/{path.stem}" for path in files]
        missing = pytest.mark.skip(reason="shared/language/examples is not present")
        cases = [pytest.param(path, id=name) for path, name in zip(files, names, strict=True)]
        metafunc.parametrize("example", cases or [pytest.param(None, marks=missing)])


@pytest.fixture
def small() -> str:
    """The text of the small loop."""
    return SMALL


@pytest.fixture
def language() -> Path:
    """The folder with the language's port table and examples."""
    if not LANGUAGE.is_dir():
        pytest.skip("shared/language is not present")
    return LANGUAGE


def rewrite(text: str, document: dict[str, Any]) -> str:
    """The text, changed just so far that it says what a document says."""
    old = read_document(text).document
    assert old is not None
    return patch(text, diff(old, document))
