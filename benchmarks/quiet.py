"""Whether a machine had other work while something was timed, by a fixed loop; and result files of what was timed."""

import os
import time
from pathlib import Path

import numpy as np

_ROUNDS, _TERMS = 5, 200_000


class Watch:
    """Seconds of one fixed loop, as they were at every call of `look`."""

    def __init__(self):
        self.seconds = []
        self.look()

    def look(self):
        """Times the loop some rounds."""
        for _ in range(_ROUNDS):
            begun = time.perf_counter()
            sum(number * number for number in range(_TERMS))
            self.seconds.append(time.perf_counter() - begun)

    def line(self):
        """What the times say, in one line; looks once more."""
        self.look()
        low, middle, high = 1e3 * np.quantile(self.seconds, [0.0, 0.5, 0.9])
        judged = (
            "quiet" if high < 1.15 * low else "fairly quiet" if high < 1.4 * low else "BUSY, do not trust these times"
        )
        return (
            f"A fixed loop, timed {len(self.seconds)} times from beginning to end: {low:.1f} ms at best, "
            f"{middle:.1f} in the median, {high:.1f} at the 90th percentile. The machine was {judged}."
        )


def publish(name, text, figures=None):
    """Writes a result file NAME.txt, and figures as NAME_KEY.png, each under its final name only when it is whole."""
    folder = Path(__file__).parent / "results"
    partial = folder / f".{name}"
    partial.write_text(text + "\n")
    os.replace(partial, folder / name)
    for key, figure in (figures or {}).items():
        partial = folder / f".{key}.png"
        figure.savefig(partial, dpi=120)
        os.replace(partial, folder / f"{name.removesuffix('.txt')}_{key}.png")
