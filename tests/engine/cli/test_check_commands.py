"""`coloop validate`, `estimate`, `fit` and `plan`: output and exit codes."""

import math
import re

import pytest

from coloop.spec.io import parse

LARGE = (
    ("{type: scratch, architecture: tiny-qwen3}", "{type: pretrained, path: Qwen/Qwen2.5-7B}"),
    ("{preset: cpu}", "{preset: 8xH100}"),
)
TOO_LARGE = (LARGE[0], ("{preset: cpu}", "{preset: 1x4090}"))
UNKNOWN_KIND = (("kind: actor", "kind: actr"),)
WRONG_EDGE = (("exact.scores -> actor.rewards", "exact.score -> actor.rewards"),)


# validate


IMAGES = (("max_new_tokens: 16", "max_new_tokens: 16, images: true"),)


def test_a_valid_loop_that_a_run_refuses_says_so_in_one_line(coloop, loop):
    outcome = coloop("validate", loop(*IMAGES))

    assert outcome.code == 0
    assert not outcome.out.startswith("ok")
    [line] = outcome.out.replace("\n", " ").strip().split("small: ")[1:]
    assert line.startswith("valid, but `run` refuses it: `rollout.images`")


def test_a_valid_loop_that_a_run_refuses_says_so_in_json(coloop, loop):
    told = coloop("validate", loop(*IMAGES), "--json").json

    assert (told["ok"], told["runs"]) == (True, False)
    assert [one["code"] for one in told["refusals"]] == ["run.not_yet_runnable"]
    assert coloop("validate", loop(), "--json").json["runs"] is True


def test_plan_and_estimate_say_what_a_run_refuses(coloop, loop):
    plan, estimate = coloop("plan", loop(*IMAGES)), coloop("estimate", loop(*IMAGES))

    for outcome in (plan, estimate):
        assert outcome.code == 0
        told = " ".join(outcome.out.split())
        assert "valid, but `run` refuses it: `rollout.images`" in told


@pytest.mark.parametrize("command", ["plan", "estimate"])
def test_plan_and_estimate_say_in_json_what_a_run_refuses(coloop, loop, command):
    refused = coloop(command, loop(*IMAGES), "--json").json
    fine = coloop(command, loop(), "--json")

    assert refused["runs"] is False
    assert {one["code"] for one in refused["refusals"]} == {"run.not_yet_runnable"}
    assert [one["field"] for one in refused["refusals"]] == ["rollout.images"]
    assert (fine.json["runs"], fine.json["refusals"]) == (True, [])


def test_a_good_loop_is_ok(coloop, loop):
    outcome = coloop("validate", loop())

    assert outcome.code == 0
    assert outcome.out.startswith("ok small: 3 nodes, 3 edges")


def test_a_good_loop_is_ok_in_json(coloop, loop):
    outcome = coloop("validate", loop(), "--json")

    assert outcome.code == 0
    assert outcome.json["ok"] is True


@pytest.mark.parametrize("changes", [UNKNOWN_KIND, WRONG_EDGE])
def test_a_loop_with_errors_exits_with_1(coloop, loop, changes):
    outcome = coloop("validate", loop(*changes))

    assert outcome.code == 1
    assert "error" in outcome.out


def test_an_error_says_where_and_what_was_meant(coloop, loop):
    found = coloop("validate", loop(*UNKNOWN_KIND), "--json").json

    assert found["ok"] is False
    diagnostic = found["diagnostics"][0]
    assert {"code", "severity", "message", "hint", "node", "field"} <= diagnostic.keys()
    assert "actor" in diagnostic["hint"]
    assert diagnostic["line"] == 7


def test_a_wrong_edge_is_located_in_the_text(coloop, loop):
    found = coloop("validate", loop(*WRONG_EDGE), "--json").json["diagnostics"]

    assert any(diagnostic["line"] == 16 for diagnostic in found)


def test_a_loop_over_budget_is_a_warning(coloop, loop):
    path = loop(*TOO_LARGE)

    relaxed, strict = coloop("validate", path, "--json"), coloop("validate", path, "--strict")

    assert relaxed.code == 0
    assert "memory.over_budget" in {d["code"] for d in relaxed.json["diagnostics"]}
    assert strict.code == 1


def test_strict_json_says_that_it_is_not_ok(coloop, loop):
    assert coloop("validate", loop(*TOO_LARGE), "--strict", "--json").json["ok"] is False


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("missing.yaml", None, "missing.yaml not found"),
        ("binary.yaml", b"\xff\xfe\x00\x01", "not UTF-8 text"),
        ("folder.yaml", "folder", "is a folder"),
        ("large.yaml", b"x: " + b"y" * (9 * 2**20), "larger than"),
    ],
)
@pytest.mark.parametrize("command", ["validate", "estimate", "fit", "plan"])
def test_what_cannot_be_read_is_one_line_and_exit_2(
    coloop, tmp_path, command, name, content, reason
):
    path = tmp_path / name
    if content == "folder":
        path.mkdir()
    elif content is not None:
        path.write_bytes(content)

    outcome = coloop(command, path)

    assert outcome.code == 2
    assert reason in outcome.err
    assert outcome.err.count("\n") == 1
    assert outcome.out == ""


@pytest.mark.parametrize("text", ["", "a: [", "a: 1\na: 2\n", "- 1\n", "just text"])
def test_text_that_is_no_document_exits_with_2(coloop, tmp_path, text):
    path = tmp_path / "loop.yaml"
    path.write_text(text, encoding="utf-8")

    assert coloop("validate", path).code == 2


def test_a_loop_comes_from_standard_input(coloop, loop):
    assert coloop("validate", "-", stdin=loop().read_text(encoding="utf-8")).code == 0


def test_an_unknown_name_is_no_preset_and_no_file(coloop):
    outcome = coloop("validate", "grpo-arithmetik")

    assert outcome.code == 2
    assert "grpo-arithmetik" in outcome.err


# estimate


def test_an_estimate_in_json_has_the_keys_of_the_contract(coloop, loop):
    outcome = coloop("estimate", loop(), "--json")

    assert outcome.code == 0
    assert list(outcome.json) == [
        "step_seconds",
        "bottleneck",
        "parameters",
        "gpus",
        "stages",
        "rollout",
        "unknown",
        "guessed",
        "runs",
        "refusals",
        "run",
    ]


def test_an_explained_estimate_adds_one_key(coloop, loop):
    found = coloop("estimate", loop(), "--json", "--explain").json

    assert set(found["explain"]) >= {"phases", "decisions", "notes", "memory_band", "time_band"}
    assert "estimate" not in found["explain"]


def test_an_estimate_for_people_names_the_longest_stage(coloop, loop):
    outcome = coloop("estimate", loop(*LARGE))

    assert outcome.code == 0
    assert "main 0-7" in outcome.out
    assert "fits" in outcome.out
    assert "longest stage actor." in outcome.out


def test_an_estimate_that_does_not_fit_exits_with_1(coloop, loop):
    outcome = coloop("estimate", loop(*TOO_LARGE))

    assert outcome.code == 1
    assert "too much" in outcome.out


def test_an_estimate_of_a_wrong_loop_exits_with_1(coloop, loop):
    outcome = coloop("estimate", loop(*WRONG_EDGE))

    assert outcome.code == 1
    assert "score" in outcome.err


def test_an_estimate_says_what_it_does_not_count(coloop, loop):
    unknown = (("{type: scratch, architecture: tiny-qwen3}", "{type: pretrained, path: a/b}"),)

    outcome = coloop("estimate", loop(*unknown))

    assert outcome.code == 1
    assert "unknown: actor" in outcome.out
    assert "a/b" in outcome.out


def test_an_explanation_says_how_sure_it_is(coloop, loop):
    outcome = coloop("estimate", loop(*LARGE), "--explain")

    for heading in ("phases", "chosen settings", "accuracy", "advice"):
        assert heading in outcome.out


def test_numbers_in_json_are_finite(coloop, loop):
    def numbers(value):
        if isinstance(value, dict):
            yield from (n for item in value.values() for n in numbers(item))
        elif isinstance(value, list):
            yield from (n for item in value for n in numbers(item))
        elif isinstance(value, float):
            yield value

    found = coloop("estimate", loop(*LARGE), "--json", "--explain").json

    assert all(math.isfinite(number) for number in numbers(found))


# fit


def test_fitting_prints_each_change_with_its_reason(coloop, loop):
    outcome = coloop("fit", loop(*LARGE), "--budget-gib", "40")

    assert "nodes.actor.rollout.max_num_seqs: not set → 32 (the rows of a step, " in outcome.out
    assert "fits; a step takes " in outcome.out


def test_what_cannot_be_fitted_says_how_much_is_over_and_what_would_help(coloop, loop):
    outcome = coloop("fit", loop(*TOO_LARGE), "--budget-gib", "23")

    assert re.search(r"does not fit: \d+\.\d GiB over", outcome.out)
    assert "Run on 1xH200: fits" in outcome.out


SEVENTY = (
    (LARGE[0][0], "{type: pretrained, path: meta-llama/Llama-3.1-70B-Instruct}"),
    ("{preset: cpu}", "{preset: 16xH100}"),
)


@pytest.mark.slow
def test_ways_of_a_model_whose_engine_is_spread_have_times(coloop, loop):
    outcome = coloop("fit", loop(*SEVENTY))

    told = [line.strip() for line in outcome.out.splitlines() if ": fits" in line]
    assert "Train an adapter of actor" in [line.partition(":")[0] for line in told]
    assert all("a step takes" in line for line in told)


def test_fitting_writes_a_loop_that_fits_and_keeps_its_comments(coloop, loop, tmp_path):
    out = tmp_path / "fits.yaml"

    outcome = coloop("fit", loop(*LARGE), "--budget-gib", "40", "-o", out)

    text = out.read_text(encoding="utf-8")
    assert outcome.code == 0
    assert "# A loop to try commands on." in text
    assert "lr: 3.0e-4" in text
    assert coloop("estimate", out).code == 0


def test_fitting_prints_the_loop_alone_on_standard_output(coloop, loop):
    outcome = coloop("fit", loop(*LARGE), "-o", "-")

    assert parse(outcome.out).spec is not None
    assert "fits" in outcome.err


@pytest.mark.slow
def test_what_cannot_fit_exits_with_1_and_says_by_how_much(coloop, loop, tmp_path):
    out = tmp_path / "fits.yaml"

    outcome = coloop("fit", loop(*LARGE), "--budget-gib", "1", "-o", out)

    assert outcome.code == 1
    assert "GiB over" in outcome.out
    assert not out.exists()


def test_a_budget_is_given_one_way(coloop, loop):
    outcome = coloop("fit", loop(), "--budget-gib", "1", "--budget-fraction", "0.5")

    assert outcome.code == 2


def test_a_place_that_cannot_be_written_is_told(coloop, loop, tmp_path):
    outcome = coloop("fit", loop(), "-o", tmp_path / "no" / "such" / "folder.yaml")

    assert outcome.code == 2
    assert "cannot be written" in outcome.err


# plan


def test_a_plan_is_explained(coloop, loop):
    outcome = coloop("plan", loop())

    assert outcome.code == 0
    assert "actor.generate" in outcome.out


def test_a_plan_in_json_is_complete(coloop, loop):
    outcome = coloop("plan", loop(), "--json")

    assert outcome.code == 0
    assert {"pools", "phases", "weights"} <= outcome.json.keys()


def test_what_cannot_run_yet_is_planned_and_told_by_name(coloop, loop):
    outcome = coloop("plan", loop(*IMAGES))

    assert outcome.code == 0
    assert "actor.generate" in outcome.out
    assert "`run` refuses it: `rollout.images`" in outcome.out


def test_the_plan_of_a_refused_loop_in_json_has_the_diagnostics(coloop, loop):
    outcome = coloop("plan", loop(*IMAGES), "--json")

    assert outcome.code == 0
    assert outcome.json["phases"]
    assert outcome.json["runs"] is False
    assert [one["field"] for one in outcome.json["refusals"]] == ["rollout.images"]
