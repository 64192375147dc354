"""What a process wrote before it ended, for the error that tells of its end: it had no other way to
say what kept it from coming."""

from pathlib import Path

LINES = 12
LINE_BYTES = 400


class LastWords:
    """The end of what went to a log from now on."""

    def __init__(self, log: Path | None) -> None:
        """
        Args:
            log: of a run; None: nothing is kept.
        """
        self._log = log
        self._begin = log.stat().st_size if log is not None and log.exists() else 0

    def told(self) -> str:
        """In words, and how to go on."""
        lines = self._lines()
        if not lines:
            return "it wrote nothing"
        text = "".join(f"\n    {line}" for line in lines)
        return f"mend what it says and run again; the end of {self._log}:{text}"

    def _lines(self) -> list[str]:
        if self._log is None or not self._log.exists():
            return []
        with self._log.open("rb") as file:
            file.seek(max(self._begin, self._log.stat().st_size - LINES * LINE_BYTES))
            text = file.read().decode("utf-8", errors="replace")
        return [line for line in text.splitlines() if line.strip()][-LINES:]
