"""The command line: `jaxgen assess` and `jaxgen delve`."""

import argparse
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version

from jaxgen.cli import assess_options, delve_options
from jaxgen.cli.streams import complain, in_words, safe_streams

_EPILOG = """exit codes: 0 done, 1 some trainings failed or something could not be saved (the rest is), 2 the input
or the command was not as expected, 130 stopped by the user; `jaxgen COMMAND --help` says more"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line.

    Args:
      arguments: words after `jaxgen`; None takes those of the process.
    Returns:
      Exit code: 0 done, 1 some fits failed or something could not be saved, 2 the input or the command was not as
      expected, 130 stopped by the user.
    """
    with safe_streams():
        options = _parser().parse_args(arguments)
        try:
            options.check(options)
            module, name = options.do.split(":")
            return getattr(import_module(module), name)(options)
        except KeyboardInterrupt as stopped:
            complain(str(stopped) or "stopped; what was not complete was not saved")
            return 130
        except Exception as trouble:  # also of code of the user's, which may raise anything: one sentence, no traceback
            complain(in_words(trouble))
            return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="jaxgen",
        description="How well does a learning method generalize, and which of two is better?",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(check=lambda options: None)
    parser.add_argument("--version", action="version", version=version("jaxgen"))
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    assess_options.add_to(commands)
    delve_options.add_to(commands)
    return parser
