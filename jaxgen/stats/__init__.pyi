from . import compare, estimate, interval, metrics, planning

__all__ = ["compare", "estimate", "interval", "metrics", "planning"]
