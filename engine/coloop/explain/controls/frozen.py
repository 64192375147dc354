"""`frozen`: the partners of the main learner stay as they are when training together begins.

Lessons before that stay. From then on the teaching ports of the partners leave `learn`; a phase
that trained nothing else is left out. A snapshot that followed the learner, and a role on the
learner's own weights, become a copy made when training together begins. A role that learned before
is a snapshot that follows until then, and a node beside it takes its lessons: all arms start alike.
"""

from collections.abc import Callable, Iterator
from typing import Any

from coloop.errors import ControlRefused
from coloop.explain.controls.draft import Draft, target_of
from coloop.explain.controls.roles import Roles, names, told
from coloop.plan.phases import FlatPhase
from coloop.spec.base import as_tuple

Edit = Callable[[Draft], str]
"""Changes a draft and says in a sentence what was changed."""


def frozen_edits(roles: Roles) -> Iterator[Edit]:
    """Ways to freeze the partners, the best first.

    Raises:
        ControlRefused: the main learner has no partner, or none that changes.
    """
    _require_partners(roles)
    yield lambda draft: _freeze(roles, draft, is_apart=True)
    if any(_is_role(roles, name) for name in roles.partners):
        yield lambda draft: _freeze(roles, draft, is_apart=False)


def _require_partners(roles: Roles) -> None:
    if not roles.partners:
        above = ", ".join(f"`{name}`" for name in sorted(roles.fed_by)) or "nothing"
        raise ControlRefused(
            f"`{roles.main}` trains alone: of the nodes that reach what it is taught ({above}) "
            "none learns or follows weights that learn",
            roles.main,
        )
    if roles.begins is None or not (_late_lessons(roles) or roles.followers):
        when = f" when `{roles.main}` begins to learn from them" if roles.begins else ""
        raise ControlRefused(
            f"{names(roles.partners)} {'does' if len(roles.partners) == 1 else 'do'} not learn "
            f"any more{when}: frozen in the loop already",
            roles.partners[0],
        )


def _late_lessons(roles: Roles) -> dict[str, list[FlatPhase]]:
    """By partner, the phases since training together began in which it, or its critic, learns."""
    late: dict[str, list[FlatPhase]] = {}
    for phase in roles.together:
        for name in roles.learners:
            if any(node == name for node, _ in phase.live):
                late.setdefault(name, []).append(phase)
    return late


def _freeze(roles: Roles, draft: Draft, *, is_apart: bool) -> str:
    late = _late_lessons(roles)
    still = {*late, *_critics_of(roles, late)}
    paths = {phase.path for phase in roles.together}
    for path, phase in phases_with_paths(draft):
        if path in paths:
            leave(phase, still)
    if not draft.schedule.get("phases"):
        draft.remove_edges(lambda edge: draft.teaches(edge) and target_of(edge).node in still)
    begins = roles.begins
    assert begins is not None
    copied: dict[str, str] = {}
    named = roles.partners if is_apart else roles.followers
    for name in sorted(named, key=lambda name: draft.owner(name) != name):  # owners first
        if name in roles.followers or (_is_role(roles, name) and name in late):
            copied[name] = _copy(roles, draft, name)
    left = [name for name in roles.partners if name not in copied]
    said = []
    if left:
        was = "it was" if len(left) == 1 else "they were"
        said.append(
            f"{told(left, 'stays')} as {was} {_when(None if begins.is_whole else begins.name)}"
        )
    said += [f"`{name}` is a copy of {source}" for name, source in copied.items()]
    shared = [name for name in late if _is_role(roles, name) and name not in copied]
    if shared:
        said.append(f"{told(shared, 'shares')} weights that `{roles.main}` still trains")
    return "; ".join(said)


def _critics_of(roles: Roles, learners: dict[str, list[FlatPhase]]) -> list[str]:
    """Critics that learn the returns of these learners alone."""
    graph = roles.spec.graph
    found = []
    for name in graph.learners():
        givers = {edge.source.node for edge in graph.edges_into(name, "returns")}
        if givers and givers <= set(learners):
            found.append(name)
    return found


def leave(phase: dict[str, Any], still: set[str]) -> None:
    """Nodes do not learn in a phase."""
    kept = [name for name in phase.get("learn", ()) if name.partition(".")[0] not in still]
    if "learn" in phase:
        phase["learn"] = kept


def _is_role(roles: Roles, name: str) -> bool:
    """Whether a partner is another role on the main learner's weights."""
    return roles.owner_of(name) == roles.owner_of(roles.main)


def _when(phase: str | None) -> str:
    return "when the run starts" if phase is None else f"when phase `{phase}` first starts"


def _copy(roles: Roles, draft: Draft, name: str) -> str:
    """A copy of what the node followed or shared, in its place; whose copy it is, and of when."""
    begins = roles.begins
    assert begins is not None
    before = draft.model(name)
    at = None if begins.is_whole else begins.name
    if before.get("type") == "snapshot":
        refresh = before.get("refresh")
        if isinstance(refresh, dict) and "at" in refresh:
            at = as_tuple(refresh["at"])[0]
        source = before["of"]
    else:
        if draft.owner(name) == name:
            draft.hand_over(name, roles.main)
        source = draft.owner(roles.main)
        if _split(roles, draft, name, source):
            return f"`{source}` made {_when(at)}"
    model = {"type": "copy", "of": source} | ({"at": at} if at is not None else {})
    if before.get("dtype"):
        model["dtype"] = before["dtype"]
    draft.nodes[name]["model"] = model
    return f"`{source}` made {_when(at)}"


NEVER = 10**9
"""Updates between two refreshes that no run reaches."""


def _split(roles: Roles, draft: Draft, name: str, source: str) -> bool:
    """If a role has lessons left, give them to a new node on the same weights; the role is a
    snapshot that follows them until training together begins. Whether it had."""
    left = {
        port
        for port in {target_of(edge).port for edge in draft.edges_into(name) if draft.teaches(edge)}
        if any({name, f"{name}.{port}"} & set(phase.get("learn", ())) for phase in draft.phases())
    }
    if not left:
        return False
    node = draft.nodes[name]
    algorithm = node["algorithm"]
    if "name" not in algorithm:
        algorithm = {port: algorithm[port] for port in algorithm if port in left}
    shared = {"type": "shared", "with": source}
    lessons = {key: node[key] for key in node if key in ("kind", "method", "rollout", "pool")}
    lessons |= {"model": shared, "algorithm": algorithm}
    learner = draft.add_node(f"{name}_lessons", lessons)
    for edge in draft.edges_into(name, *left):
        edge["to"] = f"{learner}.{target_of(edge).port}"
    for phase in draft.phases():
        phase["learn"] = [_renamed(entry, name, learner) for entry in phase.get("learn", ())]
    if "order" in draft.schedule:
        draft.schedule["order"] = [_renamed(one, name, learner) for one in draft.schedule["order"]]
    node["model"] = {"type": "snapshot", "of": source, "refresh": {"every": 1}}
    paths = {phase.path for phase in roles.together}
    for path, phase in phases_with_paths(draft):
        if path in paths:
            phase["set"] = {**phase.get("set", {}), f"nodes.{name}.model.refresh.every": NEVER}
    return True


def _renamed(entry: str, name: str, new: str) -> str:
    node, dot, port = entry.partition(".")
    return f"{new}{dot}{port}" if node == name else entry


def phases_with_paths(draft: Draft) -> Iterator[tuple[str, dict[str, Any]]]:
    def inside(items: list[dict[str, Any]], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
        for index, item in enumerate(items):
            if "phases" in item:
                yield from inside(item["phases"], f"{path}.{index}.phases")
            else:
                yield f"{path}.{index}", item

    yield from inside(draft.schedule.get("phases", []), "schedule.phases")
