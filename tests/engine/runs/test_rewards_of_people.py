"""Runs with rewards in files: what they print, which ids they get, what is wrong with them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coloop.diagnostics import Change
from coloop.events import RunStateName
from coloop.spec.io import parse, patch
from coloop.validate import validate

CASES = Path(__file__).resolve().parents[4] / "shared" / "cases" / "2026-11"

LOOP = """
coloop: 1
name: rewards-of-people
nodes:
  q:
    kind: dataset
    source: {type: inline, rows: [{prompt: 1+1=, answer: "2"}, {prompt: 2+2=, answer: "4"}]}
    rows_per_step: 2
  actor:
    kind: actor
    model: {type: scratch, architecture: tiny-bytes}
    rollout: {completions_per_prompt: 2, max_new_tokens: 6}
    algorithm: {name: grpo}
  r: {kind: reward, source: {type: python, file: mine.py}}
edges:
  - q.rows -> actor.prompts
  - actor.rollouts -> r.rollouts
  - r.scores -> actor.rewards
schedule: {steps: 1}
hardware: {preset: cpu}
"""

Ended = Any


def test_what_a_reward_prints_is_in_the_log_by_node_and_step(
    runner: Callable[..., Ended], tmp_path: Path
) -> None:
    code = (
        "def reward(completions, **columns):\n"
        "    print('seen', len(completions))\n    return [0.0] * 4\n"
    )
    (tmp_path / "mine.py").write_text(code)

    ended = runner(LOOP)

    assert ended.state is RunStateName.FINISHED, ended.error
    printed = [one for one in ended.of("log") if (one.get("detail") or {}).get("printed")]
    assert [(one["node"], one["step"], one["message"]) for one in printed] == [("r", 1, "seen 4")]


REWARD = "  r: {kind: reward, source: {type: python, file: mine.py}}\n"
BUILT_IN = "  r: {kind: reward, source: {type: builtin, name: length, max: 9}}\n"
BEFORE = "print('before', 'raise'); raise ValueError('no')"


def through(node: str) -> str:
    """The loop with a node between the texts and their reward."""
    text = LOOP.replace(REWARD, f"{BUILT_IN}  {node}\n")
    return text.replace(
        "  - actor.rollouts -> r.rollouts\n",
        "  - actor.rollouts -> r.rollouts\n  - r.scores -> f.scores\n"
        "  - actor.rollouts -> f.rollouts\n",
    ).replace("  - r.scores -> actor.rewards\n", "  - f.scores -> actor.rewards\n")


def before(code: str) -> str:
    """The loop with a template that makes the prompts."""
    node = "f: {kind: template, code: " + f'"{code}"' + "}"
    return LOOP.replace(REWARD, f"{BUILT_IN}  {node}\n").replace(
        "  - q.rows -> actor.prompts\n", "  - q.rows -> f.rows\n  - f.rows -> actor.prompts\n"
    )


@pytest.mark.parametrize(
    ("text", "node"),
    [
        (LOOP, "r"),
        (
            through(
                "f: {kind: filter, keep: [{rule: python, code: "
                f'"def keep(**columns): {BEFORE}"' + "}]}"
            ),
            "f",
        ),
        (before(f"def write(**columns): {BEFORE}"), "f"),
    ],
    ids=["reward", "filter", "template"],
)
def test_what_code_prints_before_it_fails_is_in_the_log(
    text: str, node: str, runner: Callable[..., Ended], tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(f"def reward(completions, **columns): {BEFORE}\n")

    ended = runner(text)

    assert ended.state is RunStateName.FAILED
    [place] = [
        place
        for place, one in enumerate(ended.events)
        if one["type"] == "log" and (one.get("detail") or {}).get("printed")
    ]
    told = ended.events[place]
    assert (told["node"], told["step"]) == (node, 1)
    assert told["message"].splitlines()[0] == "before raise"
    assert "failed" in [one.get("state") for one in ended.events[place:]]


def test_what_code_prints_before_its_answer_is_refused_is_in_the_log(
    runner: Callable[..., Ended], tmp_path: Path
) -> None:
    """Here the code does not raise: the lists that it returns do not fit the texts."""
    (tmp_path / "mine.py").write_text(
        "print('loaded')\ndef reward(completions, **columns): return [[0.0] * 99] * 4\n"
    )

    ended = runner(LOOP)

    assert ended.state is RunStateName.FAILED
    [told] = [one for one in ended.of("log") if (one.get("detail") or {}).get("printed")]
    assert (told["node"], told["step"], told["message"]) == ("r", 1, "loaded")


def test_a_reward_gets_the_token_ids_that_it_asks_for(
    runner: Callable[..., Ended], tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(
        "def reward(completions, completion_ids, **columns):\n"
        "    print(all(isinstance(one, int) for ids in completion_ids for one in ids))\n"
        "    return [float(len(ids)) for ids in completion_ids]\n"
    )

    ended = runner(LOOP)

    assert ended.state is RunStateName.FINISHED, ended.error
    [told] = [one for one in ended.of("log") if (one.get("detail") or {}).get("printed")]
    assert told["message"] == "True"
    found = validate(parse(LOOP).spec, root=tmp_path)  # type: ignore[arg-type]
    assert [one.describe() for one in found.diagnostics if one.is_error] == []


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("def reward(completions, **columns)\n    return []\n", "in line 1, column"),
        ("def rewards(completions):\n    return []\n", "defines no function `reward`"),
        ("def reward(completions, anser):\n    return []\n", "anser"),
    ],
)
def test_a_file_is_checked_before_a_run(code: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(code)

    found = validate(parse(LOOP).spec, root=tmp_path)  # type: ignore[arg-type]

    errors = [one for one in found.diagnostics if one.is_error]
    assert [(one.node, one.field) for one in errors] == [("r", "source.file")]
    assert told in errors[0].message


@pytest.mark.skipif(not CASES.is_dir(), reason="the written cases are not beside this checkout")
@pytest.mark.parametrize(
    "name", ["async_reward", "future_dataclass", "uses_helper", "chat_style", "broken"]
)
def test_a_written_case(name: str, runner: Callable[..., Ended]) -> None:
    root = CASES / "rewards"
    text = patch(LOOP, [Change(op="set", path="nodes.r.source.file", value=f"{name}.py")])
    spec = parse(text).spec
    assert spec is not None
    errors = [one.message for one in validate(spec, root=root).diagnostics if one.is_error]
    if name == "broken":
        assert errors == ["`broken.py` does not compile in line 1, column 35: expected ':'"]
        return
    assert errors == []

    ended = runner(text, root=root)

    if name == "chat_style":
        assert ended.state is RunStateName.FAILED
        assert "`completions` holds texts here" in str(ended.error)
    else:
        assert ended.state is RunStateName.FINISHED, ended.error
