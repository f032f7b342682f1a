"""llama.cpp, llguidance and the tests' own reader take and refuse the same texts.

What runs is llama.cpp; what the other tests ask is the tests' own reader. A grammar that two of
the three read differently uses something outside the portable part of GBNF.
"""

import importlib.util
import random

import pytest
from llama_matcher import LlamaMatcher
from recognizer import Grammar
from simple_tools import ADD, SEARCH

from runner import ToolContract
from runner.bench.conformance.matcher import llguidance_matcher
from runner.core.errors import ConfigError
from runner.models import load_catalog
from runner.protocol import tool_grammar
from runner.tools.builtin import builtin_tools, toolset

SMALLEST = "smollm2-135m"
# No byte of these is missing in the vocabulary of the smallest model.
CHARACTERS = '"\\{}[]:, \n\tab01eE+-.tfnuxACTION\u00e9\u4e2d\U0001f438\u2028\x01\x7f/<>|'


@pytest.fixture(scope="module")
def llama():
    if importlib.util.find_spec("llama_cpp") is None:
        pytest.skip("llama-cpp-python is not installed: run ./scripts/setup")
    model = load_catalog().models[SMALLEST].path
    if not model.is_file():
        pytest.skip(f"{model} is not there: run `runner models pull {SMALLEST}`")
    matcher = LlamaMatcher(model)
    yield matcher
    matcher.close()


@pytest.fixture(scope="module")
def llguidance():
    pytest.importorskip("llguidance", reason="llguidance is not installed: ./scripts/setup --dev")
    return llguidance_matcher


def mutations(text, rng, count):
    """Texts that differ from ``text`` in one character, or end early."""
    for _ in range(count):
        at = rng.randrange(len(text))
        kind = rng.choice(["delete", "insert", "replace", "truncate", "double"])
        yield {
            "delete": text[:at] + text[at + 1 :],
            "insert": text[:at] + rng.choice(CHARACTERS) + text[at:],
            "replace": text[:at] + rng.choice(CHARACTERS) + text[at + 1 :],
            "truncate": text[:at],
            "double": text[:at] + text[at] + text[at:],
        }[kind]


def check(grammar_text, llama, llguidance, rng, *, samples, mutants):
    grammar = Grammar(grammar_text)
    written = [grammar.sample(rng) for _ in range(samples)]
    texts = written + [other for text in written for other in mutations(text, rng, mutants)]
    ours = [grammar.accepts(text) for text in texts]
    assert all(ours[:samples]), "the tests' reader refuses what it wrote"
    by_llama = llama.accepted(grammar_text, texts)
    assert by_llama is not None, f"llama.cpp refuses the grammar:\n{grammar_text}"
    accepts = llguidance(grammar_text)
    by_llguidance = [accepts(text) for text in texts]
    differences = [
        {"text": text, "ours": a, "llama.cpp": b, "llguidance": c}
        for text, a, b, c in zip(texts, ours, by_llama, by_llguidance, strict=True)
        if not a == b == c
    ]
    assert not differences, f"{differences[:3]}\n{grammar_text}"
    return ours


def tool(parameters, name="t"):
    return ToolContract.from_schema(name, "d", parameters)


VALUES = ["red", 'a "b"', "b\\s", 3, -2.5, None, True, "\u00e9"]
NODE = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 8},
        "next": {"$ref": "#/$defs/Node"},
        "more": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
    },
    "required": ["name"],
}
TOOL_SETS = {
    "two plain tools": [ADD, SEARCH],
    "odd names": [tool({}, name) for name in ["a.b", "a_b", "A-B", "\u67e5\u8be2", "9x", "x" * 70]],
    "no tools": [],
    "no parameters": [tool({"properties": {}})],
    "odd keys and values": [
        tool(
            {
                "properties": {
                    key: {"enum": [key, "\u00e9\u4e2d\U0001f438", "tab\there", "-]^[", 1.5, None]}
                    for key in [
                        'q"t',
                        "back\\slash",
                        "new\nline",
                        "gr\u00f6\u00dfe",
                        "a b",
                        "]",
                        "-",
                    ]
                },
                "required": ["a b"],
            }
        )
    ],
    "thirty optional parameters": [
        tool({"properties": {f"p{i}": {"type": ["string", "integer"]} for i in range(30)}})
    ],
    "anything": [tool({"properties": {"any": {}, "object": {"type": "object"}}})],
    "contains itself": [
        tool({"properties": {"n": {"$ref": "#/$defs/Node"}}, "$defs": {"Node": NODE}})
    ],
    "bounds": [
        tool(
            {
                "properties": {
                    "s": {"type": "string", "minLength": 2, "maxLength": 5},
                    "i": {"type": "integer", "minimum": -5, "maximum": 120},
                    "n": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
                    "a": {
                        "type": "array",
                        "items": {"type": "number"},
                        "minItems": 1,
                        "maxItems": 3,
                    },
                    "p": {"type": "string", "pattern": "^[a-z]{2,4}(-[0-9]+)?$"},
                    "d": {"type": "string", "format": "date"},
                },
                "required": ["s", "i", "n", "a"],
            }
        )
    ],
    "one of several shapes": [
        tool(
            {
                "properties": {
                    "shape": {
                        "oneOf": [
                            {
                                "type": "object",
                                "properties": {"kind": {"const": kind}, size: {"type": "number"}},
                                "required": ["kind", size],
                            }
                            for kind, size in [("circle", "radius"), ("square", "side")]
                        ]
                    },
                    "at": {
                        "type": "array",
                        "prefixItems": [{"type": "number"}, {"type": "number"}],
                        "items": False,
                        "minItems": 2,
                    },
                },
                "required": ["shape"],
            }
        )
    ],
}


@pytest.mark.gguf
@pytest.mark.parametrize("name", TOOL_SETS)
@pytest.mark.parametrize(("calls", "thought"), [(1, False), (3, True)])
@pytest.mark.parametrize("dialect", ["action", "hermes"])
def test_engines_agree_on_representative_tools(name, calls, thought, dialect, llama, llguidance):
    grammar = tool_grammar(TOOL_SETS[name], max_calls=calls, thought=thought, dialect=dialect)
    rng = random.Random(f"{name} {calls}")
    verdicts = check(grammar, llama, llguidance, rng, samples=8, mutants=8)
    assert not all(verdicts)


@pytest.mark.gguf
def test_engines_agree_on_the_built_in_tools(tmp_path, llama, llguidance):
    tools = [tool.contract for tool in builtin_tools(toolset("default"), tmp_path)]
    check(tool_grammar(tools), llama, llguidance, random.Random(1), samples=20, mutants=8)


ANSWERS = [
    "1 << 2, <<<, <t<to<too<tool<x, a <t", "<p>", "<<p", "<toolbox>", "ends with <", "<t<too<tool.",
    "<", "<tool_call>", "a <tool_call>", "<<tool_call>", "<t<tool_response>", "a\n<tool_", " a", "",
    "{", "a{", '```json\n{"a": 1}\n```',
]  # fmt: skip


@pytest.mark.gguf
@pytest.mark.parametrize("tools", [[], [ADD]])
def test_engines_agree_on_where_an_answer_of_hermes_ends(tools, llama, llguidance):
    text = tool_grammar(tools, dialect="hermes")
    ours = [Grammar(text).accepts(answer) for answer in ANSWERS]
    accepts = llguidance(text)
    assert ours == [accepts(answer) for answer in ANSWERS]
    assert ours == llama.accepted(text, ANSWERS)
    assert ours == [True] * 6 + [False] * 8 + [True] * 3


# llguidance cuts a grammar that contains itself into lexemes and takes the longest one at each
# place, where llama.cpp tries everything. What is written like this is safe with both: whole keys,
# texts and numbers are rules of their own, and no literal spans what another alternative writes
# in several parts.
LEXEMES = r"""
key ::= "\"" char{1,128} "\": "
string ::= "\"" char{0,1900} "\""
char ::= [^"\\\x00-\x1f] | "\\" ["\\bfnrt]
integer ::= "-"? ( "0" | [1-9] [0-9]{0,17} )
number ::= integer ( "." [0-9]{1,16} )?
"""
RECURSIVE = {
    "a free key beside a named one": r"""
root ::= "{" ( pair ( ", " pair ){0,9} )? "}"
pair ::= "\"foo\": " integer | key root
""",
    "a text beside literals": r"""
root ::= "\"red\"" | "\"re\"" | string | "[" root ( ", " root )* "]"
""",
    "numbers beside literals": r"""
root ::= "1" | "10" | integer | number | "[" root ( ", " root )* "]"
""",
    "an object that holds itself": r"""
root ::= "{" "\"a\": " string ( ", " "\"next\": " root )? "}"
""",
}


@pytest.mark.gguf
@pytest.mark.parametrize("name", RECURSIVE)
def test_engines_agree_on_grammars_that_contain_themselves(name, llama, llguidance):
    rules = RECURSIVE[name] + LEXEMES
    check(rules.lstrip(), llama, llguidance, random.Random(name), samples=20, mutants=10)


def random_schema(rng, depth=0):
    """A schema as tools have them."""
    kinds = ["string", "text", "integer", "bounded", "number", "boolean", "enum", "const", "null"]
    if depth < 3:
        kinds += ["array", "tuple", "object", "object", "any of", "several", "all of", "ref"] * 2
    kind = rng.choice(kinds)
    inner = lambda: random_schema(rng, depth + 1)  # noqa: E731
    least = rng.randint(0, 3)
    made = {
        "string": lambda: {"type": "string"},
        "text": lambda: {"type": "string", "minLength": least, "maxLength": least + 4},
        "bounded": lambda: {"type": "integer", "minimum": -least, "maximum": 10**least + 7},
        "enum": lambda: {"enum": rng.sample(VALUES, 3)},
        "const": lambda: {"const": rng.choice(["fixed", 7, {"a": [1, None]}])},
        "array": lambda: {
            "type": "array", "items": inner(), "minItems": least, "maxItems": least + 2
        },
        "tuple": lambda: {
            "type": "array", "prefixItems": [inner(), inner()], "items": rng.choice([False, True])
        },
        "object": lambda: random_object(rng, depth),
        "any of": lambda: {rng.choice(["anyOf", "oneOf"]): [inner() for _ in range(least + 1)]},
        "all of": lambda: {"allOf": [random_object(rng, depth), random_object(rng, depth)]},
        "several": lambda: {"type": rng.sample(["string", "integer", "null", "boolean"], 2)},
        "ref": lambda: {"$ref": "#/$defs/Node"},
    }  # fmt: skip
    return made.get(kind, lambda: {"type": kind})()


def random_object(rng, depth):
    names = rng.sample(["path", "query", "gr\u00f6\u00dfe", "a b", 'q"t', "n-1", "back\\slash"], 4)
    names = names[: rng.randint(0, 4)]
    made = {
        "type": "object",
        "properties": {name: random_schema(rng, depth + 1) for name in names},
        "required": [name for name in names if rng.random() < 0.5],
    }
    if rng.random() < 0.6:
        made["additionalProperties"] = rng.choice([False, False, True, {"type": "integer"}])
    return made


@pytest.mark.gguf
@pytest.mark.parametrize("seed", range(100))
def test_engines_agree_on_random_schemas(seed, llama, llguidance):
    rng = random.Random(seed)
    schema = {**random_object(rng, 0), "$defs": {"Node": NODE}}
    try:
        grammar = tool_grammar([tool(schema)], max_calls=rng.randint(1, 3), thought=seed % 2 == 0)
    except ConfigError as error:
        pytest.skip(f"refused with a message: {error}")
    check(grammar, llama, llguidance, rng, samples=5, mutants=4)
