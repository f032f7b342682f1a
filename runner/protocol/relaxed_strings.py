"""What a string of relaxed JSON says: escapes, backslashes and quotes that were not escaped."""

from __future__ import annotations

import json
import re

from runner.protocol.relaxed_tokens import QUOTES, RelaxedError

Notes = dict[str, int]
"""What was understood -> what it costs; see `runner.core.conversation.Receipt`."""

UNESCAPED = "a quote inside the text is not escaped"
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|\r\n|.|$)", re.DOTALL)
_JSON = frozenset('"\\/bfnrt')
_HARMLESS = frozenset("'_`")
_DRIVE = re.compile(r"(?<![A-Za-z])[A-Za-z]:\\[^\\]")
_DOTTED = re.compile(r"\.{1,2}\\[^\\]")
# \\host\share: some sign besides small letters tells it from \\alpha\gamma.
_SHARE = re.compile(r"\\\\(?=.*[A-Z\d_.$-])[A-Za-z\d][\w.-]+(?:\\[\w $.,()&~+-]+)+\\?")
# A letter with a backslash, where a regular expression has one: not in the middle of words.
_CLASS = re.compile(
    r"\\[dDwWsSB](?:[+*?{\]|$]|\\[^\"']|\)[+*?])|(?:^|[\^(|\[\\+*?}])\\?\\[dDwWsSB](?![A-Za-z])"
)
_LATEX = re.compile(r"\\[A-Za-z]+\{|\$[^$\n]{0,200}\\[A-Za-z]{2,}[^$\n]{0,200}\$")
_HALF = re.compile(r"\\(?:u|x[0-9a-fA-F]{2}|U[0-9a-fA-F]{8})")
_BEHIND_INCHES = re.compile(r"""(?!\d)\s*[^\s,，:：}\]｝］;+'"\\]""")
_MOST_ALONE = 20
_STRAIGHT = "\"'`＂"
_OPENERS = "“„‘«「"
_KEY_INSIDE = re.compile(r"""[,，]\s*(["'])[^"']{1,60}\1\s*[:：]""")
_OPENS_BEHIND = " \t\r\n([{<=:,;>/|+-"
_CONTROL = re.compile(r"[\x00-\x1f]")


def decode_key(raw: str) -> tuple[str, Notes]:
    """The key that ``raw`` spells, with its quotes or without."""
    notes: Notes = {}
    if raw[0] not in QUOTES:
        notes["read a key without quotes"] = 0
        return _unescaped(raw, '"', notes, 0), notes
    if raw[0] != '"':
        notes["read other quotes as double quotes"] = 0
    return _unescaped(raw[1:-1], raw[0], notes, 0), notes


def decode_string(raw: str, at: int) -> tuple[str, Notes]:
    """The text that ``raw``, a string with its quotes, stands for.

    Raises
    ------
    RelaxedError
        It could mean two things.
    """
    notes: Notes = {}
    triple = raw[:3]
    if triple in ('"""', "'''") and len(raw) >= 6 and raw.endswith(triple):
        notes["read a triple-quoted text"] = 1
        inner = raw[3:-3]
        if "\\" in inner:
            return _unescaped(inner, "", notes, at), notes
        return inner, notes
    opening, inner = raw[0], raw[1:-1]
    if opening != '"':
        notes["read other quotes as double quotes"] = 0
    if _unescaped_quotes(inner, opening):
        if not _is_balanced(inner, opening):
            raise RelaxedError(UNESCAPED, at, doubt=True)
        notes["kept quotes inside a string, which were not escaped"] = 1
    return _unescaped(inner, opening, notes, at), notes


def _unescaped_quotes(inner: str, opening: str) -> list[int]:
    """Where quotes of the string's own kind stand in it without a backslash."""
    own = QUOTES[opening] + opening
    hidden = _ESCAPE.sub(lambda match: " " * len(match.group()), inner)
    return [i for i, character in enumerate(hidden) if character in own]


def _is_balanced(inner: str, opening: str) -> bool:
    """Whether the quotes in the string are quotations with a beginning and an end.

    If not, the quote that closed the string may have been the end of one, or a quote may be
    missing. An apostrophe, a sign for inches, and the end of what began with „ wait for nothing.
    """
    quotes = _unescaped_quotes(inner, opening)
    if quotes[0] == 0 and quotes[-1] == len(inner) - 1:
        return False
    if _KEY_INSIDE.search(inner) and inner.lstrip()[:1] not in ("{", "["):
        return False
    ends = QUOTES[opening].strip("\"'") if opening not in _STRAIGHT else ""
    waiting: list[str] = []
    alone = 0
    for i in quotes:
        quote, before, behind = inner[i], inner[i - 1 : i], inner[i + 1 : i + 2]
        if before.isalnum() and behind.isalnum() and quote in "'’" and opening in "'‘’":
            continue
        if quote in _OPENERS:
            opens = quote != "“" or "„" not in waiting
        elif quote in ends:
            opens = False
        else:
            opens = not before or before in _OPENS_BEHIND
            opens = opens and not (behind.isspace() or behind in ",:}]")
        if opens:
            waiting.append(quote)
        elif waiting:
            waiting.pop()
        elif alone == _MOST_ALONE or not _stands_alone(inner, i):
            return False
        else:
            alone += 1
    return not waiting


def _stands_alone(inner: str, i: int) -> bool:
    """Whether the quote at ``i`` ends what began with „, or is a sign for inches or feet."""
    if inner[i] not in "\"'":
        return False
    if inner[i] == '"' and inner.rfind("„", 0, i) > max(inner.rfind(end, 0, i) for end in '“”"'):
        return True
    if f"\\{inner[i]}" in inner:
        return False
    return inner[i - 1 : i].isdigit() and _BEHIND_INCHES.match(inner, i + 1) is not None


def _unescaped(inner: str, opening: str, notes: Notes, at: int) -> str:
    """``inner`` without its escapes."""
    kinds = {match.group(1) for match in _ESCAPE.finditer(inner)}
    if _CONTROL.search(inner):
        notes["took line breaks and tabs in a string as they stand"] = 0
    if "" in kinds:
        raise RelaxedError("a backslash ends the text", at, doubt=True)
    is_path = _DRIVE.match(inner) or _DOTTED.match(inner) or _SHARE.fullmatch(inner)
    if kinds & {"u", "x", "U"} and not is_path:
        for match in _ESCAPE.finditer(inner):
            if len(match.group()) == 2 and _HALF.match(inner, match.start()):
                raise RelaxedError(f"{match.group()} is half an escape", at, doubt=True)
    wrong = {kind for kind in kinds if kind not in _JSON and len(kind) != 5 and kind != opening}
    line_ends = wrong & {"\n", "\r", "\r\n"}
    wrong -= line_ends
    if line_ends and opening != "'":
        raise RelaxedError("a backslash stands at the end of a line", at, doubt=True)
    if line_ends:
        notes["joined lines at a backslash"] = 1
    odd = wrong - _HARMLESS
    if wrong and not odd and kinds & {"b", "f"}:
        raise RelaxedError("some of its backslashes are no escapes", at, doubt=True)
    if not odd:
        if wrong:
            notes["took needless backslashes away"] = 1
        return _standard(inner, at)
    if line_ends or not any(kind.isalpha() for kind in odd) or wrong & _HARMLESS:
        raise RelaxedError(f"\\{min(odd)} is no escape; double the backslash", at, doubt=True)
    if not (is_path or _DRIVE.search(inner) or _CLASS.search(inner) or _LATEX.search(inner)):
        raise RelaxedError(f"\\{min(odd)} is no escape; double the backslash", at, doubt=True)
    return _literal(inner, kinds, notes, at, is_path=is_path is not None)


def _standard(inner: str, at: int) -> str:
    """Escapes as in JSON; a backslash before an apostrophe or underscore falls away."""

    def as_json(match: re.Match[str]) -> str:
        kind = match.group(1)
        if kind in ("\n", "\r", "\r\n"):
            return ""
        return match.group() if kind in _JSON or len(kind) == 5 else kind

    body = re.sub(r'(?<!\\)((?:\\\\)*)"', r'\1\\"', _ESCAPE.sub(as_json, inner))
    try:
        text = json.loads(f'"{body}"', strict=False)
    except ValueError as error:
        raise RelaxedError("its escapes cannot be read", at, doubt=True) from error
    assert isinstance(text, str)
    return text


def _literal(inner: str, kinds: set[str], notes: Notes, at: int, *, is_path: bool) -> str:
    """Every backslash as it stands, since one of them is no escape; only quotes were escaped."""
    doubtful = kinds & {"\\", "/", "n", "r", "t"} | {kind for kind in kinds if len(kind) == 5}
    if is_path:
        doubtful -= {"n", "r", "t"}
        if "\\" in kinds and inner.startswith("\\\\") and "\\\\" not in inner[2:]:
            doubtful -= {"\\"}
    if doubtful:
        raise RelaxedError(
            f"some backslashes are escapes and \\{min(kinds - _JSON)} is none: double them",
            at,
            doubt=True,
        )
    notes["took backslashes as they stand, since one of them is no escape"] = 1
    return inner.replace('\\"', '"')
