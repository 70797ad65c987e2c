"""The tools of a session: one registry of names, one gate for calls, and approval rules. Pure: no I/O, no clock.

`registry` maps names to tools, `subject` reads a call for rules, `rules` finds the rule that decides, `approvals` has
the options and the record of decisions, and `gate` the steps of one call. It imports only the protocol, so that the
host itself can use it.
"""
