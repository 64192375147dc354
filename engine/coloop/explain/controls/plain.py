"""`plain`: the same updates, optimizer, data and tokens without the partners.

rewards    those that depend on no partner stay; if there is none, the outcome that the loop's
           metric measures takes their place
pairs      of texts of the data against texts of a partner: SFT on the side of the data, through
           the same buffers and phases
prompts    that a partner wrote: the rows of the dataset that the partner began with
nothing    left to reward: SFT on the demonstrations that the loop has, in the same steps
"""

import copy
from collections.abc import Iterable, Iterator
from typing import Any, Literal, get_args

from coloop.errors import ControlRefused
from coloop.explain.controls.draft import Draft, source_of, target_of
from coloop.explain.controls.frozen import Edit, leave, phases_with_paths
from coloop.explain.controls.roles import Roles, measured_scorers, names, told
from coloop.explain.controls.scores import PASSING, SCORERS
from coloop.spec.nodes import DatasetNode

WRITTEN = ("rows", "rollouts", "pairs")
"""Inputs of a buffer that a step writes."""
CHOSEN_BY = frozenset({"labels", "selectors"})
SFT = {"name": "sft"}
Rows = Literal["as they are", "with columns", "to train"]
ROWS: tuple[Rows, ...] = get_args(Rows)
"""Of which rows prompts are made that a partner wrote: the rows that the partner began with, the
same with the columns of the held-out rows, or the train split of the held-out rows."""


def plain_edits(roles: Roles) -> Iterator[Edit]:
    """Ways to write the loop without its partners, the best first.

    Raises:
        ControlRefused: the main learner has no partner.
    """
    if "reference" in roles.spec.graph.teaching_ports(roles.main):
        yield lambda draft: _texts_of_teachers(roles, draft)
    if not roles.partners:
        raise ControlRefused(
            f"nothing trains beside `{roles.main}`: the loop is its own plain control", roles.main
        )
    for rows in ROWS:
        yield lambda draft, rows=rows: _alone(roles, draft, rows)  # type: ignore[misc]
    yield lambda draft: _imitating(roles, draft)


# Without the partners.


def _alone(roles: Roles, draft: Draft, rows: Rows) -> str:
    gone = _partner_nodes(roles)
    said = [f"{told(roles.partners, 'leaves')} the loop"]
    said += _own_tools(roles, draft, gone)
    said += _own_prompts(roles, draft, gone, rows)
    said += _own_choices(roles, draft, gone)
    said += _own_pairs(roles, draft, gone)
    said += _own_rewards(roles, draft, gone)
    _cut_probes(draft, gone)
    origins = _origins(roles, draft, gone)
    draft.drop(gone - origins)
    draft.remove_edges(lambda edge: source_of(edge).node in origins)
    while starved := {name for name in draft.nodes if _is_starved(roles, draft, name)} - origins:
        draft.drop(starved)
    if origins:
        said.append(f"{names(origins)} trains only what `{roles.main}` starts from")
    return "; ".join(said)


def _origins(roles: Roles, draft: Draft, gone: set[str]) -> set[str]:
    """Removed nodes whose weights others start from: they learn until training together begins. A
    critic starts from the main learner instead."""
    origins: set[str] = set()
    waiting = [name for name in draft.nodes if name not in gone]
    while waiting:
        name = waiting.pop()
        model = draft.model(name)
        source = model.get("of")
        if source not in gone:
            continue
        if draft.nodes[name]["kind"] == "critic":
            model["of"] = draft.owner(roles.main)
        elif model["type"] == "copy" and source not in origins:
            origins.add(source)
            waiting.append(source)
    paths = {phase.path for phase in roles.together}
    for path, phase in phases_with_paths(draft):
        if path in paths:
            leave(phase, origins)
    return origins


def _own_choices(roles: Roles, draft: Draft, gone: set[str]) -> list[str]:
    """Where a partner's scores choose what is taught, the outcome chooses."""
    outcome = _outcome(roles, draft, gone)
    lessons = [source_of(e).node for e in draft.edges_into(roles.main) if draft.teaches(e)]
    passing = {
        name
        for name in draft.upstream(*lessons)
        if draft.nodes[name]["kind"] in PASSING
        and draft.edges_into(name, *WRITTEN)
        and not any(
            _depends(draft, edge, gone, stop=roles.main)
            for edge in draft.edges_into(name, *WRITTEN)
        )
    }
    judged = [
        edge
        for name in passing
        for edge in draft.edges_into(name, "scores")
        if _depends(draft, edge, gone, stop=roles.main)
    ]
    if outcome is None or not judged:
        return []
    for edge in judged:
        edge["from"] = f"{outcome}.scores"
        edge.pop("aggregate", None)
    return [f"`{outcome}`, which the metric reads, chooses the rows for `{roles.main}`"]


def _is_starved(roles: Roles, draft: Draft, name: str) -> bool:
    """Whether a node works on rows, and none arrive any more."""
    before = roles.spec.nodes.get(name)
    if before is None or before.kind in ("dataset", "evaluate", "tool"):
        return False
    ports = WRITTEN if before.kind == "buffer" else before.row_inputs
    had = any(edge.target.port in ports for edge in roles.spec.graph.edges_into(name))
    return had and not draft.edges_into(name, *ports)


def _partner_nodes(roles: Roles) -> set[str]:
    """The partners with every node on their weights, but none on those of the main learner."""
    owners = {roles.owner_of(name) for name in roles.partners} - {roles.owner_of(roles.main)}
    same = {name for name in roles.spec.nodes if roles.owner_of(name) in owners}
    return same | set(roles.partners)


def _own_tools(roles: Roles, draft: Draft, gone: set[str]) -> list[str]:
    """Tools that a partner stands behind leave."""
    edges = draft.edges_into(roles.main, "tools")
    called = [edge for edge in edges if _depends(draft, edge, gone, stop=roles.main)]
    for edge in called:
        draft.edges.remove(edge)
    if called and len(called) == len(edges):
        draft.nodes[roles.main].get("rollout", {}).pop("turns", None)
    tools = names(dict.fromkeys(source_of(edge).node for edge in called))
    return [f"`{roles.main}` cannot call {tools}"] if called else []


def _own_prompts(roles: Roles, draft: Draft, gone: set[str], rows: Rows) -> list[str]:
    """Prompts that a partner wrote become rows of the dataset that it began with."""
    read = [edge for edge in draft.edges_into(roles.main) if draft.brings(edge)]
    written = [edge for edge in read if _depends(draft, edge, gone, stop=roles.main)]
    if not written:
        if rows != ROWS[0]:
            raise ControlRefused("there is no other way to prompt it", roles.main)
        return []
    if other := next((edge for edge in written if target_of(edge).port != "prompts"), None):
        raise ControlRefused(
            f"`{other['to']}` reads what {names(roles.partners)} writes: without it there is "
            f"nothing for `{roles.main}` to work on",
            roles.main,
        )
    between = draft.upstream(*(source_of(edge).node for edge in written))
    source = _dataset(roles, draft, between, rows)
    for edge in written:
        draft.edges.remove(edge)
    if not any(source_of(e).node == source for e in draft.edges_into(roles.main, "prompts")):
        draft.add_edge(f"{source}.rows", f"{roles.main}.prompts")
    for node in draft.nodes.values():
        if node["kind"] == "evaluate" and node.get("instead_of") in between - {source}:
            node["instead_of"] = source
    _fit_mini_batch(roles, draft, source)
    return [f"the prompts of `{roles.main}` are the rows of `{source}`"]


def _dataset(roles: Roles, draft: Draft, between: set[str], rows: Rows) -> str:
    """The dataset behind the prompts: itself, a new one with the columns of the held-out rows, or
    the train split of these.

    Raises:
        ControlRefused: there is none, or it would be the same as that of another way.
    """
    order = list(roles.spec.nodes)
    behind = [n for n in between if isinstance(roles.spec.nodes.get(n), DatasetNode)]
    sources = sorted((n for n in behind if _is_read_by_step(roles, n)), key=order.index)
    if not sources:
        raise ControlRefused(
            f"{names(roles.partners)} writes the prompts of `{roles.main}`, and no dataset stands "
            "behind it",
            roles.main,
        )
    source = sources[0]
    if rows == "as they are":
        return source
    probe = (roles.metric or "").partition(".")[0]
    held = next((source_of(edge).node for edge in draft.edges_into(probe, "rows")), None)
    measured: dict[str, Any] = copy.deepcopy(draft.nodes[held]) if held is not None else {}
    new = copy.deepcopy(draft.nodes[source])
    if rows == "with columns":
        if not measured.get("columns"):
            raise ControlRefused("the held-out rows have no columns of their own", source)
        new["columns"] = {**new.get("columns", {}), **measured["columns"]}
    else:
        if "split" not in measured.get("source", {}):
            raise ControlRefused("the held-out rows have no train split", source)
        measured["source"]["split"] = "train"
        each = {k: v for k, v in new.items() if k == "rows_per_step"}
        new = {**{k: v for k, v in measured.items() if k != "rows_per_step"}, **each}
    return draft.add_node(f"{roles.main}_{source}", new)


def _fit_mini_batch(roles: Roles, draft: Draft, dataset: str) -> None:
    """Mini-batches that divide the rows of a step, about as many as before."""
    owner = draft.owner(roles.main)
    size = (draft.nodes[owner].get("training") or {}).get("mini_batch")
    each = draft.nodes[dataset].get("rows_per_step")
    completions = (draft.nodes[roles.main].get("rollout") or {}).get("completions_per_prompt", 1)
    if not size or not each or (each * completions) % size == 0:
        return
    count = max(round(each * completions / size), 1)
    while (each * completions) % count:
        count -= 1
    path, fitted = f"nodes.{owner}.training.mini_batch", each * completions // count
    live = {phase.path for phase in roles.phases if (roles.main, "rewards") in phase.live}
    for where, phase in phases_with_paths(draft):
        if where in live:
            phase["set"] = {**phase.get("set", {}), path: fitted}
    if not draft.schedule.get("phases"):
        draft.nodes[owner]["training"]["mini_batch"] = fitted


def _is_read_by_step(roles: Roles, dataset: str) -> bool:
    """Whether rows of a dataset are prompts, not a library or the documents of a tool."""
    targets = roles.spec.graph.edges_out_of(dataset)
    return any(edge.target.port not in ("documents", "library") for edge in targets)


def _own_pairs(roles: Roles, draft: Draft, gone: set[str]) -> list[str]:
    """SFT on the chosen side of pairs whose other side a partner wrote."""
    edges = [e for e in draft.edges_into(roles.main, "pairs") if _depends(draft, e, gone)]
    if not edges:
        return []
    pairings = {
        name
        for edge in edges
        for name in draft.upstream(source_of(edge).node)
        if draft.nodes[name]["kind"] == "pairs"
    }
    for name in pairings:
        chosen = draft.edges_into(name, "chosen")
        if len(chosen) != 1 or _depends(draft, chosen[0], gone):
            raise ControlRefused(
                f"the pairs of `{name}` have no side that is of the data alone", name
            )
        source = str(source_of(chosen[0]))
        for edge in draft.edges:
            if source_of(edge).node == name:
                edge["from"] = source
        draft.drop([name])
    _pairs_to_rows(draft)
    _switch_lessons(roles, draft, roles.main, "pairs", "demonstrations", edges)
    return [f"`{roles.main}` imitates the chosen side of the same pairs (SFT)"]


def _pairs_to_rows(draft: Draft) -> None:
    """What passed pairs on passes rows on; what scored pairs for a learner is cut off."""
    for edge in list(draft.edges):
        source, target = source_of(edge), target_of(edge)
        passes = draft.nodes[target.node]["kind"] in ("buffer", "filter")
        if source.port == "pairs" or target.port != "pairs" or not passes:
            continue
        edge["to"] = f"{target.node}.rows"
        for other in draft.edges:
            if other["from"] == f"{target.node}.pairs":
                other["from"] = f"{target.node}.rows"
    for edge in list(draft.edges):
        source, target = source_of(edge), target_of(edge)
        is_scorer = target.port in ("pairs", "comparisons") and not draft.teaches(edge)
        if source.port != "pairs" and is_scorer:
            draft.edges.remove(edge)


def _switch_lessons(
    roles: Roles, draft: Draft, learner: str, old: str, new: str, edges: Iterable[dict[str, Any]]
) -> None:
    """Edges into one teaching port end at another, live in the phases in which they were."""
    moved = list(edges)
    others = draft.edges_into(learner, new)
    before, after = f"{learner}.{old}", f"{learner}.{new}"
    for number, edge in enumerate(moved):
        edge["to"] = after
        if others:
            edge.setdefault("id", _new_id(draft, f"{learner}_{old}_rows", number))
            edge["weight"] = 0.0
    for edge in others:
        edge.setdefault("id", _new_id(draft, f"{learner}_{new}_rows", 0))
    section = draft.nodes[learner].get("algorithm") or {}
    algorithms = {} if "name" in section else dict(section)
    algorithms.setdefault(new, dict(SFT))
    algorithms.pop(old, None)
    draft.nodes[learner]["algorithm"] = algorithms
    for phase in draft.phases():
        learn = list(phase.get("learn", ()))
        if before not in learn and learner not in learn:
            continue
        phase["learn"] = [after if name == before else name for name in learn]
        if others:
            values = {f"edges.{edge['id']}.weight": 1.0 for edge in moved}
            if after not in learn:
                values |= {f"edges.{edge['id']}.weight": 0.0 for edge in others}
            phase["set"] = {**phase.get("set", {}), **values}


def _new_id(draft: Draft, stem: str, number: int) -> str:
    known = {edge.get("id") for edge in draft.edges}
    name = stem
    while name in known:
        number += 1
        name = f"{stem}_{number}"
    return name


def _own_rewards(roles: Roles, draft: Draft, gone: set[str]) -> list[str]:
    """Rewards that depend on no partner, and the outcome that the metric measures in place of the
    others if it is none of them."""
    edges = draft.edges_into(roles.main, "rewards")
    judged = [edge for edge in edges if _depends(draft, edge, gone, stop=roles.main)]
    if not judged:
        return []
    left = [edge for edge in edges if edge not in judged]
    outcome = _outcome(roles, draft, gone)
    if not left and outcome is None:
        raise ControlRefused(
            f"every reward of `{roles.main}` depends on {names(roles.partners)}, and its metric "
            f"measures no outcome without it",
            roles.main,
        )
    for edge in judged:
        draft.edges.remove(edge)
    kept = list(dict.fromkeys(source_of(edge).node for edge in left))
    if outcome is not None and outcome not in draft.upstream(*kept):
        weight = sum(edge.get("weight", 1.0) for edge in judged)
        options = {} if weight == 1.0 else {"weight": weight}
        draft.add_edge(f"{outcome}.scores", f"{roles.main}.rewards", **options)
        return [f"`{outcome}`, which the metric reads, is the reward of `{roles.main}` instead"]
    only = "is the only reward" if len(kept) == 1 else "are the only rewards"
    return [f"{names(kept)} {only} of `{roles.main}`"]


def _outcome(roles: Roles, draft: Draft, gone: set[str]) -> str | None:
    """The scorer of the main learner's texts that the metric reads."""
    if roles.metric is None:
        return None
    for name in measured_scorers(roles.spec, roles.metric):
        node = draft.nodes.get(name)
        if node is None or node["kind"] not in SCORERS or "model" in node:
            continue
        above = draft.upstream(name, through=lambda other: other != roles.main)
        if roles.main in above and not above & gone:
            return name
    return None


def _depends(draft: Draft, edge: dict[str, Any], gone: set[str], stop: str | None = None) -> bool:
    """Whether what an edge brings needs a removed node; not through the rows of `stop`."""
    start = source_of(edge).node
    return bool(gone & draft.upstream(start, through=lambda name: name != stop))


def _cut_probes(draft: Draft, gone: set[str]) -> None:
    """Evaluations lose the scores of removed nodes; one that compares with them leaves."""
    for name in [name for name, node in draft.nodes.items() if node["kind"] == "evaluate"]:
        cut = [
            edge
            for edge in draft.edges_into(name)
            if target_of(edge).port != "rows" and _depends(draft, edge, gone)
        ]
        ports = {target_of(edge).port for edge in cut}
        asked = draft.nodes[name].get("of") or ()
        of = [port for port in asked if _node_of(port) not in gone]
        for edge in cut:
            draft.edges.remove(edge)
        has_lost_all = "scores" in ports and not draft.edges_into(name, "scores")
        has_lost_all |= bool(asked) and not of
        measures = any(target_of(edge).port != "rows" for edge in draft.edges_into(name))
        if ports & CHOSEN_BY or has_lost_all or not (measures or of):
            draft.drop([name])
        elif asked:
            draft.nodes[name]["of"] = of


def _node_of(port: str) -> str:
    return port.partition(".")[0]


# Distillation: SFT on what the teachers write, instead of what they say of the learner's texts.


def _texts_of_teachers(roles: Roles, draft: Draft) -> str:
    edges = [e for e in draft.edges_into(roles.main, "reference") if draft.teaches(e)]
    teachers = list(dict.fromkeys(source_of(edge).node for edge in edges))
    written = []
    for teacher in teachers:
        if draft.nodes[teacher].get("template"):
            raise ControlRefused(
                f"`{teacher}` reads the texts under another prompt, and cannot write them", teacher
            )
        read = {source_of(edge).node for edge in draft.edges_into(teacher, "rollouts")}
        if roles.main not in read:
            raise ControlRefused(
                f"`{teacher}` reads a part of the texts: what {names(sorted(read))} passes on",
                teacher,
            )
        rollout = copy.deepcopy(draft.nodes[roles.main].get("rollout", {}))
        model = {"type": "shared", "with": draft.owner(teacher)}
        actor = {"kind": "actor", "model": model, "rollout": rollout}
        name = draft.add_node(f"{teacher}_writes", actor)
        for edge in draft.edges_into(roles.main, "prompts"):
            draft.add_edge(edge["from"], f"{name}.prompts")
        written.append(draft.add_edge(f"{name}.rollouts", f"{roles.main}.reference"))
    for edge in edges:
        draft.edges.remove(edge)
    _switch_lessons(roles, draft, roles.main, "reference", "demonstrations", written)
    return (
        f"`{roles.main}` imitates texts that {told(teachers, 'writes')} for the same prompts (SFT)"
    )


# Imitation instead of rewards and pairs.

REPLACED = ("rewards", "pairs")


def _imitating(roles: Roles, draft: Draft) -> str:
    """SFT on the loop's demonstrations in the steps that rewards or pairs had."""
    learners = (roles.main, *roles.peers)
    for name in learners:
        edges = draft.edges_into(name, "demonstrations")
        if not edges or not draft.edges_into(name, *REPLACED):
            raise ControlRefused(
                f"without {names(roles.partners)} nothing is left to reward `{roles.main}`, and "
                f"`{name}` has no demonstrations to imitate instead",
                name,
            )
        old, new = {f"{name}.{port}" for port in REPLACED}, f"{name}.demonstrations"
        for phase in draft.phases():
            if "learn" in phase:
                learn = [new if one in old else one for one in phase["learn"]]
                phase["learn"] = list(dict.fromkeys(learn))
        draft.remove_edges(lambda edge, old=old: edge["to"] in old)  # type: ignore[misc]
    others = set(roles.learners) - set(learners)
    for phase in draft.phases():
        if "learn" in phase:
            phase["learn"] = [one for one in phase["learn"] if _node_of(one) not in others]
    return f"{told(learners, 'imitates')} the demonstrations of the same rows (SFT) instead"
