"""Copies of checkpoints and samples in `run.storage`: a folder, or a URL that fsspec knows.

    <storage>/<run id>/checkpoints/step-40/...   as in the run folder
    <storage>/<run id>/samples/step-40.jsonl

A checkpoint is written to the run folder first and copied when it is whole, its manifest last: a
copy without a manifest does not exist. Every file is read back once it is copied, and again when it
comes back, and compared with the SHA-256 of the manifest. Where the run folder has lost its
checkpoints, a resume brings the newest whole one back.
"""

import hashlib
import logging
import re
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from coloop.data.files.marks import Marks, settle, settle_one
from coloop.errors import CheckpointError
from coloop.runtime.checkpoints.manifest import MANIFEST, damage_of, read_manifest

logger = logging.getLogger(__name__)

ADDRESS = "://"
BLOCK_BYTES = 4 * 2**20


def is_address(storage: str) -> bool:
    """Whether `run.storage` names an address and not a folder of this machine."""
    return ADDRESS in storage


class Storage:
    """What one run keeps outside of its folder."""

    def __init__(self, url: str, run_id: str) -> None:
        """
        Raises:
            CheckpointError: nothing here can speak to this address.
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
        """Steps of which a copy with a manifest lies there, oldest first.

        Raises:
            CheckpointError: the storage cannot be asked.
        """
        try:
            self._files.invalidate_cache()
            if not self._files.exists(self._checkpoints):
                return []
            found = [
                (re.fullmatch(r"step-(\d+)", Path(path).name), path)
                for path in self._files.ls(self._checkpoints, detail=False)
            ]
            whole = [
                int(match[1])
                for match, path in found
                if match and self._files.exists(f"{path.rstrip('/')}/{MANIFEST}")
            ]
        except Exception as error:  # every kind of storage has its own errors
            raise CheckpointError(f"the copies in {self.url} cannot be listed: {error}") from error
        return sorted(whole)

    def put(self, folder: Path) -> None:
        """Copy a whole checkpoint; one of the same step is replaced.

        Raises:
            CheckpointError: it was not copied whole; the older copies are untouched.
        """
        target = f"{self._checkpoints}/{folder.name}"
        try:
            hashes = read_manifest(folder)["hashes"]
            if self._files.exists(target):
                self._files.rm(target, recursive=True)
            for path in sorted(_files(folder), key=lambda path: path == folder / MANIFEST):
                place = f"{target}/{path.relative_to(folder).as_posix()}"
                self._files.makedirs(place.rpartition("/")[0], exist_ok=True)
                self._files.put_file(str(path), place)
                size, written = path.stat().st_size, self._files.size(place)
                if written != size:
                    raise OSError(f"{place} has {written} of {size} bytes")
                wanted = hashes.get(path.relative_to(folder).as_posix())
                if wanted is not None and self._hash(place) != wanted:
                    raise OSError(f"{place} differs from what was copied: its SHA-256 differs")
        except Exception as error:  # every kind of storage has its own errors
            raise CheckpointError(
                f"{folder.name} could not be copied to {self.url}: {error}; it is still in {folder}"
            ) from error

    def get(self, step: int, folder: Path) -> Path:
        """Bring a copy back into a `checkpoints` folder; it is there whole or not at all.

        Raises:
            CheckpointError: it cannot be had, or is not what was copied; what is there stays.
        """
        final, aside = folder / f"step-{step}", folder / f".step-{step}.back.new"
        shutil.rmtree(aside, ignore_errors=True)
        source = f"{self._checkpoints}/step-{step}"
        try:
            for place in self._files.find(source):
                path = aside / Path(place).relative_to(source)
                path.parent.mkdir(parents=True, exist_ok=True)
                self._files.get_file(place, str(path))
            check_copy(aside, step)
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
        """What is wrong with a copy; None where nothing is. Reads all of it."""
        with TemporaryDirectory() as place:
            try:
                self.get(step, Path(place))
            except CheckpointError as error:
                return str(error)
        return None

    def remove(self, step: int) -> None:
        """Forget a copy; where that fails it stays."""
        try:
            self._files.rm(f"{self._checkpoints}/step-{step}", recursive=True)
        except Exception as error:  # every kind of storage has its own errors
            logger.warning("step-%d was not removed from %s: %s", step, self.url, error)

    def put_samples(self, path: Path) -> None:
        """Copy a file of samples; where that fails it lies in the run folder alone."""
        try:
            self._files.makedirs(self._samples, exist_ok=True)
            self._files.put_file(str(path), f"{self._samples}/{path.name}")
        except Exception as error:  # every kind of storage has its own errors
            logger.warning("%s was not copied to %s: %s", path.name, self.url, error)

    def _hash(self, place: str) -> str:
        found = hashlib.sha256()
        with self._files.open(place, "rb") as file:
            while block := file.read(BLOCK_BYTES):
                found.update(block)
        return found.hexdigest()


def check_copy(folder: Path, step: int) -> None:
    """Raises `CheckpointError` where a folder is not the whole checkpoint of a step."""
    manifest = read_manifest(folder)
    if manifest.get("step") != step:
        raise CheckpointError(f"it is the checkpoint of step {manifest.get('step')}")
    damage = damage_of(folder, manifest, Marks())
    if damage is not None:
        raise CheckpointError(damage)


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]
