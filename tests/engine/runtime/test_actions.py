"""What phases and triggers do to weights."""

from types import SimpleNamespace
from typing import Any, cast

from coloop.runtime.actions import Actions
from coloop.spec.io import parse

LOOP = """
coloop: 1
name: later
nodes:
  problems: {kind: dataset, source: {type: task, task: arithmetic}, rows_per_step: 2}
  actor: {kind: actor, model: {type: scratch, architecture: tiny-qwen3}}
  later: {kind: actor, model: {type: copy, of: actor, at: second}}
edges: [problems.rows -> actor.prompts]
schedule: {steps: 1}
"""


class Weights:
    """Notes which weights were loaded from which."""

    def __init__(self) -> None:
        self.now = 0
        self.refreshed: list[tuple[str, str]] = []

    def version(self, group: str) -> int:
        return self.now

    def refresh(self, group: str, source: str, **options: Any) -> None:
        self.refreshed.append((group, source))


def test_a_copy_that_has_not_begun_follows_each_update_of_its_source_once() -> None:
    spec = parse(LOOP).spec
    assert spec is not None
    weights, groups = Weights(), {"actor": "actor", "later": "later"}
    nothing = cast(Any, SimpleNamespace())
    actions = Actions(groups, cast(Any, weights), {}, nothing, nothing, ["later"], nothing)

    actions.step_done(spec)
    assert weights.refreshed == []
    weights.now = 1
    actions.step_done(spec)
    actions.step_done(spec)

    assert weights.refreshed == [("later", "actor")]
