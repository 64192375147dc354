"""Rows that are longer than a model's positions are dropped and counted, never cut, never read
beyond the positions; where not one row of a run has fitted yet, the run ends and says why.

Rows are counted per node: of the prompts that it writes to, of the rows that it scores or learns.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from coloop.errors import RequestRefused
from coloop.workers.messages import TooLong


class Fits:
    """Whether rows of a node fit its model."""

    def __init__(self, node: str, code: str, what: str, hint: str) -> None:
        """
        Args:
            code: of the alert.
            what: the rows in words, `prompts`.
            hint: which fields make them fit.
        """
        self._node = node
        self._code = code
        self._what = what
        self._hint = hint
        self._has_fitted = False

    def count(
        self, left_out: Sequence[TooLong], rows: int, *, is_probe: bool = False
    ) -> tuple[dict[str, float], list[tuple[str, str]]]:
        """Metrics and alerts of so many rows, of which some were left out. A probe's rows say
        nothing about the run's.

        Raises:
            RequestRefused: none fits, and none has before in this run.
        """
        self._has_fitted |= len(left_out) < rows and not is_probe
        if not left_out:
            return {}, []
        longest = max(left_out, key=lambda one: one.tokens)
        found = (
            f"the longest needs {longest.tokens} tokens, the model has {longest.limit} positions; "
            f"{self._hint}"
        )
        if len(left_out) == rows and not self._has_fitted and not is_probe:
            raise RequestRefused(f"{self._node}: all {rows} {self._what} are too long: {found}")
        message = f"{self._node}: {len(left_out)} of {rows} {self._what} are dropped: {found}"
        return {f"{self._what}/too_long": float(len(left_out))}, [(self._code, message)]

    def state(self) -> dict[str, Any]:
        return {"has_fitted": self._has_fitted}

    def load_state(self, state: Mapping[str, Any]) -> None:
        self._has_fitted = bool(state.get("has_fitted"))


def prompts_of(node: str) -> Fits:
    """Of the prompts to which a node writes."""
    hint = "shorten the prompts, or lower `rollout.max_new_tokens`, which counts with them"
    return Fits(node, "prompts.too_long", "prompts", hint)


def rows_of(node: str) -> Fits:
    """Of the rows that a node scores or learns from."""
    hint = "shorten the rows, or take a model with more positions in `model`"
    return Fits(node, "rows.too_long", "rows", hint)
