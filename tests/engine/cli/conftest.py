"""Running the command line inside the test's process."""

import json

import pytest
from typer.testing import CliRunner

from coloop.cli.app import app

LOOP = """\
# A loop to try commands on.
coloop: 1
name: small
nodes:
  problems: {kind: dataset, source: {type: task, task: arithmetic}, rows_per_step: 32}
  actor:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {completions_per_prompt: 8, max_new_tokens: 16}
    algorithm: {rewards: {name: grpo}}
    training: {optimizer: {name: adamw, lr: 3.0e-4}}   # a rate that works
  exact: {kind: reward, source: {type: builtin, name: exact_match}}
edges:
  - problems.rows -> actor.prompts
  - actor.rollouts -> exact.rollouts
  - exact.scores -> actor.rewards
schedule: {steps: 10}
hardware: {preset: cpu}
"""


class Outcome:
    """What a command printed, and its exit code."""

    def __init__(self, result):
        self.code = result.exit_code
        self.out = result.stdout
        self.err = result.stderr
        self.exception = result.exception

    @property
    def json(self):
        """Standard output as JSON."""
        return json.loads(self.out)


@pytest.fixture
def coloop():
    """Calls the command line; a crash is a failure of the test."""

    def call(*arguments, stdin=None):
        outcome = Outcome(CliRunner().invoke(app, list(map(str, arguments)), input=stdin))
        if outcome.exception is not None and not isinstance(outcome.exception, SystemExit):
            raise outcome.exception
        return outcome

    return call


@pytest.fixture
def loop(tmp_path):
    """Writes the loop to a file, with parts of its text replaced."""

    def write(*replacements, name="loop.yaml"):
        text = LOOP
        for old, new in replacements:
            assert old in text
            text = text.replace(old, new)
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write
