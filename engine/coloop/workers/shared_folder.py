"""Whether the pools that save and the driver see the same folder: one that only looks the same, on
a machine of its own, would hold checkpoints that nobody can put together."""

import platform
import shutil
import uuid
from collections.abc import Iterable
from pathlib import Path

from coloop.errors import CheckpointError, StorageFull
from coloop.workers.messages import DRIVERS_WORD
from coloop.workers.worker_api import PoolCall, WorkerApi


def check_shared(ask: PoolCall, pools: Iterable[str], folder: Path) -> None:
    """Driver and pools each write a word that the other reads.

    Args:
        ask: calls a method of a pool's workers.

    Raises:
        CheckpointError: a pool writes elsewhere, or cannot read what is written here.
        StorageFull: nothing can be written here.
    """
    word = uuid.uuid4().hex
    place = folder / f".seen-{word}"
    try:
        place.mkdir(parents=True)
        (place / DRIVERS_WORD).write_text(word, encoding="utf-8")
        for pool in pools:
            sight = ask(pool, WorkerApi.see, place)
            if sight.word != word or _word_of(place / pool) != word:
                raise CheckpointError(
                    f"pool {pool}, on {sight.machine}, does not see the folder of the checkpoints, "
                    f"{folder} on {platform.node()}: set `run.storage` to a folder on a disk that "
                    "all machines of the cluster share"
                )
    except OSError as error:
        raise StorageFull(f"nothing can be written to {folder}: {error}") from error
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _word_of(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None
