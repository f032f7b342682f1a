"""Rules for JSON strings: by length, and by pattern."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from runner.protocol.characters import inverse, json_unit
from runner.protocol.literals import dump, literal
from runner.protocol.pattern import (
    Anchor,
    Choice,
    Node,
    PatternError,
    Repeat,
    Series,
    Unit,
    parse_pattern,
)

LONGEST = 1900
"""Most characters where a schema sets no bound, so that no text runs for ever."""
LONGEST_BOUND = 190_000
"""Most characters that a bound of a schema can ask for."""
_ATOM = re.compile(r'[a-z][a-z0-9-]*|"(?:\\.|[^"\\])*"|\[(?:\\.|[^\]\\])*\]')
_CHUNK = 100
_NEAR = 16
_SUFFIX = 64
_INNER = 100
Add = Callable[[str], str]


def text_of_length(least: int, most: int | None, add: Add) -> str | None:
    """A GBNF expression for a string by its number of characters; None where none fits."""
    if most is not None and least > most:
        return None
    least = min(least, LONGEST_BOUND)
    most = max(LONGEST, least) if most is None else min(most, LONGEST_BOUND)
    if (least, most) == (0, LONGEST):
        return "string"
    return quoted(_times("char", least, most, add))


def text_of_pattern(
    pattern: str, least: int, most: int | None, add: Add
) -> tuple[str | None, list[str]]:
    """A GBNF expression for a string by its pattern, and what of the lengths it does not hold.

    Raises
    ------
    PatternError
        The pattern is outside what a grammar can hold.
    """
    bodies = []
    missed: set[str] = set()
    for series in parse_pattern(pattern).options:
        begin, parts, end = _ends(series)
        if begin and end:
            fitted = _fitted(parts, least, most)
            if fitted is None:
                continue
            parts = fitted
            low, high = _length(parts)
        else:
            low, high = 0, None
        if low < least:
            missed.add("minLength")
        if most is not None and (high is None or high > most):
            missed.add("maxLength")
        bodies.append(_anchored(begin, parts, end, add))
    return (quoted(_either(bodies)) if bodies else None), sorted(missed)


def quoted(body: str) -> str:
    return f'"\\"" {body} "\\""' if body else literal('""')


def _ends(series: Series) -> tuple[bool, tuple[Node, ...], bool]:
    """The parts without anchors, and at which ends there was one.

    Where there is none, what may be repeated is there as seldom as it may.
    """
    parts = list(series.parts)
    begin = bool(parts) and parts[0] == Anchor("^")
    parts = parts[1:] if begin else parts
    end = bool(parts) and parts[-1] == Anchor("$")
    parts = parts[:-1] if end else parts
    for at, anchored in ((0, begin), (-1, end)):
        while not anchored and parts:
            part = parts[at]
            if not isinstance(part, Repeat):
                break
            if part.least:
                once = part.inner if part.least == 1 else Repeat(part.inner, part.least, part.least)
                parts[at] = once
                break
            parts.pop(at)
    return begin, tuple(parts), end


def _anchored(begin: bool, parts: Sequence[Node], end: bool, add: Add) -> str:
    """The whole text between the quotes, with any characters at an open end.

    That is left alone where it would make a grammar with many ways to read one text.
    """
    if begin and end:
        return _series(parts, add)
    low, high = _length(parts)
    if not parts:
        return _times("char", 0, LONGEST, add)
    if begin and high is not None and high - low <= _NEAR:
        return f"{_series(parts, add)} {_times('char', 0, LONGEST, add)}".strip()
    if end and high is not None and high <= _SUFFIX:
        return f"{_times('char', 0, LONGEST, add)} {_series(parts, add)}".strip()
    if not begin and not end and len(parts) == 1 and isinstance(parts[0], Unit):
        points = parts[0].points
        before = json_unit(inverse(points))
        half = LONGEST // 2
        first = f"{_times(before, 0, half, add)} " if before else ""
        return f"{first}{_unit(parts[0])} {_times('char', 0, half, add)}"
    raise PatternError("the pattern is open at an end")


def _fitted(parts: Sequence[Node], least: int, most: int | None) -> tuple[Node, ...] | None:
    """Parts with their repetitions bounded; by the lengths too, where only one of them varies.

    None where no text has such a length.
    """
    varying = [at for at, part in enumerate(parts) if len(set(_length([part]))) > 1]
    fitted = list(parts)
    alone = fitted[varying[0]] if len(varying) == 1 else None
    if isinstance(alone, Repeat) and isinstance(alone.inner, Unit):
        fixed = _length(parts[: varying[0]])[0] + _length(parts[varying[0] + 1 :])[0]
        low = max(alone.least, least - fixed)
        high = LONGEST if alone.most is None else alone.most
        high = high if most is None else min(high, most - fixed)
        if low > high:
            return None
        fitted[varying[0]] = Repeat(alone.inner, low, high)
        return tuple(fitted)
    open_parts = sum(1 for part in parts if isinstance(part, Repeat) and part.most is None)
    bound = LONGEST if open_parts < 2 else LONGEST // 4
    bound = bound if most is None else min(bound, most)
    for at, part in enumerate(parts):
        if isinstance(part, Repeat) and part.most is None:
            fitted[at] = Repeat(part.inner, part.least, max(part.least, bound))
    return tuple(fitted)


def _length(parts: Sequence[Node]) -> tuple[int, int | None]:
    """Fewest and most characters; None without a bound."""
    low, high = 0, 0
    endless = False
    for part in parts:
        if isinstance(part, Unit):
            least: int = 1
            most: int | None = 1
        elif isinstance(part, Repeat):
            least, most = _length([part.inner])
            least *= part.least
            most = None if most is None or part.most is None else most * part.most
        elif isinstance(part, Choice):
            lengths = [_length(option.parts) for option in part.options]
            least = min(length[0] for length in lengths)
            tops = [length[1] for length in lengths]
            most = None if None in tops else max(top for top in tops if top is not None)
        else:
            raise PatternError("an anchor stands inside the pattern")
        low += least
        endless = endless or most is None
        high += most or 0
    return low, None if endless else high


def _series(parts: Sequence[Node], add: Add) -> str:
    texts: list[str] = []
    fixed = ""
    for part in [*parts, None]:
        if isinstance(part, Unit) and len(part.points) == 1 and len(set(part.points[0])) == 1:
            fixed += chr(part.points[0][0])
            continue
        if fixed:
            texts.append(literal(dump(fixed)[1:-1]))
            fixed = ""
        if part is not None:
            texts.append(_node(part, add))
    return " ".join(text for text in texts if text)


def _node(node: Node, add: Add) -> str:
    if isinstance(node, Unit):
        return _unit(node)
    if isinstance(node, Choice):
        return _either([_series(option.parts, add) for option in node.options])
    if isinstance(node, Repeat):
        return _repeat(node, add)
    raise PatternError("an anchor stands inside the pattern")


def _repeat(node: Repeat, add: Add) -> str:
    if isinstance(node.inner, Unit):
        most = LONGEST if node.most is None else node.most
        return _times(_unit(node.inner), node.least, max(most, node.least), add)
    low, high = _length([node.inner])
    most = LONGEST if node.most is None else node.most
    if high is not None and high * most > LONGEST_BOUND:
        raise PatternError("the repetitions multiply to a very long text")
    if low == 0 and most > 1:
        raise PatternError("something that may be empty is repeated")
    inner = node.inner
    if high is None and most > 1:
        if most > _NEAR:
            raise PatternError("repetitions without a bound stand inside each other")
        inner = _bounded(inner)
    return _times(_node(inner, add), node.least, most, add)


def _bounded(choice: Choice) -> Choice:
    """Repetitions inside a repetition are kept short, or the product grows beyond all bounds."""
    options = []
    for option in choice.options:
        parts = []
        for part in option.parts:
            if isinstance(part, Repeat) and part.most is None:
                part = Repeat(part.inner, part.least, max(part.least, _INNER))
            elif isinstance(part, Choice):
                part = _bounded(part)
            parts.append(part)
        options.append(Series(tuple(parts)))
    return Choice(tuple(options))


def _unit(unit: Unit) -> str:
    text = json_unit(unit.points)
    if text is None:
        raise PatternError("a class has no characters")
    return text


def _either(texts: Sequence[str]) -> str:
    """One of several texts; one that is empty makes the others optional."""
    some = list(dict.fromkeys(text for text in texts if text))
    if len(some) < 2 and len(some) == len(texts):
        return some[0] if some else ""
    optional = "?" if "" in texts else ""
    if len(some) == 1 and not optional:
        return some[0]
    return f"( {' | '.join(some)} ){optional}" if some else ""


def _times(text: str, least: int, most: int, add: Add) -> str:
    """A repetition; a long one is made of chunks, because engines bound how long one may be."""
    if most == 0:
        return ""
    if (least, most) == (1, 1):
        return text
    if most > 1 and not _ATOM.fullmatch(text):
        text = add(text)
    if (least, most) == (0, 1):
        return f"{text}?" if _ATOM.fullmatch(text) else f"( {text} )?"
    if most <= LONGEST:
        return f"{text}{{{least}}}" if least == most else f"{text}{{{least},{most}}}"
    if most > LONGEST_BOUND:
        raise PatternError(f"{most} repetitions are too many")
    chunk = add(f"{text}{{{_CHUNK}}}")
    first, rest = divmod(least, _CHUNK)
    more = max(0, (most - least - _CHUNK + 1) // _CHUNK)
    spare = most - least - more * _CHUNK
    chunks = _times(chunk, first, first + more, add)
    return f"{chunks} {_times(text, rest, rest + spare, add)}".strip()
