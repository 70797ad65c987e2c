"""Terminals that clients open and that agents run their commands in."""
