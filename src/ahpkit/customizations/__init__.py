"""Finds, reads and watches plugins and directories that extend agents, and offers them to turns. Starts nothing by
itself.

`discovery` finds and reads them, `feature` brings them into a host's sessions, and `details` has the data that clients
never get.
"""
