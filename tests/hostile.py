"""What tests of hostile arguments share: things of other kinds, things that are no number, and what one sentence is."""

import numpy as np
import pytest

STRANGERS = {
    "None": None,
    "text": "a",
    "number": 3,
    "array": np.ones((5, 12)),
    "list": [1, 2],
    "object": object(),
    "class": dict,
}
"""What is given by mistake where a value of the package is meant."""

NO_NUMBERS = {
    "text": "0.5",
    "None": None,
    "flag": True,
    "NaN": np.nan,
    "array": np.array([0.5, 0.6]),
    "list": [0.5],
    "complex": 0.5 + 0j,
}
"""What is given by mistake where one real number is meant."""


def refused(call, kinds=(TypeError, ValueError)):
    """The message of a call, which must be one sentence: what was expected, what came, and what to do."""
    with pytest.raises(kinds) as error:
        call()
    message = str(error.value)
    assert type(error.value) in (kinds if isinstance(kinds, tuple) else (kinds,))
    assert message.startswith("expected "), message
    assert " got " in message, message
    assert "; " in message, message
    assert "\n" not in message
    assert len(message) < 500
    assert not message.endswith(".")
    return message
