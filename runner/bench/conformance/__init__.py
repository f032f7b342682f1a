"""Measures grammars and readers against third-party data: JSON, JSON5, JSON Schema, GBNF, BFCL.

`scripts/conformance` prints the tables, the tests hold the figures.
"""

from runner.bench.conformance.cases import Case, Outcome, table

__all__ = ["Case", "Outcome", "table"]
