"""Clients: their connections, what they may ask for, and the one way out to each."""
