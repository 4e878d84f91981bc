from . import compare, estimate, interval, metrics, planning, worth

__all__ = ["compare", "estimate", "interval", "metrics", "planning", "worth"]
