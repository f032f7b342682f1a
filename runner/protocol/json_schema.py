"""JSON Schema -> GBNF, for the parameters of one tool.

What a grammar cannot say (a pattern, a bound of a number) is left to the check after parsing and
noted. The grammar is stricter than the schema only where something could go on for ever: texts have
at most 1900 characters, arrays 64 items, integers 18 digits, and only named properties are written.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from runner.core.errors import ConfigError

_DEEPEST = 16
_LONGEST_REPETITION = 1900
_ENFORCED = {
    "type", "enum", "const", "properties", "required", "items", "minItems", "maxItems",
    "minLength", "maxLength", "anyOf", "oneOf", "$ref", "$defs", "definitions",
    "additionalProperties",
}  # fmt: skip
_NO_CONSTRAINT = {
    "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly",
    "$schema", "$id", "$comment", "format",
}  # fmt: skip


class SchemaRules:
    """Collects the rules for one schema.

    Parameters
    ----------
    prefix
        Begins the name of every rule made here.
    root
        The whole schema, for ``$ref``.

    Attributes
    ----------
    rules
        Name -> body of the rules made so far.
    notes
        Keywords that the grammar does not enforce, as ``(place, keyword)``.
    """

    def __init__(self, prefix: str, root: Mapping[str, Any]) -> None:
        self.rules: dict[str, str] = {}
        self.notes: list[tuple[str, str]] = []
        self._prefix = prefix
        self._root = root
        self._open: set[str] = set()
        self._done: dict[str, str] = {}

    def rule_for(self, schema: Any, place: str = "", depth: int = 0) -> str:
        """A GBNF expression for ``schema``: a literal, or the name of a rule.

        ``place`` is the path of the parameter, for notes.
        """
        if depth > _DEEPEST:
            self.notes.append((place, f"more than {_DEEPEST} levels"))
            return "value"
        if not isinstance(schema, Mapping):
            return "value"
        if "$ref" in schema:
            return self._referred(schema["$ref"], place, depth)
        for keyword in schema:
            if keyword not in _ENFORCED and keyword not in _NO_CONSTRAINT:
                self.notes.append((place, keyword))
        if "const" in schema:
            return literal(_dump(schema["const"]))
        if "enum" in schema:
            return self._add([literal(_dump(value)) for value in schema["enum"]])
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                return self._add([self.rule_for(s, place, depth + 1) for s in schema[keyword]])
        kinds = schema.get("type")
        if isinstance(kinds, Sequence) and not isinstance(kinds, str):
            return self._add(
                [self.rule_for({**schema, "type": kind}, place, depth + 1) for kind in kinds]
            )
        return self._typed(kinds, schema, place, depth)

    def _typed(self, kind: Any, schema: Mapping[str, Any], place: str, depth: int) -> str:
        makers: dict[str, Callable[[], str]] = {
            "string": lambda: self._string(schema),
            "array": lambda: self._array(schema, place, depth),
            "object": lambda: self._object(schema, place, depth),
        }
        if kind in makers:
            return makers[kind]()
        if kind in ("integer", "number", "boolean", "null"):
            return str(kind)
        if kind is None and "properties" in schema:
            return makers["object"]()
        if kind is not None:
            self.notes.append((place, f"type {kind!r}"))
        return "value"

    def _string(self, schema: Mapping[str, Any]) -> str:
        least = int(schema.get("minLength", 0))
        most = min(int(schema.get("maxLength", _LONGEST_REPETITION)), _LONGEST_REPETITION)
        if (least, most) == (0, _LONGEST_REPETITION):
            return "string"
        if most == 0:
            return literal('""')
        return self._add([f'"\\"" char{{{min(least, most)},{most}}} "\\""'])

    def _array(self, schema: Mapping[str, Any], place: str, depth: int) -> str:
        least, most = int(schema.get("minItems", 0)), min(int(schema.get("maxItems", 64)), 64)
        if least > most:
            self.notes.append((place, f"minItems of {least}"))
            return "array"
        item = self.rule_for(schema.get("items", {}), f"{place}[]", depth + 1)
        if most < 1:
            return '"[]"'
        more = f'( ", " {item} ){{{max(least - 1, 0)},{most - 1}}}' if most > 1 else ""
        filled = f"{item} {more}".strip()
        if least == 0:
            filled = f"( {filled} )?"
        return self._add([f'"[" {filled} "]"'])

    def _object(self, schema: Mapping[str, Any], place: str, depth: int) -> str:
        properties = schema.get("properties") or {}
        if not properties:
            # A tool without parameters takes none; an object without properties takes any.
            return '"{}"' if schema.get("additionalProperties", depth > 0) is False else "object"
        pairs = {
            name: f"{literal(_dump(name) + ': ')} "
            + self.rule_for(sub, f"{place}.{name}" if place else name, depth + 1)
            for name, sub in properties.items()
        }
        required = [pairs[name] for name in properties if name in schema.get("required", ())]
        optional = [pairs[name] for name in properties if name not in schema.get("required", ())]
        tail = [f'( ", " {pair} )?' for pair in optional]
        if required:
            body = ' ", " '.join(required)
            return self._add([" ".join(['"{"', body, *tail, '"}"'])])
        # Each parameter may be the first; what may follow it is a rule, shared by all before it.
        starts = [optional[-1]]
        follow = ""
        for pair, option in zip(optional[-2::-1], tail[:0:-1], strict=True):
            follow = self._add([f"{option} {follow}".strip()])
            starts.insert(0, f"{pair} {follow}")
        return self._add([f'"{{" ( {" | ".join(starts)} )? "}}"'])

    def _referred(self, reference: Any, place: str, depth: int) -> str:
        target = self._resolve(reference, place)
        if reference in self._open:
            self.notes.append((place, f"recursive $ref {reference}"))
            return "value"
        if reference not in self._done:
            self._open.add(reference)
            self._done[reference] = self.rule_for(target, place, depth + 1)
            self._open.discard(reference)
        return self._done[reference]

    def _resolve(self, reference: Any, place: str) -> Any:
        node: Any = self._root
        if isinstance(reference, str) and reference.startswith("#"):
            for part in reference[1:].split("/")[1:]:
                key = part.replace("~1", "/").replace("~0", "~")
                node = node.get(key) if isinstance(node, Mapping) else None
            if isinstance(node, Mapping):
                return node
        raise ConfigError(
            f"parameter {place!r}: $ref {reference!r} leads nowhere in this schema",
            hint="only references inside the same schema, such as '#/$defs/Name', can be followed",
        )

    def _add(self, alternatives: Sequence[str]) -> str:
        name = f"{self._prefix}-{len(self.rules) + 1}"
        self.rules[name] = " | ".join(dict.fromkeys(alternatives))
        return name


def literal(text: str) -> str:
    """A GBNF literal for ``text``."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
