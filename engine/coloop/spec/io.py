"""Reading a loop from YAML text: `parse` never raises on what a user wrote."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from coloop.diagnostics import Diagnostic
from coloop.spec.graph import LoopSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """What a text gave."""

    spec: LoopSpec | None
    diagnostics: tuple[Diagnostic, ...] = ()
    document: dict[str, Any] | None = None


def parse(text: str) -> Parsed:
    """Read a loop."""
    try:
        document = YAML(typ="safe", pure=True).load(text)
        return Parsed(spec=LoopSpec.model_validate(document), document=document)
    except YAMLError as error:
        return Parsed(spec=None, diagnostics=(Diagnostic(code="yaml.syntax", message=str(error)),))
    except ValidationError as error:
        return Parsed(
            spec=None,
            diagnostics=(Diagnostic(code="structure.bad_value", message=str(error)),),
        )
