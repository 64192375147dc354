"""Which tokens of a chat are imitated: as transformers marks them, or found by rendering."""

from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from coloop.algorithms.batch import Sequence, Text
from coloop.errors import RequestRefused
from coloop.models.chats import set_template
from coloop.models.tokenizer import byte_tokenizer, decode, encode_chat, rendered_prompt
from coloop.workers.encoder import Encoder

CHATML = Path(__file__).parents[1] / "templates" / "chats" / "chatml.jinja"

MARKED = """{%- if tools %}tools:
{%- for tool in tools %} {{ tool | tojson }}{%- endfor %}
{% endif %}
{%- for message in messages %}
    {%- if message['role'] == 'assistant' %}
        {{- '<a>' }}
        {%- generation %}
            {{- message['content'] or '' }}
            {%- for call in message['tool_calls'] or [] %}
                {{- '[' + call.function.name + (call.function.arguments | tojson) + ']' }}
            {%- endfor %}
            {{- eos_token }}
        {%- endgeneration %}
    {%- else %}
        {{- '<' + message['role'] + '>' + message['content'] }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<a>' }}{% endif %}"""

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "add",
            "description": "Adds \u00e9",
            "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}},
        },
    }
]
SYSTEM = {"role": "system", "content": "Be brief."}
ASKED = {"role": "user", "content": "1+1? \u00e9"}
CALLED = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"function": {"name": "add", "arguments": {"a": 1}}}],
}
RESULT = {"role": "tool", "content": "2"}
SAID = {"role": "assistant", "content": "It is 2 \u2713"}
AGAIN = {"role": "user", "content": "sure?"}
YES = {"role": "assistant", "content": "yes"}
CHAT = [SYSTEM, ASKED, CALLED, RESULT, SAID, AGAIN, YES]


def tokenizer_of(template: str | None) -> PreTrainedTokenizerFast:
    tokenizer = byte_tokenizer()
    if template is not None:
        tokenizer.chat_template = template
    return tokenizer


def imitated(tokenizer: PreTrainedTokenizerFast, ids: list[int], mask: list[bool]) -> list[str]:
    """Each run of imitated tokens as text, end marks included."""
    runs: list[list[int]] = []
    for place, (token, is_trained) in enumerate(zip(ids, mask, strict=True)):
        if is_trained and place and mask[place - 1]:
            runs[-1].append(token)
        elif is_trained:
            runs.append([token])
    return [str(tokenizer.decode(run)) for run in runs]


@pytest.mark.parametrize("tools", [None, TOOLS])
@pytest.mark.parametrize("chat", [CHAT, CHAT[1:], [ASKED, SAID], [ASKED, SAID, YES], [YES]])
def test_ids_and_mask_are_those_of_transformers(
    chat: list[dict[str, Any]], tools: list[dict[str, Any]] | None
) -> None:
    tokenizer = tokenizer_of(MARKED)
    expected: Any = tokenizer.apply_chat_template(
        chat, tools=tools, return_assistant_tokens_mask=True, return_dict=True
    )

    ids, mask = encode_chat(tokenizer, [], chat, tools)

    assert ids == expected["input_ids"]
    assert [int(one) for one in mask] == expected["assistant_masks"]


@pytest.mark.parametrize("known", range(1, len(CHAT)))
def test_what_was_said_before_the_target_is_read_and_not_imitated(known: int) -> None:
    tokenizer = tokenizer_of(MARKED)
    whole: Any = tokenizer.apply_chat_template(
        CHAT, tools=TOOLS, return_assistant_tokens_mask=True, return_dict=True
    )
    said = tokenizer.apply_chat_template(CHAT[:known], tools=TOOLS, return_dict=True)

    ids, mask = encode_chat(tokenizer, CHAT[:known], CHAT[known:], TOOLS)

    before = len(said["input_ids"])
    assert ids == whole["input_ids"]
    assert not any(mask[:before])
    assert [int(one) for one in mask[before:]] == whole["assistant_masks"][before:]


def test_a_prompt_of_text_is_what_the_user_says_first() -> None:
    tokenizer = tokenizer_of(MARKED)

    assert encode_chat(tokenizer, "1+1? \u00e9", [SAID]) == encode_chat(tokenizer, [ASKED], [SAID])


def test_a_template_without_marks_is_found_out_by_rendering() -> None:
    tokenizer = tokenizer_of(None)
    chat = [ASKED, SAID, AGAIN, YES]

    ids, mask = encode_chat(tokenizer, [SYSTEM], chat)

    assert decode(tokenizer, ids).startswith("system: Be brief.\nuser: 1+1?")
    assert imitated(tokenizer, ids, mask) == ["It is 2 \u2713", "yes"]


def test_a_template_of_models_in_use_gives_answers_with_their_ends() -> None:
    tokenizer = tokenizer_of(CHATML.read_text(encoding="utf-8"))
    thought = {**YES, "reasoning_content": "hm"}

    ids, mask = encode_chat(tokenizer, [SYSTEM], [ASKED, thought], TOOLS)

    assert imitated(tokenizer, ids, mask) == ["<think>\nhm\n</think>\n\nyes<|im_end|>"]


def test_a_template_that_rewrites_earlier_answers_is_refused_with_what_to_do() -> None:
    tokenizer = tokenizer_of(CHATML.read_text(encoding="utf-8"))
    thought = {**SAID, "reasoning_content": "hm"}

    with pytest.raises(RequestRefused, match=r"message 1 differently.*% generation %"):
        encode_chat(tokenizer, [], [ASKED, thought, AGAIN, YES])


@pytest.mark.parametrize(
    ("target", "what"),
    [
        ([ASKED], "no message of the role `assistant`"),
        ([], "no message of the role `assistant`"),
        ([{"role": "assistant"}], "message 1 of the chat has no role and content"),
    ],
)
def test_a_chat_in_which_nothing_is_to_be_imitated_is_told(
    target: list[dict[str, Any]], what: str
) -> None:
    with pytest.raises(RequestRefused, match=what):
        encode_chat(tokenizer_of(MARKED), [ASKED], target)


def test_an_answer_without_a_character_is_told() -> None:
    template = MARKED.replace("{{- eos_token }}", "")

    with pytest.raises(RequestRefused, match="messages are empty"):
        encode_chat(tokenizer_of(template), [ASKED], [{"role": "assistant", "content": ""}])


def test_a_learner_gets_the_chat_with_its_mask_and_a_refusal_names_node_and_row() -> None:
    tokenizer = tokenizer_of(MARKED)
    encoder = Encoder(tokenizer, node="actor")
    ids, mask = encode_chat(tokenizer, [SYSTEM, ASKED], CHAT[2:], TOOLS)
    text = Text(prompt=[SYSTEM, ASKED], target=CHAT[2:], tools=tuple(TOOLS))

    learned = encoder.sequence(Sequence(id="r", text=text))

    assert learned.token_ids.tolist() == ids
    assert learned.loss_mask.tolist() == mask
    assert learned.prompt_length == mask.index(True)
    with pytest.raises(RequestRefused, match="actor: row r: the chat of 1 messages"):
        encoder.sequence(Sequence(id="r", text=Text(prompt="q", target=[ASKED])))


def test_a_prompt_shows_the_tools_that_a_row_brings() -> None:
    tokenizer = tokenizer_of(MARKED)
    expected: Any = tokenizer.apply_chat_template(
        [ASKED], tools=TOOLS, add_generation_prompt=True, return_dict=True
    )

    assert Encoder(tokenizer).prompt([ASKED], TOOLS) == expected["input_ids"]


R1 = """{%- for m in messages %}{% if m['role'] == 'user' %}<|User|>{{ m['content'] }}{% else -%}
<|Assistant|>{{ m['content'].split('</think>')[-1] }}<|end|>{% endif %}{% endfor -%}
{% if add_generation_prompt %}<|Assistant|><think>\n{% endif %}"""


@pytest.mark.parametrize("answer", ["2", "<b>2", "<think>\nhm\n</think>2", "<think> 2"])
def test_an_answer_is_imitated_though_the_generation_prompt_goes_on_otherwise(answer: str) -> None:
    tokenizer = tokenizer_of(R1)

    ids, mask = encode_chat(tokenizer, [ASKED], [{"role": "assistant", "content": answer}])

    whole: Any = tokenizer.apply_chat_template(
        [ASKED, {"role": "assistant", "content": answer}], return_dict=True
    )
    assert ids == whole["input_ids"]
    assert imitated(tokenizer, ids, mask) == [answer.split("</think>")[-1] + "<|end|>"]


def test_a_generation_prompt_that_no_answer_begins_with_is_named() -> None:
    template = R1.replace(
        "{% if add_generation_prompt %}<|Assistant|>", "{% if add_generation_prompt %}!"
    )
    tokenizer = tokenizer_of(
        template.replace("<|User|>", "{% if not loop.last %}+{% endif %}<|User|>")
    )

    with pytest.raises(RequestRefused, match="generation prompt of the chat template"):
        encode_chat(tokenizer, [ASKED], [SAID])


def test_of_several_templates_the_one_for_tools_is_taken_with_tools() -> None:
    tokenizer = byte_tokenizer()
    tokenizer.chat_template = {"default": str(tokenizer.chat_template), "tool_use": MARKED}

    for tools in (None, TOOLS):
        expected = tokenizer.apply_chat_template(
            [ASKED], tools=tools, tokenize=False, add_generation_prompt=True
        )
        assert rendered_prompt(tokenizer, [ASKED], tools) == expected
    tokenizer.chat_template = {"rag": MARKED}
    with pytest.raises(RequestRefused, match="no default specified"):
        rendered_prompt(tokenizer, [ASKED])


@pytest.mark.parametrize("said", ["The sum", "The sum is: ", " The"])
@pytest.mark.parametrize("template", [None, MARKED, CHATML.read_text(encoding="utf-8")])
def test_what_the_assistant_said_last_is_continued(template: str | None, said: str) -> None:
    tokenizer = tokenizer_of(template)
    chat = [SYSTEM, ASKED, {"role": "assistant", "content": said}]

    expected = tokenizer.apply_chat_template(chat, tokenize=False, continue_final_message=True)

    assert rendered_prompt(tokenizer, chat) == expected


def test_a_template_that_hides_what_is_to_be_continued_is_told() -> None:
    tokenizer = tokenizer_of("{% for m in messages %}{{ m['role'] }}{% endfor %}")

    with pytest.raises(RequestRefused, match="does not render the content of the last message"):
        rendered_prompt(tokenizer, [ASKED, SAID])


def test_keys_that_are_null_do_not_reach_the_template() -> None:
    tokenizer = tokenizer_of(MARKED)
    other = {"type": "integer"}
    function = TOOLS[0]["function"]
    assert isinstance(function, dict)
    spread = {**function, "parameters": {"type": "object", "properties": {"a": other, "b": None}}}
    tools = [{"type": "function", "function": spread, "strict": None}]
    called = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": None, "function": {"name": "add", "arguments": {"a": 1, "b": None}}}],
    }

    assert rendered_prompt(tokenizer, [ASKED, called, RESULT], tools) == rendered_prompt(
        tokenizer, [ASKED, CALLED, RESULT], TOOLS
    )


def test_a_template_and_values_of_the_loop_are_those_of_transformers(tmp_path: Path) -> None:
    template = "{% if not enable_thinking %}<think></think>{% endif %}" + MARKED
    tokenizer = byte_tokenizer()

    set_template(tokenizer, template, {"enable_thinking": False})

    expected = tokenizer.apply_chat_template(
        [ASKED], tokenize=False, add_generation_prompt=True, enable_thinking=False
    )
    assert rendered_prompt(tokenizer, [ASKED]) == expected
    tokenizer.save_pretrained(tmp_path)
    again = AutoTokenizer.from_pretrained(tmp_path)
    assert rendered_prompt(again, [ASKED]) == expected


def test_answers_of_several_turns_are_imitated_by_a_template_that_marks_them() -> None:
    thought = {**SAID, "reasoning_content": "hm"}
    chat = [ASKED, thought, AGAIN, YES]
    tokenizer = tokenizer_of(CHATML.read_text(encoding="utf-8"))

    set_template(tokenizer, MARKED, {})

    assert imitated(tokenizer, *encode_chat(tokenizer, [], chat))[-1].startswith("yes")
