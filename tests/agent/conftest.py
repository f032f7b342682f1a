"""Tests of the loop read grammars with the tests' own reader."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "protocol"))
