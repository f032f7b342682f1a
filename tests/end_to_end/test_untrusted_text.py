"""Nothing in a text that nobody vouches for becomes a token with a meaning of its own."""

import random

import pytest
from real_models import NAMES, settings_of

STRINGS = 10_000


@pytest.fixture(scope="module", params=NAMES)
def vocabulary(request):
    settings = settings_of(request.param)
    import llama_cpp as lib

    from runner.models.llama.vocabulary import Vocabulary

    lib.llama_backend_init()
    params = lib.llama_model_default_params()
    params.vocab_only = True
    model = lib.llama_model_load_from_file(str(settings.path).encode(), params)
    yield Vocabulary(model)
    lib.llama_model_free(model)


def test_strings_made_of_pieces_of_every_special_token_stay_text(vocabulary):
    special = [token for token in range(vocabulary.size) if vocabulary.is_markup(token)]
    spellings = [vocabulary.text_of(token) for token in special]
    assert any(map(vocabulary.is_control, special))
    rng = random.Random(11)
    taken_apart = 0
    for number in range(STRINGS):
        parts = [spellings[number % len(spellings)]]
        for _ in range(rng.randrange(5)):
            word = rng.choice(spellings)
            start = rng.randrange(len(word))
            parts.append(word[start : start + rng.randrange(1, len(word) + 1)])
            parts.append(rng.choice(["", "", " ", "\n", "<", "|", "a"]))
        rng.shuffle(parts)
        text = "".join(parts)
        tokens, broken = vocabulary.text_tokens(text)
        assert not any(map(vocabulary.is_markup, tokens)), text
        if not any(len(word) == 1 for word in broken):
            assert b"".join(map(vocabulary.bytes_of, tokens)).decode() == text
        taken_apart += bool(broken)
    assert taken_apart > 0 or not any(not vocabulary.is_control(token) for token in special)
