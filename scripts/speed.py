"""How fast a build reads a prompt and writes, as it was measured with one model."""

from __future__ import annotations

import re
from dataclasses import dataclass

PROMPT_TOKENS = 300
WRITTEN_TOKENS = 60
_LINE = re.compile(r"speed of (.+): prompt ([\d.]+), decode ([\d.]+) tokens/s, (\d+) threads")


@dataclass(frozen=True)
class Speed:
    """Rates in tokens per second, the model file, and the number of threads."""

    model: str
    prompt: float
    decode: float
    threads: int

    @property
    def seconds(self) -> float:
        """Time of a typical turn: `PROMPT_TOKENS` that are read and `WRITTEN_TOKENS` written."""
        return PROMPT_TOKENS / self.prompt + WRITTEN_TOKENS / self.decode

    def best(self, other: Speed | None) -> Speed:
        """The better rates of both; other work on the machine only ever makes one slower."""
        if other is None or (other.model, other.threads) != (self.model, self.threads):
            return self
        prompt, decode = max(self.prompt, other.prompt), max(self.decode, other.decode)
        return Speed(self.model, prompt, decode, self.threads)

    def __str__(self) -> str:
        rates = f"prompt {self.prompt:.1f}, decode {self.decode:.1f} tokens/s"
        return f"speed of {self.model}: {rates}, {self.threads} threads"


def parse_speed(line: str) -> Speed | None:
    """Read what ``str`` makes of a speed; None for any other line."""
    match = _LINE.fullmatch(line)
    if match is None:
        return None
    return Speed(match[1], float(match[2]), float(match[3]), int(match[4]))
