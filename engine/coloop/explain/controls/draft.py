"""A loop while it is changed: plain nodes, edges and schedule, which stay consistent.

    draft = Draft(spec)          edit nodes and edges
    draft.finish()               drops what names a removed node, edge or phase; the new document

What only served a removed part leaves with it: nodes that no learner, evaluation or filled buffer
needs any more. Nodes that nothing needed before are left alone.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from coloop.errors import SpecProblem
from coloop.spec.algorithm import kl_references
from coloop.spec.base import as_tuple
from coloop.spec.changes import TEACHING, as_edge
from coloop.spec.documents import edge_names, split_path
from coloop.spec.graph import LoopSpec, PortRef, reach
from coloop.spec.io import to_dict
from coloop.spec.paths import find
from coloop.spec.ports import PORTS

Edge = dict[str, Any]
Port = tuple[str, str]


class Draft:
    def __init__(self, spec: LoopSpec) -> None:
        self.spec = spec
        self.document = copy.deepcopy(to_dict(spec))
        self.nodes: dict[str, dict[str, Any]] = self.document["nodes"]
        self.edges: list[Edge] = [dict(as_edge(edge)) for edge in self.document.get("edges", ())]
        self.schedule: dict[str, Any] = self.document["schedule"]
        self._needed_before = self._needed()
        self._with_goals = {
            phase["name"]
            for phase in self.phases()
            if phase.get("learn") or phase.get("fill") or phase.get("until")
        }
        self._name_edges()

    # ---- edges

    def edges_into(self, node: str, *ports: str) -> list[Edge]:
        """Edges into these ports; without ports into all."""
        return [
            edge
            for edge in self.edges
            if target_of(edge).node == node and (not ports or target_of(edge).port in ports)
        ]

    def add_edge(self, source: str, target: str, **options: Any) -> Edge:
        edge = {"from": source, "to": target, **options}
        self.edges.append(edge)
        return edge

    def remove_edges(self, is_gone: Callable[[Edge], bool]) -> None:
        self.edges = [edge for edge in self.edges if not is_gone(edge)]

    def upstream(self, *starts: str, through: Callable[[str], bool] = lambda _: True) -> set[str]:
        """These nodes and all whose rows reach them, through generate and score ports.

        Args:
            through: whether to go on above a node.
        """

        def above(node: str) -> list[str]:
            if node not in self.nodes or not through(node):
                return []
            return [source_of(edge).node for edge in self.edges_into(node) if self.brings(edge)]

        return set(reach(starts, above))

    def brings(self, edge: Edge) -> bool:
        """Whether an edge brings rows or scores that its target works on, not what it learns."""
        return self._phase_of(edge) in ("generate", "score")

    def teaches(self, edge: Edge) -> bool:
        """Whether the target learns from what an edge brings. Which ports and references teach is
        up to the node's algorithm, and does not change."""
        target, source = target_of(edge), source_of(edge).node
        port = PORTS[self.nodes[target.node]["kind"]].inputs.get(target.port)
        if port is None or not port.teaching or not port.is_optional:
            return port is not None and port.teaching
        before = self.spec.nodes.get(target.node)
        is_taught = before is not None and self.spec.graph.is_taught_at(target.node, target.port)
        return is_taught and source not in kl_references(before)

    def _phase_of(self, edge: Edge) -> str | None:
        target = target_of(edge)
        kind = self.nodes.get(target.node, {}).get("kind")
        port = PORTS[kind].inputs.get(target.port) if kind else None
        return None if port is None else port.phase

    def _name_edges(self) -> None:
        """Name edges in paths by their ends or id, so that they may move in the list."""
        for holder in self._path_holders():
            for path in list(holder):
                holder[self._spelled(path)] = holder.pop(path)
        for item in self.schedule.get("anneal", ()):
            for field in ("path", "complement"):
                if item.get(field):
                    item[field] = self._spelled(item[field])

    def _spelled(self, path: str) -> str:
        if not path.startswith("edges."):
            return path
        with suppress(SpecProblem):
            _, index, *rest = find(self.spec, path).parts
            return ".".join(["edges", self.spec.edges[int(index)].key, *map(str, rest)])
        return path

    # ---- models

    def model(self, node: str) -> dict[str, Any]:
        model: dict[str, Any] = self.nodes[node].get("model") or {}
        return model

    # ---- nodes

    def new_name(self, wanted: str) -> str:
        name, number = wanted[:60], 2
        while name in self.nodes:
            name, number = f"{wanted[:57]}_{number}", number + 1
        return name

    def add_node(self, wanted: str, node: Mapping[str, Any]) -> str:
        name = self.new_name(wanted)
        self.nodes[name] = dict(node)
        return name

    def drop(self, names: Iterable[str]) -> None:
        """Remove nodes with their edges; weights that a node that stays shares with one of them
        become its own."""
        gone = set(names)
        for name in list(self.nodes):
            if name not in gone and (owner := self.owner(name)) in gone:
                self.hand_over(owner, name)
        for name in gone:
            self.nodes.pop(name, None)
        self.remove_edges(lambda edge: {source_of(edge).node, target_of(edge).node} & gone != set())

    def hand_over(self, owner: str, new: str) -> None:
        """Another node takes over the weights that a node owned and shared with it."""
        if owner == new:
            return
        self._rename_owner(owner, new)
        for field in ("model", "training", "pool"):
            if field in self.nodes[owner]:
                self.nodes[new][field] = self.nodes[owner].pop(field)

    def _rename_owner(self, old: str, new: str) -> None:
        """Every reference to the weights of one node becomes one to another."""
        for node in self.nodes.values():
            model = node.get("model") or {}
            for field in ("of", "with"):
                if model.get(field) == old:
                    model[field] = new
        prefixes = tuple(f"nodes.{old}.{part}" for part in ("training", "model", "pool"))
        for holder in self._path_holders():
            for path in list(holder):
                if path.startswith(prefixes):
                    holder[path.replace(f"nodes.{old}.", f"nodes.{new}.", 1)] = holder.pop(path)
        for item in self.schedule.get("anneal", ()):
            if item["path"].startswith(prefixes):
                item["path"] = item["path"].replace(f"nodes.{old}.", f"nodes.{new}.", 1)
        for actions in self._actions():
            if old in as_tuple(actions.get("reset_optimizer")):
                named = as_tuple(actions["reset_optimizer"])
                actions["reset_optimizer"] = [new if name == old else name for name in named]

    # ---- schedule

    def phases(self) -> Iterator[dict[str, Any]]:
        """Every phase once, groups expanded."""
        yield from _phases(self.schedule.get("phases", ()))

    def live_ports(self) -> set[Port]:
        """Teaching ports that some phase trains."""
        connected = {
            (target_of(edge).node, target_of(edge).port)
            for edge in self.edges
            if target_of(edge).node in self.nodes and self.teaches(edge)
        }
        if not self.schedule.get("phases"):
            return connected
        names = {name for phase in self.phases() for name in phase.get("learn", ())}
        return {(n, port) for n, port in connected if n in names or f"{n}.{port}" in names}

    def drop_dead_lessons(self) -> None:
        """Remove the edges into teaching ports that no phase trains."""
        live = self.live_ports()
        self.remove_edges(
            lambda edge: (
                self.teaches(edge) and (target_of(edge).node, target_of(edge).port) not in live
            )
        )

    # ---- the end

    def finish(self) -> dict[str, Any]:
        """Drop what has lost its meaning and return the document."""
        self.drop_dead_lessons()
        while gone := self._unread() | (self._needed_before & set(self.nodes)) - self._needed():
            self.drop(gone)
        self._clean_algorithms()
        self._clean_schedule()
        self._clean_machine()
        self.document["edges"] = [
            f"{edge['from']} -> {edge['to']}" if set(edge) == {"from", "to"} else edge
            for edge in self.edges
        ]
        layout = self.document.get("layout")
        if layout is not None:
            known = {name: at for name, at in layout.items() if name in self.nodes or "$" in name}
            self.document["layout"] = known
        return self.document

    def _unread(self) -> set[str]:
        """Buffers that something read before, and nothing reads any more."""
        read = {source_of(edge).node for edge in self.edges}
        graph = self.spec.graph
        return {
            name
            for name, node in self.nodes.items()
            if node["kind"] == "buffer" and name not in read and graph.edges_out_of(name)
        }

    def _needed(self) -> set[str]:
        """Nodes that a learner, an evaluation or a filled buffer works with."""
        goals = [name for name, node in self.nodes.items() if node["kind"] == "evaluate"]
        goals += [name for name, _ in sorted(self.live_ports())]
        for holder in (self.schedule, *self.phases()):
            goals += as_tuple(holder.get("fill"))
            goals += [name.removesuffix(".full") for name in as_tuple(holder.get("until"))]

        def needs(name: str) -> list[str]:
            node = self.nodes.get(name)
            if node is None:
                return []
            model = node.get("model") or {}
            others = [model.get("of"), model.get("with"), node.get("instead_of")]
            others += [port.partition(".")[0] for port in node.get("of") or ()]
            others += [source_of(edge).node for edge in self.edges_into(name)]
            return [other for other in others if other in self.nodes]

        return {name for name in reach(goals, needs) if name in self.nodes}

    def _clean_algorithms(self) -> None:
        """Remove the algorithms of teaching ports that nothing reaches any more."""
        for name, node in self.nodes.items():
            algorithm = node.get("algorithm")
            used = {target_of(e).port for e in self.edges_into(name) if self.teaches(e)}
            if not isinstance(algorithm, dict) or "name" in algorithm:
                if algorithm is not None and not used:
                    del node["algorithm"]
                continue
            before = {edge.target.port for edge in self.spec.graph.edges_into(name)}
            kept = {k: v for k, v in algorithm.items() if k in used or k not in before}
            if kept:
                node["algorithm"] = kept
            else:
                del node["algorithm"]
        for name, node in self.nodes.items():
            by = ((node.get("credit") or {}).get("class_weights") or {}).get("by")
            if by is not None and by not in self.nodes:
                del node["credit"]["class_weights"]
            was_rewarded = self.spec.graph.edges_into(name, "rewards")
            if was_rewarded and not self.edges_into(name, "rewards"):
                node.pop("credit", None)
            if not self._is_taught(name):
                node.pop("training", None)
                node.pop("credit", None)

    def _is_taught(self, name: str) -> bool:
        """Whether something teaches the weights of a node that something taught before."""
        was_taught = self.spec.kind_of(name) is None or not self._taught(self._before_edges(), name)
        return was_taught or self._taught(self.edges, name)

    def _before_edges(self) -> list[Edge]:
        return [{"from": str(e.source), "to": str(e.target)} for e in self.spec.edges]

    def _taught(self, edges: Iterable[Edge], name: str) -> bool:
        owner = self.owner(name)
        return any(
            self.teaches(edge) and self.owner(target_of(edge).node) == owner
            for edge in edges
            if target_of(edge).node in self.nodes
        )

    def owner(self, name: str) -> str:
        """The node that owns a node's weights, by what the draft says now."""
        seen: list[str] = []
        while name in self.nodes and name not in seen:
            seen.append(name)
            model = self.model(name)
            if model.get("type") != "shared" or model.get("lora"):
                break
            name = model["with"]
        return name

    def _clean_schedule(self) -> None:
        schedule = self.schedule
        gone = self._clean_phases(schedule)
        rules = schedule.get("learn") or {}
        if rules:
            kept = {name: rule for name, rule in rules.items() if self._is_learner(name)}
            schedule["learn"] = kept
        self._keep(schedule, "order", lambda name: name in self.nodes and self._is_learner(name))
        self._keep(schedule, "fill", lambda name: name in self.nodes)
        names = {phase["name"] for phase in self.phases()} | {
            item["name"] for item in schedule.get("phases", ()) if item.get("name")
        }
        self._clean_triggers(names)
        self._clean_anneals(names)
        self._clean_refreshes(gone)
        for field in ("learn", "order", "anneal", "triggers", "fill"):
            if field in schedule and not schedule[field]:
                del schedule[field]

    def _is_learner(self, name: str) -> bool:
        return any(self.teaches(edge) for edge in self.edges_into(name))

    def _clean_phases(self, schedule: dict[str, Any]) -> dict[str, str | None]:
        """Remove phases without a goal; by name, the phase that follows a removed one."""
        gone: dict[str, str | None] = {}
        before = [phase["name"] for phase in self.phases()]
        if "phases" in schedule:
            schedule["phases"] = self._kept_phases(schedule["phases"], gone)
        after = {phase["name"] for phase in self.phases()}
        for name in gone:
            later = before[before.index(name) + 1 :]
            gone[name] = next((other for other in later if other in after), None)
        return gone

    def _kept_phases(self, items: list[dict[str, Any]], gone: dict[str, str | None]) -> list[Any]:
        kept: list[dict[str, Any]] = []
        pending: dict[str, Any] = {}
        for item in items:
            self._clean_settings(item)
            if "phases" in item:
                item["phases"] = self._kept_phases(item["phases"], gone)
                if not item["phases"]:
                    continue
            else:
                had_goals = item["name"] in self._with_goals
                self._keep(item, "learn", self._can_learn)
                self._keep(item, "fill", lambda name: name in self.nodes)
                until = as_tuple(item.get("until"))
                left = [name for name in until if name.removesuffix(".full") in self.nodes]
                if until and left:
                    item["until"] = left if len(left) > 1 else left[0]
                is_empty = not (item.get("learn") or item.get("fill") or left)
                if (had_goals and is_empty) or (until and not left):
                    gone[item["name"]] = None
                    pending = _merged(pending, item.get("do") or {})
                    continue
            if pending:
                item["do"] = _merged(pending, item.get("do") or {})
                pending = {}
            kept.append(item)
        return kept

    def _can_learn(self, name: str) -> bool:
        node, _, port = name.partition(".")
        ports = [port] if port else []
        return any(self.teaches(edge) for edge in self.edges_into(node, *ports))

    def _keep(self, holder: dict[str, Any], field: str, is_kept: Callable[[str], bool]) -> None:
        if field not in holder:
            return
        before = as_tuple(holder[field])
        names = [name for name in before if is_kept(name)]
        if len(names) == len(before):
            return
        if not names:
            del holder[field]
        elif isinstance(holder[field], str):
            holder[field] = names[0]
        else:
            holder[field] = names

    def _clean_settings(self, item: dict[str, Any]) -> None:
        if "set" in item:
            item["set"] = {p: value for p, value in item["set"].items() if self._is_there(p)}
            if not item["set"]:
                del item["set"]
        if item.get("do") is not None:
            self._clean_actions(item["do"])
            if not item["do"]:
                del item["do"]

    def _clean_actions(self, do: dict[str, Any]) -> None:
        self._keep(
            do, "reset_optimizer", lambda name: name in self.nodes and self._taught_now(name)
        )
        self._keep(do, "clear", lambda name: name in self.nodes)
        if "refresh" in do:
            orders = as_tuple(do["refresh"])
            left = [one for one in orders if self._is_refreshed(one["node"])]
            if left:
                do["refresh"] = left if isinstance(do["refresh"], list) else left[0]
            else:
                del do["refresh"]
        if "set" in do:
            do["set"] = {path: value for path, value in do["set"].items() if self._is_there(path)}
            if not do["set"]:
                del do["set"]

    def _taught_now(self, name: str) -> bool:
        return self._taught(self.edges, name)

    def _is_refreshed(self, name: str) -> bool:
        return self.model(name).get("type") in ("snapshot", "copy") if name in self.nodes else False

    def _is_there(self, path: str) -> bool:
        """Whether the node or edge of a path is still in the loop."""
        words = split_path(path)
        if words[0] == "nodes":
            return words[1] in self.nodes and self._has_section(words)
        if words[0] == "edges":
            return any(words[1] in edge_names(edge) for edge in self.edges)
        return True

    def _has_section(self, words: tuple[str, ...]) -> bool:
        """Whether the section that a path below a node names is still there."""
        node, section = self.nodes[words[1]], words[2]
        if section not in ("training", "credit", "algorithm"):
            return True
        if section == "algorithm" and len(words) > 3 and words[3] in TEACHING:
            algorithm = node.get("algorithm") or {}
            return "name" in algorithm or words[3] in algorithm
        return section in node or not self._was_set(words[1], section)

    def _was_set(self, name: str, section: str) -> bool:
        return getattr(self.spec.nodes.get(name), section, None) is not None

    def _clean_triggers(self, phases: set[str]) -> None:
        kept = []
        for trigger in self.schedule.get("triggers", ()):
            self._clean_actions(trigger["do"])
            was_limited = bool(trigger.get("in"))
            self._keep(trigger, "in", lambda name: name in phases)
            is_known = trigger["when"]["metric"].partition(".")[0] in {*self.nodes, "run"}
            if trigger["do"] and is_known and not (was_limited and not trigger.get("in")):
                kept.append(trigger)
        if "triggers" in self.schedule:
            self.schedule["triggers"] = kept

    def _clean_anneals(self, phases: set[str]) -> None:
        kept = []
        for item in self.schedule.get("anneal", ()):
            other = item.get("complement")
            if not self._is_there(item["path"]):
                if other is not None and self._is_there(other):
                    edge = next(e for e in self.edges if split_path(other)[1] in edge_names(e))
                    edge.pop("weight", None)
                continue
            if other is not None and not self._is_there(other):
                del item["complement"]
            was_limited = bool(item.get("over"))
            self._keep(item, "over", lambda name: name in phases)
            if not (was_limited and not item.get("over")):
                kept.append(item)
        if "anneal" in self.schedule:
            self.schedule["anneal"] = kept

    def _clean_refreshes(self, gone: Mapping[str, str | None]) -> None:
        """A copy or refresh at a removed phase happens at the next one that is left; a snapshot
        that was taken once becomes a copy where that phase is repeated."""
        repeated = {
            phase["name"]
            for item in self.schedule.get("phases", ())
            if item.get("repeat", 1) > 1
            for phase in _phases([item])
        }
        for name in list(self.nodes):
            model = self.model(name)
            if model.get("type") == "copy" and model.get("at") in gone:
                model["at"] = gone[model["at"]]
                if model["at"] is None:
                    del model["at"]
            refresh = model.get("refresh")
            if isinstance(refresh, dict) and "at" in refresh:
                names = [gone.get(at, at) for at in as_tuple(refresh["at"])]
                left = list(dict.fromkeys(at for at in names if at is not None))
                if not left:
                    model["refresh"] = "never"
                elif names != list(as_tuple(refresh["at"])):
                    was_once = len(names) == 1 and names[0] not in as_tuple(refresh["at"])
                    if was_once and left[0] in repeated and not model.get("ema"):
                        del model["refresh"]
                        model |= {"type": "copy", "at": left[0]}
                    else:
                        model["refresh"] = {"at": left if len(left) > 1 else left[0]}

    def _clean_machine(self) -> None:
        """Remove pools that only removed nodes used."""
        pools = (self.document.get("hardware") or {}).get("pools")
        if not pools:
            return
        then = {
            pool
            for node in to_dict(self.spec)["nodes"].values()
            for pool in (node.get("pool"), (node.get("rollout") or {}).get("pool"))
        }
        used = {
            pool
            for node in self.nodes.values()
            for pool in (node.get("pool"), (node.get("rollout") or {}).get("pool"))
        }
        for name in list(pools):
            if name in then - used and len(pools) > 1:
                del pools[name]

    def _path_holders(self) -> Iterator[dict[str, Any]]:
        """Mappings whose keys are paths."""
        items = list(_items(self.schedule.get("phases", ())))
        for item in items:
            if "set" in item:
                yield item["set"]
        for trigger in self.schedule.get("triggers", ()):
            if "set" in trigger["do"]:
                yield trigger["do"]["set"]

    def _actions(self) -> Iterator[dict[str, Any]]:
        for item in (*_items(self.schedule.get("phases", ())), *self.schedule.get("triggers", ())):
            if item.get("do") is not None:
                yield item["do"]


def source_of(edge: Mapping[str, Any]) -> PortRef:
    return PortRef.read(edge["from"])


def target_of(edge: Mapping[str, Any]) -> PortRef:
    return PortRef.read(edge["to"])


def _items(items: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for item in items:
        yield item
        yield from _items(item.get("phases", ()))


def _phases(items: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    return (item for item in _items(items) if "phases" not in item)


def _merged(first: Mapping[str, Any], then: Mapping[str, Any]) -> dict[str, Any]:
    """Actions of a removed phase, then those of the next one."""
    merged = {**first, **then}
    for field in first.keys() & then.keys():
        if field != "checkpoint":
            later = [one for one in as_tuple(then[field]) if one not in as_tuple(first[field])]
            merged[field] = [*as_tuple(first[field]), *later]
    return merged
