"""Verifiers: one role for each value of `method`."""

from collections.abc import Callable
from typing import Final

from coloop.runtime.roles.protocol import Context, Role
from coloop.runtime.roles.verifiers.discriminative import DiscriminativeVerifier
from coloop.runtime.roles.verifiers.generative import GenerativeVerifier
from coloop.runtime.roles.verifiers.implicit import ImplicitVerifier
from coloop.runtime.roles.verifiers.rule import FormalVerifier, RuleVerifier, VoteVerifier
from coloop.spec.heads import head_of
from coloop.spec.nodes import VerifierNode


def _classifier(node: str, context: Context) -> Role:
    """A verifier with a score head, or one in words, which weighs its labels."""
    in_words = head_of(context.spec.nodes[node]) == "words"
    return GenerativeVerifier(node, context) if in_words else DiscriminativeVerifier(node, context)


METHODS: Final[dict[str, Callable[[str, Context], Role]]] = {
    "formal": FormalVerifier,
    "generative": GenerativeVerifier,
    "discriminative": _classifier,
    "implicit_prm": ImplicitVerifier,
    "rule": RuleVerifier,
    "vote": VoteVerifier,
}


def verifier_role(node: str, context: Context) -> Role:
    """The role of the node's method."""
    section = context.spec.nodes[node]
    assert isinstance(section, VerifierNode)
    return METHODS[section.method](node, context)
