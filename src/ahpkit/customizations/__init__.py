"""Plugins and directories that extend agents: found, read, watched, and offered to turns. Starts nothing by itself.

`discovery` finds and reads, `feature` brings it into a host's sessions, `details` holds what clients never see.
"""
