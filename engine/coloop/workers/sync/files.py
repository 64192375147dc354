"""Weights from process to process through a folder that both see, in `/dev/shm` or on a disk.

    send ──> <place>/<parcel>/weights-00000.safetensors, ... ──> receive

Each file holds one bucket, so neither end needs memory for more. The transfer lists all files with
their sizes.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from coloop.errors import StorageFull, WeightsNotUpdated, is_full
from coloop.plan.weight_buckets import CPU_BYTES
from coloop.workers.sync.protocol import Opened, Weights, WeightTransfer, bytes_of, in_buckets

HEADERS_SHARE = 1.02  # files are a little larger than the weights in them


class FilesChannel:
    def __init__(self, places: Sequence[Path] = (), bucket_bytes: int = CPU_BYTES) -> None:
        """`places`: folders to write to, the best first; the first with enough space is used."""
        self._places = places
        self._bucket_bytes = bucket_bytes

    def send(
        self,
        weights: Weights,
        *,
        version: int,
        dtype: torch.dtype | None = None,
        size_bytes: int | None = None,
    ) -> WeightTransfer:
        all_weights, size = weights, size_bytes
        if size is None:
            all_weights = [(name, weight.detach()) for name, weight in weights]
            size = sum(bytes_of(weight, dtype or weight.dtype) for _, weight in all_weights)
        folder = self.place_for(size, version) / f"parcel-{uuid.uuid4().hex}"
        files = []
        try:
            folder.mkdir()
            buckets = in_buckets(all_weights, self._bucket_bytes, dtype)
            for number, bucket in enumerate(buckets):
                path = folder / f"weights-{number:05d}.safetensors"
                tensors = {
                    name: weight.detach().to("cpu", dtype or weight.dtype).contiguous()
                    for name, weight in bucket
                }
                save_file(tensors, path)
                files.append((path.name, path.stat().st_size))
        except BaseException as error:
            shutil.rmtree(folder, ignore_errors=True)
            if not isinstance(error, OSError | SafetensorError):
                raise
            if is_full(error):
                raise StorageFull(
                    f"no space for version {version} of the weights in {folder.parent}: {error}"
                ) from error
            raise WeightsNotUpdated(f"version {version} cannot be written: {error}") from error
        place = (str(folder), tuple(files))
        return WeightTransfer(channel="files", version=version, place=place, size_bytes=size)

    def receive(self, transfer: WeightTransfer) -> Opened:
        folder, files = transfer.place
        for name, size in files:
            path = Path(folder) / name
            try:
                present = path.stat().st_size
                if present != size:
                    raise OSError(f"it has {present} bytes, but {size} were written")
                bucket = load_file(path)
            except (OSError, SafetensorError, ValueError, KeyError) as error:
                reason = getattr(error, "strerror", None) or error
                raise WeightsNotUpdated(
                    f"version {transfer.version} of the weights cannot be read: {path}: {reason}"
                ) from error
            yield from bucket.items()

    def forget(self, transfer: WeightTransfer) -> None:
        shutil.rmtree(transfer.place[0], ignore_errors=True)

    def place_for(self, size: int, version: int) -> Path:
        """The first folder with space for so many bytes; raises `StorageFull`."""
        free_bytes = {folder: _free_bytes_of(folder) for folder in self._places}
        for folder, free in free_bytes.items():
            if free > size * HEADERS_SHARE:
                return folder
        listed = ", ".join(f"{folder} has {free} bytes free" for folder, free in free_bytes.items())
        raise StorageFull(
            f"no space for version {version} of the weights ({size} bytes): {listed or 'no folder'}"
        )


def _free_bytes_of(folder: Path) -> int:
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return 0
