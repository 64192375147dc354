"""One published measurement beside the loop that describes its job."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Tier = Literal["A", "B", "C"]
"""A: exact configuration, read off a machine. B: rounded, or parts of the configuration unsaid.
C: a claim, or deduced."""
How = Literal["allocated", "reserved"]
"""Of a peak: bytes of tensors, or those that the process holds."""

QUANTITIES = (
    *("peak_gib", "weights_gib", "kv_gib", "kv_tokens", "fits", "oom"),
    *("tok_s", "step_s", "gen_s", "stage", "speedup", "sync_s"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A measurement, and the job it was taken from in the language of loops."""

    id: str
    source: str
    """The repository or page, without its commit."""
    tier: Tier
    quantity: str
    """One of `QUANTITIES`; a per-stage value is named after the stage."""
    value: float | str
    document: Mapping[str, Any]
    """The loop, as `coloop.spec.io.from_dict` reads it."""
    how: How | None = None
    notes: str = ""
    told: Mapping[str, Any] = field(default_factory=dict)
    """What the page says beside the job and a comparison needs, e.g. measured row lengths."""


class NotExpressible(Exception):
    """A row that the language of loops cannot say.

    Args:
        id: The row.
        why: What is missing from the language, or from the page.
    """

    def __init__(self, id: str, why: str) -> None:
        super().__init__(f"{id}: {why}")
        self.id, self.why = id, why


def repository(source: str) -> str:
    """`owner/name@commit:path` or `owner/name#12` as `owner/name`; a page as it is."""
    if source.startswith("http"):
        return source.split("://")[1].split("/")[0]
    return source.split("@")[0].split("#")[0].split("(")[0].split(":")[0].strip()


def read_rows(
    rows: Iterable[Mapping[str, str]], read: Callable[[Mapping[str, str]], Published]
) -> tuple[list[Published], list[NotExpressible]]:
    """All rows of a table that can be said, and those that cannot."""
    said: list[Published] = []
    unsaid: list[NotExpressible] = []
    for row in rows:
        try:
            said.append(read(row))
        except NotExpressible as missing:
            unsaid.append(missing)
    return said, unsaid
