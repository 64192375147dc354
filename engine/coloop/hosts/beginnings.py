"""The weights with which a run begins, and the homes that are built from them.

Weights that start as another group's are copied from it where it lives in the same process, and
made again in the same way where it does not: a model folder is read, and what is random comes from
the source's seed. So no weights travel before the first update, and every process begins with the
same bits.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from transformers import PreTrainedModel

from coloop.errors import ColoopError
from coloop.hosts.engine_home import EngineHome
from coloop.hosts.scorer_home import ScorerHome
from coloop.hosts.trainer_home import TrainerHome
from coloop.hosts.weights import HeldWeights
from coloop.models import (
    DTYPES,
    LoadedModel,
    build_model,
    copy_model,
    outline_of,
    with_head,
)
from coloop.plan.types import EnginePlan, WeightsPlan
from coloop.seeds import derive_seed
from coloop.spec.graph import LoopSpec
from coloop.spec.groups import training_of
from coloop.spec.heads import head_of_group
from coloop.spec.nodes import model_of
from coloop.training import ALONE, BACKENDS, Adapter, Ranks
from coloop.training.precision import place_weights

Home = TrainerHome | ScorerHome


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginnings:
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
        held = [group for group, plan in self.plans.items() if plan.pool == pool]
        for group in sorted(held, key=lambda group: len(self._sources(group))):
            found[group] = self._home(group, found)
        return found

    def model(self, group: str, homes: Mapping[str, Home]) -> LoadedModel:
        """The weights of a group when the run begins, in the types that were decided for it.

        Args:
            homes: of this process, as they were built.
        """
        sources = self._sources(group)
        here = next((source for source in sources[1:] if source in homes), None)
        if here is not None:
            loaded = copy_model(homes[here].weights.whole())
            steps = sources[: sources.index(here)]
        else:
            loaded = self._fresh(sources[-1])
            steps = sources
        for step in reversed(steps):
            loaded = replace(loaded, model=self._headed(loaded.model, step))
            place_weights(loaded.model, self.plans[step].dtypes)
        loaded.model.requires_grad_(self.plans[group].trains)
        return loaded

    def _headed(self, model: PreTrainedModel, group: str) -> PreTrainedModel:
        """The model with the head that the nodes of a group read; one that it lacks is new."""
        head = head_of_group(self.spec, self.plans[group].members)
        return with_head(model, head, seed=derive_seed(self.seed, group, "head"))

    def engine(self, group: str, plan: EnginePlan) -> EngineHome:
        """The home of a group's engine in this process; it has no weights yet."""
        return EngineHome(
            name=group,
            kind=plan.engine,
            dtype=DTYPES[self.plans[group].dtypes.engine],
            device=self.device,
            max_num_seqs=plan.max_num_seqs,
            sleep=plan.sleep,
        )

    def _home(self, group: str, homes: Mapping[str, Home]) -> Home:
        plan = self.plans[group]
        loaded = self.model(group, homes)
        weights = HeldWeights(name=group, loaded=loaded, dtypes=plan.dtypes, ranks=self.ranks)
        update = plan.update
        if update is None:
            return ScorerHome(weights=weights)
        outline = outline_of(loaded.model)
        backend = BACKENDS[update.backend](
            loaded.model,
            update.fill(training_of(self.spec, group)),
            group=group,
            dtypes=plan.dtypes,
            ranks=self.ranks,
            tokens_at_once=update.tokens_at_once,
            is_packed=update.packing,
            adapter=self._adapter(group),
        )
        if not backend.is_whole:
            weights.loaded = replace(loaded, model=outline)
            weights.backend = backend
        return TrainerHome(weights=weights, backend=backend, update=update)

    def _adapter(self, group: str) -> Adapter | None:
        """What learns in place of a group's weights, where the loop says so."""
        lora = getattr(model_of(self.spec.nodes[group]), "lora", None)
        if lora is None:
            return None
        return Adapter(lora=lora, seed=derive_seed(self.seed, group, "adapter"))

    def _fresh(self, group: str) -> LoadedModel:
        """Weights that start from no others."""
        section = model_of(self.spec.nodes[group])
        assert section is not None
        return build_model(
            section,
            seed=derive_seed(self.seed, group, "weights"),
            root=self.root,
            device=self.device,
            dtype=self.plans[group].dtypes.rest,
        )

    def _sources(self, group: str) -> list[str]:
        """The group, the one that it starts from, the one that this starts from, and so on."""
        found = [group]
        while (of := getattr(model_of(self.spec.nodes[found[-1]]), "of", None)) is not None:
            source = next(plan.name for plan in self.plans.values() if of in plan.members)
            found.append(source)
            if source in found[:-1]:
                circle = ", ".join(found)
                raise ColoopError(f"weights start from one another in a circle: {circle}")
        return found
