"""Types of tools, and how they are called."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal

from coloop.spec.base import Section, Whole, setting
from coloop.spec.installed import records
from coloop.spec.plugins import ToolPlugin

OWN_TYPES: Final = ("python", "calculator", "search", "environment", "model")

PLUGINS: Final[dict[str, ToolPlugin]] = records("coloop.tools", ToolPlugin, OWN_TYPES)

if TYPE_CHECKING:
    ToolType = Literal["python", "calculator", "search", "environment", "model"]
else:
    ToolType = Literal[(*OWN_TYPES, *PLUGINS)]

ARGUMENTS: Final[Mapping[str, str]] = {
    "search": "query",
    "python": "code",
    "calculator": "expression",
    "environment": "text",
    **{name: plugin.argument for name, plugin in PLUGINS.items()},
}
"""By type of tool, the name of its call's argument."""

OWN_CALLS: Final[Mapping[str, str]] = {
    "search": "<search>(?P<query>.*?)</search>",
    "python": "<code>(?P<code>.*?)</code>",
    "calculator": "<calculate>(?P<expression>.*?)</calculate>",
    "model": "<ask>(?P<question>.*?)</ask>",
    **{name: plugin.call for name, plugin in PLUGINS.items()},
}
"""By type of tool, the default call pattern. A model tool that wraps others is called like those;
an environment is called with the whole text of a turn."""


class Pack(Section):
    """Pack long answers into few chunks before the policy reads them."""

    rule: Literal["first_fit_decreasing"] = setting("first_fit_decreasing")
    """How answers are split into chunks."""
    tokens: Whole = setting(ge=1, unit="tokens")
    """Size of a chunk."""
