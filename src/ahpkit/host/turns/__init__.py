"""Turns: how an agent answers the messages of a chat."""
