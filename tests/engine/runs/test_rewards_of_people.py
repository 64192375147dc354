"""Runs with rewards in files: what they print, which ids they get, what is wrong with them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coloop.runtime.run_files.events import RunStateName
from coloop.spec.diagnostics import Change, Diagnostic
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
        ("def rewards(completions):\n    return []\n", "has no function `reward`"),
        ("def reward(completions, anser):\n    return []\n", "anser"),
    ],
)
def test_a_file_is_checked_before_a_run(code: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(code)

    found = validate(parse(LOOP).spec, root=tmp_path)  # type: ignore[arg-type]

    errors = [one for one in found.diagnostics if one.is_error]
    assert [(one.node, one.field) for one in errors] == [("r", "source.file")]
    assert told in errors[0].message


PLAIN = (
    "import helper\ndef reward(completions, **columns):\n    return [0.0 for c in completions]\n"
)


def findings(folder: Path) -> list[Diagnostic]:
    """What the checker says of the reward's file in a folder."""
    spec = parse(LOOP).spec
    assert spec is not None
    told = validate(spec, root=folder).diagnostics
    return [one for one in told if one.field == "source.file"]


def test_a_file_in_latin_1_is_refused_before_a_run_and_by_it_in_the_same_words(
    runner: Callable[..., Ended], tmp_path: Path
) -> None:
    text = PLAIN.replace("import helper", "# the caf\u00e9's reward")
    (tmp_path / "mine.py").write_bytes(text.encode("latin-1"))

    [found] = findings(tmp_path)
    ended = runner(LOOP)

    assert found.is_error
    assert "`mine.py` is not encoded as UTF-8 (line 1)" in found.message
    assert "# coding: latin-1" in found.message
    assert ended.state is RunStateName.FAILED
    assert found.message in str(ended.error)


def test_a_file_that_names_its_encoding_is_read_in_it(
    runner: Callable[..., Ended], tmp_path: Path
) -> None:
    (tmp_path / "helper.py").write_bytes(b"\xef\xbb\xbfNAME = 'x'\r\n")
    text = f"# coding: latin-1\nNAME = 'caf\u00e9'\nassert len(NAME) == 4\n{PLAIN}"
    (tmp_path / "mine.py").write_bytes(text.encode("latin-1"))

    assert findings(tmp_path) == []
    assert runner(LOOP).state is RunStateName.FINISHED


@pytest.mark.parametrize(
    ("data", "told", "at_run"),
    [
        (
            b"x = 1\ndef f(:\n",
            "`helper.py` does not compile in line 2, column 7",
            "helper.py, line 2)",
        ),
        (b"x = 1\n# caf\xe9\n", "`helper.py` is not encoded as UTF-8 (line 2)", "`helper.py`"),
    ],
)
def test_a_module_beside_the_file_is_named_where_it_cannot_be_read(
    data: bytes, told: str, at_run: str, runner: Callable[..., Ended], tmp_path: Path
) -> None:
    (tmp_path / "helper.py").write_bytes(data)
    (tmp_path / "mine.py").write_text(PLAIN)

    [found] = findings(tmp_path)
    ended = runner(LOOP)

    assert found.is_error
    assert told in found.message
    assert ended.state is RunStateName.FAILED
    assert at_run in str(ended.error)


def test_what_fails_in_a_module_beside_the_file_names_both_lines(
    runner: Callable[..., Ended], tmp_path: Path
) -> None:
    (tmp_path / "helper.py").write_text("def last(text):\n    return int(text[9999])\n")
    (tmp_path / "mine.py").write_text(PLAIN.replace("0.0 for", "helper.last(c) for"))

    ended = runner(LOOP)

    assert "IndexError: string index out of range (line 3; helper.py, line 2)" in str(ended.error)


def test_a_module_that_is_nowhere_is_a_warning_with_the_nearest_name(
    runner: Callable[..., Ended], tmp_path: Path
) -> None:
    (tmp_path / "helper.py").write_text("")
    (tmp_path / "mine.py").write_text(PLAIN.replace("import helper", "import helpr"))

    [found] = findings(tmp_path)
    ended = runner(LOOP)

    assert (found.code, found.severity) == ("text.code_import", "warning")
    assert "`mine.py` imports `helpr` in line 1" in found.message
    assert found.hint == "did you mean `helper`?"
    assert ended.state is RunStateName.FAILED
    told = str(ended.error)
    assert "No module named 'helpr'" in told
    assert "neither beside the file nor installed" in told


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("import os.path, numpy.linalg, json", []),
        ("import nowhere1 as n, nowhere2.inner", ["nowhere1", "nowhere2.inner"]),
        ("try:\n    import nowhere\nexcept ImportError:\n    nowhere = None", []),
        ("try:\n    x = 1\nfinally:\n    import nowhere", ["nowhere"]),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import nowhere", []),
        ("def later():\n    from nowhere.inner import x", ["nowhere.inner"]),
        ("from texts import words, LONGEST\nfrom texts.words import split", []),
        ("from texts.wrds import split", ["texts.wrds"]),
        ("import texts.near", ["texts.lost"]),
    ],
)
def test_imports_that_are_found(text: str, missing: list[str], tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "__init__.py").write_text("LONGEST = 9\n")
    (tmp_path / "texts" / "words.py").write_text("from . import LONGEST\ndef split(x): ...\n")
    (tmp_path / "texts" / "near.py").write_text("from . import words\nfrom .lost import one\n")
    (tmp_path / "mine.py").write_text(PLAIN.replace("import helper", text))

    found = findings(tmp_path)

    assert [one.code for one in found] == ["text.code_import"] * len(missing)
    told = " ".join(one.message for one in found)
    assert all(f"imports `{name}`" in told for name in missing), told


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

    if name == "chat_style":  # the prompts of this loop are texts
        assert ended.state is RunStateName.FAILED
        assert "`completions` holds texts here" in str(ended.error)
    else:
        assert ended.state is RunStateName.FINISHED, ended.error


@pytest.mark.skipif(not CASES.is_dir(), reason="the written cases are not beside this checkout")
def test_a_reward_for_chats_scores_a_run_whose_prompts_are_chats(
    runner: Callable[..., Ended], tmp_path: Path
) -> None:
    ask = '[{role: system, content: add}, {role: user, content: "%s"}]'
    text = LOOP.replace("prompt: 1+1=", f"prompt: {ask % '1+1'}")
    text = text.replace("prompt: 2+2=", f"prompt: {ask % '2+2'}").replace(
        "tiny-bytes", "tiny-qwen3"
    )
    (tmp_path / "mine.py").write_bytes((CASES / "rewards" / "chat_style.py").read_bytes())

    ended = runner(text)

    assert ended.state is RunStateName.FINISHED, ended.error
    assert set(ended.metrics("r", "score/mean")) == {1.0}
