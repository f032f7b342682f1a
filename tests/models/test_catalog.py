from pathlib import Path

import pytest

from runner.core.errors import ConfigError, ModelFileError
from runner.models import find_catalog, load_catalog, load_model
from runner.models.settings import ModelSettings

GOOD = """
default = "small"
[models.small]
path = "files/small.gguf"
sha256 = "%s"
license = "Apache-2.0"
context = 2048
sampling = { temperature = 0.7 }
[models.script]
kind = "scripted"
path = "turns.txt"
dialect = "tool-call"
""" % ("0" * 64)


@pytest.fixture
def write(tmp_path):
    def write_file(text):
        file = tmp_path / "models.toml"
        file.write_text(text)
        return file

    return write_file


def test_models_are_read_with_paths_relative_to_the_file(write, tmp_path):
    catalog = load_catalog(write(GOOD))
    assert catalog.default == "small"
    small = catalog.models["small"]
    assert small.path == tmp_path / "files/small.gguf"
    assert (small.context, small.sampling.temperature, small.kind) == (2048, 0.7, "gguf")


def test_the_projects_own_file_names_the_three_models():
    catalog = load_catalog(Path(__file__).parents[2] / "models.toml")
    assert catalog.default == "qwen2.5-coder-0.5b"
    assert set(catalog.models) == {"qwen2.5-coder-0.5b", "smollm2-135m", "gemma3-270m-base"}
    for settings in catalog.models.values():
        assert settings.sha256
        assert settings.source
        assert settings.license


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ('defalt = "x"', "'defalt'", "'default'"),
        ('[models.a]\npath = "x"\ncontxt = 1', "'models.a.contxt'", "'context'"),
        ('[models.a]\npath = "x"\nsampling = {temprature = 1}', "temprature", "'temperature'"),
        ('[models.a]\npath = "x"\ncontext = "big"', "models.a.context = 'big'", "models.md"),
        ('[models.a]\npath = "x"\nkind = "gpt"', "models.a.kind = 'gpt'", ""),
        ('[models.a]\npath = "x"\nsha256 = "abc"', "models.a.sha256 = 'abc'", ""),
        ('[models.a]\npath = "x"\nthinking = "yes"', "models.a.thinking = 'yes'", ""),
        ('[models.a]\npath = "x"\nthinking = {buget = 1}', "thinking.buget", "'budget'"),
        ('[models.a]\npath = "x"\nthinking = {budget = -1}', "thinking.budget = -1", ""),
        ('[models.a]\npath = "x"\ndialect = "Tool Call"', "models.a.dialect", ""),
        ('[models.a]\nlicense = "x"', "'path'", "path"),
        ('[models.q.5]\npath = "x"', "'models.q.5'", '[models."q.5"]'),
        ("default = []", "default = []", ""),
        ('[models.a]\npath = "x"\nthreads = 99999', "threads", ""),
        ('default = "b"\n[models.bb]\npath = "x"', "default = 'b'", "'bb'"),
        ("models = 3", "must be tables", "[models.NAME]"),
        ("[models]\na = 3", "models.a must be a table", ""),
        ("[models.a\n", "not valid TOML", ""),
    ],
)
def test_a_bad_file_is_an_error_that_names_the_key_and_what_to_do(write, text, message, hint):
    file = write(text)
    with pytest.raises(ConfigError) as caught:
        load_catalog(file)
    assert message in str(caught.value)
    assert str(file) in str(caught.value)
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("value", "budget", "close"),
    [
        ('"off"', 0, "</think>"),
        ('"on"', 1024, "</think>"),
        ("{ budget = 24 }", 24, "</think>"),
        ('{ open = "[T]", close = "[/T]" }', 1024, "[/T]"),
    ],
)
def test_thinking_is_a_word_or_a_table(write, value, budget, close):
    catalog = load_catalog(write(f'[models.a]\npath = "x"\nthinking = {value}'))
    thinking = catalog.models["a"].thinking
    assert (thinking.budget, thinking.close) == (budget, close)


def test_settings_come_back_from_json(write):
    settings = load_catalog(write(GOOD)).models["small"]
    assert ModelSettings.model_validate(settings.public()) == settings


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(ConfigError, match=r"nowhere\.toml"):
        load_catalog(tmp_path / "nowhere.toml")


def test_an_unknown_model_is_named_with_the_nearest_known_one(write):
    with pytest.raises(ConfigError, match="unknown model 'smal'") as caught:
        load_model("smal", config=write(GOOD))
    assert "'small'" in caught.value.hint


def test_without_a_default_a_model_must_be_chosen(write):
    with pytest.raises(ConfigError, match="no default"):
        load_model(config=write('[models.a]\npath = "x"'))


def test_a_model_whose_file_is_missing_says_where_it_should_be(write, tmp_path):
    with pytest.raises(ModelFileError, match=r"files/small\.gguf"):
        load_model(config=write(GOOD))


def test_scripted_models_come_from_a_text_file(write, tmp_path):
    (tmp_path / "turns.txt").write_text("ANSWER: one\n---\nANSWER: two\n")
    with load_model("script", config=write(GOOD)) as model:
        said = [model.generate([], grammar=None, max_tokens=9, seed=1).text for _ in range(2)]
    assert said == ["ANSWER: one", "ANSWER: two"]
    assert model.dialect == "tool-call"


def test_the_file_is_looked_for_here_before_elsewhere(write, tmp_path, monkeypatch):
    monkeypatch.delenv("RUNNER_MODELS", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert find_catalog() == Path(__file__).parents[2] / "models.toml"
    file = write(GOOD)
    assert find_catalog() == file
    monkeypatch.setenv("RUNNER_MODELS", "/elsewhere/models.toml")
    assert find_catalog() == Path("/elsewhere/models.toml")
