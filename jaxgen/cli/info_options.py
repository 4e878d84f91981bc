"""The options of the command `jaxgen info`."""

import argparse
from typing import Any


def add_to(commands: Any) -> None:
    """Adds the command `info` to those of a parser."""
    info = commands.add_parser(
        "info",
        help="say which versions, devices, cores, memory and cache are used here",
        description="Says which versions are installed, on which devices trainings run, how many cores and how much "
        "memory they may use, within the limits of a container, and how large the cache of compiled programs is.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    info.add_argument("--json", action="store_true", help="as one tree for other programs")
    info.set_defaults(do="jaxgen.cli.info:do_info")
