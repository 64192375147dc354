"""Chat templates of models: the same bytes as transformers, within the limits of all texts."""

import itertools
import time
from pathlib import Path
from typing import Any

import pytest
from transformers.utils.chat_template_utils import (
    _compile_jinja_template,
    _render_with_assistant_indices,
    render_jinja_template,
)

from coloop.data.templates import budget
from coloop.data.templates.chat import render_chat
from coloop.data.templates.environment import RenderProblem
from coloop.errors import RequestRefused
from coloop.models.tokenizer import character_tokenizer, encode_prompt
from coloop.workers.encoder import Encoder

FOLDER = Path(__file__).parent / "chats"
SOURCES = {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.jinja"))}
MARKS = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}

ADD = {
    "type": "function",
    "function": {
        "name": "add",
        "description": 'Adds <two> numbers & "more",\nalso é',
        "parameters": {
            "type": "object",
            "properties": {
                "a": {"type": "integer", "description": "one"},
                "b": {"type": ["integer", "null"]},
                "c": {"type": "array", "items": {"enum": ["x", 1]}},
            },
            "required": ["a"],
        },
    },
}
CALL = {
    "role": "assistant",
    "content": "",
    "tool_calls": [
        {"id": "abcdefghi", "function": {"name": "add", "arguments": {"a": 1, "b": None}}}
    ],
}
RESULT = {"role": "tool", "content": "3", "name": "add", "tool_call_id": "abcdefghi"}
CHATS: dict[str, list[dict[str, Any]]] = {
    "one question": [{"role": "user", "content": " Hi \n"}],
    "a system prompt and turns": [
        {"role": "system", "content": "Be <brief>.\n"},
        {"role": "user", "content": "1+1?"},
        {"role": "assistant", "content": "<think>\nhm\n</think>\n\n2"},
        {"role": "user", "content": "again"},
    ],
    "a call of a tool": [
        {"role": "user", "content": "add"},
        CALL,
        RESULT,
        {"role": "user", "content": "thanks"},
    ],
    "an answer to be written": [
        {"role": "user", "content": "add"},
        {**CALL, "content": None},
        RESULT,
    ],
    "a thought": [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "a", "reasoning_content": "because"},
    ],
    "two answers": [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "a"},
        {"role": "assistant", "content": "b"},
    ],
    "parts": [{"role": "user", "content": [{"type": "text", "text": "part"}]}],
    "nothing": [{"role": "user", "content": ""}],
    "a stop": [{"role": "user", "content": "stop here"}, {"role": "user", "content": "more"}],
}
CASES = list(itertools.product(CHATS, (None, [ADD]), (True, False)))


def transformers_says(source: str, chat: Any, tools: Any, is_open: bool) -> str | None:
    """Its text; None where the template refuses the chat."""
    try:
        texts, _ = render_jinja_template(
            [chat], tools=tools, chat_template=source, add_generation_prompt=is_open, **MARKS
        )
    except Exception:
        return None
    return str(texts[0])


def we_say(source: str, chat: Any, tools: Any, is_open: bool) -> str | None:
    values = {**MARKS, "tools": tools, "add_generation_prompt": is_open}
    try:
        return render_chat(source, chat, values)[0]
    except RenderProblem:
        return None


@pytest.mark.parametrize("name", SOURCES)
def test_a_template_gives_the_bytes_that_transformers_gives(name: str) -> None:
    source, given = SOURCES[name], 0

    for chat, tools, is_open in CASES:
        expected = transformers_says(source, CHATS[chat], tools, is_open)
        given += expected is not None
        assert we_say(source, CHATS[chat], tools, is_open) == expected, (chat, tools, is_open)

    assert given > len(CASES) / 2


@pytest.mark.parametrize("chat", [name for name in CHATS if name != "parts"])
def test_what_the_assistant_wrote_is_marked_as_transformers_marks_it(chat: str) -> None:
    source, values = SOURCES["generation"], {**MARKS, "add_generation_prompt": False}

    expected = _render_with_assistant_indices(
        compiled_template=_compile_jinja_template(source),
        messages=CHATS[chat],
        tools=None,
        documents=None,
        **values,
    )

    assert render_chat(source, CHATS[chat], values) == tuple(expected)


def test_a_chat_is_encoded_as_transformers_encodes_it() -> None:
    tokenizer = character_tokenizer()
    tokenizer.chat_template = SOURCES["generation"].replace("<|", "").replace("|>", ":")
    chat = CHATS["one question"]

    expected = tokenizer.apply_chat_template(chat, add_generation_prompt=True)["input_ids"]

    assert encode_prompt(tokenizer, chat) == expected


def test_a_refusal_of_the_template_is_told_with_node_and_model() -> None:
    tokenizer = character_tokenizer()
    tokenizer.name_or_path = "models/judge"
    tokenizer.chat_template = "{{ raise_exception('roles must alternate') }}"
    encoder = Encoder(tokenizer, node="judge")

    with pytest.raises(RequestRefused) as refused:
        encoder.prompt([{"role": "user", "content": "q"}])

    assert str(refused.value) == ("judge: the chat template of models/judge: roles must alternate")


HOSTILE = [
    ("{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}", "0.1 seconds"),
    ("{% set n = namespace(t='x' * 9999) %}{% for a in range(9999) %}{% set n.t = n.t ~ n.t %}"
     "{% endfor %}", "the limit is 1,000,000"),
    ("{{ messages[0].content * 10 ** 9 }}", "the limit is 1,000,000"),
    ("{{ ('a' * 99999) | tojson(indent=10 ** 9) }}", "is larger than 16"),
    ("{{ strftime_now('%Y' * 999) }}", "longer than 200"),
    ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "call each other endlessly"),
    ("{{ raise_exception('x' * 999999) }}", "xxx"),
    ("{{ messages.__class__.__name__ }}", "unsafe"),
    ("{{ ''.__class__.__mro__ }}", "unsafe"),
    ("{{ cycler.__init__.__globals__ }}", "unsafe"),
    ("{% include '/etc/passwd' %}", "not supported"),
    ("{{ generation_of() }}", "caller"),
    ("{% generation %}" * 20 + "{% endgeneration %}" * 20, "deeper than 15"),
    ("{% set a = [-(10 ** 12)] | map('~pass') | list %}", "No filter named '~pass'"),
    ("{{ tools.x }}{{ nothing.at.all }}", "undefined"),
]  # fmt: skip


@pytest.mark.attack
@pytest.mark.parametrize(("source", "what"), HOSTILE)
def test_a_hostile_template_ends_in_an_error(
    source: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "SECONDS", 0.1)
    began = time.thread_time()

    with pytest.raises(RenderProblem, match=what) as refused:
        render_chat(source, [{"role": "user", "content": "q"}], {"add_generation_prompt": True})

    assert time.thread_time() - began < 5
    assert len(str(refused.value)) <= 1000
