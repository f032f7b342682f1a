"""Makes a tool from a typed Python function."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, overload

from pydantic import BaseModel, ValidationError
from pydantic_core import to_jsonable_python

from runner.core.contract import Demonstration, Effect, Limits, ToolContract
from runner.core.errors import ConfigError, ErrorKind, ToolError
from runner.tools.signature import Signature, problems, without_partial

_USUAL_ERRORS = (ErrorKind.INVALID_INPUT, ErrorKind.FAILED)


class FunctionTool:
    """A Python function that fulfils a tool contract; made by `tool`.

    Attributes
    ----------
    contract
        What the model is told and what calls are checked against.
    function
        The plain function.
    """

    def __init__(
        self, function: Callable[..., Any], contract: ToolContract, signature: Signature
    ) -> None:
        self.function = function
        self.contract = contract
        self.__doc__ = function.__doc__
        self._signature = signature

    def __repr__(self) -> str:
        return f"<FunctionTool {self.contract.name}>"

    def __call__(self, params: dict[str, Any]) -> str:
        """Check ``params``, run the function and return its result as text.

        A string is returned as it is, None as "done", JSON-like values as compact JSON and
        everything else through ``str``.

        Raises
        ------
        ToolError
            The params are not valid (``invalid_input``) or the function failed (``failed``). A
            ToolError that the function raises passes through.
        """
        try:
            return _as_text(self.function(**self._signature.arguments(params)))
        except ToolError:
            raise
        # The user's code may raise anything, and a failing tool must never end a run.
        except Exception as error:
            detail = f": {error}" if str(error) else ""
            raise ToolError(f"{type(error).__name__}{detail}", kind=ErrorKind.FAILED) from error


@overload
def tool(function: Callable[..., Any], /) -> FunctionTool: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    version: str = "1.0",
    examples: Sequence[Mapping[str, Any]] = (),
    demonstration: Demonstration | None = None,
    result: str = "",
    errors: Sequence[ErrorKind] = _USUAL_ERRORS,
    effect: Effect = Effect.READ,
    max_calls: int | None = None,
    max_result_chars: int = 4000,
) -> Callable[[Callable[..., Any]], FunctionTool]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    version: str = "1.0",
    examples: Sequence[Mapping[str, Any]] = (),
    demonstration: Demonstration | None = None,
    result: str = "",
    errors: Sequence[ErrorKind] = _USUAL_ERRORS,
    effect: Effect = Effect.READ,
    max_calls: int | None = None,
    max_result_chars: int = 4000,
) -> FunctionTool | Callable[[Callable[..., Any]], FunctionTool]:
    """Make a tool from a function: ``@tool`` or ``@tool(effect=Effect.WRITE, ...)``.

    Parameters and their types come from the signature; ``Annotated[int, Field(description="...",
    ge=1)]`` adds a description and bounds. A parameter with a default, or one that may be None, can
    be left out of a call.

    Parameters
    ----------
    name
        Default: the function's name.
    description
        Default: the first paragraph of the docstring.
    examples
        Inputs that are shown to the model; each must be valid.
    demonstration
        A whole use of the tool, shown to the model; None makes one up from the first example.
    max_calls
        Calls a run may make; None for no bound but the run's own.
    max_result_chars
        Longer results are cut in the middle.

    Raises
    ------
    ConfigError
        The function cannot be a tool: a parameter without annotation, ``*args``, no docstring, a
        type that has no JSON form, an example that is not valid.
    """

    def make(function: Callable[..., Any]) -> FunctionTool:
        plain = without_partial(function)
        named = name or str(getattr(plain, "__name__", type(plain).__name__))
        signature = Signature(function, named)
        try:
            contract = ToolContract(
                name=named,
                description=description or _summary(plain, named),
                parameters=signature.schema,
                version=version,
                examples=tuple(dict(example) for example in examples),
                demonstration=demonstration,
                result=result,
                errors=tuple(errors),
                effect=effect,
                limits=Limits(max_calls=max_calls, max_result_chars=max_result_chars),
            )
        except ValidationError as error:
            raise ConfigError(f"tool {named!r}: {problems(error)}") from error
        shown = (demonstration.params,) if demonstration else ()
        for example in (*contract.examples, *shown):
            try:
                signature.arguments(example)
            except ToolError as error:
                raise ConfigError(
                    f"the example {example!r} of tool {named!r} is not valid: {error}",
                    hint="correct the example, or the type of the parameter",
                ) from error
        return FunctionTool(function, contract, signature)

    return make if function is None else make(function)


def _summary(function: Callable[..., Any], named: str) -> str:
    """The first paragraph of the docstring, on one line."""
    text = (inspect.getdoc(function) or "") if function.__doc__ else ""
    summary = " ".join(text.strip().split("\n\n")[0].split())
    if not summary:
        raise ConfigError(
            f"tool {named!r} has no docstring, and the model must be told what the tool does",
            hint="write one sentence as its docstring, or give description=",
        )
    return summary


def _as_text(result: Any) -> str:
    if isinstance(result, Enum):
        result = result.value
    if isinstance(result, str):
        return result
    if result is None:
        return "done"
    if isinstance(result, (BaseModel, Mapping, list, tuple, set, frozenset, int, float)):
        data = to_jsonable_python(result, fallback=str)
        return json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return str(result)
