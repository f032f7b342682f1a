"""Keywords that no grammar holds: they are left to the check after parsing, and noted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from runner.protocol.schema_cases import KINDS, Case

_CHECKED = {
    "not": KINDS, "then": KINDS, "else": KINDS, "multipleOf": ("number", "integer"),
    "contains": ("array",), "minContains": ("array",), "maxContains": ("array",),
    "uniqueItems": ("array",), "unevaluatedItems": ("array",),
    "patternProperties": ("object",), "propertyNames": ("object",), "minProperties": ("object",),
    "maxProperties": ("object",), "dependentRequired": ("object",),
    "dependentSchemas": ("object",), "unevaluatedProperties": ("object",),
}  # fmt: skip


def unenforced(case: Case) -> Iterable[tuple[str, str]]:
    """Keywords that matter for these types and are left to the check after parsing."""
    for schema in case.schemas:
        for keyword, kinds in _CHECKED.items():
            if keyword in schema and case.kinds & set(kinds) and not _idle(schema, keyword, case):
                yield "", keyword
        exempt = schema.get("patternProperties") and "object" in case.kinds
        if exempt and schema.get("additionalProperties", True) not in (True, {}):
            yield "", "additionalProperties"


def _idle(schema: Mapping[str, Any], keyword: str, case: Case) -> bool:
    """Whether a keyword asks for nothing."""
    value = schema[keyword]
    if keyword in ("then", "else") and "if" not in schema:
        return True
    if keyword in ("minContains", "maxContains"):
        return "contains" not in schema
    if keyword == "multipleOf":
        return value == 1 and "number" not in case.kinds
    if keyword in ("uniqueItems", "minProperties"):
        return not value
    return keyword not in ("not", "contains") and value in (True, {})
