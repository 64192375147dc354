"""Where a reward's numbers come from: built in, Python, a model, or a service."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from coloop.spec.base import (
    Name,
    Number,
    PlainOr,
    Section,
    Text,
    Whole,
    either,
    setting,
)
from coloop.spec.builtins import BuiltinSource

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


class RemoteSource(Section):
    """A service that scores over HTTP."""

    type: Literal["remote"]
    """A service that scores over HTTP."""
    url: Annotated[Text, Field(pattern=r"^https?://")] = setting()
    """Its address; it receives prompts, completions and columns, and returns a list of numbers."""
    timeout_seconds: Number = setting(60.0, gt=0, le=3600, level="advanced", unit="seconds")
    """Maximum time for one request."""
    retries: Whole = setting(3, ge=0, le=100, level="advanced")
    """How often a failed request is retried."""
    concurrency: Whole = setting(8, ge=1, le=4096, level="advanced")
    """Concurrent requests."""
    batch: Whole = setting(32, ge=1, le=4096, level="advanced", unit="rows")
    """Maximum rows per request."""
    secret: Name | None = setting(None, level="advanced")
    """Name of a secret that is sent as `Authorization`: `judge` is the variable COLOOP_SECRET_JUDGE
    on the machine where the run starts."""


RewardSource = Annotated[
    BuiltinSource | PythonSource | ModelSource | RemoteSource, Field(discriminator="type")
]
RUNNABLE_REWARD_SOURCES = frozenset({"builtin", "python", "model", "remote"})


class ScoreAs(Section, title="score"):
    """A failed row gets this score."""

    score: Number = setting()
    """The score of a row whose scoring failed."""


OnError = PlainOr[Literal["stop", "skip_row"], ScoreAs]
"""What a failure does: stop the run, give the row no score, or give it a fixed one."""
