"""A schema as cases: alternatives without anyOf, oneOf, allOf and $ref, each a list of schemas.

Keywords beside ``$ref``, ``allOf``, ``anyOf`` and ``oneOf`` count as well (2020-12), so that all
schemas of a case hold together. They are merged only where a rule is made of them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from runner.core.schema import resolve, subschemas
from runner.protocol.schema_check import Checker

KINDS = ("string", "number", "boolean", "null", "array", "object")
_LEVELS = 4
_MOST_CASES = 64
_MOST_OPTIONS = 1000
_LISTING = {"const", "enum", "title", "description", "deprecated", "$comment", "examples"}
Schemas = tuple[Any, ...]
"""Schemas that all hold for one value; objects of the root, compared by identity."""


@dataclass(frozen=True)
class Case:
    """One alternative.

    Attributes
    ----------
    schemas
        What holds, with nothing left to follow or choose.
    kinds
        The types that are allowed; ``integer`` only where ``number`` is not.
    values
        The allowed values where there are only some, else None.
    level
        How many recursive references were followed on the way.
    """

    schemas: tuple[Mapping[str, Any], ...]
    kinds: frozenset[str]
    values: tuple[Any, ...] | None
    level: int

    def all(self, keyword: str) -> list[Any]:
        """What the schemas say for a keyword."""
        return [schema[keyword] for schema in self.schemas if keyword in schema]

    @property
    def free(self) -> bool:
        """Whether every value is allowed."""
        return not self.schemas


class _Choice(NamedTuple):
    """An anyOf or oneOf that is still to be made, and the schema that it stands in."""

    word: str
    options: Sequence[Any]
    owner: Mapping[str, Any]


class Cases:
    """Makes cases of the schemas inside one root.

    Parameters
    ----------
    root
        The whole schema, for ``$ref``.
    """

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._checker = Checker(root)
        self._recursive = _recursive_references(root)

    def of(self, schemas: Schemas, level: int = 0) -> tuple[list[Case], list[str]]:
        """The cases of schemas that hold together, and keywords that the cases do not hold."""
        notes: list[str] = []
        return self._expand(schemas, (), (), level, notes), list(dict.fromkeys(notes))

    def _expand(
        self,
        more: Iterable[Any],
        flat: Sequence[Mapping[str, Any]],
        choices: Sequence[_Choice],
        level: int,
        notes: list[str],
    ) -> list[Case]:
        waiting, flat, choices = list(more), list(flat), list(choices)
        while waiting:
            schema = waiting.pop(0)
            if schema is False:
                return []
            if not isinstance(schema, Mapping) or not schema or any(schema is f for f in flat):
                continue
            flat.append(schema)
            reference = schema.get("$ref")
            if reference in self._recursive:
                if level >= _LEVELS:
                    notes.append(f"recursive $ref {reference}")
                    reference = None
                level += 1
            # In the order of the text, which becomes the order of the properties.
            inner = [resolve(self._root, reference)] if reference is not None else []
            waiting = [*inner, *schema.get("allOf", ()), *waiting]
            for word in ("anyOf", "oneOf"):
                if word in schema:
                    choices.append(_Choice(word, schema[word], schema))
        case = self._case(flat, level)
        if not case.kinds or case.values == ():
            return []
        if case.values is not None or not choices:
            return [case]
        (word, options, owner), rest = choices[0], choices[1:]
        listed = _listed(word, options)
        if listed is not None or word == "anyOf":
            # What is chosen holds the choice, and need not be checked against all of it again.
            without = {key: value for key, value in owner.items() if key != word}
            flat = [without if schema is owner else schema for schema in flat]
        if listed is not None:
            return self._expand([{"enum": listed}], flat, rest, level, notes)
        own: list[str] = []
        found: list[Case] | None = []
        most = _MOST_OPTIONS if len(choices) == 1 else _MOST_CASES
        if math.prod(len(choice.options) for choice in choices) > most:
            found = None
        for option in options:
            if found is not None:
                found += self._expand([option], flat, rest, level, own)
                found = None if len(found) > most else found
        if found is None:
            notes.append(word)
            return self._expand((), flat, rest, level, notes)
        notes += own
        if word == "oneOf" and any(c.values is None for c in found):
            notes += [] if self._apart(options, level, case.kinds) else [word]
        return found

    def _case(self, flat: Sequence[Mapping[str, Any]], level: int) -> Case:
        kinds = frozenset(KINDS)
        for schema in flat:
            if "type" in schema:
                kinds = _both(kinds, schema["type"])
        values: tuple[Any, ...] | None = None
        listed = [schema for schema in flat if "enum" in schema or "const" in schema]
        if listed:
            values = tuple(
                value
                for value in ([listed[0]["const"]] if "const" in listed[0] else listed[0]["enum"])
                if all(self._checker.allows(schema, value) for schema in flat)
            )
        return Case(tuple(flat), kinds, values, level)

    def _apart(self, options: Sequence[Any], level: int, kinds: frozenset[str]) -> bool:
        """Whether no value of these types fits two of the options, as far as can be told."""
        each = [self._expand([option], (), (), level, []) for option in options]
        each = [cases for cases in each if cases]
        if len(each) > _MOST_CASES:
            return False
        return all(
            self._differ(one, other, kinds)
            for at, cases in enumerate(each)
            for others in each[at + 1 :]
            for one in cases
            for other in others
        )

    def _differ(self, one: Case, other: Case, among: Iterable[str] = KINDS, depth: int = 0) -> bool:
        for case, against in ((one, other), (other, one)):
            if case.values is not None:
                return not any(
                    all(self._checker.allows(schema, value) for schema in against.schemas)
                    for value in case.values
                )
        shared = _wide(one.kinds) & _wide(other.kinds) & _wide(among)
        if shared != {"object"} or depth:
            return not shared
        # Objects differ in a property that both must have, such as the kind of a union.
        return any(
            self._differ(first, second, depth=depth + 1)
            for name in _required(one) & _required(other)
            for first, second in _pairs(self._property(one, name), self._property(other, name))
        )

    def _property(self, case: Case, name: str) -> list[Case]:
        schemas = tuple(part[name] for part in case.all("properties") if name in part)
        return self._expand(schemas, (), (), case.level, [])


def _wide(kinds: Iterable[str]) -> set[str]:
    return {"number" if kind == "integer" else kind for kind in kinds}


def _listed(word: str, options: Sequence[Any]) -> list[str] | None:
    """The words that a choice comes to where it only lists words, each with a title perhaps."""
    words: list[str] = []
    for option in options:
        if not isinstance(option, Mapping) or not _LISTING.issuperset(option):
            return None
        values = option.get("enum", [option["const"]] if "const" in option else [None])
        if "enum" in option and "const" in option:
            return None
        if not all(isinstance(value, str) for value in values):
            return None
        words += dict.fromkeys(values)
    times = Counter(words)
    return [word_ for word_ in times if word == "anyOf" or times[word_] == 1]


def _pairs(ones: list[Case], others: list[Case]) -> list[tuple[Case, Case]]:
    """The one pair of two properties; unions inside them are not compared."""
    return [(ones[0], others[0])] if len(ones) == len(others) == 1 else []


def _required(case: Case) -> set[str]:
    return {name for names in case.all("required") for name in names}


def _both(kinds: frozenset[str], wanted: str | Sequence[str]) -> frozenset[str]:
    names = {wanted} if isinstance(wanted, str) else set(wanted)
    kept = {kind for kind in kinds if kind in names}
    if "integer" in names and "number" in kinds and "number" not in names:
        kept.add("integer")
    if "integer" in kinds and "number" in names:
        kept.add("integer")
    return frozenset(kept)


def _recursive_references(root: Mapping[str, Any]) -> set[str]:
    """References whose target leads back to them."""
    references = {part["$ref"] for part in subschemas(root) if isinstance(part.get("$ref"), str)}
    leads = {
        reference: {
            part["$ref"]
            for part in subschemas(resolve(root, reference))
            if isinstance(part.get("$ref"), str)
        }
        for reference in references
    }
    recursive = set()
    for reference in references:
        seen: set[str] = set()
        waiting = list(leads[reference])
        while waiting:
            name = waiting.pop()
            if name not in seen:
                seen.add(name)
                waiting += leads.get(name, ())
        if reference in seen:
            recursive.add(reference)
    return recursive
