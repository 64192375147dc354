"""A grammar of templates that mean harm: more of them from a seed."""

import random
from collections.abc import Callable

TEXTS = (
    *("prompt", "long", "spaces", "same", "wide", "lines", "digits", "angle", "judge.completion"),
    *("missing", "'a'", "'%s'", "'%9999d'", "''", "'x' * 9999", "n.text", "f(1)", "x", "t"),
)
LISTS = (
    *("many", "texts", "rows", "[]", "range(9999)", "past('completion')", "others('a', 50)"),
    *("judge.tags", "n.list", "table | items", "long.split()", "table.values()", "[nest]", "y"),
)
NUMBERS = (
    "1",
    "-1",
    "0.5",
    "99",
    "9999",
    "10 ** 9",
    "exact",
    "judge",
    "n.number",
    "-0.0",
    "10**30",
)
TEXT_FILTERS = (
    *(
        "capitalize",
        "center(9999)",
        "center(10 ** 9)",
        "default('a')",
        "e",
        "format",
        "indent(999)",
    ),
    *("lower", "replace('a', n.text)", "replace('', 'bb')", "reverse", "safe", "string"),
    "title",
    *("striptags", "tojson", "tojson(indent=9)", "trim", "trim(t)", "truncate(99)", "upper"),
    "urlencode",
)
TEXT_METHODS = (
    *("upper()", "join(texts)", "replace('a', n.text)", "title()", "strip(t)", "ljust(99999)"),
    *("zfill(99999)", "swapcase()", "casefold()", "rpartition(t)[0]", "partition(t)[2]"),
)
LIST_FILTERS = (
    *(
        "list",
        "map('string') | list",
        "map('upper') | list",
        "map('center', 999) | list",
        "reverse",
    ),
    *("map('default', long) | list", "map(attribute='a') | list", "map('list') | list", "unique"),
    *("reject('odd')", "select", "select('in', many)", "selectattr('b')", "sort", "list | sort"),
    *("sort(attribute='a')", "groupby('b')", "groupby('a') | map('last') | list", "map('tojson')"),
)
TEXT_OF_LIST = (
    *(
        "join",
        "join(t)",
        "join(long)",
        "string",
        "tojson",
        "map('string') | sum(start='')",
        "first",
    ),
    *("map('string') | join(',')", "tojson(indent=9) | e", "last | string", "map('string') | max"),
)
NUMBER_OF = ("length", "count", "wordcount", "int", "int(0, 36)", "float", "list | length")
COMPARISONS = ("==", "!=", "<", ">=", "in", "not in")
PARTS = ("1:", "::-1", ":99", ":500000", "::2")
BODIES = (
    "n.text ~ n.text",
    "n.text ~ t",
    "n.text * 2",
    "n.text | e",
    "[n.text] | join",
    "t ~ n.text",
)
LIST_BODIES = ("[n.list, n.list]", "n.list + n.list", "(n.list, n.list)", "n.list * 2", "[n.list]")


class Grammar:
    """Templates from a seed: texts, lists and numbers where each belongs, so that most go far."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def one(self, *choices: Callable[[], str]) -> str:
        return self.random.choice(choices)()

    def template(self) -> str:
        head = "{% set n = namespace(text=prompt, list=texts, number=1) %}{% set t = long[:99] %}"
        head += "{% macro f(x, y=[]) %}{{ x }}" + self.body(1) + "{% endmacro %}"
        head += "{% macro g(x) %}{{ caller(x) }}{{ caller(t) }}{% endmacro %}"
        return head + "".join(self.statement(3) for _ in range(self.random.randint(1, 5)))

    def text(self, depth: int) -> str:
        if depth <= 0:
            return self.random.choice(TEXTS)
        return self.one(
            lambda: f"({self.text(depth - 1)}) | {self.random.choice(TEXT_FILTERS)}",
            lambda: f"({self.text(depth - 1)} ~ '').{self.random.choice(TEXT_METHODS)}",
            lambda: f"({self.text(depth - 1)}) ~ ({self.value(depth - 1)})",
            lambda: f"({self.text(depth - 1)} ~ '') + ({self.text(depth - 1)} ~ '')",
            lambda: f"({self.text(depth - 1)} ~ '') * {self.random.choice((2, 99, 9999))}",
            lambda: f"'%s%9999s' % ({self.text(depth - 1)}, {self.value(depth - 1)})",
            lambda: f"({self.text(depth - 1)} ~ '')[{self.random.choice(PARTS)}]",
            lambda: f"({self.items(depth - 1)}) | {self.random.choice(TEXT_OF_LIST)}",
            lambda: f"f({self.value(depth - 1)}, {self.value(depth - 1)})",
        )

    def items(self, depth: int) -> str:
        if depth <= 0:
            return self.random.choice(LISTS)
        return self.one(
            lambda: f"({self.items(depth - 1)}) | {self.random.choice(LIST_FILTERS)}",
            lambda: f"[{self.value(depth - 1)}, {self.value(depth - 1)}]",
            lambda: f"({self.value(depth - 1)}, {self.value(depth - 1)})",
            lambda: f"[{self.value(depth - 1)}] * {self.random.choice((9, 999, 9999))}",
            lambda: f"({self.items(depth - 1)} | list) + ({self.items(depth - 1)} | list)",
            lambda: f"({self.items(depth - 1)} | list)[{self.random.choice(PARTS)}]",
            lambda: f"({self.text(depth - 1)} ~ '').split({self.random.choice(('', 't'))})",
            lambda: f"{{'a': {self.value(depth - 1)}, 'b': {self.value(depth - 1)}}}.values()",
        )

    def number(self, depth: int) -> str:
        if depth <= 0:
            return self.random.choice(NUMBERS)
        return self.one(
            lambda: f"({self.items(depth - 1)} | list) | {self.random.choice(NUMBER_OF[:2])}",
            lambda: f"({self.text(depth - 1)}) | {self.random.choice(NUMBER_OF)}",
            lambda: f"({self.number(depth - 1)}) {self.random.choice('+-*')} 7",
            lambda: f"({self.number(depth - 1)}) ** 2",
            lambda: f"({self.number(depth - 1)}) | round({self.random.choice((9, -9, 999999))})",
            lambda: f"({self.text(depth - 1)} ~ '').rfind({self.text(depth - 1)} ~ 'b')",
            lambda: f"({self.text(depth - 1)} ~ '').count({self.text(depth - 1)} ~ 'b')",
        )

    def value(self, depth: int) -> str:
        kinds = (self.text, self.text, self.items, self.items, self.number)
        return self.random.choice(kinds)(depth)

    def test(self, depth: int) -> str:
        return self.one(
            lambda: f"({self.text(depth)} ~ '') in ({self.text(depth)} ~ '')",
            lambda: f"({self.value(depth)}) in ({self.items(depth)} | list)",
            lambda: (
                f"({self.items(depth)}) {self.random.choice(COMPARISONS[:2])} ({self.items(depth)})"
            ),
            lambda: (
                f"({self.text(depth)} ~ '') {self.random.choice(COMPARISONS)} "
                f"({self.text(depth)} ~ '')"
            ),
            lambda: f"({self.value(depth)}) is {self.random.choice(('defined', 'none', 'upper'))}",
        )

    def statement(self, depth: int) -> str:
        simple = (
            lambda: f"{{{{ {self.value(3)} }}}}",
            lambda: f"{{% set n.text = {self.text(2)} %}}",
            lambda: f"{{% set n.list = {self.items(2)} | list %}}",
            lambda: f"{{% set t = {self.text(2)} %}}",
        )
        if depth <= 0:
            return self.one(*simple)
        return self.one(
            *simple,
            lambda: f"{{% for x in {self.items(1)} %}}{self.body(depth - 1)}{{% endfor %}}",
            lambda: (
                f"{{% for x in {self.items(1)} if {self.test(1)} %}}{self.body(0)}{{% endfor %}}"
            ),
            lambda: (
                f"{{% for i in range(9999) %}}{{% set n.text = {self.random.choice(BODIES)} %}}"
                f"{self.body(depth - 1)}{{% endfor %}}"
            ),
            lambda: (
                f"{{% for i in range(99) %}}{{% set n.list = {self.random.choice(LIST_BODIES)} %}}"
                f"{self.body(depth - 1)}{{% endfor %}}"
            ),
            lambda: f"{{% if {self.test(2)} %}}{self.body(depth - 1)}{{% endif %}}",
            lambda: f"{{% set t %}}{self.body(depth - 1)}{{% endset %}}",
            lambda: f"{{% filter upper %}}{self.body(depth - 1)}{{% endfilter %}}",
            lambda: f"{{% call(x) g(1) %}}{self.body(depth - 1)}{{% endcall %}}",
            lambda: (
                f"{{% for x in {self.items(1)} recursive %}}"
                "{{ loop([x, x]) if loop.depth < 12 }}"
                f"{self.body(0)}{{% endfor %}}"
            ),
        )

    def body(self, depth: int) -> str:
        return "".join(self.statement(depth) for _ in range(self.random.randint(1, 2)))


def generated(count: int, *, seed: int) -> list[str]:
    """Templates of the grammar."""
    grammar = Grammar(seed)
    return [grammar.template() for _ in range(count)]
