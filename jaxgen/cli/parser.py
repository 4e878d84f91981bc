"""The command line: `jaxgen assess`, `jaxgen delve`, `jaxgen report` and `jaxgen info`."""

import argparse
import re
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NoReturn

from jaxgen.cli import assess_options, delve_options, info_options, report_options
from jaxgen.cli.configuration import did_you_mean
from jaxgen.cli.streams import complain, in_words, safe_streams
from jaxgen.types.numbers import shown

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


class _Parser(argparse.ArgumentParser):
    """A parser that says in one sentence what is wrong with a command, without its usage; so do those of its
    commands.
    """

    def error(self, message: str) -> NoReturn:
        lacking = re.fullmatch(r"argument (.+): expected one argument", message)
        required = re.fullmatch(r"the following arguments are required: (.+)", message)
        if required:
            message = f"expected {self.prog} with {required[1]}, got less; see {self.prog} --help"
        elif lacking:
            message = f"expected a value after {lacking[1]}, got none; write it behind the option"
        elif " got " not in message:
            message = f"expected a command as in {self.prog} --help, got another ({message}); look there"
        complain(message)
        raise SystemExit(2)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """What is parsed; each command refuses by itself what it does not know."""
        found, rest = super().parse_known_args(args, namespace)
        if not rest:
            return found, rest
        options = [name for action in self._actions for name in action.option_strings]
        word = next((word for word in rest if word.startswith("-")), rest[0])
        name = word.split("=")[0]
        if not word.startswith("-"):
            self.error(f"expected the words of {self.prog}, got {shown(word)} as well; see {self.prog} --help")
        self.error(
            f"expected options of {self.prog}, got {name}; {did_you_mean(name, options, f'see {self.prog} --help')}"
        )

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            name = "/".join(action.option_strings) or action.metavar or action.dest
            choices = [str(choice) for choice in action.choices]
            raise argparse.ArgumentError(
                None,
                f"expected {name} to be one of {', '.join(choices)}, got {shown(value)}; "
                f"{did_you_mean(str(value), choices, 'choose one')}",
            )

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        kinds: dict[Any, str] = {int: "a whole number", float: "a number"}
        wanted = kinds.get(action.type)
        if wanted is None:
            return super()._get_value(action, arg_string)
        try:
            return super()._get_value(action, arg_string)
        except argparse.ArgumentError:
            name = "/".join(action.option_strings) or action.metavar or action.dest
            raise argparse.ArgumentError(
                None, f"expected {name} to be {wanted}, got {shown(arg_string)}; write it in digits"
            ) from None


class _Version(argparse.Action):
    """Shows the version, which takes as long to look up as all other options together."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str):
        super().__init__(option_strings, dest=argparse.SUPPRESS, nargs=0, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        from importlib.metadata import version

        print(version("jaxgen"))
        parser.exit()


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="jaxgen",
        description="How well does a learning method generalize, and which of two is better?",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(check=lambda options: None)
    parser.add_argument("--version", action=_Version, help="show the version and exit")
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
