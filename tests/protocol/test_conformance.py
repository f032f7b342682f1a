"""Third-party test data, where $RUNNER_CONFORMANCE_DIR points at it."""

import base64
from collections import Counter

import pytest
from recognizer import recognizer_matcher

from runner.bench.conformance import Outcome
from runner.bench.conformance.data import rows_of
from runner.bench.conformance.json_texts import JSON_FILE, measure_json, measure_json5
from runner.bench.conformance.schemas import (
    measure_llama_grammars,
    measure_llama_schemas,
    measure_suite,
)
from runner.core.errors import ConfigError, ProtocolError
from runner.protocol.payload import read_payload


def measured(measure, *arguments):
    try:
        return measure(*arguments)
    except ConfigError as error:
        pytest.skip(str(error))


def counts(cases):
    return Counter((case.group, case.outcome) for case in cases)


def faults(cases, *outcomes):
    """What ended in a way that no case should, or in one of some ways; for a message."""
    return [
        case for case in cases if case.outcome in outcomes or (case.outcome.fault and not outcomes)
    ]


def few(cases):
    return "\n".join([f"{len(cases)} cases, such as", *map(str, cases[:5])])


def test_json_is_read_and_what_is_not_json_is_refused():
    cases = measured(measure_json)
    assert counts(cases) == {
        ("y_", Outcome.CORRECT): 95,
        ("n_", Outcome.CORRECT): 188,
        ("i_", Outcome.FREE): 35,
    }


def test_reading_any_of_it_as_a_call_ends_in_a_value_or_a_protocol_error():
    for row in measured(rows_of, JSON_FILE):
        try:
            read_payload(base64.b64decode(row["b64"]).decode("utf-8", "replace"), 1)
        except ProtocolError as error:
            assert str(error)


def test_json5_is_read():
    cases = [case for case in measured(measure_json5) if case.group == "JSON5"]
    assert Counter(case.outcome for case in cases) == {Outcome.CORRECT: 82}


@pytest.fixture(scope="module")
def suite():
    cases = measured(measure_suite, recognizer_matcher)
    assert len(cases) == 1299
    return cases


def test_no_grammar_is_stricter_than_its_schema(suite):
    found = faults(suite, Outcome.STRICT, Outcome.MISREAD)
    assert not found, few(found)


def test_no_grammar_is_looser_than_its_schema_without_saying_so(suite):
    found = faults(suite, Outcome.LOOSE, Outcome.BROKEN)
    assert not found, few(found)


def test_what_a_grammar_leaves_open_the_check_after_parsing_refuses(suite):
    found = faults(suite, Outcome.UNCHECKED)
    assert not found, few(found)


def test_schemas_that_stay_inside_themselves_are_hardly_ever_refused(suite):
    refused = [case for case in suite if case.outcome is Outcome.REFUSED]
    assert all(case.detail for case in refused)
    elsewhere = {"refRemote", "dynamicRef", "anchor", "ref", "defs", "vocabulary"}
    inside = [case for case in refused if case.group not in elsewhere]
    assert len(inside) < 50, few(inside)


def test_the_strings_of_llama_cpps_schema_tests():
    cases = measured(measure_llama_schemas, recognizer_matcher)
    assert len(cases) == 126 + 122
    # Llama.cpp rejects these although the schema allows them: order of keys, long integers.
    assert sum(case.outcome is Outcome.FREE for case in cases) == 13
    # One schema is written for an older draft and refused.
    assert sum(case.outcome is Outcome.REFUSED for case in cases) <= 3
    assert not faults(cases), few(faults(cases))


def test_the_tests_own_reader_of_gbnf_reads_as_llama_cpp_does():
    cases = measured(measure_llama_grammars, lambda text: recognizer_matcher(text, portable=False))
    assert counts(cases) == {
        ("grammar, accept", Outcome.CORRECT): 60,
        ("grammar, reject", Outcome.CORRECT): 59,
    }
