"""Numbers with their units, for people."""


def count(number: int, word: str) -> str:
    """`1 error`, `2 errors`."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def gib(size: float) -> str:
    """Format bytes, such as `1.5 GiB`."""
    for unit, bytes_each in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= bytes_each:
            return f"{size / bytes_each:.1f} {unit}"
    return f"{size:.0f} B"


def seconds(value: float) -> str:
    """Format a duration, such as `12.0 s`."""
    if value < 1:
        return f"{value * 1000:.0f} ms"
    if value < 120:
        return f"{value:.1f} s"
    if value < 7200:
        return f"{value / 60:.0f} min"
    return f"{value / 3600:.1f} h"


def rate(value: float | None) -> str:
    """Format a rate, such as `12.3k`; empty if it is not known."""
    if not value:
        return ""
    return f"{value / 1000:.1f}k" if value >= 10_000 else f"{value:.3g}"
