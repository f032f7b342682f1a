"""Tells words that merely surround a call from words that take it back.

Prose around a call is common and mostly harmless. Where it says that the call is an example, a
guess or not wanted, the call is not run: asking again is cheap, an unwanted call is not.
"""

from __future__ import annotations

import re

_WORDS = (
    # English
    r"not|\w+n['’]?t|cannot|never|no|nope|none|nothing|without|instead|rather|unless|if|would|could"
    r"|might|may|maybe|perhaps|suppose|example|e\.?g|such as|sample|format|template|syntax|pattern"
    r"|wrong|mistake|ignore|cancel|undo|stop|wait|actually|oops|sorry|scratch|hypothetical\w*"
    r"|later|forbidden|dangerous|avoid|bad|incorrect|invalid|previously|earlier"
    # German, French, Spanish, Portuguese, Italian
    r"|nicht|kein\w*|nein|nie|beispiel\w*|falsch|statt|würde|wenn|vielleicht"
    r"|pas|jamais|exemple|faux|peut-être|nunca|ejemplo|quizás|não|exemplo|talvez|esempio|forse"
)
_SIGNS = r"[?？不没無无别勿]|如果|例如|比如|格式|错|例えば|もし|예를"
_DOUBT = re.compile(rf"\b(?:{_WORDS})\b|{_SIGNS}", re.IGNORECASE)


def is_doubted(prose: str) -> bool:
    """Whether ``prose`` beside a call gives reason to think that the call is not meant.

    It looks for words and signs such as ``not``, ``example``, ``would`` and ``?``; where none is
    there, nothing is promised.
    """
    return _DOUBT.search(prose) is not None
