"""Texts that end a completion, found while it is written.

Almost no token can be the one that completes a stop text. A table tells which, so the rows of a
batch are checked with one look-up, and only a row that drew such a token is read as text. The
completion's own text counts, not the prompt's; the stop text may end in the middle of a token,
which is kept whole.

C different sets of stop texts, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

_BROKEN = "\ufffd"
"""What a tokenizer writes for a piece of a character."""


class StopTexts:
    """The stop texts of a call."""

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        sets: Sequence[tuple[str, ...]],
        vocabulary: int,
        device: torch.device | str = "cpu",
    ) -> None:
        self._tokenizer = tokenizer
        self._sets = [(), *dict.fromkeys(wanted for wanted in sets if wanted)]
        self.set_of = {wanted: number for number, wanted in enumerate(self._sets)}
        """Number of each set; 0 is the empty one."""
        table = torch.zeros(len(self._sets), vocabulary, dtype=torch.bool)
        texts = _token_texts(tokenizer, min(len(tokenizer), vocabulary)) if self.set_of else []
        for number, wanted in enumerate(self._sets):
            ends = {text[-1] for text in wanted}
            for token, text in enumerate(texts):
                if wanted and (_BROKEN in text or not ends.isdisjoint(text)):
                    table[number, token] = True
        self.may_end: Tensor = table.to(device)
        """Whether a token can complete a text of a set, (C, V)."""

    def first_end(self, number: int, token_ids: Sequence[int], start: int) -> int | None:
        """Count of tokens up to the one, at `start` or later, that completes a stop text; else
        None."""
        wanted = self._sets[number]
        window = max(len(text.encode()) for text in wanted) + 1
        for place in range(start, len(token_ids)):
            tail = token_ids[max(place + 1 - window, 0) : place + 1]
            text = self._tokenizer.decode(list(tail), clean_up_tokenization_spaces=False)
            if any(stop in text for stop in wanted):
                return place + 1
        return None


def _token_texts(tokenizer: PreTrainedTokenizerBase, count: int) -> list[str]:
    """What each token adds to a text; read behind a letter, because some tokenizers trim a text's
    start."""
    anchor = tokenizer.encode("a", add_special_tokens=False)
    before = len(tokenizer.decode(anchor, clean_up_tokenization_spaces=False))
    pairs = [[*anchor, token] for token in range(count)]
    return [
        text[before:] for text in tokenizer.batch_decode(pairs, clean_up_tokenization_spaces=False)
    ]
