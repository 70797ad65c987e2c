"""The command `ahpkit`. Everything it does goes through the public packages."""

from ahpkit.cli.main import main

__all__ = ["main"]
