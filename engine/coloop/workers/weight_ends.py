"""A worker's calls that send and receive weights, within its process or over a channel."""

import tempfile
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from coloop.models.build import DTYPES
from coloop.models.folder import read_adapter, weights_in
from coloop.spec.adapters import stays
from coloop.spec.model import ComputeDtype
from coloop.workers.generators import WorkerState
from coloop.workers.initial_weights import renamed, taken_heads
from coloop.workers.settings import HostSettings
from coloop.workers.sync import (
    CHANNELS,
    MEETINGS,
    FilesChannel,
    GroupChannel,
    WeightChannel,
    WeightChecksum,
    WeightTransfer,
)
from coloop.workers.sync.checksums import Counted, Part, Probe
from coloop.workers.sync.folders import SHARED_MEMORY, TransferFolders, can_use
from coloop.workers.weights import Share
from coloop.workers.worker_api import Ends


class WeightEnds(WorkerState):
    def __init__(self, settings: HostSettings) -> None:
        super().__init__(settings)
        self._announced: dict[str, Counted] = {}  # by group, weights that `deliver` will send
        self._group_channels: dict[str, GroupChannel] = {}  # by kind; they stay connected
        self._own_folders = TransferFolders([SHARED_MEMORY, Path(tempfile.gettempdir())])

    def _close_ends(self) -> None:
        for channel in self._group_channels.values():
            channel.close()
        self._own_folders.close()

    def sync(self, group: str) -> Ends | None:
        self._begin()
        weights, engine = self._homes[group].weights, self._engines[group]
        if engine.version in (None, weights.version):
            return None
        share, has_bits = self._share_to_send(group), self._have_bits(group)
        counted = weights.counted(share, engine.dtype)
        try:
            received = engine.receive(
                ((name, weight.detach().to(engine.dtype)) for name, weight in counted),
                weights.version,
                weights.probe(has_bits=has_bits),
                is_part=share == "moved",
                part=self._checksum_part,
            )
        finally:
            counted.finish()  # gathering is collective, so it goes on even if this engine failed
        return weights.checksum(
            engine.dtype, has_bits=has_bits, given=counted, share=share, is_together=True
        ), received

    def send(
        self,
        group: str,
        places: Sequence[Path],
        dtype: ComputeDtype | None,
        is_adapter: bool = False,
    ) -> tuple[WeightTransfer | None, WeightChecksum]:
        self._begin()
        weights = self._homes[group].weights
        torch_dtype = None if dtype is None else DTYPES[dtype]
        share: Share = "adapter" if is_adapter else "whole"
        if torch_dtype is not None:
            share = self._share_to_send(group)
        counted, transfer = weights.counted(share, torch_dtype), None
        try:
            if self._ranks.is_first:
                channel = FilesChannel(places)
                transfer = weights.send(channel, torch_dtype, share=share, given=counted)
        finally:
            counted.finish()
        if torch_dtype is None:
            return transfer, WeightChecksum(
                version=weights.version, fingerprint=counted.fingerprint
            )
        has_bits = self._have_bits(group)
        return transfer, weights.checksum(
            torch_dtype, has_bits=has_bits, given=counted, share=share
        )

    def receive(self, group: str, transfer: WeightTransfer, probe: Probe) -> WeightChecksum:
        self._begin()
        with closing(self._channel(transfer.channel).receive(transfer)) as weights:
            return self._engines[group].receive(
                weights, transfer.version, probe, is_part=transfer.is_part, part=self._checksum_part
            )

    def invite(
        self, group: str, kind: str, ends: str, round: int, receivers: int, dtype: ComputeDtype
    ) -> tuple[WeightTransfer | None, Probe]:
        self._begin()
        weights = self._homes[group].weights
        probe = weights.probe(has_bits=self._have_bits(group))
        counted = weights.counted("words", DTYPES[dtype])
        self._announced[group] = counted
        if not self._ranks.is_first:
            return None, probe
        channel = self._group_channel(kind)
        channel.invite(ends, round, receivers)
        return weights.send(channel, DTYPES[dtype], share="words", given=counted), probe

    def deliver(self, group: str, transfer: WeightTransfer, dtype: ComputeDtype) -> WeightChecksum:
        self._begin()
        weights, counted = self._homes[group].weights, self._announced.pop(group)
        try:
            if self._ranks.is_first:
                self._group_channel(transfer.channel).deliver(transfer)
        finally:
            counted.finish()
        has_bits = self._have_bits(group)
        return weights.checksum(DTYPES[dtype], has_bits=has_bits, given=counted, share="words")

    def take(self, group: str, source: str, transfer: WeightTransfer, ema: float) -> WeightChecksum:
        self._begin()
        counted = Counted(self._channel(transfer.channel).receive(transfer))
        self._blend(group, source, counted, ema)
        return WeightChecksum(version=transfer.version, fingerprint=counted.fingerprint)

    def follow(self, group: str, source: str, ema: float) -> None:
        self._begin()
        share: Share = "adapter" if self._plans[group].follows_adapter else "whole"
        self._blend(group, source, self._homes[source].weights.given(share), ema)

    def follow_folder(self, group: str, source: str, ema: float, folder: str) -> None:
        self._begin()
        if self._plans[group].follows_adapter:
            source_weights: Iterable[tuple[str, torch.Tensor]] = read_adapter(Path(folder)).items()
        else:
            source_weights = weights_in(Path(folder))
        self._blend(group, source, source_weights, ema)

    def can_use(self, folder: Path) -> bool:
        return can_use(folder)

    def own_places(self) -> list[Path]:
        return self._own_folders.paths

    def own_place(self, size: int, version: int) -> Path:
        return FilesChannel(self.own_places()).place_for(size, version)

    def read_part(self, path: Path, start: int, size: int) -> NDArray[np.uint8]:
        return np.fromfile(path, dtype=np.uint8, count=size, offset=start)

    def write_part(self, path: Path, start: int, part: NDArray[np.uint8]) -> None:
        if not self._ranks.is_first:
            return
        path.parent.mkdir(exist_ok=True)
        with path.open("r+b" if start else "wb") as file:
            file.seek(start)
            file.write(part.data)

    def forget(self, transfer: WeightTransfer) -> None:
        CHANNELS[transfer.channel]().forget(transfer)

    def _blend(
        self,
        group: str,
        source: str,
        source_weights: Iterable[tuple[str, torch.Tensor]],
        ema: float,
    ) -> None:
        """Blend weights of another group into a group's own; score heads are matched by node."""
        own, theirs = self._plans[group].members, self._plans[source].members
        head_names = taken_heads(self._spec, group, own, theirs)
        self._homes[group].weights.take(renamed(source_weights, head_names), ema=ema, source=source)

    def _channel(self, kind: str) -> WeightChannel:
        return self._group_channel(kind) if kind in MEETINGS else CHANNELS[kind]()

    def _group_channel(self, kind: str) -> GroupChannel:
        if kind not in self._group_channels:
            self._group_channels[kind] = MEETINGS[kind]()
        return self._group_channels[kind]

    def _share_to_send(self, group: str) -> Share:
        """What an engine is sent: only what an adapter changes if the engine keeps the rest."""
        plan = self._plans[group]
        can_keep = plan.base is not None and self._have_bits(group)
        return "moved" if can_keep and stays(self._spec, group) else "words"

    @property
    def _checksum_part(self) -> Part:
        """What this rank's checksum of its engine has: on rank 0 all, on others only the bits."""
        return "all" if self._ranks.is_first else "bits"

    def _have_bits(self, group: str) -> bool:
        """Whether every engine of the group can report a fingerprint of its weights."""
        return all(plan.engine == "torch" for plan in self._plans[group].engines)
