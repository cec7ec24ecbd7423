"""`python -m tidegate.cli` is the command `tidegate`."""

import signal


def main() -> None:
    """Run the command; an interrupt while it is still being imported ends it without a word."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from tidegate.cli.app import app

    signal.signal(signal.SIGINT, handler)
    app(prog_name="tidegate")


if __name__ == "__main__":
    main()
