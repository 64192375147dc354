"""The weights with which a run begins, and the homes that are built from them.

Weights that start as another group's are copied from it where it lives in the same process, and
made again in the same way where it does not: a model folder is read, and what is random comes from
the source's seed. So no weights travel before the first update, and every process begins with the
same bits.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import torch
from transformers import PreTrainedModel

from coloop.data.seeds import derive_seed
from coloop.data.services.endpoint import Endpoint
from coloop.errors import ColoopError, ModelUnavailable
from coloop.models import (
    DTYPES,
    LoadedModel,
    build_model,
    build_outline,
    outline_of,
)
from coloop.plan.settings.settings import SPLIT_FAMILIES, EnginePlan
from coloop.plan.types import WeightsPlan
from coloop.spec.adapters import source_of, standing_of
from coloop.spec.graph import LoopSpec
from coloop.spec.groups import rollout_of, training_of
from coloop.spec.nodes import model_of
from coloop.spec.rollout import Rollout
from coloop.workers.frozen_model import FrozenModel
from coloop.workers.heads import with_heads, without_head
from coloop.workers.rollout_generator import RolloutGenerator
from coloop.workers.trainer import Trainer
from coloop.workers.training import ALONE, BACKENDS, Adapter, Ranks
from coloop.workers.training.adapters import Spread, beside
from coloop.workers.training.frozen_adapters import FrozenAdapter
from coloop.workers.training.states import place_weights
from coloop.workers.weights import HeldWeights

Home = Trainer | FrozenModel

WRITING_SECONDS: Final = 600.0
"""Longest time for one text of a remote engine."""
RETRIES: Final = 3
"""How often a request to a remote engine is sent again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InitialWeights:
    """Makes the first weights of a loop's groups."""

    spec: LoopSpec
    plans: Mapping[str, WeightsPlan]
    """By weights group, those of other processes as well."""
    root: Path
    """Folder from which relative paths in the spec are read."""
    seed: int
    device: str = "cpu"
    ranks: Ranks = ALONE
    """Of the pool: weights are alike on all of them when they begin."""

    def homes(self, pool: str) -> dict[str, Home]:
        """The homes of the weights that a pool holds."""
        found: dict[str, Home] = {}
        held = [
            group
            for group, plan in self.plans.items()
            if plan.pool == pool and not plan.is_elsewhere
        ]
        bases: dict[str, LoadedModel] = {}
        spreads: dict[str, Spread] = {group: {} for group in held}
        for group in sorted(held, key=lambda group: len(self._sources(group))):
            plan = self.plans[group]
            loaded = self._beginning(group, found, bases)
            if self._carries(group):
                bases[group] = beside(loaded)
            found[group] = self._home(loaded, plan, spreads[plan.beside or group])
        return found

    def _beginning(
        self, group: str, homes: Mapping[str, Home], bases: Mapping[str, LoadedModel]
    ) -> LoadedModel:
        """The weights of a group in this process: of an adapter around those of the one that holds
        what it stands on."""
        plan = self.plans[group]
        if plan.beside is None:
            return self._to_be_held(group, homes)
        return self._placed(beside(bases[plan.beside]), group)

    def _to_be_held(self, group: str, homes: Mapping[str, Home]) -> LoadedModel:
        """The weights of a group for its home: on the device; or to come, where each rank takes its
        parts; or in the host's memory, from which they go to the device block by block."""
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
        """Whether each rank takes its parts of weights that are read one by one, as do all that
        stand on them."""
        plans = (plan for plan in self.plans.values() if group in (plan.name, plan.beside))
        return all(_is_spread(plan) for plan in plans)

    def _carries(self, group: str) -> bool:
        """Whether others stand on frozen weights that a group holds."""
        return any(plan.beside == group for plan in self.plans.values())

    def model(
        self,
        group: str,
        homes: Mapping[str, Home],
        device: str | None = None,
        *,
        may_wait: bool = False,
    ) -> LoadedModel:
        """The weights of a group when the run begins, in the types that were decided for it.

        Args:
            homes: of this process, as they were built.
            device: on which they are; None: the process's own.
            may_wait: whoever asks takes weights one by one where they can be had so (`to_come`).
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
        """A model with the heads of a group, in its types."""
        loaded = replace(loaded, model=self._headed(loaded.model, group))
        note = None if loaded.to_come is None else loaded.to_come.note_types
        place_weights(loaded.model, self.plans[group].dtypes, after_each=note)
        return loaded

    def _headed(self, model: PreTrainedModel, group: str) -> PreTrainedModel:
        """The model with the heads that the nodes of a group read; one that it lacks is new."""
        members = self.plans[group].members
        self._check_heads(model, group)
        with self._told(group, "model"):
            return with_heads(model, self.spec, group, members, seed=self.seed)

    def _check_heads(self, model: PreTrainedModel, group: str) -> None:
        """Raises `ModelUnavailable` where a head would be drawn that never learns, on weights that
        were: what it says would be noise."""
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
            endpoint=None if rollout is None else self._endpoint(plan, rollout),
            sleep=plan.sleep,
        )

    def _endpoint(self, plan: EnginePlan, rollout: Rollout) -> Endpoint | None:
        """The service that writes for a node; None where an engine here does."""
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
        """
        Args:
            spread: what a backend of this process has made of the frozen weights below.
        """
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
                return FrozenModel(weights=weights)
            if _is_spread(plan):
                return FrozenModel.spread(weights, torch.device(self.device))
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
        """What stands beside a group's frozen weights, where the loop says so."""
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
        """Who has a model that a library, an adapter or a head does not fit.

        Args:
            field: where the loop says so; None: the message tells.
        """
        try:
            yield
        except ModelUnavailable as error:
            place = f"`{group}`: " if field is None else f"`{group}`: `{field}`: "
            raise ModelUnavailable(f"{place}{error}", group, field) from error

    def _fresh(self, group: str, device: str, *, may_wait: bool) -> LoadedModel:
        """Weights that start from no others."""
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
        """The group, the one that it starts from, the one that this starts from, and so on."""
        found = [group]
        while (of := source_of(model_of(self.spec.nodes[found[-1]]))) is not None:
            source = next(plan.name for plan in self.plans.values() if of in plan.members)
            found.append(source)
            if source in found[:-1]:
                circle = ", ".join(found)
                raise ColoopError(f"weights start from one another in a circle: {circle}")
        return found


def _is_spread(plan: WeightsPlan) -> bool:
    """Whether each rank of a group's pool holds a part of its weights."""
    if plan.update is None:
        return plan.backend is not None
    return plan.update.backend == "fsdp2" and plan.update.states == "spread"
