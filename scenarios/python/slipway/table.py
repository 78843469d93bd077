"""Columns that pandas, polars and numpy take as they are."""

from __future__ import annotations

import html
import math
from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Union

#: Numbers are an array of doubles or of 64-bit integers, whose memory numpy shares; all else is a list.
Column = Union["array[float]", "array[int]", "list[Any]"]

_SHOWN = 20  # rows of a notebook's table


def _column(values: Sequence[Any]) -> Column:
    if isinstance(values, array):
        return values
    kinds = set(map(type, values))
    if kinds == {int}:
        try:
            return array("q", values)
        except OverflowError:
            pass
    if float in kinds and kinds <= {int, float, type(None)}:
        return array("d", [math.nan if value is None else value for value in values])
    return list(values)


def _flat(row: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """{"set": {"layout.tensor": 4}, "timeline": {"total": 1}} has the columns layout.tensor and timeline.total."""
    for name, value in row.items():
        if isinstance(value, Mapping):
            for inner, item in _flat(value):
                yield (inner if name == "set" else f"{name}.{inner}"), item
        else:
            yield name, value


class Table(dict):  # type: ignore[type-arg]
    """Columns by name, all of one length.

    pandas.DataFrame(table), polars.DataFrame(table) and numpy.asarray(table["step_time_s"]) work. A number that is
    missing is NaN.
    """

    def __init__(self, columns: Mapping[str, Sequence[Any]]) -> None:
        super().__init__((name, _column(values)) for name, values in columns.items())

    @classmethod
    def from_rows(cls, rows: Sequence[Mapping[str, Any]]) -> Table:
        """Of dicts; a key that a row does not have is None, and NaN among numbers."""
        flat = [dict(_flat(row)) for row in rows]
        names = dict.fromkeys(name for row in flat for name in row)
        return cls({name: [row.get(name) for row in flat] for name in names})

    @property
    def row_count(self) -> int:
        return len(next(iter(self.values()), ()))

    def rows(self) -> Iterator[dict[str, Any]]:
        """Each row as a dict."""
        for at in range(self.row_count):
            yield {name: column[at] for name, column in self.items()}

    def row(self, at: int) -> dict[str, Any]:
        return {name: column[at] for name, column in self.items()}

    def to_dict(self) -> dict[str, list[Any]]:
        """Lists of Python's own numbers and texts."""
        return {name: list(column) for name, column in self.items()}

    def _repr_html_(self) -> str:
        def cells(tag: str, values: Sequence[Any]) -> str:
            return "<tr>" + "".join(f"<{tag}>{html.escape(_shown(value))}</{tag}>" for value in values) + "</tr>"

        count = self.row_count
        body = "".join(cells("td", [column[at] for column in self.values()]) for at in range(min(count, _SHOWN)))
        more = f"<p>{count} rows, the first {_SHOWN} of them</p>" if count > _SHOWN else ""
        return f"<table><thead>{cells('th', list(self))}</thead><tbody>{body}</tbody></table>{more}"


def _shown(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
