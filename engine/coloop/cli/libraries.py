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
"""Module (its distribution has the same name) and the extra that installs it."""


def extra_of(module: str) -> str | None:
    """The extra that installs a module; None if no extra does."""
    if module in dict(LIBRARIES):
        return dict(LIBRARIES)[module]
    try:
        demands = requires("coloop") or []
    except PackageNotFoundError:
        return None
    for demand in demands:
        match = re.match(r"([\w.-]+).*extra == ['\"](\w+)['\"]", demand)
        if match and match[1].replace("-", "_").lower() == module and match[2] != "all":
            return match[2]
    return None
