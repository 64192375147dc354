"""Requests and responses of the file routes."""

import base64

from pydantic import Field, field_validator

from coloop_server.schemas import Input, Output

MAX_NAME = 200


class NewFile(Input):
    name: str = Field(min_length=1, max_length=MAX_NAME)
    """Name of the file, with a suffix of a data format, e.g. `train.jsonl`."""
    content: str
    """Its bytes, in Base64."""

    @field_validator("content")
    @classmethod
    def _is_base64(cls, content: str) -> str:
        base64.b64decode(content, validate=True)
        return content

    @property
    def data(self) -> bytes:
        return base64.b64decode(self.content)


class StoredFile(Output):
    path: str
    """Path for `source.path` of a dataset."""
    bytes: int
