"""Requests and responses of previews."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, JsonValue

from coloop_server.schemas import Input, Output

MAX_YAML = 2_000_000
MAX_ROWS = 256
MAX_SHOWN = 200
MAX_MEASURED = 20_000

Loop = Annotated[str, Field(max_length=MAX_YAML)]
Node = Annotated[str, Field(max_length=64)]


# ---- rewards


class PastedRows(Input):
    """Rows that are part of the request."""

    type: Literal["pasted"]
    rows: list[dict[str, JsonValue]] = Field(min_length=1, max_length=MAX_ROWS)
    """Columns of each row: `prompt`, `completion`, `answer`, ... Rows with the same `group` are
    completions of one prompt."""


class DatasetRows(Input):
    """Rows of a dataset node of the loop."""

    type: Literal["of_dataset"]
    node: Node
    offset: int = Field(default=0, ge=0, le=2**40)
    """Index of the first row, from 0."""
    count: int = Field(default=64, ge=1, le=MAX_ROWS)
    """Most rows."""
    completion: str | None = Field(default=None, max_length=200)
    """Column to take as the completion; null: the first of `completion`, `target`, `answer` and
    `chosen` that exists."""


class RunRows(Input):
    """Rows that a run recorded as samples."""

    type: Literal["of_run"]
    run: str = Field(max_length=128)
    """Id of the run."""
    step: int | None = Field(default=None, ge=0)
    """Step of the rows; null: the newest steps."""
    count: int = Field(default=64, ge=1, le=MAX_ROWS)
    """Most rows."""


class RolledOutRows(Input):
    """Rows that the loop's models generate for the preview. Works for small models only."""

    type: Literal["rolled_out"]
    count: int = Field(default=16, ge=1, le=64)
    """Number of completions to generate, rounded down to whole prompts; at least one prompt."""
    run: str | None = Field(default=None, max_length=128)
    """Id of a run whose last checkpoint has the weights to use; null: the loop's initial
    weights."""


RowsFrom = Annotated[
    PastedRows | DatasetRows | RunRows | RolledOutRows, Field(discriminator="type")
]


class AskScores(Input):
    """Asks for the rewards of one learner on some rows, computed as in a run."""

    what: Literal["scores"] = "scores"
    yaml: Loop
    """The loop as text. It is not saved."""
    learner: Node
    """Node with the input `rewards` to evaluate."""
    rows: RowsFrom


class PreviewLimits(Output):
    """Time limits of previews."""

    seconds: dict[str, float]
    """Most seconds that a preview of scores can take, by the `type` of its rows."""


class RowProblem(Output):
    """Why one row has no score."""

    row: int
    """Index of the row in `Scores.rows`."""
    message: str
    line: int | None
    """Line in the user's code, from 1; null if not known."""


class SourceScores(Output):
    """Scores of one edge to the learner's input `rewards`."""

    edge: str
    """Id of the edge, or else `node.port->node.port`."""
    node: str
    """Node that gives the scores."""
    weight: float
    """Weight of the edge."""
    scores: list[Any]
    """One entry per row: a number, an object with numbers by position, or null if there is no
    score."""
    failures: list[RowProblem]
    """Rows that could not be scored."""
    error: str | None
    """Why there is no score for any row; otherwise null."""
    line: int | None
    """Line in the user's code with the error, from 1; null if not known."""
    printed: str
    """What the user's code printed."""
    seconds: float
    """Time that it took, in seconds."""


class ScoredRow(Output):
    id: str
    prompt: Any
    completion: Any
    target: Any
    """Column `target`, or else `answer`; null if there is neither."""
    columns: dict[str, Any]
    """Further columns that a reward can use."""


class Scores(Output):
    rows: list[ScoredRow]
    sources: list[SourceScores]
    totals: list[float | None]
    """Reward of each row: the weighted sum or other combination of its scores, before baselines;
    null if there is none."""
    combine: str
    """Setting `credit.combine` of the learner, or where it is null what its algorithm does."""
    missing: str
    """Setting `credit.missing` of the learner."""
    note: str | None
    """How the preview differs from a run, in words; null if it does not."""
    seconds: float


# ---- datasets


class AskRows(Input):
    """Asks for rows of a dataset node, with the columns that the loop uses."""

    what: Literal["rows"] = "rows"
    yaml: Loop
    node: Node
    offset: int = Field(default=0, ge=0, le=2**40)
    """Index of the first row, from 0."""
    count: int = Field(default=20, ge=1, le=MAX_SHOWN)


class ColumnUse(Output):
    """A node that uses a column."""

    node: str
    reads: str
    """What it uses the column for, in words."""


class ColumnFound(Output):
    """A column of a dataset, and the nodes that use it."""

    name: str
    """Name of the column in the loop."""
    source: str
    """Name of the column in the data source."""
    is_mapped: bool
    """Whether `columns` of the dataset node maps it."""
    type: str
    """`text`, `number`, `yes or no`, `chat`, `list`, `object`, or `empty` if no row shown has a
    value."""
    used: list[ColumnUse]


class DatasetPage(Output):
    total: int
    """Number of rows in the data source."""
    columns: list[ColumnFound]
    rows: list[dict[str, Any]]
    unread: list[str]
    """Columns that nodes of the loop use and the rows do not have."""


class AskTokens(Input):
    """Asks for rows of a dataset node as tokens of a model that reads them."""

    what: Literal["tokens"] = "tokens"
    yaml: Loop
    node: Node
    reader: str | None = Field(default=None, max_length=200)
    """Input of the model, as `node.port`; null: the first one that the rows reach."""
    offset: int = Field(default=0, ge=0, le=2**40)
    count: int = Field(default=4, ge=1, le=20)
    measure: int = Field(default=1000, ge=0, le=MAX_MEASURED)
    """Number of rows, from the first, whose lengths are counted."""


class Token(Output):
    id: int
    text: str
    is_learned: bool
    """Whether the model is trained on it."""


class TokenText(Output):
    """One text of a row, as tokens."""

    row: str
    """Id of the row."""
    side: str
    """`chosen` or `rejected` for a pair, otherwise `whole`."""
    tokens: list[Token]
    """The first tokens of the text."""
    count: int
    """Number of all tokens, also of those that are not in `tokens`."""
    learned: int
    """Number of tokens that the model is trained on."""
    problem: str | None
    """Why the row cannot be encoded; otherwise null."""


class Lengths(Output):
    """How many tokens the rows have."""

    measured: int
    """Number of rows that were counted."""
    longest: int
    """Tokens of the longest row."""
    mean: float
    bins: list[int]
    """Histogram: the number of rows in each bin."""
    width: int
    """Width of a bin, in tokens."""
    limit: int | None
    """Most tokens that a row can have; null if the model has no limit."""
    limit_from: str
    """Where the limit comes from, in words."""
    over: int
    """Number of rows that are longer than `limit`."""
    over_does: str
    """What a run does with longer rows, in words."""


class TokenizedRows(Output):
    readers: list[str]
    """Inputs of models that the rows reach, as `node.port`."""
    reader: str
    """The input that was used."""
    texts: list[TokenText]
    lengths: Lengths | None
    """Null if no row could be counted."""
    vocabulary: int
    """Number of tokens that the tokenizer knows."""


class AskOverlap(Input):
    """Asks for rows that two datasets share, and rows that one of them has twice."""

    what: Literal["overlap"] = "overlap"
    yaml: Loop
    train: Node
    """Dataset node with the training rows."""
    test: Node
    """Dataset node with the test rows."""
    columns: list[str] = Field(default=[], max_length=20)
    """Columns to compare. Empty: the first of `prompt`, `target`, `chosen`, `text` and `question`
    that both have, else any column that both have."""


class OverlapPair(Output):
    """A test row with an equal or nearly equal training row."""

    train: int
    """Index of the training row, from 0."""
    test: int
    """Index of the test row, from 0."""
    similarity: float
    """Share of common word sequences; 1: equal apart from case and whitespace."""
    text: str
    """Start of the training row's text."""
    other: str
    """Start of the test row's text."""


class Overlap(Output):
    columns: list[str]
    """Columns that were compared."""
    train_rows: int
    """Number of training rows that were read."""
    test_rows: int
    """Number of test rows that were read."""
    read_all: bool
    """Whether all rows of both datasets were read."""
    train_twice: int
    """Number of training rows that are equal to an earlier one."""
    test_twice: int
    """Number of test rows that are equal to an earlier one."""
    leaked: int
    """Number of test rows that are equal to a training row."""
    near: int
    """Number of further test rows that are nearly equal to a training row."""
    pairs: list[OverlapPair]
    """Some of these test rows, equal ones first."""


Asked = Annotated[AskScores | AskRows | AskTokens | AskOverlap, Field(discriminator="what")]


class Job(BaseModel):
    """Input of the process that computes a preview."""

    asked: Asked
    root: str
    """Folder in which relative paths of the loop begin."""
    weights_from: str | None = None
    """Run folder with the weights."""
    samples: list[dict[str, Any]] = []
    """Recorded rows of a run."""
    sampled_by: str | None = None
    """The loop of that run."""
    sampled_in: str | None = None
    """Base folder of its paths."""
    step: int | None = None


class Done(BaseModel):
    """Result of a job: an answer, or an error for the user."""

    answer: dict[str, Any] | None = None
    code: str = ""
    message: str = ""
    detail: dict[str, Any] = {}


MIB = 2**20


class Limits(BaseModel, frozen=True):
    """Limits of one preview."""

    seconds: float = 60.0
    """Total time."""
    memory_bytes: int = 4096 * MIB
    cpu_seconds: int = 120
    file_bytes: int = 256 * MIB
    answer_bytes: int = 16 * MIB


SHORT = Limits()
"""For previews that read and score rows."""
ROLLOUT = Limits(seconds=240.0, cpu_seconds=480, memory_bytes=8192 * MIB)
"""For previews that run models."""
