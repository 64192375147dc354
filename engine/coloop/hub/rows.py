"""The first rows of a dataset of the hub, by ranged requests to one of its files: of a parquet file
its footer and the pages with these rows, of a text file its first mebibyte."""

import bz2
import io
import lzma
import zlib
from itertools import islice
from pathlib import PurePosixPath
from typing import Any, Final

from coloop.data.files.compressed import RowProblem
from coloop.data.files.files import Start, first_rows, plain_value
from coloop.errors import HubFailed
from coloop.hub.about import DataPart, HubDataset, HubFile, HubRepo, read_bytes
from coloop.hub.client import SECONDS, asking, headers
from coloop.spec.data import FORMATS, compression_of
from coloop.spec.hub_cache import endpoint
from coloop.spec.lean import record
from coloop.units import gib

TEXT_BYTES: Final = 2**20
MOST_BYTES: Final = 32 * 2**20
"""Of a parquet file: more for a few rows is a download."""
READ_AHEAD: Final = 2**16


@record
class Preview:
    """Rows of a dataset, and what was read for them."""

    file: str
    rows: tuple[dict[str, Any], ...]
    rows_in_file: int | None
    """Of a parquet file, whose footer has their number."""
    bytes_read: int


def preview(dataset: HubDataset, part: DataPart, count: int) -> Preview:
    """The first rows of a part; raises `HubFailed`."""
    file = part.files[0]
    plain = PurePosixPath(file.name)
    packed = compression_of(plain)
    form = FORMATS.get((plain.with_suffix("") if packed else plain).suffix.lower())
    if form == "parquet":
        return _of_parquet(dataset.repo, file, count)
    data = read_bytes(
        dataset.repo.id, file.name, dataset.repo.commit, kind="dataset", limit=TEXT_BYTES
    )
    text = _unpacked(dataset.repo, file, data, packed)
    is_whole = len(data) == file.bytes
    start = Start(data=text, is_whole=is_whole, size=len(text))
    try:
        rows = tuple(islice(first_rows(start, form or "jsonl"), count))
    except RowProblem as problem:
        raise HubFailed(f"{dataset.repo.id}: {file.name} {problem}") from None
    if not rows:
        raise HubFailed(
            f"{dataset.repo.id}: {file.name} has no whole row in its first "
            f"{gib(len(data))}; download it to look at it"
        )
    return Preview(file=file.name, rows=rows, rows_in_file=None, bytes_read=len(data))


def _unpacked(repo: HubRepo, file: HubFile, data: bytes, packed: str | None) -> bytes:
    """The text in the start of a compressed file, as far as it goes."""
    reader: Any
    match packed:
        case None:
            return data
        case ".gz":
            reader = zlib.decompressobj(wbits=31)
        case ".bz2":
            reader = bz2.BZ2Decompressor()
        case ".xz":
            reader = lzma.LZMADecompressor()
        case _:
            raise HubFailed(
                f"{repo.id}: {file.name} is compressed as {packed}, which shows no rows before a "
                "download"
            )
    try:
        unpacked: bytes = reader.decompress(data, 8 * TEXT_BYTES)
    except (OSError, ValueError, zlib.error, lzma.LZMAError) as error:
        raise HubFailed(f"{repo.id}: {file.name} is not compressed as {packed}: {error}") from None
    return unpacked


def _of_parquet(repo: HubRepo, file: HubFile, count: int) -> Preview:
    import pyarrow as pa
    import pyarrow.parquet as pq

    remote = RangedFile(repo, file)
    try:
        table = pq.ParquetFile(remote, buffer_size=READ_AHEAD, pre_buffer=False)
        batches = table.iter_batches(batch_size=count, use_threads=False)
        first = next(batches, None)
        rows = [] if first is None else first.to_pylist()[:count]
        in_file = table.metadata.num_rows
    except pa.ArrowException as error:
        raise HubFailed(f"{repo.id}: {file.name} is not a parquet file: {error}") from error
    plain = tuple({name: plain_value(value) for name, value in row.items()} for row in rows)
    return Preview(file=file.name, rows=plain, rows_in_file=in_file, bytes_read=remote.bytes_read)


class RangedFile(io.RawIOBase):
    """A file of the hub that is read by ranged requests; up to `MOST_BYTES` in all."""

    def __init__(self, repo: HubRepo, file: HubFile) -> None:
        self.bytes_read = 0
        self._repo, self._file, self._at = repo, file, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        starts = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._file.bytes}
        self._at = max(0, starts[whence] + offset)
        return self._at

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)

    def read(self, size: int = -1) -> bytes:
        end = self._file.bytes if size < 0 else min(self._at + size, self._file.bytes)
        if end <= self._at:
            return b""
        if self.bytes_read + end - self._at > MOST_BYTES:
            raise HubFailed(
                f"{self._repo.id}: the first rows of {self._file.name} need more than "
                f"{gib(MOST_BYTES)}; download it to look at it"
            )
        data = self._range(self._at, end)
        self._at += len(data)
        self.bytes_read += len(data)
        return data

    def _range(self, start: int, end: int) -> bytes:
        from huggingface_hub import hf_hub_url
        from huggingface_hub.utils import get_session, hf_raise_for_status

        repo, name = self._repo, self._file.name
        with asking(repo.id, repo.kind, what=name):
            url = hf_hub_url(
                repo.id, name, repo_type=repo.kind, revision=repo.commit, endpoint=endpoint()
            )
            ranged = {
                **headers(),
                "Range": f"bytes={start}-{end - 1}",
                "Accept-Encoding": "identity",
            }
            answer = get_session().get(url, headers=ranged, timeout=SECONDS)
            hf_raise_for_status(answer)
            data: bytes = answer.content
        if answer.status_code == 200:
            data = data[start:end]
        if len(data) != end - start:
            raise HubFailed(
                f"{repo.id}: {name} was cut off after {len(data):,} of {end - start:,} bytes; try "
                "again"
            )
        return data
