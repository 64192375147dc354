"""What ends a completion: tokens, and texts that are found while it is written.

A table tells which tokens could complete a stop text, so only rows that drew one are read as text.
The completion's own text counts; a stop text may end inside a token, which is kept whole.

C different sets of stop texts, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from coloop.models.build import vocabulary_of

_BROKEN = "\ufffd"  # what a tokenizer writes for a piece of a character


class StopTexts:
    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        vocabulary: int,
        device: torch.device | str = "cpu",
    ) -> None:
        self._tokenizer = tokenizer
        self._sets: list[tuple[str, ...]] = [()]
        self._number_of: dict[tuple[str, ...], int] = {(): 0}
        self._texts: list[str] | None = None
        self.may_end: Tensor = torch.zeros(1, vocabulary, dtype=torch.bool, device=device)
        """Whether a token can complete a text of a set, (C, V)."""

    def number_of(self, wanted: tuple[str, ...]) -> int:
        if wanted not in self._number_of:
            self._number_of[wanted] = len(self._sets)
            self._sets.append(wanted)
            row = torch.tensor(self._completing(wanted), device=self.may_end.device)
            self.may_end = torch.cat([self.may_end, row[None]])
        return self._number_of[wanted]

    def _completing(self, wanted: tuple[str, ...]) -> list[bool]:
        vocabulary = self.may_end.shape[1]
        if self._texts is None:
            self._texts = _token_texts(self._tokenizer, min(len(self._tokenizer), vocabulary))
        ends = {text[-1] for text in wanted}
        may_complete = [_BROKEN in text or not ends.isdisjoint(text) for text in self._texts]
        return may_complete + [False] * (vocabulary - len(may_complete))

    def first_end(self, number: int, token_ids: Sequence[int], start: int) -> int | None:
        """Tokens up to the one, from `start` on, that completes a stop text; else None."""
        wanted = self._sets[number]
        window = max(len(text.encode()) for text in wanted) + 1
        for index in range(start, len(token_ids)):
            tail = token_ids[max(index + 1 - window, 0) : index + 1]
            text = self._tokenizer.decode(list(tail), clean_up_tokenization_spaces=False)
            if any(stop in text for stop in wanted):
                return index + 1
        return None


def end_tokens(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> Tensor:
    """Tokens that end a text, (V,), by the tokenizer and the model's generation config."""
    configured = model.generation_config.eos_token_id if model.generation_config else None
    tokens = [configured] if isinstance(configured, int) else list(configured or ())
    if tokenizer.eos_token_id is not None:
        tokens.append(tokenizer.eos_token_id)
    vocabulary = vocabulary_of(model)
    is_end = torch.zeros(vocabulary, dtype=torch.bool)
    is_end[[token for token in tokens if token < vocabulary]] = True
    return is_end


def _token_texts(tokenizer: PreTrainedTokenizerBase, count: int) -> list[str]:
    """What each token adds to a text, read behind a letter: some tokenizers trim a text's start."""
    anchor = tokenizer.encode("a", add_special_tokens=False)
    before = len(tokenizer.decode(anchor, clean_up_tokenization_spaces=False))
    pairs = [[*anchor, token] for token in range(count)]
    return [
        text[before:] for text in tokenizer.batch_decode(pairs, clean_up_tokenization_spaces=False)
    ]
