"""Runs the command line: `python -m jaxgen`."""

import sys

from jaxgen.cli.parser import main

if __name__ == "__main__":
    sys.exit(main())
