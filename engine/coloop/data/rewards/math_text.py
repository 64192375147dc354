"""Finds the final answer of a text, and compares answers as numbers, in plain text or LaTeX.

Nothing is evaluated as code: LaTeX becomes plain arithmetic, which `data.expressions` reads as
exact fractions. Numbers and words are compared here; sets, intervals, tuples and expressions with
letters are left to math-verify (`judging`). What math-verify ignores is rejected here first:
relations, bases, words that change a number (`5 or more`), a number next to a number.
"""

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from coloop.data.answers import last_line, without_thousands
from coloop.data.expressions import WITH_FUNCTIONS, NotArithmetic, read_expression

# Words next to a number in an answer: those that name what is counted, those that multiply the
# number, and those that change its meaning.

SCALES: Final[Mapping[str, int]] = {
    "hundred": 2,
    "thousand": 3,
    "million": 6,
    "billion": 9,
    "trillion": 12,
}
"""Words after a number that multiply it, as powers of ten."""
SHORT_UNITS: Final = frozenset({
    "A", "C", "F", "J", "K", "L", "N", "V", "W", "g", "h", "l", "m", "s", "Hz", "Pa", "am", "cm",
    "ft", "hr", "in", "kW", "kg", "km", "lb", "mL", "mg", "mi", "ml", "mm", "oz", "pm", "pt", "qt",
    "yd", "a", "an", "of",
})  # fmt: skip
"""Units of one or two letters; other short words are variables."""
VERBS: Final = frozenset({"is", "are", "was", "were", "be"})
"""Verbs in a statement about a number (`The answer is 5`)."""
CHANGING: Final = frozenset({
    "not", "no", "never", "none", "neither", "nor", "without", "except", "unless", "if", "but",
    "isn", "aren", "wasn", "weren", "don", "doesn", "won", "wouldn", "cannot", "could", "would",
    "maybe", "than", "least", "most", "over", "under", "above", "below", "between", "wrong",
    "incorrect", "false", "invalid", "impossible", "undefined", "unknown", "plus", "minus",
    "negative", "factorial", "modulo", "mod", "base", "remainder", "half", "halves", "thirds",
    "fifths", "tenths", "hundredths", "thousandths", "millionths",
})  # fmt: skip
"""Words that change the meaning of a number next to them."""
COMPARING: Final = frozenset({"more", "less", "fewer", "greater", "smaller", "larger", "higher"})
"""With `or` they make a number a bound (`5 or more`), else they count (`5 more apples`)."""
DESCRIBING: Final = re.compile(
    r"\b(?:wrong|incorrect|false|invalid|impossible|negative|plus|base)\s+"
    r"(?=[a-z]{3})(?!(?:two|three|four|five|six|seven|eight|nine|ten|twelve|sixteen)\b)",
    re.IGNORECASE,
)
"""Words of CHANGING that here only describe what is counted: `4 wrong answers`."""
PLACING: Final = re.compile(r"\b(?:over|above)\s*(?=[a-z]{3}|$)", re.IGNORECASE)
"""`over` and `above` where they do not change the number: `5 left over`, `20 above average`."""
POWERS: Final = ("squared", "cubed")
"""Directly after a number these change it; after a unit they are part of the unit."""
LONGEST_UNIT: Final = 5
"""Maximum words of a unit; longer text counts as a sentence."""
LETTERS: Final = re.compile(r"[a-zA-Z]+")


def words_of(text: str) -> frozenset[str]:
    return frozenset(word.casefold() for word in LETTERS.findall(text))


def changes(text: str) -> frozenset[str]:
    """Words in a text that change the meaning of the number before or after it."""
    text = DESCRIBING.sub(" ", text)
    if words_of(text) & {"or", "and"}:
        return words_of(text) & (CHANGING | COMPARING)
    return words_of(PLACING.sub(" ", text)) & CHANGING


def is_unit(text: str) -> bool:
    """Whether the words after a number only name what is counted."""
    words = LETTERS.findall(text)
    if len(words) > LONGEST_UNIT or words[0] in POWERS:
        return False
    if changes(text) or words_of(text) & SCALES.keys():
        return False
    return all(len(word) > 2 or word in SHORT_UNITS | VERBS for word in words)


SCALE_WORDS: Final = "|".join(SCALES)
EXPONENT: Final = r"[eE]([+-]?\d{1,2})(?!\w|\.\d)"
NUMBER: Final = re.compile(
    r"(?:(?:(?<![\w.)])-)?\d[\d,]*(?:\.\d+)?(?:/\d+)?|(?<!\d)\.\d+)"
    r"(?:[eE][+-]?\d{1,2}(?!\w|\.\d)"
    r"|\s?(?:\\times|×)\s?10\s?\^\s?(?:\{[+-]?\d+\}|[+-]?\d+)"
    rf"|\s(?:{SCALE_WORDS})(?![a-zA-Z]))?"
)
GOLD_MARK: Final = "####"
LONGEST_ANSWER: Final = 1000
"""Maximum characters of an answer, because parsing LaTeX takes quadratic time."""
BRACES: Final = re.compile(r"\\boxed\{|[{}]")
DEEPEST_BRACES: Final = 40

PLAIN: Final = (
    (re.compile(r"\\(?:left|right|displaystyle|,|;|!|:|quad|qquad)(?![a-zA-Z])"), ""),
    (re.compile(r"\\(?:cdot|times)(?![a-zA-Z])|×|·"), "*"),
    (re.compile(r"\\div(?![a-zA-Z])|÷"), "/"),
    (re.compile(r"−"), "-"),
    (re.compile(r"\\pi(?![a-zA-Z])|π"), " pi "),
    (re.compile(r"\\(?:%|\$|circ)|\^\s*\{?\s*\\circ\s*\}?|[$%]"), ""),
    (re.compile(r"~"), " "),
)
DELIMITER: Final = re.compile(r"\\[()\[\]]")
WORDS: Final = re.compile(r"\\(?:text|mathrm|mbox|textbf)\s*\{([^{}]*)\}")
UNIT: Final = re.compile(r"(?<=[\d)])\s+([a-zA-Z][a-zA-Z ./]*)(?:\^\s*\(?[23]\)?|[²³])?$")
RELATION: Final = re.compile(
    r"[<>≠≤≥]|!=|\\(?:n?[lg](?:e|eq|t|eqq|eqslant|ess|tr)|neq?|not)(?![a-zA-Z])"
)
BASE: Final = re.compile(r"(?<=\d)_\s*\{?\s*(\w+)")
BESIDE: Final = re.compile(r"\d\s+\d")
SAID_OF: Final = re.compile(rf"\d[^\d]*\b(?:{'|'.join(sorted(VERBS))})\b[^\d]*\d")
"""Two numbers with a verb between: `3 is less than 5`."""
LED_TO: Final = re.compile(rf"^[a-zA-Z ]*\b(?:{'|'.join(sorted(VERBS))})\s+(?=[-+.\d$\\])")
"""Words before the answer: `The answer is 5`."""
GROUPED: Final = re.compile(r"(?<=\d) (?=\d{3}(?![\d/]))|(?<!\d) | (?!\d)")
"""Spaces to remove: those that group thousands, and those that are not between two digits."""
MIXED: Final = re.compile(
    r"(?<![\w.^])(\d+)(?:\s*\\[dtc]?frac\s*(?:\{\s*(\d+)\s*\}|(\d))\s*(?:\{\s*(\d+)\s*\}|(\d))"
    r"|\s+(\d+)\s*/\s*(\d+))"
)
SCIENTIFIC: Final = re.compile(rf"(?<![\w.])(\d+(?:\.\d+)?|\.\d+){EXPONENT}")
SCALED: Final = re.compile(rf"(?<=\d)\s+({SCALE_WORDS})(?![a-zA-Z])")
POWERED: Final = re.compile(rf"[\d)]\s+(?:{'|'.join(POWERS)})(?![a-zA-Z])")
ROUNDED: Final = re.compile(rf"\.\d*[1-9]|\d{EXPONENT}")
"""A decimal or scientific notation, which may be rounded."""
DECIMALS: Final = re.compile(r"\.(\d+)")
IRRATIONAL: Final = re.compile(r"pi|sqrt|π")
ROOTS_DIFFER: Final = 1e-15
"""Relative tolerance for numbers with roots or pi, which are computed to 20 digits."""
OPEN: Final = re.compile(r"[(\[]|\\\{|\\lbrace|\\langle")
LEADING: Final = re.compile(r"^\s*\\(?:text|mathrm|mbox|textbf)\s*\{[^{}]*\}")
FRACTION: Final = re.compile(r"\\[dtc]?frac\s*(?:\{([^{}]*)\}|(\d))\s*(?:\{([^{}]*)\}|(\d))")
ROOT: Final = re.compile(r"\\sqrt\s*(?:\{([^{}]*)\}|(\d))")
BRACED: Final = re.compile(r"(?<=[\^_])\s*\{([^{}]*)\}")
IMPLIED: Final = re.compile(r"(?<=[\d)])\s*(?=\(|sqrt|pi)|(?<=pi)\s*(?=\(|\d|sqrt)")
COMMAND: Final = re.compile(r"\\(?:begin|end)\s*\{[a-z*]+\}|\\[a-zA-Z]+")
WORD: Final = re.compile(
    r"(?!(?:sin|cos|tan|cot|sec|csc|log|exp|lim|min|max|gcd|lcm|mod|and|sqrt)(?![a-zA-Z]))"
    r"(?<![a-zA-Z])[a-zA-Z]{3,}"
)
"""A word of three letters or more that is not a function; LaTeX would multiply its letters."""
MATHEMATICAL: Final = re.compile(r"\d|\\|\b[a-zA-Z]\b|[-+*/^=<>]|π|∞|√")
"""An answer without any of these is plain text."""


def are_equal(answer: str, gold: str, *, tolerance: float) -> bool | None:
    """Whether two final answers are equal as texts or numbers; None: undecided.

    `tolerance` is relative and applies if `gold` is a decimal; for others see `_most_apart`.
    """
    if max(len(answer), len(gold)) > LONGEST_ANSWER:
        return answer.strip() == gold.strip()
    plain = [GROUPED.sub("", _as_plain(text)) for text in (answer, gold)]
    if plain[0] == plain[1] != "":
        return True
    if _says_more(answer, gold):
        return False
    left, right = _number(answer), _number(gold)
    if left is not None and right is not None:
        return left == right or abs(left - right) <= _most_apart(answer, gold, right, tolerance)
    if right is not None and _is_dropped(answer):
        return False
    if not all(plain) or WORD.search(_without_commands(gold)) or not MATHEMATICAL.search(answer):
        return False
    return None


def _says_more(answer: str, gold: str) -> bool:
    """Whether the answer has a changing word or a base that the right answer lacks."""
    before = LEADING.match(answer)
    changed = changes(_without_commands(answer[before.end() :] if before else answer))
    if before is not None:
        changed |= changes(f"{_without_commands(before[0])} 0")
    bases, wanted = (BASE.findall(text) for text in (answer, gold))
    return bool(changed - words_of(_without_commands(gold))) or bool(bases and bases != wanted)


def _is_dropped(answer: str) -> bool:
    """Whether math-verify would ignore something in the answer that changes its number."""
    plain = _as_plain(answer)
    return any(pattern.search(plain) for pattern in (RELATION, BESIDE, SAID_OF, SCALED, POWERED))


def _most_apart(answer: str, gold: str, right: Fraction, tolerance: float) -> Fraction:
    """Maximum difference between the answer and the right number, by their notation.

    If only the answer is a decimal, its digits must be right: `0.333333` equals 1/3.
    """
    is_near = Fraction(tolerance) * abs(right)
    if ROUNDED.search(gold):
        return is_near
    if ROUNDED.search(answer) and right.denominator != 1:
        digits = max((len(part) for part in DECIMALS.findall(answer)), default=0)
        powers = sum(int(part) for part in re.findall(rf"\d{EXPONENT}", answer))
        return min(is_near, Fraction(10) ** (powers - digits))
    is_irrational = IRRATIONAL.search(answer) or IRRATIONAL.search(gold)
    return Fraction(ROOTS_DIFFER) * abs(right) if is_irrational else Fraction(0)


def final_answer(text: str) -> str:
    """The final answer of a text: boxed, after `####`, its last line if that is only numbers, its
    last number, or the whole text."""
    marked = marked_answer(text)
    if marked is not None:
        return marked
    line = last_line(text)
    if len(line) <= LONGEST_ANSWER and _is_numbers(line):
        return line
    numbers = NUMBER.findall(text)
    return numbers[-1].rstrip(",") if numbers else text.strip()


def _is_numbers(text: str) -> bool:
    """Whether a text is one number, or several separated by commas."""
    plain = _as_plain(text).strip("()[]{}")
    parts = plain.split(",") if "," in plain else [text]
    return all(_number(part) is not None for part in parts)


def marked_answer(text: str) -> str | None:
    """The marked answer of a text: boxed, or after the last `####`; None without a mark."""
    boxed = last_boxed(text)
    if boxed is None and GOLD_MARK in text:
        return text.rpartition(GOLD_MARK)[2].strip()
    return boxed


def last_boxed(text: str) -> str | None:
    r"""Contents of the last closed \boxed{...}, nested braces included."""
    open_at: list[int] = []
    last: tuple[int, int] | None = None
    for brace in BRACES.finditer(text):
        if brace[0] != "}":
            open_at.append(brace.end() if brace[0] != "{" else -1)
        elif open_at and (start := open_at.pop()) >= 0 and (last is None or start > last[0]):
            last = start, brace.start()
    return None if last is None else text[slice(*last)]


def _number(text: str) -> Fraction | None:
    """The number of an answer; None if it is not a single number."""
    if RELATION.search(text) or BASE.search(text):
        return None
    plain = LED_TO.sub("", _as_plain(LEADING.sub("", text)))
    plain = SCALED.sub(lambda found: f"*10^{SCALES[found[1]]}", plain)
    unit = UNIT.search(plain)
    if unit is not None and is_unit(unit[1]):
        plain = plain[: unit.start()]
    if "=" in plain:
        plain = plain.rpartition("=")[2].strip()
    try:
        return read_expression(plain, WITH_FUNCTIONS).value if plain else None
    except NotArithmetic:
        return None


def _without_commands(text: str) -> str:
    return COMMAND.sub(" ", WORDS.sub(r" \1 ", text))


def _as_plain(text: str) -> str:
    """LaTeX as plain arithmetic, as far as possible."""
    plain = WORDS.sub(r" \1 ", DELIMITER.sub("", text)).strip().rstrip(".")
    plain = plain.replace("{,}", "").replace("\\!", "")
    if OPEN.search(plain) is None:  # in (1,234) the comma separates two numbers
        plain = without_thousands(plain)
    plain = SCIENTIFIC.sub(r"(\1*10^(\2))", MIXED.sub(_as_sum, plain))
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


def _as_sum(match: re.Match[str]) -> str:
    over, under = match[2] or match[3] or match[6], match[4] or match[5] or match[7]
    return f"({match[1]}+{over}/{under})"


def _as_division(match: re.Match[str]) -> str:
    return f"(({match[1] or match[2]})/({match[3] or match[4]}))"
