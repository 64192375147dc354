"""Texts as token ids. What a policy drew is never encoded again, and token ids never reach weights
whose tokenizer means other texts by them."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
from transformers import PreTrainedTokenizerFast

from coloop.algorithms.batch import Choice, Pair, Prompt, Text, Unit
from coloop.algorithms.batch import Sequence as TokenSequence
from coloop.data.arrays import Ids, ids_of, mask_of
from coloop.errors import DataError, RequestRefused
from coloop.models.chats import Tools
from coloop.models.tokenizer import (
    decode,
    encode_chat,
    encode_completion,
    encode_prompt,
    encode_text,
    pieces,
    vocabulary_mark,
)


class Encoder:
    def __init__(
        self, tokenizer: PreTrainedTokenizerFast, *, node: str = "", mark: str | None = None
    ) -> None:
        """`mark`: the tokenizer's `vocabulary_mark` where it is known."""
        self._tokenizer = tokenizer
        self._node = node
        self.mark = mark or vocabulary_mark(tokenizer)

    @property
    def size(self) -> int:
        """Tokens of the vocabulary, added ones included."""
        return len(self._tokenizer)

    def of(self, node: str) -> "Encoder":
        return Encoder(self._tokenizer, node=node, mark=self.mark)

    def prompt(self, prompt: Prompt, tools: Tools = None) -> list[int]:
        try:
            return encode_prompt(self._tokenizer, prompt, tools)
        except RequestRefused as refused:
            raise RequestRefused(f"{self._node}: {refused}") from None

    def target(self, text: str) -> list[int]:
        """Token ids of a text to imitate, closed by the end-of-text token."""
        return encode_completion(self._tokenizer, text)

    def said(self, text: str) -> list[int]:
        """Token ids of a text that goes on where another one stands."""
        return encode_text(self._tokenizer, text)

    def text(self, token_ids: Ids | list[int]) -> str:
        return decode(self._tokenizer, token_ids)

    def pieces(self, token_ids: Ids | list[int]) -> list[str]:
        """The text of each token, marks included; the pieces together are the whole."""
        return pieces(self._tokenizer, token_ids)

    def tagged(self, token_ids: list[int], tags: Sequence[str]) -> list[slice]:
        """Tokens with the content of these tags; of one that is not closed, all that follows."""
        if not tags:
            return []

        @cache
        def characters_in(count: int) -> int:
            return len(self.text(token_ids[:count]))

        names = "|".join(map(re.escape, tags))
        text, counts = self.text(token_ids), range(1, len(token_ids) + 1)
        slices = []
        for match in re.finditer(rf"<({names})>(.*?)(?:</\1>|\Z)", text, re.DOTALL):
            start, stop = match.span(2)
            if start < stop:
                first = bisect_left(counts, start + 1, key=characters_in)
                slices.append(slice(first, bisect_left(counts, stop, key=characters_in) + 1))
        return slices

    def without_tagged(self, given: TokenSequence, tags: Sequence[str]) -> TokenSequence:
        """A sequence of which the content of these tags in its completion is not trained."""
        completion = given.token_ids[given.prompt_length :].tolist()
        mask = given.loss_mask.copy()
        for part in self.tagged(completion, tags):
            mask[given.prompt_length :][part] = False
        return replace(given, loss_mask=mask_of(mask))

    def step_ends(self, token_ids: Ids, separator: str) -> list[int]:
        """The last token of each step of a completion.

        A step is a part between separators that is not blank; it ends with the token that brings
        the separator, the last one with the completion.
        """

        @cache
        def separators_in(count: int) -> int:
            return self.text(token_ids[:count]).count(separator)

        parts = self.text(token_ids).split(separator)
        steps = [index for index, part in enumerate(parts) if part.strip()]
        lengths = range(len(token_ids))
        ends = [bisect_left(lengths, index + 1, key=separators_in) - 1 for index in steps[:-1]]
        return [*ends, len(token_ids) - 1] if steps else []

    def encoded(self, unit: Unit) -> Unit:
        """The same with token ids; raises `DataError` where it has those of another tokenizer."""
        if isinstance(unit, Pair):
            return unit.mapped(self.sequence)
        return self.sequence(unit)

    def sequence(self, given: TokenSequence) -> TokenSequence:
        """`encoded` of one text; all of a target is trained, of a chat the assistant's words."""
        if given.text is None:
            self.check_ids(given.id, given.writer, given.tokenizer)
            if given.under is not None:
                return self._under(given, given.under)
            return given if given.choice is None else self._asked(given, given.choice)
        text = given.text
        if not isinstance(text.target, str):
            return self._imitated(given, text)
        prompt = self.prompt(text.prompt, text.tools)
        if given.choice is not None:
            return self._asked(given.with_ids(prompt, ()), given.choice)
        return given.with_ids(prompt, self.target(text.target))

    def _under(self, given: TokenSequence, asked: Text) -> TokenSequence:
        """The same completion after another prompt; without numbers, which were of the first."""
        start = given.prompt_length
        text = TokenSequence(id=given.id, writer=given.writer, tokenizer=given.tokenizer)
        prompt = self.prompt(asked.prompt, asked.tools)
        return text.with_ids(prompt, given.token_ids[start:], given.loss_mask[start:])

    def _imitated(self, given: TokenSequence, text: Text) -> TokenSequence:
        """A conversation; its completion begins where the assistant first writes."""
        assert not isinstance(text.target, str)
        try:
            ids, mask = encode_chat(self._tokenizer, text.prompt, text.target, text.tools)
        except RequestRefused as refused:
            raise RequestRefused(f"{self._node}: row {given.id}: {refused}") from None
        start = mask.index(True)
        return given.with_ids(ids[:start], ids[start:], mask[start:])

    def _asked(self, given: TokenSequence, choice: Choice) -> TokenSequence:
        """The text up to the question, with the words that may answer it. Raises `DataError` where
        two of them begin with the same token."""
        start = given.prompt_length
        ids = given.token_ids[start:].tolist()
        kept, lead = len(ids), ""
        if choice.at is not None:
            known, at = self.text(ids), choice.at
            kept = bisect_right(range(len(ids) + 1), at, key=lambda n: len(self.text(ids[:n]))) - 1
            lead = known[len(self.text(ids[:kept])) : at]
        before = self.said(lead) if lead else []
        words = [self.said(lead + word) for word in choice.words]
        if not all(word[: len(before)] == before for word in words):
            before = []  # what comes before a word is of one token with its beginning
        firsts = [word[len(before)] for word in words]
        self._check_apart(choice, firsts)
        end = start + kept
        return replace(
            given,
            token_ids=ids_of([*given.token_ids[:end].tolist(), *before]),
            loss_mask=np.zeros(end + len(before), np.bool_),
            choice=None,
            choices=ids_of(firsts),
        )

    def _check_apart(self, choice: Choice, firsts: list[int]) -> None:
        known: dict[int, str] = {}
        for word, first in zip(choice.words, firsts, strict=True):
            if first in known:
                raise DataError(
                    f"{self._node}: {choice.field}: {known[first]!r} and {word!r} begin with the "
                    f"same token, {self.text([first])!r}, so they cannot be distinguished; use "
                    "words that begin differently",
                    self._node,
                    choice.field,
                )
            known[first] = word

    def check_ids(self, row: str, writer: str | None, tokenizer: str) -> None:
        """Raises `DataError` where token ids of a row are those of another tokenizer."""
        if tokenizer in ("", self.mark):
            return
        raise DataError(
            f"row {row} was generated by {writer} with a different tokenizer than that of "
            f"{self._node}, so its token ids mean other texts; pass the text through a template "
            f'(`target: "{{{{ {writer}.completion }}}}"`), or use the same tokenizer for both '
            "models",
            self._node,
        )
