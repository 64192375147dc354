"""What weights as they are say of texts, learning or frozen."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from coloop.algorithms.batch import Batch, collate
from coloop.algorithms.batch import Sequence as TokenSequence
from coloop.algorithms.recipes.protocol import ModelOutputs, Needs
from coloop.data.arrays import Numbers, numbers_of
from coloop.data.distributions import Teacher, Words
from coloop.errors import StopRequested
from coloop.models.heads import ONLY
from coloop.models.waiting import WeightsToCome
from coloop.spec.heads import Reading
from coloop.workers.messages import AtOnce
from coloop.workers.training.adapters import Spread, share_spread
from coloop.workers.training.forward import (
    CPU_TOKENS_AT_ONCE,
    TOKENS_AT_ONCE,
    ForwardOptions,
    TokenModel,
    device_of,
    effective_temperature,
)
from coloop.workers.training.ranks import ALONE, Hooks, Ranks, passes_of
from coloop.workers.training.shards import blend, gathered, give, let_go, replace_parts, spread

NEEDS: Mapping[Reading, Needs] = {
    "log_probs": Needs(),
    "values": Needs(log_probs=False, values=True),
    "scores": Needs(log_probs=False, scores=True),
    "choices": Needs(log_probs=False, choices=True),
    "steps": Needs(log_probs=False, steps=True),
}


class ScoresTexts:
    """A model that reads tokens, frozen or learning; ranks share the sequences."""

    def __init__(self, tokens: TokenModel, ranks: Ranks = ALONE) -> None:
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
        """Log-prob or value of each token, 0 outside the loss mask; or the C numbers of a score
        head, or the log-probs of C choices, of each text.

        `node`: who reads, where nodes have score heads of their own. Raises `StopRequested` between
        two micro-batches.
        """
        if not sequences:
            return []
        hooks = hooks or Hooks()
        done = 0

        def check_stop() -> None:
            if self._ranks.any(hooks.should_stop()):
                raise StopRequested("stopped while texts were scored")

        def advance(rows: int) -> None:
            nonlocal done
            done += rows
            hooks.progress(done, len(sequences))

        batch = collate([_bare(sequence) for sequence in sequences])
        lengths = batch.lengths()
        heat = effective_temperature(temperature)
        outputs = self._measure(
            batch,
            NEEDS[reading],
            passes_of(self._ranks, range(batch.size), lengths, self._tokens.split, batch),
            temperature_of=lambda rows: heat,
            before_each=check_stop,
            after_each=advance,
            node=node,
        )
        by_text = outputs.scores if outputs.choices is None else outputs.choices
        if by_text is not None:
            return [numbers_of(row) for row in by_text.numpy()]
        by_token = (outputs.log_probs, outputs.values, outputs.steps)
        numbers = next(read for read in by_token if read is not None).numpy()
        return [numbers_of(numbers[row, :length].copy()) for row, length in enumerate(lengths)]

    def distributions(
        self,
        sequences: Sequence[TokenSequence],
        words: Words,
        *,
        temperature: float = 1.0,
        hooks: Hooks | None = None,
    ) -> list[Teacher]:
        """What the model says of the trained tokens of each text, and of other words there.

        Raises `StopRequested` between two micro-batches.
        """
        if not sequences:
            return []
        hooks = hooks or Hooks()
        batch = collate([_bare(sequence) for sequence in sequences])
        lengths, heat = batch.lengths(), effective_temperature(temperature)
        said: dict[int, Teacher] = {}
        for rows in passes_of(self._ranks, range(batch.size), lengths, self._tokens.split, batch):
            if self._ranks.any(hooks.should_stop()):
                raise StopRequested("stopped while texts were scored")
            part = batch.select(rows or [0]).to(self._tokens.device)
            with torch.no_grad():
                texts = self._tokens.distributions(part, words, temperature=heat)
            said.update(zip(rows, texts, strict=False))
            hooks.progress(len(said), len(sequences))
        known = {row: text for part in self._ranks.gathered(said) for row, text in part.items()}
        return [known[row] for row in range(batch.size)]

    def _measure(
        self,
        batch: Batch,
        needs: Needs,
        passes: Sequence[list[int]],
        *,
        temperature_of: Callable[[Sequence[int]], float | Tensor],
        before_each: Callable[[], None],
        after_each: Callable[[int], None],
        node: str = ONLY,
    ) -> ModelOutputs:
        """What today's weights say of all rows, without entropy, on every rank's CPU.

        Args:
            passes: rows of this rank's forward passes; [] for one that only others need.
            temperature_of: rows.
            after_each: told how many rows a pass had.
        """
        shape = batch.token_ids.shape
        measured = {
            "log_probs": torch.zeros(shape) if needs.log_probs else None,
            "values": torch.zeros(shape) if needs.values else None,
            "scores": torch.zeros(shape[0], self._tokens.classes(node)) if needs.scores else None,
            "choices": torch.zeros(_shape_of_choices(batch)) if needs.choices else None,
            "steps": torch.zeros(shape) if needs.steps else None,
        }
        asked = replace(needs, entropy=False, entropy_gradient=False)
        for rows in passes:
            before_each()
            part = batch.select(rows or [0]).to(self._tokens.device)
            with torch.no_grad():
                heat = temperature_of(rows or [0])
                outputs = self._tokens.outputs(part, asked, temperature=heat, node=node)
            if rows:
                for name, whole in measured.items():
                    if whole is not None:
                        read: Tensor = getattr(outputs, name).float().cpu()
                        whole[rows, : read.shape[1]] = read
                after_each(len(rows))
        summed: dict[str, Any] = {
            name: None if whole is None else self._ranks.summed(whole)
            for name, whole in measured.items()
        }
        return ModelOutputs(**summed)

    def at_once(self) -> AtOnce | None:
        """What the last micro-batches held; None before the first."""
        return self._tokens.at_once()

    def narrow(self, at_once: AtOnce) -> None:
        """Bound micro-batches from here on, alike on every rank; results do not change by it."""
        self._tokens.narrow(at_once)


class Scorer(ScoresTexts):
    def __init__(
        self,
        model: nn.Module,
        *,
        autocast: torch.dtype | None = None,
        ranks: Ranks = ALONE,
        device: torch.device | None = None,
        waits: bool = False,
    ) -> None:
        """`device`: on which it will score; None: the model's. `waits`: see `TokenModel`."""
        device = device or device_of(model)
        on_cpu = device.type == "cpu"
        options = ForwardOptions(
            autocast=autocast,
            tokens_at_once=CPU_TOKENS_AT_ONCE if on_cpu else TOKENS_AT_ONCE,
        )
        super().__init__(TokenModel(model.eval(), options, device=device, waits=waits), ranks)


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


class SpreadScorer(Scorer):
    """A frozen model spread over ranks, gathered block by block; all ranks call alike."""

    def __init__(
        self,
        model: nn.Module,
        *,
        autocast: torch.dtype | None = None,
        ranks: Ranks,
        device: torch.device | None = None,
        to_come: WeightsToCome | None = None,
        shared: Spread | None = None,
    ) -> None:
        """`model`: whole and alike on every rank, maybe in host memory; holds parts afterwards.
        `device`: of the parts; None: the model's. `to_come`: its weights; None: they are there.
        `shared`: the parts of weights that others stand on as well."""
        device = device or device_of(model)
        before = {} if shared is None else dict(model.named_parameters(remove_duplicate=False))
        waits = to_come is not None
        super().__init__(model, autocast=autocast, ranks=ranks, device=device, waits=waits)
        places = {} if to_come is None else to_come.places_in(model)
        mesh = ranks.mesh(device.type)
        self.groups = spread(
            self._tokens.net, mesh, compute=None, is_freed=True, is_root_freed=True
        )
        if shared is not None:
            share_spread(model, before, shared)
        if to_come is not None:
            give(self._tokens, self.groups, to_come, places, device)

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """Each weight whole, by its Hugging Face name, a portion at a time in memory."""
        let_go(self.groups)
        named = self._tokens.model.named_parameters()
        yield from gathered((name, weight.detach()) for name, weight in named)

    def blend(self, given: Iterable[tuple[str, Tensor]], ema: float) -> set[str]:
        let_go(self.groups)
        return blend(dict(self._tokens.model.named_parameters()), given, ema)

    def replace_weights(self, weights: Mapping[str, Tensor]) -> None:
        let_go(self.groups)
        replace_parts(dict(self._tokens.model.named_parameters()), weights)
