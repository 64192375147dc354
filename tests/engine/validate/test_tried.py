"""Fixes are tried before they are offered: none leads into another error, none teaches from rows
that are held out, and the natural one comes first."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coloop.spec.diagnostics import UNFINISHED, Fix, Report
from coloop.spec.io import apply_changes, from_dict, load, to_dict
from coloop.validate import validate

Document = dict[str, Any]
LOOPS = Path(__file__).resolve().parents[3] / "presets" / "loops"
PRESETS = ("grpo-arithmetic", "genrm", "reward-model", "dpo-from-file")

JUDGED = """
coloop: 1
name: judged
nodes:
  problems: {kind: dataset, source: {type: task, task: arithmetic}, rows_per_step: 4}
  held_out: {kind: dataset, source: {type: task, task: arithmetic, split: test}, rows_per_step: 4}
  solver:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {completions_per_prompt: 4, max_new_tokens: 4}
    algorithm: {rewards: {name: grpo}}
  exact: {kind: reward, source: {type: builtin, name: exact_match}}
  probe: {kind: evaluate, instead_of: problems, every: 10, metrics: [accuracy]}
edges:
  - problems.rows -> solver.prompts
  - solver.rollouts -> exact.rollouts
  - exact.scores -> solver.rewards
  - exact.scores -> probe.scores
  - held_out.rows -> probe.rows
schedule: {steps: 100}
hardware: {preset: cpu}
run: {best: probe.accuracy}
"""


def document() -> Document:
    return to_dict(load(JUDGED))


def report(loop: Document) -> Report:
    parsed = from_dict(loop)
    assert parsed.spec is not None, parsed.diagnostics
    return validate(parsed.spec)


def errors(loop: Document) -> "Counter[tuple[str, str | None]]":
    return Counter((one.code, one.node) for one in report(loop).diagnostics if one.is_error)


def fixes(loop: Document, code: str, node: str | None = None) -> list[Fix]:
    found = [one for one in report(loop).diagnostics if one.code == code]
    return [fix for one in found if node is None or one.node == node for fix in one.fixes]


def without(loop: Document, edge: str) -> Document:
    return {**loop, "edges": [one for one in loop["edges"] if edge_of(one) != edge]}


def edge_of(one: Any) -> str:
    return one if isinstance(one, str) else f"{one['from']} -> {one['to']}"


def test_the_loop_itself_is_sound() -> None:
    assert errors(document()) == Counter()


def test_rows_that_are_held_out_are_never_offered_to_learn_from() -> None:
    loop = without(document(), "problems.rows -> solver.prompts")
    offered = [fix for one in report(loop).diagnostics for fix in one.fixes]
    assert [fix.title for fix in offered if "held_out.rows -> solver" in str(fix.changes)] == []
    first = fixes(loop, "structure.missing_edge", "solver")[0]
    assert first.changes[0].value == "problems.rows -> solver.prompts"


def test_a_judge_that_is_alone_is_offered_what_it_judges_first() -> None:
    loop = document()
    loop["nodes"]["judge"] = {"kind": "verifier", "method": "rule"}
    first = fixes(loop, "structure.unused_node", "judge")[0]
    assert first.changes[0].value == "solver.rollouts -> judge.rollouts"


@pytest.mark.slow
def test_a_judge_that_learns_is_not_offered_scores_of_what_it_judges() -> None:
    """All of its verdicts on one answer would have one score."""
    loop = to_dict(load(LOOPS / "tango.yaml"))
    loop["nodes"]["exact"] = {
        "kind": "reward",
        "source": {"type": "builtin", "name": "exact_match"},
    }
    taught = [one for one in loop["edges"] if edge_of(one).endswith(".rewards")]
    judges = [name for name, node in loop["nodes"].items() if node["kind"] == "verifier"]
    solver = next(name for name, node in loop["nodes"].items() if node["kind"] == "actor")
    loop["edges"] = [one for one in loop["edges"] if one not in taught]
    loop["edges"] = [*loop["edges"], f"{solver}.rollouts -> exact.rollouts"]
    before = errors(loop)
    for one in report(loop).diagnostics:
        for fix in one.fixes:
            told = errors(apply_changes(loop, fix.changes)) - before
            assert not [key for key in told if key[0] == "learning.equal_scores"], fix.title
    assert judges


def test_a_metric_that_a_probe_misspells_is_told_at_the_probe_alone() -> None:
    loop = document()
    loop["nodes"]["probe"]["metrics"] = ["acuracy"]
    loop["schedule"]["triggers"] = [
        {"when": {"metric": "probe.accuracy", "above": 0.5}, "do": {"stop": True}}
    ]
    told = [one for one in report(loop).diagnostics if one.code == "structure.unknown_metric"]
    assert [one.node for one in told] == ["probe"]
    assert errors(apply_changes(loop, told[0].fixes[0].changes)) == Counter()


def test_a_metric_that_is_misspelt_where_it_is_read_is_told_there_with_a_fix() -> None:
    loop = document()
    loop["run"]["best"] = "probe.acuracy"
    (fix,) = fixes(loop, "structure.unknown_metric")
    assert fix.changes[0].value == "probe.accuracy"


@pytest.mark.parametrize("word", ["question", "promt"])
def test_a_column_that_is_called_otherwise_is_offered(word: str) -> None:
    loop = document()
    loop["nodes"]["ask"] = {"kind": "template", "text": f"Q: {{{{ {word} }}}}"}
    loop["edges"] = [
        one if edge_of(one) != "problems.rows -> solver.prompts" else "problems.rows -> ask.rows"
        for one in loop["edges"]
    ] + ["ask.rows -> solver.prompts"]
    parsed = from_dict(loop)
    if parsed.spec is None:
        pytest.fail(str(parsed.diagnostics))
    offered = fixes(loop, "structure.unknown_column", "ask")
    assert offered[0].changes[0].value == "Q: {{ prompt }}"


def test_a_file_whose_question_is_called_otherwise_is_mapped_by_a_fix(tmp_path: Path) -> None:
    rows = '{"question": "1+1=", "answer": "2"}\n' * 4
    (tmp_path / "rows.jsonl").write_text(rows, encoding="utf-8")
    loop = document()
    loop["nodes"]["problems"]["source"] = {"type": "file", "path": "rows.jsonl"}
    spec = from_dict(loop).spec
    assert spec is not None
    told = validate(spec, root=tmp_path).diagnostics
    found = [fix for one in told if one.code == "structure.unknown_column" for fix in one.fixes]
    assert found[0].title == "Use question as prompt"


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", PRESETS)
def test_where_an_edge_of_a_preset_is_missing_the_first_fix_adds_no_error(name: str) -> None:
    path = LOOPS / f"{name}.yaml"
    if not path.is_file():
        pytest.skip(f"there is no preset {name}")
    whole = to_dict(load(path))
    for edge in whole["edges"]:
        loop = without(whole, edge_of(edge))
        before = errors(loop)
        for one in report(loop).diagnostics:
            for fix in one.fixes[:1]:
                told = errors(apply_changes(loop, fix.changes)) - before
                wrong = [key for key in told if key[0] not in UNFINISHED]
                assert wrong == [], (edge_of(edge), one.code, fix.title)


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(st.sets(st.sampled_from([edge_of(one) for one in document()["edges"]]), max_size=3))
def test_whatever_edges_are_missing_no_fix_adds_an_error(gone: set[str]) -> None:
    loop = document()
    for edge in gone:
        loop = without(loop, edge)
    before = errors(loop)
    for one in report(loop).diagnostics:
        for fix in one.fixes:
            told = errors(apply_changes(loop, fix.changes)) - before
            assert all(code in UNFINISHED for code, _ in told), fix.title
