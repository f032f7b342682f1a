"""What a text without quotes may say: plain words, never a placeholder, code or a misspelt word."""

from __future__ import annotations

import re

_LONGEST = 200
_KEYWORDS = ("true", "false", "null", "none")
_ONE_WORD = re.compile(r"[\w~/@][\w./~@-]*|\.{1,2}/[\w./-]*")
_WORDS = re.compile(r"[^\W_][\w-]*(?: +[^\W_][\w-]*)*[.!?。！？]?")
_DATE = re.compile(r"\d{4}([-/.])\d{1,2}\1\d{1,2}|\d{1,2}([-/.])\d{1,2}\2\d{2,4}|\d+(?:\.\d+){2,3}")
_NOTHING = re.compile(
    r"(?i)(?:none?|null|nil|nan|inf|n/?a|not applicable|undefined|unknown|empty|placeholder|tbd"
    r"|todo|to be (?:determined|done|filled(?: in)?)"
    r"|(?:no|none) (?:input|params?|parameters|arguments?)(?: (?:is |are )?(?:needed|required))?)"
)
_SLOT = re.compile(r"<[^<>\n]+>|\{\{.*\}\}|\$\w+|\$?\{[^{}\n]*\}|\[[^\[\]\n]*\]")
_STAGES = "steps?|actions?|observations?|calls?|results?|outputs?|responses?"
# What stands for a result that is not there yet: `result.path`, `the file from step 1`.
_REFERENCE = re.compile(
    rf"(?i)\$?(?:{_STAGES}|obs|prev(?:ious)?|last)_?\d*(?:\.\w+|\[\w+\])+"
    rf"|.*\b(?:{_STAGES})[ _]?#?\d+\b.*"
    rf"|.*\b(?:previous|prior|above|earlier|last)[ _](?:tool|search|{_STAGES})\b.*"
    r"|.*\b(?:result|output|response)s? (?:of|from) (?:the )?(?:step|tool|call|action|search)\b.*"
    r"|.*\bfrom (?:the )?(?:observation|previous|above)\b.*",
    re.DOTALL,
)


def is_placeholder(text: str) -> bool:
    """Whether a text stands for a value that it does not give."""
    text = text.strip()
    plain = text.strip(" ()*_.!-")
    return bool(
        not plain
        or "..." in text
        or "…" in text
        or _NOTHING.fullmatch(plain)
        or _SLOT.fullmatch(text)
        or _REFERENCE.fullmatch(text)
    )


def is_plain(text: str) -> bool:
    """Whether a text without quotes is plain words, one name or path, or a date."""
    if _DATE.fullmatch(text):
        return True
    if len(text) > _LONGEST or not any(map(str.isalpha, text)) or is_placeholder(text):
        return False
    first, *more = text.casefold().split()
    if more:
        return first not in _KEYWORDS and _WORDS.fullmatch(text) is not None
    return _ONE_WORD.fullmatch(text) is not None and not any(
        _is_part(first, word) or _is_one_edit_away(first, word) for word in _KEYWORDS
    )


def _is_part(text: str, word: str) -> bool:
    """Whether ``word`` begins or ends with ``text``."""
    return word.startswith(text) or word.endswith(text)


def _is_one_edit_away(text: str, word: str) -> bool:
    """Whether a letter too many, too few or wrong, or two in the wrong order make ``word``."""
    if abs(len(text) - len(word)) > 1 or text == word:
        return False
    i = next((i for i, (a, b) in enumerate(zip(text, word, strict=False)) if a != b), len(word))
    i = min(i, len(text))
    return (
        text[i + 1 :] == word[i:]
        or text[i:] == word[i + 1 :]
        or text[i + 1 :] == word[i + 1 :]
        or (text[i : i + 2] == word[i : i + 2][::-1] and text[i + 2 :] == word[i + 2 :])
    )
