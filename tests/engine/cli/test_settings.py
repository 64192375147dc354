"""`--set path=value` of every command that looks at a loop, as `run` has it."""

import pytest


@pytest.mark.parametrize("command", ["validate", "estimate", "plan", "fit"])
def test_a_field_is_another(coloop, loop, command):
    outcome = coloop(command, loop(), "--set", "nodes.actor.model.architecture=tiny-qwen33")

    assert outcome.code == 1
    assert "tiny-qwen33" in outcome.out + outcome.err


def test_what_is_set_is_counted(coloop, loop):
    plain = coloop("estimate", loop(), "--json").json
    wider = coloop(
        "estimate",
        loop(),
        *("--set", "nodes.actor.model.architecture=tiny-qwen3-wide", "--set", "schedule.steps=3"),
        "--json",
    ).json

    assert wider["parameters"]["actor"] > plain["parameters"]["actor"]


@pytest.mark.parametrize("command", ["validate", "estimate", "plan", "fit", "rehearse"])
@pytest.mark.parametrize(
    ("setting", "said"),
    [("nodes.actor.rollout.max_new_tokens", "path=value"), ("=3", "path=value")],
)
def test_a_setting_without_a_value_is_refused_in_a_line(coloop, loop, command, setting, said):
    outcome = coloop(command, loop(), "--set", setting)

    assert outcome.code == 1
    assert said in outcome.err


@pytest.mark.parametrize("command", ["validate", "estimate", "plan", "fit", "rehearse"])
def test_a_path_that_does_not_exist_is_an_error_that_stands_once(coloop, loop, command):
    outcome = coloop(command, loop(), "--set", "edges.x.few=3")

    assert outcome.code == 1
    assert outcome.err.startswith("error ")
    assert outcome.err.count("does not exist") == 1


@pytest.mark.parametrize("command", ["validate", "estimate", "plan"])
def test_a_refused_setting_is_told_in_json(coloop, loop, command):
    told = coloop(command, loop(), "--set", "nonsense", "--json").json

    assert told["ok"] is False
    assert "path=value" in told["message"]


# Models that are not known


UNKNOWN = ("--set", "nodes.actor.model={type: pretrained, path: openai/gpt-oss-20b}")


def test_an_estimate_of_an_unknown_model_ends_with_one(coloop, loop):
    outcome = coloop("estimate", loop(), *UNKNOWN)
    told = " ".join(outcome.out.split())

    assert outcome.code == 1
    assert "unknown: actor" in told
    assert "fits" not in told
    assert "one step takes" not in told


def test_a_fit_of_an_unknown_model_is_not_known(coloop, loop):
    outcome = coloop("fit", loop(), *UNKNOWN)
    told = " ".join(outcome.out.split())

    assert outcome.code == 1
    assert "not known: cannot tell whether it fits" in told


def test_a_check_of_an_unknown_model_is_fine_with_a_warning(coloop, loop):
    told = coloop("validate", loop(), *UNKNOWN, "--json").json

    assert told["ok"] is True
    assert [one["code"] for one in told["diagnostics"]].count("memory.unknown") == 1


# What does not fit


LARGE = (
    *("--set", "nodes.actor.model={type: pretrained, path: meta-llama/Llama-3.1-70B}"),
    *("--set", "hardware.preset=16xH100"),
)
REFUSED = (*LARGE, "--set", "nodes.actor.rollout.tensor_parallel=16")


def test_a_fit_that_fails_names_ways_and_changes_nothing(coloop, loop):
    outcome = coloop("fit", loop(), *LARGE)
    told = " ".join(outcome.out.split())

    assert outcome.code == 1
    assert "→" not in outcome.out
    assert "does not fit" in told
    assert "Run on" in told


def test_an_estimate_of_what_does_not_fit_prints_no_time(coloop, loop):
    outcome = coloop("estimate", loop(), *LARGE)
    told = " ".join(outcome.out.split())

    assert outcome.code == 1
    assert "one step takes" not in told
    assert "no time for" in told
    assert "it does not fit" in told


def test_what_a_run_refuses_is_said_to_be_refused_and_not_to_be_forced(coloop, loop):
    """Its engine would reach over two machines, and it is over its memory besides."""
    checked, fitted = coloop("validate", loop(), *REFUSED), coloop("fit", loop(), *REFUSED)
    started = coloop("run", loop(), *REFUSED)
    told = [" ".join((one.out + one.err).split()) for one in (checked, fitted, started)]

    reason = "`rollout.tensor_parallel: 16` with machines of 8 GPUs"
    assert f"`run` refuses it: {reason}" in told[0]
    assert f"does not run: `run` refuses it: {reason}" in told[1]
    assert f"not yet runnable: {reason}" in told[2]
    assert started.code != 0
    assert not any("--force" in one or "must be forced" in one for one in told)


def test_what_is_only_over_its_memory_may_be_forced(coloop, loop):
    model = "nodes.actor.model={type: pretrained, path: Qwen/Qwen2.5-7B}"
    settings = ("--set", model, "--set", "hardware.preset=1xH100")
    checked, started = coloop("validate", loop(), *settings), coloop("run", loop(), *settings)
    told = [" ".join((one.out + one.err).split()) for one in (checked, started)]

    assert "a run must be forced" in told[0]
    assert "use --force to run it anyway" in told[1]
    assert "refuses" not in "".join(told)
