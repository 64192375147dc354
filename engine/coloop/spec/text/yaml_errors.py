"""What is wrong with a text as YAML, in words of who typed it: which value, and what to write.

The parser knows where it gave up; what was typed there says more than its own words. Each rule
looks at the line and the parser's problem and gives a message and a hint, or nothing.

Invariant: nothing here raises; without a rule the parser's own words stand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ruamel.yaml.error import MarkedYAMLError

Path = tuple[str | int, ...]
Explained = tuple[str, str | None]

_TEXT_LINE: Final = re.compile(r"^\s*(?:- +)?(?P<key>[\w-]+): +(?P<value>\S.*?)\s*$")
_IN_FLOW: Final = re.compile(r"(?P<key>[\w-]+): *(?P<value>\{[{%].*)$")
_NO_COLON: Final = re.compile(r"^\s*(?:- +)?(?P<key>[A-Za-z_][\w-]*)(?P<gap>:| +)(?P<value>\S.*)$")
_SPECIAL: Final = "@`%&!*|>"


@dataclass(frozen=True, slots=True)
class Trouble:
    """Where the parser failed, and its message."""

    lines: list[str]
    line: int
    """Counted from 0."""
    problem: str
    context: str
    opened: tuple[int, int] | None
    """Line and column where what is being read began, from 1."""
    place: str

    @property
    def here(self) -> str:
        """The line at which the parser failed."""
        return self.lines[self.line] if 0 <= self.line < len(self.lines) else ""

    @property
    def before(self) -> str:
        """The last non-blank line before it."""
        return next((line for line in reversed(self.lines[: self.line]) if line.strip()), "")


LONGEST_LINE = 1000
"""Maximum characters of a line that are checked: patterns take quadratic time."""


def name_of(path: Path) -> str:
    """A path in words: "`text` of node `ask`"."""
    words = [str(part) for part in path]
    if words[:1] == ["nodes"] and len(words) > 1:
        field = ".".join(words[2:])
        return f"`{field}` of node `{words[1]}`" if field else f"node `{words[1]}`"
    return f"`{'.'.join(words)}`" if words else "the loop"


def quoted_line(key: str, value: str) -> str:
    """A line with its text in quotes."""
    mark = "'" if '"' in value and "'" not in value else '"'
    text = value if mark == "'" else value.replace('"', '\\"')
    return f"{key}: {mark}{text}{mark}"


def braces(line: str, place: str) -> Explained | None:
    """A text that begins with `{{`, which YAML reads as a mapping."""
    line_match = _TEXT_LINE.match(line)
    if line_match is None or not line_match["value"].startswith(("{{", "{%")):
        line_match = _IN_FLOW.search(line)
    if line_match is None:
        return None
    value = line_match["value"].rstrip()
    if line_match.re is _IN_FLOW:
        end = max(value.rfind("}}"), value.rfind("%}"))
        value = value[: end + 2] if end > 0 else value
    message = f"{place} starts with `{value[:2]}`, which YAML does not parse as text"
    return message, f"quote the text: `{quoted_line(line_match['key'], value)}`"


def say(text: str, error: MarkedYAMLError, path: Path) -> Explained | None:
    """What is wrong, in terms of the text that was typed."""
    mark = error.problem_mark or error.context_mark
    if mark is None:
        return None
    opened = error.context_mark
    trouble = Trouble(
        lines=[line[:LONGEST_LINE] for line in text.splitlines()],
        line=mark.line,
        problem=str(error.problem or ""),
        context=str(error.context or ""),
        opened=None if opened is None else (opened.line + 1, opened.column + 1),
        place=name_of(path),
    )
    return next((words for rule in _RULES for words in rule(trouble)), None)


def _tab(trouble: Trouble) -> Iterator[Explained]:
    if "\\t" in trouble.problem or "'\t'" in trouble.problem:
        yield f"line {trouble.line + 1} is indented with a tab", "YAML is indented with spaces"


def _braces(trouble: Trouble) -> Iterator[Explained]:
    words = braces(trouble.here, trouble.place)
    if words is not None:
        yield words


def _special(trouble: Trouble) -> Iterator[Explained]:
    found = _TEXT_LINE.match(trouble.here)
    value = found["value"] if found is not None else ""
    is_meant = "cannot start any token" in trouble.problem or "anchor" in trouble.context
    if found is not None and value[0] in _SPECIAL and is_meant:
        message = f"{trouble.place} starts with `{value[0]}`, which has a special meaning in YAML"
        yield message, f"quote the text: `{quoted_line(found['key'], value)}`"


def _colon(trouble: Trouble) -> Iterator[Explained]:
    if "mapping values are not allowed" not in trouble.problem:
        return
    found = _TEXT_LINE.match(trouble.here)
    if found is not None and re.search(r":(\s|$)", found["value"]):
        key = f"`{found['key']}`"
        place = trouble.place if found["key"] in trouble.place else f"{key} in {trouble.place}"
        message = f"{place} contains a colon and a space, which YAML parses as a new key"
        yield message, f"quote the text: `{quoted_line(found['key'], found['value'])}`"
        return
    bare = _NO_COLON.match(trouble.before)
    if bare is not None and not _TEXT_LINE.match(trouble.before):
        wants = "a space after the colon" if bare["gap"] == ":" else "a colon after the key"
        message = f"`{trouble.before.strip()}`, the line above, needs {wants}"
        yield message, f"write `{bare['key']}: {bare['value'].strip()}`"


def _open(trouble: Trouble) -> Iterator[Explained]:
    if trouble.opened is None:
        return
    line, column = trouble.opened
    for words, mark, end in (("flow mapping", "{", "}"), ("flow sequence", "[", "]")):
        if words in trouble.context:
            yield (
                f"the `{mark}` in line {line}, column {column} ({trouble.place}) is not closed, or "
                "a comma is missing in it",
                f"check the commas and the closing `{end}`",
            )
    if "quoted scalar" in trouble.context:
        message = f"the quote that opens in line {line}, column {column} is not closed"
        yield message, f"close it; it belongs to {trouble.place}"


def _block(trouble: Trouble) -> Iterator[Explained]:
    if "expected <block end>" not in trouble.problem or trouble.opened is None:
        return
    number = trouble.line + 1
    if "<scalar>" in trouble.problem and re.search(r"[\"'] *\S", trouble.here):
        yield f"line {number} has text after a closing quote", "put the whole text in quotes"
    elif "block collection" in trouble.context:
        yield (
            f"line {number} is a key, and the lines above it are a list (`- ...`)",
            "use one of the two; `nodes` is a mapping, `name: {kind: ...}` without `-`",
        )
    else:
        line, column = trouble.opened
        yield (
            f"line {number} does not start in the column of its block (line {line}, column "
            f"{column})",
            f"all lines of a block start in the same column: indent it with {column - 1} spaces",
        )


def _end(trouble: Trouble) -> Iterator[Explained]:
    if "<stream end>" in trouble.problem and "flow" in trouble.context:
        yield f"the text ends while {trouble.place} is still open", "close its `[` or `{`"


def _unindented(trouble: Trouble) -> Iterator[Explained]:
    if "could not find expected ':'" in trouble.problem:
        line = trouble.opened[0] if trouble.opened is not None else trouble.line
        yield (
            f"line {line} is neither `key: value` nor part of the text above it",
            "indent lines of a text below `|` deeper than its key; put other text in quotes",
        )


_RULES: Final[tuple[Callable[[Trouble], Iterator[Explained]], ...]] = (
    _tab,
    _colon,
    _braces,
    _special,
    _block,
    _open,
    _end,
    _unindented,
)
