"""A stranger at the port where processes of a run meet: weights that it tells of are not taken, and
nothing that it wrote is unpickled."""

import json
import pickle
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._C._distributed_c10d import TCPStore

from coloop.errors import WeightsNotUpdated
from coloop.workers.sync.group import GroupChannel

pytestmark = pytest.mark.attack

WEIGHTS = [("a", torch.zeros(4))]


class Bomb:
    """A pickle that leaves a mark when it is loaded."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.mark,))


def test_weights_of_a_stranger_are_not_taken(tmp_path: Path) -> None:
    sender, receiver = GroupChannel("gloo"), GroupChannel("gloo")
    sender.invite("both", 0, 1)
    transfer = sender.send(WEIGHTS, version=1)
    stranger = TCPStore("127.0.0.1", transfer.place.port, timeout=timedelta(seconds=20))
    bomb = pickle.dumps(Bomb(tmp_path / "mark")).hex()
    told = {"size": 16, "weights": [["a", "float32", [4], 0]], "handle": bomb}
    stranger.set("1/1", json.dumps(told))
    stranger.set("1/2", "end")

    with pytest.raises(WeightsNotUpdated, match="another process wrote"):
        list(receiver.receive(transfer))

    assert not (tmp_path / "mark").exists()
