"""`coloop explain` for the page: help for findings and algorithms."""

import json
from typing import Annotated

from fastapi import Path, Query
from pydantic import ValidationError

from coloop.explain import algorithm, codes
from coloop_server.errors import Invalid, NotFound, router_of

router = router_of("explain", "/explain")

MAX_SETTINGS = 8_000
"""Longest JSON of an algorithm's section."""


@router.get("", operation_id="listExplained")
def list_explained() -> list[codes.CodeEntry]:
    """List the codes that have help."""
    return codes.list_codes()


@router.get("/algorithm", operation_id="explainAlgorithm")
def explain_algorithm(
    settings: Annotated[str, Query(min_length=2, max_length=MAX_SETTINGS)],
    rollout: Annotated[str | None, Query(max_length=MAX_SETTINGS)] = None,
) -> algorithm.AlgorithmHelp:
    """Help for an algorithm: `settings` is the JSON of its section in a node, `rollout` the JSON of
    the node's section of that name."""
    try:
        section, writes = json.loads(settings), json.loads(rollout or "{}")
        limit = writes.get("max_new_tokens") if isinstance(writes, dict) else None
        known = limit if isinstance(limit, int) and limit > 0 else None
        return algorithm.explain_algorithm(section, max_new_tokens=known)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"][1:]) or "settings"
        raise Invalid(
            "explain.settings", f"these are not settings of an algorithm: {field}: {first['msg']}"
        ) from error
    except (ValueError, RecursionError) as error:
        raise Invalid("explain.settings", f"`settings` is not JSON: {error}") from error


@router.get("/{code}", operation_id="explainCode")
def explain_code(code: Annotated[str, Path(max_length=80)]) -> codes.Explanation:
    """Help for the code of a finding or an alert."""
    explanation = codes.explain(code)
    if explanation is None:
        near = codes.near(code)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise NotFound("explain.not_found", f"there is no help for {code!r}{hint}")
    return explanation
