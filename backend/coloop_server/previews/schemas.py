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
    """Rows that come with the question."""

    type: Literal["pasted"]
    rows: list[dict[str, JsonValue]] = Field(min_length=1, max_length=MAX_ROWS)
    """Columns of each row: `prompt`, `completion`, `answer`, ...; equal `group`s are siblings."""


class DatasetRows(Input):
    """Rows of a dataset node of the loop."""

    type: Literal["of_dataset"]
    node: Node
    offset: int = Field(default=0, ge=0, le=2**40)
    count: int = Field(default=64, ge=1, le=MAX_ROWS)
    completion: str | None = Field(default=None, max_length=200)
    """The column that stands for what would be written; null: the first of `completion`,
    `target`, `answer`, `chosen` that is there."""


class RunRows(Input):
    """Rows that a run kept as samples."""

    type: Literal["of_run"]
    run: str = Field(max_length=128)
    step: int | None = Field(default=None, ge=0)
    """Null: the newest."""
    count: int = Field(default=64, ge=1, le=MAX_ROWS)


class RolledOutRows(Input):
    """Rows that the loop's model writes now."""

    type: Literal["rolled_out"]
    count: int = Field(default=16, ge=1, le=64)
    """At most so many completions."""
    run: str | None = Field(default=None, max_length=128)
    """A run whose last checkpoint the weights are taken from; null: as the loop begins."""


RowsFrom = Annotated[
    PastedRows | DatasetRows | RunRows | RolledOutRows, Field(discriminator="type")
]


class AskScores(Input):
    """The rewards of one learner on rows, by the functions that a run uses."""

    what: Literal["scores"] = "scores"
    yaml: Loop
    """The loop as it stands; nothing of it is saved."""
    learner: Node
    """The node whose `rewards` are asked."""
    rows: RowsFrom


class PreviewLimits(Output):
    """When a preview is stopped that does not end by itself."""

    seconds: dict[str, float]
    """Of scores, by the `type` of the rows."""


class RowProblem(Output):
    row: int
    message: str
    line: int | None
    """Of the user's code."""


class SourceScores(Output):
    """What one source says of the rows."""

    edge: str
    node: str
    weight: float
    scores: list[Any]
    """A number a row; null: nothing, or no score; numbers at positions as an object."""
    failures: list[RowProblem]
    error: str | None
    """Why there are no scores at all."""
    line: int | None
    printed: str
    seconds: float


class ScoredRow(Output):
    id: str
    prompt: Any
    completion: Any
    target: Any
    columns: dict[str, Any]
    """The others that a reward sees."""


class Scores(Output):
    rows: list[ScoredRow]
    sources: list[SourceScores]
    totals: list[float | None]
    """What the learner is paid: the sources with their weights, before baselines."""
    combine: str
    """`credit.combine` of the learner."""
    missing: str
    """`credit.missing` of the learner."""
    note: str | None
    """What is different from a run, in words."""
    seconds: float


# ---- datasets


class AskRows(Input):
    """Rows of a dataset node, as the loop sees them."""

    what: Literal["rows"] = "rows"
    yaml: Loop
    node: Node
    offset: int = Field(default=0, ge=0, le=2**40)
    count: int = Field(default=20, ge=1, le=MAX_SHOWN)


class ColumnUse(Output):
    """Who reads a column, and as what."""

    node: str
    reads: str


class ColumnFound(Output):
    name: str
    """In the loop."""
    source: str
    """In the source."""
    is_mapped: bool
    type: str
    used: list[ColumnUse]


class DatasetPage(Output):
    total: int
    """Rows of the source."""
    columns: list[ColumnFound]
    rows: list[dict[str, Any]]
    unread: list[str]
    """Columns that the loop reads and the rows lack."""


class AskTokens(Input):
    """Rows of a dataset node as token ids of the model that reads them."""

    what: Literal["tokens"] = "tokens"
    yaml: Loop
    node: Node
    reader: str | None = Field(default=None, max_length=200)
    """`node.port`; null: the first one that it reaches."""
    offset: int = Field(default=0, ge=0, le=2**40)
    count: int = Field(default=4, ge=1, le=20)
    measure: int = Field(default=1000, ge=0, le=MAX_MEASURED)
    """Rows, from the first, of which the lengths are counted."""


class Token(Output):
    id: int
    text: str
    is_learned: bool


class TokenText(Output):
    """One text of a row."""

    row: str
    side: str
    """`whole`, or of a pair `chosen` and `rejected`."""
    tokens: list[Token]
    count: int
    """Of all tokens, those that are not shown included."""
    learned: int
    problem: str | None


class Lengths(Output):
    """How long the rows are."""

    measured: int
    longest: int
    mean: float
    bins: list[int]
    """Rows in each bin."""
    width: int
    """Tokens of a bin."""
    limit: int | None
    """Most tokens that there is room for."""
    limit_from: str
    """Where that comes from, in words."""
    over: int
    """Rows that are longer."""
    over_does: str
    """What becomes of them."""


class TokenizedRows(Output):
    readers: list[str]
    """`node.port` of the models that the rows reach."""
    reader: str
    texts: list[TokenText]
    lengths: Lengths | None
    vocabulary: int
    """Tokens that the model knows."""


class AskOverlap(Input):
    """Rows that two datasets share, and those that one has twice."""

    what: Literal["overlap"] = "overlap"
    yaml: Loop
    train: Node
    test: Node
    columns: list[str] = Field(default=[], max_length=20)
    """Whose texts are compared; none: `prompt`, else what is learned."""


class OverlapPair(Output):
    train: int
    """Place of the row in its dataset."""
    test: int
    similarity: float
    """1 is equal but for case and blanks."""
    text: str
    other: str


class Overlap(Output):
    columns: list[str]
    train_rows: int
    test_rows: int
    read_all: bool
    """Whether every row was read."""
    train_twice: int
    """Rows that stand in it before."""
    test_twice: int
    leaked: int
    """Test rows that are among the training rows."""
    near: int
    """Further test rows that are nearly the same as a training row."""
    pairs: list[OverlapPair]


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
