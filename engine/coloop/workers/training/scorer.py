"""What the weights as they are say of texts: what an order is prepared with, and scores by
references, critics, scorers, snapshots and frozen policies."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

import torch
from torch import Tensor, nn

from coloop.algorithms.batch import Batch, collate, prompts_of
from coloop.algorithms.batch import Sequence as TokenSequence
from coloop.algorithms.recipes.protocol import ModelOutputs, Needs
from coloop.data.arrays import Numbers, numbers_of
from coloop.errors import StopRequested
from coloop.models import ONLY, WeightsToCome
from coloop.spec.heads import Reading
from coloop.workers.training.forward import (
    CPU_TOKENS_AT_ONCE,
    TOKENS_AT_ONCE,
    ForwardOptions,
    TokenModel,
    device_of,
    effective_temperature,
)
from coloop.workers.training.protocol import Hooks
from coloop.workers.training.ranks import ALONE, Ranks
from coloop.workers.training.shards import blend_parts, gathered, give, let_go, part_of, spread
from coloop.workers.training.shares import passes_of

NEEDS: Mapping[Reading, Needs] = {
    "log_probs": Needs(),
    "values": Needs(log_probs=False, values=True),
    "scores": Needs(log_probs=False, scores=True),
    "choices": Needs(log_probs=False, choices=True),
    "steps": Needs(log_probs=False, steps=True),
}


class ScoresTexts:
    """Who has a model that reads tokens, frozen or learning. Ranks that each have it share the
    sequences."""

    def __init__(self, tokens: TokenModel, ranks: Ranks) -> None:
        self._tokens = tokens
        self._ranks = ranks

    def score(
        self,
        sequences: Sequence[TokenSequence],
        reading: Reading = "log_probs",
        *,
        temperature: float = 1.0,
        hooks: Hooks | None = None,
        node: str = ONLY,
    ) -> list[Numbers]:
        """See `score_sequences`."""
        return score_sequences(
            self._tokens,
            sequences,
            reading,
            temperature=temperature,
            hooks=hooks,
            ranks=self._ranks,
            node=node,
        )

    def at_once(self) -> tuple[int, int] | None:
        """Most rows and most tokens of a pass when texts were scored last."""
        return self._tokens.at_once()

    def narrow(self, rows: int, tokens: int) -> None:
        """No more than this in a pass from here on."""
        self._tokens.narrow(rows, tokens)


class Scorer(ScoresTexts):
    """A frozen model as a scorer of token sequences; it follows weights that are replaced."""

    def __init__(
        self,
        model: nn.Module,
        *,
        loss_chunk: int | None = None,
        autocast: torch.dtype | None = None,
        ranks: Ranks = ALONE,
        device: torch.device | None = None,
        waits: bool = False,
    ) -> None:
        """
        Args:
            device: on which it will score; None: where the model is.
            waits: its weights are to come; see `TokenModel`.
        """
        device = device or device_of(model)
        on_cpu = device.type == "cpu"
        options = ForwardOptions(
            loss_chunk=loss_chunk,
            autocast=autocast,
            tokens_at_once=CPU_TOKENS_AT_ONCE if on_cpu else TOKENS_AT_ONCE,
        )
        super().__init__(TokenModel(model.eval(), options, device=device, waits=waits), ranks)


def score_sequences(
    tokens: TokenModel,
    sequences: Sequence[TokenSequence],
    reading: Reading = "log_probs",
    *,
    temperature: float = 1.0,
    micro_batch: int | None = None,
    hooks: Hooks | None = None,
    ranks: Ranks = ALONE,
    node: str = ONLY,
) -> list[Numbers]:
    """Log-prob or value of each token, aligned to `token_ids`, 0 where the loss mask is false; or
    the C numbers that a score head says of each text, or the log-probs of its C choices.

    Args:
        node: who reads, where nodes have score heads of their own.

    Raises `StopRequested` where a stop is asked between two micro-batches.
    """
    if not sequences:
        return []
    hooks = hooks or Hooks()
    done = 0

    def check_stop() -> None:
        if ranks.any(hooks.should_stop()):
            raise StopRequested("stopped while texts were scored")

    def advance(rows: int) -> None:
        nonlocal done
        done += rows
        hooks.progress(done, len(sequences))

    batch = collate([_bare(sequence) for sequence in sequences])
    lengths = batch.lengths()
    heat = effective_temperature(temperature)
    split = partial(tokens.split, rows=micro_batch)
    outputs = measure_outputs(
        tokens,
        batch,
        NEEDS[reading],
        passes_of(ranks, range(batch.size), lengths, split, prompts_of(batch)),
        temperature_of=lambda rows: heat,
        before_each=check_stop,
        after_each=advance,
        ranks=ranks,
        node=node,
    )
    by_text = outputs.scores if outputs.choices is None else outputs.choices
    if by_text is not None:
        return [numbers_of(row) for row in by_text.numpy()]
    by_token = next(
        one for one in (outputs.log_probs, outputs.values, outputs.steps) if one is not None
    )
    found = by_token.numpy()
    return [numbers_of(found[row, :length].copy()) for row, length in enumerate(lengths)]


def measure_outputs(
    tokens: TokenModel,
    batch: Batch,
    needs: Needs,
    passes: Sequence[list[int]],
    *,
    temperature_of: Callable[[Sequence[int]], float | Tensor],
    before_each: Callable[[], None],
    after_each: Callable[[int], None],
    ranks: Ranks,
    node: str = ONLY,
) -> ModelOutputs:
    """What the weights as they are say of all rows, without entropy, on every rank's CPU.

    Args:
        passes: rows of this rank's forward passes; [] for one that only others need.
        temperature_of: of rows, as `TokenModel.outputs` takes it.
        after_each: told how many rows a pass had.
        node: who reads, where nodes have score heads of their own.
    """
    shape = batch.token_ids.shape
    found = {
        "log_probs": torch.zeros(shape) if needs.log_probs else None,
        "values": torch.zeros(shape) if needs.values else None,
        "scores": torch.zeros(shape[0], tokens.classes(node)) if needs.scores else None,
        "choices": torch.zeros(_shape_of_choices(batch)) if needs.choices else None,
        "steps": torch.zeros(shape) if needs.steps else None,
    }
    asked = Needs(
        log_probs=needs.log_probs,
        values=needs.values,
        scores=needs.scores,
        choices=needs.choices,
        steps=needs.steps,
    )
    for rows in passes:
        before_each()
        part = batch.select(rows or [0]).to(tokens.device)
        with torch.no_grad():
            heat = temperature_of(rows or [0])
            outputs = tokens.outputs(part, asked, temperature=heat, node=node)
        if rows:
            for name, whole in found.items():
                if whole is not None:
                    said: Tensor = getattr(outputs, name).float().cpu()
                    whole[rows, : said.shape[1]] = said
            after_each(len(rows))
    every = {name: None if one is None else ranks.summed(one) for name, one in found.items()}
    return ModelOutputs(
        log_probs=every["log_probs"],
        values=every["values"],
        scores=every["scores"],
        choices=every["choices"],
        steps=every["steps"],
    )


def _shape_of_choices(batch: Batch) -> torch.Size:
    if batch.choices is None:
        raise ValueError("texts without choices were asked for the next choice")
    return batch.choices.shape


def _bare(sequence: TokenSequence) -> TokenSequence:
    return TokenSequence(
        id=sequence.id,
        token_ids=sequence.token_ids,
        loss_mask=sequence.loss_mask,
        choices=sequence.choices,
    )


# A frozen model that scores while its weights lie spread over ranks, gathered block by block.


class SpreadScorer(Scorer):
    """Computes log-probs and scores with the current weights. All ranks call alike."""

    def __init__(
        self,
        model: nn.Module,
        *,
        autocast: torch.dtype | None = None,
        ranks: Ranks,
        device: torch.device | None = None,
        to_come: WeightsToCome | None = None,
    ) -> None:
        """
        Args:
            model: whole and alike on every rank; it holds parts afterwards. It may be in the host's
                memory.
            device: of the parts; None: where the model is.
            to_come: the weights of a model that is spread before it has them; None: they are there.
        """
        device = device or device_of(model)
        waits = to_come is not None
        super().__init__(model, autocast=autocast, ranks=ranks, device=device, waits=waits)
        places = {} if to_come is None else to_come.places_in(model)
        mesh = ranks.mesh(device.type)
        self._groups = spread(
            self._tokens.net, mesh, compute=None, is_freed=True, is_root_freed=True
        )
        if to_come is not None:
            give(self._tokens, self._groups, to_come, places, device)

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """Each weight whole, by its Hugging Face name, a portion at a time in memory."""
        let_go(self._groups)
        named = self._tokens.model.named_parameters()
        yield from gathered((name, one.detach()) for name, one in named)

    def blend(self, given: Iterable[tuple[str, Tensor]], ema: float) -> set[str]:
        """See `ModelStates`."""
        let_go(self._groups)
        return blend_parts(dict(self._tokens.model.named_parameters()), given, ema)

    @torch.no_grad()
    def replace_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Whole weights, by their names, in place of those that are held."""
        let_go(self._groups)
        for name, parameter in self._tokens.model.named_parameters():
            if name in weights:
                parameter.copy_(part_of(weights[name], parameter))
