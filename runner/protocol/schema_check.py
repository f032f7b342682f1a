"""Whether a listed value is allowed by the rest of its schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_ABOUT = {
    "type", "enum", "const", "title", "description", "default", "examples", "deprecated",
    "readOnly", "writeOnly", "$comment", "format",
}  # fmt: skip


class Checker:
    """Checks values against schemas inside one root, which holds what ``$ref`` leads to."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._validator: Any = None

    def allows(self, schema: Mapping[str, Any], value: Any) -> bool:
        """Whether ``value`` fits ``schema``."""
        if _ABOUT.issuperset(schema) and isinstance(value, str):
            # By far the most frequent: words, for which a validator takes its time.
            kinds = schema.get("type", "string")
            return (
                (kinds == "string" if isinstance(kinds, str) else "string" in kinds)
                and value in schema.get("enum", (value,))
                and value == schema.get("const", value)
            )
        if self._validator is None:
            # The import takes a while, and most schemas do without.
            from jsonschema import Draft202012Validator

            self._validator = Draft202012Validator(self._root)
        return bool(self._validator.evolve(schema=schema).is_valid(value))
