from . import compare, conformal, estimate, interval, metrics, planning, worth

__all__ = ["compare", "conformal", "estimate", "interval", "metrics", "planning", "worth"]
