"""Any key but these: what may follow the named properties of an object that takes others."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from runner.protocol.characters import class_point, escape_unit, escapes_but
from runner.protocol.literals import literal

# Beyond, a rule takes over: engines bound how deep parentheses go.
_NESTED = 16
_Tree = dict[str, "_Tree"]
_END = ""


def other_key(names: Iterable[str], add: Callable[[str], str]) -> str:
    """A GBNF expression for a key, with its colon, that is none of ``names``.

    Parameters
    ----------
    names
        The keys that are taken.
    add
        Makes a rule of a body and returns its name.
    """
    tree: _Tree = {}
    for name in names:
        node = tree
        for character in name:
            node = node.setdefault(_unit(character), {})
        node[_END] = {}
    if not tree:
        return "key"
    return f'"\\"" {_other(tree, add, 1)}'


def _unit(character: str) -> str:
    """The character, or the escape that stands for it in JSON."""
    escape = escape_unit(character)
    return character if escape is None else "\\" + escape


def _other(tree: _Tree, add: Callable[[str], str], depth: int) -> str:
    """What may follow the characters that lead to this place."""
    raw = [unit for unit in tree if len(unit) == 1]
    escaped = [unit[1:] for unit in tree if len(unit) > 1]
    taken = "".join(class_point(ord(unit)) for unit in raw if unit != "\x7f")
    options = [rf'[^"\\\x00-\x1f\x7f{taken}] key-rest']
    if escaped:
        others = escapes_but(escaped)
        options += [f'"\\\\" {others} key-rest'] if others else []
        options += [] if _END in tree else ['"\\": "']
    elif _END in tree:
        options.append('"\\\\" key-escape key-rest')
    else:
        options.append("key-odd")
    for unit, inner in tree.items():
        if unit != _END:
            options.append(f"{literal(unit)} {_other(inner, add, depth + 1)}")
    body = " | ".join(options)
    return add(body) if depth % _NESTED == 0 else f"( {body} )"
