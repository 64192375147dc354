"""A loop with one learner as a configuration of another framework, with what it cannot say.

loop --parts--> nodes by role --table of a framework, backwards--> settings --> text
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any, Final

from coloop.errors import ExportRefused, PresetNotFound
from coloop.interop import openrlhf, verl
from coloop.interop.bring import import_text, shown
from coloop.interop.draft import Draft
from coloop.interop.settings import Carried, Table, theirs
from coloop.spec import presets
from coloop.spec.algorithm import node_algorithms, resolve_algorithm
from coloop.spec.algorithms.registry import FRAMEWORKS, VERSIONS
from coloop.spec.graph import LoopSpec
from coloop.spec.io import parse, to_dict
from coloop.spec.lean import record

MODULES: Final[Mapping[str, ModuleType]] = {"verl": verl, "openrlhf": openrlhf}
"""Frameworks that a loop is exported to, by the name that commands take."""
NOT_COMPARED: Final = frozenset(
    {
        *("tokens.mean", "pool", "rollout.pool", "metrics", "kind", "rollout.expected_tokens"),
        *("columns.answer",),
    }
)
"""Values of a node that only describe it, or that follow from placement or framework."""
USUAL_BETAS: Final = {"adamw": (0.9, 0.999), "lion": (0.95, 0.98)}
"""What `betas: null` stands for."""


@record
class Exported:
    """A configuration made from a loop."""

    framework: str
    version: str
    name: str
    """Name of its file."""
    text: str
    unsaid: tuple[str, ...]
    """What the loop says and the framework cannot, a sentence each."""


class Parts:
    """The nodes of a loop by their roles, with their values under the names of `Draft`."""

    def __init__(self, spec: LoopSpec) -> None:
        self.spec = spec
        self.roles: dict[str, str] = {}
        """By role, the id of the node."""
        self.rewards: dict[str, float] = {}
        """Roles of the scorers that are learned from, with their weights."""
        self.unsaid: list[str] = []
        self._find()
        document = to_dict(spec)
        self.draft = Draft(spec.name, "")
        self.by_node = {node: role for role, node in self.roles.items()}
        self.draft.nodes = {
            self.by_node[node]: section
            for node, section in document["nodes"].items()
            if node in self.by_node
        }
        for name in self.draft.sections:
            self.draft.sections[name] = document.get(name, {})
        self.algorithm = self._algorithm()
        self._name_the_rest()

    @property
    def learner(self) -> str:
        return "rm" if "rm" in self.roles else "actor"

    @property
    def port(self) -> str:
        """The teaching port that is learned from."""
        if "rm" in self.roles or "preferences" in self.roles:
            return "pairs"
        if "demonstrations" in self.roles:
            return "demonstrations"
        return "rewards"

    def get(self, path: str) -> Any:
        """A value, by default what a loop has where it says nothing."""
        written = self.draft.get(path)
        if written is None and path.endswith(".optimizer.betas"):
            written = USUAL_BETAS.get(self.get(path.replace(".betas", ".name")))
        if written is None and ".columns." in path:
            return path.rpartition(".")[2]  # a column that is not mapped has its own name
        if path.endswith((".instead_of", ".of")) and written in self.by_node:
            return self.by_node[written]
        return written if written is not None else self.draft.default_of(path)

    @property
    def gpus(self) -> tuple[int, int]:
        """Machines and GPUs of each."""
        try:
            machine = presets.hardware_of(self.spec.hardware)
        except PresetNotFound as missing:
            raise ExportRefused(f"hardware: {missing}") from missing
        return machine.nodes, max(machine.gpus_per_node, 1)

    def _find(self) -> None:
        graph = self.spec.graph
        learners = [node for node in graph.learners() if self.spec.kind_of(node) != "critic"]
        if len(learners) != 1:
            names = ", ".join(f"`{name}`" for name in learners) or "none"
            raise ExportRefused(f"one learner is expected beside a critic, found {names}")
        (learner,) = learners
        kind = self.spec.kind_of(learner)
        if kind not in ("actor", "reward"):
            raise ExportRefused(f"`{learner}` is a {kind}: an actor or a reward model is expected")
        self.roles["rm" if kind == "reward" else "actor"] = learner
        live = [port for port in graph.teaching_ports(learner) if graph.edges_into(learner, port)]
        main = [port for port in live if port != "reference" or len(live) == 1]
        if len(main) != 1 or main[0] == "reference":
            named = ", ".join(f"`{learner}.{port}`" for port in main)
            raise ExportRefused(f"one teaching port is expected, found {named or 'none'}")
        self._rows(learner, main[0])
        if main[0] == "rewards":
            self._scorers(learner)
        for port, role in (("values", "critic"), ("reference", "reference")):
            sources = {edge.source.node for edge in graph.edges_into(learner, port)}
            if len(sources) > 1:
                raise ExportRefused(f"`{learner}.{port}` has {len(sources)} edges, one is expected")
            for source in sources:
                self.roles[role] = source
        if self.spec.schedule.phases:
            raise ExportRefused("schedule.phases: one phase is expected, without `phases`")
        self._probes()

    def _rows(self, learner: str, port: str) -> None:
        role = {"rewards": "prompts", "pairs": "preferences", "demonstrations": "demonstrations"}[
            port
        ]
        at = "prompts" if port == "rewards" else port
        edges = self.spec.graph.edges_into(learner, at)
        sources = [edge.source.node for edge in edges]
        if len(sources) != 1 or self.spec.kind_of(sources[0]) != "dataset":
            named = ", ".join(f"`{name}`" for name in sources) or "nothing"
            raise ExportRefused(f"`{learner}.{at}`: one dataset is expected, found {named}")
        self.roles[role] = sources[0]
        if self.spec.graph.edges_into(learner, "tools"):
            raise ExportRefused(f"`{learner}.tools`: tools are programs of each framework")

    def _scorers(self, learner: str) -> None:
        graph = self.spec.graph
        for edge in graph.edges_into(learner, "rewards"):
            node = edge.source.node
            kind = self.spec.kind_of(node)
            if kind == "filter":
                self.roles["informative"] = node
                node = graph.edges_into(node, "scores")[0].source.node
                kind = self.spec.kind_of(node)
            if kind != "reward":
                raise ExportRefused(f"`{node}` is a {kind}: only `reward` nodes score there")
            source: Any = getattr(self.spec.nodes[node], "source", None)
            if getattr(source, "name", None) == "overlong":
                role = "overlong"
            else:
                role = "reward" if "reward" not in self.roles else f"reward_{len(self.rewards) + 1}"
            self.roles[role] = node
            self.rewards[role] = float(edge.weight)

    def _probes(self) -> None:
        graph = self.spec.graph
        for name, node in self.spec.nodes.items():
            if node.kind != "evaluate":
                continue
            role = "probe" if getattr(node, "instead_of", None) else "fit"
            if role in self.roles:
                self.unsaid.append(f"nodes.{name}: there is one evaluation")
                continue
            self.roles[role] = name
            for port in ("rows", "pairs"):
                for edge in graph.edges_into(name, port):
                    if self.spec.kind_of(edge.source.node) == "dataset":
                        self.roles["held_out"] = edge.source.node

    def _algorithm(self) -> Any:
        """The learner's algorithm with every field filled."""
        learner = self.roles[self.learner]
        entries = node_algorithms(self.spec, learner).get(self.port, ())
        if len(entries) != 1:
            raise ExportRefused(f"nodes.{learner}.algorithm: one algorithm is expected")
        return resolve_algorithm(entries[0])

    def _name_the_rest(self) -> None:
        known = set(self.roles.values())
        for name, node in self.spec.nodes.items():
            if name in known:
                continue
            feeds = self.spec.graph.edges_out_of(name)
            if node.kind != "evaluate" and any(edge.target.node in known for edge in feeds):
                raise ExportRefused(f"nodes.{name}: a {node.kind} has no place there")
            self.unsaid.append(f"nodes.{name}: a {node.kind} has no place there")
        if self.spec.schedule.triggers:
            self.unsaid.append("schedule.triggers: there are none")
        if self.spec.schedule.anneal:
            self.unsaid.append("schedule.anneal: there is none")

    @property
    def epochs(self) -> int | None:
        """Passes over the dataset, where the loop counts them."""
        epochs = self.spec.schedule.epochs
        return epochs if epochs is None or isinstance(epochs, int) else epochs.count

    def dataset(self, role: str) -> str | None:
        """The path or id of a dataset; None where it is made here."""
        section = self.draft.get(f"nodes.{role}.source") or {}
        if section.get("type") in ("file", "hub"):
            return str(section["path"])
        node = self.roles.get(role)
        if node is not None:
            self.unsaid.append(
                f"nodes.{node}.source: rows of a task are made here: write them to a file"
            )
        return None


def export_loop(spec: LoopSpec, framework: str) -> Exported:
    """A loop with one learner as a configuration of a framework.

    Raises:
        ExportRefused: a part that the training depends on has no form there; the message names it.
    """
    module = MODULES.get(framework)
    if module is None:
        known = ", ".join(f"`{name}`" for name in MODULES)
        raise ExportRefused(f"there is no framework `{framework}`; known are {known}")
    parts = Parts(spec)
    table, settings = module.unshape(parts)
    settings = carried(table, parts) | settings
    name, text = module.write(settings, parts)
    again = parse(import_text(text, name=name).text).spec
    assert again is not None, "an import is a loop"
    parts.unsaid += told_apart(parts, Parts(again))
    key = module.KEY
    return Exported(
        framework=FRAMEWORKS[key],
        version=VERSIONS[key],
        name=name,
        text=text,
        unsaid=tuple(parts.unsaid),
    )


def carried(table: Table, parts: Parts) -> dict[str, Any]:
    """Settings that are one value of the loop and differ from the framework's default."""
    settings: dict[str, Any] = {}
    for name, row in table.items():
        if not isinstance(row, Carried) or "*" in name or not parts.draft.holds(row.to):
            continue
        value = parts.get(row.to)
        if value is None and None not in row.words.values():
            continue
        scale = parts.get(row.times) if row.times is not None else 1
        said = theirs(row, value, scale)
        if row.words and isinstance(value, str) and said not in row.words:
            parts.unsaid.append(f"{row.to}: `{value}` is not known there")
        elif isinstance(said, tuple):
            settings[name] = list(said)
        elif said != row.default or isinstance(said, bool) is not isinstance(row.default, bool):
            settings[name] = said
    return settings


def told_apart(before: Parts, after: Parts) -> list[str]:
    """What differs between a loop and what became of it, by path."""
    found: list[str] = []
    for role in before.roles:
        if role not in after.roles:
            found.append(f"nodes.{before.roles[role]}: it has no place there")
            continue
        for path in sorted(leaves(before, role) | leaves(after, role)):
            mine, other = before.get(path), after.get(path)
            if path.partition(".")[2].partition(".")[2] in NOT_COMPARED or is_equal(mine, other):
                continue
            shown_path = path.replace(f"nodes.{role}.", f"nodes.{before.roles[role]}.", 1)
            found.append(f"{shown_path}: {_value(mine)} here, {_value(other)} there")
    found += _algorithms_apart(before, after)
    for section in ("schedule", "run"):
        for path in sorted(leaves(before, section) | leaves(after, section)):
            if not is_equal(before.get(path), after.get(path)):
                mine, other = _value(before.get(path)), _value(after.get(path))
                found.append(f"{path}: {mine} here, {other} there")
    return found


def _algorithms_apart(before: Parts, after: Parts) -> list[str]:
    at = f"nodes.{before.roles[before.learner]}.algorithm"
    if type(before.algorithm) is not type(after.algorithm):
        return [f"{at}: another algorithm there"]
    names = (
        getattr(before.algorithm, "__dataclass_fields__", None)
        or type(before.algorithm).model_fields
    )
    found = []
    for name in names:
        if name in ("name", "family", "weight"):
            continue
        mine, other = getattr(before.algorithm, name), getattr(after.algorithm, name)
        if not is_equal(_plain(mine), _plain(other)):
            found.append(f"{at}.{name}: {_value(_plain(mine))} here, {_value(_plain(other))} there")
    return found


def leaves(parts: Parts, role: str) -> set[str]:
    """Paths of all values that are written of a node or a section, except its algorithm."""
    is_section = role in parts.draft.sections
    top = parts.draft.sections[role] if is_section else parts.draft.nodes.get(role, {})
    head = role if is_section else f"nodes.{role}"

    def walk(value: Any, path: str) -> set[str]:
        if isinstance(value, Mapping) and value:
            return {leaf for key, item in value.items() for leaf in walk(item, f"{path}.{key}")}
        return {path}

    kept = {key: value for key, value in top.items() if key not in ("algorithm", "note")}
    return walk(kept, head) if kept else set()


def is_equal(mine: Any, other: Any) -> bool:
    if isinstance(mine, int | float) and isinstance(other, int | float):
        return abs(mine - other) <= 1e-9 * max(abs(mine), abs(other))
    if isinstance(mine, list | tuple) and isinstance(other, list | tuple):
        return len(mine) == len(other) and all(map(is_equal, mine, other))
    return bool(mine == other)


def _plain(value: Any) -> Any:
    return value.model_dump() if hasattr(value, "model_dump") else value


def _value(value: Any) -> str:
    return "null" if value is None else shown(value)
