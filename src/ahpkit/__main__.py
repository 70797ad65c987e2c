"""The command `ahpkit`, also as `python -m ahpkit`. Until it is loaded, Ctrl-C just ends the process."""

import signal

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # Not where somebody ignores it, as `nohup` may.
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def main() -> None:
    """Load the command line and run it; ends the process."""
    from ahpkit.cli import main as run

    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


if __name__ == "__main__":
    main()
