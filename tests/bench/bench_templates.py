"""What the limits of templates cost: rows a second beside those of Jinja's own sandbox.

Both render the same sources with the same values in one thread; each pass takes both in turn, and
the best pass of each counts.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from jinja2 import ChainableUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment
from tests.bench.results import Goal, Result, Table

from coloop.data.templates.environment import render_text
from coloop.data.templates.grammar import names_of

PASSES: Final = 7
ROWS: Final = 1000
LEAST_SHARE: Final = 0.6

NAMES: Final = names_of(
    {
        "prompt": "2+2=",
        "passage": "the cat sat on the mat. " * 20,
        "question": "How many birds? " * 6,
        "history": ["a few words of an answer " * 8] * 6,
        "options": ["red", "green", "blue", "other"],
    },
    {"tens.completion": "6", "judge.completion": "cat", "draft.completion": "a draft " * 60},
    {"exact": 1.0, "judge": 0.5},
)
SOURCES: Final = {
    "slots": "{{ prompt }}{{ ' last: ' ~ both.completion if both.completion }} tens:",
    "plain": "Question: {{ question }}\nThink step by step.\nAnswer:",
    "revise": "Question: {{ question }}\nDraft: {{ draft.completion }}\n"
    "{% if judge > 0.4 %}It was judged {{ judge | round(2) }}.{% else %}Bad.{% endif %}\nBetter:",
    "options": "{{ question }}\n{% for o in options %}{{ 'ABCD'[loop.index0] }}. {{ o }}\n"
    "{% endfor %}Answer:",
    "history": "{% for h in history %}## {{ loop.index }}\n{{ h | trim }}\n{% endfor %}"
    "Now: {{ question | upper }}",
    "filters": "{{ options | join(', ') }} {{ passage.split()[:5] | join(' ') }} "
    "{{ question | replace('birds', 'cats') | truncate(60) }} {{ {'q': question} | tojson }}",
    "count": "{% set ns = namespace(k=0) %}{% for o in options %}{% if 'e' in o %}"
    "{% set ns.k = ns.k + 1 %}{% endif %}{% endfor %}{{ ns.k }} of {{ options | length }}",
    "macro": "{% macro item(x) %}- {{ x }}\n{% endmacro %}"
    "{% for o in options %}{{ item(o) }}{% endfor %}",
}


def run() -> Result:
    """Rows a second of ordinary templates, beside those of Jinja's own sandbox."""
    plain = ImmutableSandboxedEnvironment(undefined=ChainableUndefined, keep_trailing_newline=True)
    rows, shares, data = [], [], {}
    for name, source in SOURCES.items():
        template = plain.from_string(source)
        ours, jinjas = _microseconds(
            lambda values, source=source: render_text(source, values),
            lambda values, template=template: template.render(values),
        )
        shares.append(jinjas / ours)
        data[name] = {"ours": ours, "jinja": jinjas}
        rate = f"{1e6 / ours:,.0f}"
        rows.append((name, f"{ours:.1f} µs", f"{jinjas:.1f} µs", rate, f"{shares[-1]:.2f}"))
    return Result(
        title="Templates",
        tables=(
            Table(
                title=f"Computing time of one row, best of {PASSES} passes over {ROWS} rows.",
                head=("template", "coloop", "Jinja's sandbox", "rows a second", "rate of Jinja's"),
                rows=tuple(rows),
            ),
        ),
        goals=(
            Goal(
                wanted=f"at least {LEAST_SHARE:.0%} of the rate of Jinja's sandbox, each template",
                found=f"{min(shares):.0%}",
                is_reached=min(shares) >= LEAST_SHARE,
            ),
        ),
        data=data,
    )


def _microseconds(*renders: Callable[[Mapping[str, Any]], str]) -> list[float]:
    """Best computing time of one row, of each."""
    best = [float("inf")] * len(renders)
    for render in renders:
        render(NAMES)
    for _ in range(PASSES):
        for place, render in enumerate(renders):
            began = time.thread_time()
            for _ in range(ROWS):
                render(NAMES)
            best[place] = min(best[place], (time.thread_time() - began) / ROWS * 1e6)
    return best
