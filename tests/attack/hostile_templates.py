"""Templates that mean harm: a list by hand, and a grammar that makes more from a seed."""

import random
from collections.abc import Callable

BY_HAND = (
    # What was reached before: unmeasured joins, sums, lists, JSON.
    "{% set a = 'x' * 999999 %}{{ " + " ~ ".join(["a"] * 3000) + " }}",
    "{% set a = 'x' * 999999 %}{% set b = a ~ a ~ a ~ a ~ a ~ a %}{% set c = b ~ b ~ b ~ b ~ b %}"
    "{% set d = c ~ c ~ c ~ c ~ c ~ c ~ c %}{{ d | length }}",
    "{{ (range(9999) | map('string') | list * 9) | sum(start='') }}",
    "{{ ([['x'] * 9999] * 9999) | sum(start=[]) | length }}",
    "{% for i in range(9999) %}{{ range(9999) | select('odd') | list | length }}{% endfor %}",
    "{{ range(9999) | map('string') | map('center', 99999) | list | length }}",
    "{{ ([texts] * 9999) | tojson | length }}",
    "{{ ([nest] * 9) | tojson | length }}",
    "{{ ([[['x' * 9999] * 999] * 999] * 99) | string | length }}",
    "{{ nest | string | length }}",
    "{{ nest }}",
    "{{ nest == nest | items | list }}",
    "{{ [long] * 99999 }}",
    "{{ ([long] * 9999) | join }}",
    "{{ ([long] * 9999) | join(attribute=0) }}",
    "{{ ([judge] * 99999) | join(attribute='completion') | length }}",
    "{{ ([judge] * 99999) | map(attribute='completion') | sort | length }}",
    "{{ ([judge] * 99999) | sort(attribute='completion') | length }}",
    "{{ ([judge] * 99999) | unique(attribute='completion') | list | length }}",
    "{{ ([long] * 99999) | sort | length }}",
    "{{ ([long] * 99999) | unique | list | length }}",
    "{{ ([long] * 99999) | max | length }}",
    "{{ ([long] * 99999) | groupby(0) | length }}",
    "{{ ([long] * 90000) == ([same] * 90000) }}",
    "{% set a = [long ~ 'a'] * 90000 %}{% set b = [long ~ 'a'] * 90000 %}{{ a == b }}",
    "{% set a = [long ~ 'a'] * 90000 %}{{ (long ~ 'b') in a }}",
    "{% set a = [long ~ 'a'] * 90000 %}{{ a.count(long ~ 'b') }}",
    "{% set a = [long ~ 'a'] * 90000 %}{{ a.index(long ~ 'b') }}",
    "{% set a = ([long ~ 'a'] * 90000) %}{{ a | select('==', long ~ 'b') | list }}",
    # Lists of themselves.
    "{% set n = namespace(v=['x' * 999]) %}{% for i in range(60) %}{% set n.v = [n.v, n.v] %}"
    "{% endfor %}{{ n.v }}",
    "{% set n = namespace(v=('x' * 999,)) %}{% for i in range(60) %}{% set n.v = (n.v, n.v) %}"
    "{% endfor %}{{ {n.v: 1} }}",
    "{% set n = namespace(v={'a': 1}) %}{% for i in range(60) %}"
    "{% set n.v = {'a': n.v, 'b': n.v} %}{% endfor %}{{ n.v | tojson }}",
    "{% set n = namespace(v={'a': 1}) %}{% for i in range(60) %}"
    "{% set n.v = dict(a=n.v, b=n.v) %}{% endfor %}{{ n.v }}",
    "{% set n = namespace(v=()) %}{% for i in range(9999) %}{% for j in range(200) %}"
    "{% set n.v = (n.v,) %}{% endfor %}{% endfor %}{{ {n.v: 1} }}",
    "{% set n = namespace(v=[]) %}{% for i in range(9999) %}{% set n.v = [n.v] %}{% endfor %}"
    "{{ n.v }}",
    "{% set n = namespace() %}{% set n.a = n %}{{ n }}{{ [n, n] }}{{ n.a.a.a }}{{ n == n.a }}",
    "{% set n = namespace() %}{% set n.a = [n] %}{{ n.a }}{{ n.a | tojson }}",
    "{% macro f() %}{% if varargs %}{{ f(varargs, varargs) }}{% else %}{{ f(1) }}{% endif %}"
    "{% endmacro %}{{ f() }}",
    "{% macro f() %}{{ f(a=kwargs, b=kwargs) if kwargs else f(a=1) }}{% endmacro %}{{ f() }}",
    "{% set n = namespace(v=[1]) %}{% for i in range(60) %}{% set n.v = n.v + n.v %}{% endfor %}"
    "{{ n.v | length }}",
    "{% set n = namespace(v=rows) %}{% for i in range(60) %}{% set n.v = n.v | groupby('b') %}"
    "{% endfor %}{{ n.v }}",
    "{% set n = namespace(v=1) %}{% for i in [1, 2] recursive %}{% if loop.changed([n.v] * 9) %}"
    "{{ loop([1, 2]) }}{% endif %}{% endfor %}",
    # Formats.
    "{{ '%1000000000d' % 1 }}",
    "{{ '%-1000000000s' % 'a' }}",
    "{{ '%.1000000000f' % 1.5 }}",
    "{{ '%*d' % (1000000000, 1) }}",
    "{{ '%.*f' % (1000000000, 1.5) }}",
    "{{ '%(a)1000000000s' % {'a': 1} }}",
    "{{ '%(a(b))1000000000s' % {'a(b)': 1} }}",
    "{{ '%(a(b)c)-999999999s' % {'a(b)c': 1} }}",
    "{{ ('%(a)s' * 99999) % {'a': long} }}",
    "{{ ('%9999d' * 99999) % ((1,) * 99999) }}",
    "{{ ('%s' * 9999) % ((long,) * 9999) }}",
    "{{ '%s' % [[long] * 9999] }}",
    "{{ '%r' % wide }}{{ '%a' % wide }}",
    "{{ '%1000000000d' | format(1) }}",
    "{{ '%(x)999999999d' | format(x=1) }}",
    "{{ '%1000000000d' is even }}",
    "{{ '%1000000000d' is odd }}",
    "{{ '%1000000000d' is divisibleby(3) }}",
    "{{ ['%1000000000d'] | select('even') | list }}",
    "{{ ['%1000000000d'] | map('format', 1) | list }}",
    "{{ '{:>999999999}'.format(1) }}",
    "{{ '{0[a]:>999999999}'.format_map({'a': 1}) }}",
    "{{ '{:>999999999}' | attr('format') }}",
    # Numbers.
    "{{ 9 ** 9 ** 9 ** 9 }}",
    "{% set n = namespace(v=2) %}{% for i in range(9999) %}{% set n.v = n.v * n.v %}{% endfor %}",
    "{% set n = namespace(v=2) %}{% for i in range(9999) %}{% set n.v = n.v ** 3 %}{% endfor %}",
    "{{ 1 | round(-999999999) }}",
    "{{ 1 | round(999999999, 'ceil') }}",
    "{{ 1.5 | round(999999999, 'floor') }}",
    "{{ digits | int }}",
    "{{ digits | int(0, 16) // (digits[:400000] | int(0, 16)) }}",
    "{{ digits | int(base=36) }}",
    "{{ digits | float }}",
    "{{ ('0.' ~ digits[:900000]) | float }}",
    "{{ (5).to_bytes(999999999, 'big') | length }}",
    "{{ 5 | attr('to_bytes') }}",
    "{{ 1e999 | int }}{{ (1e999 - 1e999) | int }}",
    "{{ " + "9" * 5000 + " }}",
    "{{ 0x" + "f" * 100_000 + " // 0x" + "f" * 50_000 + " }}",
    "{{ 1" + "0" * 300 + " ** 100 }}",
    "{{ 'a' * (10 ** 18) }}{{ [] * (10 ** 18) }}",
    "{{ range(10 ** 30) }}",
    "{{ range(0, 10 ** 9, 10 ** 5) | map('string') | map('center', 9999) | join }}",
    # Methods.
    "{{ same.rfind('b' + same[:450000]) }}",
    "{{ same.rindex('b' + same[:450000]) }}",
    "{{ same.rpartition('b' + same[:450000]) }}",
    "{{ same.rsplit('b' + same[:450000]) | length }}",
    "{{ same.find('a' * 450000 + 'b') }}{{ same.count('a' * 50 + 'b') }}",
    "{{ same.split('a' * 99 + 'b') | length }}",
    "{{ same.strip('b' * 450000 + 'a') }}",
    "{{ same | trim('b' * 450000 + 'a') }}",
    "{{ long.split() | length }}",
    "{{ long.split(' ') | map('upper') | join | length }}",
    "{{ lines.splitlines() | length }}",
    "{{ long.replace('', long) }}",
    "{{ long.replace(' ', 'b' * 9999, 10 ** 9) }}",
    "{{ 'a'.ljust(10 ** 9) }}{{ 'a'.rjust(width=10 ** 9) }}",
    "{{ 'a'.center(10 ** 9) }}{{ 'a'.zfill(10 ** 9) }}",
    "{{ 'a\t'.expandtabs(10 ** 9) }}",
    "{{ long.translate({97: long}) }}",
    "{{ 'a'.encode('utf-32') }}{{ 'a'.maketrans('a', 'b') }}",
    "{{ {}.fromkeys(range(9999), long) }}",
    "{{ long.join(many | map('string')) }}",
    "{{ ''.join(many | map('string') | map('center', 9999)) }}",
    "{{ long.join(texts) }}",
    "{{ wide.upper() * 99 }}{{ ('\u0390' * 900000).upper() }}",
    "{{ ('\ufb03' * 900000).upper() }}",
    "{{ same.title() }}{{ (long | title) * 9 }}",
    # Filters.
    "{{ long | replace('', long) }}{{ long | replace('a', long) }}",
    "{{ 'a' | center(10 ** 9) }}{{ 'a' | center(width=10 ** 9) }}",
    "{{ lines | indent(999999) }}{{ lines | indent(width=long) }}",
    "{{ ('\\x0b' * 900000) | indent(99, true, true) }}",
    "{{ texts | tojson(indent=10 ** 9) }}{{ texts | tojson(10 ** 9) }}",
    "{{ texts | tojson(indent='x' * 99999) }}",
    "{{ angle | tojson | tojson | tojson | tojson }}",
    "{{ angle | e | e | e | e | e | e | e | e }}",
    "{{ angle | striptags }}{{ ('<!-- --> ' * 90000) | striptags }}",
    "{{ ('<a>' * 33000) | striptags }}",
    "{{ ('<!--' * 99999) | striptags }}{{ ('<' * 99999) | striptags }}",
    "{{ ('<!---->' * 14000) | striptags }}",
    "{{ wide | urlencode | urlencode | urlencode }}",
    "{{ table | urlencode }}",
    "{{ long | wordcount }}{{ spaces | wordcount }}",
    "{{ long | truncate(10, true, long) }}{{ 'abcdefghijkl' | truncate(1) }}",
    "{{ spaces | truncate(899999) }}{{ spaces | trim | length }}",
    "{{ long | batch(2) | list }}{{ long | slice(3) | list }}",
    "{{ many | batch(1, long) | list }}",
    "{{ long | wordwrap(1) }}{{ long | urlize }}{{ table | xmlattr }}{{ nest | pprint }}",
    "{{ many | random }}",
    "{{ long | list | length }}{{ long | reverse | length }}",
    "{{ long | map('upper') | map('center', 9999) | sum }}",
    "{{ many | map('string') | sum(start='') }}",
    "{{ many | sum(attribute='" + "a." * 50_000 + "b') }}",
    "{{ many | map(attribute='" + "a." * 50_000 + "b') | list | length }}",
    "{{ many | selectattr('" + "a." * 50_000 + "b') | list | length }}",
    "{{ many | rejectattr('" + "a." * 50_000 + "b') | list | length }}",
    "{{ many | sort(attribute='" + ",".join(["real"] * 20_000) + "') | length }}",
    "{{ many | groupby('" + "a." * 50_000 + "b') }}",
    "{{ many | join(attribute='" + "a." * 50_000 + "b') }}",
    "{% for i in range(9999) %}{% set x = many | sort(reverse=true) %}{% endfor %}",
    "{% for i in range(9999) %}{{ many | min }}{{ many | max }}{% endfor %}",
    "{% for i in range(9999) %}{% set x = many | map('string') %}{% endfor %}{{ 1 }}",
    "{% for i in range(9999) %}{% set x = many | list %}{% endfor %}",
    "{% for i in range(9999) %}{% set x = table | dictsort %}{% endfor %}",
    "{{ many" + " | map('string')" * 900 + " | join }}",
    "{{ many" + " | select" * 90 + " | list | length }}",
    "{{ 'map' | map('map') | list }}{{ [['a']] | map('map', 'map', 'map') | list }}",
    "{{ many | select('select') | list }}{{ many | map('sum') | list }}",
    "{{ many | map('default', long) | map('upper') | list | length }}",
    # Loops and macros.
    "{% for a in range(9999) %}{% for b in range(9999) %}{% for c in range(9999) %}"
    "{% endfor %}{% endfor %}{% endfor %}",
    "{% for a in many if a in many %}{% endfor %}",
    "{% for a in many if many == many[1:] %}{% endfor %}",
    "{% for a in range(9999) if (range(9999) | list) == [] %}{% endfor %}",
    "{% for a in many recursive %}" + "plain text " * 9000 + "{% endfor %}",
    "{% macro f() %}{% for a in many %}" + "plain text " * 9000 + "{% endfor %}{% endmacro %}"
    "{{ f() | length }}",
    "{% macro f() %}" + "plain text " * 9000 + "{% endmacro %}"
    "{% set x %}{% for a in many %}{{ f() }}{% endfor %}{% endset %}",
    "{% set x %}{% for a in many %}{{ long }}{% endfor %}{% endset %}{{ x | length }}",
    "{% filter upper %}{% for a in many %}{{ long }}{% endfor %}{% endfilter %}",
    "{% macro f(n) %}{% if n %}{{ f(n-1) }}{{ f(n-1) }}{% endif %}{% endmacro %}{{ f(60) }}",
    "{% macro f(n) %}{{ f(n ~ n) }}{% endmacro %}{{ f('xxxxxxxx') }}",
    "{% macro f(n) %}{{ caller(n) }}{% endmacro %}{% call(n) f(1) %}{% for i in many %}{{ f }}"
    "{% endfor %}{{ f(n) }}{% endcall %}",
    "{% macro f() %}{% for a in [1] recursive %}{{ loop([1, 1]) }}{% endfor %}{% endmacro %}"
    "{{ f() }}",
    "{% for a in [1] recursive %}{{ loop(many) }}{% endfor %}",
    "{% for a in [1, 1, 1] recursive %}{% if loop.depth < 40 %}{{ loop([1, 1, 1]) }}{% endif %}"
    "{% endfor %}",
    "{% block a %}{{ self.a() }}{{ self.a() }}{% endblock %}",
    "{% block a %}x{% endblock %}{{ self.a() * 9 }}",
    "{% include 'a' %}",
    "{% import 'a' as a %}{% from 'a' import b %}",
    "{% extends long %}",
    "{% autoescape true %}{{ angle }}{% endautoescape %}",
    "{% with a = long, b = long %}{{ a ~ b }}{% endwith %}",
    # Many acts without any loop.
    "{% set a = same %}" + "{% if (a ~ 'b') in a %}{% endif %}" * 900,
    "".join(f"{{% set a{k} = long[1:] %}}" for k in range(900)),
    "".join(f"{{% set a{k} = long | upper %}}" for k in range(900)),
    "".join(f"{{% set a{k} = wide[:] ~ 'b' %}}" for k in range(900)),
    "".join(f"{{% set a{k} = many | list %}}" for k in range(900)),
    "{% if " + " and ".join(["many == many[:]"] * 600) + " %}{% endif %}",
    "{% if " + " and ".join(["many <= many[:]"] * 600) + " %}{% endif %}",
    "{{ " + " ~ ".join(["long[::-1]"] * 900) + " }}",
    "{% for a in many if a < 0 %}{% endfor %}" * 900,
    "{{ " + ", ".join(["same.find(long)"] * 900) + " }}",
    "{% set x = " + " + ".join(["[many]"] * 90) + " %}{{ x }}",
    # Reading and compiling.
    "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
    "{{ " + "[" * 5000 + "]" * 5000 + " }}",
    "{{ " + "not " * 5000 + "1 }}",
    "{{ " + "-" * 5000 + "1 }}",
    "{{ a" + ".b" * 20_000 + " }}",
    "{{ a" + "[0]" * 20_000 + " }}",
    "{{ a" + " | upper" * 9000 + " }}",
    "{{ a" + "()" * 9000 + " }}",
    "{{ " + " + ".join(["1"] * 20_000) + " }}",
    "{{ " + " ~ ".join(["'a'"] * 30_000) + " }}",
    "{{ " + " or ".join(["a"] * 20_000) + " }}",
    "{{ " + "1 if 1 else " * 9000 + "1 }}",
    "{{ [" + "1, " * 60_000 + "] }}",
    "{{ {" + "1: 1, " * 30_000 + "} }}",
    "{{ f(" + "1, " * 30_000 + ") }}",
    "{% for a in b %}" * 900 + "{% endfor %}" * 900,
    "{% for a in b %}" * 30 + "{% endfor %}" * 30,
    "{% if a %}" * 900 + "{% endif %}" * 900,
    "{% if a %}" * 120 + "{% endif %}" * 120,
    "{% if a %}" + "{% elif b %}" * 9000 + "{% endif %}",
    "{% macro f() %}" * 60 + "{% endmacro %}" * 60,
    "{% set a = 1 %}" * 20_000,
    "{{ a }}" * 28_000,
    "{{ a }}" * 2400,
    "{{ a.b | upper }}" * 1200,
    "{% for a in b %}{% endfor %}" * 1600,
    "{% set a = [b ~ c, d == e] %}" * 500,
    "{% macro f() %}{% endmacro %}" * 2400,
    "{{ a" * 40_000,
    "{{" * 90_000,
    "{%" * 90_000,
    "{#" * 90_000,
    "{%- raw -%}" * 10_000,
    "{%" + " " * 190_000 + "if",
    "{{ '" + "\\" * 190_000,
    "{{ '" + "a" * 190_000 + "' }}",
    "text " * 5_000_000,
    "\n" * 190_000 + "{{",
    "{{ " + "_" * 150_000 + " }}",
    "{{ a[" + ":" * 100 + "] }}",
    "{{ '\\x" + "00" * 50_000 + "' }}",
    "{{ '\\U0010ffff\\ud800' }}{{ '\\ud800' | urlencode }}{{ '\\ud800' | tojson }}",
    "\x00{{ '\x00' }}{% set \x00 = 1 %}",
    "{{ \u212f }}{{ ﹩ }}{{ \uff41 }}{{ 'ﬁ' | upper }}",
    "{% set \uff4e\uff4f\uff54 = 1 %}{{ \uff4e\uff4f\uff54 }}",
    # The insides of Python.
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ '' | attr('__class__') | attr('__mro__') }}",
    "{{ ['__class__'] | map('attr', '__class__') | list }}",
    "{{ [''] | map(attribute='__class__') | list }}",
    "{{ [''] | groupby('__class__') }}{{ [''] | sort(attribute='__class__') }}",
    "{{ self.__init__.__globals__ }}{{ self._TemplateReference__context }}",
    "{{ lipsum.__globals__ }}{{ cycler.__init__ }}{{ joiner }}{{ namespace.__init__.__globals__ }}",
    "{{ range.__class__ }}{{ dict.__base__.__subclasses__() }}{{ dict.fromkeys(many, long) }}",
    "{{ past.__globals__ }}{{ past.__code__ }}{{ others.__closure__ }}",
    "{{ others | attr('__globals__') }}",
    "{{ loop }}{% for i in [1] %}{{ loop.__class__ }}{{ loop._iterator }}{{ loop._recurse }}"
    "{{ loop.cycle.__globals__ }}{% endfor %}",
    "{% macro f() %}{% endmacro %}{{ f._func.__globals__ }}{{ f._environment }}{{ f.name }}",
    "{{ (many | map('string')).gi_frame.f_builtins }}{{ (many | map('string')).throw }}",
    "{{ judge.__class__ }}{{ judge.known }}{{ judge | attr('known') }}{{ judge['known'] }}",
    "{{ missing.__class__.__init__.__globals__ }}{{ missing['__class__'] }}",
    "{{ missing._undefined_exception }}{{ missing._fail_with_undefined_error() }}",
    "{{ [].append(1) }}{{ {}.update(a=1) }}{{ [].extend(many) }}{{ rows.clear() }}",
    "{% set rows.x = 1 %}",
    "{% set n = namespace() %}{% set n.__class__ = 1 %}{% set n._Namespace__attrs = 1 %}{{ n }}",
    "{% set n = namespace() %}{{ n.__init__ }}{{ n.__setitem__ }}{{ n._Namespace__attrs }}",
    "{{ namespace(many) }}",
    "{{ namespace(table, **table).a }}",
    "{{ dict(rows) }}",
    "{{ dict(many) }}",
    "{{ cycler('a') }}{{ joiner(',') }}{{ lipsum(n=99999) }}",
    "{{ 'a' | e | attr('__html__') }}{{ ('<' | e) * 900000 }}{{ ('<' | safe).unescape() }}",
    "{{ 1 | map | list }}{{ many | map('nothing') | list }}{{ many | select('nothing') | list }}",
    "{{ 5 | ~pass }}",
    "{{ -5 | pass }}{{ 5 | loop }}{{ '~pass' | map('~pass') | list }}",
    "{{ [-1000000000000] | map('~pass') | list }}{{ same * 1 }}" + "{{ same }}" * 200,
    "{% set a = many | map('~pass') | list %}" + "{% set b = wide ~ wide %}" * 300,
)

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
