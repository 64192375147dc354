"""What `coloop explain` prints, for the page."""

from typing import Annotated

from fastapi import Path, Query

from coloop.explain.algorithm import AlgorithmHelp
from coloop.explain.codes import CodeEntry, Explanation, list_codes
from coloop_server.explain import service
from coloop_server.routers import router_of

router = router_of("explain", "/explain")

Settings = Annotated[str, Query(min_length=2, max_length=service.MAX_SETTINGS)]
Rollout = Annotated[str | None, Query(max_length=service.MAX_SETTINGS)]


@router.get("", operation_id="listExplained")
def list_explained() -> list[CodeEntry]:
    """All codes that there is help of."""
    return list_codes()


@router.get("/algorithm", operation_id="explainAlgorithm")
def explain_algorithm(settings: Settings, rollout: Rollout = None) -> AlgorithmHelp:
    """Formulas and curves of an algorithm; `settings` is its section of a node as JSON, `rollout`
    the node's."""
    return service.explain_algorithm(settings, rollout)


@router.get("/{code}", operation_id="explainCode")
def explain_code(code: Annotated[str, Path(max_length=80)]) -> Explanation:
    return service.explain_code(code)
