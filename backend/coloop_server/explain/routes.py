"""What `coloop explain` prints, for the page."""

from typing import Annotated

from fastapi import APIRouter, Path, Query

from coloop.explain.algorithm import AlgorithmHelp
from coloop.explain.codes import CodeEntry, Explanation, list_codes
from coloop_server.explain import service

router = APIRouter(prefix="/explain", tags=["explain"])

Settings = Annotated[str, Query(min_length=2, max_length=service.MAX_SETTINGS)]
Tokens = Annotated[int | None, Query(ge=1, le=10_000_000)]


@router.get("", operation_id="listExplained")
def list_explained() -> list[CodeEntry]:
    """All codes that there is help of."""
    return list_codes()


@router.get("/algorithm", operation_id="explainAlgorithm")
def explain_algorithm(settings: Settings, max_new_tokens: Tokens = None) -> AlgorithmHelp:
    """Formulas and curves of an algorithm; `settings` is its section of a node as JSON."""
    return service.explain_algorithm(settings, max_new_tokens)


@router.get("/{code}", operation_id="explainCode")
def explain_code(code: Annotated[str, Path(max_length=80)]) -> Explanation:
    return service.explain_code(code)
