"""Rows of a dataset as a model's tokens, by the loop's templates and tokenizers, with learned
tokens marked."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from coloop.algorithms.batch import Pair, Unit
from coloop.algorithms.batch import Sequence as TokenSequence
from coloop.data.arrays import ids_of, mask_of
from coloop.data.tables import Row, Table
from coloop.errors import ColoopError
from coloop.models.tokenizer import decode
from coloop.runtime.roles.rows.texts import as_pair, as_sequence, prompt_of, tools_of
from coloop.spec.algorithm import Sft, node_algorithms
from coloop.spec.graph import LoopSpec
from coloop.spec.groups import rollout_of
from coloop.spec.nodes import model_of
from coloop.workers.encoder import Encoder
from coloop_server.previews.inside.sources import dataset_of, opened, rows_of
from coloop_server.previews.inside.walk import NotHere, Walk
from coloop_server.previews.schemas import AskTokens, Job, Lengths, Token, TokenizedRows, TokenText

MOST_SHOWN = 1500
"""Most tokens shown per text."""
BINS = 24
PROMPTS = "prompts"
PAIRS = "pairs"
READERS = (PROMPTS, "demonstrations", PAIRS, "labels")
"""Ports at which a model reads rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    node: str
    port: str
    source: tuple[str, str]
    """Node and port that deliver the rows."""

    @property
    def name(self) -> str:
        return f"{self.node}.{self.port}"


def tokens_of(job: Job, spec: LoopSpec) -> TokenizedRows:
    asked = job.asked
    assert isinstance(asked, AskTokens)
    root = Path(job.root)
    dataset_of(spec, asked.node)
    readers = list(readers_of(spec, asked.node))
    reader = _chosen(asked, readers)
    source = opened(spec, asked.node, root)
    encoding = _Encoding(spec, root, reader)
    first, last = asked.offset, asked.offset + asked.count
    shown = rows_of(spec, asked.node, root, offset=first, count=last - first, source=source)
    texts = [each for row in encoding.rows(asked.node, shown) for each in encoding.texts(row)]
    measured = rows_of(spec, asked.node, root, offset=0, count=asked.measure, source=source)
    counts = [encoding.length(row) for row in encoding.rows(asked.node, measured)]
    return TokenizedRows(
        readers=[each.name for each in readers],
        reader=reader.name,
        texts=texts,
        lengths=_lengths([each for each in counts if each is not None], spec, reader, encoding),
        vocabulary=len(encoding.tokenizer),
    )


def readers_of(spec: LoopSpec, dataset: str) -> Iterator[Reader]:
    """Models that read a dataset's rows, directly or through nodes without a model."""
    seen, waiting = {dataset}, [dataset]
    names: set[str] = set()
    while waiting:
        for edge in spec.graph.edges_out_of(waiting.pop(0)):
            node, port = edge.target.node, edge.target.port
            if model_of(spec.nodes[node]) is not None:
                reader = Reader(node=node, port=port, source=(edge.source.node, edge.source.port))
                if port in READERS and reader.name not in names:
                    names.add(reader.name)
                    yield reader
            elif node not in seen:
                seen.add(node)
                waiting.append(node)


def _chosen(asked: AskTokens, readers: Sequence[Reader]) -> Reader:
    if not readers:
        raise NotHere(
            f"no model reads the rows of `{asked.node}` as they are: connect it to what writes or "
            "learns from them"
        )
    chosen = next((reader for reader in readers if reader.name == asked.reader), None)
    if asked.reader is not None and chosen is None:
        there = ", ".join(reader.name for reader in readers)
        raise NotHere(f"`{asked.reader}` does not read `{asked.node}`; these do: {there}")
    return chosen or readers[0]


class _Encoding:
    """Encodes rows for one reader."""

    def __init__(self, spec: LoopSpec, root: Path, reader: Reader) -> None:
        self._spec = spec
        self._root = root
        self._reader = reader
        walk = Walk(spec=spec, root=root)
        self.positions = walk.tokenizers.positions(reader.node)
        self.tokenizer = walk.tokenizers.of(reader.node)
        self._encoder = Encoder(self.tokenizer, node=reader.node)
        entries = node_algorithms(spec, reader.node).get(reader.port) or ()
        self._unlearned = [
            tag for entry in entries if isinstance(entry, Sft) for tag in entry.mask or ()
        ]

    def rows(self, dataset: str, rows: Sequence[Row]) -> Sequence[Row]:
        """The rows after the nodes between dataset and reader."""
        node, port = self._reader.source
        if node == dataset or not rows:
            return rows
        walk = Walk(spec=self._spec, root=self._root)
        walk.give(dataset, "rows", Table(rows=tuple(rows)))
        between = walk.upstream(self._reader.node, self._reader.port)
        walk.run(between)
        table = walk.tables.tables.get((node, port))
        if table is None:
            preview = walk.said.get(node)
            error = preview.error if preview is not None else None
            raise NotHere(f"`{node}` lies between: {error or 'its rows exist only in a run'}")
        return table.rows

    def texts(self, row: Row) -> list[TokenText]:
        try:
            return [self._shown(row.id, side, sequence) for side, sequence in self._sides(row)]
        except ColoopError as error:
            nothing = TokenText(
                row=row.id, side="whole", tokens=[], count=0, learned=0, problem=str(error)
            )
            return [nothing]

    def length(self, row: Row) -> int | None:
        """Tokens of the row, of a pair those of the longer side; None if it cannot be encoded."""
        try:
            return max(len(sequence.token_ids) for _, sequence in self._sides(row))
        except ColoopError:
            return None

    def _sides(self, row: Row) -> list[tuple[str, TokenSequence]]:
        if self._reader.port == PROMPTS:
            ids = self._encoder.prompt(prompt_of(row), tools_of(row))
            unlearned = mask_of([False] * len(ids))
            read = TokenSequence(id=row.id, token_ids=ids_of(ids), loss_mask=unlearned)
            return [("whole", read)]
        unit: Unit = as_pair(row) if self._reader.port == PAIRS else as_sequence(row)
        encoded = self._encoder.encoded(unit)
        if isinstance(encoded, Pair):
            return [("chosen", encoded.chosen), ("rejected", encoded.rejected)]
        if self._unlearned:
            encoded = self._encoder.without_tagged(encoded, self._unlearned)
        return [("whole", encoded)]

    def _shown(self, row: str, side: str, text: TokenSequence) -> TokenText:
        ids, mask = text.token_ids.tolist(), text.loss_mask.tolist()
        shown = zip(ids[:MOST_SHOWN], mask[:MOST_SHOWN], strict=True)
        return TokenText(
            row=row,
            side=side,
            tokens=[Token(id=token, text=self._piece(token), is_learned=on) for token, on in shown],
            count=len(ids),
            learned=sum(mask),
            problem=None,
        )

    def _piece(self, token: int) -> str:
        """Text of a token; for a special token, which has none, its name."""
        text = decode(self.tokenizer, [token])
        return text or str(self.tokenizer.convert_ids_to_tokens(token))


def _lengths(
    counts: Sequence[int], spec: LoopSpec, reader: Reader, encoding: _Encoding
) -> Lengths | None:
    if not counts:
        return None
    limit, why, does = _limit(spec, reader, encoding.positions)
    longest = max(counts)
    width = max(1, -(-(longest + 1) // BINS))
    bins = [0] * (longest // width + 1)
    for count in counts:
        bins[count // width] += 1
    return Lengths(
        measured=len(counts),
        longest=longest,
        mean=sum(counts) / len(counts),
        bins=bins,
        width=width,
        limit=limit,
        limit_from=why,
        over=sum(limit is not None and count > limit for count in counts),
        over_does=does,
    )


def _limit(spec: LoopSpec, reader: Reader, positions: int | None) -> tuple[int | None, str, str]:
    """The token limit of a row, its source, and what happens to longer rows."""
    if positions is None:
        return None, "the model names no limit", ""
    rollout = rollout_of(spec, reader.node)
    if reader.port == PROMPTS and rollout is not None:
        room = max(0, positions - rollout.max_new_tokens)
        told = f"{positions} positions less {rollout.max_new_tokens} tokens that may be generated"
        return room, told, "nothing is generated from them"
    return positions, f"the model has {positions} positions", "they are left out, never cut"
