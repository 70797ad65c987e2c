"""AHP 0.4.0 as it was specified: types, tables and reducers of that dialect, and the reference for its tests."""
