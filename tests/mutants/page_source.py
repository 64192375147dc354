"""Changes of TypeScript source: signs, conditions and returns, found by their text.

What stands in comments, texts, types and imports is left alone.
"""

import re
from collections.abc import Iterator

from tests.mutants.python_source import Mutation

SIGNS = {
    " === ": ("comparison", " !== "),
    " !== ": ("comparison", " === "),
    " < ": ("comparison", " <= "),
    " <= ": ("comparison", " < "),
    " > ": ("comparison", " >= "),
    " >= ": ("comparison", " > "),
    " && ": ("connective", " || "),
    " || ": ("connective", " && "),
    " ?? ": ("connective", " && "),
    " + 1": ("off by one", " + 2"),
    " - 1": ("off by one", " - 2"),
    ".filter(": ("other method", ".map("),
    ".some(": ("other method", ".every("),
    ".every(": ("other method", ".some("),
    "Math.min(": ("other function", "Math.max("),
    "Math.max(": ("other function", "Math.min("),
    "true": ("truth value", "false"),
    "false": ("truth value", "true"),
}
SILENT = re.compile(
    r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\n])*\"|'(?:\\.|[^'\n])*'|`(?:\\.|[^`])*`"
    r"|^import .*?;$|^(?:export )?(?:interface|type) .*?^}|^(?:export )?type [^\n]*;$",
    re.DOTALL | re.MULTILINE,
)
FUNCTION = re.compile(
    r"^(?:export )?(?:default )?(?:async )?function (\w+)|^(?:export )?const (\w+) = ", re.MULTILINE
)
NEGATED = re.compile(r"(?<=[\s(])!(?=[\w(])")
CONDITION = re.compile(r"\bif \((.+)\)(?= [{\w])")
GUARD = re.compile(r"\bif \((.+)\) (?:return|continue|throw)\b")
RETURN = re.compile(r"\breturn [^;\n]+;")


def mutations(source: str) -> list[Mutation]:
    """All changes of a source, in the order of their places."""
    silent = [match.span() for match in SILENT.finditer(source)]
    names = [(match.start(), match[1] or match[2]) for match in FUNCTION.finditer(source)]
    found = []
    for operator, start, end, after in _changes(source):
        if any(first <= start < last for first, last in silent):
            continue
        around = [name for at, name in names if at <= start]
        if not around:
            continue
        begin = source.rfind("\n", 0, start) + 1
        line = source[begin : source.find("\n", start)].strip()
        encoded = (len(source[:start].encode()), len(source[:end].encode()))
        found.append(Mutation(around[-1], operator, source[start:end], after, line, *encoded))
    return sorted(found, key=lambda change: (change.start, change.end, change.operator))


def _changes(source: str) -> Iterator[tuple[str, int, int, str]]:
    for sign, (operator, after) in SIGNS.items():
        for match in re.finditer(re.escape(sign) if not sign.isalpha() else rf"\b{sign}\b", source):
            yield operator, *match.span(), after
    for match in NEGATED.finditer(source):
        yield "negation dropped", *match.span(), ""
    for match in CONDITION.finditer(source):
        yield "condition negated", *match.span(1), f"!({match[1]})"
    for match in GUARD.finditer(source):
        yield "guard dropped", *match.span(1), f"false && ({match[1]})"
    for match in RETURN.finditer(source):
        yield "return dropped", *match.span(), "return undefined as never;"
