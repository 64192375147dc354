"""Log-probs by weights that do not train: references, snapshots, frozen policies."""

from collections.abc import Sequence

import torch
from torch import nn

from coloop.batch import Sequence as TokenSequence
from coloop.training.forward import ForwardOptions, TokenModel, score_sequences
from coloop.training.protocol import Hooks


class Scorer:
    """A frozen model as a scorer of token sequences; it follows weights that are replaced."""

    def __init__(
        self,
        model: nn.Module,
        *,
        loss_chunk: int | None = None,
        autocast: torch.dtype | None = None,
    ) -> None:
        options = ForwardOptions(loss_chunk=loss_chunk, autocast=autocast)
        self._tokens = TokenModel(model.eval(), options)

    def score(
        self,
        sequences: Sequence[TokenSequence],
        *,
        temperature: float = 1.0,
        hooks: Hooks | None = None,
    ) -> list[list[float]]:
        """Log-prob of each token, aligned to `token_ids`; 0 where the loss mask is false."""
        return score_sequences(self._tokens, sequences, temperature=temperature, hooks=hooks)
