"""Pairs whose sides are chats, in the forms that TRL has: the ids of the whole chat, and the answer
alone learned."""

import json
from pathlib import Path
from typing import Any

import pytest

from coloop.algorithms.batch import Pair, Sequence
from coloop.data.sources import open_source
from coloop.data.tables.row import Row, root_row
from coloop.errors import DataError
from coloop.models.tokenizer import byte_tokenizer
from coloop.runtime.roles.rows.texts import as_pair, as_sequence
from coloop.spec.nodes import DatasetNode
from coloop.workers.encoder import Encoder

SYSTEM = {"role": "system", "content": "Be brief."}
ASKED = {"role": "user", "content": "1+1= é"}
GOOD = {"role": "assistant", "content": "2"}
BAD = {"role": "assistant", "content": "no idea"}
AGAIN = {"role": "user", "content": "sure?"}
YES = {"role": "assistant", "content": "yes"}
TEMPLATE = (
    "{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}<|{{ m['role'] }}|>"
    "{{ m['content'] }}<|end|>\n{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)

EXPLICIT = {"prompt": [SYSTEM, ASKED], "chosen": [GOOD], "rejected": [BAD]}
FORMS = {
    "explicit": EXPLICIT,
    "implicit": {"chosen": [SYSTEM, ASKED, GOOD], "rejected": [SYSTEM, ASKED, BAD]},
    "prompt repeated": {
        "prompt": [SYSTEM, ASKED],
        "chosen": [SYSTEM, ASKED, GOOD],
        "rejected": [SYSTEM, ASKED, BAD],
    },
    "prompt repeated as text": {
        "prompt": ASKED["content"],
        "chosen": [SYSTEM, ASKED, GOOD],
        "rejected": [SYSTEM, ASKED, BAD],
    },
    "parts": {
        "prompt": [SYSTEM, {"role": "user", "content": [{"type": "text", "text": "1+1= é"}]}],
        "chosen": [{"role": "assistant", "content": [{"type": "text", "text": "2"}]}],
        "rejected": [BAD],
    },
}


def row_of(columns: dict[str, Any], folder: Path) -> Row:
    (folder / "rows.jsonl").write_text(json.dumps(columns), encoding="utf-8")
    source = {"type": "file", "path": "rows.jsonl"}
    node = DatasetNode.model_validate({"kind": "dataset", "source": source, "rows_per_step": 1})
    return root_row("prefs", "0.0", open_source(node, node_id="prefs", root=folder).row(0))


def encoder() -> Encoder:
    tokenizer = byte_tokenizer()
    tokenizer.chat_template = TEMPLATE
    return Encoder(tokenizer, node="actor")


def learned(sequence: Sequence) -> str:
    ids = sequence.token_ids[sequence.loss_mask].tolist()
    return str(byte_tokenizer().decode(ids))


def ids_of(chat: list[Any], tools: list[Any] | None = None) -> list[int]:
    tokenizer = byte_tokenizer()
    tokenizer.chat_template = TEMPLATE
    found: list[int] = tokenizer.apply_chat_template(chat, tools=tools)["input_ids"]
    return found


@pytest.mark.parametrize("form", FORMS)
def test_each_side_is_the_whole_chat_of_which_its_answer_is_learned(
    form: str, tmp_path: Path
) -> None:
    row = row_of(FORMS[form], tmp_path)

    pair = encoder().encoded(as_pair(row))

    assert isinstance(pair, Pair)
    assert row.columns["prompt"] == [SYSTEM, ASKED]
    assert pair.chosen.token_ids.tolist() == ids_of([SYSTEM, ASKED, GOOD])
    assert pair.rejected.token_ids.tolist() == ids_of([SYSTEM, ASKED, BAD])
    assert (learned(pair.chosen), learned(pair.rejected)) == ("2<|end|>", "no idea<|end|>")


def test_a_prompt_of_text_is_what_the_user_says(tmp_path: Path) -> None:
    row = row_of({"prompt": "1+1= é", "chosen": [GOOD], "rejected": [BAD]}, tmp_path)

    pair = encoder().encoded(as_pair(row))

    assert isinstance(pair, Pair)
    assert pair.chosen.token_ids.tolist() == ids_of([ASKED, GOOD])


def test_of_several_turns_every_answer_is_learned_and_tools_are_shown(tmp_path: Path) -> None:
    tools = [{"type": "function", "function": {"name": "add", "parameters": {}}}]
    turns = {"prompt": [ASKED], "chosen": [BAD, AGAIN, GOOD], "rejected": [BAD, AGAIN, YES]}
    row = row_of({**turns, "tools": tools}, tmp_path)

    pair = encoder().encoded(as_pair(row))

    assert isinstance(pair, Pair)
    assert row.columns["prompt"] == [ASKED]
    assert pair.chosen.token_ids.tolist() == ids_of([ASKED, BAD, AGAIN, GOOD], tools)
    assert learned(pair.rejected) == "no idea<|end|>yes<|end|>"


def test_a_strangers_answers_stand_under_the_own_prompt(tmp_path: Path) -> None:
    row = row_of(EXPLICIT, tmp_path)
    other = row_of({"prompt": [AGAIN], "chosen": [YES], "rejected": [BAD]}, tmp_path)

    pair = encoder().encoded(as_pair(row, giver=other))

    assert isinstance(pair, Pair)
    assert pair.chosen.token_ids.tolist() == ids_of([SYSTEM, ASKED, YES])


def test_an_unpaired_answer_is_learned_as_a_side_is(tmp_path: Path) -> None:
    row = row_of({"prompt": [SYSTEM, ASKED], "target": [GOOD], "label": True}, tmp_path)

    sequence = encoder().encoded(as_sequence(row))

    assert isinstance(sequence, Sequence)
    assert sequence.token_ids.tolist() == ids_of([SYSTEM, ASKED, GOOD])
    assert learned(sequence) == "2<|end|>"


def test_a_side_without_an_answer_is_found_when_the_file_is_read(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"line 1, column `chosen` has no message of the role"):
        row_of({"prompt": [SYSTEM], "chosen": [ASKED], "rejected": [BAD]}, tmp_path)
