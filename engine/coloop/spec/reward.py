"""Where a reward's numbers come from: built in, Python, a model, or a service."""

from typing import Annotated, Literal

from pydantic import Field

from coloop.spec.base import (
    Number,
    PlainOr,
    Section,
    Text,
    Whole,
    either,
    setting,
)
from coloop.spec.builtins import BuiltinSource
from coloop.spec.services import ChatService, Service

REWARD_SIGNATURE = '''def reward(prompts, completions, **columns):
    """A number for each completion, or None; every column of the rows is in `columns`."""
    return [1.0 / (1 + len(text)) for text in completions]
'''
"""A reward as TRL takes it: shorter completions are worth more."""


CODE_MEMORY_MIB = 1024
"""Default memory limit of user Python: enough to import torch."""


class PythonSource(Section):
    """A Python function of yours, run in its own sandboxed process."""

    type: Literal["python"]
    """A Python function of yours."""
    code: Text | None = setting(None, widget="code", starter=REWARD_SIGNATURE)
    """Source with `def reward(prompts, completions, **columns)`, which returns a number, None or a
    list for each row."""
    file: Text | None = setting(None, widget="path", level="advanced")
    """A file with that function instead, relative to the folder of the loop."""
    timeout_seconds: Number = setting(30.0, gt=0, le=3600, level="advanced", unit="seconds")
    """Maximum time for one batch."""
    memory_mib: Whole = setting(CODE_MEMORY_MIB, ge=64, le=1_048_576, level="advanced", unit="MiB")
    """Maximum memory of its process."""

    _has_one = either("code", "file")


class ModelSource(Section):
    """A sequence classifier: the node's `model` with a head that outputs one number."""

    type: Literal["model"]
    """A sequence classifier of this node."""


class RemoteSource(Service):
    """A service that scores over HTTP."""

    type: Literal["remote"]
    """A service that scores over HTTP."""
    url: Annotated[Text, Field(pattern=r"^https?://")] = setting()
    """Its address; it receives prompts, completions and columns, and returns a list of numbers."""
    batch: Whole = setting(32, ge=1, le=4096, level="advanced", unit="rows")
    """Maximum rows per request."""


class ChatSource(ChatService):
    """A chat model by URL, asked once for each row by the node's `template`."""

    type: Literal["chat"]
    """A chat model by URL, asked once for each row."""
    temperature: Number = setting(0.0, ge=0, le=10, hot=True, widget="slider", short="T {}")
    """Randomness of its answers; 0 is greedy."""
    max_new_tokens: Whole = setting(256, ge=1, unit="tokens", hot=True, short="{} tokens")
    """Maximum tokens of an answer."""


RewardSource = Annotated[
    BuiltinSource | PythonSource | ModelSource | RemoteSource | ChatSource,
    Field(discriminator="type"),
]
RUNNABLE_REWARD_SOURCES = frozenset({"builtin", "python", "model", "remote", "chat"})


class ScoreAs(Section, title="score"):
    """A failed row gets this score."""

    score: Number = setting()
    """The score of a row whose scoring failed."""


OnError = PlainOr[Literal["stop", "skip_row"], ScoreAs]
"""What a failure does: stop the run, give the row no score, or give it a fixed one."""
