"""Demonstrations that are chats, in a run: only what the assistant says is learned."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from coloop.runtime.run_files.events import RunStateName

LOOP = """
coloop: 1
name: chats
nodes:
  talks:
    kind: dataset
    source: {type: file, path: talks.jsonl}
    columns: {target: messages}
    rows_per_step: 2
  actor:
    kind: actor
    model: {type: scratch, architecture: tiny-qwen3}
    rollout: {max_new_tokens: 4}
    algorithm: {name: sft}
    training: {optimizer: {name: adamw, lr: 1.0e-3}}
edges: [talks.rows -> actor.demonstrations]
schedule: {steps: 2}
hardware: {preset: cpu}
"""


def written(folder: Path, *chats: list[dict[str, Any]]) -> str:
    path = folder / "talks.jsonl"
    lines = [json.dumps({"messages": chat}) for chat in chats]
    path.write_text("\n".join(lines), encoding="utf-8")
    return LOOP.replace("path: talks.jsonl", f"path: {path}")


def chat(question: str, *answers: str) -> list[dict[str, Any]]:
    said = [{"role": "system", "content": "add"}]
    for answer in answers:
        said += [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
    return said


def test_chats_are_learned_by_what_the_assistant_says(
    runner: Callable[..., Any], tmp_path: Path
) -> None:
    ended = runner(written(tmp_path, chat("1+1", "2", "two"), chat("2+2", "4")))

    assert ended.state is RunStateName.FINISHED
    # "2", "two" and "4" of one character a token, without their ends: the template has none.
    assert [event["tokens"] for event in ended.of("stage.finished", stage="actor.learn")] == [5, 5]


def test_a_chat_without_an_answer_ends_the_run_with_its_row(
    runner: Callable[..., Any], tmp_path: Path
) -> None:
    ended = runner(written(tmp_path, chat("1+1", "2"), chat("1+1", "2")[:2]))

    assert ended.state is RunStateName.FAILED
    assert "talks.jsonl, line 2, column `messages`" in ended.error.message
    assert "no message of the role `assistant` to learn from" in ended.error.message
