"""`coloop sweep`: what is refused, what would be run, and real runs over values and seeds."""

import pytest

from coloop.spec.io import load

LR = "nodes.actor.training.optimizer.lr"
SMALL = (
    ("rows_per_step: 32}", "rows_per_step: 2}"),
    (
        "completions_per_prompt: 8, max_new_tokens: 16",
        "completions_per_prompt: 2, max_new_tokens: 3",
    ),
    ("schedule: {steps: 10}", "schedule: {steps: 1}"),
    ("hardware: {preset: cpu}", "hardware: {preset: cpu}\nrun: {best: actor.reward/mean}"),
)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "there is nothing to try: name a setting and its values"),
        (("--set", f"{LR}="), f"`{LR}` has no value to try"),
        (("--set", f"{LR}=1e-5,fast"), "lr"),
        (("--set", "nodes.actor.speed=1,2"), "there is no `speed` in nodes.actor"),
        (("--set", LR), "--set needs PATH=V1,V2"),
        (("--set", f"{LR}=[1"), "are no values; separate them by commas"),
        (("--set", f"{LR}=1e-5,2e-5", "--seeds", 5000), "are 10,000 runs; a sweep has at most 200"),
        (("--set", f"{LR}=1e-5", "--best", 0), "--best 0: keep 1 or more"),
    ],
)
def test_what_makes_no_sweep_is_refused(coloop, loop, arguments, words):
    refused = coloop("sweep", loop(), *arguments)

    assert refused.code == 1
    assert words in " ".join(refused.err.split())


def test_a_dry_run_lists_the_runs(coloop, loop):
    arguments = ("--set", f"{LR}=1e-5,3e-5", "--seeds", 2, "--dry-run", "--json")
    listed = coloop("sweep", loop(*SMALL), *arguments)

    assert listed.code == 0
    assert listed.json["metric"] == "actor.reward/mean"
    runs = [(run["values"][LR], run["seed"]) for run in listed.json["runs"]]
    assert runs == [(1e-5, 0), (3e-5, 0), (1e-5, 1), (3e-5, 1)]
    assert listed.json["runs"][0]["run"] == f"{listed.json['of']}-lr-1e-05-0"


def test_values_and_seeds_are_run_once_and_compared(coloop, loop, tmp_path):
    runs = tmp_path / "runs"
    arguments = ("--set", f"{LR}=1e-5,3e-4", "--seeds", 2, "--local", "--json", "--runs-dir", runs)

    compared = coloop("sweep", loop(*SMALL), *arguments)
    sizes = {path: path.stat().st_size for path in runs.glob("*/events.jsonl")}
    again = coloop("sweep", loop(*SMALL), *arguments)

    assert compared.code == again.code == 0, compared.err
    assert len(sizes) == 4
    assert {path: path.stat().st_size for path in sizes} == sizes
    trials = again.json["trials"]
    assert [trial["values"][LR] for trial in trials] == [1e-5, 3e-4]
    assert [[run["seed"] for run in trial["runs"]] for trial in trials] == [[0, 1], [0, 1]]
    assert all(trial["spread"] is not None for trial in trials)
    ends = {trial["values"][LR]: trial["end"] for trial in trials}
    assert ends[again.json["best"][LR]] == max(ends.values())
    sweep = load(runs / trials[0]["runs"][0]["run"] / "spec.yaml").run.sweep
    assert (sweep.of, sweep.fields) == (again.json["of"], (LR,))


def test_further_seeds_go_to_the_best_values(coloop, loop, tmp_path):
    arguments = ("--set", f"{LR}=1e-5,3e-4", "--seeds", 2, "--best", 1)
    compared = coloop(
        *("sweep", loop(*SMALL), *arguments),
        *("--local", "--json", "--runs-dir", tmp_path / "runs"),
    )

    assert compared.code == 0, compared.err
    assert sorted(len(trial["runs"]) for trial in compared.json["trials"]) == [1, 2]
