"""The page for browsers: its files, the way in, the devices that may come in, and what they may do."""
