from . import compare, conformal, estimate, interval, metrics, planning, remarks, worth

__all__ = ["compare", "conformal", "estimate", "interval", "metrics", "planning", "remarks", "worth"]
