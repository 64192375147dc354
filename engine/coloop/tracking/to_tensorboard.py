"""TensorBoard: event files in `<run folder>/tensorboard`, for `tensorboard --logdir runs`."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from torch.utils.tensorboard import SummaryWriter

from coloop.tracking.tracker import Level, RunAbout, Text, Tracker

FOLDER = "tensorboard"


class TensorBoard(Tracker):
    def begin(self, about: RunAbout) -> None:
        folder = about.folder / FOLDER
        is_new = not folder.exists()
        self._writer = SummaryWriter(str(folder))
        if is_new:
            self._writer.add_text("loop", f"```yaml\n{about.text}\n```", 0)

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)

    def texts(self, step: int, texts: Sequence[Text]) -> None:
        shown = []
        for text in texts:
            score = "" if text.score is None else f", score {text.score:.4g}"
            shown.append(f"**{text.node}**{score}\n\n{_block(text.prompt + text.completion)}")
        self._writer.add_text("samples", "\n\n---\n\n".join(shown), step)

    def alert(self, step: int, level: Level, title: str, message: str) -> None:
        self._writer.add_text(f"alerts/{level}", f"`{title}` {message}", step)

    def checkpoint(self, step: int, folder: Path, *, best: bool) -> None:
        self._writer.add_text("checkpoints", f"{folder}{' (best)' if best else ''}", step)

    def end(self, state: str) -> None:
        self._writer.close()


def _block(text: str) -> str:
    """Markdown that shows a text letter by letter."""
    return "\n".join(f"    {line}" for line in text.splitlines())
