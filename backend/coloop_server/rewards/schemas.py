"""What trying a reward takes and gives."""

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

MAX_ROWS = 200
MAX_CODE = 200_000


class TryReward(BaseModel):
    """Sample rows, and exactly one of a Python reward or a built-in one."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    rows: list[dict[str, JsonValue]] = Field(min_length=1, max_length=MAX_ROWS)
    """Rows as columns: `prompt`, `completion`, `answer`, ...; `scores` maps nodes to numbers."""
    code: str | None = Field(default=None, max_length=MAX_CODE)
    """Python with `def reward(prompts, completions, **columns)`; runs in a limited process."""
    source: dict[str, JsonValue] | None = None
    """A built-in reward as it stands in a loop: `{name: exact_match, column: answer}`."""
    timeout_seconds: float = Field(default=5.0, gt=0, le=30)
    memory_mib: int = Field(default=512, ge=64, le=4096)

    @model_validator(mode="after")
    def one_is_given(self) -> Self:
        if (self.code is None) == (self.source is None):
            raise ValueError("either code or source is expected")
        return self


class RowProblem(BaseModel):
    row: int
    message: str
    traceback: str | None = None


class TriedReward(BaseModel):
    model_config = ConfigDict(use_attribute_docstrings=True)

    scores: list[Any]
    """A number a row, a list where the reward scores steps, null where it does not apply."""
    failures: list[RowProblem]
    error: str | None
    """What is wrong with the reward as a whole, if it gave no scores at all."""
    traceback: str | None
    printed: str
    """What the code printed, cut to a limit."""
    seconds: float
