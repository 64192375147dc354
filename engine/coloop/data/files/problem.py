"""What is wrong in a file of rows."""


class RowProblem(ValueError):
    """What is wrong in a file; `line` counts from 1 and is None where the whole file is meant."""

    def __init__(self, message: str, *, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line
