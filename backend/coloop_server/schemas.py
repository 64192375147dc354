"""Base classes of all request and response models."""

from pydantic import BaseModel, ConfigDict

MAX_YAML = 4 * 1024 * 1024
"""Characters of a loop as text."""


class Input(BaseModel):
    """A request's body: a field that it does not have is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class Output(BaseModel):
    """An answer, or a part of one; it can be read from an object with the same attributes."""

    model_config = ConfigDict(from_attributes=True, use_attribute_docstrings=True)
