"""Splitting schemes: each function returns a Plan of training and test weights, made on the host."""

from jaxgen.resample.designs import paired_halves, task_instances
from jaxgen.resample.folds import five_by_two, k_fold, leave_one_out, nested_pairs, time_blocks
from jaxgen.resample.splits import balanced, bootstrap, from_weights, full, leave_out, stack
from jaxgen.resample.splitters import from_splitter
from jaxgen.resample.subsets import by_size, half_samples

__all__ = [
    "balanced",
    "bootstrap",
    "by_size",
    "five_by_two",
    "from_splitter",
    "from_weights",
    "full",
    "half_samples",
    "k_fold",
    "leave_one_out",
    "leave_out",
    "nested_pairs",
    "paired_halves",
    "stack",
    "task_instances",
    "time_blocks",
]
