"""Changesets: what an agent changed in the files of a session, and operations on it. Uses git itself."""
