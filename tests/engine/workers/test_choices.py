"""Words between which a model is asked to choose, as the tokens with which they begin."""

import pytest
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from coloop.algorithms.batch import Choice, Sequence, Text, completion_sequence
from coloop.errors import DataError
from coloop.models import character_tokenizer
from coloop.workers.encoder import Encoder

LABELS = ("Yes", "No")


def of_words() -> Encoder:
    """Words are tokens, each with the blank before it."""
    known = {text: n for n, text in enumerate(["?", "final:", " Yes", " No", "Yes", "No", " "])}
    tokenizer = Tokenizer(models.WordLevel(known, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r" ?[^ ]+"), behavior="isolated")
    tokenizer.decoder = decoders.Fuse()
    return Encoder(PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="?"), node="judge")


def drawn(encoder: Encoder, text: str, choice: Choice) -> Sequence:
    ids = encoder.said(text)
    own = completion_sequence(
        id="r", prompt_ids=[1], completion_ids=ids, loss_mask=[True] * len(ids), choice=choice
    )
    return encoder.sequence(own)


def test_words_after_a_prompt_are_those_as_they_are_written() -> None:
    encoder = of_words()
    text = Text(prompt="final:", target="")

    asked = encoder.sequence(Sequence(id="r", text=text, choice=Choice(words=LABELS, field="read")))

    assert asked.token_ids.tolist() == [1]
    assert asked.choices is not None
    assert asked.choices.tolist() == encoder.said("Yes") + encoder.said("No")
    assert not asked.loss_mask.any()


def test_a_word_in_a_text_is_asked_for_with_the_blank_that_its_token_brings() -> None:
    encoder = of_words()
    at = "final: Yes".index("Yes")

    asked = drawn(encoder, "final: Yes", Choice(words=LABELS, field="read.labels", at=at))

    assert asked.token_ids.tolist() == [1, 1]
    assert asked.choices is not None
    assert asked.choices.tolist() == encoder.said(" Yes") + encoder.said(" No")


def test_where_the_blank_is_a_token_it_is_read_before_the_words() -> None:
    encoder = Encoder(character_tokenizer(), node="judge")
    text = "all right: Yes\nNo more"
    at = text.index("Yes")

    asked = drawn(encoder, text, Choice(words=LABELS, field="read.labels", at=at))

    assert encoder.text(asked.token_ids[1:]) == "all right: "
    assert asked.choices is not None
    assert encoder.text(asked.choices) == "YN"


def test_words_that_begin_alike_are_refused_by_their_field() -> None:
    encoder = Encoder(character_tokenizer(), node="judge")
    choice = Choice(words=("right", "rotten"), field="read.labels")
    asked = Sequence(id="r", text=Text(prompt="x", target=""), choice=choice)

    with pytest.raises(DataError, match=r"judge: read\.labels: 'right' and 'rotten' begin with"):
        encoder.sequence(asked)
