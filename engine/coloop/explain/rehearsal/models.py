"""Weights of a rehearsal: what is large or lies elsewhere becomes a tiny model made on the spot.

Who shares, copies or follows whom stays as it is, and so do heads and adapters. Where one model of
a loop is replaced all are, so that nodes go on having one tokenizer.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from coloop.plan.settings.architecture import UnknownArchitecture, count_parameters
from coloop.plan.settings.facts import architecture_of
from coloop.spec.graph import LoopSpec
from coloop.spec.model import Model, PretrainedModel, RunModel, ScratchModel
from coloop.spec.nodes import model_of

ANY_TEXT = "tiny-bytes"
"""The architecture whose tokenizer holds any text."""
RANK = 8
"""Greatest rank of an adapter."""
TINY_PARAMETERS = 3_000_000
"""A model made on the spot of up to so many stays as it is."""


def tiny_models(spec: LoopSpec, document: dict[str, Any], root: Path | None) -> list[str]:
    """Put tiny models in the place of others; what was said of each is told."""
    own = dict(_own_weights(spec))
    if all(_is_tiny(model, root) for model in own.values()):
        return []
    for name in own:
        section: dict[str, Any] = {"type": "scratch", "architecture": ANY_TEXT}
        lora = document["nodes"][name]["model"].get("lora")
        if lora is not None:
            section["lora"] = lora | {"rank": min(RANK, lora.get("rank", RANK))}
        document["nodes"][name]["model"] = section
    for node in document["nodes"].values():
        node.get("model", {}).pop("dtype", None)
    names = ", ".join(f"`{name}` ({_origin(model)})" for name, model in own.items())
    return [f"models: `{ANY_TEXT}`, random weights and a token a byte, in place of {names}"]


def _own_weights(spec: LoopSpec) -> Iterator[tuple[str, Model]]:
    """Nodes whose section names weights itself."""
    for name, node in spec.nodes.items():
        model = model_of(node)
        if isinstance(model, PretrainedModel | RunModel | ScratchModel):
            yield name, model


def _is_tiny(model: Model, root: Path | None) -> bool:
    if not isinstance(model, ScratchModel):
        return False
    try:
        return count_parameters(architecture_of(model, root)).total <= TINY_PARAMETERS
    except UnknownArchitecture:
        return False


def _origin(model: Model) -> str:
    match model:
        case PretrainedModel():
            return model.path
        case RunModel():
            return f"run {model.run}"
        case ScratchModel():
            return model.architecture
    raise AssertionError(model.type)
