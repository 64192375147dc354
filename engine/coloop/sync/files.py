"""Weights to an engine in any process that sees the same folder.

    trainer ──publish──► version-7/ (safetensors + manifest.json) ──receive──► engine

A version is written aside and renamed, so a reader sees all of it or nothing; the last two are
kept, because a reader may still be in the one before.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import PreTrainedModel

from coloop.errors import StorageFull, WeightsNotUpdated
from coloop.models.folder import is_full, replace_folder
from coloop.sync.buckets import BUCKET_BYTES, in_buckets
from coloop.sync.probe import Probe
from coloop.sync.protocol import Proof, WeightReceiver

MANIFEST = "manifest.json"
KEPT_VERSIONS = 2


class FilesChannel:
    """Implements `WeightChannel`; `publish` and `receive` are its two ends."""

    def __init__(self, folder: Path | None = None, bucket_bytes: int = BUCKET_BYTES) -> None:
        """Without a folder, one that goes with this object."""
        self._own = None if folder else tempfile.TemporaryDirectory(prefix="coloop-weights-")
        self._folder = folder or Path(self._own.name if self._own else "")
        self._bucket_bytes = bucket_bytes
        self._probe = Probe()

    def push(self, source: PreTrainedModel, engine: WeightReceiver, *, version: int) -> Proof:
        """Writes all weights, has the engine read them, and proves that they arrived."""
        started = time.monotonic()
        self.publish(source, version)
        self.receive(engine, version)
        difference = self._probe.check(source, engine, version)
        return Proof(
            version=version,
            difference=difference,
            tolerance=self._probe.tolerance,
            moved=self._probe.moved,
            fingerprint=self._probe.fingerprint,
            size_bytes=sum(weight.nbytes for weight in source.parameters()),
            seconds=time.monotonic() - started,
        )

    def publish(self, source: PreTrainedModel, version: int) -> Path:
        """The trainer's end: the folder of the version."""
        folder = self._folder / f"version-{version}"
        aside = self._folder / f".{folder.name}.writing-{os.getpid()}"
        try:
            aside.mkdir(parents=True)
            files = []
            buckets = in_buckets(source.named_parameters(), self._bucket_bytes)
            for number, bucket in enumerate(buckets):
                files.append(f"weights-{number:05d}.safetensors")
                tensors = {name: weight.detach().cpu().contiguous() for name, weight in bucket}
                save_file(tensors, aside / files[-1])
            manifest = json.dumps({"version": version, "files": files})
            (aside / MANIFEST).write_text(manifest, encoding="utf-8")
            replace_folder(aside, folder)
        except (OSError, SafetensorError) as error:
            if is_full(error):
                raise StorageFull(
                    f"no room for version {version} of the weights: {error}"
                ) from error
            raise WeightsNotUpdated(f"version {version} cannot be written: {error}") from error
        finally:
            shutil.rmtree(aside, ignore_errors=True)
        self._forget_old()
        return folder

    def receive(self, engine: WeightReceiver, version: int | None = None) -> int:
        """The engine's end: loads a version, by default the newest; says which."""
        versions = self.versions()
        if version is None and versions:
            version = versions[-1]
        if version is None or version not in versions:
            raise WeightsNotUpdated(
                f"version {version} of the weights is not in {self._folder}; there are {versions}"
            )
        try:
            engine.load_weights(self._read(version), version)
        except (OSError, SafetensorError, ValueError, KeyError) as error:
            raise WeightsNotUpdated(f"version {version} cannot be read: {error}") from error
        return version

    def versions(self) -> list[int]:
        """Versions that are complete, oldest first."""
        found = self._folder.glob(f"version-*/{MANIFEST}")
        return sorted(int(path.parent.name.removeprefix("version-")) for path in found)

    def _read(self, version: int) -> Iterator[tuple[str, Tensor]]:
        folder = self._folder / f"version-{version}"
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        for name in manifest["files"]:
            yield from load_file(folder / name).items()

    def _forget_old(self) -> None:
        for version in self.versions()[:-KEPT_VERSIONS]:
            shutil.rmtree(self._folder / f"version-{version}", ignore_errors=True)
