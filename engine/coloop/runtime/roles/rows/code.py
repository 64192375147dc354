"""Files of the user's Python, as roles read them."""

from pathlib import Path

from coloop.errors import DataError
from coloop.sandbox.code_files import CodeFile, read_code


def read_code_of(node: str, field: str, path: Path) -> CodeFile:
    """The file that a field of a node names.

    Raises:
        DataError: it cannot be read.
    """
    try:
        return read_code(path)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise DataError(f"{node}: {field}: {path} cannot be read: {reason}", node, field) from None
