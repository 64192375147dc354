"""The scripted completions of a rehearsal.

Models with random weights generate nothing that a pattern matches, so no row would pass the first
filter. A line is a `string.Template`, filled from the row of its prompt.
"""

import ast
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

from coloop.sandbox.inside.parsing import parse_code
from coloop.spec.answers import answer_schema, expects_json
from coloop.spec.builtins import SCORE_TO_SCORE
from coloop.spec.graph import LoopSpec
from coloop.spec.groups import rollout_of
from coloop.spec.nodes import (
    FilterNode,
    Node,
    RewardNode,
    SearchNode,
    TemplateNode,
    ToolNode,
    VerifierNode,
)
from coloop.spec.reading import Read
from coloop.spec.shaping import ParseJson, ParseRegex, ParseTag
from coloop.spec.tools import OWN_CALLS

SENTENCE = "what is the sum of one two three four five six seven eight"
"""Placeholder for any text."""
RIGHT = ("$answer", "$target", "$chosen", "$rejected")
"""The right answer from the row's columns; rows without the column skip the line."""
MOST = 10
"""Maximum lines per node."""
LONGEST_MARK = 4
"""Maximum letters of a marker such as `=` in environment code."""
SPARE = 16
"""Tokens in addition to the longest line, for the end of text and column values."""
GATHERED = range(1, 5)
"""Numbers of rows that are gathered for a judge."""
STEPS = "123"
"""Step numbers in verdicts."""
HANDED_ON = frozenset({"filter", "buffer", "search", "pairs"})
"""Node kinds that pass texts on to other nodes."""
TEXTS = frozenset({"rollouts", "rows", "policy", "check", "pairs"})
"""Port types that carry texts."""
SHAPES: Mapping[str, str] = {
    "sum": "12+34=",
    "number": "12",
    "boxed": "\\boxed{12}",
    "tags": "<think>so</think><answer>12</answer>",
    "verdict_per_step": "step 1: right\nstep 2: wrong\nfinal: incorrect",
    "question_tag": f"<question>{SENTENCE}</question>",
}
"""A text for each named shape of reward `format`."""


def scripted(spec: LoopSpec, document: dict[str, Any]) -> None:
    """Set the lines of every generating node, and enough `max_new_tokens` for them."""
    for name, node in document["nodes"].items():
        rollout, own = node.get("rollout"), rollout_of(spec, name)
        if rollout is None or own is None or not (lines := lines_of(spec, name)):
            continue
        rollout["script"] = list(lines)
        longest = max(len(line.encode()) for line in lines)
        room = max(rollout["max_new_tokens"], longest + SPARE)
        rollout["max_new_tokens"] = min(own.max_new_tokens, room)


def lines_of(spec: LoopSpec, name: str) -> tuple[str, ...]:
    """The completions that a node generates in turn."""
    node = spec.nodes[name]
    lines = [*_of_judge(node)] if isinstance(node, VerifierNode) else []
    pieces = [piece for reader in _readers(spec, name) for piece in _of_reader(reader)]
    tools = list(_tools(spec, name))
    calls = "".join(call for tool in tools for call in _of_tool(tool))
    lines += [line for tool in tools for line in _of_environment(tool)]
    if calls:
        lines += [calls + piece for piece in (*pieces, *RIGHT)]
    lines += [*RIGHT, *pieces] if not isinstance(node, VerifierNode) else pieces
    return tuple(dict.fromkeys(line for line in lines if line))[:MOST]


def _readers(spec: LoopSpec, writer: str) -> Iterator[Node]:
    """Nodes that read the texts of `writer`, directly or through nodes in HANDED_ON."""
    seen, waiting = {writer}, [writer]
    while waiting:
        at = waiting.pop(0)
        for edge in spec.graph.edges_out_of(at):
            target = edge.target.node
            if edge.source.port not in TEXTS or target in seen:
                continue
            seen.add(target)
            yield spec.nodes[target]
            if spec.nodes[target].kind in HANDED_ON:
                waiting.append(target)
        for edge in spec.graph.edges_into(at, "outcome") if at != writer else ():
            yield spec.nodes[edge.source.node]


def _tools(spec: LoopSpec, caller: str) -> Iterator[ToolNode]:
    """Tools that a node calls, or a search in which it proposes; instead of a tool that wraps
    others, these."""
    for edge in spec.graph.edges_out_of(caller):
        if isinstance(spec.nodes[edge.target.node], SearchNode):
            yield from _tools(spec, edge.target.node)
    for edge in spec.graph.edges_into(caller, "tools"):
        name = edge.source.node
        node = spec.nodes[name]
        if spec.graph.edges_into(name, "tools"):
            yield from _tools(spec, name)
        elif isinstance(node, ToolNode):
            yield node


def _of_reader(node: Node) -> Iterator[str]:
    match node:
        case TemplateNode():
            yield from _together([[*_of_parse(rule)] for rule in node.parse.values()])
            if node.code is not None:
                yield from _of_code(node.code)
        case RewardNode():
            yield from _of_reward(node)
        case FilterNode():
            for rule in node.keep:
                if rule.rule == "regex":
                    yield from _of_pattern(rule.pattern)
                elif rule.rule == "python":
                    yield from _of_code(rule.code)


def _together(parts: Iterable[Iterable[str]]) -> Iterator[str]:
    """Texts that match every part: first any match, then right answers."""
    for index in (-1, 0):
        lines = [texts[index] for texts in map(list, parts) if texts]
        if lines:
            yield "\n".join(lines)


def _of_parse(rule: str | ParseRegex | ParseJson | ParseTag) -> Iterator[str]:
    match rule:
        case str():
            yield from _of_pattern(rule)
        case ParseRegex():
            yield from _of_pattern(rule.regex)
        case ParseTag():
            yield f"<{rule.tag}>$answer</{rule.tag}>"
            yield f"<{rule.tag}>{SENTENCE}</{rule.tag}>"
        case ParseJson():
            value: Any = SENTENCE
            for key in reversed([key for key in rule.json_path.split(".") if key]):
                value = {key: value}
            yield _plain(json.dumps(value))


def _of_reward(node: RewardNode) -> Iterator[str]:
    source = node.source
    code = getattr(source, "code", None)
    if code is not None:
        yield from _of_code(code)
    if source.type != "builtin" or source.name in SCORE_TO_SCORE:
        return
    match source.name:
        case "exact_match" | "math_equal" | "choice":
            answer = f"${source.column}"
            extract = getattr(source, "extract", None)
            yield from [answer] if extract is None else _of_pattern(extract, answer)
        case "format" if source.shape is not None:
            yield SHAPES[source.shape]
        case "format" | "regex" if source.pattern is not None:
            yield from _of_pattern(source.pattern)
        case "json_schema" if source.shape is not None:
            yield _plain(json.dumps(_of_schema(source.shape)))


def _of_pattern(pattern: str, answer: str = "$answer") -> Iterator[str]:
    if group_count(pattern) == 1 and (around := text_around(pattern)) is not None:
        before, behind = around
        yield f"{_plain(before)}{answer}{_plain(behind)}"
    for choice in range(2):
        text = text_for(pattern, choice=choice)
        if text is not None:
            yield _plain(text)


def _of_code(code: str) -> Iterator[str]:
    """Texts that match the patterns in Python code."""
    for part in _parsed(code):
        match part:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="re" | "regex")),
                args=[ast.Constant(value=str() as pattern), *_],
            ):
                yield from _of_pattern(pattern)


def _parsed(code: str) -> Iterator[ast.AST]:
    """All nodes of the syntax tree; none for invalid Python."""
    try:
        return ast.walk(parse_code(code))
    except SyntaxError:
        return iter(())


def _of_schema(shape: Mapping[str, Any], choice: int = 0) -> Any:
    """A value that fits a schema. `choice`: which of the values, where several do."""
    if "enum" in shape:
        return shape["enum"][choice % len(shape["enum"])]
    match shape.get("type"):
        case "object":
            wanted = shape.get("properties", {})
            names = shape.get("required", wanted)
            return {key: _of_schema(wanted[key], choice) for key in names}
        case "array":
            size = max(1, shape.get("minItems", 1))
            return [_of_schema(shape.get("items", {}), choice + place) for place in range(size)]
        case "integer" | "number":
            least = shape.get("minimum", 1)
            return min(least + choice, shape.get("maximum", least + choice))
        case "boolean":
            return True
    return "text"


def _of_judge(node: VerifierNode) -> Iterator[str]:
    """Verdicts of a judge; with `per: row` for each number of rows that may be gathered."""
    read = node.read.model_copy(update={"ask": "together"})
    if node.per is None or not (expects_json(read) or read.ranking):
        yield from _verdicts(read)
        return
    for things in GATHERED:
        schema = answer_schema(read, things)
        answer = None if schema is None else _of_schema(schema)
        ranking = " ".join(map(str, range(things, 0, -1)))
        text = text_for(read.verdict or "", {1: ranking}) if answer is None else json.dumps(answer)
        if text:
            yield _plain(text)


def _verdicts(read: Read) -> Iterator[str]:
    """One text per verdict word: verdicts of steps, then of the whole."""
    words = list(read.values or ()) or list(read.labels or ())
    for choice in range(max(2, len(words))):
        parts = []
        if read.step_verdicts is not None:
            pattern = read.step_verdicts
            parts += [_verdict(pattern, choice, words, {1: step}) for step in STEPS]
        if read.numbers is not None:
            parts += [text_for(read.numbers, {1: step, 2: str(choice + 1)}) for step in STEPS]
        if read.number is not None:
            parts.append(text_for(read.number, {1: str(choice + 1)}) or text_for(read.number))
        if (schema := answer_schema(read)) is not None:
            parts.append(json.dumps(_of_schema(schema, choice)))
        if read.verdict is not None:
            parts.append(_verdict(read.verdict, choice, words, {}))
        text = "\n".join(part for part in parts if part)
        if text:
            yield _plain(text)


def _verdict(pattern: str, choice: int, words: list[str], groups: Mapping[int, str]) -> str | None:
    """A text that matches `pattern`, with the first word from index `choice` on for which there is
    one."""
    for turn in range(len(words)):
        word = words[(choice + turn) % len(words)]
        if (text := text_for(pattern, {**groups, len(groups) + 1: word})) is not None:
            return text
    return text_for(pattern, groups, choice)


ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "search": ("one", "two"),
    "python": ("print(1+1)",),
    "calculator": ("1+1",),
    "model": ("what is one", "what is two"),
}
"""By type of tool, arguments of its calls in turn."""


def _of_tool(tool: ToolNode) -> Iterator[str]:
    pattern = tool.call or OWN_CALLS.get(tool.type)
    if pattern is None:
        return
    for argument in ARGUMENTS.get(tool.type, ("one",)):
        count = group_count(pattern)
        text = text_for(f"(?s:{pattern})", dict.fromkeys(range(1, count + 1), argument))
        if text is not None:
            yield _plain(text)


PROVES_NEGATION = "none"
"""Action of the environment `proof` that proves a negation, without a column of the row."""


def _of_environment(tool: ToolNode) -> Iterator[str]:
    """The right answer after each marker in the environment's code, and the one action of the
    environment `proof` that no row holds."""
    if tool.name == "proof":
        yield PROVES_NEGATION
    for part in _parsed(tool.code or ""):
        mark = part.value if isinstance(part, ast.Constant) else None
        if isinstance(mark, str) and 0 < len(mark) <= LONGEST_MARK and not mark.isidentifier():
            yield f"{_plain(mark)}$answer"


def _plain(text: str) -> str:
    return text.replace("$", "$$")


# Texts that a regular expression matches.
#
# Made from the parsed expression: the first or a chosen alternative, as few repeats as allowed but
# at least one, a sentence where anything may be. For some expressions (look-behinds, back
# references) this fails: a text is only used if the expression matches it.

HOLE = "\0"
LETTERS = "a1 Z_\n-"
"""Candidates for a character class."""


class NoText(Exception):
    """A part of a regular expression for which no text can be made."""


def text_for(pattern: str, groups: Mapping[int, str] | None = None, choice: int = 0) -> str | None:
    """A text that matches a pattern; None if none was found.

    Args:
        groups: contents of groups, by number; default: any match.
        choice: which alternative to take in each set.
    """
    text = _written(pattern, groups or {}, choice)
    return text if text is not None and re.search(pattern, text) else None


def text_around(pattern: str) -> tuple[str, str] | None:
    """Text before and after the first group; None if no text can be made."""
    text = _written(pattern, {1: HOLE}, 0)
    if text is None or not any(text_for(pattern, {1: word}) for word in ("1", "a", SENTENCE)):
        return None
    before, _, behind = text.partition(HOLE)
    return before, behind


def _written(pattern: str, groups: Mapping[int, str], choice: int) -> str | None:
    try:
        return _all(list(parser.parse(pattern)), groups, choice)
    except (re.error, NoText, OverflowError, RecursionError):
        return None


def group_count(pattern: str) -> int:
    """Number of groups; 0 for an invalid pattern."""
    try:
        return re.compile(pattern).groups
    except re.error:
        return 0


def _said(part: tuple[Any, Any], groups: Mapping[int, str], choice: int) -> str:
    name, value = part
    match name:
        case op.LITERAL:
            return chr(value)
        case op.ANY:
            return "a"
        case op.NOT_LITERAL:
            return next(letter for letter in LETTERS if ord(letter) != value)
        case op.IN:
            return _one_of(value, choice)
        case op.BRANCH:
            branches = value[1]
            return _all(branches[choice % len(branches)], groups, choice)
        case op.SUBPATTERN:
            number, _, _, inside = value
            return groups[number] if number in groups else _all(inside, groups, choice)
        case op.MAX_REPEAT | op.MIN_REPEAT | op.POSSESSIVE_REPEAT:
            return _repeated(value, groups, choice)
        case op.AT | op.ASSERT_NOT:
            return ""
        case op.ASSERT:
            return _all(value[1], groups, choice)
        case op.ATOMIC_GROUP:
            return _all(value, groups, choice)
    raise NoText(str(name))


def _all(parts: Sequence[tuple[Any, Any]], groups: Mapping[int, str], choice: int) -> str:
    return "".join(_said(part, groups, choice) for part in parts)


def _repeated(value: Any, groups: Mapping[int, str], choice: int) -> str:
    least, most, inside = value
    if len(inside) == 1 and _is_anything(inside[0]) and most >= len(SENTENCE) >= least:
        return SENTENCE
    once = _all(inside, groups, choice)
    return once * (least or (0 if once.isspace() else min(1, most)))


def _is_anything(part: tuple[Any, Any]) -> bool:
    """Whether a part of a pattern matches every letter of SENTENCE."""
    name, value = part
    if name is op.IN and value[0][0] is op.NEGATE:
        return not any(_in_class(member, letter) for member in value[1:] for letter in SENTENCE)
    return name is op.ANY or (name is op.NOT_LITERAL and chr(value) not in SENTENCE)


def _one_of(members: Sequence[tuple[Any, Any]], choice: int) -> str:
    """A character of a class; `choice` selects among single ones, as `a|b` is parsed as a class."""
    if all(name is op.LITERAL for name, _ in members):
        return chr(members[choice % len(members)][1])
    is_negated = members[0][0] is op.NEGATE
    members = members[1:] if is_negated else members
    letters = LETTERS if is_negated else LETTERS + "".join(map(_first, members))
    for letter in letters:
        if any(_in_class(member, letter) for member in members) != is_negated:
            return letter
    raise NoText("class")


def _first(member: tuple[Any, Any]) -> str:
    name, value = member
    if name is op.LITERAL:
        return chr(value)
    return chr(value[0]) if name is op.RANGE else ""


def _in_class(member: tuple[Any, Any], letter: str) -> bool:
    name, value = member
    match name:
        case op.LITERAL:
            return bool(ord(letter) == value)
        case op.RANGE:
            return bool(value[0] <= ord(letter) <= value[1])
        case op.CATEGORY:
            return _in_category(str(value), letter)
    raise NoText(str(name))


def _in_category(category: str, letter: str) -> bool:
    kind = category.removeprefix("CATEGORY_")
    tests = {
        "DIGIT": letter.isdigit(),
        "SPACE": letter.isspace(),
        "WORD": letter.isalnum() or letter == "_",
    }
    return not tests[kind.removeprefix("NOT_")] if kind.startswith("NOT_") else tests[kind]
