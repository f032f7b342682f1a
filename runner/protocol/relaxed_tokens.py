"""Cuts relaxed JSON into tokens for `grammars/relaxed_json.lark`.

The one hard question is where a string ends when its quotes are not escaped. A quote ends it only
where the structure goes on behind it: a closing bracket, or a comma and the next key or value.
Every other quote is content. All scanning is linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lark import Token

from runner.protocol.json_text import DEEPEST

SPACE = " \t\r\n\f\v\u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff\u200b\u200c\u200d\u2060" + (
    "".join(map(chr, range(0x2000, 0x200B)))
)
"""What may stand between tokens: blanks of all kinds, and characters of no width."""
QUOTES = {
    '"': '"', "'": "'", "`": "`", "＂": "＂", "“": "“”\"", "”": "“”\"", "„": "“”\"", "‘": "‘’'",
    "’": "‘’'", "«": "»", "「": "」",
}  # fmt: skip
"""Opening quote -> the characters that may close what it opens."""
_SIGNS = {
    "{": "LBRACE", "｛": "LBRACE", "}": "RBRACE", "｝": "RBRACE", "[": "LBRACKET", "［": "LBRACKET",
    "]": "RBRACKET", "］": "RBRACKET", ":": "COLON", "：": "COLON", ",": "COMMA", "，": "COMMA",
}  # fmt: skip
_GAP = re.compile(f"[{SPACE}]*")
# `#` with a blank behind it: `#cats` may be a value.
_COMMENT = re.compile(r"//[^\n\r]*|/\*.*?\*/|#(?![^\s#!])[^\n\r]*", re.DOTALL)
_SHORT_COMMENT = re.compile(
    r"//[^\n\r]{0,200}(?![^\n\r])|/\*.{0,200}?\*/|#(?![^\s#!])[^\n\r]{0,200}(?![^\n\r])", re.DOTALL
)
_KEY = re.compile(
    r'(?:"(?:[^"\\\n]|\\u[0-9a-fA-F]{4}|\\.){0,200}"'
    r"|'(?:[^'\\\n]|\\u[0-9a-fA-F]{4}|\\.){0,200}'"
    r'|[“”„][^“”"\n]{0,200}[“”"]|[‘’][^‘’\'\n]{0,200}[‘’\']|«[^»\n]{0,200}»|「[^」\n]{0,200}」'
    r"|＂[^＂\n]{0,200}＂|`[^`\n]{0,200}`"
    r"|(?:[^\W\d]|[$_]|\\u[0-9a-fA-F]{4})(?:[\w$.-]|\\u[0-9a-fA-F]{4}|\\_){0,200})"
    f"(?=[{SPACE}]{{0,50}}[:：])"
)
_WORD = re.compile(r"true|false|null|none|[+-]?nan|[+-]?infinity", re.IGNORECASE)
_NUMBER = re.compile(
    r"[+-]?(?:0[xX][0-9a-fA-F]+|(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
)
# One number with a comma in it, rather than two: `2.,0` and `1,.5`, with what is around them.
_SPLIT = re.compile(r"[0-9],\.[0-9]|.{0,2}[0-9]+\.,[0-9]", re.DOTALL)
# Plain words without quotes: nothing in them that could be structure, an escape or a comment.
_PLAIN = r"""(?:(?!//|/\*)[^\s"'“”„‘’«»「」＂`\\{}\[\],，:：;<>()…｛｝［］#])+"""
_BARE = re.compile(rf"{_PLAIN}(?:[ \t]+{_PLAIN})*")
_VALUE_START = re.compile(r"""(?i)["'“„‘«「＂`{\[｛［]|-?[0-9]|(?:true|false|null|none)\b""")


class RelaxedError(ValueError):
    """The text is not even relaxed JSON, or it could mean two things.

    ``at`` is where, ``doubt`` says that the structure is clear and a content is not.
    """

    def __init__(self, message: str, at: int, *, doubt: bool = False) -> None:
        super().__init__(message)
        self.at = at
        self.doubt = doubt


class Tokens:
    """The tokens of one value that begins at ``start``.

    Attributes
    ----------
    end
        Where the last token ended.
    comments
        What the comments between tokens cost, or None where there were none.
    missing_commas
        How many commas between keys on lines of their own are missing.
    """

    def __init__(self, text: str, start: int = 0) -> None:
        self.text = text
        self.end = start
        self.comments: int | None = None
        self.missing_commas = 0
        self._open: list[str] = []
        self._wants = "value"

    def __iter__(self) -> Iterator[Token]:
        while True:
            at = self._skip(self.end)
            if at == len(self.text):
                return
            kind, end = self._next(at)
            yield Token(kind, self.text[at:end], start_pos=at, end_pos=end)
            self.end = end
            if not self._open and self._wants == "more":
                return

    def skip_rest(self) -> int:
        """Where the blanks and comments behind the value end."""
        return self._skip(self.end)

    def _next(self, at: int) -> tuple[str, int]:
        sign = _SIGNS.get(self.text[at])
        if sign is not None:
            return self._sign(sign, at)
        if self._wants == "more" and self._key_on_new_line(self.end, at):
            self.missing_commas += 1
            self._wants = "key"
        if self._wants == "key":
            match = _KEY.match(self.text, at)
            if match is None:
                raise RelaxedError("a key was expected", at)
            self._wants = "colon"
            return "KEY", match.end()
        if self._wants != "value":
            raise RelaxedError("a comma or a closing bracket was expected", at)
        self._wants = "more"
        return self._value(at)

    def _sign(self, sign: str, at: int) -> tuple[str, int]:
        if sign in ("LBRACE", "LBRACKET"):
            if self._wants != "value":
                raise RelaxedError("a comma or a key was expected", at)
            self._open.append("{" if sign == "LBRACE" else "[")
            if len(self._open) > DEEPEST:
                raise RelaxedError("it is nested too deeply", at)
            self._wants = "key" if sign == "LBRACE" else "value"
        elif sign in ("RBRACE", "RBRACKET"):
            if not self._open:
                raise RelaxedError("a value was expected", at)
            opened = self._open.pop()
            if (sign == "RBRACE") != (opened == "{"):
                closer = "}" if opened == "{" else "]"
                raise RelaxedError(f"{closer} was expected, found {self.text[at]}", at)
            self._wants = "more"
        elif sign == "COLON":
            self._wants = "value"
        else:
            self._wants = "key" if self._open and self._open[-1] == "{" else "value"
        return sign, at + 1

    def _value(self, at: int) -> tuple[str, int]:
        text = self.text
        if text.startswith(('"""', "'''"), at):
            return "STRING", self._triple_end(at)
        if text[at] in QUOTES:
            if self._open and _KEY.match(text, at):
                raise RelaxedError("a value was expected, found the next key", at)
            return "STRING", self._string_end(at)
        for kind, pattern in (("WORD", _WORD), ("NUMBER", _NUMBER), ("BARE", _BARE)):
            match = pattern.match(text, at)
            if match is not None and self._ends(match.end()):
                if kind == "NUMBER" and _SPLIT.match(text, max(0, at - 2), match.end() + 2):
                    raise RelaxedError("there is a comma inside the number", at, doubt=True)
                return kind, match.end()
        raise RelaxedError("a value was expected", at)

    def _ends(self, at: int) -> bool:
        """Whether a word or number may end here."""
        end, at = at, self._skip_blanks(at)
        if at == len(self.text) or self.text[at] in ",，}｝]］":
            return True
        return (at > end and self._comment_at(at)) or self._key_on_new_line(end, at)

    def _string_end(self, at: int) -> int:
        closing = QUOTES[self.text[at]]
        stops = re.compile(rf"\\|[{re.escape(closing)}]")
        now = at + 1
        while match := stops.search(self.text, now):
            if match.group() == "\\":
                now = match.end() + 1
            elif self._closes(match.end()):
                return match.end()
            else:
                now = match.end()
        raise RelaxedError("the string is not closed", at)

    def _triple_end(self, at: int) -> int:
        quotes = self.text[at : at + 3]
        now = self.text.find(quotes, at + 3)
        while now >= 0 and not self._closes(now + 3):
            now = self.text.find(quotes, now + 1)
        if now < 0:
            raise RelaxedError("the triple-quoted text is not closed", at)
        if quotes in self.text[at + 3 : now]:
            raise RelaxedError("there are triple quotes inside the text", at, doubt=True)
        return now + 3

    def _closes(self, behind: int) -> bool:
        """Whether the structure goes on behind a quote, so that the quote ends its string."""
        text = self.text
        at = self._look(behind)
        if at == len(text):
            # A comment that swallows the rest may be part of the string.
            return not self._open or self._skip_blanks(behind) == at
        sign = _SIGNS.get(text[at])
        if sign in ("RBRACE", "RBRACKET"):
            if not self._open or (sign == "RBRACE") != (self._open[-1] == "{"):
                return False
            after = self._look(at + 1)
            return after == len(text) or text[after] in ",，}｝]］)`;" or "\n" in text[at:after]
        if sign == "COMMA":
            after = self._look(at + 1)
            if after == len(text) or text[after] in "}｝]］":
                return True
            pattern = _KEY if self._open and self._open[-1] == "{" else _VALUE_START
            return pattern.match(text, after) is not None
        return self._key_on_new_line(behind, at)

    def _key_on_new_line(self, end: int, at: int) -> bool:
        in_object = self._open[-1:] == ["{"] and "\n" in self.text[end:at]
        return in_object and _KEY.match(self.text, at) is not None

    def _comment_at(self, at: int) -> bool:
        return _SHORT_COMMENT.match(self.text, at) is not None

    def _look(self, at: int) -> int:
        """Behind blanks and a few short comments, without noting them."""
        for _ in range(5):
            at = self._skip_blanks(at)
            match = _SHORT_COMMENT.match(self.text, at)
            if match is None:
                break
            at = match.end()
        return at

    def _skip_blanks(self, at: int) -> int:
        match = _GAP.match(self.text, at)
        return match.end() if match else at

    def _skip(self, at: int) -> int:
        """Behind blanks and comments."""
        while True:
            at = self._skip_blanks(at)
            match = _COMMENT.match(self.text, at)
            if match is None:
                return at
            if match.group().count('"') % 2:
                raise RelaxedError("there is a quote in a comment", at, doubt=True)
            is_json = self._open and re.search(r"[\"{}\[\]]", match.group())
            self.comments = max(self.comments or 0, 1 if is_json else 0)
            at = match.end()
