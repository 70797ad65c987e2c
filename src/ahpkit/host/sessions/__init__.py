"""Sessions: created, listed, forked, restored, disposed of."""
