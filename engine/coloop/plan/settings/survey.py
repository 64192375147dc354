"""The inputs of estimates for one loop: machine, weights, engines, rows, and decided open settings.

    outline ──> learners (backends, states) ──> types, bases ──> updates, weights
      ──> counts (rows and lengths) ──> engines

Everything that memory and time of a stage depend on is computed here once. Open settings are
decided along the way, each with its reason; those that depend on memory are added with `decide`.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from coloop.plan.settings.engines import Engine, Engines
from coloop.plan.settings.facts import resolve_architecture
from coloop.plan.settings.machine import Outline, PoolShare
from coloop.plan.settings.measured import UNCORRECTED, lengths_as
from coloop.plan.settings.probes import ProbeLoad
from coloop.plan.settings.processor import Conditions, conditions_here
from coloop.plan.settings.rows import Lengths, lengths_of
from coloop.plan.settings.settings import Note, UpdateSettings
from coloop.plan.settings.tables import Counted, Tables, Texts
from coloop.plan.settings.updates import Updates
from coloop.plan.settings.weights import Weights
from coloop.spec.graph import LoopSpec
from coloop.spec.groups import reasons
from coloop.spec.lean import record
from coloop.spec.lineage import Lineages
from coloop.spec.lineage.counts import RowCounts
from coloop.spec.nodes.dataset import USUAL_ROWS, DatasetNode
from coloop.spec.table_sizes import USUAL_BAND, mean_written

CHARACTER_VOCABULARY = 1024
"""Largest vocabulary that is assumed to be of characters."""

READ_WHOLE = {("tool", "documents"), ("verifier", "library"), ("evaluate", "pairs")}
"""Inputs (kind, port) that are read completely, whatever a step draws."""


@record
class PhaseLoad:
    live: tuple[tuple[str, str], ...]
    """Teaching ports (node, port)."""
    stages: tuple[str, ...]
    steps: int = 1
    """Expected steps over the whole run."""


class Survey(Outline):
    def __init__(
        self,
        spec: LoopSpec,
        root: Path | None = None,
        phases: Sequence[PhaseLoad] = (),
        probes: Mapping[str, ProbeLoad] | None = None,
        conditions: Conditions | None = None,
        workers: int = 1,
        tables: Tables | None = None,
    ) -> None:
        conditions = conditions or conditions_here()
        self.tables = tables or Tables(Lineages(spec))
        super().__init__(spec, root, conditions, workers)
        self.phases = tuple(phases)
        self.probes = probes or {}
        """By evaluation, what it runs."""
        self.settling = Updates(self)
        self.dtypes, self.bases = self.settling.dtypes, self.settling.bases
        self.updates: dict[str, UpdateSettings] = {}
        """Of trained groups, without settings that depend on memory."""
        self.weights: dict[str, Weights] = {}
        self.assumed_lengths: list[str] = []
        """Nodes that generate, of whose completions the mean length is assumed."""
        self.unknown: dict[str, Note] = {}
        """For groups with an unknown model, why."""
        for owner in self.groups:
            self._weigh(owner)
        vocabularies = [weights.arch.vocab_size for weights in self.weights.values()]
        self._counted = self._count(min(vocabularies, default=None))
        self.counts = self._counted.counts
        """Of a step, over the edges of all phases."""
        self.passes: dict[str, Sequence[RowCounts]] = {}
        engines = Engines(outline=self, weights=self.weights, counts=self.counts)
        self.settings = dict(engines.settle())
        """By weights group and pool."""
        self.engines = tuple(engines.known(self.settings))
        """Those with known memory and time."""
        self.find_engines()

    def find_engines(self) -> None:
        self._engine_of = {node: engine for engine in self.engines for node in engine.writers}

    def _count(self, smallest_vocabulary: int | None) -> Counted:
        """Rows and text lengths of every table, over the edges of all phases."""
        is_characters = (smallest_vocabulary or 10**9) <= CHARACTER_VOCABULARY
        walk = self.tables.walk
        lengths = {}
        for name, node in self.spec.nodes.items():
            if isinstance(node, DatasetNode):
                measured = lengths_of(node, self.root, is_characters=is_characters)
                texts = lengths[name] = measured.texts
                if measured.reason:
                    value = f"prompts of {texts.prompt:.0f}, at most {texts.prompt_max:.0f}"
                    self.decide(f"nodes.{name}.tokens", value, measured.reason)
                readers = (edge.target for edge in walk.out_of(name))
                if {(walk.kinds[reader.node], reader.port) for reader in readers} - READ_WHOLE:
                    self._note_rows(name, node, measured)
        written = {} if is_characters else dict(self._completions())
        return self.tables.of(Texts(lengths=lengths, is_characters=is_characters, written=written))

    def passes_of(self, probe: str) -> Sequence[RowCounts]:
        """Rows in each pass of an evaluation that runs stages on rows of its own."""
        if probe not in self.passes:
            load = self.probes.get(probe, ProbeLoad())
            self.passes[probe] = self._counted.passes_of(self.spec, probe, load)
        return self.passes[probe]

    def _completions(self) -> Iterator[tuple[str, float]]:
        """Mean lengths of completions that the loop does not state: as earlier runs measured them,
        or assumed."""
        low, high = USUAL_BAND
        for name, node in self.spec.nodes.items():
            rollout = getattr(node, "rollout", None)
            if rollout is None or rollout.expected_tokens is not None:
                continue
            most, field = rollout.max_new_tokens, "rollout.expected_tokens"
            mean = mean_written(rollout, reasons=reasons(self.spec, name))
            measured = self.conditions.measured
            known = UNCORRECTED
            if measured is not None:
                known = measured.correction(lengths_as(self.spec.name, name, most))
            if known.runs:
                mean *= known.factor
                runs = "an earlier run" if known.runs == 1 else f"{known.runs} earlier runs"
                message = f"completions have {mean:.0f} of {most} tokens in the mean, as in {runs}"
            else:
                self.assumed_lengths.append(name)
                message = (
                    f"completions are assumed to have {mean:.0f} of {most} tokens in the mean, "
                    f"within {low * mean:.0f} and {min(high * mean, most):.0f}: "
                    "`expected_tokens` states it"
                )
            self.notes.append(Note(message=message, node=name, field=field))
            yield name, mean

    def _note_rows(self, name: str, node: DatasetNode, measured: Lengths) -> None:
        if measured.is_assumed:
            what = f"the lengths of {node.source.type} rows are not known"
            message = f"{what}: {round(measured.texts.prompt_max)} tokens assumed"
            self.notes.append(Note(message=message, node=name, field="source"))
        if node.rows_per_step is None and node.source.type != "inline":
            message = f"rows of a step are not given: {USUAL_ROWS} assumed"
            self.notes.append(Note(message=message, node=name, field="rows_per_step"))

    def _weigh(self, owner: str) -> None:
        """Add a group; one with an unknown model gets settings only."""
        arch, note = resolve_architecture(self.spec, owner, self.root)
        update = self.settling.settle(owner, arch)
        if self.groups[owner].trainable:
            self.updates[owner] = update
        if arch is None:
            self.notes += [note] if note else []
            if note is not None:
                self.unknown[owner] = note
            return
        if arch.is_built:
            message = (
                f"parameters of models of type {arch.model_type!r} are counted on the model that "
                "transformers builds; activations and compute of their layers are assumed to be as "
                "in Llama"
            )
            self.notes.append(Note(message=message, node=owner, field="model"))
        if not arch.is_exact:
            self.notes.append(
                Note(
                    message=f"models of type {arch.model_type!r} are estimated like Llama",
                    node=owner,
                    field="model",
                    is_guess=True,
                )
            )
        self.weights[owner] = Weights(
            self,
            owner,
            arch,
            update=update,
            dtypes=self.dtypes[owner],
            base=self.bases.get(owner),
        )

    @cached_property
    def stages(self) -> tuple[str, ...]:
        """All stages of all phases, and the evaluations."""
        named = dict.fromkeys(stage for phase in self.phases for stage in phase.stages)
        probes = [f"{n}.evaluate" for n, node in self.spec.nodes.items() if node.kind == "evaluate"]
        return (*named, *probes)

    def weights_of(self, node: str) -> Weights | None:
        return self.weights.get(self.owners.get(node, ""))

    def writes_elsewhere(self, node: str) -> bool:
        """Whether a remote engine generates for the node, with weights of its own."""
        rollout = getattr(self.spec.nodes.get(node), "rollout", None)
        return rollout is not None and rollout.engine == "remote"

    def engine_of(self, node: str) -> Engine | None:
        return self._engine_of.get(node)

    def pool_of(self, stage: str) -> PoolShare | None:
        """Where a stage runs; None for the driver."""
        node, verb = stage.rsplit(".", 1)
        engines, weights = self.engines_in(stage), self.weights_of(node)
        if engines:
            return engines[0].pool
        return weights.pool if weights is not None and verb in ("score", "learn", "sync") else None

    def unknown_group(self, stage: str) -> str | None:
        node, verb = stage.rsplit(".", 1)
        users = [node] if verb in ("generate", "score", "learn", "sync") else []
        if verb == "evaluate":
            users = list(self.probes[node].nodes) if node in self.probes else []
        elif verb == "generate":
            policies = self.spec.graph.edges_into(node, "policy")
            users += [edge.source.node for edge in policies]
        for user in users:
            owner = self.owners.get(user, "")
            if owner in self.unknown and not self.writes_elsewhere(user):
                return owner
        return None

    def pools_of_unknown(self, group: str) -> frozenset[str]:
        engines = [engine for (owner, _), engine in self.settings.items() if owner == group]
        pools = {engine.pool for engine in engines if engine.engine != "remote"}
        members = self.groups[group].members
        if group in self.updates or not all(map(self.writes_elsewhere, members)):
            pools.add(self.home_of(group).name)
        return frozenset(pools)

    def engines_in(self, stage: str) -> tuple[Engine, ...]:
        node, verb = stage.rsplit(".", 1)
        if verb == "evaluate":
            engines = [self.engine_of(writer) for writer in self.probe_writers(node)]
        elif verb in ("generate", "score"):
            engines = [self.engine_of(node) or self.search_engine(node)]
        else:
            engines = []
        return tuple(engine for engine in engines if engine is not None)

    def search_engine(self, node: str) -> Engine | None:
        for edge in self.spec.graph.edges_into(node, "policy"):
            if (engine := self.engine_of(edge.source.node)) is not None:
                return engine
        return None

    def probe_writers(self, node: str) -> tuple[str, ...]:
        nodes = self.probes[node].nodes if node in self.probes else ()
        return tuple(name for name in nodes if self.engine_of(name) is not None)
