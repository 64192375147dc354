"""The final answer of a text, and whether two answers are the same number, in plain text or LaTeX.

Nothing is evaluated as code: LaTeX becomes plain arithmetic, which expressions.py reads into exact
fractions. Numbers and words are decided here, at once and for good; of sets, intervals, tuples and
expressions with letters it says that it does not know, and math-verify is asked (`judging`). What
math-verify drops before it compares is refused here first: relations, bases, words that say
something else than the number (`5 or more`), a number beside a number.
"""

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from coloop.data.answers import last_line, without_thousands
from coloop.data.expressions import WITH_FUNCTIONS, NotArithmetic, read_expression

# Words beside a number in an answer: those that only say what is counted, those that multiply it,
# and those with which it says something else.

SCALES: Final[Mapping[str, int]] = {
    "hundred": 2,
    "thousand": 3,
    "million": 6,
    "billion": 9,
    "trillion": 12,
}
"""Words behind a number that multiply it, with their power of ten."""
SHORT_UNITS: Final = frozenset({
    "A", "C", "F", "J", "K", "L", "N", "V", "W", "g", "h", "l", "m", "s", "Hz", "Pa", "am", "cm",
    "ft", "hr", "in", "kW", "kg", "km", "lb", "mL", "mg", "mi", "ml", "mm", "oz", "pm", "pt", "qt",
    "yd", "a", "an", "of",
})  # fmt: skip
"""Units of one or two letters; other short words are variables."""
VERBS: Final = frozenset({"is", "are", "was", "were", "be"})
"""Words between a number and what is said about it."""
CHANGING: Final = frozenset({
    "not", "no", "never", "none", "neither", "nor", "without", "except", "unless", "if", "but",
    "isn", "aren", "wasn", "weren", "don", "doesn", "won", "wouldn", "cannot", "could", "would",
    "maybe", "than", "least", "most", "over", "under", "above", "below", "between", "wrong",
    "incorrect", "false", "invalid", "impossible", "undefined", "unknown", "plus", "minus",
    "negative", "factorial", "modulo", "mod", "base", "remainder", "half", "halves", "thirds",
    "fifths", "tenths", "hundredths", "thousandths", "millionths",
})  # fmt: skip
"""Words that change the meaning of a number beside them."""
COMPARING: Final = frozenset({"more", "less", "fewer", "greater", "smaller", "larger", "higher"})
"""With `or` they make a number a bound (`5 or more`), else they count (`5 more apples`)."""
DESCRIBING: Final = re.compile(
    r"\b(?:wrong|incorrect|false|invalid|impossible|negative|plus|base)\s+"
    r"(?=[a-z]{3})(?!(?:two|three|four|five|six|seven|eight|nine|ten|twelve|sixteen)\b)",
    re.IGNORECASE,
)
"""Changing words that only qualify the counted things: `4 wrong answers`."""
PLACING: Final = re.compile(r"\b(?:over|above)\s*(?=[a-z]{3}|$)", re.IGNORECASE)
"""The same for places: `5 left over`, `20 above average`; with `or` it is a bound."""
POWERS: Final = ("squared", "cubed")
"""Directly behind a number they change it; behind a unit they belong to it."""
LONGEST_UNIT: Final = 5
"""Maximum words of a unit; longer text is a sentence."""
LETTERS: Final = re.compile(r"[a-zA-Z]+")


def words_of(text: str) -> frozenset[str]:
    return frozenset(word.casefold() for word in LETTERS.findall(text))


def changes(text: str) -> frozenset[str]:
    """Words of a text that change the meaning of its number."""
    text = DESCRIBING.sub(" ", text)
    if words_of(text) & {"or", "and"}:
        return words_of(text) & (CHANGING | COMPARING)
    return words_of(PLACING.sub(" ", text)) & CHANGING


def is_unit(text: str) -> bool:
    """Whether the words behind a number only name what is counted."""
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
"""Maximum characters of a mathematical answer: reading LaTeX takes quadratic time."""
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
"""A number with a statement about another number."""
LED_TO: Final = re.compile(rf"^[a-zA-Z ]*\b(?:{'|'.join(sorted(VERBS))})\s+(?=[-+.\d$\\])")
"""Words before the answer: `The answer is 5`."""
GROUPED: Final = re.compile(r"(?<=\d) (?=\d{3}(?![\d/]))|(?<!\d) | (?!\d)")
"""Blanks without meaning: all but those between numbers, and those between thousands."""
MIXED: Final = re.compile(
    r"(?<![\w.^])(\d+)(?:\s*\\[dtc]?frac\s*(?:\{\s*(\d+)\s*\}|(\d))\s*(?:\{\s*(\d+)\s*\}|(\d))"
    r"|\s+(\d+)\s*/\s*(\d+))"
)
SCIENTIFIC: Final = re.compile(rf"(?<![\w.])(\d+(?:\.\d+)?|\.\d+){EXPONENT}")
SCALED: Final = re.compile(rf"(?<=\d)\s+({SCALE_WORDS})(?![a-zA-Z])")
POWERED: Final = re.compile(rf"[\d)]\s+(?:{'|'.join(POWERS)})(?![a-zA-Z])")
ROUNDED: Final = re.compile(rf"\.\d*[1-9]|\d{EXPONENT}")
"""Marks of a decimal, which may be rounded."""
DECIMALS: Final = re.compile(r"\.(\d+)")
IRRATIONAL: Final = re.compile(r"pi|sqrt|π")
ROOTS_DIFFER: Final = 1e-15
"""Tolerance between notations of one number with roots or pi, which are cut after 20 digits."""
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
"""A word of language; as mathematics it would be a product of its letters."""
MATHEMATICAL: Final = re.compile(r"\d|\\|\b[a-zA-Z]\b|[-+*/^=<>]|π|∞|√")
"""Marks of mathematics; an answer without any is plain text."""


def are_equal(answer: str, gold: str, *, tolerance: float) -> bool | None:
    """Whether two final answers are equal as texts or numbers; None: undecided.

    The tolerance applies only if the right answer is a decimal.
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
    """Whether math-verify would read a number here by dropping what changes it."""
    plain = _as_plain(answer)
    return any(pattern.search(plain) for pattern in (RELATION, BESIDE, SAID_OF, SCALED, POWERED))


def _most_apart(answer: str, gold: str, right: Fraction, tolerance: float) -> Fraction:
    """Maximum difference allowed between an answer and the right one, given their notation.

    Beside a fraction or root, a decimal is as exact as its digits: `0.333333` is 1/3.
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
    """Whether a text is one number, or several with commas between."""
    plain = _as_plain(text).strip("()[]{}")
    parts = plain.split(",") if "," in plain else [text]
    return all(_number(part) is not None for part in parts)


def marked_answer(text: str) -> str | None:
    """What a text marks as its answer: boxed, or after ####."""
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
    if OPEN.search(plain) is None:  # in (1,234) the comma stands between two numbers
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
