"""The environment `proof`: theorems of the task `proof`, proved forward or backward.

    a, a>b, ab>c |- c      state: facts and rules, and the goal
    b                      forward: what follows by a rule is known from then on
    ab>c                   backward: the goal by this rule, so its premises one by one
    not a, a>b |- c        a negation: shown by `none` where no rules lead to the goal

Independent of the task that generates and checks theorems (`data/tasks/proof.py`), so that each can
be tested against the other.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Self

from coloop.data.tools.protocol import Tick, ToolFailure

NEGATION: Final = "not "
NONE: Final = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What is known, and the goal that must be proved."""

    facts: tuple[str, ...]
    rules: tuple[tuple[str, str], ...]
    """(premises, conclusion)."""
    goal: str
    is_negated: bool = False
    """Whether it must be proved that the goal does not follow."""

    @classmethod
    def read(cls, text: str) -> Self:
        """Parse a state; raises ToolFailure if it is invalid."""
        left, turnstile, goal = text.strip().rstrip(":").partition("|-")
        is_negated = left.startswith(NEGATION)
        left = left.removeprefix(NEGATION)
        parts = [part.strip() for part in left.split(",")]
        if not turnstile or not goal.strip() or not all(parts):
            raise ToolFailure(f"{text!r} is not a theorem; expected `a, a>b |- b`")
        rules = [part.partition(">") for part in parts if ">" in part]
        return cls(
            facts=tuple(part for part in parts if ">" not in part),
            rules=tuple((premises, conclusion) for premises, _, conclusion in rules),
            goal=goal.strip(),
            is_negated=is_negated,
        )

    def __str__(self) -> str:
        rules = [f"{premises}>{conclusion}" for premises, conclusion in self.rules]
        left = f"{', '.join([*self.facts, *rules])} |- {self.goal}"
        return f"{NEGATION}{left}" if self.is_negated else left

    @property
    def is_shown(self) -> bool:
        return self.goal in self.facts

    def after(self, action: str) -> list["State"]:
        """The states that remain to be proved after an action, none at the goal; raises ToolFailure
        if the action is invalid."""
        if self.is_negated:
            return self._refuted(action.strip())
        premises, is_rule, conclusion = action.strip().partition(">")
        if is_rule:
            return self._backward(premises.strip(), conclusion.strip())
        atom = premises
        if not any(to == atom and set(by) <= set(self.facts) for by, to in self.rules):
            raise ToolFailure(
                f"{atom or 'nothing'} does not follow from the known facts by any rule"
            )
        reached = replace(self, facts=(*self.facts, atom))
        return [] if reached.is_shown else [reached]

    def _refuted(self, word: str) -> list["State"]:
        if word != NONE:
            raise ToolFailure(f"a negation can only be proved by `{NONE}`")
        known, grows = {*self.facts}, True
        while grows:
            reached = {to for by, to in self.rules if known.issuperset(by)}
            grows = not reached <= known
            known |= reached
        if self.goal in known:
            raise ToolFailure(f"{self.goal} follows from the known facts")
        return []

    def _backward(self, premises: str, conclusion: str) -> list["State"]:
        if (premises, conclusion) not in self.rules or conclusion != self.goal:
            raise ToolFailure(f"{premises}>{conclusion} is not a rule for the goal {self.goal}")
        return [replace(self, goal=atom) for atom in premises if atom not in self.facts]


class ProofEnvironment:
    """`Environment` of theorems: each word of a text is an action; reward 1 when all is proved."""

    def __init__(self) -> None:
        self._states: dict[str, State] = {}

    def reset(self, name: str, row: Mapping[str, Any], seed: int, tick: Tick) -> str:
        del seed, tick
        prompt = row.get("prompt")
        if not isinstance(prompt, str):
            raise ToolFailure("the row has no theorem in column `prompt`")
        self._states[name] = State.read(prompt)
        return prompt

    def step(self, name: str, text: str, seed: int, tick: Tick) -> dict[str, Any]:
        """Apply the words of a text; raises ToolFailure for an invalid one, and keeps the state
        then."""
        del seed, tick
        state = self._states[name]
        for atom in text.split():
            left = state.after(atom)
            if not left:
                return {"reward": 1.0, "score": 1.0, "done": True}
            state = left[0]
        self._states[name] = state
        return {"observation": f"\n{state}\n"}

    def move(self, state: str, action: str, seed: int, tick: Tick) -> list[str]:
        del seed, tick
        return [str(left) for left in State.read(state).after(action)]

    def forget(self, name: str) -> None:
        self._states.pop(name, None)

    def take_printed(self) -> str:
        return ""

    def close(self) -> None: ...
