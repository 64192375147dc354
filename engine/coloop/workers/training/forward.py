"""What a model says of texts: log-probs of given tokens, entropies, values and scores, with logits
only where they are needed.

Legend: ``B`` sequences, ``T`` token positions, ``N`` trained tokens, ``H`` width, ``V`` vocabulary,
``C`` classes.

    token_ids (B, T) -> decoder -> hidden (B, T-1, H) -> the N states that predict trained tokens
        -> head of words, in parts (N, V) -> log-probs (N,) -> back to (B, T)
        -> score head (N, 1) -> values (N,) -> back to (B, T)
    hidden -> the N states of trained tokens -> score head -> steps (N,) -> back to (B, T)
                    -> the B states of the last tokens -> score head -> scores (B, C)

Padding stands on the right, so no attention mask is needed. Where blocks can, texts are one row of
slabs in place of (B, T-1). Logits are float32, divided by the temperature as the sampler does, and
above a chunk computed in parts, and again in the backward pass (`fused`).
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar, cast

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from torch.utils.checkpoint import checkpoint

from coloop.algorithms.batch import Batch, split_units
from coloop.algorithms.batch.passes import pack, tokens_of
from coloop.algorithms.masks import wide
from coloop.algorithms.recipes.protocol import ModelOutputs, Needs
from coloop.data.arrays import numbers_of
from coloop.data.distributions import Distribution, Teacher, Words
from coloop.errors import BackendMissing
from coloop.models.build import vocabulary_of
from coloop.models.heads import ONLY, has_words, score_head, score_heads
from coloop.spec.table_sizes import loss_chunk
from coloop.spec.training import Training
from coloop.workers.cpu.lean import learn_lean
from coloop.workers.cpu.lean_attention import attend_by_products
from coloop.workers.cpu.slabs import shared
from coloop.workers.messages import AtOnce
from coloop.workers.training import packing
from coloop.workers.training.divergence import (
    Asked,
    Compared,
    WordLogProbs,
    compare_logits,
    compare_states,
    tell_logits,
    tell_states,
)
from coloop.workers.training.fused import (
    PLAIN,
    EntropyMode,
    Finish,
    OwnLogits,
    finish_of,
    log_probs_of,
    log_probs_of_states,
    log_probs_together,
    own_logits,
)

TOKENS_AT_ONCE = 1 << 14
"""Most tokens of a micro-batch where none is set: more in one pass make nothing faster."""
CPU_TOKENS_AT_ONCE = 1 << 12
"""On a CPU: what four times as many leave behind lies further from the core."""

HALVES = (torch.bfloat16, torch.float16)
NEAR, HALF_NEAR = 1e-4, 2.0**-3
"""Logits this near, as a share of their size, differ by rounding alone."""

Packing = Literal["none", "rows", "varlen"]
Result = TypeVar("Result")
Said = tuple[Tensor | None, ...]
"""Log-probs (N,), entropies (N,), values (N,), scores (B, C), and of a comparison with teachers the
divergence, their mass and the own (N,), of those that were asked for."""

WORDS = Needs()  # log-probs alone
NOTHING: tuple[None, ...] = (None,) * 7


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardOptions:
    loss_chunk: int | None = None
    """Trained tokens whose logits are held at once; None: as `coloop.spec.table_sizes` says."""
    autocast: torch.dtype | None = None  # type of the matrix products; None: that of the weights
    tokens_at_once: int = TOKENS_AT_ONCE
    """Most tokens of a micro-batch where its rows are not said; padded ones count unless packed."""
    packing: Packing = "none"
    """`none`: one padded sequence a row; `rows`: several, by a mask; `varlen`: all in one."""
    packed_row_tokens: int | None = None  # `rows`: their length; None: that of the longest sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """A model taken apart: each head says its numbers of the decoder's states."""

    decoder: Callable[..., Any]
    words: nn.Linear | None
    scores: Mapping[str, nn.Linear]  # by the node that reads it; the only one under `ONLY`
    finish: Finish = PLAIN  # what is done to the logits of the head of words

    def scored(self, node: str | None) -> list[nn.Linear]:
        """The score head that a node reads; all of them where none is named."""
        if node is None or ONLY in self.scores:
            return list(self.scores.values())
        return [self.scores[node]]


class Heads(nn.Module):
    """From token ids to what heads say, in one pass, around which sharding gathers weights."""

    def __init__(self, model: nn.Module) -> None:
        """`model`: its weights may still be to come; `find_parts` follows once they are there."""
        super().__init__()
        self.model = model
        self._parts: Parts | None = None
        self._work: Callable[[], Any] | None = None

    def find_parts(self, *, is_known: bool = False) -> None:
        """Take the model apart where its weights allow it, or its family is known to."""
        self._parts = _found_parts(self.model)
        if not is_known:
            self._parts = self.inside(lambda: _proven(self.model, self._parts))

    def inside(self, work: Callable[[], Result]) -> Result:
        """What `work` gives, run as a pass of this module, for what gathers sharded weights."""
        self._work = work
        nothing = torch.empty(0)
        try:
            done: Any = self({}, nothing, None, 1.0, "none", 1)
        finally:
            self._work = None
        return done  # type: ignore[no-any-return]

    @property
    def is_apart(self) -> bool:
        return self._parts is not None

    @property
    def weights(self) -> list[Tensor]:
        """Weights that are used beside the module that owns them."""
        return [weight for head in self.heads for weight in head.parameters()]

    @property
    def heads(self) -> list[nn.Linear]:
        if self._parts is None:
            return []
        heads = (self._parts.words, *self._parts.scores.values())
        return [head for head in heads if head is not None]

    def forward(
        self,
        inputs: dict[str, Any],
        places: Tensor,
        targets: Tensor | None,
        heat: float | Tensor,
        entropy: EntropyMode,
        chunk: int,
        has_values: bool = False,
        ends: Tensor | None = None,
        node: str | None = None,
        asked: Asked | Words | None = None,
    ) -> Said:
        """Args:
        places: (N,) flat position of the state that predicts each trained token.
        targets: (N,) these tokens; None: no log-probs.
        heat: temperature of all, or (N, 1) of each.
        chunk: most targets whose logits are held at once.
        ends: (B,) flat position of each text's last token; None: no scores.
        node: whose score head is read; None: every one, side by side.
        asked: teachers to compare with, or words to tell of.
        """
        if self._work is not None:
            return self._work()  # type: ignore[no-any-return]
        parts = self._parts
        if parts is None:
            assert targets is not None
            logits = self.model(**inputs, use_cache=False).logits
            chosen = logits.flatten(0, 1).index_select(0, places)
            if isinstance(asked, Words):
                return _in_place(tell_logits(chosen, targets, heat, asked, chunk))
            if asked is not None:
                return _in_place(compare_logits(chosen, targets, heat, asked, chunk))
            return (*_at_chunks(chosen, targets, heat, entropy, chunk), *NOTHING[2:])
        hidden = parts.decoder(**inputs, use_cache=False).last_hidden_state.flatten(0, 1)
        states = hidden.index_select(0, places)
        log_probs: Tensor | None = None
        spread: Tensor | None = None
        if asked is not None:
            assert parts.words is not None
            assert targets is not None
            head, finish = parts.words, parts.finish
            if isinstance(asked, Words):
                return _in_place(tell_states(head, states, targets, heat, asked, chunk, finish))
            return _in_place(compare_states(head, states, targets, heat, asked, chunk, finish))
        if targets is not None:
            assert parts.words is not None
            wanted = targets, heat, entropy
            if states.shape[0] > chunk:
                log_probs, spread = log_probs_of_states(
                    parts.words, states, *wanted, chunk, parts.finish
                )
            else:
                log_probs, spread = _log_probs(_linear(parts.words, states, parts.finish), *wanted)
        values = _scored(parts, states, node).squeeze(1) if has_values else None
        scores = None if ends is None else _scored(parts, hidden.index_select(0, ends), node)
        return log_probs, spread, values, scores, *NOTHING[4:]


class TokenModel:
    """A model as a function from batches to what recipes need."""

    def __init__(
        self,
        model: nn.Module,
        options: ForwardOptions | None = None,
        *,
        device: torch.device | None = None,
        waits: bool = False,
    ) -> None:
        """`device`: on which it will compute; None: where the weights are. `waits`: weights are to
        come; `settle` follows."""
        meant = device or device_of(model)
        self.model, self._meant = model, device
        self.options = options or ForwardOptions()
        self._last: AtOnce | None = None
        self._counts_rows: bool | None = None  # in that micro-batch; None before the first
        self._most_rows = self._most_tokens = sys.maxsize
        attend_by_products(model, self.options.autocast, meant)
        self._lean = learn_lean(model) if meant.type == "cpu" else []
        self.net = Heads(model)
        self.call: Callable[..., Said] = self.net
        """What runs `net`; a backend may put its own engine in between."""
        if not waits:
            self.settle()

    def settle(self) -> None:
        """Find out by a few tokens what the model is and whether it reads packed rows; collective.
        Raises `BackendMissing`."""
        with torch.no_grad(), self._precision():
            if not self.net.is_apart:
                self.net.find_parts()
            if self.options.packing != "none":
                self.net.inside(self._check_packs)

    @property
    def device(self) -> torch.device:
        return device_of(self.model)

    @property
    def lean_blocks(self) -> list[nn.Module]:
        """Blocks that read the weights of their layers without a call of these."""
        return [lean.block for lean in self._lean]

    def classes(self, node: str) -> int:
        head = score_head(self.model, node)
        return 0 if head is None else head.out_features

    def split(
        self,
        units: Sequence[int],
        lengths: Sequence[int],
        batch: Batch | None = None,
        *,
        rows: int | None = None,
    ) -> list[list[int]]:
        """These units in micro-batches of `rows`, else of as many as fit. `batch`: what its rows
        begin with is read once in a micro-batch where that can be."""
        if not units:
            return []
        is_padded, tokens = self.options.packing == "none", None
        longest = max(lengths[unit] for unit in units)
        if batch is not None and not (batch.begin_alike(units) and self._reads_shared(longest)):
            batch = None
        self._counts_rows = rows is not None
        if rows is not None:
            rows = min(rows, self._most_rows)
        else:
            tokens = min(self.options.tokens_at_once, self._most_tokens)
        parts = split_units(units, lengths, batch, rows=rows, tokens=tokens, is_padded=is_padded)
        sizes = tokens_of(parts, lengths, batch, is_padded=is_padded)
        self._last = AtOnce(rows=max(map(len, parts)), tokens=max(sizes))
        return parts

    def _reads_shared(self, reach: int) -> bool:
        """Whether its blocks read a row of slabs of texts of up to so many tokens."""
        is_meant = self.options.packing == "none" and bool(self._lean) and self.net.is_apart
        return is_meant and all(block.takes(reach) for block in self._lean)

    def at_once(self) -> AtOnce | None:
        """Most rows and most tokens of a micro-batch when rows were split last."""
        return self._last

    def narrow(self, at_once: AtOnce) -> None:
        """Bound micro-batches from here on, by what was counted (rows or tokens), else both."""
        if self._counts_rows is not False:
            self._most_rows = max(at_once.rows, 1)
        if self._counts_rows is not True:
            self._most_tokens = max(at_once.tokens, 1)

    def outputs(
        self,
        batch: Batch,
        needs: Needs = WORDS,
        *,
        temperature: float | Tensor = 1.0,
        node: str = ONLY,
    ) -> ModelOutputs:
        """What is needed of the batch; gradients flow where they are enabled. `temperature`: of all
        sequences, or (B,). `node`: who reads, where nodes have score heads of their own; raises
        `ValueError` where it has none."""
        self._check_heads(needs, node)
        if needs.choices:
            return ModelOutputs(choices=self._choices(batch, temperature))
        shape = batch.token_ids.shape
        places = batch.loss_mask.flatten().nonzero().flatten()  # (N,) in B x T
        targets = batch.token_ids.flatten()[places] if needs.log_probs else None
        heat = _heat_of_tokens(temperature, places // shape[1])
        is_whole = needs.scores or needs.steps
        inputs, before, ends = self._inputs(
            batch, places, is_whole=is_whole, back=0 if needs.steps else 1
        )
        asked = None if needs.comparison is None else Asked.of(batch, needs.comparison)
        with self._precision():
            log_probs, spread, values, scores, *compared = self.call(
                inputs,
                before,
                targets,
                heat,
                _entropy_mode(needs),
                self._chunk_size(),
                needs.values or needs.steps,
                ends if needs.scores else None,
                node,
                asked,
            )
        apart, mass, own_mass = (
            None if numbers is None else _put(numbers, places, shape) for numbers in compared
        )
        return ModelOutputs(
            divergence=apart,
            mass=mass,
            own_mass=own_mass,
            log_probs=None if log_probs is None else _put(log_probs, places, shape),
            entropy=None if spread is None else _put(spread, places, shape),
            values=_put(values, places, shape) if values is not None and needs.values else None,
            steps=_put(values, places, shape) if values is not None and needs.steps else None,
            scores=scores,
        )

    def distributions(
        self, batch: Batch, words: Words, *, temperature: float | Tensor = 1.0
    ) -> list[Teacher]:
        """What the model says of the trained tokens of each text, and of other words there."""
        self._check_heads(WORDS, ONLY)
        width = batch.token_ids.shape[1]
        places = batch.loss_mask.flatten().nonzero().flatten()  # (N,) in B x T
        targets = batch.token_ids.flatten()[places]
        heat = _heat_of_tokens(temperature, places // width)
        inputs, before, _ = self._inputs(batch, places, is_whole=False)
        chunk = self._chunk_size()
        with self._precision():
            told = self.call(inputs, before, targets, heat, "none", chunk, False, None, None, words)
        chosen, asked, ids = told[0], told[4], told[5]
        assert chosen is not None
        assert asked is not None
        sizes = batch.loss_mask.sum(1).tolist()
        known: list[Any] = [None] * len(sizes)
        if ids is not None:
            known = [own.numpy() for own in torch.split(ids, sizes)]
        return [
            Teacher(
                node="",
                weight=1.0,
                log_probs=numbers_of(log_probs.numpy()),
                words=Distribution(log_probs=own.numpy(), ids=own_ids),
            )
            for log_probs, own, own_ids in zip(
                torch.split(chosen.float().cpu(), sizes),
                torch.split(asked, sizes),
                known,
                strict=True,
            )
        ]

    def _choices(self, batch: Batch, temperature: float | Tensor) -> Tensor:
        """(B, C) log-probs of the words of which it is asked whether they come next."""
        choices = batch.choices
        if choices is None:
            raise ValueError("a text without choices was asked for the next choice")
        rows = torch.arange(batch.size, device=choices.device).repeat_interleave(choices.shape[1])
        inputs, _, ends = self._inputs(batch, rows[:0], is_whole=True)
        assert ends is not None
        heat, chunk = _heat_of_tokens(temperature, rows), self._chunk_size()
        with self._precision():
            log_probs = self.call(inputs, ends[rows], choices.flatten(), heat, "none", chunk)[0]
        assert log_probs is not None
        return log_probs.view(choices.shape)

    def touched(self) -> Tensor:
        """A number in which every weight takes part, from a text of two tokens."""
        ids = torch.zeros(1, 2, dtype=torch.long, device=self.device)
        places = torch.zeros(1, dtype=torch.long, device=self.device)
        targets = places if has_words(self.model) else None
        scores = bool(score_heads(self.model))
        read = self.call({"input_ids": ids}, places, targets, 1.0, "none", 1, scores)
        return torch.stack([numbers.sum() for numbers in read if numbers is not None]).sum()

    def _check_heads(self, needs: Needs, node: str) -> None:
        name = type(self.model).__name__
        if (needs.values or needs.scores or needs.steps) and score_head(self.model, node) is None:
            raise ValueError(f"{name} has no score head to read values or scores from")
        if needs.steps and (needs.values or needs.log_probs):
            raise ValueError("scores of steps are read at other places than values and log-probs")
        if (needs.log_probs or needs.choices) and not has_words(self.model):
            raise ValueError(f"{name} has no language-model head, so it has no log-probs")

    def _precision(self) -> AbstractContextManager[Any]:
        if self.options.autocast is None:
            return nullcontext()
        return torch.autocast(self.device.type, dtype=self.options.autocast)

    def _inputs(
        self, batch: Batch, places: Tensor, *, is_whole: bool, back: int = 1
    ) -> tuple[dict[str, Any], Tensor, Tensor | None]:
        """Inputs, and where in them each trained token's predecessor and each text's end stand.
        `is_whole`: last tokens are read as well. `back`: tokens before each trained one."""
        width = batch.token_ids.shape[1]
        last = batch.attention_mask.sum(1) - 1
        row = shared(batch, is_whole=is_whole) if self._reads_shared(width) else None
        if row is not None:
            inputs, where = row
            return inputs, where.flatten()[places - back], where.gather(1, last[:, None]).squeeze(1)
        if self.options.packing == "rows":
            return self._packed_rows(batch, places, back)
        if self.options.packing == "varlen":
            lengths = batch.lengths()
            starts = torch.tensor([0, *lengths], device=places.device).cumsum(0)
            inputs = packing.inputs_of(batch.token_ids[batch.attention_mask], lengths)
            return inputs, starts[places // width] + places % width - back, starts[1:] - 1
        # The last position predicts nothing that is known, so it is computed for scores alone.
        read = width if is_whole else width - 1
        before = places // width * read + places % width - back
        rows = torch.arange(batch.size, device=places.device)
        ends = rows * read + last if is_whole else None
        return {"input_ids": batch.token_ids[:, :read]}, before, ends

    def _packed_rows(
        self, batch: Batch, places: Tensor, back: int
    ) -> tuple[dict[str, Any], Tensor, Tensor | None]:
        lengths = batch.lengths()
        inputs, where = pack(batch, row_tokens=self.options.packed_row_tokens or max(lengths))
        device = batch.token_ids.device
        where = where.to(device)  # (B, T)
        last = torch.tensor(lengths, device=device)[:, None] - 1
        return (
            {name: tensor.to(device) for name, tensor in inputs.items()},
            where.flatten()[places] - back,
            where.gather(1, last).squeeze(1),
        )

    def _check_packs(self) -> None:
        """Raises `BackendMissing` where two sequences of one row see each other. Positions that
        begin anew tell a model to make masks; variable length attention is told."""
        ids = torch.arange(8, device=self.device)[None, :] % 4
        other = torch.cat([ids[:, :4].flip(1), ids[:, 4:]], dim=1)
        with torch.no_grad():
            apart = self._said_of({"input_ids": ids[:, 4:]})
            if self.options.packing == "varlen":
                kind = self.model.config._attn_implementation  # type: ignore[union-attr]
                # Others cap or sink what they attend to; a copy of a packed model has it already.
                if kind not in ("sdpa", packing.ATTENTION):
                    raise BackendMissing(
                        f"{type(self.model).__name__} has `{kind}` attention, which is not "
                        "supported for packed sequences; set `training.packing: false`"
                    )
                self.model.set_attn_implementation(packing.ATTENTION)  # type: ignore[operator]
            row, turned = (self._said_of_two(both) for both in (ids, other))
        is_half = not {apart.dtype, self.options.autocast}.isdisjoint(HALVES)
        near = (HALF_NEAR if is_half else NEAR) * float(wide(apart).norm())
        if not all(float((wide(states) - wide(apart)).norm()) <= near for states in (row, turned)):
            raise BackendMissing(
                f"{type(self.model).__name__} lets packed sequences see each other; "
                "set `training.packing: false`"
            )

    def _said_of_two(self, ids: Tensor) -> Tensor:
        """What is said of the second of two sequences of four tokens in one row (1, 8)."""
        inputs = packing.inputs_of(ids[0], [4, 4])
        if self.options.packing == "rows":
            inputs = {name: inputs[name] for name in ("input_ids", "position_ids")}
        return self._said_of(inputs)[:, 4:]

    def _said_of(self, inputs: dict[str, Any]) -> Tensor:
        """Numbers of each position (1, S, ...): logits, or states where words cannot be had."""
        is_cut = any(isinstance(head.weight, DTensor) for head in self.net.heads)
        if has_words(self.model) and not is_cut:
            logits: Tensor = self.model(**inputs, use_cache=False).logits
            return logits
        decoder: Any = self.model.base_model
        states: Tensor = decoder(**inputs, use_cache=False).last_hidden_state
        return states

    def _chunk_size(self) -> int:
        if self.options.loss_chunk is not None:
            return self.options.loss_chunk
        vocabulary = vocabulary_of(self.model)
        return loss_chunk(vocabulary, on_cpu=(self._meant or self.device).type == "cpu")


def _in_place(compared: Compared | WordLogProbs) -> Said:
    """A comparison with teachers, or what is told to a student, in the order of what is said."""
    if isinstance(compared, WordLogProbs):
        return compared.log_probs, *NOTHING[:3], compared.words, compared.ids, None
    log_probs, entropy, *others = compared
    return log_probs, entropy, None, None, *others


def _entropy_mode(needs: Needs) -> EntropyMode:
    if needs.entropy_gradient:
        return "learned"
    return "measured" if needs.entropy else "none"


def _at_chunks(
    logits: Tensor, targets: Tensor, heat: float | Tensor, entropy: EntropyMode, size: int
) -> tuple[Tensor, Tensor | None]:
    """Log-probs and entropies of whole logits, computed for `size` states at a time."""
    if logits.shape[0] <= size:
        return _log_probs(logits, targets, heat, entropy)
    logit_parts, target_parts = torch.split(logits, size), torch.split(targets, size)
    heats: Sequence[float | Tensor] = [heat] * len(logit_parts)
    if isinstance(heat, Tensor):
        heats = torch.split(heat, size)
    parts = [
        checkpoint(_log_probs, part, target, own, entropy, use_reentrant=False)
        if torch.is_grad_enabled()
        else _log_probs(part, target, own, entropy)
        for part, target, own in zip(logit_parts, target_parts, heats, strict=True)
    ]
    log_probs = torch.cat([part[0] for part in parts])
    spreads = [part[1] for part in parts if part[1] is not None]
    return log_probs, torch.cat(spreads) if spreads else None


def device_of(model: nn.Module) -> torch.device:
    return next(model.parameters()).device


def packing_on(device: torch.device, *, is_packed: bool) -> Packing:
    """How a device packs: a GPU has a kernel for sequences of variable length."""
    if not is_packed:
        return "none"
    return "varlen" if device.type == "cuda" else "rows"


def recompute_blocks(model: nn.Module, training: Training) -> None:
    """Compute a block's activations again in the backward pass, where the section asks for it."""
    if training.gradient_checkpointing:
        model.gradient_checkpointing_enable(  # type: ignore[operator]
            gradient_checkpointing_kwargs={"use_reentrant": False}
        )


def set_training(model: nn.Module, is_training: bool) -> None:
    """As `model.train(is_training)`, three times as fast."""
    for module in model.modules():
        object.__setattr__(module, "training", is_training)


def blocks_of(model: nn.Module) -> list[nn.Module]:
    """The layers that a model repeats, as its family names them; [] where it names none."""
    names = set(getattr(model, "_no_split_modules", None) or ())
    return [module for module in model.modules() if type(module).__name__ in names]


def effective_temperature(temperature: float) -> float:
    """Greedy text (temperature 0) has its log-probs at 1, as the engines report them."""
    return temperature if temperature > 0 else 1.0


def _heat_of_tokens(temperature: float | Tensor, rows: Tensor) -> float | Tensor:
    """The temperature of each trained token (N, 1), by the row (N,) in which it stands."""
    if not isinstance(temperature, Tensor):
        return temperature
    return temperature.to(rows.device)[rows][:, None]


def _log_probs(
    logits: Tensor | OwnLogits, targets: Tensor, heat: float | Tensor, entropy: EntropyMode
) -> tuple[Tensor, Tensor | None]:
    """Logits (N, V) -> log-probs (N,) of the targets and entropies (N,), float32."""
    if isinstance(logits, OwnLogits):
        return log_probs_together(logits, targets, heat, entropy)
    logits = wide(logits)
    if isinstance(heat, Tensor) or heat != 1.0:
        logits = logits / heat
    if entropy != "learned":
        return log_probs_of(logits, targets, has_entropy=entropy == "measured")
    total = logits.logsumexp(-1)  # (N,)
    return logits.gather(1, targets[:, None]).squeeze(1) - total, _entropy(logits, total)


def _entropy(logits: Tensor, total: Tensor) -> Tensor:
    """log Σ e^z − Σ p z, which is −Σ p log p. (N, V), (N,) -> (N,)."""
    return total - ((logits - total[:, None]).exp() * logits).sum(-1)


def _put(numbers: Tensor, places: Tensor, shape: torch.Size) -> Tensor:
    flat = torch.zeros(shape.numel(), dtype=numbers.dtype, device=numbers.device)
    return flat.index_put((places,), numbers).view(shape)


def _linear(head: nn.Linear, states: Tensor, finish: Finish) -> Tensor | OwnLogits:
    """The head as a product: a module call is what gathers sharded weights."""
    if isinstance(head.weight, DTensor):
        own = own_logits(head, states)
        return replace(own, logits=finish(wide(own.logits)))
    return finish(wide(torch.nn.functional.linear(states, head.weight, head.bias)))


def _scored(parts: Parts, states: Tensor, node: str | None) -> Tensor:
    """(n, H) -> (n, C) in float32, whatever products are computed in: it costs nothing here."""
    weights: list[Tensor] = [head.weight for head in parts.scored(node)]
    held = [own.to_local() if isinstance(own, DTensor) else own for own in weights]  # each whole
    weight = held[0] if len(held) == 1 else torch.cat(held)
    with torch.autocast(states.device.type, enabled=False):
        return torch.nn.functional.linear(wide(states), wide(weight))


def _found_parts(model: nn.Module) -> Parts | None:
    scores = score_heads(model)
    if not has_words(model):
        return Parts(decoder=cast(Any, model.base_model), words=None, scores=scores)
    find_decoder = getattr(model, "get_decoder", None)
    find_head = getattr(model, "get_output_embeddings", None)
    if find_decoder is None or find_head is None:
        return None
    decoder, head = find_decoder(), find_head()
    if decoder is None or type(head) is not nn.Linear or decoder is model:
        return None
    finish = finish_of(getattr(model, "config", None))
    return Parts(decoder=decoder, words=head, scores=scores, finish=finish)


def _proven(model: nn.Module, parts: Parts | None) -> Parts | None:
    """The parts, where head(decoder(x)), scaled or capped as settings say, is the model."""
    if parts is None or parts.words is None:
        return parts
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            probe = torch.arange(4, device=next(model.parameters()).device)[None, :]
            whole = model(input_ids=probe, use_cache=False).logits
            try:
                states = parts.decoder(input_ids=probe, use_cache=False).last_hidden_state
                apart = parts.finish(parts.words(states))
            except (TypeError, AttributeError, RuntimeError):
                return None  # something else lies between what the family calls so
    finally:
        model.train(was_training)
    is_same = whole.shape == apart.shape and torch.allclose(whole, apart, rtol=NEAR, atol=NEAR)
    return parts if is_same else None
