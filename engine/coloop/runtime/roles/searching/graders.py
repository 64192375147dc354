"""The nodes that a search calls, with their own code: `outcome` scores whole texts, `value`
estimates unfinished ones, the environment at `tools` returns the states to which actions lead.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from coloop.data.arrays import Numbers
from coloop.data.seeds import derive_seed
from coloop.data.tables import Row, Score, Tokens
from coloop.data.tools.environment import EnvironmentTool
from coloop.data.tools.protocol import ToolFailure
from coloop.errors import DataError
from coloop.runtime.roles.generation.conversations import tools_of, with_openings
from coloop.runtime.roles.protocol import Call, Outcome
from coloop.runtime.roles.rows.texts import prompt_of


@dataclass(eq=False)
class Asked:
    """A node that a search calls by a handle."""

    node: str
    port: str
    """The search's port to which the node is connected."""
    check: str
    call: Call
    alerts: dict[str, str] = field(default_factory=dict, init=False)
    """The first alert of each code."""

    def _ask(self, rows: Sequence[Row]) -> Outcome:
        call = replace(
            self.call,
            stage=f"{self.check}.score",
            verb="score",
            inputs={},
            live=frozenset(),
            own=None,
            hand_on=None,
            asked=tuple(rows),
        )
        outcome = self.call.callees[self.check].run(call)
        for code, message in outcome.alerts:
            self.alerts.setdefault(code, message)
        return outcome


class Grader(Asked):
    """Grades texts from 0 (wrong) to 1 (right)."""

    def grade(self, rows: Sequence[Row]) -> list[float | None]:
        """The score of each text; None: not scored. Raises `DataError` if a score is not between 0
        and 1."""
        if not rows:
            return []
        said = self._ask(rows).outputs["scores"].scores or {}
        return [self._checked(row, said.get(row.id)) for row in rows]

    def _checked(self, row: Row, score: Score) -> float | None:
        if score is None:
            return None
        if isinstance(score, int | float) and 0 <= score <= 1:
            return float(score)
        raise DataError(
            f"{self.node}: {self.port}: `{self.check}` gives row {row.id} the score {score}; "
            "the probability of a step is a mean of scores from 0 (wrong) to 1 (right), so connect "
            "a check that returns such scores",
            self.node,
            self.port,
        )


class Valuer(Asked):
    """Estimates the value of unfinished texts: a critic by the value at their last token, any other
    scorer by its score."""

    def value(self, rows: Sequence[Row]) -> list[float | None]:
        """The estimated value of each text; None: not scored."""
        if not rows:
            return []
        outputs = self._ask(rows).outputs
        if "values" in outputs:
            values = outputs["values"].values or {}
            return [_last(row, values) for row in rows]
        said = outputs["scores"].scores or {}
        return [self._checked(row, said.get(row.id)) for row in rows]

    def _checked(self, row: Row, score: Score) -> float | None:
        if isinstance(score, Mapping):
            raise DataError(
                f"{self.node}: {self.port}: `{self.check}` gives row {row.id} numbers at "
                "positions, but one number per text is needed; set its `read.granularity: "
                "sequence`, or `read.reduce`",
                self.node,
                self.port,
            )
        return None if score is None else float(score)


def _last(row: Row, values: Mapping[str, Numbers]) -> float | None:
    """The value at the last token that the policy generated."""
    own = values.get(row.id)
    if own is None or row.tokens is None or not row.tokens.loss_mask.any():
        return None
    return float(own[np.flatnonzero(row.tokens.loss_mask)[-1]])


@dataclass(eq=False)
class SearchEnvironment:
    """The environment of a search over actions: the initial state of a row, and the states after an
    action."""

    node: str
    call: Call
    moves: int = field(default=0, init=False)
    """Number of actions that were tried."""
    refused: int = field(default=0, init=False)
    """Number of invalid ones among them."""
    reason: str = field(default="", init=False)
    """Why the last of these was invalid."""

    def __post_init__(self) -> None:
        [(self._name, role)] = tools_of(self.node, self.call).items()
        assert isinstance(role.tool, EnvironmentTool)
        self._tool = role.tool

    def opening(self, row: Row) -> str:
        """The initial state of a row. Raises `UserCodeError` if the environment's `reset` fails,
        `DataError` if it does not return a text."""
        [opened] = with_openings([row], self.node, self.call)
        state = prompt_of(opened, self.node)
        if isinstance(state, str):
            return state
        raise DataError(
            f"{self._name}: `reset` of row {row.id} returned a list of messages; the state of a "
            "search is a text that is passed to `step(state, action)`: return a text",
            self._name,
        )

    def move(
        self, tree: str, name: str, state: str | None, tokens: Tokens
    ) -> tuple[str, ...] | None:
        """The states to which an action leads; None if it is invalid. `tree`, the row's id, and
        `name`, that of the action, are part of the environment's seed."""
        assert state is not None
        call, self.moves = self.call, self.moves + 1
        seed = derive_seed(call.context.seed, self._name, call.salt, call.step, tree, name)
        try:
            return tuple(self._tool.moves(state, tokens.text, seed, call.tick))
        except ToolFailure as failure:
            self.refused += 1
            self.reason = str(failure)
            return None
