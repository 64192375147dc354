"""Copies of checkpoints and samples in `run.storage`: a folder, or a URL that fsspec supports.

    <storage>/<run id>/checkpoints/step-40/...   as in the run folder
    <storage>/<run id>/samples/step-40.jsonl

A checkpoint is copied once it is whole in the run folder, its manifest last: a copy without a
manifest does not exist. Every file is read back after it was copied or restored, and compared with
the SHA-256 of the manifest.
"""

import hashlib
import logging
import re
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from coloop.data.files.marks import Marks, settle, settle_one
from coloop.errors import CheckpointError
from coloop.runtime.checkpoints.manifest import damage_of, read_manifest
from coloop.runtime.run_files.checkpoint_folders import MANIFEST

logger = logging.getLogger(__name__)

ADDRESS = "://"


def is_address(storage: str) -> bool:
    return ADDRESS in storage


class Storage:
    def __init__(self, url: str, run_id: str) -> None:
        """
        Raises:
            CheckpointError: fsspec cannot use this address.
        """
        import fsspec

        self.url = f"{url.rstrip('/')}/{run_id}"
        try:
            self._files, root = fsspec.core.url_to_fs(self.url)
        except (ImportError, ValueError, OSError) as error:
            raise CheckpointError(
                f"run.storage {url!r} cannot be used: {error}; set a folder, or install what "
                "fsspec requires"
            ) from error
        self._checkpoints, self._samples = f"{root}/checkpoints", f"{root}/samples"

    def steps(self) -> list[int]:
        """Steps that have a copy with a manifest, in order.

        Raises:
            CheckpointError: the storage does not respond.
        """
        try:
            self._files.invalidate_cache()
            if not self._files.exists(self._checkpoints):
                return []
            whole = [
                int(match[1])
                for path in self._files.ls(self._checkpoints, detail=False)
                if (match := re.fullmatch(r"step-(\d+)", Path(path).name))
                and self._files.exists(f"{path.rstrip('/')}/{MANIFEST}")
            ]
        except Exception as error:  # every kind of storage has its own errors
            raise CheckpointError(f"the copies in {self.url} cannot be listed: {error}") from error
        return sorted(whole)

    def put(self, folder: Path) -> None:
        """Copy a whole checkpoint; a copy of the same step is replaced.

        Raises:
            CheckpointError: it was not copied whole; other copies are unchanged.
        """
        target = f"{self._checkpoints}/{folder.name}"
        try:
            hashes = read_manifest(folder)["hashes"]
            if self._files.exists(target):
                self._files.rm(target, recursive=True)
            files = [path for path in folder.rglob("*") if path.is_file()]
            for path in sorted(files, key=lambda path: path == folder / MANIFEST):
                name = path.relative_to(folder).as_posix()
                copy = f"{target}/{name}"
                self._files.makedirs(copy.rpartition("/")[0], exist_ok=True)
                self._files.put_file(str(path), copy)
                size, written = path.stat().st_size, self._files.size(copy)
                if written != size:
                    raise OSError(f"{copy} has {written} of {size} bytes")
                if name in hashes and self._hash(copy) != hashes[name]:
                    raise OSError(f"{copy} differs from what was copied: its SHA-256 differs")
        except Exception as error:  # every kind of storage has its own errors
            raise CheckpointError(
                f"{folder.name} could not be copied to {self.url}: {error}; it is still in {folder}"
            ) from error

    def get(self, step: int, folder: Path) -> Path:
        """Restore a copy into a `checkpoints` folder, whole or not at all.

        Raises:
            CheckpointError: it cannot be read, or was changed; the folder is unchanged.
        """
        final, aside = folder / f"step-{step}", folder / f".step-{step}.back.new"
        shutil.rmtree(aside, ignore_errors=True)
        source = f"{self._checkpoints}/step-{step}"
        try:
            for copy in self._files.find(source):
                path = aside / Path(copy).relative_to(source)
                path.parent.mkdir(parents=True, exist_ok=True)
                self._files.get_file(copy, str(path))
            manifest = read_manifest(aside)
            if manifest.get("step") != step:
                raise CheckpointError(f"it is the checkpoint of step {manifest.get('step')}")
            damage = damage_of(aside, manifest, Marks())
            if damage is not None:
                raise CheckpointError(damage)
            settle(aside)
        except Exception as error:  # every kind of storage has its own errors
            shutil.rmtree(aside, ignore_errors=True)
            raise CheckpointError(
                f"step-{step} could not be restored from {self.url}: {error}"
            ) from error
        shutil.rmtree(final, ignore_errors=True)
        aside.rename(final)
        settle_one(folder)
        return final

    def damage(self, step: int) -> str | None:
        """What is wrong with a copy, or None. Reads all of it."""
        with TemporaryDirectory() as folder:
            try:
                self.get(step, Path(folder))
            except CheckpointError as error:
                return str(error)
        return None

    def remove(self, step: int) -> None:
        """Remove a copy; a failure is logged."""
        try:
            self._files.rm(f"{self._checkpoints}/step-{step}", recursive=True)
        except Exception as error:  # every kind of storage has its own errors
            logger.warning("step-%d was not removed from %s: %s", step, self.url, error)

    def put_samples(self, path: Path) -> None:
        """Copy a file of samples; a failure is logged."""
        try:
            self._files.makedirs(self._samples, exist_ok=True)
            self._files.put_file(str(path), f"{self._samples}/{path.name}")
        except Exception as error:  # every kind of storage has its own errors
            logger.warning("%s was not copied to %s: %s", path.name, self.url, error)

    def _hash(self, path: str) -> str:
        with self._files.open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
