"""A game of TextArena as an `Environment`.

Appended to an import of the game's module, and `COLOOP_GAME`, `COLOOP_PLAYERS`, `COLOOP_ERRORS`,
`COLOOP_SETTINGS` and `COLOOP_ROW_SETTINGS`.
"""

import random
from typing import Any

import textarena


class Environment:
    """The board is the last message of type GAME_BOARD, the news are those since a player's last
    turn."""

    def __init__(self) -> None:
        self._game: Any = None
        self._board: dict[int, str] = {}
        self._news: list[Any] = []
        self._errors = 0

    def reset(self, row: dict[str, Any]) -> Any:
        space = globals()
        given = {name: row[name] for name in space["COLOOP_ROW_SETTINGS"] if name in row}
        made = textarena.make(space["COLOOP_GAME"], **{**space["COLOOP_SETTINGS"], **given})
        inner = made
        while isinstance(inner, textarena.Wrapper):
            inner = inner.env
        plain = inner.get_observation

        def observed() -> Any:
            seat, self._news = plain()
            for _, text, kind in self._news:
                if kind == textarena.ObservationType.GAME_BOARD:
                    self._board[seat] = text
            return seat, self._news

        inner.get_observation = observed
        made.reset(num_players=space["COLOOP_PLAYERS"], seed=random.randrange(2**31))
        if space["COLOOP_ERRORS"] is not None:
            inner.state.error_allowance = space["COLOOP_ERRORS"]
        self._game = made
        return self._turn()

    def step(self, text: str) -> Any:
        done, _ = self._game.step(action=text)
        if not done:
            errors = getattr(self._game.state, "error_count", 0)
            is_invalid, self._errors = errors > self._errors, errors
            return {**self._turn(), "invalid": is_invalid}
        rewards, info = self._game.close()
        rewards = rewards or {}
        reasons = [own.get("reason") for own in info.values() if own.get("reason")]
        return {
            "observation": "",
            "done": True,
            "rewards": {
                str(seat): {"reward": float(number), "score": float(number >= 1)}
                for seat, number in rewards.items()
            },
            "invalid": any(own.get("invalid_move") for own in info.values()),
            "reason": str(reasons[0]) if reasons else "",
        }

    def _turn(self) -> dict[str, Any]:
        seat, observation = self._game.get_observation()
        news = "\n".join(text for _, text, _ in self._news)
        if not isinstance(observation, str):
            observation = news
        return {
            "observation": observation,
            "seat": seat,
            "shown": {"board": self._board.get(seat, ""), "news": news},
        }
