"""Text <-> turns: grammars to write by, prompts to read, a parser for what comes back."""

from runner.core.errors import ProtocolError
from runner.protocol.gbnf import Grammar, build_grammar, tool_grammar
from runner.protocol.parse import parse_turn

__all__ = ["Grammar", "ProtocolError", "build_grammar", "parse_turn", "tool_grammar"]
