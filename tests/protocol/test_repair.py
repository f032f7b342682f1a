import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.protocol import ProtocolError
from runner.protocol.repair import read_json

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), values, max_size=4))
def test_valid_json_is_never_touched(value):
    for ascii_only in (True, False):
        read, receipts = read_json(json.dumps(value, ensure_ascii=ascii_only), 1)
        assert read == value
        assert receipts == []


@pytest.mark.parametrize(
    ("broken", "meant"),
    [
        ("{'tool': 'a', 'params': {'x': True, 'y': None}}", {"x": True, "y": None}),
        ('{"tool": "a", "params": {"x": 1,}}', {"x": 1}),
        ('{tool: "a", params: {x: 1}}', {"x": 1}),
        ('{"tool": "a", "params": {"x": 1}', {"x": 1}),
        ('```json\n{"tool": "a", "params": {"x": 1}}\n```', {"x": 1}),
        ('{"tool": "a", "params": {"x": "one\n\ttwo\n"}}', {"x": "one\n\ttwo\n"}),
    ],
)
def test_structure_is_repaired_with_a_receipt(broken, meant):
    value, receipts = read_json(broken, 1)
    assert value == {"tool": "a", "params": meant}
    assert receipts


@pytest.mark.parametrize(
    "doubtful",
    [
        '{"tool": "a", "params": {"x": "cut off he',
        '{"tool": "a", "params": {"x": }}',
        '{"tool": "a", "params": {"x": ',
        '{"tool": "a", "params": {"x": "say "yes", "y": 1}}',
        '{"tool": "a", "params": {"x": "C:\\bin\\Query"}}',
        "{'tool': 'a', 'params': {'x': 'Ms D'Arcy'}}",
        '{"tool": "a", "params": {"x": 1}} and then some {"x": 2}',
    ],
)
def test_what_could_mean_two_things_is_refused(doubtful):
    with pytest.raises(ProtocolError, match="cannot be read"):
        read_json(doubtful, 1)


@pytest.mark.parametrize(
    "regrouped",
    [
        '{"tool": "a", "params": {"x": ""y""}}',
        '{"tool": "a", "params": {"x": "y""}}',
        '{"tool": "a", "params": {"x": ["u", "v": "w"]}}',
        '{"tool": "a", "params": {"x": {1, 2}}}',
        '{"tool": "a", "params": ["x": 1]}',
        '{"tool": "a", "params": {"x": 1, "x": true}}',
    ],
)
def test_a_repair_that_drops_quotes_or_moves_values_is_refused(regrouped):
    with pytest.raises(ProtocolError, match="cannot be read"):
        read_json(regrouped, 1)


@pytest.mark.parametrize(
    "large",
    [
        "```json\n{" + "\n" * 150_000 + "x",
        "{tool: t, params: {" + ",".join(f"k{i}: v" for i in range(15_000)) + "}}",
        '{"a": ' + '"' * 100_000,
        "{" + "\\" * 100_000,
        '{"a": "' + "`" * 100_000,
    ],
)
def test_large_broken_text_is_refused_at_once(large):
    with pytest.raises(ProtocolError):
        read_json(large, 1)
