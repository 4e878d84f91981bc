"""What all figures ask of what they draw: a name for each part."""

from collections.abc import Sequence
from typing import Any

from jaxgen.types.numbers import require_labels


def names_of(given: Sequence[Any], labels: Sequence[str] | None, things: str) -> list[str]:
    """The labels, or the learners' own texts where there are none.

    Raises:
      ValueError: labels that are no texts, or more or fewer than what they name.
    """
    require_labels(labels, len(given), things)
    return [each.learner for each in given] if labels is None else list(labels)
