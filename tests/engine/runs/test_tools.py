"""Tools in the texts of a policy, in whole runs: resumed, probed, ahead of learning, refilled,
shared, stopped while they work, and broken."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.engine.runs.test_resume import at_stage

from coloop.runtime.run_files.events import RunStateName

Run = Callable[..., Any]

SUMS = 'type: calculator, call: "(?P<expression>.)(?:0|1|2|3|a|e|o|u|x|z)", result: "[{{ value }}]"'
"""A text of a random model calls it every few tokens."""
DIGITS = '{type: builtin, name: regex, pattern: "([0-9])", scale: [0, 9], on_no_match: 0.1}'
WORLD = """
class Environment:
    def reset(self, row):
        self.left = 2
        return row["prompt"] + "?"
    def step(self, text):
        self.left -= 1
        return {"observation": f"({len(text)})", "reward": len(text) / 9, "score": 1.0,
                "done": self.left == 0}
"""

CALLING = f"""
coloop: 1
name: calling
nodes:
  problems: {{kind: dataset, source: {{type: task, task: arithmetic, size: 32}}, rows_per_step: 3}}
  held_out: {{kind: dataset, source: {{type: task, task: arithmetic, size: 8}}, rows_per_step: 3}}
  sums: {{kind: tool, {SUMS}}}
  actor:
    kind: actor
    model: {{type: scratch, architecture: tiny-qwen3}}
    rollout:
      completions_per_prompt: 2
      max_new_tokens: 12
      turns: {{max: 3, tokens: 8, observation_tokens: 6}}
    algorithm: {{name: grpo}}
    training: {{optimizer: {{name: adamw, lr: 1.0e-3}}}}
  digits: {{kind: reward, source: {DIGITS}}}
  probe: {{kind: evaluate, instead_of: problems, every: 2, greedy: true, metrics: [score]}}
edges:
  - problems.rows -> actor.prompts
  - sums.tool -> actor.tools
  - actor.rollouts -> digits.rollouts
  - digits.scores -> actor.rewards
  - held_out.rows -> probe.rows
  - digits.scores -> probe.scores
schedule: {{steps: 4}}
hardware: {{preset: cpu}}
run: {{seed: 5}}
"""


def acting(world: str = WORLD, **fields: str) -> str:
    """The same with an environment instead of the calculator."""
    code = "".join(f"\n      {line}" for line in world.strip().splitlines())
    more = "".join(f"\n    {name}: {value}" for name, value in fields.items())
    node = f"sums:\n    kind: tool\n    type: environment{more}\n    code: |{code}"
    column = "{type: builtin, name: column, column: sums.reward}"
    text = CALLING.replace(f"sums: {{kind: tool, {SUMS}}}", node)
    return text.replace(f"source: {DIGITS}", f"source: {column}")


@pytest.mark.slow
def test_calls_are_answered_and_counted_under_the_tools_name(runner: Run) -> None:
    ended = runner(CALLING)

    assert ended.state is RunStateName.FINISHED, ended.error
    assert max(ended.metrics("sums", "tool/calls")) > 0.2
    assert max(ended.metrics("actor", "turns/mean")) > 1.2
    assert max(ended.metrics("actor", "turns/tokens")) > 1.0
    assert len(ended.metrics("probe", "score")) == 3
    assert "sums.tool" not in str(ended.stages(1))


@pytest.mark.slow
def test_a_policy_hears_so_many_tokens_of_an_answer(runner: Run) -> None:
    """Of answers longer than 40 signs it reads 6 tokens each; with room for all of them, more."""
    long = CALLING.replace("[{{ value }}]", "[{{ 'word ' * 8 }}{{ value }}]")
    long = long.replace("max_new_tokens: 12", "max_new_tokens: 120")
    unlimited = long.replace("observation_tokens: 6", "observation_tokens: 999")
    limited, whole = runner(long), runner(unlimited)

    for ended, most in ((limited, 6), (whole, 999)):
        heard, calls = ended.metrics("actor", "turns/tokens"), ended.metrics("sums", "tool/calls")
        told = [of / by for of, by in zip(heard, calls, strict=True) if by]
        assert told
        assert all(one <= most for one in told)
        assert (max(told) > 6) is (ended is whole)


@pytest.mark.slow
@pytest.mark.parametrize("text", [CALLING, acting()], ids=["calculator", "environment"])
def test_a_stopped_run_with_tools_goes_on_as_if_it_had_never_stopped(
    text: str, runner: Run, equal: Callable[..., bool]
) -> None:
    whole = runner(text)
    stopped = runner(text, stop_at=at_stage("actor.generate", 3))
    step = stopped.manifest()["timeline"]["step"]
    resumed = runner(text, resume=stopped)

    assert stopped.state is RunStateName.STOPPED
    assert resumed.state is RunStateName.FINISHED, resumed.error
    assert equal(resumed.weights(), whole.weights())
    assert resumed.readings(step) == whole.readings(step)


@pytest.mark.slow
def test_an_environment_gives_prompts_and_earns_columns(runner: Run) -> None:
    ended = runner(acting())

    assert ended.state is RunStateName.FINISHED, ended.error
    rows = [row for event in ended.of("sample") for row in event["rows"]]
    assert all(row["prompt"].endswith("?") for row in rows)
    assert max(ended.metrics("digits", "score/mean")) > 0.2
    assert max(ended.metrics("actor", "turns/mean")) <= 2.0


@pytest.mark.sample(1)
@pytest.mark.parametrize("ends", ["", "; raise KeyboardInterrupt", "; return 3"])
def test_what_an_environment_prints_is_in_the_log(ends: str, runner: Run) -> None:
    world = WORLD.replace("self.left = 2", f"self.left = 2; print('begun', row['prompt']){ends}")
    ended = runner(acting(world).replace("steps: 4", "steps: 1"))

    printed = [one for one in ended.of("log") if (one.get("detail") or {}).get("printed")]
    assert printed
    assert {(one["node"], one["step"]) for one in printed} <= {("sums", 0), ("sums", 1)}
    assert printed[0]["message"].startswith("begun ")


@pytest.mark.slow
def test_a_text_that_never_acts_has_earned_the_sum_of_no_steps(runner: Run) -> None:
    """Else the rows that act are compared with each other alone, and acting is never taught."""
    script = "max_new_tokens: 12\n      script: ['a!', 'no']"
    ended = runner(acting(call='"(?P<text>.)!"').replace("max_new_tokens: 12", script))

    assert ended.state is RunStateName.FINISHED, ended.error
    assert set(ended.metrics("digits", "score/none")) == {0.0}
    assert max(ended.metrics("actor", "reward/std")) > 0
    assert 0 < max(ended.metrics("sums", "tool/calls")) < 1


@pytest.mark.slow
def test_tools_work_for_texts_that_are_handed_on_early(
    runner: Run, equal: Callable[..., bool]
) -> None:
    streamed = runner(CALLING.replace("{steps: 4}", "{steps: 4, stream: true}"))

    assert streamed.state is RunStateName.FINISHED, streamed.error
    assert equal(streamed.weights(), runner(CALLING).weights())


@pytest.mark.sample(1)
@pytest.mark.parametrize("on_sync", ["finish", "resume", "drop"])
def test_tools_work_a_step_ahead_of_learning(on_sync: str, runner: Run) -> None:
    text = CALLING.replace("kind: actor\n", "kind: actor\n    pool: train\n")
    text = text.replace("rollout:\n", f"rollout:\n      pool: write\n      on_sync: {on_sync}\n")
    text = text.replace("{steps: 4}", "{steps: 4, max_staleness: 1}")
    pools = "pools: {train: {workers: 1}, write: {workers: 1}}"
    text = text.replace("{preset: cpu}", f"{{preset: cpu, {pools}}}")

    ended = runner(text)

    assert ended.state is RunStateName.FINISHED, ended.error
    assert max(ended.metrics("sums", "tool/calls")) > 0.2
    assert max(ended.metrics("actor", "staleness/max")) <= 1


@pytest.mark.slow
def test_tools_work_in_every_pass_of_a_refill(runner: Run) -> None:
    text = CALLING.replace(
        "  digits:",
        "  varied: {kind: filter, keep: [{rule: nonzero_variance}], "
        "fill: {groups: 3, max_rounds: 4}}\n  digits:",
    )
    text = text.replace(
        "  - digits.scores -> actor.rewards",
        "  - actor.rollouts -> varied.rollouts\n  - digits.scores -> varied.scores\n"
        "  - varied.scores -> actor.rewards",
    )

    ended = runner(text)

    assert ended.state is RunStateName.FINISHED, ended.error
    assert len(ended.metrics("sums", "tool/calls")) > 4


@pytest.mark.slow
def test_two_writers_share_a_tool(runner: Run) -> None:
    other = "\n".join(CALLING.split("  actor:\n")[1].split("  digits:")[0].splitlines())
    text = CALLING.replace("  digits:", f"  second:\n{other}\n  digits:", 1)
    text = text.replace("kind: reward,", "kind: reward, join: concat,")
    text = text.replace(
        "  - digits.scores -> actor.rewards",
        "  - problems.rows -> second.prompts\n  - sums.tool -> second.tools\n"
        "  - second.rollouts -> digits.rollouts\n  - digits.scores -> actor.rewards\n"
        "  - digits.scores -> second.rewards",
    )

    ended = runner(text)

    assert ended.state is RunStateName.FINISHED, ended.error
    assert min(max(ended.metrics(name, "turns/mean")) for name in ("actor", "second")) > 1.0


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("step", "fields"),
    [
        ("raise RuntimeError('broken')", {}),
        ("return {'observation': 'x' * 40_000_000}", {}),
        ("import os; os._exit(1)", {}),
        ("return {'observation': 'x'}", {"result": '"{{ value / 2 }}"'}),
        ("return [1]", {}),
        ("while True: pass", {"timeout_seconds": "1.0"}),
    ],
    ids=["raises", "megabytes", "dies", "template", "no dict", "hangs"],
)
def test_a_broken_tool_is_counted_and_ends_no_run(
    step: str, fields: dict[str, str], runner: Run
) -> None:
    reset = "class Environment:\n    def reset(self, row): return row['prompt']"
    world = f"{reset}\n    def step(self, text):\n        {step}"
    text = acting(world, **fields).replace("{steps: 4}", "{steps: 1}")
    text = text.replace("rows_per_step: 3", "rows_per_step: 1").replace("every: 2, ", "every: 9, ")

    ended = runner(text)

    assert ended.state is RunStateName.FINISHED, ended.error
    assert ended.metrics("sums", "tool/errors")[0] == 1.0


def test_an_environment_that_never_ends_is_cut_and_counted(runner: Run) -> None:
    world = WORLD.replace("self.left == 0", "False")

    ended = runner(acting(world).replace("{max: 3, tokens: 8", "{max: 2, tokens: 4"))

    assert ended.state is RunStateName.FINISHED, ended.error
    assert max(ended.metrics("actor", "turns/cut")) > 0.5
    assert max(ended.metrics("actor", "turns/mean")) <= 2.0


def test_a_stop_is_obeyed_while_a_tool_works(runner: Run) -> None:
    world = WORLD.replace("self.left -= 1", "while True: pass")

    stopped = runner(acting(world, timeout_seconds="3000"), stop_at=at_stage("held_out.load", 0))

    assert stopped.state is RunStateName.STOPPED


SEARCHING = CALLING.replace(
    f"sums: {{kind: tool, {SUMS}}}",
    'sums: {kind: tool, type: search, column: note, call: "(?P<query>.)(?:0|1|a|e|o|u)"}\n'
    "  library: {kind: dataset, source: {type: inline, rows: [{note: 1 is one}, {note: a is an}]}}",
).replace("  - sums.tool", "  - library.rows -> sums.documents\n  - sums.tool")


def test_documents_are_indexed_once_and_found(runner: Run) -> None:
    ended = runner(SEARCHING)

    assert ended.state is RunStateName.FINISHED, ended.error
    assert max(ended.metrics("sums", "tool/calls")) > 0
    assert "library.load" not in ended.stages(1)


def test_a_folder_of_documents_is_searched(runner: Run, tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "one.txt").write_text("1 is one")
    (folder / "a.md").write_text("a is an")
    source = f'{{type: file, format: text, path: "{folder}"}}'
    inline = "{type: inline, rows: [{note: 1 is one}, {note: a is an}]}"

    ended = runner(SEARCHING.replace(inline, source).replace("column: note", "column: text"))

    assert ended.state is RunStateName.FINISHED, ended.error
    assert max(ended.metrics("sums", "tool/calls")) > 0
    assert max(ended.metrics("sums", "tool/errors")) == 0


def test_documents_without_words_end_the_run_before_it_begins(runner: Run) -> None:
    ended = runner(SEARCHING.replace("{note: 1 is one}, {note: a is an}", '{note: "..."}'))

    assert ended.state is RunStateName.FAILED
    assert ended.error is not None
    assert ended.error.node == "sums"
    assert "nothing to search" in ended.error.message
