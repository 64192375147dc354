"""`template`: what some wrote becomes what the next reads."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

from pydantic import model_validator

from coloop.spec.base import PlainValue, Text, problem, setting
from coloop.spec.nodes.kind import BaseNode, NodeKind, Stage
from coloop.spec.nodes.ports import InPort, OutPort, PortType
from coloop.spec.nodes.texts import KindText, Telling
from coloop.spec.reading import Message
from coloop.spec.shaping import WRITE_SIGNATURE, Parse


class TemplateNode(BaseNode):
    """What some wrote becomes what the next reads."""

    kind: Literal["template"]
    """What some wrote becomes what the next reads."""
    parse: dict[Text, Parse] = setting(default_factory=dict)
    """New columns read from the text before it: regex, `{json: path}` or `{tag: name}`."""
    default: dict[Text, PlainValue] = setting(default_factory=dict, level="advanced")
    """What a column is where nothing was found."""
    text: Text | None = setting(None, widget="text", reference="template")
    """The new prompt, in Jinja."""
    messages: tuple[Message, ...] | None = setting(None, level="advanced")
    """A chat as prompt instead of one text."""
    target: str | None = setting(None, widget="text", reference="template")
    """What is to be imitated, in Jinja."""
    columns: dict[Text, str] = setting(default_factory=dict, level="advanced", reference="template")
    """More columns, each in Jinja."""
    drop: tuple[Text, ...] = setting((), level="advanced", widget="column")
    """Columns that end here."""
    each: Text | None = setting(None, level="advanced", widget="column")
    """A list column: one row for each element."""
    code: Text | None = setting(None, level="advanced", widget="code", starter=WRITE_SIGNATURE)
    """Python instead of text: `def write(**columns) -> dict | None`, run in a limited process."""

    about: ClassVar[NodeKind] = NodeKind(
        stages={
            "prepare": Stage(reads=("rows", "scores", "library"), gives=("rows",)),
        },
        inputs={
            "rows": InPort(
                type=PortType.ROWS,
                phase="generate",
                required=True,
                help="Rows that fill the template.",
            ),
            "scores": InPort(
                type=PortType.SCORES, phase="generate", help="Scores that the template may name."
            ),
            "library": InPort(
                type=PortType.ROWS, phase="generate", help="Rows that `others()` draws from."
            ),
        },
        outputs={"rows": OutPort(type=PortType.ROWS, help="The same rows with new columns.")},
        rows=("rows",),
        scores=("scores",),
        metrics=("parse/none", "rows/none"),
        text=KindText(
            title="Template",
            group="shaping",
            icon="text-cursor-input",
            help=(
                "What some wrote becomes what the next reads: `parse` reads columns out of the "
                "text, `text` writes the new prompt in Jinja, `target` what is to be imitated. "
                "`each` makes a row of every element of a list."
            ),
            template={"kind": "template", "text": "{{ prompt }}"},
            synonyms="prompt, jinja, format, parse, extract, chat, rewrite, regex",
            summary=("each",),
            telling=(
                Telling("text", ("text", "code")),
                Telling("target", ("target",)),
                Telling("each", ("each",)),
            ),
        ),
    )

    @model_validator(mode="after")
    def _writes_one_way(self) -> Self:
        if self.text is not None and self.messages is not None:
            raise problem("conflict", "wants `text` or `messages`, not both", field="messages")
        if self.code is not None:
            for name in ("text", "messages", "target"):
                if getattr(self, name) is not None:
                    raise problem("conflict", "does not go together with `code`", field=name)
        return self
