"""Creates, lists, forks, restores and disposes of sessions."""
