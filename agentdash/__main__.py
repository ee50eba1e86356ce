"""The program: `agentdash`, and `python -m agentdash`."""

import sys


def main() -> None:
    """Run the command line.

    Until it handles signals itself, ctrl+c ends the program without a word: Python would print where the
    imports were interrupted.
    """
    if sys.argv[1:] == ["--version"]:
        # shells and scripts ask often: without the imports below
        from agentdash.version import described_version  # noqa: PLC0415

        try:
            sys.stdout.write(f"agentdash {described_version()}\n")
            sys.stdout.flush()
        except (OSError, AttributeError):  # a full disk, a closed stream
            pass  # reported below
        else:
            return

    if sys.argv[1:] in (["line"], ["line", "--tmux"]):
        from agentdash.report.line import named_home, print_line  # noqa: PLC0415 - as above

        try:
            code = print_line(named_home(), tmux="--tmux" in sys.argv)
        except OSError:
            code = None  # as above
        if code is not None:
            sys.exit(code)

    if sys.platform == "linux" and sys.argv[1:2] == ["wait"]:
        from agentdash.collect.processes import first_look  # noqa: PLC0415 - as above

        first_look.look()

    import gc  # noqa: PLC0415 - as above
    import signal  # noqa: PLC0415 - as above

    from agentdash.tui import start_up  # noqa: PLC0415 - as above

    start_up.begin_early(sys.argv[1:])
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.disable()  # imports make no garbage, and looking for it takes a tenth of the start
    try:
        from agentdash.cli import main as command_line  # noqa: PLC0415 - takes longer than keys should wait

        command_line()
    finally:
        start_up.restore()


if __name__ == "__main__":
    main()
