"""`tarmac demo`: a scripted model repairs a small project; everything but the model is real.

project/ ─copied→ a scratch folder ─ script.toml plays the model ─ App, terminals, policy, log as in `tarmac run`

It leaves nothing behind: the tasks, grants and settings of the person are neither used nor changed.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tarmac.cli.parser import parse
from tarmac.errors import BadRequest
from tarmac.show.look import Look, look_of, wrapped

HERE = Path(__file__).parent
TASK = "The tests fail. Repair that, and make a release."
AFTER = "`tarmac demo` plays it again"
STOPPED = 128  # and above: a signal ended it
PACE = 0.025  # seconds a word, for people who read along


def main(arguments: list[str]) -> int:
    """Play it; 0 when the task was completed and the tests pass."""
    given, words = parse("demo", arguments)
    if words:
        raise BadRequest(f"the demonstration takes no `{words[0]}`", hint='tarmac run "…" works on what you say')
    as_json = "json" in given
    yes = "yes" in given or as_json
    if not yes and not _anybody_there():
        raise BadRequest(
            "the demonstration asks one question, and nobody is here to answer", hint="tarmac demo --yes approves it"
        )
    look = Look() if as_json else look_of(sys.stdout, os.environ)
    folder = Path(tempfile.mkdtemp(prefix="tarmac-demo-"))
    try:
        if not as_json:
            _introduce(look, yes=yes)
        code = _play(folder, yes=yes, as_json=as_json, fast="fast" in given or as_json or not look.live)
        if code >= STOPPED:
            return code
        passes = _tests_pass(folder / "durations")
        if not as_json:
            _conclude(look, folder, completed=not code, passes=passes, keep="keep" in given)
        return code or (0 if passes else 1)
    finally:
        if "keep" not in given:
            shutil.rmtree(folder, ignore_errors=True)


def _anybody_there() -> bool:
    from tarmac.cli.person import is_attended

    return is_attended(as_json=False)


def _introduce(look: Look, *, yes: bool) -> None:
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")
    _say(look, "A demonstration. The model is a script, written beforehand: it understands nothing.", colour="1")
    risky = "one of high risk is approved by --yes, as you said." if yes else "one of high risk waits for your answer."
    _say(
        look,
        "All else is real: the project and its failing test, the terminals, the edit, the log, and the judgement of "
        f"each command. Those of medium risk run by themselves here (--auto workspace); {risky}\n",
    )
    print(look.paint("1;34", f"❯ {TASK}"), flush=True)


def _say(look: Look, text: str, *, colour: str = "") -> None:
    lines = "\n".join(wrapped(text, look.columns - 1))
    print(look.paint(colour, lines) if colour else lines)


def _play(folder: Path, *, yes: bool, as_json: bool, fast: bool) -> int:
    from tarmac.cli.shutdown import Stop, run

    project = folder / "durations"
    shutil.copytree(HERE / "project", project, ignore=shutil.ignore_patterns("__pycache__"))
    script = folder / "demo.toml"
    text = (HERE / "script.toml").read_text()
    script.write_text(text if fast else text.replace("[[turn]]\n", f"[[turn]]\npace = {PACE}\n"))
    environ = dict(os.environ) | {
        "TARMAC_STATE_DIR": str(folder / "state"),
        "TARMAC_CONFIG_DIR": str(folder / "config"),
    }

    async def play(stop: Stop) -> int:
        from tarmac.app import open_app
        from tarmac.cli.task_driver import drive
        from tarmac.config import load_config

        config = load_config(project, environ, {"model": f"scripted/{script}", "auto": "workspace"})
        async with (
            open_app(config, environ=environ) as app,
            app.create_task(TASK, attended=True) as task,
        ):
            app.registry.contribute_path("demo", Path(sys.executable).parent)
            word = "tarmac demo --yes" if yes else ""
            return await drive(app, task, stop, as_json=as_json, yes=word, offers=False, after=AFTER)

    return run(play)


def _tests_pass(project: Path) -> bool:
    """Looked at once more, by ourselves."""
    done = subprocess.run([sys.executable, "-m", "unittest"], cwd=project, capture_output=True, timeout=60, check=False)
    return done.returncode == 0


def _conclude(look: Look, folder: Path, *, completed: bool, passes: bool, keep: bool) -> None:
    if not (completed and passes):
        what = "the task was not completed" if not completed else "the tests of the project fail"
        print(f"\n{look.paint('1;31', 'Something went wrong')}: {what}.")
        return
    _say(look, "\nThe tests of the project were run once more, and pass.")
    if (folder / "durations" / "old-builds").exists():
        _say(look, "You did not allow the release, and it was not made: what the script says of it is not true.")
    if keep:
        print(f"The project: {folder / 'durations'}\nThe log:     TARMAC_STATE_DIR={folder / 'state'} tarmac tasks")
    else:
        _say(look, "The project is gone now; --keep leaves it.")
    _say(look, 'With your own model: tarmac run "make the tests pass"; the terminals alone: tarmac tour.')
