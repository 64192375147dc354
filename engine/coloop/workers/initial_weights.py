"""The weights with which a run begins, and the homes that are built from them.

A group that starts as another one is copied where that is in the same process, else made in the
same way (from the folder, or the source's seed), so no weights travel before the first update.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor
from transformers import PreTrainedModel

from coloop.data.seeds import derive_seed
from coloop.data.services.endpoint import Endpoint
from coloop.errors import ColoopError, ModelUnavailable
from coloop.models import LoadedModel, build_model
from coloop.models.build import DTYPES, build_outline
from coloop.models.heads import (
    ONLY,
    SCORE,
    HeadSpec,
    head_for,
    score_heads,
    score_name,
    with_both_heads,
    with_each_head,
    with_head,
    with_one_of,
)
from coloop.models.waiting import outline_of
from coloop.plan.settings.settings import SPLIT_FAMILIES, EnginePlan
from coloop.plan.types import WeightsPlan
from coloop.spec.adapters import source_of, standing_of
from coloop.spec.graph import LoopSpec
from coloop.spec.groups import rollout_of, training_of
from coloop.spec.heads import classes_of, heads_of_group, scorers_of
from coloop.spec.nodes import model_of
from coloop.spec.rollout import Rollout
from coloop.workers.frozen_model import FrozenModel
from coloop.workers.rollout_generator import RolloutGenerator
from coloop.workers.trainer import Trainer
from coloop.workers.training import ALONE, BACKENDS, Adapter, Ranks
from coloop.workers.training.adapters import FrozenAdapter, Spread, beside
from coloop.workers.training.states import place_weights
from coloop.workers.weights import HeldWeights

Home = Trainer | FrozenModel

WRITING_SECONDS: Final = 600.0  # longest time for one text of a remote engine
RETRIES: Final = 3  # how often a request to a remote engine is sent again


@dataclass(frozen=True, slots=True, kw_only=True)
class InitialWeights:
    spec: LoopSpec
    plans: Mapping[str, WeightsPlan]  # by weights group, those of other processes as well
    root: Path  # folder from which relative paths in the spec are read
    seed: int
    device: str = "cpu"
    ranks: Ranks = ALONE  # of the pool: weights are alike on all of them when they begin

    def homes(self, pool: str) -> dict[str, Home]:
        homes_by_group: dict[str, Home] = {}
        held = [
            group
            for group, plan in self.plans.items()
            if plan.pool == pool and not plan.is_elsewhere
        ]
        bases: dict[str, LoadedModel] = {}
        spreads: dict[str, Spread] = {group: {} for group in held}
        for group in sorted(held, key=lambda group: len(self._sources(group))):
            plan = self.plans[group]
            if plan.beside is None:
                loaded = self._to_be_held(group, homes_by_group)
            else:
                loaded = self._placed(beside(bases[plan.beside]), group)
            if self._carries(group):
                bases[group] = beside(loaded)
            homes_by_group[group] = self._home(loaded, plan, spreads[plan.beside or group])
        return homes_by_group

    def _to_be_held(self, group: str, homes: Mapping[str, Home]) -> LoadedModel:
        plan = self.plans[group]
        device = "cpu" if _is_spread(plan) else None
        if not self._takes_parts(group):
            return self.model(group, homes, device)
        loaded = self.model(group, homes, device, may_wait=True)
        shares_layers = plan.update is not None and plan.update.tensor_parallel > 1
        if shares_layers and loaded.model.config.model_type not in SPLIT_FAMILIES:
            return self.model(group, homes, device)  # whether it can be cut, its weights show
        return loaded

    def _takes_parts(self, group: str) -> bool:
        plans = (plan for plan in self.plans.values() if group in (plan.name, plan.beside))
        return all(_is_spread(plan) for plan in plans)

    def _carries(self, group: str) -> bool:
        return any(plan.beside == group for plan in self.plans.values())

    def model(
        self,
        group: str,
        homes: Mapping[str, Home],
        device: str | None = None,
        *,
        may_wait: bool = False,
    ) -> LoadedModel:
        """A group's weights when the run begins, in their types.

        Args:
            device: on which they are; None: the process's own.
            may_wait: the caller takes weights one by one where they can be had so (`to_come`).
        """
        sources = self._sources(group)
        here = next((source for source in sources[1:] if source in homes), None)
        if here is not None:
            held = homes[here].weights
            loaded = held.to_copy() if may_wait else held.copied()
            if not may_wait:
                torch.nn.Module.to(loaded.model, self.device if device is None else device)
            steps = sources[: sources.index(here)]
        else:
            on = self.device if device is None else device
            loaded = self._fresh(sources[-1], on, may_wait=may_wait)
            steps = sources
        for step in reversed(steps):
            loaded = self._placed(loaded, step)
        loaded.model.requires_grad_(self.plans[group].trains)
        return loaded

    def _placed(self, loaded: LoadedModel, group: str) -> LoadedModel:
        plan = self.plans[group]
        self._check_heads(loaded.model, group)
        with self._told(group, "model"):
            model = with_heads(loaded.model, self.spec, group, plan.members, seed=self.seed)
        note = None if loaded.to_come is None else loaded.to_come.note_types
        place_weights(model, plan.dtypes, after_each=note)
        return replace(loaded, model=model)

    def _check_heads(self, model: PreTrainedModel, group: str) -> None:
        """Raises `ModelUnavailable` where a drawn head would never learn: its numbers are noise."""
        plan = self.plans[group]
        origin = model_of(self.spec.nodes[self._sources(group)[-1]])
        if plan.trains or origin is None or origin.type == "scratch":
            return
        node = without_head(model, self.spec, group, plan.members)
        if node:
            raise ModelUnavailable(
                f"{node}: its model has no score head, and `{group}` does not learn, so a random "
                "head would give meaningless scores; use a model with one (a sequence classifier, "
                f"`...ForSequenceClassification`), or let `{node}` learn from pairs, labels or "
                "returns",
                node,
                "model",
            )

    def outline(self, group: str) -> LoadedModel:
        """What a group is whose weights a service has: its tokenizer and its sizes."""
        section = model_of(self.spec.nodes[group])
        assert section is not None
        return build_outline(section, root=self.root)

    def engine(self, group: str, plan: EnginePlan) -> RolloutGenerator:
        """The home of a group's engine in this process; it has no weights yet."""
        rollout = rollout_of(self.spec, plan.writers[0])
        return RolloutGenerator(
            name=group,
            kind=plan.engine,
            dtype=DTYPES[self.plans[group].dtypes.engine],
            device=self.device,
            max_num_seqs=plan.max_num_seqs,
            memory_share=plan.gpu_memory_utilization,
            ranks=replace(self.ranks, tensor=plan.tensor_parallel),
            endpoint=None if rollout is None else self._endpoint(plan, rollout),
            sleep=plan.sleep,
        )

    def _endpoint(self, plan: EnginePlan, rollout: Rollout) -> Endpoint | None:
        if plan.engine != "remote" or rollout.url is None:
            return None
        return Endpoint(
            node=plan.writers[0],
            field="rollout.url",
            url=f"{rollout.url.rstrip('/')}/completions",
            secret=rollout.secret,
            timeout_seconds=WRITING_SECONDS,
            retries=RETRIES,
            concurrency=plan.max_num_seqs,
            seed=derive_seed(self.seed, plan.writers[0]),
        )

    def _home(self, loaded: LoadedModel, plan: WeightsPlan, spread: Spread) -> Home:
        """`spread`: the process's sharded form of the frozen weights below."""
        weights = HeldWeights(name=plan.name, loaded=loaded, dtypes=plan.dtypes, ranks=self.ranks)
        adapter = self._adapter(plan, spread)
        if adapter is not None:
            weights.lora, weights.beside = adapter.lora, plan.beside
        outline = outline_of(loaded.model)
        update = plan.update
        if update is None:
            if adapter is not None:
                with self._told(plan.name):
                    weights.adapted = FrozenAdapter(loaded.model, adapter)
                weights.loaded = replace(loaded, model=outline)
            if _is_spread(plan):
                is_shared = plan.beside is not None or self._carries(plan.name)
                shared = spread if is_shared else None
                return FrozenModel.spread(weights, torch.device(self.device), shared)
            return FrozenModel(weights=weights)
        own: dict[str, Any] = {}
        if update.backend == "fsdp2":
            own = {
                "is_spread": _is_spread(plan),
                "device": torch.device(self.device),
                "to_come": loaded.to_come,
            }
        with self._told(plan.name):
            backend = BACKENDS[update.backend](
                loaded.model,
                update.fill(training_of(self.spec, plan.name)),
                group=plan.name,
                dtypes=plan.dtypes,
                ranks=self.ranks,
                tokens_at_once=update.tokens_at_once,
                is_packed=update.packing,
                adapter=adapter,
                **own,
            )
        if not backend.is_whole:
            weights.loaded = replace(loaded, model=outline, to_come=None)
            weights.backend = backend
            weights.adapted = backend.adapted
        return Trainer(weights=weights, backend=backend, update=update)

    def _adapter(self, plan: WeightsPlan, spread: Spread) -> Adapter | None:
        standing = standing_of(self.spec, plan.name)
        if standing is None:
            return None
        return Adapter(
            lora=standing.lora,
            seed=derive_seed(self.seed, plan.name, "adapter"),
            is_shared=plan.beside is not None or self._carries(plan.name),
            spread=spread,
        )

    @contextmanager
    def _told(self, group: str, field: str | None = None) -> Iterator[None]:
        try:
            yield
        except ModelUnavailable as error:
            where = f"`{group}`: " if field is None else f"`{group}`: `{field}`: "
            raise ModelUnavailable(f"{where}{error}", group, field) from error

    def _fresh(self, group: str, device: str, *, may_wait: bool) -> LoadedModel:
        section = model_of(self.spec.nodes[group])
        assert section is not None
        return build_model(
            section,
            seed=derive_seed(self.seed, group, "weights"),
            root=self.root,
            device=device,
            dtype=self.plans[group].dtypes.rest,
            may_wait=may_wait,
        )

    def _sources(self, group: str) -> list[str]:
        chain = [group]
        while (of := source_of(model_of(self.spec.nodes[chain[-1]]))) is not None:
            source = next(plan.name for plan in self.plans.values() if of in plan.members)
            chain.append(source)
            if source in chain[:-1]:
                circle = ", ".join(chain)
                raise ColoopError(f"weights start from one another in a circle: {circle}")
        return chain


def _is_spread(plan: WeightsPlan) -> bool:
    if plan.update is None:
        return plan.backend is not None
    return plan.update.backend == "fsdp2" and plan.update.states == "spread"


# Words where a node reads words, and a score head for each node that reads a score: Hugging Face's
# `score.weight` for a single node, else one of its own with a seed from its name.
#     begins as   that of the node in `of`, else of its own name, else the only one of those
#                 weights, where that says as many numbers; else it is new
#     follows     in the same way, whatever the source calls its head

Names = Mapping[str, tuple[str, ...]]  # by the name of a source's score head, those that take it


def with_heads(
    model: PreTrainedModel, spec: LoopSpec, group: str, members: Sequence[str], *, seed: int
) -> PreTrainedModel:
    """The model with the heads that a group's nodes read; missing ones are new."""
    heads, scorers = heads_of_group(spec, members), scorers_of(spec, members)
    own = derive_seed(seed, group, "head")
    if not scorers:
        return with_head(model, "words", seed=own)
    of = source_of(model_of(spec.nodes[group]))
    if of is None:
        _check_names(model, scorers)
    if len(scorers) > 1:
        wanted = [
            HeadSpec(
                node=node, classes=classes_of(spec, node), seed=derive_seed(seed, node, "head")
            )
            for node in scorers
        ]
        return with_each_head(model, wanted, of=of, beside_words="words" in heads)
    (node,) = scorers
    model, classes = with_one_of(model, node, of), classes_of(spec, node)
    if len(heads) > 1:
        return with_both_heads(model, seed=own, classes=classes)
    return with_head(model, "score", seed=own, classes=classes)


def without_head(model: PreTrainedModel, spec: LoopSpec, group: str, members: Sequence[str]) -> str:
    """The first node that reads a score head which the model lacks; "" where there is none."""
    of = source_of(model_of(spec.nodes[group]))
    lacking = (node for node in scorers_of(spec, members) if head_for(model, node, of) is None)
    return next(lacking, "")


def taken_heads(
    spec: LoopSpec, group: str, members: Sequence[str], of_source: Sequence[str]
) -> Names | None:
    """Which score heads follow which of the source's group (`of_source`: its nodes). None where
    both have one at most, under the same name."""
    own, theirs = scorers_of(spec, members), scorers_of(spec, of_source)
    if len(own) < 2 and len(theirs) < 2:
        return None
    of = source_of(model_of(spec.nodes[group]))
    only = theirs[0] if len(theirs) == 1 else None
    names: dict[str, tuple[str, ...]] = {}
    for node in own:
        there = next((source for source in (of, node, only) if source in theirs), None)
        if there is None or classes_of(spec, there) != classes_of(spec, node):
            continue
        name = score_name(there, is_alone=len(theirs) == 1)
        names[name] = (*names.get(name, ()), score_name(node, is_alone=len(own) == 1))
    return names


def renamed(
    given: Iterable[tuple[str, Tensor]], names: Names | None
) -> Iterator[tuple[str, Tensor]]:
    """Weights by the receiver's names of score heads, without heads that it does not take."""
    for name, weight in given:
        if names is None or not name.startswith(f"{SCORE}."):
            yield name, weight
        else:
            yield from ((own, weight) for own in names.get(name, ()))


def _check_names(model: PreTrainedModel, scorers: Sequence[str]) -> None:
    """Raises `ModelUnavailable` where a folder's heads of several nodes are ambiguous: none of one
    node's name, and one that no node takes."""
    heads = score_heads(model)
    left = [name for name in heads if name != ONLY and name not in scorers]
    for node in scorers:
        if left and node not in heads:
            raise ModelUnavailable(
                f"{node}: its weights have the score heads of {', '.join(heads)}, but none named "
                f"{node!r}; give the node the name of the head that it should start with"
            )
