"""Texts as token ids: encoding happens once, where a text enters; what a policy drew is never
encoded again.

Invariant: token ids never reach weights whose tokenizer means other texts by them.
"""

from bisect import bisect_left
from functools import cache

from transformers import PreTrainedTokenizerFast

from coloop.batch import Sequence as TokenSequence
from coloop.errors import DataError
from coloop.hosts.messages import Example, Prompt
from coloop.models import decode, encode_completion, encode_prompt, vocabulary_mark
from coloop.tables import Tokens


class Encoder:
    """One group's tokenizer, at work for one of its nodes."""

    def __init__(
        self, tokenizer: PreTrainedTokenizerFast, *, node: str = "", mark: str | None = None
    ) -> None:
        """
        Args:
            mark: what `vocabulary_mark` says of the tokenizer, where it is known already.
        """
        self._tokenizer = tokenizer
        self._node = node
        self.mark = mark or vocabulary_mark(tokenizer)

    def prompt(self, prompt: Prompt) -> list[int]:
        """Token ids of a text, or of a chat by the tokenizer's template."""
        return encode_prompt(self._tokenizer, prompt)

    def target(self, text: str) -> list[int]:
        """Token ids of a text to imitate, closed by the end-of-text token."""
        return encode_completion(self._tokenizer, text)

    def text(self, token_ids: list[int]) -> str:
        """The text of a completion, without special tokens."""
        return decode(self._tokenizer, token_ids)

    def step_ends(self, token_ids: list[int], separator: str) -> list[int]:
        """Index of the token in which each step of a completion ends.

        A step is a part between separators that is not blank. It ends with the token that brings
        the separator after it; the last one ends with the completion.
        """

        @cache
        def separators_in(count: int) -> int:
            return self.text(token_ids[:count]).count(separator)

        parts = self.text(token_ids).split(separator)
        steps = [place for place, part in enumerate(parts) if part.strip()]
        lengths = range(len(token_ids))
        ends = [bisect_left(lengths, place + 1, key=separators_in) - 1 for place in steps[:-1]]
        return [*ends, len(token_ids) - 1] if steps else []

    def prompt_length(self, example: Example) -> int:
        """Tokens before the completion."""
        if example.tokens is not None:
            return len(example.tokens.prompt_ids)
        assert example.prompt is not None
        return len(self.prompt(example.prompt))

    def sequence(
        self,
        example: Example,
        *,
        weight: float = 1.0,
        count: float = 1.0,
        group: str = "",
        advantages: float | list[float] | None = None,
        reference: list[float] | None = None,
    ) -> TokenSequence:
        """Prompt and completion as one sequence; per-token numbers of the completion are shifted
        along."""
        tokens = example.tokens
        if tokens is not None:
            self._check_ids(example.id, tokens)
            prompt, completion, mask = tokens.prompt_ids, tokens.token_ids, tokens.loss_mask
        else:
            assert example.prompt is not None
            assert example.target is not None
            prompt, completion = self.prompt(example.prompt), self.target(example.target)
            mask = [True] * len(completion)
        before = [0.0] * len(prompt)
        return TokenSequence(
            id=example.id,
            token_ids=[*prompt, *completion],
            loss_mask=[*([False] * len(prompt)), *mask],
            log_probs_rollout=None if tokens is None else [*before, *tokens.log_probs],
            log_probs_reference=None if reference is None else [*before, *reference],
            advantages=[*before, *advantages] if isinstance(advantages, list) else advantages,
            weight=weight,
            count=count,
            group=group,
        )

    def _check_ids(self, row: str, tokens: Tokens) -> None:
        if tokens.tokenizer in ("", self.mark):
            return
        raise DataError(
            f"row {row} was written by {tokens.writer} with another tokenizer than {self._node} "
            f"has, so its token ids mean other texts here; let a template between the two write "
            f'the text (`target: "{{{{ {tokens.writer}.completion }}}}"`), or give both models '
            "the same tokenizer",
            self._node,
        )
