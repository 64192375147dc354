"""A checker of a formal language, run in the limited process: what it cannot read has no score."""

from functools import partial

from coloop.data.rewards.checkers import source_of
from coloop.data.rewards.user_code import reward_columns, score_rows
from coloop.data.seeds import derive_seed
from coloop.data.tables import Row, Score
from coloop.runtime.roles.protocol import Call, Context, Outcome, Stateless
from coloop.runtime.roles.verifiers.judge import judged_rows, judgement, section_of
from coloop.sandbox.process import Sandbox

NEEDED = ("prompt", "completion")


class FormalVerifier(Stateless):
    """See the module."""

    def __init__(self, node: str, context: Context) -> None:
        checker = section_of(node, context).checker
        assert checker is not None
        self._node = node
        self._sandbox = Sandbox(source_of(checker), function="reward", node=node)

    def run(self, call: Call) -> Outcome:
        rows, _ = judged_rows(self._node, call)
        readable = [row for row in rows if all(_is_text(row, name) for name in NEEDED)]
        grades = self._grades(readable, call) if readable else {}
        scores = [grades.get(row.id) for row in rows]
        return judgement(self._node, call.context, rows, scores)

    def _grades(self, rows: list[Row], call: Call) -> dict[str, Score]:
        columns = reward_columns([{name: row.columns[name] for name in NEEDED} for row in rows])
        seed = derive_seed(call.context.seed, self._node, call.salt, call.step) % 2**31
        with self._sandbox.held(partial(call.tick, 0, len(rows))) as child:
            said = score_rows(child, columns, len(rows), on_error="stop", seed=seed).scores
        return {
            row.id: float(one)
            for row, one in zip(rows, said, strict=True)
            if isinstance(one, float | int)
        }

    def close(self) -> None:
        """End the process of the checker."""
        self._sandbox.close()


def _is_text(row: Row, name: str) -> bool:
    return isinstance(row.columns.get(name), str)
