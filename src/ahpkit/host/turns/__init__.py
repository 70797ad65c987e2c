"""Runs turns: an agent answers the messages of a chat."""
