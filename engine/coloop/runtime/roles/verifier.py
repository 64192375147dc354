"""Judges: a node of kind `verifier` works as its `method` says, in a file each (`verifiers/`)."""

from coloop.runtime.roles.protocol import Context, Role
from coloop.runtime.roles.verifiers import METHODS
from coloop.spec.nodes import VerifierNode


def verifier_role(node: str, context: Context) -> Role:
    """The role of the node's method."""
    section = context.spec.nodes[node]
    assert isinstance(section, VerifierNode)
    return METHODS[section.method](node, context)
