"""jaxgen: generalization distributions, intervals and tests from thousands of resampled trainings in one call."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
