"""The command line. One file a command group; nothing here that a library user would miss."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Entry point of the ``runner`` command; see `runner.cli.output.ExitCode` for exit codes."""
    from runner.cli.app import app
    from runner.cli.output import ExitCode, fail
    from runner.core.errors import ConfigError, RunnerError

    _mend_streams()
    try:
        app()
    except RunnerError as error:
        sys.exit(fail(error))
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)
    except OSError as error:
        # Not one of ours: the current folder was deleted, stdout is a full disk, and the like.
        sys.exit(fail(ConfigError(f"the system refused: {error}")))


def _mend_streams() -> None:
    """Make the standard streams usable where they are closed or cannot encode a character."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115, PTH123 -- until the end
        elif mode == "w" and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
