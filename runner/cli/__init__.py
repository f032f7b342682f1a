"""The command line. One file a command group; nothing here that a library user would miss."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of the ``runner`` command; see `runner.cli.output.ExitCode` for exit codes."""
    from runner.cli.app import app
    from runner.cli.output import ExitCode, fail
    from runner.core.errors import RunnerError

    try:
        app()
    except RunnerError as error:
        sys.exit(fail(error))
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output went away, as in `runner record show last | head`.
        sys.stderr.close()
        sys.exit(ExitCode.DONE)
