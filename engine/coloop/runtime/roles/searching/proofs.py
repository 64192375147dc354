"""The AND/OR tree of one proof: a state is shown by any of its actions, an action by all of the
states to which it leads. Knows nothing of who proposes actions, and of who says where they lead.

    state (OR) ── action (AND) ─┬─ state   return of an action = step_reward + min of its states
               └─ action        └─ state   return of a state  = max of its actions

A visit goes down by PUCT, at an action to the open state that promises least, until it comes to a
state from which something is to be drawn. What comes back is what was drawn promises on the mean,
and above that step_reward + min over the states of each action. Worths are put between the least
and the greatest of the tree before they are compared (Schrittwieser et al. 2020, eq. 5).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from coloop.runtime.roles.searching.puct import log_prob_of, pick, wanted
from coloop.runtime.roles.searching.trees import ExpansionRequest, Grown, Path
from coloop.spec.nodes import SearchNode
from coloop.spec.search import Expand, Select

DRAWN_AT_ONCE: Final = Expand()


@dataclass(slots=True, kw_only=True, eq=False)
class State:
    """An OR node."""

    name: str
    text: str
    promise: float
    """What it is worth before it was visited."""
    above: frozenset[str] = frozenset()
    """States on the way down to it: to come back to one of them shows nothing."""
    actions: list["Action"] = field(default_factory=list)
    """Those that lead somewhere, no two alike."""
    drawn: int = 0
    visits: int = 0
    total: float = 0.0
    shown: float | None = None
    """Its return, where it is proved."""
    is_dead: bool = False
    """Nothing more can be tried."""

    @property
    def worth(self) -> float:
        """Its return, or what it promises."""
        if self.shown is not None:
            return self.shown
        return self.total / self.visits if self.visits else self.promise

    @property
    def open_actions(self) -> list["Action"]:
        return [action for action in self.actions if not action.is_dead]

    def settle(self, samples: int) -> None:
        """What follows from its actions."""
        returns = [action.shown for action in self.actions if action.shown is not None]
        self.shown = max(returns, default=None)
        self.is_dead = self.drawn >= samples and not self.open_actions


@dataclass(slots=True, kw_only=True, eq=False)
class Action:
    """An AND node."""

    path: Path
    promise: float
    reward: float
    states: list[State]
    visits: int = 0
    total: float = 0.0

    @property
    def text(self) -> str:
        return self.path.tokens.text.strip()

    @property
    def log_prob(self) -> float:
        return log_prob_of(self.path, 0, len(self.path.tokens.token_ids))

    @property
    def shown(self) -> float | None:
        """Its return, where all of its states are proved."""
        returns = [state.shown for state in self.states]
        known = [one for one in returns if one is not None]
        return self.reward + min(known, default=0.0) if len(known) == len(returns) else None

    @property
    def back(self) -> float:
        """What it promises by what is known of its states."""
        return self.reward + min((state.worth for state in self.states), default=0.0)

    @property
    def worth(self) -> float:
        return self.total / self.visits if self.visits else self.promise

    @property
    def is_dead(self) -> bool:
        return any(state.is_dead for state in self.states)

    @property
    def next(self) -> State:
        """The open state that promises least; the first of equal ones."""
        return min((one for one in self.states if one.shown is None), key=lambda one: one.worth)


class ProofTree:
    def __init__(self, text: str, section: SearchNode) -> None:
        """
        Args:
            text: the state that is to be shown.
        """
        self.root = State(name="root", text=text, promise=0.0)
        self._select = section.select or Select()
        self._expand = section.expand or DRAWN_AT_ONCE
        self._reward = float(section.step_reward)
        self._low, self._high = float("inf"), float("-inf")

    @property
    def is_open(self) -> bool:
        """Whether it is neither proved nor given up."""
        return self.root.shown is None and not self.root.is_dead

    def descend(self) -> tuple[list[tuple[State, Action]], State, int]:
        """The way down to the state from which is drawn next, and how many actions."""
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
        """Actions of a state."""
        return ExpansionRequest(name=state.name, count=count, first=state.drawn, state=state.text)

    def grow(self, state: State, count: int, paths: Grown) -> float | None:
        """Put drawn actions below a state; what they promise on the mean, None where none of them
        leads anywhere."""
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
        """Bring up the tree what came of a visit.

        Args:
            promise: of what was drawn at the state; None: nothing is known by it.
        """
        self._visit(state, promise)
        for above, action in reversed(way):
            back = None if promise is None else action.back
            if back is not None:
                action.visits += 1
                action.total += back
                self._note(back)
            self._visit(above, back)

    def _visit(self, state: State, promise: float | None) -> None:
        if promise is not None:
            state.visits += 1
            state.total += promise
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
        return Action(path=path, promise=promise, reward=self._reward, states=states)


def proof_of(state: State) -> Iterator[tuple[State, Action]]:
    """The proof with the greatest return, depth first: each state with its action."""
    best = next(one for one in state.actions if one.shown == state.shown)
    yield state, best
    for below in best.states:
        yield from proof_of(below)


def visited(state: State) -> Iterator[tuple[State, Action]]:
    """Every state with each of its actions that was followed, or proves it."""
    for action in state.actions:
        if not action.is_dead and (action.visits or action.shown is not None):
            yield state, action
        for below in action.states:
            yield from visited(below)
