"""Small tables in HTML for notebooks; all texts are escaped."""

import html
from collections.abc import Iterable, Sequence
from typing import Any

MOST_ROWS = 20
"""Rows of a table that are shown."""


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[Any]], notes: Iterable[str] = ()) -> str:
    """A titled table with at most 20 of its rows, and notes below it.

    Args:
      title: in words.
      head: names of the columns.
      rows: what is in them; numbers get five digits.
      notes: sentences, of which empty ones are left out.
    """
    body = "".join(
        f"<tr>{''.join(f'<td>{html.escape(_text(value))}</td>' for value in row)}</tr>" for row in rows[:MOST_ROWS]
    )
    names = "".join(f"<th>{html.escape(name)}</th>" for name in head)
    more = [f"{len(rows) - MOST_ROWS} more rows"] if len(rows) > MOST_ROWS else []
    below = "".join(f"<div><small>{html.escape(note)}</small></div>" for note in (*more, *notes) if note)
    return (
        f"<div><strong>{html.escape(title)}</strong><table><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>"
        f"{below}</div>"
    )


def of_frame(title: str, frame: Any, notes: Iterable[str] = ()) -> str:
    """A data frame as such a table, its columns that say the same in every row left out where there are several rows
    or many columns.
    """
    words = [name for name in frame.columns if frame[name].dtype.kind not in "biuf" and frame[name].nunique() <= 1]
    shown = frame.drop(columns=words)
    said = [f"{name}: {frame[name].iloc[0]}" for name in words if len(frame) and str(frame[name].iloc[0])]
    rows = [list(row) for row in shown.itertuples(index=False)]
    return table(title, [str(name) for name in shown.columns], rows, (*said, *notes))


def _text(value: Any) -> str:
    return f"{value:.5g}" if hasattr(value, "is_integer") and not isinstance(value, int) else str(value)
