"""Serves the page for browsers: its files, the login, the devices that may use it, and their rights."""
