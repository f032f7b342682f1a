"""`models.toml`: which models there are, and which one is the default."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from platformdirs import user_config_path
from pydantic import BaseModel, ValidationError

from runner.core import toml
from runner.core.errors import ConfigError
from runner.models.llama.model import LlamaModel
from runner.models.scripted import ScriptedModel
from runner.models.settings import ModelSettings, Sampling, Thinking

FILE_NAME = "models.toml"
ENVIRONMENT = "RUNNER_MODELS"
_TABLES: dict[str, type[BaseModel]] = {"sampling": Sampling, "thinking": Thinking}


@dataclass(frozen=True)
class Catalog:
    """The models of one file. Paths in it are relative to ``file``'s folder.

    Attributes
    ----------
    file
        The `models.toml` that was read.
    default
        Name of the default model, or None.
    models
        Name -> settings, with absolute paths.
    """

    file: Path
    default: str | None
    models: dict[str, ModelSettings]

    def name_of(self, name: str | None) -> str:
        """``name`` itself where it is known, the default for None.

        Raises
        ------
        ConfigError
            Unknown name, or no default.
        """
        if name is None:
            if self.default is None:
                raise ConfigError(
                    f'{self.file} names no default model (`default = "NAME"` at its top)',
                    hint=f"choose one with --model: {', '.join(self.models)}",
                )
            return self.default
        if name not in self.models:
            raise ConfigError(
                f"unknown model {name!r}; {self.file} has: {', '.join(self.models) or 'none'}",
                hint=_did_you_mean(name, self.models) or "add a [models.NAME] table to that file",
            )
        return name


def find_catalog() -> Path:
    """The `models.toml` to use: $RUNNER_MODELS, this folder, the user's, or the checkout's.

    Raises
    ------
    ConfigError
        None of them exists.
    """
    chosen = os.environ.get(ENVIRONMENT)
    if chosen:
        return Path(chosen)
    places = [Path.cwd() / FILE_NAME, user_config_path("runner") / FILE_NAME]
    checkout = Path(__file__).parents[2]
    if (checkout / "pyproject.toml").is_file():
        places.append(checkout / FILE_NAME)
    for place in places:
        if place.is_file():
            return place
    raise ConfigError(
        f"no {FILE_NAME} found; looked at {', '.join(map(str, places))}",
        hint=f"write one, or point ${ENVIRONMENT} or --config at it",
    )


def load_catalog(file: Path | None = None) -> Catalog:
    """Read and check a `models.toml`.

    Raises
    ------
    ConfigError
        Missing, not TOML, an unknown key or a wrong value; names the key and the nearest known.
    """
    file = (file or find_catalog()).expanduser().absolute()
    try:
        data = toml.loads(file.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(
            f"cannot read {file}: {error.strerror}", hint="correct --config or $RUNNER_MODELS"
        ) from error
    except (toml.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{file} is not valid TOML: {error}", hint="correct that line") from error
    for key in data:
        if key not in ("default", "models"):
            raise _unknown_key(file, key, ("default", "models"))
    tables = data.get("models", {})
    if not isinstance(tables, dict):
        raise ConfigError(
            f"{file}: 'models' must be tables, found {type(tables).__name__}",
            hint="write [models.NAME] above the keys of a model",
        )
    models = {name: _settings(file, name, table) for name, table in tables.items()}
    default = data.get("default")
    catalog = Catalog(file, default, models)
    if default is not None and (not isinstance(default, str) or default not in models):
        raise ConfigError(
            f"{file}: default = {default!r} names no [models.NAME] table",
            hint=_did_you_mean(str(default), models) or f"known: {', '.join(models) or 'none'}",
        )
    return catalog


def load_model(
    name: str | None = None, *, config: Path | None = None
) -> LlamaModel | ScriptedModel:
    """A model of `models.toml`, which begins to load. A context manager.

    Parameters
    ----------
    name
        Its name there; None for the default.
    config
        The file; None to look for it as `find_catalog` does.

    Raises
    ------
    ConfigError
        Unknown name or bad file.
    ModelFileError
        The model file is missing, cut short or no GGUF.
    """
    catalog = load_catalog(config)
    name = catalog.name_of(name)
    settings = catalog.models[name]
    if settings.kind == "scripted":
        return ScriptedModel.from_file(settings.path, name=name, dialect=settings.dialect)
    model = LlamaModel(name, settings, catalog.file.parent)
    model.start()
    return model


def _settings(file: Path, name: str, table: Any) -> ModelSettings:
    if not isinstance(table, dict):
        raise ConfigError(f"{file}: models.{name} must be a table, found {table!r}")
    where = f"models.{name}"
    known = tuple(ModelSettings.model_fields)
    for key, value in table.items():
        if key not in known:
            error = _unknown_key(file, f"{where}.{key}", known)
            if isinstance(value, dict):
                error.hint = f'quote a name that has a dot: [models."{name}.{key}"]'
            raise error
        for inner in value if key in _TABLES and isinstance(value, dict) else ():
            fields = tuple(_TABLES[key].model_fields)
            if inner not in fields:
                raise _unknown_key(file, f"{where}.{key}.{inner}", fields)
    if "path" not in table and "source" not in table:
        raise ConfigError(
            f"{file}: {where} has neither 'path' nor 'source'",
            hint="give the model file's path, relative to the folder of that file",
        )
    try:
        settings = ModelSettings.model_validate({"path": f"models/{name}.gguf", **table})
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise ConfigError(
            f"{file}: {where}.{key} = {first['input']!r}: {first['msg']}",
            hint="docs/models.md lists the keys and their values",
        ) from error
    path = Path(os.path.expanduser(settings.path))  # noqa: PTH111 -- leaves "~nobody/x" as it is
    return settings.model_copy(update={"path": file.parent / path})


def _unknown_key(file: Path, key: str, known: Iterable[str]) -> ConfigError:
    known = tuple(known)
    return ConfigError(
        f"{file}: unknown key {key!r}",
        hint=_did_you_mean(key.rpartition(".")[2], known) or f"known keys: {', '.join(known)}",
    )


def _did_you_mean(name: str, known: Iterable[str]) -> str:
    close = [other for other in known if name and other.startswith(name)]
    close += difflib.get_close_matches(name, list(known), n=1, cutoff=0.4)
    return f"did you mean {close[0]!r}?" if close else ""
