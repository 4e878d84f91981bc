"""The command line: `jaxgen assess`, `jaxgen delve`, `jaxgen report` and `jaxgen info`."""

import argparse
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import version

from jaxgen.cli import assess_options, delve_options, info_options, report_options
from jaxgen.cli.streams import complain, in_words, safe_streams

_EPILOG = """exit codes: 0 done, 1 some trainings failed or something could not be saved (the rest is), 2 the input
or the command was not as expected, 130 stopped by the user, 143 ended by the system; `jaxgen COMMAND
--help` says more"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line.

    Args:
      arguments: words after `jaxgen`; None takes those of the process.
    Returns:
      Exit code: 0 done, 1 some fits failed or something could not be saved, 2 the input or the command was not as
      expected, 130 stopped by the user, 143 ended by the system (SIGTERM), which is otherwise the same.
    """
    with safe_streams(), _ended_like_stopped() as ended:
        options = _parser().parse_args(arguments)
        try:
            options.check(options)
            module, name = options.do.split(":")
            return getattr(import_module(module), name)(options)
        except KeyboardInterrupt as stopped:
            complain(str(stopped) or "stopped; what was not complete was not saved")
            return 143 if ended.is_set() else 130
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
    report_options.add_to(commands)
    info_options.add_to(commands)
    return parser


@contextmanager
def _ended_like_stopped() -> Iterator[threading.Event]:
    """Lets SIGTERM do what Ctrl-C does; yields what is set then."""
    ended = threading.Event()

    def end(number, frame):
        ended.set()
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():  # where Python takes no signals
        yield ended
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield ended
    finally:
        signal.signal(signal.SIGTERM, before)
