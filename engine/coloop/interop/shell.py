"""Commands of shell scripts, read without running anything.

Assignments, arrays, `read` from a here-document, `${name:-default}` and whole-number arithmetic are
followed; what only a running shell knows (`$(...)`, the environment, `$1`) stays as it is written.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from coloop.errors import ImportRefused
from coloop.spec.lean import record

MOST_WORDS: Final = 20_000
DEEPEST: Final = 20
NAME: Final = re.compile(r"[A-Za-z_]\w*")
ASSIGNED: Final = re.compile(r"([A-Za-z_]\w*)(\+?)=")
HEREDOC: Final = re.compile(
    r"^[^\n#]*?\bread\b[^\n]*?\b(\w+)\s*<<-?\s*(['\"]?)(\w+)\2[^\n]*\n(.*?)^\s*\3\s*$",
    re.MULTILINE | re.DOTALL,
)
SKIPPED: Final = {
    "then",
    "do",
    "{",
    "!",
    "time",
    "exec",
    "nohup",
    "sudo",
    "export",
    "declare",
    "local",
}
_OPERATORS: Final[dict[type[ast.operator], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.floordiv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


@record
class Word:
    """A word of a command after expansion."""

    text: str
    line: int


@dataclass(slots=True)
class _Raw:
    """A word as it is written, quotes included; elements of `name=( ... )` in `items`."""

    text: str
    line: int
    items: list[_Raw] | None = None


@dataclass(slots=True)
class _Shell:
    names: dict[str, list[Word]] = field(default_factory=dict)
    in_else: int = 0


def commands(text: str) -> list[list[Word]]:
    """The commands of a script, in order, with the variables that it sets filled in."""
    return _commands(text, _started())


def kept_texts(text: str) -> list[Word]:
    """Texts of several words that a script keeps in variables: commands that another one runs."""
    shell = _started()
    _commands(text, shell)
    values = (value[0] for value in shell.names.values() if len(value) == 1)
    return [value for value in values if " " in value.text]


def _started() -> _Shell:
    return _Shell(names={"HOME": [Word(text="~", line=1)], "PWD": [Word(text=".", line=1)]})


def _commands(text: str, shell: _Shell) -> list[list[Word]]:
    text = _take_heredocs(text, shell)
    found = []
    for raw in _split(text):
        if words := _run(raw, shell):
            found.append(words)
    return found


def _take_heredocs(text: str, shell: _Shell) -> str:
    """The text without here-documents that `read` puts into a variable."""

    def take(match: re.Match[str]) -> str:
        first = text.count("\n", 0, match.start(4)) + 1
        shell.names[match[1]] = [Word(text=match[4], line=first)]
        return "\n" * match[0].count("\n")

    return HEREDOC.sub(take, text)


def _run(raw: list[_Raw], shell: _Shell) -> list[Word]:
    """Carry out assignments, and return the words of a command."""
    while raw and raw[0].items is None and raw[0].text in {*SKIPPED, "if", "elif", "else", "fi"}:
        word = raw.pop(0).text
        if word in ("else", "elif"):
            shell.in_else = max(shell.in_else, 1)
        if word == "fi":
            shell.in_else = 0
    while raw and (match := ASSIGNED.match(raw[0].text)):
        if not shell.in_else or match[1] not in shell.names:
            _assign(raw[0], match, shell)
        raw.pop(0)
    return [word for part in raw for word in _expand(part, shell)]


def _assign(part: _Raw, match: re.Match[str], shell: _Shell) -> None:
    name, adds = match[1], bool(match[2])
    if part.items is not None:
        value = [word for item in part.items for word in _expand(item, shell)]
    else:
        rest = _Raw(text=part.text[match.end() :], line=part.line)
        value = [Word(text=_value_of(rest.text, shell), line=part.line)]
    shell.names[name] = shell.names.get(name, []) + value if adds else value


def _value_of(raw: str, shell: _Shell) -> str:
    """The value of an assignment, which is not divided into words."""
    return "".join(text for text, _ in _pieces(raw, shell, 0))


def _expand(part: _Raw, shell: _Shell, depth: int = 0) -> Iterator[Word]:
    """The words that one written word becomes: none for an empty variable, several for a list."""
    if depth > DEEPEST:
        yield Word(text=part.text, line=part.line)
        return
    whole = re.fullmatch(r'"?\$\{(\w+)\[[@*]\]\}"?', part.text)
    if whole is not None:
        yield from shell.names.get(whole[1], [])
        return
    plain = re.fullmatch(r"\$\{?(\w+)\}?", part.text)
    if plain is not None and plain[1] in shell.names:
        for word in shell.names[plain[1]]:
            for raw in _split(word.text):
                for inner in raw:
                    line = word.line + inner.line - 1
                    yield from _expand(_Raw(text=inner.text, line=line), shell, depth + 1)
        return
    text, is_open = "", False
    for piece, is_quoted in _pieces(part.text, shell, 0):
        if is_quoted or not re.search(r"\s", piece):
            text, is_open = text + piece, True
            continue
        first, *others = re.split(r"\s+", piece)
        text += first
        for other in others:
            if text or is_open:
                yield Word(text=text, line=part.line)
            text, is_open = other, bool(other)
    if text or part.text in ('""', "''"):
        yield Word(text=text, line=part.line)


def _pieces(raw: str, shell: _Shell, depth: int) -> Iterator[tuple[str, bool]]:
    """The expanded text of a word piece by piece, each with whether it was quoted."""
    if depth > DEEPEST:
        raise ImportRefused(f"variables that name each other without end: {raw[:60]!r}")
    at, quote = 0, ""
    while at < len(raw):
        char = raw[at]
        if char == "'" and not quote:
            end = raw.find("'", at + 1)
            end = len(raw) if end < 0 else end
            yield raw[at + 1 : end], True
            at = end + 1
        elif char == '"':
            quote = "" if quote else '"'
            at += 1
            if not quote:
                yield "", True
        elif char == "\\" and at + 1 < len(raw):
            escaped = raw[at + 1]
            keep = quote and escaped not in '"\\$`'
            yield ("\\" if keep else "") + escaped, True
            at += 2
        elif char == "$":
            is_command = raw.startswith("$(", at)
            text, at = _dollar(raw, at, shell, depth)
            yield text, bool(quote) or is_command
        else:
            yield char, bool(quote) or not char.isspace()
            at += 1


def _dollar(raw: str, at: int, shell: _Shell, depth: int) -> tuple[str, int]:
    """The value of what begins with `$`, and where it ends."""
    if raw.startswith("$'", at):
        end = raw.find("'", at + 2)
        end = len(raw) if end < 0 else end
        return raw[at + 2 : end].replace("\\n", "\n").replace("\\t", "\t"), end + 1
    if raw.startswith("$((", at):
        end = _closing(raw, at + 1)
        return _arithmetic(raw[at : end + 1], shell, depth), end + 1
    if raw.startswith("$(", at):
        end = _closing(raw, at + 1)
        written = raw[at : end + 1]
        return ("." if written == "$(pwd)" else written), end + 1
    if raw.startswith("${", at):
        end = raw.find("}", at)
        if end < 0:
            return raw[at:], len(raw)
        end = _closing(raw, at + 1, "{", "}")
        inside = raw[at + 2 : end]
        return _parameter(inside, raw[at : end + 1], shell, depth), end + 1
    match = NAME.match(raw, at + 1)
    if match is None:
        return raw[at : at + 2], at + 2
    return _named(match[0], f"${match[0]}", shell), match.end()


def _parameter(inside: str, written: str, shell: _Shell, depth: int) -> str:
    """The value of `${inside}`."""
    match = re.fullmatch(r"(\w+)(?:(:?[-=?+])(.*))?", inside, re.DOTALL)
    if match is None:
        return written
    name, how, default = match[1], match[2], match[3]
    if how and ("-" in how or "=" in how):
        if name in shell.names:
            return _named(name, written, shell)
        return "".join(text for text, _ in _pieces(default, shell, depth + 1))
    return _named(name, written, shell)


def _named(name: str, written: str, shell: _Shell) -> str:
    if name not in shell.names:
        return written
    return " ".join(word.text for word in shell.names[name])


def _arithmetic(written: str, shell: _Shell, depth: int) -> str:
    """The value of `$((...))` over whole numbers; as written where a name has no value."""
    inside = written[3:-2]
    inside = "".join(text for text, _ in _pieces(inside, shell, depth + 1))
    filled = NAME.sub(lambda match: _named(match[0], match[0], shell), inside)
    try:
        return str(_number(ast.parse(filled.strip(), mode="eval").body))
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError):
        return written


def _number(tree: ast.expr) -> int:
    match tree:
        case ast.Constant(value=int(value)) if abs(value) < 10**12:
            return int(value)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_number(operand)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return int(_OPERATORS[type(op)](_number(left), _number(right)))
    raise ValueError


def _closing(text: str, at: int, opens: str = "(", closes: str = ")") -> int:
    """Where the bracket that opens at `at` closes; the end of the text where it does not."""
    depth = 0
    for place in range(at, len(text)):
        depth += (text[place] == opens) - (text[place] == closes)
        if depth == 0:
            return place
    return len(text) - 1


def _split(text: str) -> list[list[_Raw]]:
    """Commands, each a list of written words."""
    found: list[list[_Raw]] = []
    command: list[_Raw] = []
    at, line, words = 0, 1, 0

    def end() -> None:
        nonlocal command
        if command:
            found.append(command)
        command = []

    while at < len(text):
        char = text[at]
        if (joined := re.compile(r"\\[ \t\r]*\n").match(text, at)) is not None:
            at, line = joined.end(), line + 1
            at, line = _skip_comments(text, at, line)
        elif char == "\n":
            end()
            at, line = at + 1, line + 1
        elif char.isspace():
            at += 1
        elif char in ";&|":
            end()
            at += 1
        elif char == "#":
            at = _line_end(text, at)
        elif char in "()":
            at += 1
        else:
            words += 1
            if words > MOST_WORDS:
                raise ImportRefused(f"line {line}: more than {MOST_WORDS} words; not a command")
            word, at, line = _word(text, at, line)
            command.append(word)
    end()
    return found


def _skip_comments(text: str, at: int, line: int) -> tuple[int, int]:
    """Past lines of a continued command that are comments."""
    while (comment := re.compile(r"[ \t]*#[^\n]*\n").match(text, at)) is not None:
        at, line = comment.end(), line + 1
    return at, line


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _word(text: str, at: int, line: int) -> tuple[_Raw, int, int]:
    """One written word, with where it ends."""
    start, first = at, line
    while at < len(text):
        char = text[at]
        if char == "\\":
            if at + 1 < len(text) and text[at + 1] == "\n":
                break
            at += 2
        elif char in "'\"":
            end = _quoted_end(text, at)
            line += text.count("\n", at, end)
            at = end
        elif text.startswith(("$(", "${"), at):
            opens, closes = ("(", ")") if text[at + 1] == "(" else ("{", "}")
            end = _closing(text, at + 1, opens, closes) + 1
            line += text.count("\n", at, end)
            at = end
        elif char == "(" and text[at - 1] == "=" and ASSIGNED.fullmatch(text[start:at]):
            end = _closing(text, at)
            inside = text[at + 1 : end]
            items = [
                _Raw(text=word.text, line=word.line + line - 1)
                for command in _split(inside)
                for word in command
            ]
            line += inside.count("\n")
            return _Raw(text=text[start:at], line=first, items=items), end + 1, line
        elif char.isspace() or char in ";&|()":
            break
        else:
            at += 1
    return _Raw(text=text[start:at], line=first), min(max(at, start + 1), len(text)), line


def _quoted_end(text: str, at: int) -> int:
    quote = text[at]
    place = at + 1
    while place < len(text):
        if text[place] == "\\" and quote == '"':
            place += 2
            continue
        if text[place] == quote:
            return place + 1
        place += 1
    line = text.count("\n", 0, at) + 1
    raise ImportRefused(f"line {line}: the quote {quote} that begins here does not end: close it")
