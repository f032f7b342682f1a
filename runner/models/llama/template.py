"""Turns a conversation into prompt segments with the model's own chat template.

Content never passes through the template: it is rendered with a marker in the place of each
message, and the result is cut at the markers. So a template cannot interpret content, and the
tokeniser can read markup with special tokens and content without.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from jinja2 import TemplateError, meta
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

from runner.core.conversation import Message
from runner.core.errors import ConfigError, ModelError
from runner.models.llama.tool_text import Segment, ToolText, as_json

BUILT_IN = Path(__file__).parent / "templates"
# What a model writes when it begins to play the other side of the built-in template.
BUILT_IN_STOPS: dict[str, tuple[str, ...]] = {"plain": ("\n### ", "\n###\n")}

# What running somebody's template can raise.
_FAULTS = (
    TemplateError,
    TypeError,
    ValueError,
    LookupError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)
_MARKER = re.compile("\ue000(\\d+)\ue001")
_TRAINING_TAGS = re.compile(r"{%-?\s*(end)?generation\s*-?%}")


class ChatTemplate:
    """A compiled chat template.

    Parameters
    ----------
    source
        Jinja text, as Hugging Face tokenizers and GGUF files hold it.
    origin
        Where it came from: ``gguf``, the name of a built-in template, or a path.
    bos, eos
        Texts of the model's begin and end tokens; templates may print them.
    thinking
        Whether the model is to think before a turn, where the template can say so.

    Attributes
    ----------
    shows_tools
        Whether it presents tools that it is given.
    """

    def __init__(
        self,
        source: str,
        origin: str,
        *,
        bos: str = "",
        eos: str = "",
        stops: tuple[str, ...] = (),
        thinking: bool = False,
    ) -> None:
        self.origin = origin
        self.stops = stops
        # Templates know the switch under one of these names.
        switches = {"enable_thinking": thinking, "thinking": thinking}
        self._globals = {"bos_token": bos, "eos_token": eos, **switches}
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols]
        )
        environment.filters["tojson"] = as_json
        environment.globals["raise_exception"] = _raise
        environment.globals["strftime_now"] = datetime.now().strftime
        source = _TRAINING_TAGS.sub("", source)
        try:
            self._template = environment.from_string(source)
            names = meta.find_undeclared_variables(environment.parse(source))
        except TemplateError as error:
            raise ModelError(
                f"the chat template ({origin}) cannot be compiled: {error}",
                hint='set `template = "plain"` or a template file for this model in models.toml',
            ) from error
        self.shows_tools = "tools" in names

    def render(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = ()
    ) -> list[Segment]:
        """Segments of the prompt up to the point where the assistant writes.

        A system message that the template refuses or drops is put in front of the first user
        message; neighbours of one role are joined.

        Parameters
        ----------
        tools
            What the template is to present, as objects of type ``function``.

        Raises
        ------
        ModelError
            The template fails, drops or reorders a message, or does not show all tools as they are.
        """
        if tools and not self.shows_tools:
            raise ModelError(
                f"the chat template ({self.origin}) has no place for tools",
                hint="let the prompt present the tools, or set a template file that shows them",
            )
        joined = _join_neighbours(messages)
        problem = ""
        for attempt in (joined, _fold_system(joined)):
            try:
                return self._segments(attempt, tools)
            except _FAULTS as error:
                problem = f"{type(error).__name__}: {error}"
        raise ModelError(
            f"the chat template ({self.origin}) does not take this conversation: {problem}",
            hint='set `template = "plain"` or a template file for this model in models.toml',
        )

    def _segments(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]]
    ) -> list[Segment]:
        marked = [
            {"role": message.role, "content": f"\ue000{index}\ue001"}
            for index, message in enumerate(messages)
        ]
        tool_text = ToolText(tools)
        text = self._template.render(
            messages=marked,
            add_generation_prompt=True,
            tools=tool_text.marked or None,
            **self._globals,
        )
        segments: list[Segment] = []
        for piece, message in self._cut(text, messages):
            segments += [(piece, message)] if message else tool_text.cut(piece)
        tool_text.check_complete()
        return [segment for segment in segments if segment[0]]

    def _cut(self, text: str, messages: Sequence[Message]) -> list[Segment]:
        segments: list[Segment] = []
        order = []
        at = 0
        for match in _MARKER.finditer(text):
            segments.append((text[at : match.start()], None))
            order.append(int(match.group(1)))
            message = messages[order[-1]] if order[-1] < len(messages) else None
            segments.append((message.content if message else "", message))
            at = match.end()
        segments.append((text[at:], None))
        if order != list(range(len(messages))):
            raise LookupError(f"of {len(messages)} messages it shows these, in this order: {order}")
        return segments


def load_template(
    choice: str | None,
    gguf_template: str | None,
    folder: Path,
    *,
    bos: str,
    eos: str,
    thinking: bool = False,
) -> ChatTemplate:
    """The template to use: ``choice`` (a built-in name or a path), else the GGUF's, else plain.

    Parameters
    ----------
    folder
        Folder that a relative path in ``choice`` starts from.

    Raises
    ------
    ConfigError
        ``choice`` is neither a built-in template nor a readable file.
    """
    if choice is None and gguf_template:
        return ChatTemplate(gguf_template, "gguf", bos=bos, eos=eos, thinking=thinking)
    name = choice or "plain"
    if name in BUILT_IN_STOPS:
        source = (BUILT_IN / f"{name}.j2").read_text("utf-8")
        return ChatTemplate(source, name, bos=bos, eos=eos, stops=BUILT_IN_STOPS[name])
    path = folder / name
    try:
        source = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"template {name!r} is neither built in ({', '.join(BUILT_IN_STOPS)}) nor a text file: "
            f"{path}: {error}",
            hint="correct `template` in models.toml, or leave it out to use the model's own",
        ) from error
    return ChatTemplate(source, str(path), bos=bos, eos=eos, thinking=thinking)


def _join_neighbours(messages: Sequence[Message]) -> list[Message]:
    joined: list[Message] = []
    for message in messages:
        if joined and joined[-1].role == message.role:
            content = f"{joined[-1].content}\n\n{message.content}"
            joined[-1] = Message(message.role, content)
        else:
            joined.append(message)
    return joined


def _fold_system(messages: Sequence[Message]) -> list[Message]:
    if not messages or messages[0].role != "system":
        return list(messages)
    rest = [Message("user", messages[0].content), *messages[1:]]
    return _join_neighbours(rest)


def _raise(message: str) -> None:
    raise TemplateError(message)
