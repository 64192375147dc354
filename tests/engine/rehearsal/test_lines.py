"""What writers of a rehearsal say, by who reads them."""

import re

import pytest

from coloop.explain.rehearsal.lines import lines_of
from coloop.spec.io import from_dict, require

RIGHT = ("$answer", "$target", "$chosen", "$rejected")


def lines(
    reader: dict,
    edge: str = "actor.rollouts -> reader.rollouts",
    edges: tuple[str, ...] = (),
    **nodes: dict,
):
    """Lines of an actor that one node reads."""
    document = {
        "coloop": 1,
        "name": "read",
        "nodes": {
            "sums": {"kind": "dataset", "source": {"type": "task", "task": "arithmetic"}},
            "actor": {"kind": "actor", "model": {"type": "scratch", "architecture": "tiny-qwen3"}},
            "reader": reader,
            **nodes,
        },
        "edges": ["sums.rows -> actor.prompts", edge, *edges],
        "schedule": {"steps": 1},
    }
    return lines_of(require(from_dict(document)), "actor")


def reward(**source: object) -> dict:
    return {"kind": "reward", "source": {"type": "builtin", **source}}


def test_whoever_writes_says_what_is_right() -> None:
    assert lines(reward(name="exact_match"))[:4] == RIGHT


def test_an_answer_stands_where_it_is_looked_for() -> None:
    found = lines(reward(name="exact_match", extract="<answer>(.*?)</answer>"))

    assert "<answer>$answer</answer>" in found


def test_another_column_may_be_what_is_right() -> None:
    assert "$caption" in lines(reward(name="exact_match", column="caption"))


def test_a_pattern_in_somebodys_python_is_looked_up() -> None:
    code = (
        "import re\n"
        "def reward(prompts, completions, **columns):\n"
        "    return [float(bool(re.search(r'\\[(\\d+)\\]$', c))) for c in completions]\n"
    )
    found = lines({"kind": "reward", "source": {"type": "python", "code": code}})

    assert {"[$answer]", "[1]"} <= set(found)


def test_all_parts_of_a_parse_stand_in_one_text() -> None:
    parse = {"question": {"tag": "q"}, "grade": r"grade: (\d)", "deep": {"json": "a.b"}}
    found = lines({"kind": "template", "parse": parse}, "actor.rollouts -> reader.rows")

    one = next(line for line in found if "<q>" in line)
    assert re.search(r"grade: \d", one)
    assert '{"a": {"b": ' in one


def test_readers_behind_a_filter_count() -> None:
    keep = {"kind": "filter", "keep": [{"rule": "regex", "pattern": "^ok [ab]$"}]}

    assert "ok a" in lines(keep)


@pytest.mark.parametrize(
    ("call", "text"), [("<search>(?P<query>.*?)</search>", "<search>one</search>")]
)
def test_a_tool_is_called_before_anything_is_said(call: str, text: str) -> None:
    tool = {"kind": "tool", "type": "search", "call": call}
    found = lines(tool, "reader.tool -> actor.tools")

    assert found[0] == f"{text}<search>two</search>$answer"


def test_a_negation_can_be_proved_in_a_search() -> None:
    tree = {"kind": "search", "method": "and_or", "budget": {"tokens": 100}}
    kernel = {"kind": "tool", "type": "environment", "name": "proof"}

    called = ("sums.rows -> reader.rows", "kernel.tool -> reader.tools")
    found = lines(tree, "actor.policy -> reader.policy", called, kernel=kernel)

    assert "none" in found


def test_marks_of_an_environment_stand_before_what_is_right() -> None:
    code = (
        "class Environment:\n"
        "    def reset(self, row):\n"
        "        return row['prompt']\n"
        "    def step(self, text):\n"
        "        return {'done': '=' in text}\n"
    )
    desk = {"kind": "tool", "type": "environment", "code": code}

    assert lines(desk, "reader.tool -> actor.tools")[0] == "=$answer"


def test_a_judge_says_each_of_its_verdicts() -> None:
    read = {
        "step_verdicts": r"step (\d+): (right|wrong)",
        "verdict": "final: (correct|incorrect)",
        "values": {"right": 1, "wrong": 0, "correct": 1, "incorrect": 0},
    }
    judge = {
        "kind": "verifier",
        "method": "generative",
        "model": {"type": "scratch", "architecture": "tiny-qwen3"},
        "template": {"text": "{{ prompt }}?"},
        "read": read,
        "rollout": {},
    }
    document = {
        "coloop": 1,
        "name": "judged",
        "nodes": {
            "sums": {"kind": "dataset", "source": {"type": "task", "task": "arithmetic"}},
            "judge": judge,
        },
        "edges": ["sums.rows -> judge.rows"],
        "schedule": {"steps": 1},
    }
    found = lines_of(require(from_dict(document)), "judge")

    assert any(line.endswith("final: correct") for line in found)
    assert any(line.endswith("final: incorrect") for line in found)
    assert all(re.search(r"step 1: (right|wrong)\nstep 2: ", line) for line in found)


def test_dollars_of_a_pattern_are_no_columns() -> None:
    assert "price: $$1" in lines(reward(name="format", pattern=r"price: \$1"))


def test_a_tool_that_wraps_others_is_called_in_their_words() -> None:
    asks = {"kind": "tool", "type": "model", "template": {"text": "{{ value }}"}}
    writer = {"kind": "actor", "model": {"type": "scratch", "architecture": "tiny-qwen3"}}
    document = {
        "coloop": 1,
        "name": "wrapped",
        "nodes": {
            "sums": {"kind": "dataset", "source": {"type": "task", "task": "arithmetic"}},
            "actor": writer,
            "other": writer,
            "adds": {"kind": "tool", "type": "calculator", "call": "<add>(.*?)</add>"},
            "short": asks,
        },
        "edges": [
            "sums.rows -> actor.prompts",
            "adds.tool -> short.tools",
            "other.policy -> short.policy",
            "short.tool -> actor.tools",
        ],
        "schedule": {"steps": 1},
    }

    assert lines_of(require(from_dict(document)), "actor")[0] == "<add>1+1</add>$answer"
