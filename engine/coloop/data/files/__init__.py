"""Files of rows: one reader for the run that draws them, the check of a loop and its estimate."""

from coloop.data.files.compressed import RowProblem
from coloop.data.files.files import RawRows, Start, first_rows, open_buffer, open_file, start_of
from coloop.data.files.values import ValueProblem, read_values

__all__ = [
    "RawRows",
    "RowProblem",
    "Start",
    "ValueProblem",
    "first_rows",
    "open_buffer",
    "open_file",
    "read_values",
    "start_of",
]
