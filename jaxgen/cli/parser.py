"""The command line: `jaxgen assess` and `jaxgen delve`."""

import argparse
import sys
from collections.abc import Sequence
from importlib.metadata import version

import matplotlib

from jaxgen.cli import assess, delve


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line.

    Args:
      arguments: words after `jaxgen`; None takes those of the process.
    Returns:
      Exit code: 0 done, 1 some fits failed, 2 the input or the command was not as expected.
    """
    options = _parser().parse_args(arguments)
    matplotlib.use("Agg")
    try:
        return options.do(options)
    except (ValueError, TypeError, OverflowError, OSError, MemoryError) as trouble:
        print(f"jaxgen: {trouble}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("jaxgen: stopped; what was not complete was not saved", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="jaxgen", description="How well does a learning method generalize, and which of two is better?"
    )
    parser.add_argument("--version", action="version", version=version("jaxgen"))
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    assess.add_to(commands)
    delve.add_to(commands)
    return parser
