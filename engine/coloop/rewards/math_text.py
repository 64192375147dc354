"""The final answer of a text, and whether two answers are the same number, in plain text or LaTeX.

Nothing is evaluated as code: LaTeX becomes plain arithmetic, which expressions.py reads into exact
fractions. Numbers and words are decided here, at once and for good; of sets, intervals, tuples and
expressions with letters it says that it does not know, and math-verify is asked (`judging`).
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
COMMAND: Final = re.compile(r"\\(?:begin|end)\s*\{[a-z*]+\}|\\[a-zA-Z]+")
WORD: Final = re.compile(
    r"(?!(?:sin|cos|tan|cot|sec|csc|log|exp|lim|min|max|gcd|lcm|mod|and|sqrt)(?![a-zA-Z]))"
    r"(?<![a-zA-Z])[a-zA-Z]{3,}"
)
"""A word of language: as mathematics it would be a product of its letters, and `dog` be `god`."""
MATHEMATICAL: Final = re.compile(r"\d|\\|\b[a-zA-Z]\b|[-+*/^=<>]|π|∞|√")
"""What an answer has that may be mathematics; one without is a text."""
MIXED: Final = re.compile(r"^(-?)(\d+)\s+(\d+)/(\d+)$")


def are_equal(said: str, gold: str, *, tolerance: float) -> bool | None:
    """Whether two final answers are equal as texts or as numbers; None: neither settles it."""
    if max(len(said), len(gold)) > LONGEST_ANSWER:
        return said.strip() == gold.strip()
    plain = [_as_plain(text).replace(" ", "") for text in (said, gold)]
    if plain[0] == plain[1] != "":
        return True
    left, right = _number(said), _number(gold)
    if left is not None and right is not None:
        return _near(left, right, tolerance)
    if not all(plain) or WORD.search(_without_commands(gold)) or not MATHEMATICAL.search(said):
        return False
    return None


def final_answer(text: str) -> str:
    """The answer that a text ends with: boxed, after ####, the whole of it, or its last number."""
    marked = marked_answer(text)
    if marked is not None:
        return marked
    line = last_line(text)
    if len(line) <= LONGEST_ANSWER and _is_numbers(line):
        return line
    numbers = NUMBER.findall(text)
    return numbers[-1].rstrip(",") if numbers else text.strip()


def _is_numbers(text: str) -> bool:
    """Whether a text is a number, or numbers with commas between."""
    plain = _as_plain(WORDS.sub("", text)).strip("()[]{}")
    parts = plain.split(",") if "," in plain else [text]
    return all(_number(part) is not None for part in parts)


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


def _number(text: str) -> Fraction | None:
    """The number that an answer stands for; None where it is no single one."""
    plain = UNIT.sub("", _as_plain(WORDS.sub("", text)))
    if "=" in plain:
        plain = plain.rpartition("=")[2].strip()
    try:
        return _value(plain) if plain else None
    except NotArithmetic:
        return None


def _without_commands(text: str) -> str:
    """LaTeX without the names of its commands, words in it kept."""
    return COMMAND.sub(" ", WORDS.sub(r" \1 ", text))


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
