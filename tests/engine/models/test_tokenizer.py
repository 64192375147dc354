"""The character tokenizer, and the rules by which every tokenizer is used."""

import string
from pathlib import Path

import pytest
from tokenizers.processors import TemplateProcessing
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from coloop.errors import RequestRefused
from coloop.models import character_tokenizer
from coloop.models.tokenizer import (
    ASCII,
    SYMBOLS,
    VOCABULARY,
    byte_tokenizer,
    decode,
    encode_completion,
    encode_prompt,
    encode_text,
)


def test_it_has_exactly_the_128_tokens_that_tiny_architectures_have_room_for() -> None:
    tokenizer = character_tokenizer()

    assert len(tokenizer) == len(set(VOCABULARY)) == 128


def test_every_character_is_one_token_and_comes_back() -> None:
    tokenizer = character_tokenizer()
    text = ASCII + SYMBOLS

    ids = encode_prompt(tokenizer, text)

    assert len(ids) == len(text)
    assert decode(tokenizer, ids) == text


@pytest.mark.parametrize(
    "text",
    ["  two  spaces  ", "\n\nlines\n", "1+2=\n3", "a ' b n't .", "<eos> <pad>", "\ttab", " "],
)
def test_no_space_newline_or_lookalike_of_a_mark_is_lost(text: str) -> None:
    tokenizer = character_tokenizer()

    assert decode(tokenizer, encode_prompt(tokenizer, text)) == text


@pytest.mark.parametrize("text", ["", " a\n\tb ", "日本語 é 🙂", "\x00\u2028"])
def test_bytes_hold_any_text_and_give_it_back(text: str) -> None:
    tokenizer = byte_tokenizer()

    ids = encode_text(tokenizer, text)

    assert decode(tokenizer, ids) == text
    assert len(ids) == len(text.encode("utf-8"))


def test_printable_ascii_is_covered() -> None:
    assert set(string.printable) - set("\r\x0b\x0c") <= set(ASCII)


def test_a_completion_ends_with_the_end_of_text_that_decoding_drops() -> None:
    tokenizer = character_tokenizer()

    ids = encode_completion(tokenizer, "42")

    assert ids[-1] == tokenizer.eos_token_id
    assert decode(tokenizer, ids) == "42"


def test_an_unknown_character_is_an_error_that_names_it() -> None:
    with pytest.raises(RequestRefused, match="'ж' in the text 'a ж b'"):
        encode_prompt(character_tokenizer(), "a ж b")


def test_an_empty_prompt_begins_with_the_start_token() -> None:
    tokenizer = character_tokenizer()

    assert encode_prompt(tokenizer, "") == [tokenizer.bos_token_id]


def test_a_chat_is_written_out_by_the_template() -> None:
    tokenizer = character_tokenizer()

    ids = encode_prompt(
        tokenizer, [{"role": "system", "content": "add"}, {"role": "user", "content": "1+1"}]
    )

    assert decode(tokenizer, ids) == "system: add\nuser: 1+1\nassistant: "


def test_a_chat_message_without_role_is_an_error_that_names_it() -> None:
    with pytest.raises(RequestRefused, match="message 1"):
        encode_prompt(character_tokenizer(), [{"role": "user", "content": "a"}, {"text": "b"}])


def test_a_chat_without_template_is_an_error_that_says_what_to_do() -> None:
    tokenizer = character_tokenizer()
    tokenizer.chat_template = None

    with pytest.raises(RequestRefused, match="no chat template"):
        encode_prompt(tokenizer, [{"role": "user", "content": "a"}])


def test_a_saved_tokenizer_is_loaded_by_auto_tokenizer_with_the_same_ids(tmp_path: Path) -> None:
    tokenizer = character_tokenizer()
    tokenizer.save_pretrained(tmp_path)

    loaded = AutoTokenizer.from_pretrained(tmp_path)

    assert isinstance(loaded, PreTrainedTokenizerFast)
    text = "x ≤ 3 → y\n"
    assert loaded(text)["input_ids"] == encode_prompt(tokenizer, text)
    assert decode(loaded, loaded(text)["input_ids"]) == text
    assert loaded.eos_token_id == tokenizer.eos_token_id
    assert loaded.chat_template == tokenizer.chat_template


@pytest.mark.parametrize("setting", ["plain", "cuts", "pads", "marks"])
def test_ids_are_those_of_transformers_however_the_library_was_left(setting: str) -> None:
    tokenizer = character_tokenizer()
    text = f"12+34={tokenizer.eos_token}"
    expected = tokenizer(text)["input_ids"]
    backend = tokenizer.backend_tokenizer
    match setting:
        case "cuts":
            backend.enable_truncation(2)
        case "pads":
            backend.enable_padding(length=64)
        case "marks":
            backend.encode_special_tokens = True

    assert encode_text(tokenizer, text) == expected == tokenizer(text)["input_ids"]
    assert encode_prompt(tokenizer, text) == expected


END = "<|endoftext|>"


def marked(**marks: str) -> PreTrainedTokenizerFast:
    tokenizer = byte_tokenizer()
    tokenizer.add_special_tokens(marks)
    return tokenizer


def test_a_mark_that_also_stands_for_what_is_unknown_is_known_where_it_is_written() -> None:
    tokenizer = marked(bos_token=END, eos_token=END, unk_token=END)
    tokenizer.chat_template = "{{ bos_token }}{% for m in messages %}{{ m['content'] }}{% endfor %}"
    chat = [{"role": "user", "content": f"Hi {END}"}]

    ids = encode_prompt(tokenizer, chat)

    assert ids == tokenizer.apply_chat_template(chat)["input_ids"]
    assert ids[0] == ids[-1] == tokenizer.bos_token_id
    assert encode_text(tokenizer, f"a{END}b").count(tokenizer.unk_token_id) == 1


def test_what_is_unknown_is_told_beside_a_mark_of_the_same_id() -> None:
    tokenizer = character_tokenizer()
    tokenizer.add_special_tokens({"bos_token": "⟨unk⟩"})

    assert encode_text(tokenizer, "⟨unk⟩a")[0] == tokenizer.unk_token_id
    with pytest.raises(RequestRefused, match="'ж' in the text"):
        encode_text(tokenizer, "⟨unk⟩aж")


def test_a_text_that_brings_its_end_is_not_ended_twice() -> None:
    tokenizer = marked(eos_token=END)

    assert encode_completion(tokenizer, f"4{END}") == encode_completion(tokenizer, "4")


def test_a_text_that_brings_its_start_has_it_once() -> None:
    tokenizer = marked(bos_token="<s>")
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", tokenizer.bos_token_id)]
    )

    assert encode_prompt(tokenizer, "<s>Hi") == encode_prompt(tokenizer, "Hi")
    assert encode_prompt(tokenizer, "Hi")[:2] != [tokenizer.bos_token_id] * 2
