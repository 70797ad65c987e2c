"""`python -m ahpkit` is the command `ahpkit`."""

from ahpkit.cli import main

if __name__ == "__main__":
    main()
