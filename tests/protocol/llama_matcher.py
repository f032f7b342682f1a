"""Asks llama.cpp's grammar sampler whether texts belong to a grammar, in a process of its own.

A grammar that llama.cpp does not like can end the process that it is in. Only the vocabulary of a
model is loaded, which takes a blink. Run as a program, this file is that process: it answers each
line ``{"grammar": ..., "texts": [...]}`` with ``{"accepted": [...]}``, null for a refused grammar.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path


class LlamaMatcher:
    """A child process that has the vocabulary of ``model`` loaded. Close it after use."""

    def __init__(self, model: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__, str(model)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
        )

    def accepted(self, grammar: str, texts: list[str]) -> list[bool] | None:
        """For each text whether it belongs to the grammar; None where the grammar is refused."""
        print(json.dumps({"grammar": grammar, "texts": texts}), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        assert line, f"llama.cpp ended its process ({self.process.wait()}) on:\n{grammar}"
        return json.loads(line)["accepted"]

    def close(self) -> None:
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(10)


def serve(path: str) -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the native code prints is no answer
    import ctypes

    import llama_cpp as lib
    import numpy as np

    lib.llama_backend_init()
    params = lib.llama_model_default_params()
    params.vocab_only = True
    model = lib.llama_model_load_from_file(path.encode(), params)
    vocab = lib.llama_model_get_vocab(model)
    end = lib.llama_vocab_eos(vocab)
    candidate = np.zeros(1, [("id", np.int32), ("logit", np.float32), ("p", np.float32)])
    data = ctypes.cast(candidate.ctypes.data, lib.llama_token_data_p)

    def tokens_of(text: str) -> list[int]:
        raw = text.encode()
        found = (lib.llama_token * (len(raw) + 8))()
        count = lib.llama_tokenize(vocab, raw, len(raw), found, len(found), False, False)
        return list(found[:count])

    def allowed(sampler: object, token: int) -> bool:
        candidate[0] = (token, 1.0, 0.0)
        array = lib.llama_token_data_array(data, 1, -1, False)
        lib.llama_sampler_apply(sampler, ctypes.byref(array))
        return bool(np.isfinite(candidate[0]["logit"]))

    def accepts(fresh: object, text: str) -> bool:
        sampler = lib.llama_sampler_clone(fresh)
        try:
            for token in tokens_of(text):
                if not allowed(sampler, token):
                    return False
                lib.llama_sampler_accept(sampler, token)
            return allowed(sampler, end)
        finally:
            lib.llama_sampler_free(sampler)

    for line in sys.stdin:
        asked = json.loads(line)
        fresh = lib.llama_sampler_init_grammar(vocab, asked["grammar"].encode(), b"root")
        accepted = None
        if fresh:
            accepted = [accepts(fresh, text) for text in asked["texts"]]
            lib.llama_sampler_free(fresh)
        print(json.dumps({"accepted": accepted}), file=answers, flush=True)


if __name__ == "__main__":
    serve(sys.argv[1])
