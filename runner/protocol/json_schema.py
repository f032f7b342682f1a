"""JSON Schema -> GBNF, for the parameters of one tool.

What a grammar cannot say is weakened on that property alone, left to the check after parsing and
noted. The grammar is stricter than the schema only where something could go on for ever: texts of
1900 characters, arrays of 64 items, integers of 30 digits, where the schema sets no bounds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

from runner.protocol.digits import integers
from runner.protocol.keys import other_key
from runner.protocol.literals import dump, literal, value_text
from runner.protocol.object_rules import MOST_LOOSE, Pair, object_text
from runner.protocol.pattern import PatternError
from runner.protocol.schema_cases import Case, Cases, Schemas
from runner.protocol.text_rules import LONGEST_BOUND, text_of_length, text_of_pattern
from runner.protocol.unenforced import unenforced

_DEEPEST = 32
_MOST_ITEMS = 1900
_USUAL_ITEMS = 64
_MOST_NOTES = 64
_ELSEWHERE = "(other places)"
_ATOM = re.compile(r'[a-z][a-z0-9-]*|"(?:\\.|[^"\\])*"')
Notes = tuple[tuple[str, str], ...]
"""Place below the value and keyword, for what is not enforced there."""


class Rendered(NamedTuple):
    """GBNF for a value: a literal or the name of a rule; None where no value is allowed."""

    text: str | None
    notes: Notes = ()


class SchemaRules:
    """Collects the rules for one schema.

    Parameters
    ----------
    prefix
        Begins the name of every rule made here.
    root
        The parameters of a tool, as `ToolContract` has checked them.

    Attributes
    ----------
    rules
        Name -> body of the rules made so far.
    """

    def __init__(self, prefix: str, root: Mapping[str, Any]) -> None:
        self.rules: dict[str, str] = {}
        self._prefix = prefix
        self._root = root
        self._cases = Cases(root)
        self._names: dict[str, str] = {}
        self._done: dict[tuple[tuple[int, ...], int], Rendered] = {}

    def params(self) -> Rendered:
        """GBNF for the params: an object, and a closed one unless the schema says otherwise."""
        cases, keywords = self._cases.of((self._root,))
        notes = [("", keyword) for keyword in keywords]
        options = []
        for case in cases:
            if case.values is not None:
                options += [value_text(v) for v in case.values if isinstance(v, dict)]
            elif "object" in case.kinds:
                case = replace(case, kinds=frozenset({"object"}))
                notes += unenforced(case)
                options += self._object(case, 0, "params", notes, closed=True)
        return self._rendered(options, notes, "params")

    def _value(self, schemas: Iterable[Any], level: int, depth: int, hint: str) -> Rendered:
        """GBNF for a value for which all of ``schemas`` hold."""
        held: Schemas = tuple(s for s in schemas if s is not True and s != {})
        if not held:
            return Rendered("value")
        key = (tuple(map(id, held)), level)
        if key not in self._done:
            if depth > _DEEPEST:
                return Rendered("value", (("", f"more than {_DEEPEST} levels"),))
            self._done[key] = self._cases_text(held, level, depth, hint)
        return self._done[key]

    def _cases_text(self, held: Schemas, level: int, depth: int, hint: str) -> Rendered:
        cases, keywords = self._cases.of(held, level)
        notes = [("", keyword) for keyword in keywords]
        options: list[str] = []
        for case in cases:
            own: list[tuple[str, str]] = []
            texts = self._alternatives(case, depth, hint, own)
            if _joined(texts) == ["value"] and not own:
                # What others would restrict does not matter beside it.
                return self._rendered(["value"], [("", keyword) for keyword in keywords], hint)
            options += texts
            notes += own
        return self._rendered(_joined(options), notes, hint)

    def _rendered(
        self, options: Sequence[str], notes: Iterable[tuple[str, str]], hint: str
    ) -> Rendered:
        kept = tuple(dict.fromkeys(notes))
        if len(kept) > _MOST_NOTES:
            others = {keyword: None for _, keyword in kept[_MOST_NOTES:]}
            kept = (*kept[:_MOST_NOTES], *((_ELSEWHERE, keyword) for keyword in others))
        some = list(dict.fromkeys(options))
        if not some:
            return Rendered(None, kept)
        if len(some) == 1 and _ATOM.fullmatch(some[0]):
            return Rendered(some[0], kept)
        return Rendered(self._add(" | ".join(some), hint), kept)

    def _alternatives(
        self, case: Case, depth: int, hint: str, notes: list[tuple[str, str]]
    ) -> list[str]:
        if case.values is not None:
            return [value_text(value) for value in case.values]
        notes += unenforced(case)
        makers: dict[str, Callable[[], list[str]]] = {
            "string": lambda: self._string(case, hint, notes),
            "number": lambda: self._number(case, notes),
            "integer": lambda: self._integer(case),
            "array": lambda: self._array(case, depth, hint, notes),
            "object": lambda: self._object(case, depth, hint, notes),
        }
        options: list[str] = []
        for kind in ("string", "number", "integer", "boolean", "null", "array", "object"):
            if kind in case.kinds:
                options += makers[kind]() if kind in makers else [kind]
        return options

    def _string(self, case: Case, hint: str, notes: list[tuple[str, str]]) -> list[str]:
        least = int(max(case.all("minLength"), default=0))
        most = min(map(int, case.all("maxLength")), default=None)
        if least > LONGEST_BOUND:
            notes.append(("", "minLength"))

        def add(body: str) -> str:
            return self._add(body, hint)

        found: str | None = None
        for pattern in dict.fromkeys(case.all("pattern")):
            if found is not None:
                notes.append(("", "pattern"))
                continue
            try:
                text, missed = text_of_pattern(pattern, least, most, add)
            except PatternError:
                notes.append(("", "pattern"))
                continue
            if text is None:
                return []
            notes += [("", keyword) for keyword in missed]
            found = text
        found = found or text_of_length(least, most, add)
        return [found] if found else []

    def _number(self, case: Case, notes: list[tuple[str, str]]) -> list[str]:
        for keyword in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
            notes += [("", keyword)] if case.all(keyword) else []
        return ["number"]

    def _integer(self, case: Case) -> list[str]:
        lows = [math.ceil(Fraction(value)) for value in case.all("minimum")]
        lows += [math.floor(Fraction(value)) + 1 for value in case.all("exclusiveMinimum")]
        highs = [math.floor(Fraction(value)) for value in case.all("maximum")]
        highs += [math.ceil(Fraction(value)) - 1 for value in case.all("exclusiveMaximum")]
        if not lows and not highs:
            return ["integer"]
        options = integers(max(lows, default=None), min(highs, default=None))
        if len(options) == 1:
            return [f'{options[0]} ( ".0" )?']
        return [f'( {" | ".join(options)} ) ( ".0" )?'] if options else []

    def _array(self, case: Case, depth: int, hint: str, notes: list[tuple[str, str]]) -> list[str]:
        least = int(max(case.all("minItems"), default=0))
        most = min(map(int, case.all("maxItems")), default=None)
        if least > _MOST_ITEMS:
            notes.append(("", "minItems"))
            least = _MOST_ITEMS
        fixed = max(map(len, case.all("prefixItems")), default=0)
        most = max(_USUAL_ITEMS, least, fixed) if most is None else min(most, _MOST_ITEMS)
        elements: list[str] = []
        for at in range(min(fixed, most)):
            element = self._value(_items(case, at), case.level, depth + 1, hint)
            if element.text is None:
                most = at
                break
            elements.append(element.text)
            notes += [(_below(f"[{at}]", place), word) for place, word in element.notes]
        item = ""
        if most > len(elements):
            rest = self._value(_items(case, None), case.level, depth + 1, hint)
            item = rest.text or ""
            most = most if item else len(elements)
            notes += [(_below("[]", place), word) for place, word in rest.notes] if item else []
        if least > most:
            return []
        if not elements and (item, least, most) == ("value", 0, _USUAL_ITEMS):
            return ["array"]
        return [self._items_text(elements, item, least, most, hint)]

    def _items_text(
        self, elements: Sequence[str], item: str, least: int, most: int, hint: str
    ) -> str:
        if most == 0:
            return '"[]"'
        known = list(elements) or [item]
        tail = ""
        if most > len(known):
            more = self._add(f'", " {item}', hint)
            low, high = max(least - len(known), 0), most - len(known)
            tail = f"{more}{{{low}}}" if low == high else f"{more}{{{low},{high}}}"
        for at in range(len(known) - 1, 0, -1):
            tail = f'", " {known[at]} {tail}'.strip()
            if at >= least:
                tail = f"( {tail} )?"
                tail = self._add(tail, hint) if at % 8 == 0 else tail
        body = f"{known[0]} {tail}".strip()
        return f'"[" ( {body} )? "]"' if least == 0 else f'"[" {body} "]"'

    def _object(
        self,
        case: Case,
        depth: int,
        hint: str,
        notes: list[tuple[str, str]],
        *,
        closed: bool = False,
    ) -> list[str]:
        listed = [schema["properties"] for schema in case.schemas if schema.get("properties")]
        required = list(dict.fromkeys(n for names in case.all("required") for n in names))
        named = dict.fromkeys(name for properties in listed for name in properties)
        pairs: dict[str, Pair] = {}
        for name in dict.fromkeys([*named, *required]):
            if closed and name not in named and not _open(case):
                return []
            value = self._value(_property(case, name), case.level, depth + 1, name)
            notes += [(_below(name, place), word) for place, word in value.notes]
            if value.text is not None:
                text = f"{literal(dump(name) + ': ')} {value.text}"
                pairs[name] = Pair(text, name in required)
            elif name in required:
                return []
        other = None
        if not closed or _open(case):
            rest = self._value(_others(case), case.level, depth + 1, hint)
            notes += [(_below("*", place), word) for place, word in rest.notes]
            if rest.text is not None:
                key = other_key([*named, *required], lambda body: self._add(body, f"{hint} key"))
                other = f"{key} {rest.text}"
        # With one list of properties their order is that of the schema. Where several are merged
        # there is none to go by.
        loose = [name for name in pairs if len(listed) > 1 or name not in named]
        if len(loose) > MOST_LOOSE:
            loose = []
        return [
            object_text(
                [pair for name, pair in pairs.items() if name not in loose],
                [pairs[name] for name in loose],
                other,
                lambda body: self._add(body, hint),
            )
        ]

    def _add(self, body: str, hint: str) -> str:
        """The name of a rule with this body."""
        if body not in self._names:
            slug = re.sub(r"[^a-z0-9]+", "-", hint.lower()).strip("-")[:24]
            name = f"{self._prefix}-{len(self.rules) + 1}{f'-{slug}' if slug else ''}"
            self._names[body] = name
            self.rules[name] = body
        return self._names[body]


def _property(case: Case, name: str) -> Iterable[Any]:
    """What holds for a property: each schema by its own properties and additionalProperties."""
    for schema in case.schemas:
        if name in schema.get("properties", ()):
            yield schema["properties"][name]
        elif not schema.get("patternProperties"):
            yield schema.get("additionalProperties", True)


def _others(case: Case) -> Iterable[Any]:
    """What holds for properties without a name, as far as patterns do not make exceptions."""
    for schema in case.schemas:
        if not schema.get("patternProperties"):
            yield schema.get("additionalProperties", True)


def _open(case: Case) -> bool:
    return bool(case.all("additionalProperties") or case.all("patternProperties"))


def _items(case: Case, at: int | None) -> Iterable[Any]:
    """What holds for the item at a place, or behind all that have a place of their own."""
    for schema in case.schemas:
        fixed = schema.get("prefixItems", ())
        yield fixed[at] if at is not None and at < len(fixed) else schema.get("items", True)


def _joined(options: Sequence[str]) -> list[str]:
    """Alternatives without those that others hold already."""
    kept = list(dict.fromkeys(options))
    for whole, parts in (
        ("number", ("integer",)),
        ("scalar", ("string", "number", "boolean", "null")),
        ("value", ("scalar", "array", "object")),
    ):
        if whole == "number" and whole not in kept:
            continue
        if all(part in kept for part in parts) or (whole == "number" and "integer" in kept):
            at = kept.index(parts[0])
            kept = [option for option in kept if option not in parts and option != whole]
            kept.insert(at, whole)
    return kept


def _below(name: str, place: str) -> str:
    if place == _ELSEWHERE:
        return place
    return name + (place if place.startswith("[") or not place else f".{place}")
