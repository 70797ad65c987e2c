"""The Agent Host Protocol 1.0.0: wire types, tables, reducers, with our additions. Pure: no I/O, no tasks, no clock."""
