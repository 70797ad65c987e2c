"""Breaks real hosts for as long as you like, and checks after each fault that nothing was lost: `make soak`."""
