"""The environment in which a search moves: what it says of a row, and where actions lead."""

from coloop.data.seeds import derive_seed
from coloop.data.tables import Row, Tokens
from coloop.data.tools.environment import EnvironmentTool
from coloop.data.tools.protocol import ToolFailure
from coloop.errors import DataError
from coloop.runtime.roles.generation.conversations import tools_of, with_openings
from coloop.runtime.roles.protocol import Call
from coloop.runtime.roles.rows.texts import prompt_of


class SearchEnvironment:
    """Of the tool at `tools`."""

    def __init__(self, node: str, call: Call) -> None:
        self._node = node
        self._call = call
        [(self._name, role)] = tools_of(node, call).items()
        assert isinstance(role.tool, EnvironmentTool)
        self._tool = role.tool
        self.moves = 0
        """Actions that were tried."""
        self.refused = 0
        """Those that led nowhere."""
        self.reason = ""
        """Why the last of them did."""

    def opening(self, row: Row) -> str:
        """The state that a row asks to be shown.

        Raises:
            UserCodeError: the environment says nothing of it.
            DataError: what it says is no text.
        """
        [opened] = with_openings([row], self._node, self._call)
        state = prompt_of(opened, self._node)
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
        """The states to which an action leads; None: nowhere.

        Args:
            tree: row whose tree it is.
            name: of the action in the tree; with it decides what the environment draws.
        """
        assert state is not None
        call, self.moves = self._call, self.moves + 1
        seed = derive_seed(call.context.seed, self._name, call.salt, call.step, tree, name)
        try:
            return tuple(self._tool.moves(state, tokens.text, seed, call.tick))
        except ToolFailure as failure:
            self.refused += 1
            self.reason = str(failure)
            return None
