"""The options of the command `jaxgen report`."""

import argparse
from pathlib import Path
from typing import Any

from jaxgen.cli.assess_options import HTML_BEGIN

_EPILOG = """examples:
  jaxgen assess --learner network --resamples 100000 --out long
      a long run, of which every part is kept in the folder `long`
  jaxgen report long
      while it goes on, or after it was stopped: what is known so far, and how long the rest takes
  jaxgen report long --html report.html
      the same as one page with tables, figures and methods, to send to somebody"""


def add_to(commands: Any) -> None:
    """Adds the command `report` to those of a parser."""
    report = commands.add_parser(
        "report",
        help="say how far the runs in a folder are, and what they show so far",
        description="Says of every run that a folder keeps how far it is, what it shows so far, and how long the rest "
        "takes on one machine. It may be asked while the run goes on.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    report.add_argument(
        "folder", metavar="DIR", type=Path, help="what assess got as its store, or the command line as --out"
    )
    report.add_argument(
        "--html",
        type=Path,
        metavar="FILE",
        help="also write the report of a folder of assess as one page, of what is done so far",
    )
    report.set_defaults(do="jaxgen.cli.report:do_report", check=check)


def check(options: argparse.Namespace) -> None:
    """Refuses a file that cannot be written.

    Raises:
      FileExistsError: there is another file of that name.
      OSError: there is no place for it.
    """
    if options.html is not None:
        from jaxgen.store.files import refuse_other_file

        refuse_other_file(options.html, HTML_BEGIN)
