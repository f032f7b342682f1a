#!/usr/bin/env python3
"""Measures the readers and grammars of this checkout against third-party data.

Every text is asked of two readers of GBNF that are not the runner's: llguidance and the one of the
tests. Exit code: 0 without a fault, 1 with one, 2 where nothing could be measured.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from runner.bench.conformance import Case, Outcome, table
from runner.bench.conformance.bfcl import measure_gold
from runner.bench.conformance.json_texts import measure_json, measure_json5
from runner.bench.conformance.matcher import Accepts, Matcher, llguidance_matcher
from runner.bench.conformance.schemas import (
    measure_llama_grammars,
    measure_llama_schemas,
    measure_suite,
)
from runner.core.errors import ConfigError, GrammarError

ROOT = Path(__file__).resolve().parent.parent
SECTIONS = {
    "json": "JSONTestSuite, strict reader",
    "json5": "JSON5 tests, relaxed reader",
    "schema": "JSON-Schema-Test-Suite 2020-12, by keyword",
    "llama": "strings of llama.cpp's tests",
    "bfcl": "BFCL v4, gold calls",
}


@dataclass
class CrossCheck:
    """A matcher that asks both readers. Where they differ it goes by the tests' exact one."""

    exact: Matcher
    other: Matcher | None
    texts: int = 0
    differences: list[str] = field(default_factory=list)

    def __call__(self, grammar: str) -> Accepts:
        exact, other = self.exact(grammar), None
        if self.other is not None:
            try:
                other = self.other(grammar)
            except GrammarError as error:
                self.differences.append(str(error))

        def accepts(text: str) -> bool:
            self.texts += 1
            taken = exact(text)
            if other is not None and other(text) != taken:
                self.differences.append(f"{text!r}: {taken} against {not taken} of llguidance")
            return taken

        return accepts


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    check = CrossCheck(_tests_reader(portable=True), _second_reader())
    wide = CrossCheck(_tests_reader(portable=False), None)
    measures: dict[str, Callable[[], list[Case]]] = {
        "json": measure_json,
        "json5": measure_json5,
        "schema": lambda: measure_suite(check),
        "llama": lambda: measure_llama_schemas(check) + measure_llama_grammars(wide),
        "bfcl": lambda: measure_gold(check),
    }
    document = {}
    faults = measured = 0
    for name in options.sections or SECTIONS:
        started = time.perf_counter()
        try:
            cases = measures[name]()
        except ConfigError as error:
            _skipped(name, error, options.json)
            document[name] = {"skipped": str(error)}
            continue
        measured += 1
        faults += sum(case.outcome.fault for case in cases)
        document[name] = _section(cases)
        if not options.json:
            _show(name, cases, time.perf_counter() - started, options.verbose)
    document["readers"] = {"texts": check.texts, "differences": check.differences}
    if options.json:
        print(json.dumps(document, ensure_ascii=False, indent=1))
    else:
        _show_readers(check)
    if not measured:
        return 2
    return 1 if faults or check.differences else 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/conformance",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="sections:\n" + "\n".join(f"  {name:8}{what}" for name, what in SECTIONS.items()),
    )
    parser.add_argument("sections", nargs="*", metavar="SECTION", help="default: all")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of tables")
    parser.add_argument("--verbose", action="store_true", help="list the cases that are not plain")
    options = parser.parse_args(arguments)
    for name in options.sections:
        if name not in SECTIONS:
            parser.error(f"no section {name!r}; there are {', '.join(SECTIONS)}")
    return options


def _tests_reader(*, portable: bool) -> Matcher:
    file = ROOT / "tests" / "protocol" / "recognizer.py"
    spec = importlib.util.spec_from_file_location("recognizer", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return lambda grammar: module.recognizer_matcher(grammar, portable=portable)


def _second_reader() -> Matcher | None:
    try:
        llguidance_matcher('root ::= "a"')
    except ConfigError as error:
        print(f"note: {error}; {error.hint}", file=sys.stderr)
        return None
    return llguidance_matcher


def _section(cases: list[Case]) -> dict[str, object]:
    groups: dict[str, dict[str, int]] = {}
    for case in cases:
        group = groups.setdefault(case.group, {})
        group[case.outcome.value] = group.get(case.outcome.value, 0) + 1
    plain = (Outcome.CORRECT, Outcome.REFUSED, Outcome.WEAKENED)
    return {
        "groups": groups,
        "cases": [
            {"group": c.group, "name": c.name, "outcome": c.outcome.value, "detail": c.detail}
            for c in cases
            if c.outcome not in plain
        ],
    }


def _skipped(name: str, error: ConfigError, as_json: bool) -> None:
    hint = f"\n  {error.hint}" if error.hint else ""
    print(f"\n{SECTIONS[name]}: not measured\n  {error}{hint}", file=sys.stderr)


def _show(name: str, cases: list[Case], seconds: float, verbose: bool) -> None:
    print(f"\n{SECTIONS[name]} ({seconds:.1f} s)\n")
    rows = table(cases, unit="rows" if name == "bfcl" else "tests")
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    rows.insert(1, ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])])
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        print(f"| {' | '.join(cells)} |")
    if verbose:
        for case in cases:
            if case.outcome is not Outcome.CORRECT:
                print(f"  {case.outcome.value}: {case.group}: {case.name}\n    {case.detail}")


def _show_readers(check: CrossCheck) -> None:
    if check.other is None or not check.texts:
        return
    print(
        f"\nBoth readers of GBNF agree on {check.texts - len(check.differences)} of {check.texts}."
    )
    for difference in check.differences:
        print(f"  {difference}")


if __name__ == "__main__":
    sys.exit(main())
