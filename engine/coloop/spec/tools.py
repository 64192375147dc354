"""What a tool may hold: how a model tool packs the answers of the tools it wraps."""

from __future__ import annotations

from typing import Literal

from coloop.spec.base import Section, Whole, setting

ENVIRONMENT_SIGNATURE = (
    "class Environment:\n"
    "    def reset(self, row):\n"
    "        return row['prompt']\n"
    "    def step(self, text):\n"
    "        return {'observation': '', 'reward': 0.0, 'score': 0.0, 'done': True}\n"
)


class Pack(Section):
    """Pack long answers into few chunks before the policy reads them."""

    rule: Literal["first_fit_decreasing"] = setting("first_fit_decreasing")
    """How answers are laid into chunks."""
    tokens: Whole = setting(ge=1, unit="tokens")
    """Size of a chunk."""
