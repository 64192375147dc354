"""The values of the moment: spec < phase set < anneal < trigger < edit."""

import pytest

from coloop.errors import SpecProblem
from coloop.plan.compile import compile_plan
from coloop.runtime.phases.fields import Fields, anneal_value
from coloop.runtime.phases.timeline import Entry, StepPosition, entries_of
from coloop.spec.graph import LoopSpec
from coloop.spec.io import parse
from coloop.spec.schedule import Anneal

LR = "nodes.policy.training.optimizer.lr"
LOOP = f"""
coloop: 1
name: small
nodes:
  gold: {{kind: dataset, source: {{type: task, task: arithmetic}}, rows_per_step: 4}}
  policy:
    kind: actor
    model: {{type: scratch, architecture: tiny-qwen3}}
    algorithm: {{name: sft}}
    training: {{optimizer: {{lr: 1.0e-3}}}}
edges:
  - {{from: gold.rows, to: policy.demonstrations, id: gold}}
schedule:
  phases:
    - {{name: one, steps: 3, learn: [policy], set: {{{LR}: 2.0e-3}}}}
    - {{name: two, steps: 5, learn: [policy]}}
  anneal:
    - {{path: edges.gold.weight, from: 1.0, to: 0.0, over: [two], complement:
      nodes.policy.rollout.temperature}}
"""


def setup() -> tuple[LoopSpec, list[Entry], Fields]:
    spec = parse(LOOP).spec
    assert spec is not None
    entries = entries_of(spec, compile_plan(spec))
    return spec, entries, Fields(spec, entries)


def position(entry: Entry, step: int) -> StepPosition:
    return StepPosition(entry=entry, step=step, step_in_phase=step, steps_of_phase=None)


def lr(spec: LoopSpec) -> float:
    return spec.nodes["policy"].training.optimizer.lr  # type: ignore[union-attr]


def test_set_lasts_as_long_as_its_phase() -> None:
    spec, entries, fields = setup()

    assert lr(fields.at(position(entries[0], 1))) == 2.0e-3
    assert lr(fields.at(position(entries[1], 1))) == 1.0e-3
    assert lr(spec) == 1.0e-3


def test_an_anneal_moves_over_the_steps_of_its_phases_only() -> None:
    _, entries, fields = setup()
    weights = []
    assert fields.at(position(entries[0], 1)).edges[0].weight == 1.0
    for step in range(1, 6):
        now = position(entries[1], step)
        weights.append(fields.at(now).edges[0].weight)
        fields.step_begins(now)

    assert weights == [1.0, 0.75, 0.5, 0.25, 0.0]


def test_the_complement_gets_the_rest() -> None:
    _, entries, fields = setup()
    for step in range(1, 3):
        fields.step_begins(position(entries[1], step))

    values = fields.overrides(position(entries[1], 3))

    assert values["edges.gold.weight"] == 0.5
    assert values["nodes.policy.rollout.temperature"] == 0.5


def test_a_triggers_set_beats_the_anneal_and_an_edit_beats_both() -> None:
    _, entries, fields = setup()
    now = position(entries[1], 1)

    fields.set_by_trigger({"edges.gold.weight": 0.3})
    assert fields.at(now).edges[0].weight == 0.3
    fields.edit({"edges.gold.weight": 0.9})
    assert fields.at(now).edges[0].weight == 0.9


def test_an_edit_that_does_not_fit_is_refused_and_changes_nothing() -> None:
    _, entries, fields = setup()
    before = fields.at(position(entries[1], 1))

    with pytest.raises(SpecProblem):
        fields.edit({LR: -1.0})

    assert fields.at(position(entries[1], 1)) == before


def test_an_edit_of_a_field_that_is_not_hot_is_refused() -> None:
    _, _, fields = setup()

    with pytest.raises(SpecProblem, match="cannot change in a run"):
        fields.edit({"nodes.policy.model.architecture": "tiny-llama"})


def test_the_same_values_give_the_same_spec_object() -> None:
    _, entries, fields = setup()

    assert fields.at(position(entries[0], 1)) is fields.at(position(entries[0], 2))


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ("linear", [1.0, 0.5, 0.01]),
        ("cosine", [1.0, 0.505, 0.01]),
        ("exponential", [1.0, 0.1, 0.01]),
        ("step", [1.0, 0.01, 0.01]),
    ],
)
def test_shapes_begin_at_from_and_end_at_to(shape: str, expected: list[float]) -> None:
    anneal = Anneal.model_validate({"path": "x", "from": 1.0, "to": 0.01, "shape": shape})

    values = [anneal_value(anneal, step, 3) for step in (0, 1, 2)]

    assert values == pytest.approx(expected, abs=6e-3)


def test_a_cycle_begins_anew() -> None:
    anneal = Anneal.model_validate({"path": "x", "from": 0.0, "to": 1.0, "cycle": 3})

    assert [anneal_value(anneal, step, None) for step in range(6)] == [0, 0.5, 1, 0, 0.5, 1]


def in_epochs(fields: Fields, entry: Entry, steps: int, left_out: int = 0) -> list[float]:
    """Weights of a phase's steps, whose number its source tells when it begins."""
    weights = []
    for step in range(1, steps + 1 - left_out):
        now = StepPosition(entry=entry, step=step, step_in_phase=step, steps_of_phase=steps)
        weights.append(fields.at(now).edges[0].weight)
        fields.step_begins(now)
    return weights


def test_an_anneal_goes_over_the_steps_that_passes_take() -> None:
    spec = parse(LOOP.replace("name: two, steps: 5", "name: two, epochs: 1")).spec
    assert spec is not None
    entries = entries_of(spec, compile_plan(spec))
    fields = Fields(spec, entries)

    entering = StepPosition(entry=entries[1], step=0, step_in_phase=0, steps_of_phase=None)

    assert fields.at(entering).edges[0].weight == 1.0
    assert in_epochs(fields, entries[1], 5) == [1.0, 0.75, 0.5, 0.25, 0.0]


def test_an_anneal_over_passes_goes_on_after_a_resume() -> None:
    spec = parse(LOOP.replace("name: two, steps: 5", "name: two, epochs: 1")).spec
    assert spec is not None
    entries = entries_of(spec, compile_plan(spec))
    fields, resumed = Fields(spec, entries), Fields(spec, entries)
    in_epochs(fields, entries[1], 5, left_out=3)

    resumed.load_state(fields.state())
    between = StepPosition(entry=entries[1], step=2, step_in_phase=2, steps_of_phase=None)

    assert resumed.at(between).edges[0].weight == fields.at(between).edges[0].weight == 0.5
