"""ahpkit: the Agent Host Protocol for Python. Has the version; the parts are imported by name."""

__version__ = "0.1.0"

__all__ = ["__version__"]
