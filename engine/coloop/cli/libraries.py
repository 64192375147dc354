"""Libraries that parts of coloop need, and what installs them."""

import re
from importlib.metadata import PackageNotFoundError, requires

LIBRARIES: tuple[tuple[str, str | None], ...] = (
    ("pydantic", None),
    ("torch", "engine"),
    ("transformers", "engine"),
    ("tokenizers", "engine"),
    ("ray", "engine"),
    ("pyarrow", "engine"),
    ("fastapi", "server"),
    ("uvicorn", "server"),
    ("sqlalchemy", "server"),
    ("websockets", "server"),
    ("vllm", "vllm"),
    ("deepspeed", "deepspeed"),
    ("peft", "lora"),
)
"""Module (its distribution has the same name) and the extra that brings it."""


def extra_of(module: str) -> str | None:
    """The extra that brings a module; None for what coloop asks of no extra."""
    if module in dict(LIBRARIES):
        return dict(LIBRARIES)[module]
    try:
        demands = requires("coloop") or []
    except PackageNotFoundError:
        return None
    for demand in demands:
        found = re.match(r"([\w.-]+).*extra == ['\"](\w+)['\"]", demand)
        if found and found[1].replace("-", "_").lower() == module and found[2] != "all":
            return found[2]
    return None
