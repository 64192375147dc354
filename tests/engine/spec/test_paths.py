"""Paths: what they name, what they say about a field, and specs with other values at them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coloop.errors import SpecProblem
from coloop.spec.catalog import section_schema
from coloop.spec.changes import locate
from coloop.spec.diagnostics import Change, Diagnostic
from coloop.spec.graph import LoopSpec
from coloop.spec.io import parse
from coloop.spec.nodes import NODE_CLASSES
from coloop.spec.paths import apply_overrides, check_path, find, get_value
from coloop.spec.schedule import Schedule
from coloop.spec.text.patch import patch

LOOP = """\
coloop: 1
name: loop
nodes:
  problems: {kind: dataset, source: {type: task, task: arithmetic, digits: 2}, rows_per_step: 8}
  policy:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    algorithm:
      rewards: [{name: grpo, weight: 0.5}, {name: rloo, weight: 0.5}]
      pairs: {name: dpo, beta: 0.1}
  imitator: {kind: actor, model: {type: scratch, architecture: tiny-qwen3}, algorithm: {name: sft}}
  exact: {kind: reward, source: {type: builtin, name: exact_match}}
  mixed: {kind: reward, source: {type: builtin, name: weighted, weights: {exact: 1.0}}}
edges:
  - problems.rows -> policy.prompts
  - {from: exact.scores, to: policy.rewards, id: outcome, weight: 0.9}
schedule:
  phases:
    - {name: warm-up, steps: 40, learn: [imitator]}
    - repeat: 2
      phases:
        - {name: rl, steps: 3, learn: [policy.rewards]}
"""


@pytest.fixture
def spec() -> LoopSpec:
    found = parse(LOOP)
    assert found.spec is not None, found.diagnostics
    return found.spec


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("name", "loop"),
        ("nodes.problems.rows_per_step", 8),
        ("nodes.problems.source.digits", 2),
        ("nodes.policy.rollout.temperature", 1.0),
        ("nodes.policy.training.optimizer.lr", 1e-6),
        ("nodes.policy.algorithm.rewards.1.weight", 0.5),
        ("nodes.policy.algorithm.pairs.beta", 0.1),
        ("nodes.imitator.algorithm.weight", 1.0),
        ("nodes.imitator.algorithm.demonstrations.weight", 1.0),
        ("nodes.mixed.source.weights.exact", 1.0),
        ("edges.1.weight", 0.9),
        ("edges.outcome.weight", 0.9),
        ("edges.problems.rows->policy.prompts.weight", 1.0),
        ("schedule.phases.0.steps", 40),
        ("schedule.phases.warm-up.steps", 40),
        ("schedule.phases.1.repeat", 2),
        ("schedule.phases.1.phases.0.steps", 3),
        ("schedule.max_staleness", 0.0),
        ("hardware.memory_budget", 0.9),
        ("run.seed", 0),
    ],
)
def test_a_path_names_a_value_with_its_default(spec: LoopSpec, path: str, value: object) -> None:
    assert get_value(spec, path) == value


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("nods.policy.rollout", "did you mean `nodes`?"),
        ("nodes.polcy.rollout", "did you mean `policy`?"),
        ("nodes.policy.rolout.temperature", "did you mean `rollout`?"),
        ("nodes.policy.rollout.temprature", "did you mean `temperature`?"),
        ("nodes.policy.rollout.temperature.deeper", "does not exist"),
        ("edges.outcme.weight", "did you mean `outcome`?"),
        ("edges.7.weight", "does not exist"),
        ("schedule.phases.warmup.steps", "did you mean `warm-up`?"),
        ("schedule.phases.5.steps", "does not exist"),
        ("nodes.mixed.source.weights.nobody", "known: exact"),
        ("", "does not exist"),
        ("...", "does not exist"),
    ],
)
def test_a_wrong_path_is_told_with_what_was_meant(spec: LoopSpec, path: str, words: str) -> None:
    with pytest.raises(SpecProblem) as caught:
        get_value(spec, path)

    assert words in str(caught.value)
    found = check_path(spec, path, field="schedule.anneal.0.path")
    assert found is not None
    assert (found.code, found.field) == ("structure.unknown_path", "schedule.anneal.0.path")


@pytest.mark.parametrize(
    ("path", "hot"),
    [
        ("nodes.policy.training.optimizer.lr", True),
        ("nodes.policy.rollout.completions_per_prompt", True),
        ("nodes.problems.rows_per_step", True),
        ("nodes.problems.source.digits", True),
        ("nodes.mixed.source.weights.exact", True),
        ("edges.outcome.weight", True),
        ("nodes.policy.model.architecture", False),
        ("nodes.policy.rollout", False),
        ("schedule.phases.0.steps", False),
        ("run.seed", False),
        ("name", False),
    ],
)
def test_some_fields_may_change_in_a_run(spec: LoopSpec, path: str, hot: bool) -> None:
    assert find(spec, path).facts["x-hot"] is hot

    found = check_path(spec, path, hot=True)
    assert (found is None) is hot
    assert found is None or found.code == "structure.not_hot"


def test_a_path_knows_what_the_language_says_about_its_field(spec: LoopSpec) -> None:
    found = find(spec, "nodes.problems.rows_per_step")

    assert (found.facts["x-level"], found.facts["x-unit"]) == ("simple", "rows")
    assert found.field is not None
    assert found.field.description == "Rows of one step; null: all of them."


def test_paths_work_on_plain_documents_too() -> None:
    document = parse(LOOP).document
    assert document is not None

    assert find(document, "edges.outcome.weight").facts["x-hot"]
    assert find(document, "nodes.policy.training.optimizer.lr").facts["x-hot"]


def test_overrides_give_another_spec_and_leave_the_old_one(spec: LoopSpec) -> None:
    new = apply_overrides(
        spec,
        {
            "nodes.policy.training.optimizer.lr": 2e-3,
            "nodes.policy.rollout.temperature": 0.5,
            "nodes.problems.source.digits": [1, 3],
            "edges.outcome.weight": 0,
            "schedule.phases.0.steps": 5,
            "run.seed": 3,
            "name": "other",
        },
    )

    assert get_value(new, "nodes.policy.training.optimizer.lr") == 2e-3
    assert get_value(new, "nodes.policy.rollout.temperature") == 0.5
    assert get_value(new, "nodes.problems.source.digits") == (1, 3)
    assert get_value(new, "edges.outcome.weight") == 0.0
    assert get_value(new, "schedule.phases.0.steps") == 5
    assert (new.run.seed, new.name) == (3, "other")
    assert get_value(spec, "schedule.phases.0.steps") == 40
    assert new.graph.edges_into("policy", "rewards")[0].weight == 0.0
    assert parse_again(new) == new


def parse_again(spec: LoopSpec) -> LoopSpec | None:
    """The spec through its own text."""
    from coloop.spec.io import dump

    return parse(dump(spec)).spec


def test_no_overrides_are_the_same_spec(spec: LoopSpec) -> None:
    assert apply_overrides(spec, {}) is spec


@pytest.mark.parametrize(
    ("path", "value", "code"),
    [
        ("nodes.policy.rollout.temperature", -1, "numbers.out_of_range"),
        ("nodes.policy.rollout.temperature", "hot", "structure.wrong_type"),
        ("nodes.policy.kind", "actr", "structure.unknown_kind"),
        ("edges.outcome.weight", float("nan"), "yaml.not_finite"),
        ("schedule.phases.0.steps", 0, "numbers.out_of_range"),
        ("nodes.policy.rollout.temprature", 1.0, "structure.unknown_path"),
    ],
)
def test_an_override_that_does_not_fit_is_refused(
    spec: LoopSpec, path: str, value: object, code: str
) -> None:
    with pytest.raises(SpecProblem) as caught:
        apply_overrides(spec, {path: value})

    assert [found.code for found in caught.value.diagnostics] == [code]  # type: ignore[attr-defined]
    assert path.rpartition(".")[2] in str(caught.value)


SHARED = json.loads((Path(__file__).parents[2] / "fixtures" / "paths.json").read_text("utf-8"))
"""Paths and what they name, for this side and the page's."""


@pytest.mark.parametrize("case", SHARED["cases"], ids=lambda case: str(case["path"]))
def test_a_path_names_the_longest_key_that_is_there(case: dict[str, Any]) -> None:
    assert locate(SHARED["document"], case["path"]) == tuple(case["parts"])


IN_A_PHASE = LOOP.replace(
    "steps: 40, learn: [imitator]",
    "steps: 40, learn: [imitator], set: {nodes.policy.rollout.temperature: 0.5}",
)
IN_A_SET = "schedule.phases.0.set.nodes.policy.rollout.temperature"


def test_a_value_in_a_phases_set_is_changed_where_it_stands() -> None:
    changed = parse(patch(IN_A_PHASE, [Change(op="set", path=IN_A_SET, value=0.7)])).document

    assert changed is not None
    assert changed["schedule"]["phases"][0]["set"] == {"nodes.policy.rollout.temperature": 0.7}


def test_a_value_comes_new_into_a_phases_set() -> None:
    changed = parse(patch(LOOP, [Change(op="set", path=IN_A_SET, value=0.7)])).document

    assert changed is not None
    assert changed["schedule"]["phases"][0]["set"] == {"nodes.policy.rollout.temperature": 0.7}


def test_a_value_is_removed_from_a_phases_set() -> None:
    changed = parse(patch(IN_A_PHASE, [Change(op="remove", path=IN_A_SET)])).document

    assert changed is not None
    assert changed["schedule"]["phases"][0]["set"] == {}


def test_a_spec_takes_other_values_in_a_phases_set() -> None:
    found = parse(IN_A_PHASE).spec
    assert found is not None

    changed = apply_overrides(found, {IN_A_SET: 0.7, f"{IN_A_SET[:-11]}top_k": 4})

    assert changed.schedule.flat_phases()[0].set == {
        "nodes.policy.rollout.temperature": 0.7,
        "nodes.policy.rollout.top_k": 4,
    }
    assert get_value(changed, IN_A_SET) == 0.7
    assert not find(changed, IN_A_SET).facts["x-hot"]


def test_a_finding_in_a_phases_set_has_its_line() -> None:
    parsed = parse(IN_A_PHASE)
    finding = Diagnostic(code="structure.not_hot", message="x", field=IN_A_SET)

    assert parsed.locate(finding).line == IN_A_PHASE[: IN_A_PHASE.index("set:")].count("\n") + 1


def test_mappings_of_paths_are_those_that_the_catalog_names() -> None:
    """`holds_paths` knows by name what the schema says of each field."""

    def of_paths(part: Any) -> Iterator[str]:
        if isinstance(part, dict):
            for name, field in part.get("properties", {}).items():
                if isinstance(field, dict) and field.get("x-key-reference") == "path":
                    yield name
            for inner in part.values():
                yield from of_paths(inner)

    whole = section_schema(LoopSpec)
    assert set(of_paths(whole)) == {"set"}
    assert set(of_paths(section_schema(Schedule))) == {"set"}
    assert not any(set(of_paths(section_schema(cls))) for cls in NODE_CLASSES.values())
