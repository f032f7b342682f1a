import pytest

from runner.core.errors import GrammarError
from runner.core.gbnf import check_gbnf, gbnf_problems

GOOD = [
    'root ::= "a"',
    'root ::= "a" | [b-d] | [^1-3x-]\n',
    "# comment\n\nroot ::= a-1? # more\na-1 ::= [a-z]{2,4}\r\n",
    'root ::= "a" |\n  "b"\n',
    'root ::= (\n  "a"\n  "b"\n)\n',
    'root ::=\n  "a"\n',
    'root ::= "é\\x41\\n\\\\\\"" [\\x00-\\x1f\\]\\[]',
    'root ::= list\nlist ::= "[" ( list ( ", " list ){0,63} )? "]"',
    'root ::= [a-z]* "."',
    'root ::= "a"{1999}',
    'root ::= "a"{3,}',
    'root ::= more{0,1900}\nmore ::= ", " "a"',
    'root ::= ( "a" ( "b" ){0,3} ){0,99}',
    'root ::= "a"\nunused ::= "b"',
]
BAD = {
    'start ::= "a"': "no rule 'root'",
    'root ::= "a" b': "refers to 'b', which is not defined",
    'root ::= "a"\nroot ::= "b"': "defined twice, first in line 1",
    'root ::= x_y\nx_y ::= "a"': "name 'x_y' is not read everywhere",
    'root ::= dataType\ndataType ::= "a"': "name 'dataType'",
    'root ::= 1a\n1a ::= "a"': "name '1a'",
    'root ::= root "a" | "b"': "begins with itself",
    'root ::= x? root "a" | "b"\nx ::= "c"': "begins with itself",
    'root ::= x\nx ::= y\ny ::= ( z x ) | "b"\nz ::= "q"*': "begins with itself",
    'root ::= "a" root': "never end",
    'root ::= "a" x | "b"\nx ::= "c" y\ny ::= "d" x': "never end",
    'root ::= "a" | ': "alternative is empty",
    'root ::= | "a"': "alternative is empty",
    "root ::= ()": "alternative is empty",
    "root ::=": "alternative is empty",
    'root ::= "a"{2000}': "too large",
    'root ::= "a"{0,5000}': "too large",
    'root ::= ( "a" x ){0,1999}\nx ::= "b"': "too large for what it repeats",
    'root ::= (("a"{0,99}){0,99}){0,99}': "too large for what it repeats",
    'root ::= ("a"*)*': "may be empty is repeated",
    'root ::= x+\nx ::= "a"?': "may be empty is repeated",
    'root ::= x{2,}\nx ::= ""': "may be empty is repeated",
    'root ::= "a"{,4}': "cannot be read",
    'root ::= "a"{4,2}': "cannot be read",
    'root ::= "a"++': "repeats a repetition",
    'root ::= * "a"': "repeats nothing",
    "root ::= .": "'.' is not read everywhere",
    'root ::= <[10]> "a"': "token reference",
    'root ::= "\\u00e9"': "escape",
    'root ::= [a\\-z]': "escape",
    'root ::= "a\\/b"': "escape",
    "root ::= [\\d]": "escape",
    "root ::= [-a]": "begins with '-'",
    "root ::= []": "class is empty",
    "root ::= 'a'": "cannot read",
    'root ::= "a': "cannot read",
    'root ::= ( "a"': "not closed",
    'root ::= "a" )': "closes nothing",
    'root ::= "a"\n  "b"': "outside a rule",
    'root ::= "a"\nword\n': "is no rule",
    "root ::= " + "(" * 65 + '"a"' + ")" * 65: "nested more than 64",
    'root ::= "' + "a" * 1_000_000 + '"': "more than 1000000",
}  # fmt: skip


@pytest.mark.parametrize("text", GOOD)
def test_portable_grammars_have_no_problems(text):
    assert gbnf_problems(text) == []
    check_gbnf(text)


@pytest.mark.parametrize("text", BAD)
def test_what_engines_refuse_or_read_differently_is_found(text):
    messages = [str(problem) for problem in gbnf_problems(text)]
    assert any(BAD[text] in message for message in messages), messages
    with pytest.raises(GrammarError):
        check_gbnf(text)


def test_a_problem_names_its_line_and_rule_and_what_to_do():
    (problem,) = gbnf_problems('root ::= x\n\n# more\nx ::= "a" | .\n')
    assert (problem.line, problem.rule) == (4, "x")
    with pytest.raises(GrammarError, match="line 4, rule 'x'") as raised:
        check_gbnf('root ::= x\n\n# more\nx ::= "a" | .\n')
    assert "class" in raised.value.hint


def test_all_problems_are_listed_in_the_order_of_their_lines():
    problems = gbnf_problems("root ::= a_b\na_b ::= .\nx ::= y\n")
    assert [problem.line for problem in problems] == sorted(p.line for p in problems)
    assert len(problems) == 3


def test_deep_and_long_grammars_are_read_without_recursion():
    deep = "root ::= " + "(" * 60_000 + '"a"' + ")" * 60_000
    assert any("nested" in str(problem) for problem in gbnf_problems(deep))
    chain = "".join(f'r{n} ::= r{n + 1} "x"\n' for n in range(20_000))
    assert gbnf_problems(f'root ::= r0\n{chain}r20000 ::= "a"\n') == []


@pytest.mark.parametrize("text", ["", "\n", "# only a comment", "\x00", "::=", "root", "{3}", "\\"])
def test_text_that_is_no_grammar_has_problems(text):
    assert gbnf_problems(text)
