"""Tools of a session: one registry of names, one gate for calls, rules that people gave. Pure: no I/O, no clock.

`registry` knows whose tool a name is, `subject` reads a call, `rules` says what a person decided before, `approvals`
what they are offered and what they decided, `gate` the way of one call. Imports nothing but the protocol, so that the
host itself can use it.
"""
