"""The command `ahpkit`. Owns words for people; everything it does goes through the public packages."""

from ahpkit.cli.main import main

__all__ = ["main"]
