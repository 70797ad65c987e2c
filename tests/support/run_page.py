"""Runs the snippets of a page: `python -m support.run_page FILE`, but not what is behind `__name__ == "__main__"`."""

import runpy
import sys

if __name__ == "__main__":
    runpy.run_path(sys.argv[1], run_name="page")
