"""Whether two answers are the same number, fraction or expression, in plain text or LaTeX.

Nothing is evaluated as code: LaTeX becomes plain arithmetic, which expressions.py reads into exact
fractions. What is no mathematics is compared as text.
"""

import re
from fractions import Fraction
from typing import Final

from coloop.data.answers import last_line, without_thousands
from coloop.data.expressions import NotArithmetic, read_expression

NUMBER: Final = re.compile(r"(?:(?<![\w.)])-)?\d[\d,]*(?:\.\d+)?(?:/\d+)?|(?<!\d)\.\d+")
GOLD_MARK: Final = "####"
LONGEST_ANSWER: Final = 1000
"""Characters of an answer that may be mathematics; a longer one is a text. A model writes what it
likes, and reading LaTeX takes the square of its length."""
BRACES: Final = re.compile(r"\\boxed\{|[{}]")
DEEPEST_BRACES: Final = 40

PLAIN: Final = (
    (re.compile(r"\\(?:left|right|displaystyle|,|;|!|:|quad|qquad)(?![a-zA-Z])"), ""),
    (re.compile(r"\\(?:cdot|times)(?![a-zA-Z])|×|·"), "*"),
    (re.compile(r"\\div(?![a-zA-Z])|÷"), "/"),
    (re.compile(r"−"), "-"),
    (re.compile(r"\\pi(?![a-zA-Z])|π"), " pi "),
    (re.compile(r"\\(?:%|\$|circ)|\^\s*\{?\s*\\circ\s*\}?|[$%]"), ""),
    (re.compile(r"\\[()\[\]]"), ""),
    (re.compile(r"~"), " "),
)
WORDS: Final = re.compile(r"\\(?:text|mathrm|mbox|textbf)\s*\{([^{}]*)\}")
UNIT: Final = re.compile(r"(?<=\d)\s+[a-zA-Z][a-zA-Z .]*$")
FRACTION: Final = re.compile(r"\\[dtc]?frac\s*(?:\{([^{}]*)\}|(\d))\s*(?:\{([^{}]*)\}|(\d))")
ROOT: Final = re.compile(r"\\sqrt\s*(?:\{([^{}]*)\}|(\d))")
BRACED: Final = re.compile(r"(?<=[\^_])\s*\{([^{}]*)\}")
IMPLIED: Final = re.compile(r"(?<=[\d)])\s*(?=\(|sqrt|pi)|(?<=pi)\s*(?=\(|\d|sqrt)")
MIXED: Final = re.compile(r"^(-?)(\d+)\s+(\d+)/(\d+)$")


def are_equal(said: str, gold: str, *, tolerance: float) -> bool:
    """Whether two final answers are equal as numbers, as lists of numbers, or as texts."""
    if max(len(said), len(gold)) > LONGEST_ANSWER:
        return said.strip() == gold.strip()
    left, right = _values(said), _values(gold)
    if left is None or right is None:
        return _as_plain(said).replace(" ", "") == _as_plain(gold).replace(" ", "") != ""
    return len(left) == len(right) and all(
        _near(a, b, tolerance) for a, b in zip(left, right, strict=True)
    )


def final_answer(text: str) -> str:
    """The answer that a text ends with: boxed, after ####, the whole of it, or its last number."""
    marked = marked_answer(text)
    if marked is not None:
        return marked
    line = last_line(text)
    if len(line) <= LONGEST_ANSWER and _values(line) is not None:
        return line
    numbers = NUMBER.findall(text)
    return numbers[-1].rstrip(",") if numbers else text.strip()


def marked_answer(text: str) -> str | None:
    """What a text marks as its answer: boxed, or after ####."""
    boxed = last_boxed(text)
    if boxed is None and GOLD_MARK in text:
        return text.rpartition(GOLD_MARK)[2].strip()
    return boxed


def last_boxed(text: str) -> str | None:
    r"""What stands in the last closed \boxed{...}, braces inside it included."""
    open_at: list[int] = []
    last: tuple[int, int] | None = None
    for found in BRACES.finditer(text):
        if found[0] != "}":
            open_at.append(found.end() if found[0] != "{" else -1)
        elif open_at and (start := open_at.pop()) >= 0 and (last is None or start > last[0]):
            last = start, found.start()
    return None if last is None else text[slice(*last)]


def _values(text: str) -> list[Fraction] | None:
    """Numbers that an answer stands for, several for a list; None where it is no mathematics."""
    plain = UNIT.sub("", _as_plain(WORDS.sub("", text)))
    if "=" in plain:
        plain = plain.rpartition("=")[2].strip()
    if not plain:
        return None
    parts = plain.strip("()[]{}").split(",") if "," in plain else [plain]
    try:
        return [_value(part) for part in parts]
    except NotArithmetic:
        return None


def _value(text: str) -> Fraction:
    mixed = MIXED.match(text.strip())
    if mixed is not None and int(mixed[4]) != 0:
        size = Fraction(int(mixed[2])) + Fraction(int(mixed[3]), int(mixed[4]))
        return -size if mixed[1] else size
    return read_expression(text, functions=True).value


def _as_plain(text: str) -> str:
    """LaTeX as plain arithmetic, as far as it is arithmetic."""
    plain = WORDS.sub(r"\1", without_thousands(text.strip().rstrip(".")))
    plain = plain.replace("{,}", "").replace("\\!", "")
    for pattern, replacement in PLAIN:
        plain = pattern.sub(replacement, plain)
    for _ in range(DEEPEST_BRACES):
        before = plain
        plain = BRACED.sub(r"(\1)", plain)
        plain = FRACTION.sub(_as_division, plain)
        plain = ROOT.sub(lambda found: f"sqrt({found[1] or found[2]})", plain)
        if plain == before:
            break
    return IMPLIED.sub("*", plain).strip()


def _as_division(found: re.Match[str]) -> str:
    return f"(({found[1] or found[2]})/({found[3] or found[4]}))"


def _near(a: Fraction, b: Fraction, tolerance: float) -> bool:
    return a == b or abs(a - b) <= Fraction(tolerance) * max(abs(a), abs(b))
