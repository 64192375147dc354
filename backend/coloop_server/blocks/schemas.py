"""Requests and responses of the block routes."""

from typing import Any, Self

from pydantic import Field, model_validator

from coloop_server.schemas import Input, Output

MAX_TITLE = 80
MAX_DESCRIPTION = 2000
MAX_PARTS = 500


class BlockParts(Input):
    """A part of a loop, with the keys of the YAML."""

    nodes: dict[str, Any] = Field(min_length=1, max_length=MAX_PARTS)
    edges: list[Any] = Field(default=[], max_length=MAX_PARTS)
    layout: dict[str, Any] = Field(default={}, max_length=MAX_PARTS)
    """Places of the nodes; empty: they are laid out when the block is inserted."""
    open: dict[str, str] = Field(default={}, max_length=MAX_PARTS)
    """What is expected at each port (`node.port`) at which it is joined with a loop."""

    @model_validator(mode="after")
    def _has_nodes_of_a_kind(self) -> Self:
        for name, node in self.nodes.items():
            if not isinstance(node, dict) or not isinstance(node.get("kind"), str):
                raise ValueError(f"nodes.{name} is no node: it has no `kind`")
        return self


class NewBlock(BlockParts):
    title: str = Field(min_length=1, max_length=MAX_TITLE, pattern=r"\S")
    description: str = Field(default="", max_length=MAX_DESCRIPTION)


class Block(Output):
    id: str
    """Name of a block that ships with coloop, otherwise an id."""
    title: str
    description: str
    is_own: bool
    """Whether a user saved it; only those can be deleted."""
    tags: list[str]
    """Modes in which it is offered first, and `co-training`."""
    open: dict[str, str]
    nodes: dict[str, Any]
    edges: list[Any]
    layout: dict[str, Any]
