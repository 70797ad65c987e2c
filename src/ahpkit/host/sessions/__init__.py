"""Sessions: created, listed, forked, restored, disposed of. Knows no connection."""
