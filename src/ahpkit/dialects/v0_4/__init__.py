"""AHP 0.4.0 as it was specified: types, tables and reducers of that dialect, and the reference for its tests.

Types that are the same in 1.0.0 are imported from `ahpkit.protocol`. `tests/dialects/v0_4/members.txt` lists the
members of every type of 0.4.0. So a later change of 1.0.0 cannot change 0.4.0 unnoticed:
the old type is then written out here.
"""
