"""A set of weights in a process, by version: what a trainer and a frozen model have in common.

Invariant: `version` counts the changes of the weights; copies are compared by it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from coloop.algorithms.batch import Sequence as TokenSequence
from coloop.data.arrays import ids_of, mask_of
from coloop.errors import CheckpointError, StorageFull
from coloop.models import LoadedModel, load_weights, save_hf
from coloop.models.build import copy_model, positions_of
from coloop.models.folder import BASE_FOLDER, is_adapter, read_adapter, save_adapter
from coloop.models.heads import SCORE, score_heads, that_write, writing_part
from coloop.models.waiting import WeightsToCome, filled, outline_of, tied_names
from coloop.spec.dtypes import Dtypes
from coloop.spec.model import Lora
from coloop.workers.encoder import Encoder
from coloop.workers.fingerprint import fingerprint
from coloop.workers.messages import TooLong, too_long
from coloop.workers.sync import WeightChannel, WeightChecksum, WeightTransfer, checksum_of_model
from coloop.workers.sync.checksums import WHOLE, Counted, Part, Probe, probe_of, score_source
from coloop.workers.sync.protocol import bytes_of
from coloop.workers.training import ALONE, Ranks
from coloop.workers.training.adapters import Adapted, FrozenAdapter, blended
from coloop.workers.training.learner import Learner
from coloop.workers.training.scorer import SpreadScorer
from coloop.workers.training.shards import blend
from coloop.workers.training.states import autocast_of

STATE_FILE = "trainer.pt"
REPLACED = "replaced"  # how often others took the place of what an adapter stands on
Share = Literal["whole", "words", "moved", "adapter"]
"""Of weights: all, those for writing, the merged ones an adapter changes, or the adapter alone."""
MODEL = "model"
_PARTS: Mapping[int, Part] = {0: "bits", 1: "scores"}
"""What ranks say of weights that all of them hold."""


@dataclass(slots=True, kw_only=True)
class HeldWeights:
    """A versioned set of weights in a process; base of `Trainer` and `FrozenModel`."""

    name: str
    loaded: LoadedModel
    dtypes: Dtypes
    version: int = 0
    backend: Learner | SpreadScorer | None = None
    """Who holds weights that are not whole; `loaded` is then an outline."""
    adapted: Adapted | None = None
    """An adapter and its base, where weights are not plain; `loaded` is then an outline."""
    lora: Lora | None = None
    beside: str | None = None
    """The group of this process that holds what the adapter stands on; None: it does."""
    ranks: Ranks = ALONE
    """Of the processes that hold them together; all ask alike, and one writes for all."""

    _encoder: Encoder | None = None
    _unmoved: dict[tuple[torch.dtype, int], int] = field(default_factory=dict)
    """Fingerprints of what an adapter leaves as it is, by type and by how often it was replaced."""

    def encoder(self, node: str) -> Encoder:
        """The tokenizer of these weights, for one of the nodes that use them."""
        if self._encoder is None:
            self._encoder = Encoder(self.loaded.tokenizer)
        return self._encoder.of(node)

    def too_long(self, lengths: Sequence[int]) -> list[TooLong | None]:
        """What is wrong with rows of so many tokens, where the model cannot read them."""
        limit = self.positions
        return [too_long(tokens, limit) for tokens in lengths]

    def whole(self, dtype: torch.dtype | None = None) -> LoadedModel:
        """A model with all weights, to be read or copied; from parts it is in the host's memory.
        `dtype`: of weights that are put together; None: as they are held."""
        if self._is_whole:
            return self.loaded
        here = ((name, weight.to("cpu", dtype or weight.dtype)) for name, weight in self.named())
        return replace(self.loaded, model=filled(self.loaded.model, here))

    def copied(self) -> LoadedModel:
        return copy_model(self.whole())

    def to_copy(self) -> LoadedModel:
        """The weights for a reader one by one; where ranks hold parts all of them ask."""
        model = outline_of(self.loaded.model)
        to_come = WeightsToCome(model, self.named)
        for head in score_heads(model).values():
            head.weight = nn.Parameter(torch.empty_like(head.weight, device="cpu"))
        named = dict(model.named_parameters())
        heads = {name: weight for name, weight in named.items() if name.startswith(f"{SCORE}.")}
        with torch.no_grad():
            for name, weight in self.named() if heads else ():
                if name in heads:
                    heads[name].copy_(weight)
        return replace(self.loaded, model=model.requires_grad_(True), to_come=to_come)

    @property
    def _is_whole(self) -> bool:
        return self.backend is None and self.adapted is None

    def named(self) -> Iterable[tuple[str, Tensor]]:
        holder = self.adapted or self.backend
        return self.loaded.model.named_parameters() if holder is None else holder.weights()

    def given(self, share: Share) -> Iterable[tuple[str, Tensor]]:
        """What somebody who follows these weights is given."""
        if share == "whole":
            return self.named()
        if share == "words":
            return that_write(self.named())
        assert self.adapted is not None
        if share == "moved":
            return that_write(self.adapted.moved())
        return self.adapted.adapter().items()

    @property
    def positions(self) -> int | None:
        """Most tokens of a row that these weights read; None: no limit is known."""
        return positions_of(self.loaded.model)

    def counted(self, share: Share, dtype: torch.dtype | None = None) -> Counted:
        """`given`, read once to the end by all ranks; rank 0 counts it on the way. `dtype`: that
        they travel in; None: as they are held."""
        is_wanted = self.ranks.is_first and (dtype is None or not self._is_whole)
        return Counted(self.given(share), dtype, is_wanted=is_wanted)

    def send(
        self,
        channel: WeightChannel,
        dtype: torch.dtype | None,
        *,
        share: Share,
        given: Counted,
    ) -> WeightTransfer:
        """Put the weights on their way.

        Args:
            dtype: that they travel in; None: as they are held.
            share: of them; the rest is there already.
            given: what is read for it.
        """
        transfer = channel.send(
            given,
            version=self.version,
            dtype=dtype,
            size_bytes=self._size_of(share, dtype),
        )
        return replace(transfer, is_part=share == "moved")

    def _size_of(self, share: Share, dtype: torch.dtype | None) -> int | None:
        """Bytes of what is given, by the sizes of the model; None of an adapter, which is small."""
        if share == "adapter":
            return None
        named: Iterable[tuple[str, Tensor]] = self.loaded.model.named_parameters()
        if share != "whole":
            named = that_write(named)
        return sum(bytes_of(weight, dtype or weight.dtype) for _, weight in named)

    def probe(self, *, has_bits: bool) -> Probe:
        """Texts that both ends score; `has_bits`: every receiving engine tells its bits."""
        return probe_of(self.loaded.model, has_bits=has_bits)

    def checksum(
        self,
        dtype: torch.dtype,
        *,
        has_bits: bool,
        given: Counted,
        share: Share = "words",
        is_together: bool = False,
    ) -> WeightChecksum:
        """What a receiving engine must agree with; ranks but the first may give the probe alone.

        Args:
            has_bits: every engine that gets the weights tells its bits.
            given: what was sent, read to its end.
            is_together: ranks with whole weights share the work if all engines tell their bits:
                rank 0 counts the bits, rank 1 scores the probe.
        """
        if not self._is_whole:
            return self._evidence_of_parts(dtype, has_bits, given, share)
        part: Part = "all" if self.ranks.is_first else "nothing"
        if is_together and has_bits and self.ranks.size > 1:
            part = _PARTS.get(self.ranks.rank, "nothing")
        if part == "nothing":
            probe = self.probe(has_bits=has_bits)
            return WeightChecksum(version=self.version, fingerprint=None, probe=probe)
        return checksum_of_model(
            writing_part(self.loaded.model),
            self.version,
            dtype=dtype,
            autocast=autocast_of(self.dtypes),
            has_bits=has_bits,
            part=part,
        )

    def _evidence_of_parts(
        self, dtype: torch.dtype, has_bits: bool, given: Counted, share: Share
    ) -> WeightChecksum:
        bits = given.fingerprint
        if share == "moved":
            unmoved = self._bits_unmoved(dtype)
            bits = None if bits is None else (bits + unmoved) % 2**64
        probe = self.probe(has_bits=has_bits)
        return WeightChecksum(
            version=self.version,
            fingerprint=bits,
            probe=probe,
            scores=self._scores(probe),
            is_half=dtype not in WHOLE,
        )

    def _bits_unmoved(self, dtype: torch.dtype) -> int:
        """Of the weights that an adapter leaves as they are: read once, until they are replaced."""
        assert self.adapted is not None
        key = dtype, self.adapted.replaced
        if key not in self._unmoved:
            self._unmoved = {key: fingerprint(that_write(self.adapted.unmoved()), dtype)}
        return self._unmoved[key]

    def _scores(self, probe: Probe) -> NDArray[np.float64]:
        if self.backend is None:
            assert isinstance(self.adapted, FrozenAdapter)
            model = writing_part(self.adapted.model)
            return score_source(model, probe, autocast=autocast_of(self.dtypes)).numpy()
        rows = [
            TokenSequence(
                id=str(number),
                token_ids=ids_of(row),
                loss_mask=mask_of([False, *[True] * (len(row) - 1)]),
            )
            for number, row in enumerate(probe)
        ]
        return np.array([list(numbers) for numbers in self.backend.score(rows)], dtype=np.float64)

    def take(self, given: Iterable[tuple[str, Tensor]], *, ema: float, source: str) -> None:
        """new = ema * old + (1 - ema) * given; of an adapter each of its matrices for itself.
        `given`: all weights, or the source's adapter. `source`: named in the error where some
        lack."""
        if isinstance(self.adapted, FrozenAdapter):
            try:
                self.adapted.replace_adapter(blended(self.adapted.adapter(), given, ema))
            except (KeyError, ValueError) as error:
                raise CheckpointError(f"{self.name}: the adapter of {source}: {error}") from error
            self.version += 1
            return
        if self.backend is None:
            missing = blend(dict(self.loaded.model.named_parameters()), given, ema)
        else:
            missing = self.backend.blend(given, ema)
        missing = {name for name in missing if not name.startswith(f"{SCORE}.")}  # it keeps its own
        if missing:
            raise CheckpointError(f"{self.name}: {source} has no weights {min(missing)}")
        self.version += 1

    def save(self, folder: Path, earlier: Path | None = None) -> None:
        """Hugging Face format; an adapter's base is not written again. Rank 0 writes."""
        if self.adapted is not None:
            self._save_adapter(folder, earlier, self.adapted)
        elif self.ranks.is_first:
            save_hf(folder, self.whole().model, self.loaded.tokenizer)
        elif self.backend is not None:
            for _ in self.named():  # this rank gives its part of each
                pass

    def _save_adapter(self, folder: Path, earlier: Path | None, adapted: Adapted) -> None:
        assert self.lora is not None
        kept = self._base_folder(folder, earlier, adapted.replaced)
        is_kept = kept is not None
        if self.backend is not None:
            is_kept = self.ranks.any(self.ranks.is_first and is_kept)
        weights = adapted.adapter()
        base = () if is_kept else adapted.base()
        if not self.ranks.is_first:
            for _ in base:
                pass
            return
        heads = ((name, weight) for name, weight in weights.items() if name.startswith(SCORE))
        save_adapter(
            folder,
            weights,
            self.lora,
            outline=self.loaded.model,
            tokenizer=self.loaded.tokenizer,
            base=kept or filled(self.loaded.model, (*base, *heads)),
        )

    def _base_folder(self, folder: Path, earlier: Path | None, replaced: int) -> Path | None:
        if (
            earlier is not None
            and is_adapter(earlier)
            and (earlier / STATE_FILE).is_file()
            and self.saved_state(earlier).get(REPLACED) == replaced
        ):
            return earlier / BASE_FOLDER
        if self.beside is not None:
            holder = folder.parent / self.beside
            for base in (holder / BASE_FOLDER, holder):
                if (base / "config.json").is_file():
                    return base
        return None

    def save_state(self, folder: Path, state: Mapping[str, Any]) -> None:
        """What else a resume needs, beside the weights; rank 0 writes."""
        if not self.ranks.is_first:
            return
        path = folder / STATE_FILE
        try:
            path.unlink(missing_ok=True)  # it may be another checkpoint's file as well
            torch.save({**self._counters(), **state}, path)
        except (OSError, RuntimeError) as error:
            raise StorageFull(
                f"the trainer state of {self.name} was not written: {error}"
            ) from error

    def _counters(self) -> dict[str, int]:
        counters = {"version": self.version}
        return counters if self.adapted is None else {**counters, REPLACED: self.adapted.replaced}

    def saved_adapter(self, folder: Path) -> dict[str, Any]:
        """The adapter that `save` wrote, and its base where it is not the run's first."""
        if not is_adapter(folder):
            raise CheckpointError(
                f"{folder} was saved without an adapter, but `nodes.{self.name}.model.lora` needs "
                "one; resume with the previous loop, or start a new run from these weights: "
                f"`model: {{type: pretrained, path: {folder}, lora: ...}}`"
            )
        saved: dict[str, Any] = {"adapter": read_adapter(folder)}
        if self.saved_state(folder).get(REPLACED):
            saved["base"] = load_weights(folder / BASE_FOLDER, self.loaded.model)
        return saved

    def saved(self, folder: Path) -> dict[str, Tensor]:
        """The weights that `save` wrote, by every name that the model has for them."""
        if is_adapter(folder):
            raise CheckpointError(
                f"{folder} contains an adapter, but `nodes.{self.name}.model` has no `lora`; "
                "resume with the previous loop, or start a new run from these weights: `model: "
                f"{{type: pretrained, path: {folder}}}`"
            )
        weights = load_weights(folder, self.loaded.model)
        for names in tied_names(self.loaded.model):
            kept = next((name for name in names if name in weights), None)
            if kept is not None:
                weights |= dict.fromkeys(names, weights[kept])
        return weights

    def saved_state(self, folder: Path) -> dict[str, Any]:
        try:
            state: dict[str, Any] = torch.load(
                folder / STATE_FILE,
                weights_only=True,
                map_location="cpu",
                mmap=self.ranks.size > 1,  # each rank reads the parts that it takes
            )
        except (OSError, RuntimeError, EOFError, UnpicklingError) as error:
            raise CheckpointError(
                f"{folder}: the trainer state of {self.name} cannot be read: {error}"
            ) from error
        return state
