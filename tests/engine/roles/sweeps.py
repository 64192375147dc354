"""Sweeps over all loops that are written down, of which `make test` sees every second one."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest


def halved(paths: Sequence[Path], *, first: int) -> list[Any]:
    """Parameters of a sweep; those left out are `slow`.

    Args:
        first: place of the first that is not; sweeps that begin elsewhere see the others.
    """
    return [
        path if place % 2 == first else pytest.param(path, marks=pytest.mark.slow)
        for place, path in enumerate(paths)
    ]
