"""One small tree of errors. Each says what is wrong, and ``hint`` says what to do."""

from __future__ import annotations

from enum import Enum


class RunnerError(Exception):
    """Base of every error this package raises on purpose.

    Parameters
    ----------
    message
        What was expected and what was found; names the file, key, tool or parameter.
    hint
        What the reader can do about it; may be empty.
    """

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class ConfigError(RunnerError):
    """Wrong use or configuration: an unknown name, key, option or value."""


class ModelError(RunnerError):
    """A model cannot be loaded, or failed while it was running."""


class ModelFileError(ModelError):
    """The model file is missing, cut short, or not what it should be."""


class GrammarError(ModelError):
    """The engine refused a grammar."""


class ContextOverflowError(ModelError):
    """The prompt does not fit into the context window.

    ``needed`` and ``window`` are in tokens; ``needed`` includes the room for the reply.
    """

    def __init__(self, needed: int, window: int, *, hint: str = "") -> None:
        super().__init__(
            f"the prompt needs {needed} tokens (with room for the reply), "
            f"but the context window has {window}",
            hint=hint or "shorten the task, offer fewer tools, or raise `context` in models.toml",
        )
        self.needed = needed
        self.window = window


class WorkerError(ModelError):
    """The worker process of a model died, hung, or reported a fault.

    ``log`` holds the last lines that the native code wrote.
    """

    def __init__(self, message: str, *, hint: str = "", log: tuple[str, ...] = ()) -> None:
        super().__init__(message, hint=hint)
        self.log = log


class ProtocolError(RunnerError):
    """A model's turn is neither calls nor an answer. ``str(error)`` is the message for the model.

    Parameters
    ----------
    kind
        One of ``empty``, ``no_marker``, ``mixed``, ``invented``, ``truncated``, ``malformed``,
        ``unknown_tool``, ``bad_params``, ``too_many``, ``too_large``, ``repaired``.
    tool
        The tool of the faulty call, where it is known.
    """

    def __init__(self, message: str, *, kind: str, tool: str | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.tool = tool


class ErrorKind(str, Enum):
    """What can go wrong inside a tool, as the model is told."""

    INVALID_INPUT = "invalid_input"
    NOT_FOUND = "not_found"
    DENIED = "denied"
    TOO_LARGE = "too_large"
    LIMIT = "limit"
    TIMEOUT = "timeout"
    FAILED = "failed"


class ToolError(RunnerError):
    """A tool could not do what it was asked; becomes an observation, never ends the run."""

    def __init__(self, message: str, *, kind: ErrorKind = ErrorKind.FAILED, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.kind = kind
