"""Files and content that clients may reach through the host."""

from ahpkit.host.resources.feature import Resources

__all__ = ["Resources"]
