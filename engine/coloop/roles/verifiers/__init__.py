"""Ways of judging, by the name that `method` takes; each is a role of its own."""

from collections.abc import Callable
from typing import Final

from coloop.roles.protocol import Context, Role
from coloop.roles.verifiers.discriminative import DiscriminativeVerifier
from coloop.roles.verifiers.generative import GenerativeVerifier
from coloop.roles.verifiers.implicit import ImplicitVerifier
from coloop.roles.verifiers.rule import RuleVerifier
from coloop.roles.verifiers.vote import VoteVerifier

METHODS: Final[dict[str, Callable[[str, Context], Role]]] = {
    "generative": GenerativeVerifier,
    "discriminative": DiscriminativeVerifier,
    "implicit_prm": ImplicitVerifier,
    "rule": RuleVerifier,
    "vote": VoteVerifier,
}
