"""What signing in takes and tells."""

from pydantic import BaseModel, ConfigDict, Field


class SignIn(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    token: str = Field(max_length=4096)
    """The server's token: COLOOP_TOKEN, or what the file `token` of its data folder says."""


class SignedIn(BaseModel):
    model_config = ConfigDict(use_attribute_docstrings=True)

    ticket: str
    """Stands for the token for 30 days, or until its browser signs out."""


class SessionState(BaseModel):
    model_config = ConfigDict(use_attribute_docstrings=True)

    token_needed: bool
    """Whether this server has a token at all."""
    signed_in: bool
    """Whether this browser may use the API."""
