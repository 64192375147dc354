"""Proof search in an AND/OR tree (AlphaProof): the policy proposes actions, an environment returns
the states to which they lead, `value` estimates these, and `outcome` checks a finished proof.

    prompt ── reset ──► state ── k actions ──► states left to prove ── ... ──► proof

The first proof ends the search of a row. The output is a row for each state and action, with the
return of the action at its last token, and for each searched row whether it is proved.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from coloop.data.tables import Row
from coloop.runtime.roles.searching.graders import SearchEnvironment
from coloop.runtime.roles.searching.puct import (
    DRAWN_AT_ONCE,
    Branch,
    log_prob_of,
    pick,
    shares,
    wanted,
)
from coloop.runtime.roles.searching.tree_expansion import (
    Method,
    TreeExpansion,
    Written,
    columns_of,
    with_each,
)
from coloop.runtime.roles.searching.trees import (
    ExpansionRequest,
    Findings,
    Found,
    Grown,
    Path,
    Places,
    Root,
    Search,
)
from coloop.spec.nodes import SearchNode
from coloop.spec.search import Select

# The AND/OR tree of one proof: a state is proved by any of its actions, an action by all of the
# states to which it leads. Knows neither the policy nor the environment.
#
#     state (OR) ── action (AND) ─┬─ state   return of an action = step_reward + min of its states
#                └─ action        └─ state   return of a state  = max of its actions
#
# A visit descends by PUCT, at an action to its unproved state of lowest value, until it reaches a
# state to expand. The mean estimated value of the sampled actions is backed up, above that
# step_reward + min over the states of each action. Values are scaled by the least and the greatest
# of the tree before they are compared (Schrittwieser et al. 2020, eq. 5).


@dataclass(slots=True, kw_only=True, eq=False)
class State(Branch):
    """An OR node: proved if any of its actions is."""

    name: str
    text: str
    above: frozenset[str] = frozenset()
    """States on the path to it; an action that leads back to one of them is dropped."""
    actions: list["Action"] = field(default_factory=list)
    """Its distinct valid actions."""
    drawn: int = 0
    shown: float | None = None
    """Its return if it is proved; None: not yet."""
    is_dead: bool = False
    """Whether no action is left to follow or to sample."""

    @property
    def worth(self) -> float:
        """Its return if proved, or else its mean or estimated value."""
        if self.shown is not None:
            return self.shown
        return self.total / self.visits if self.visits else self.promise

    @property
    def open_actions(self) -> list["Action"]:
        return [action for action in self.actions if not action.is_dead]

    def settle(self, samples: int) -> None:
        returns = [action.shown for action in self.actions if action.shown is not None]
        self.shown = max(returns, default=None)
        self.is_dead = self.drawn >= samples and not self.open_actions


@dataclass(slots=True, kw_only=True, eq=False)
class Action(Branch):
    """An AND node: proved if all states to which it leads are."""

    path: Path
    reward: float
    states: list[State]

    @property
    def text(self) -> str:
        return self.path.tokens.text.strip()

    @property
    def shown(self) -> float | None:
        """Its return if all of its states are proved, or else None."""
        returns = [state.shown for state in self.states]
        known = [one for one in returns if one is not None]
        return self.reward + min(known, default=0.0) if len(known) == len(returns) else None

    @property
    def back(self) -> float:
        """Its value from the current values of its states."""
        return self.reward + min((state.worth for state in self.states), default=0.0)

    @property
    def is_dead(self) -> bool:
        return any(state.is_dead for state in self.states)

    @property
    def next(self) -> State:
        """The unproved state with the lowest value; the first of equal ones."""
        return min((one for one in self.states if one.shown is None), key=lambda one: one.worth)


class ProofTree:
    def __init__(self, text: str, section: SearchNode) -> None:
        self.root = State(name="root", text=text, promise=0.0)
        self._select = section.select or Select()
        self._expand = section.expand or DRAWN_AT_ONCE
        self._reward = float(section.step_reward)
        self._low, self._high = float("inf"), float("-inf")

    @property
    def is_open(self) -> bool:
        """Whether the root is neither proved nor dead."""
        return self.root.shown is None and not self.root.is_dead

    def descend(self) -> tuple[list[tuple[State, Action]], State, int]:
        """The path to the state to expand next, that state, and how many actions to sample."""
        way: list[tuple[State, Action]] = []
        state = self.root
        while True:
            live = state.open_actions
            count = wanted(self._expand, state.visits + 1, state.drawn, len(live))
            if count:
                return way, state, count
            action = pick(live, state.visits, self._select, (self._low, self._high))
            way.append((state, action))
            state = action.next

    def request(self, state: State, count: int) -> ExpansionRequest:
        return ExpansionRequest(name=state.name, count=count, first=state.drawn, state=state.text)

    def grow(self, state: State, count: int, paths: Grown) -> float | None:
        """Add sampled actions to a state; returns their mean estimated value, None if all are
        invalid."""
        promises = []
        state.drawn += count
        for path in paths or ():
            if path.leads is None or {*state.above, state.text} & {*path.leads}:
                continue
            promise = self._reward if path.score is None or not path.leads else path.score
            promises.append(promise)
            self._note(promise)
            if all(path.tokens.text.strip() != one.text for one in state.actions):
                state.actions.append(self._action(state, path, promise))
        return sum(promises) / len(promises) if promises else None

    def climb(self, way: list[tuple[State, Action]], state: State, promise: float | None) -> None:
        """Back up the value of a visit. `promise`: mean value of the actions sampled at the state;
        None: all were invalid."""
        self._visit(state, promise)
        for above, action in reversed(way):
            back = None if promise is None else action.back
            if back is not None:
                action.visit(back)
                self._note(back)
            self._visit(above, back)

    def _visit(self, state: State, promise: float | None) -> None:
        if promise is not None:
            state.visit(promise)
        state.settle(self._expand.samples)

    def _note(self, worth: float) -> None:
        self._low, self._high = min(self._low, worth), max(self._high, worth)

    def _action(self, state: State, path: Path, promise: float) -> Action:
        above = state.above | {state.text}
        states = [
            State(
                name=f"{path.name}/{number}",
                text=text,
                promise=promise - self._reward,
                above=above,
            )
            for number, text in enumerate(path.leads or ())
        ]
        log_prob = log_prob_of(path, 0, len(path.tokens.token_ids))
        return Action(
            path=path, promise=promise, log_prob=log_prob, reward=self._reward, states=states
        )


def proof_of(state: State) -> Iterator[tuple[State, Action]]:
    """The proof with the greatest return: (state, action) pairs, depth first."""
    best = next(action for action in state.actions if action.shown == state.shown)
    yield state, best
    for below in best.states:
        yield from proof_of(below)


def visited(state: State) -> Iterator[tuple[State, Action]]:
    """Every state with each of its live actions that was followed or is proved."""
    for action in state.actions:
        if not action.is_dead and (action.visits or action.shown is not None):
            yield state, action
        for below in action.states:
            yield from visited(below)


class AndOr(Method):
    score_range = None

    def grow(
        self, rows: Sequence[Row], expansion: TreeExpansion, section: SearchNode, place: Places
    ) -> Findings:
        environment = expansion.environment
        assert environment is not None
        trees = [ProofTree(environment.opening(row), section) for row in rows]
        expansion.grow_rows(
            rows,
            (prove(tree, section.budget.searches_per_row) for tree in trees),
            lambda written: assess(written, expansion, environment),
        )
        accepted = _checked(rows, trees, expansion, section.step_separator)
        proofs = list(zip(trees, accepted, strict=True))
        given = (_given(tree, is_proof, section) for tree, is_proof in proofs)
        return Findings(
            rows=expansion.labelled(rows, given, place),
            searched=[float(is_proof) if tree.root.drawn else None for tree, is_proof in proofs],
            rejected=sum(tree.root.shown is not None and not is_proof for tree, is_proof in proofs),
        )


def prove(tree: ProofTree, searches: int | None) -> Search:
    """Visit the tree until it is proved or dead, or `searches` visits are done. None: limited
    otherwise."""
    visits = 0
    while tree.is_open and (searches is None or visits < searches):
        visits += 1
        way, state, count = tree.descend()
        [paths] = yield [tree.request(state, count)]
        if paths is None:
            break
        tree.climb(way, state, tree.grow(state, count, paths))
    return []


def assess(
    written: Written, expansion: TreeExpansion, environment: SearchEnvironment
) -> list[list[Path]]:
    """Actions with the states that they lead to, and their estimated values."""

    def led(root: Root, request: ExpansionRequest, path: Path) -> Path:
        leads = environment.move(root.key, path.name, request.state, path.tokens)
        return replace(path, leads=leads)

    return [
        [*own]
        for _, _, own in expansion.valued(with_each(written, led), lambda path: bool(path.leads))
    ]


def _checked(
    rows: Sequence[Row], trees: Sequence[ProofTree], expansion: TreeExpansion, separator: str
) -> list[bool]:
    proved = [tree.root.shown is not None for tree in trees]
    if expansion.grader is None:
        return proved
    texts = [
        expansion.row(row, _whole(tree.root, separator), 0, f"{row.id}.proof")
        for row, tree, is_proved in zip(rows, trees, proved, strict=True)
        if is_proved
    ]
    grades = iter(expansion.grade(texts))
    return [is_proved and next(grades) == 1.0 for is_proved in proved]


def _whole(root: State, separator: str) -> Path:
    actions = [action for _, action in proof_of(root)]
    tokens = actions[0].path.tokens
    text = separator.join(action.text for action in actions)
    return replace(actions[0].path, tokens=replace(tokens, text=text))


def _given(tree: ProofTree, is_proof: bool, section: SearchNode) -> Iterator[Found]:
    """The output texts of a tree, one per state and action, with the action's return or value."""
    if section.give == "visited":
        steps = visited(tree.root)
    else:
        steps = proof_of(tree.root) if is_proof else iter(())
    for state, action in steps:
        worth = action.worth if action.shown is None else action.shown
        drawn = np.flatnonzero(action.path.tokens.loss_mask)
        yield Found(
            path=replace(action.path, score=worth),
            chances={int(drawn[-1]): worth} if len(drawn) else {},
            columns={**columns_of(state.text), "share": _share(state, action)},
        )


def _share(state: State, action: Action) -> float:
    """The share of an action in the visits of a state; a proof counts as one more visit."""
    visits = [other.visits + (other.shown is not None) for other in state.actions]
    return shares(visits)[state.actions.index(action)]
