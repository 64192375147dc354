"""`tool`: what a policy may call while it generates."""

from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import model_validator

from coloop.spec.base import Name, Number, Text, Whole, problem, setting
from coloop.spec.environment import ENVIRONMENT_SIGNATURE, EnvironmentSource
from coloop.spec.levels import LevelsByPort
from coloop.spec.names import NamesByPort
from coloop.spec.nodes.kind import BaseNode, InPort, NodeKind, OutPort, PortType, When
from coloop.spec.reading import PromptTemplate
from coloop.spec.tools import Pack, ToolType

if TYPE_CHECKING:
    from coloop.spec.lineage import Columns, Lineage


_ASKS_POLICY: When = {"type": ("model",)}
_ENVIRONMENT: When = {"type": ("environment",)}
_SEARCH: When = {"type": ("search",)}


class ToolNode(BaseNode):
    """What a policy may call while it generates."""

    kind: Literal["tool"]
    """What a policy may call while it generates."""
    type: ToolType = setting()
    """Run code, compute, look up documents, act in an environment, or ask a policy."""
    call: Text | None = setting(None, widget="regex")
    """Regular expression of a call; its named groups are the arguments, and `.` matches line ends
    as well. Null: the type's own, `<search>...</search>`, `<code>...</code>`,
    `<calculate>...</calculate>`, `<ask>...</ask>`; an environment reads all of a turn."""
    result: Text | None = setting(None, widget="text", reference="template")
    """The text returned to the policy, in Jinja; the tool's answer is `value`. Null: the answer
    unchanged."""
    timeout_seconds: Number = setting(
        10.0,
        gt=0,
        le=3600,
        level="advanced",
        unit="seconds",
        when={"type": ("python", "environment")},
    )
    """Maximum time of a call."""
    output_bytes: Whole = setting(10_000, ge=1, level="advanced", unit="bytes")
    """Maximum bytes of an answer; the rest is cut."""
    top_k: Whole = setting(3, ge=1, when=_SEARCH)
    """Number of documents that a search returns."""
    column: Text | None = setting(None, widget="column", when=_SEARCH)
    """Column of the documents that is searched; null: `text`."""
    name: Name | None = setting(None, title="Environment name", when=_ENVIRONMENT)
    """A built-in environment, e.g. `proof`."""
    code: Text | None = setting(
        None, widget="code", when=_ENVIRONMENT, starter=ENVIRONMENT_SIGNATURE
    )
    """Source of a class `Environment` with `reset(row)` and `step(text)`."""
    file: Text | None = setting(None, widget="path", level="advanced", when=_ENVIRONMENT)
    """A file with that class instead."""
    source: EnvironmentSource | None = setting(None, when=_ENVIRONMENT)
    """An environment from elsewhere: a class by its module, or a game of TextArena for one
    player."""
    template: PromptTemplate | None = setting(None, when=_ASKS_POLICY, needed=_ASKS_POLICY)
    """What the policy of a model tool reads: `value` and the call's groups."""
    pack: Pack | None = setting(None, level="advanced", when=_ASKS_POLICY)
    """Pack long answers of wrapped tools; null: as they are."""
    join: Literal["align"] = setting("align", level="expert", hidden=True)
    """A tool works on its caller's rows."""

    about: ClassVar[NodeKind] = NodeKind(
        stages={},
        inputs={
            "policy": InPort(
                PortType.POLICY,
                "generate",
                "The policy behind a `model` tool.",
                max=1,
                when=_ASKS_POLICY,
            ),
            "documents": InPort(
                PortType.ROWS,
                "generate",
                "Documents that a `search` tool searches.",
                max=1,
                when=_SEARCH,
            ),
            "check": InPort(PortType.CHECK, "generate", "A scorer that the tool calls.", max=1),
            "tools": InPort(
                PortType.TOOL, "generate", "Tools that a `model` tool wraps.", when=_ASKS_POLICY
            ),
        },
        outputs={
            "tool": OutPort(PortType.TOOL, "A handle by which a policy calls it."),
            "rollouts": OutPort(
                PortType.ROLLOUTS, "What a `model` tool's policy generated.", when=_ASKS_POLICY
            ),
        },
        metrics=("tool/calls", "tool/errors", "tool/seconds"),
        title="Tool",
        group="tools",
        icon="wrench",
        help="A tool that a policy may call while it generates: Python, a calculator, a search "
        "over documents, an environment, or another policy. Its results are never trained on.",
        template={"kind": "tool", "type": "calculator"},
        synonyms="function, call, python, calculator, retrieval, rag, environment, sandbox, agent",
        summary=("type",),
        shown={"name": ("name",), "calls": ("call",), "time limit": ("timeout_seconds",)},
    )

    @model_validator(mode="after")
    def _has_one_environment(self) -> Self:
        names = ("name", "code", "file", "source")
        given = [name for name in names if getattr(self, name) is not None]
        if self.type == "environment" and len(given) != 1:
            words = ", ".join(f"`{name}`" for name in names)
            raise problem("conflict", f"set exactly one of {words}", field="name")
        return self

    def levels_given(self, name: str, lineage: "Lineage") -> LevelsByPort:
        yield "rollouts", lineage.brought(lineage.walk.into(name, "policy"), "rollouts")

    def columns_given(self, name: str, columns: "Columns") -> NamesByPort:
        for edge in columns.walk.into(name, "policy"):
            yield "rollouts", columns.at(edge.source.node, "rollouts")
