"""Which build is taken and why; the fastest one of a comparison is kept for later set-ups."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from children import SetupError, say
from llama_profiles import Machine
from speed import PROMPT_TOKENS, WRITTEN_TOKENS
from wheel_cache import Build, Wheels

_TURNS = 3
# Times of one build, the best and the next: more apart than this is the work of others.
_QUIET = 1.1


@dataclass(frozen=True)
class Choice:
    """The key of the build that a comparison chose, and why."""

    key: str
    why: str


def kept(wheels: Wheels, candidates: Sequence[Build]) -> Choice | None:
    """What a comparison of the very same candidates chose; None when there was none."""
    file = _file(wheels, candidates)
    if not file.is_file():
        return None
    try:
        choice = Choice(**json.loads(file.read_text("utf-8")))
    except (ValueError, TypeError):
        return None
    return choice if choice.key in [build.key for build in candidates] else None


def keep(choice: Choice, wheels: Wheels, candidates: Sequence[Build]) -> None:
    """Keep a choice until the candidates change: by version, processor, flags or compilers."""
    file = _file(wheels, candidates)
    new = file.with_name(f".{file.name}.new")
    new.write_text(json.dumps(asdict(choice), indent=2) + "\n", "utf-8")
    new.replace(file)


def _file(wheels: Wheels, candidates: Sequence[Build]) -> Path:
    # By what was compared, since machines of different kinds may share a home folder.
    keys = json.dumps([build.key for build in candidates])
    return wheels.folder / f"choice-{hashlib.sha256(keys.encode()).hexdigest()[:12]}.json"


def preferring(
    choice: Choice | None, candidates: Sequence[Build], usual: Sequence[Build]
) -> list[Build]:
    """The usual builds in their order, after the chosen one of the candidates."""
    key = choice.key if choice else ""
    chosen = [build for build in candidates if build.key == key]
    return [*chosen, *(build for build in usual if build.key != key)]


def by_turns(
    tried: Sequence[Build], measure_again: Callable[[Build], Build], wheels: Wheels
) -> list[Build]:
    """The builds with the best of several measurements, and without those that died in one.

    All are measured before one is measured again: other work on the machine would else fall on
    some of them alone; one wheel has been seen to be 3.6 times slower than the very same one.
    """
    turns = {build.key: [build.speed.seconds] for build in tried if build.speed}
    builds = list(tried)
    for _ in range(_TURNS - 1 if len(builds) > 1 else 0):
        for place, before in enumerate(builds):
            after = measure_again(before)
            if after.speed:
                turns.setdefault(after.key, []).append(after.speed.seconds)
            if before.speed and after.checked:
                after = replace(after, speed=before.speed.best(after.speed))
            wheels.save(after)
            builds[place] = after
        builds = [build for build in builds if build.checked]
    spread = max((sorted(t)[1] / min(t) for t in turns.values() if len(t) > 1), default=1.0)
    if spread > _QUIET:
        say(
            f"  note: times of one and the same build differ by {spread - 1:.0%}, so this machine "
            "is busy and the choice is not certain; compare again when it is quiet"
        )
    return builds


def fastest(tried: Sequence[Build], candidates: Sequence[Build], wheels: Wheels) -> Choice:
    """Choose the build with the shortest typical turn, and print all of them.

    Parameters
    ----------
    tried
        The builds that work, with what was measured just now.
    candidates
        All that were to be compared.

    Raises
    ------
    SetupError
        No build could be measured.
    """
    times = {build.key: build.speed.seconds for build in tried if build.speed}
    if not times:
        raise SetupError("no build could be measured, so none was chosen; the reason is above")
    key = min(times, key=times.__getitem__)
    for line in _table(tried, candidates, key, wheels):
        say(line)
    (best,) = (build for build in tried if build.key == key)
    turn = f"{times[key]:.2f} s for {PROMPT_TOKENS} prompt tokens and {WRITTEN_TOKENS} written ones"
    rank = f"the fastest of {len(times)} that were compared" if len(times) > 1 else "the only one"
    return Choice(key, f"{rank}, {turn}, built with {best.compiler}")


def _table(
    tried: Sequence[Build], candidates: Sequence[Build], chosen: str, wheels: Wheels
) -> list[str]:
    results = {build.key: build for build in tried}
    turn = f"{PROMPT_TOKENS}+{WRITTEN_TOKENS} tokens"
    lines = [f"{'build':<24}{'prompt/s':>10}{'decode/s':>10}{turn:>16}"]
    for plan in candidates:
        build = results.get(plan.key)
        if build is None:
            known = wheels.read(plan.key)
            reason = known.reason if known else "it could not be built"
            lines.append(f"{plan.label:<24}  does not work here: {reason}")
        elif build.speed is None:
            lines.append(f"{build.label:<24}  was not measured")
        else:
            speed, mark = build.speed, "  <- chosen" if build.key == chosen else ""
            rates = f"{speed.prompt:>10.1f}{speed.decode:>10.1f}{speed.seconds:>14.2f} s"
            lines.append(f"{build.label:<24}{rates}{mark}")
    return lines


def why(
    build: Build,
    builds: Sequence[Build],
    machine: Machine,
    *,
    forced: bool = False,
    choice: Choice | None = None,
) -> str:
    """Why a build was taken from those that were to be tried, best first; in words."""
    if forced:
        return "as asked for"
    if choice and choice.key == build.key:
        return choice.why
    before = [one.label for one in builds[: [one.key for one in builds].index(build.key)]]
    if before:
        return f"the next best, since {', '.join(before)} did not work here"
    if machine.has_amx and build.profile != "native":
        return "AMX is there but no compiler that gets it right"
    if machine.has_amx:
        return f"AMX with {build.compiler.partition('.')[0]}"
    return "the best this processor can run"
