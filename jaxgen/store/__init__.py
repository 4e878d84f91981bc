"""Runs and losses on disk: complete or not there, and checked when they are read."""

from jaxgen.store.files import (
    checksum,
    claim_folder,
    held,
    new_folder,
    publish,
    publish_text,
    read,
    refuse_other_file,
    write,
)
from jaxgen.store.losses import load, save
from jaxgen.store.runs import State, StoredRun, begin, open, put

__all__ = [
    "State",
    "StoredRun",
    "begin",
    "checksum",
    "claim_folder",
    "held",
    "load",
    "new_folder",
    "open",
    "publish",
    "publish_text",
    "put",
    "read",
    "refuse_other_file",
    "save",
    "write",
]
