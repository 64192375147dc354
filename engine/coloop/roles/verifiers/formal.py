"""A checker of a formal language, run in the limited process: what it cannot read has no score."""

from functools import partial

from coloop.rewards.checkers import source_of
from coloop.rewards.user_code import reward_columns, score_rows
from coloop.roles.protocol import Call, Context, Outcome, Stateless
from coloop.roles.verifiers.judge import judged_rows, judgement, section_of
from coloop.sandbox.process import Sandbox
from coloop.seeds import derive_seed
from coloop.tables import Row, Score

NEEDED = ("prompt", "completion")


class FormalVerifier(Stateless):
    """See the module."""

    def __init__(self, node: str, context: Context) -> None:
        del context
        self._node = node
        self._sandbox: Sandbox | None = None

    def run(self, call: Call) -> Outcome:
        rows, _ = judged_rows(self._node, call)
        readable = [row for row in rows if all(_is_text(row, name) for name in NEEDED)]
        grades = self._grades(readable, call) if readable else {}
        scores = [grades.get(row.id) for row in rows]
        return judgement(self._node, call.context, rows, scores)

    def _grades(self, rows: list[Row], call: Call) -> dict[str, Score]:
        child = self._child(call.context)
        child.tick = partial(call.tick, 0, len(rows))
        columns = reward_columns([{name: row.columns[name] for name in NEEDED} for row in rows])
        seed = derive_seed(call.context.seed, self._node, call.salt, call.step) % 2**31
        said = score_rows(child, columns, len(rows), on_error="stop", seed=seed).scores
        return {
            row.id: float(one)
            for row, one in zip(rows, said, strict=True)
            if isinstance(one, float | int)
        }

    def _child(self, context: Context) -> Sandbox:
        if self._sandbox is None:
            checker = section_of(self._node, context).checker
            assert checker is not None
            self._sandbox = Sandbox(source_of(checker), function="reward", node=self._node)
        return self._sandbox

    def close(self) -> None:
        """End the process of the checker."""
        if self._sandbox is not None:
            self._sandbox.close()
            self._sandbox = None


def _is_text(row: Row, name: str) -> bool:
    return isinstance(row.columns.get(name), str)
