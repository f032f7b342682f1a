"""Schemas as people write them and values that nearly fit, for properties of the grammar."""

from __future__ import annotations

import json
import random

from jsonschema import Draft202012Validator

NAMES = ["a", "ab", "b", "kind", "größe", 'q"t', "n-1"]
WORDS = ["", "a", "ab", "abc", "foo", "12", "a-b", "é", 'x"y', "a\\b", "line\nbreak", "z" * 7]
PATTERNS = ["^a*$", "^[a-z]+$", "^(foo|ab)$", "^[0-9]{1,3}$", "^a", "b$", "a", '^[^"\\\\]{2}$']


def schema(rng: random.Random, depth: int = 3, references: tuple[str, ...] = ()):
    """A schema in the range of keywords that a grammar can hold."""
    kind = rng.choice(
        ["string", "integer", "number", "boolean", "null", "enum", "const", "pattern", "union"]
        + ["array", "tuple", "object", "object", "anyOf", "oneOf", "allOf", "beside", "untyped"]
        * (depth > 0)
        + ["any", "ref"]
    )

    def inner():
        return schema(rng, depth - 1, references)

    if kind == "string":
        low = rng.randint(0, 3)
        return {"type": "string", **some(rng, minLength=low, maxLength=low + rng.randint(0, 4))}
    if kind == "integer":
        return {"type": "integer", **bounds(rng)}
    if kind in ("number", "boolean", "null"):
        return {"type": kind}
    if kind == "enum":
        return {
            "enum": [value(rng, 1) for _ in range(rng.randint(1, 4))],
            **some(rng, type="string"),
        }
    if kind == "const":
        return {"const": value(rng, 1)}
    if kind == "pattern":
        return {
            "pattern": rng.choice(PATTERNS),
            **some(rng, type="string", minLength=1, maxLength=3),
        }
    if kind == "union":
        types = ["string", "integer", "number", "boolean", "null", "array", "object"]
        return {"type": rng.sample(types, rng.randint(1, 3)), **some(rng, minLength=2, minItems=1)}
    if kind == "array":
        low = rng.randint(0, 2)
        sizes = some(rng, minItems=low, maxItems=low + rng.randint(0, 3))
        return {"type": "array", **some(rng, items=inner()), **sizes}
    if kind == "tuple":
        fixed = [inner() for _ in range(rng.randint(1, 3))]
        rest = some(rng, items=rng.choice([False, inner()]), minItems=rng.randint(0, 3))
        return {"type": "array", "prefixItems": fixed, **rest}
    if kind in ("object", "untyped"):
        return objects(rng, inner, typed=kind == "object")
    if kind in ("anyOf", "oneOf", "allOf"):
        return {kind: [inner() for _ in range(rng.randint(1, 3))]}
    if kind == "beside":
        base = inner()
        return {**(base if base is not True else {}), "anyOf": [inner(), inner()]}
    if kind == "ref" and references:
        return {"$ref": rng.choice(references), **some(rng, type=["string", "object"])}
    return rng.choice([{}, True, {"title": "T"}, {"default": 3}])


def objects(rng, inner, *, typed):
    # One order for all, or there would be none where the options of a union meet.
    names = sorted(rng.sample(NAMES, rng.randint(0, 4)), key=NAMES.index)
    found = {"properties": {name: inner() for name in names}} if names else {}
    required = [name for name in names if rng.random() < 0.4]
    if rng.random() < 0.1:
        required.append("other")
    others = some(rng, additionalProperties=rng.choice([False, True, {"type": "integer"}]))
    return {**({"type": "object"} if typed else {}), **found, "required": required, **others}


def bounds(rng):
    low = rng.choice([-1234, -10, -1, 0, 1, 7, 99, 2.5])
    lower = rng.choice(["minimum", "exclusiveMinimum"])
    upper = rng.choice(["maximum", "exclusiveMaximum"])
    return some(rng, **{lower: low, upper: low + rng.choice([0, 1, 5, 50, 4000])})


def some(rng, **keywords):
    """Some of the keywords."""
    return {word: what for word, what in keywords.items() if rng.random() < 0.6}


def value(rng: random.Random, depth: int = 2):
    """Any JSON value."""
    kind = rng.choice(["text", "text", "whole", "float", "word"] + ["list", "dict"] * (depth > 0))
    if kind == "text":
        return rng.choice(WORDS)
    if kind == "whole":
        return rng.choice([0, 1, -1, 3, 7, 12, 99, -1234, 10**12])
    if kind == "float":
        return rng.choice([0.5, -2.25, 3.0, 1e-7, 12.0])
    if kind == "word":
        return rng.choice([True, False, None])
    if kind == "list":
        return [value(rng, depth - 1) for _ in range(rng.randint(0, 3))]
    return {rng.choice([*NAMES, "other"]): value(rng, depth - 1) for _ in range(rng.randint(0, 3))}


def near(rng: random.Random, wanted, root, depth: int = 6):
    """A value that mostly fits the schema."""
    if not isinstance(wanted, dict) or depth == 0 or rng.random() < 0.07:
        return value(rng, 1)
    for word in ("anyOf", "oneOf", "allOf"):
        if word in wanted and rng.random() < 0.8:
            if word == "allOf":
                parts = [near(rng, part, root, depth - 1) for part in wanted[word]]
                if all(isinstance(part, dict) for part in parts):
                    return {key: part[key] for part in parts for key in part}
                return rng.choice(parts)
            return near(rng, rng.choice(wanted[word]), root, depth - 1)
    if "$ref" in wanted:
        return near(rng, root["$defs"][wanted["$ref"].rpartition("/")[2]], root, depth - 1)
    if "enum" in wanted or "const" in wanted:
        return rng.choice(wanted.get("enum", [wanted.get("const")]))
    types = wanted.get("type", ["object"] if "required" in wanted else [])
    types = [types] if isinstance(types, str) else types
    kind = rng.choice(types) if types else None
    if kind == "string" or "pattern" in wanted:
        return rng.choice(WORDS)
    if kind == "integer":
        middle = wanted.get("minimum", wanted.get("exclusiveMinimum", wanted.get("maximum", 0)))
        found = int(middle) + rng.choice([-1, 0, 1, 2, 5, 40, 700])
        return float(found) if rng.random() < 0.1 else found
    if kind == "array":
        fixed = [near(rng, part, root, depth - 1) for part in wanted.get("prefixItems", [])]
        more = range(rng.randint(0, 3))
        items = fixed + [near(rng, wanted.get("items", {}), root, depth - 1) for _ in more]
        return items[: rng.randint(0, len(items))] if rng.random() < 0.3 else items
    if kind == "object":
        required = wanted.get("required", [])
        found = {
            name: near(rng, part, root, depth - 1)
            for name, part in wanted.get("properties", {}).items()
            if name in required or rng.random() < 0.6
        }
        for name in [*required, "other"]:
            if name not in found and rng.random() < (0.9 if name in required else 0.2):
                found[name] = near(rng, wanted.get("additionalProperties", {}), root, depth - 1)
        return found
    return value(rng, 1)


def written(data, wanted, root) -> str:
    """The value as JSON, keys in the order of the schema, others behind them."""
    return json.dumps(_ordered(data, wanted, root, 12), ensure_ascii=False)


def _ordered(data, wanted, root, depth):
    parts = list(_parts(wanted, root, depth, data))
    if isinstance(data, list):
        return [
            _ordered(item, {"allOf": _items(parts, at)}, root, depth - 1)
            for at, item in enumerate(data)
        ]
    if not isinstance(data, dict):
        return data
    known = dict.fromkeys(name for part in parts for name in part.get("properties", {}))
    names = [name for name in known if name in data]
    names += [name for name in data if name not in known]
    return {
        name: _ordered(data[name], {"allOf": _below(parts, name)}, root, depth - 1)
        for name in names
    }


def _parts(wanted, root, depth, data):
    """The schema and those that count for the same value."""
    if not isinstance(wanted, dict) or depth <= 0:
        return
    yield wanted
    if "$ref" in wanted:
        target = root["$defs"][wanted["$ref"].rpartition("/")[2]]
        yield from _parts(target, root, depth - 1, data)
    validator = Draft202012Validator(root)
    for word in ("allOf", "anyOf", "oneOf"):
        for part in wanted.get(word, []):
            if word == "allOf" or validator.evolve(schema=part).is_valid(data):
                yield from _parts(part, root, depth - 1, data)


def _below(parts, key):
    return [p.get("properties", {}).get(key, p.get("additionalProperties", {})) for p in parts]


def _items(parts, at):
    fixed = [p.get("prefixItems", []) for p in parts]
    return [f[at] if at < len(f) else p.get("items", {}) for f, p in zip(fixed, parts, strict=True)]
