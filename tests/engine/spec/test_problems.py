"""Wrong loops: each gets its diagnostic, with place, what was found, what is expected, the fix."""

from __future__ import annotations

import pytest

from coloop.spec.diagnostics import Change, Diagnostic
from coloop.spec.io import from_dict, parse, patch


def only(text: str) -> Diagnostic:
    """The one finding of a text."""
    parsed = parse(text)
    assert parsed.spec is None
    assert len(parsed.diagnostics) == 1, [found.describe() for found in parsed.diagnostics]
    return parsed.diagnostics[0]


WRONG = [
    # what stands there, what is written instead, code, path, words of message or hint
    ("kind: actor", "kind: actr", "structure.unknown_kind", "nodes.actor.kind", "`actor`"),
    ("kind: actor", "note: x", "structure.missing_field", "nodes.actor.kind", "dataset, actor"),
    (
        "completions_per_prompt",
        "completion_per_prompt",
        "structure.unknown_field",
        "nodes.actor.rollout.completion_per_prompt",
        "did you mean `completions_per_prompt`?",
    ),
    (
        "completions_per_prompt",
        "num_generations",
        "structure.unknown_field",
        "nodes.actor.rollout.num_generations",
        "did you mean `completions_per_prompt`?",
    ),
    (
        "    rollout: {completions_per_prompt: 8, temperature: 1.0}",
        "    temperature: 0.5",
        "structure.unknown_field",
        "nodes.actor.temperature",
        "did you mean `rollout.temperature`?",
    ),
    (
        "lr: 3.0e-4",
        "learning_rate: 3.0e-4",
        "structure.unknown_field",
        "nodes.actor.training.optimizer.learning_rate",
        "did you mean `lr`?",
    ),
    (
        "completions_per_prompt: 8",
        'completions_per_prompt: "8"',
        "structure.wrong_type",
        "nodes.actor.rollout.completions_per_prompt",
        "without quotes",
    ),
    (
        "completions_per_prompt: 8",
        "completions_per_prompt: 8.0",
        "structure.wrong_type",
        "nodes.actor.rollout.completions_per_prompt",
        "without a dot",
    ),
    (
        "completions_per_prompt: 8",
        "completions_per_prompt: true",
        "structure.wrong_type",
        "nodes.actor.rollout.completions_per_prompt",
        "found true; a whole number is expected",
    ),
    (
        "completions_per_prompt: 8",
        "completions_per_prompt: [8]",
        "structure.wrong_type",
        "nodes.actor.rollout.completions_per_prompt",
        "found a list of 1",
    ),
    (
        "completions_per_prompt: 8",
        "completions_per_prompt: 0",
        "numbers.out_of_range",
        "nodes.actor.rollout.completions_per_prompt",
        "at least 1",
    ),
    (
        "temperature: 1.0",
        "temperature: -0.5",
        "numbers.out_of_range",
        "nodes.actor.rollout.temperature",
        "found the number -0.5; at least 0 is expected",
    ),
    (
        "lr: 3.0e-4",
        "lr: -3.0e-4",
        "numbers.out_of_range",
        "nodes.actor.training.optimizer.lr",
        "at least 0",
    ),
    (
        "temperature: 1.0",
        "top_p: 1.5",
        "numbers.out_of_range",
        "nodes.actor.rollout.top_p",
        "at most 1",
    ),
    (
        "rows_per_step: 32",
        "rows_per_step: thirty",
        "structure.wrong_type",
        "nodes.problems.rows_per_step",
        "found the text 'thirty'; a whole number is expected",
    ),
    (
        "{name: grpo}",
        "{name: grop}",
        "structure.unknown_value",
        "nodes.actor.algorithm.rewards.name",
        "did you mean `grpo`",
    ),
    (
        "{name: grpo}",
        "{name: openrlhf-reinforce}",
        "structure.unknown_value",
        "nodes.actor.algorithm.rewards.name",
        "did you mean `openrlhf-reinforce-pp`",
    ),
    (
        "{name: grpo}",
        "{name: openrlhf-reinforce_baseline}",
        "structure.unknown_value",
        "nodes.actor.algorithm.rewards.name",
        "did you mean `openrlhf-reinforce-pp-baseline`",
    ),
    (
        "{name: grpo}",
        "{name: sft}",
        "structure.unknown_value",
        "nodes.actor.algorithm.rewards.name",
        "`sft` belongs to port `demonstrations`",
    ),
    (
        "{name: grpo}",
        "grpo",
        "structure.wrong_type",
        "nodes.actor.algorithm.rewards",
        "a mapping (name",
    ),
    (
        "{name: grpo}",
        "[{name: grpo}, {name: ppo, kl: 0.1}]",
        "structure.wrong_type",
        "nodes.actor.algorithm.rewards.1.kl",
        "coefficient",
    ),
    (
        "{name: grpo}",
        "{name: gspo, aggregation: token_mean}",
        "structure.conflict",
        "nodes.actor.algorithm.rewards.aggregation",
        "sequence_mean",
    ),
    (
        "      rewards: {name: grpo}",
        "      reward: {name: grpo}",
        "structure.unknown_field",
        "nodes.actor.algorithm.reward",
        "did you mean `rewards`?",
    ),
    (
        "type: scratch",
        "type: scrach",
        "structure.unknown_value",
        "nodes.actor.model.type",
        "did you mean `scratch`?",
    ),
    (
        "type: scratch, architecture: tiny-qwen3",
        "type: shared",
        "structure.missing_field",
        "nodes.actor.model.with",
        "`with` is missing; text is expected",
    ),
    (
        "task: arithmetic, digits: 2",
        "task: arithmetics",
        "structure.unknown_value",
        "nodes.problems.source.task",
        "did you mean `arithmetic`?",
    ),
    (
        "digits: 2",
        "digit: 2",
        "structure.unknown_field",
        "nodes.problems.source.digit",
        "did you mean `digits`?",
    ),
    (
        "digits: 2",
        "digits: 0",
        "numbers.out_of_range",
        "nodes.problems.source.digits",
        "1 to 9",
    ),
    (
        "digits: 2",
        "digits: [3, 1]",
        "numbers.out_of_range",
        "nodes.problems.source.digits",
        "[least, greatest]",
    ),
    (
        "digits: 2",
        "digits: [1, 2, 3]",
        "structure.bad_value",
        "nodes.problems.source.digits",
        "at most 2",
    ),
    (
        "name: exact_match",
        "name: exact_matc",
        "structure.unknown_value",
        "nodes.exact.source.name",
        "did you mean `exact_match`?",
    ),
    (
        "name: exact_match",
        "name: overlong, max: 8, buffer: 9",
        "structure.bad_value",
        "nodes.exact.source.buffer",
        "must not be greater than `max`",
    ),
    (
        "type: builtin, name: exact_match",
        "type: model",
        "structure.missing_field",
        "nodes.exact.model",
        "is needed with `source.type: model`",
    ),
    (
        "source: {type: builtin, name: exact_match}",
        "source: {type: builtin, name: exact_match}, training: {}",
        "structure.conflict",
        "nodes.exact.training",
        "belongs only to `source.type: model`",
    ),
    (
        "type: builtin, name: exact_match",
        "type: python",
        "structure.conflict",
        "nodes.exact.source.code",
        "`code` or `file`",
    ),
    (
        "problems.rows -> actor.prompts",
        "problems.rows > actor.prompts",
        "structure.bad_edge",
        "edges.0",
        "`node.port -> node.port`",
    ),
    (
        "problems.rows -> actor.prompts",
        "problems -> actor.prompts",
        "structure.bad_edge",
        "edges.0.from",
        "`node.port` is expected",
    ),
    (
        "weight: 0.9",
        "wieght: 0.9",
        "structure.unknown_field",
        "edges.2.wieght",
        "did you mean `weight`?",
    ),
    (
        "weight: 0.9",
        "aggregate: median",
        "structure.unknown_value",
        "edges.2.aggregate",
        "mean, min, max, sum, last",
    ),
    (
        "weight: 0.9",
        "branch: all",
        "structure.conflict",
        "edges.2.branch",
        "only to an edge with `rounds`",
    ),
    (
        "schedule: {steps: 3}",
        "schedule: {steps: 3, epochs: 1}",
        "structure.conflict",
        "schedule.epochs",
        "found `steps` and `epochs`",
    ),
    (
        "schedule: {steps: 3}",
        "schedule: {phases: [{name: a}]}",
        "structure.missing_field",
        "schedule.phases.0.steps",
        "found none of them",
    ),
    (
        "schedule: {steps: 3}",
        "schedule: {phases: [{name: a, until: pool}]}",
        "structure.bad_value",
        "schedule.phases.0.until",
        "`buffer.full` is expected",
    ),
    (
        "schedule: {steps: 3}",
        "schedule: {steps: 3, max_staleness: -1}",
        "numbers.out_of_range",
        "schedule.max_staleness",
        "at least 0",
    ),
    ("schedule: {steps: 3}", "schedule: 5", "structure.wrong_type", "schedule", "a mapping (steps"),
    (
        "steps: 3",
        "steps: 3, triggers: [{when: {metric: probe.accuracy}, do: {stop: true}}]",
        "structure.missing_field",
        "schedule.triggers.0.when.above",
        "one of `above`",
    ),
    (
        "steps: 3",
        "steps: 3, triggers: [{when: {metric: accuracy, above: 1}, do: {stop: true}}]",
        "structure.bad_value",
        "schedule.triggers.0.when.metric",
        "`node.metric` is expected",
    ),
    ("  actor:\n", "  Actor:\n", "structure.bad_name", "nodes.Actor", "is not a valid node id"),
    ("name: small ", 'name: "a b" ', "structure.bad_name", "name", "that is not a name"),
    ("coloop: 1", "coloop: 99", "version.newer", "coloop", "install a newer coloop"),
    ("coloop: 1", "coloop: one", "version.unknown", "coloop", "write `coloop: 1`"),
    ("coloop: 1", "colop: 1", "version.missing", "coloop", "found `colop`"),
]


@pytest.mark.parametrize(("old", "new", "code", "path", "words"), WRONG)
def test_a_wrong_variant_gets_exactly_its_diagnostic(
    small: str, old: str, new: str, code: str, path: str, words: str
) -> None:
    assert small.count(old) >= 1

    found = only(small.replace(old, new, 1))

    assert (found.code, found.path) == (code, path)
    assert words in f"{found.message} | {found.hint}"
    assert found.line is not None
    assert found.column is not None


def test_a_finding_names_the_line_of_its_key(small: str) -> None:
    found = only(small.replace("temperature: 1.0", "temprature: 1.0"))

    assert small.splitlines()[found.line - 1][found.column - 1 :].startswith("temperature")  # type: ignore[operator]


def test_the_hint_for_a_known_node_is_inside_of_the_node(small: str) -> None:
    found = only(small.replace("temperature: 1.0", "temprature: 1.0"))

    assert (found.node, found.field) == ("actor", "rollout.temprature")


def test_several_errors_are_all_told(small: str) -> None:
    text = small.replace("kind: reward", "kind: rewrd").replace("rows_per_step: 32", "rows: 32")

    assert {found.code for found in parse(text).diagnostics} == {
        "structure.unknown_kind",
        "structure.unknown_field",
    }


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("temperature", "temprature"),
        ("completions_per_prompt: 8", 'completions_per_prompt: "8"'),
        ("completions_per_prompt: 8", "completions_per_prompt: 8.0"),
        ("kind: actor", "kind: actr"),
        ("name: exact_match", "name: exact_matc"),
        ("lr: 3.0e-4", "learning_rate: 3.0e-4"),
    ],
)
def test_a_one_click_fix_mends_the_text_and_nothing_else(small: str, old: str, new: str) -> None:
    wrong = small.replace(old, new, 1)

    (fix,) = only(wrong).fixes

    assert parse(patch(wrong, fix.changes)).spec == parse(small).spec
    kept = [line for line in small.splitlines() if old not in line]
    assert all(line in patch(wrong, fix.changes).splitlines() for line in kept)


def test_a_fix_moves_a_value_to_where_it_belongs(small: str) -> None:
    wrong = small.replace("    model:", "    max_new_tokens: 16\n    model:", 1)

    (fix,) = only(wrong).fixes
    mended = parse(patch(wrong, fix.changes)).spec

    assert fix.title == "Move to `rollout.max_new_tokens`"
    assert mended is not None
    assert mended.nodes["actor"].rollout.max_new_tokens == 16


@pytest.mark.parametrize(
    "document", [None, 3, "text", [], [1, 2], True, {}, {"coloop": True}, {"coloop": 1}]
)
def test_a_document_of_the_wrong_shape_is_told(document: object) -> None:
    parsed = from_dict(document)

    assert parsed.spec is None
    assert parsed.diagnostics


def test_numbers_that_are_not_finite_are_refused_in_plain_data(small: str) -> None:
    document = parse(small).document
    assert document is not None
    document["nodes"]["actor"]["rollout"]["temperature"] = float("nan")
    document["schedule"] = {"steps": 1, "triggers": []}

    (found,) = from_dict(document).diagnostics

    assert found.code == "yaml.not_finite"


def test_a_number_that_is_not_finite_is_refused_inside_of_set(small: str) -> None:
    document = parse(small).document
    assert document is not None
    phase = {"name": "a", "steps": 1, "set": {"nodes.actor.rollout.temperature": float("inf")}}
    document["schedule"] = {"phases": [phase]}

    (found,) = from_dict(document).diagnostics

    assert found.code == "yaml.not_finite"
    assert found.field == "schedule.phases.0.set.nodes.actor.rollout.temperature"


def test_fixes_are_changes_of_the_document(small: str) -> None:
    (fix,) = only(small.replace("kind: actor", "kind: actr")).fixes

    assert fix.changes == (Change(op="set", path="nodes.actor.kind", value="actor"),)


def test_a_setting_that_another_one_excludes_can_be_removed(small: str) -> None:
    both = small.replace("name: exact_match}", "name: exact_match}, training: {}")

    [fix] = only(both).fixes

    assert fix.title == "Remove `training`"
    assert parse(patch(both, fix.changes)).spec is not None
