"""How large a table of a step is: rows in the mean, and lengths of their texts in tokens."""

import math
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Literal

from coloop.spec.lean import record
from coloop.spec.rollout import Rollout


@record
class TableSize:
    """A table of one step, lengths in tokens."""

    rows: float = 0.0
    prompt: float = 0.0
    prompt_max: float = 0.0
    written: float = 0.0
    """Mean length of completion or target."""
    written_max: float = 0.0
    sides: int = 1
    """Texts per row: two for pairs."""
    alike: float = 1.0
    """Number of texts that share a prompt prefix."""
    columns: tuple[tuple[str, float, float], ...] = ()
    """Other columns, as far as they are known: name, mean and maximum length."""

    @property
    def length(self) -> float:
        """Mean length of prompt and completion."""
        return self.prompt + self.written

    @property
    def length_max(self) -> float:
        return self.prompt_max + self.written_max

    def times(self, factor: float) -> "TableSize":
        return self if factor == 1 else replace(self, rows=self.rows * factor)

    @property
    def as_pairs(self) -> "TableSize":
        """As a table of pairs: two texts per row under one prompt."""
        return self if self.sides == 2 else replace(self, sides=2, alike=2 * self.alike)


EMPTY = TableSize()
CHARACTERS_PER_TOKEN = 3.2
"""For word vocabularies; tokens of small vocabularies are assumed to be characters."""


# How long completions are where a loop does not say it (`rollout.expected_tokens`).
#
# A maximum is set well above what is usual, and the more so the larger it is. Published means of RL
# runs, by their maximum:
#
#     gsm8k, Qwen2-7B and Gemma-2-2B     153 of 1,024, 146 of 512     verl's logs
#     MATH, Qwen2.5-7B to 32B            253 to 314 of 1,024          verl's logs
#     math, Llama-3.1-8B                 910 of 3,946                 NeMo-RL's table of speeds
#     DAPO, Qwen2.5-Math-7B              about 1,000 of 8,192 and 2,000 of 28,672, from verl's times
#     math, Qwen3-30B-A3B and 32B        3,050 of 3,946               NeMo-RL
#     math, Qwen3-235B-A22B              5,550 of 8,042               NeMo-RL
#
# The first grow as a power of the maximum; models that reason by default write as much as they are
# allowed up to some thousand tokens.

USUAL_SHARE = 0.5
"""Mean completion relative to a small maximum."""
USUAL_FACTOR, USUAL_POWER = 2.0, 0.68
"""Mean completion = factor * maximum ^ power, beyond that."""
REASONED_MEDIAN, REASONED_SPREAD = 4500.0, 1.2
"""Log-normal length of a text of a model that reasons by default, before it is cut."""
USUAL_BAND = (0.4, 2.5)
"""Range of measured over assumed means that holds most of the runs above and their steps."""
REASONING = re.compile(
    r"qwen3(?!.*(instruct|base|coder|embedding|reranker))|thinking|deepseek-r1|r1-distill|qwq|"
    r"magistral|gpt-oss|reasoning|openthinker|nemotron-.*(nano|ultra)",
    re.I,
)
"""Names of models that reason before they answer, if their template is not told otherwise."""


def mean_written(rollout: Rollout, *, reasons: bool = False) -> float:
    """Mean tokens of a completion. `reasons`: whether the model reasons by default."""
    longest = float(rollout.max_new_tokens)
    if rollout.expected_tokens is not None:
        return min(float(rollout.expected_tokens), longest)
    usual: float = min(USUAL_SHARE * longest, USUAL_FACTOR * longest**USUAL_POWER)
    return max(usual, _cut_mean(longest)) if reasons else usual


def _cut_mean(most: float) -> float:
    """Mean of a log-normal length that is cut at `most`."""
    mu, sigma = math.log(REASONED_MEDIAN), REASONED_SPREAD
    z = (math.log(most) - mu) / sigma
    below = math.exp(mu + sigma * sigma / 2) * _normal(z - sigma)
    return below + most * (1 - _normal(z))


def _normal(z: float) -> float:
    return (1 + math.erf(z / math.sqrt(2))) / 2


def one_after_another(tables: Sequence[TableSize]) -> TableSize:
    """Size of concatenated tables."""
    rows = sum(table.rows for table in tables)
    if not rows:
        return EMPTY
    if len(tables) == 1:
        return tables[0]
    return TableSize(
        rows=rows,
        prompt=sum(t.rows * t.prompt for t in tables) / rows,
        prompt_max=max(t.prompt_max for t in tables),
        written=sum(t.rows * t.written for t in tables) / rows,
        written_max=max(t.written_max for t in tables),
        sides=max(t.sides for t in tables),
        alike=sum(t.rows * t.alike for t in tables) / rows,
        columns=_columns(tables),
    )


def joined(tables: Sequence[TableSize]) -> TableSize:
    """Size of a join by lineage, with as many rows as the finest input."""
    if len(tables) < 2:
        return tables[0] if tables else EMPTY
    finest = max(tables, key=lambda table: table.rows)
    return replace(
        finest,
        prompt_max=max(t.prompt_max for t in tables),
        written_max=max(t.written_max for t in tables),
        columns=_columns(tables),
    )


def _columns(tables: Sequence[TableSize]) -> tuple[tuple[str, float, float], ...]:
    """Columns of several tables; of those with one name, the longest."""
    first = tables[0].columns
    if all(table.columns == first for table in tables):
        return first
    found: dict[str, tuple[float, float]] = {}
    for table in tables:
        for name, mean, most in table.columns:
            before = found.get(name, (0.0, 0.0))
            found[name] = max(before[0], mean), max(before[1], most)
    return tuple((name, mean, most) for name, (mean, most) in found.items())


# How long a text is that Jinja makes of the columns of a row.

UNKNOWN_COLUMN = 0.25
"""Length of an unknown column relative to the prompt."""
BRACES = re.compile(r"{{\s*(.*?)\s*}}", re.S)
QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
MARKUP = re.compile(r"{{.*?}}|{%.*?%}|{#.*?#}", re.S)


def has_completion(texts: Sequence[str]) -> bool:
    return any(_is_completion(word, 1) for text in texts for word in _words(text))


def filled(
    rows: TableSize,
    texts: Sequence[str],
    per_character: float,
    unknown: tuple[float, float] | None = None,
) -> tuple[float, float]:
    """Mean and maximum tokens of Jinja texts over the columns of these rows: characters outside of
    braces, and the columns that the expressions name. `unknown`: of a column that is not known;
    None: a share of the prompt."""
    if unknown is None:
        unknown = UNKNOWN_COLUMN * rows.prompt, UNKNOWN_COLUMN * rows.prompt_max
    known = {name: (mean, most) for name, mean, most in rows.columns}
    mean = most = per_character * sum(map(_written_out, texts))
    for text in texts:
        for word in _words(text, known, rows.sides):
            if word in known:
                column = known[word]
            elif _is_completion(word, rows.sides):
                column = rows.written, rows.written_max
            else:
                column = (rows.prompt, rows.prompt_max) if "prompt" in word else unknown
            mean, most = mean + column[0], most + column[1]
    return mean, most


def _words(text: str, known: Collection[str] = (), sides: int = 1) -> Iterator[str]:
    """The name of each value in the braces of a text: of `row.answer | upper` that of a column,
    without one the first."""
    for expression in BRACES.findall(text):
        shown = re.split(r"\||\bif\b", QUOTED.sub("", expression))[0]
        for value in re.split(r"[~+]", shown):
            names = re.findall(r"\w+", value)
            columns = (n for n in names if n in known or "prompt" in n or _is_completion(n, sides))
            yield from [next(columns, names[0])] if names else []


def _written_out(text: str) -> int:
    """Characters of a text outside of its expressions, and of what they quote."""
    quoted = (one for found in BRACES.findall(text) for one in QUOTED.findall(_shown(found)))
    return len(MARKUP.sub("", text)) + sum(len(one) - 2 for one in quoted)


def _shown(expression: str) -> str:
    """An expression without its filters, whose arguments are not shown."""
    return expression.partition(" | ")[0]


def _is_completion(word: str, sides: int) -> bool:
    """Whether a name is that of a completion. Judges see the two sides of a pair as `a` and `b`."""
    is_side = word in ("chosen", "rejected") or (sides > 1 and word in ("a", "b"))
    return "completion" in word or is_side


# How many logits are held at once, decided here once: update, scoring and engine compute by it,
# plan and estimate say it.

LOGITS_AT_ONCE: dict[Literal["cpu", "cuda"], int] = {"cpu": 1 << 24, "cuda": 1 << 28}
"""64 MiB in float32 on a CPU, where more do not fit into its caches; 1 GiB on a GPU, where products
need tall matrices and each kernel takes some microseconds to launch."""


def logits_at_once(*, on_cpu: bool) -> int:
    """Most logits held at once where no chunk is set."""
    return LOGITS_AT_ONCE["cpu" if on_cpu else "cuda"]


def loss_chunk(vocabulary: int, *, on_cpu: bool) -> int:
    """Tokens whose logits are held at once where the loop sets no `training.loss_chunk`."""
    return max(logits_at_once(on_cpu=on_cpu) // vocabulary, 1)
