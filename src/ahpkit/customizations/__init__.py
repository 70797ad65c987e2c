"""Finds, reads and watches plugins and directories that extend agents, and offers them to turns. Starts nothing by
itself.

`discovery` finds and reads, `feature` brings it into a host's sessions, `details` holds what clients never see.
"""
