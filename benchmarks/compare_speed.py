"""What became slower between two result files of `benchmarks/speed.py`.

    git show HEAD~20:benchmarks/results/speed_networks.txt > before.txt
    python benchmarks/compare_speed.py before.txt benchmarks/results/speed_networks.txt

Machines differ, and one machine from day to day. So every time of jaxgen is divided by the change of the machine: the
median change of all times in the two files that are not jaxgen's (the limit, NumPy, PyTorch, scikit-learn). The exit
code is 1 if a time grew by more than the threshold, a tenth unless told, and 2 if the files cannot be compared.
"""

import argparse
import re
import statistics
import sys
from pathlib import Path

TABLES = {
    "one core": "one core",
    "two cores": "two cores",
    "us per fit": "many fits",
    "N p down-dated": "leave-one-out",
}
"""How the tables of times begin, and what to call them; all other tables hold ratios of these times."""
OURS = ("jaxgen", "down-dated", "refitted")


def cells(line):
    """The cells of a line, which two blanks or more divide."""
    return re.split(r"\s{2,}", line.strip())


def times(text):
    """All times of a result file: {(table, row, column): time}."""
    found, table, columns = {}, "", []
    for line in text.splitlines():
        words = cells(line)
        start = next((start for start in TABLES if " ".join(words).startswith(start)), "")
        if start:
            table, columns = TABLES[start], words if line.startswith(" ") else words[1:]
        elif not line.strip():
            table = ""
        elif table:
            pairs = zip(columns, words[1:], strict=False)
            numbers = {column: word for column, word in pairs if re.fullmatch(r"\d+\.\d+", word)}
            found |= {(table, words[0], column): float(word) for column, word in numbers.items()}
    return found


def ours(cell):
    """Whether a time is jaxgen's: its row says so, or its column."""
    return cell[1].startswith(OURS) or cell[2].startswith(OURS)


def compared(before, after):
    """The change of the machine, and that of each time of jaxgen beside it: {cell: ratio}."""
    both = {cell: after[cell] / before[cell] for cell in before if cell in after and before[cell] > 0}
    peers = [ratio for cell, ratio in both.items() if not ours(cell)]
    mine = {cell: ratio for cell, ratio in both.items() if ours(cell)}
    if not peers or not mine:
        raise ValueError(
            f"expected two result files of the same kind of benchmarks/speed.py, got {len(mine)} times of jaxgen and "
            f"{len(peers)} of others that are in both; give two speed_linear.txt or two speed_networks.txt"
        )
    machine = statistics.median(peers)
    return machine, {cell: ratio / machine for cell, ratio in mine.items()}


def main(words=None):
    """Prints what changed by more than the threshold; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, help="the earlier result file")
    parser.add_argument("after", type=Path, help="the later one")
    parser.add_argument("--threshold", type=float, default=0.1, help="share by which a time may grow (0.1)")
    options = parser.parse_args(words)
    try:
        machine, changes = compared(*(times(path.read_text()) for path in (options.before, options.after)))
    except (OSError, UnicodeDecodeError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    print(
        f"the machine took {machine:.2f} times as long for what is not jaxgen's; beside that, of {len(changes)} times:"
    )
    slower = {cell: ratio for cell, ratio in changes.items() if ratio > 1 + options.threshold}
    faster = {cell: ratio for cell, ratio in changes.items() if ratio < 1 / (1 + options.threshold)}
    for name, changed in (("slower", slower), ("faster", faster)):
        print(f"{len(changed)} {name} by more than {options.threshold:.0%}")
        for cell, ratio in sorted(changed.items(), key=lambda item: -item[1]):
            print(f"  {' · '.join(cell):60} x {ratio:.2f}")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
