"""Texts as token ids: encoding happens once, where a text enters; what a policy drew is never
encoded again."""

from transformers import PreTrainedTokenizerFast

from coloop.batch import Sequence as TokenSequence
from coloop.models import decode, encode_completion, encode_prompt
from coloop.roles.messages import Example, Prompt


class Encoder:
    """One group's tokenizer."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        self._tokenizer = tokenizer

    def prompt(self, prompt: Prompt) -> list[int]:
        """Token ids of a text, or of a chat by the tokenizer's template."""
        return encode_prompt(self._tokenizer, prompt)

    def target(self, text: str) -> list[int]:
        """Token ids of a text to imitate, closed by the end-of-text token."""
        return encode_completion(self._tokenizer, text)

    def text(self, token_ids: list[int]) -> str:
        """The text of a completion, without special tokens."""
        return decode(self._tokenizer, token_ids)

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
