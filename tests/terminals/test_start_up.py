"""Whatever start-up files do, a terminal opens: with integration, or within its patience without (T20, T21)."""

import asyncio
import shutil
from pathlib import Path

import pytest
from tests.conftest import lacking
from tests.terminals.conftest import Speech, StartUp

from tarmac.terminals import Result, Settings, Terminal, open_terminal
from tarmac.terminals.events import NoShellIntegration, TerminalEvent
from tarmac.terminals.terminal import Provider

pytestmark = pytest.mark.shell

PATIENCE = 3.0


async def opened(
    speech: Speech, cwd: Path, *, home: Path | None = None, patience: float = PATIENCE
) -> tuple[Terminal, Result, list[TerminalEvent], str]:
    """Open a terminal, run one command that counts itself, and say how often it ran."""
    events: list[TerminalEvent] = []
    settings = Settings(shell_integration_timeout=patience, environment={"HOME": str(home)} if home is not None else {})
    async with (
        asyncio.timeout(patience + 8),
        open_terminal(cwd=cwd, shell=speech.shell, settings=settings, listener=events.append) as terminal,
    ):
        result = await terminal.run("echo ran >> count; echo out")
        again = await terminal.run("echo again")
        assert (again.output, again.exit_code) == ("again\n", 0)
    return terminal, result, events, (cwd / "count").read_text()


async def all_opened(
    speech: Speech, folder: Path, texts: list[str], *, patience: float = PATIENCE
) -> list[tuple[Terminal, Result, list[TerminalEvent], str]]:
    """One terminal for each start-up file, at once, each in a directory and with a home of its own."""
    waits = []
    for number, text in enumerate(texts):
        home, cwd = folder / f"home{number}", folder / str(number)
        home.mkdir()
        cwd.mkdir()
        StartUp(speech, home).write(text)
        waits.append(opened(speech, cwd, home=home, patience=patience))
    return await asyncio.gather(*waits)


WORKS = {
    "all": "echo hello; echo oops >&2",
    "bash": """set -u -o pipefail; shopt -s extglob; PS1='$(echo dyn) \\w> '; PROMPT_COMMAND='true'
trap ': "$_"' DEBUG; bind '"\\C-m": self-insert' 2>/dev/null; bind 'set editing-mode vi' 2>/dev/null; stty -echo""",
    "zsh": "setopt no_unset prompt_subst ksh_arrays sh_word_split extended_glob correct_all auto_cd\n"
    "bindkey -v; stty -echo; bindkey '^M' self-insert; accept-line() { zle -M no }; zle -N accept-line\n"
    "alias -g L='| less'; TRAPDEBUG() { : }",
    "fish": "set -g fish_trace ''; fish_vi_key_bindings; bind \\r ''; bind -M insert \\r ''; stty -echo\n"
    "function fish_prompt; sleep 0.05; echo '> '; end",
}


@pytest.mark.parametrize("kind", ["all", "own"])
async def test_start_up_files_that_print_and_turn_everything_around_do_no_harm(
    tmp_path: Path, speech: Speech, start_up: StartUp, kind: str
) -> None:
    """T20, T21: options, vi mode, a remapped Enter, a replaced accept-line, echo off: the command runs all the same."""
    start_up.write(WORKS["all" if kind == "all" else speech.shell] + "\n")
    terminal, result, events, count = await opened(speech, tmp_path)
    assert (terminal.provider, result.exit_code, result.notes, count) == ("pty", 0, (), "ran\n")
    assert result.output.splitlines()[-1] == "out"
    assert not [each for each in events if isinstance(each, NoShellIntegration)]


async def test_an_exit_on_error_in_start_up_files_is_the_users_own(
    tmp_path: Path, speech: Speech, start_up: StartUp
) -> None:
    """T20: `set -e` of theirs is on: our words never set it off, a failing command of the agent's does."""
    if speech.shell == "fish":
        pytest.skip("fish has no such option")
    start_up.write("set -e\n")
    async with open_terminal(cwd=tmp_path, shell=speech.shell) as terminal:
        fine = [await terminal.run(each) for each in ("echo one", "! true", "false || echo two", "cd /")]
        bad = await terminal.run("false; echo never")
    assert [each.output for each in fine] == ["one\n", "", "two\n", ""]
    assert (bad.exit_code, bad.output, bad.reason) == (1, "", "terminal closed")


TRACES = {"bash": "set -x", "zsh": "setopt xtrace", "fish": "set -g fish_trace 1"}


async def test_a_trace_turned_on_at_start_up_is_the_users_own(
    tmp_path: Path, speech: Speech, start_up: StartUp
) -> None:
    """T20: it shows the agent's commands. (In fish it shows our words, too: a known difference.)"""
    start_up.write(TRACES[speech.shell] + "\n")
    async with open_terminal(cwd=tmp_path, shell=speech.shell) as terminal:
        results = [await terminal.run("echo out"), await terminal.run("echo out; false")]
    assert [each.exit_code for each in results] == [0, 1]
    for each in results:
        lines = each.output.splitlines()
        assert "out" in lines
        assert any(line.endswith(" echo out") for line in lines)
    assert speech.shell == "fish" or "__tarmac" not in "".join(each.output for each in results)


async def test_slow_start_up_files_cost_the_integration_and_run_the_command_once(
    tmp_path: Path, speech: Speech, start_up: StartUp
) -> None:
    """T21, D45: 8 s of sleep; after the patience it goes through `exec`, with one warning, and once."""
    start_up.write("sleep 8\n")
    terminal, result, events, count = await opened(speech, tmp_path, patience=0.6)
    assert (terminal.provider, result.output, count) == ("exec", "out\n", "ran\n")
    assert len([each for each in events if isinstance(each, NoShellIntegration)]) == 1


QUESTIONS = {
    "bash": ["read -p 'Update? [Y/n] ' x", "read -n 1 -p 'Update? [Y/n] ' x", "read -s -p 'Passphrase: ' x"],
    "zsh": ["read -q 'x?Update? [Y/n] '", "read 'x?Update? [Y/n] '", "vared -p 'Update? ' -c x"],
    "fish": ["read -P 'Update? [Y/n] ' x", "read -n 1 -P 'Update? ' x", "read -s -P 'Passphrase: ' x"],
}


async def test_a_question_at_start_up_is_known_at_once_and_never_answered(
    tmp_path: Path, speech: Speech, start_up: StartUp
) -> None:
    """T21, D45: nothing is typed into it; the reason has its words."""
    texts = [f'{each}\necho "[$x]" > answered\n' for each in QUESTIONS[speech.shell]]
    before = asyncio.get_running_loop().time()
    for terminal, result, events, count in await all_opened(speech, tmp_path, texts, patience=20.0):
        (warning,) = [each for each in events if isinstance(each, NoShellIntegration)]
        assert (terminal.provider, result.output, count) == ("exec", "out\n", "ran\n")
        assert "Update?" in warning.why or "Passphrase" in warning.why
    assert asyncio.get_running_loop().time() - before < 5
    assert list(tmp_path.glob("*/answered")) == []


async def test_another_shell_in_its_place_is_taken_over(tmp_path: Path, speech: Speech, start_up: StartUp) -> None:
    """T20, D45: `exec other` in the start-up files: the integration is loaded again, in the other's words."""
    others = [each for each in ("bash", "zsh", "fish") if each != speech.shell]
    found = await all_opened(speech, tmp_path, [f"exec {other}\n" for other in others], patience=5.0)
    for other, (terminal, result, _, count) in zip(others, found, strict=True):
        assert (terminal.provider, terminal.shell.name, count) == ("pty", other, "ran\n")
        assert (result.output, result.evidence) == ("out\n", "mark")
        assert result.notes == (f"the start-up files put {other} in the place of {speech.shell}",)


async def test_a_program_in_its_place_that_cannot_be_driven_costs_the_integration(
    tmp_path: Path, speech: Speech, start_up: StartUp
) -> None:
    """T21, D45: also one that hides behind a relay."""
    if shutil.which("tmux") is None:
        lacking("tmux is not installed")
    texts = [f"exec {other}\n" for other in ("sh", "tmux", "cat")]
    for terminal, result, events, count in await all_opened(speech, tmp_path, texts, patience=1.5):
        assert (terminal.provider, result.output, count) == ("exec", "out\n", "ran\n")
        assert len([each for each in events if isinstance(each, NoShellIntegration)]) == 1


async def test_a_nested_shell_at_start_up_costs_the_integration(
    tmp_path: Path, speech: Speech, start_up: StartUp
) -> None:
    """T21: `bash` without exec waits for somebody: not for us."""
    start_up.write("HOME=/nowhere bash --norc\n" if speech.shell != "fish" else "bash --norc\n")
    terminal, result, _, count = await opened(speech, tmp_path, patience=5.0)
    assert (terminal.provider, result.output, count) == ("exec", "out\n", "ran\n")


@pytest.mark.parametrize("way", ["kill -9 $$", "exec true"])
async def test_start_up_files_that_end_the_shell_are_left_out_and_it_is_said(
    tmp_path: Path, speech: Speech, start_up: StartUp, way: str
) -> None:
    """T21, D45: once more without them. (fish itself does not heed an `exit` there.)"""
    start_up.write((way if speech.shell != "fish" else way.replace("$$", "$fish_pid")) + "\n")
    terminal, result, _, count = await opened(speech, tmp_path)
    assert (terminal.provider, result.output, count) == ("pty", "out\n", "ran\n")
    assert "it runs without them" in result.notes[0]


# --- Prompts people have ---

STARSHIP = {
    "bash": 'starship_precmd() { sleep 0.2; PS1="$(echo star) > "; echo precmd; }; PROMPT_COMMAND=starship_precmd',
    "zsh": "precmd_functions+=(star); star() { sleep 0.2; PROMPT='star> '; echo precmd }; RPROMPT='%*'",
    "fish": "function fish_prompt; sleep 0.2; echo 'star> '; end\n"
    "function star --on-event fish_prompt; sleep 0.1; echo precmd; end",
}


async def test_a_slow_prompt_that_prints_belongs_to_no_command(
    tmp_path: Path, speech: Speech, start_up: StartUp
) -> None:
    """T20: as starship's: a program in the hook."""
    start_up.write(STARSHIP[speech.shell] + "\n")
    _, result, _, count = await opened(speech, tmp_path)
    assert (result.output, result.exit_code, count) == ("out\n", 0, "ran\n")


DIRENV = {
    "bash": "_direnv() { export HERE=$PWD; }; PROMPT_COMMAND=_direnv",
    "zsh": "_direnv() { export HERE=$PWD }; typeset -ag precmd_functions; precmd_functions=(_direnv $precmd_functions)",
    "fish": "function _direnv --on-event fish_prompt; set -gx HERE $PWD; end",
}


async def test_a_hook_that_exports_at_each_prompt_works_for_the_agent_too(
    tmp_path: Path, speech: Speech, start_up: StartUp
) -> None:
    """T20: as direnv's: after `cd` the next command has the new directory's variables."""
    (tmp_path / "sub").mkdir()
    start_up.write(DIRENV[speech.shell] + "\n")
    async with open_terminal(cwd=tmp_path, shell=speech.shell) as terminal:
        await terminal.run("cd sub")
        result = await terminal.run("printenv HERE")
    assert result.output == f"{tmp_path / 'sub'}\n"


OH_MY_ZSH = """
typeset -ga precmd_functions preexec_functions
omz_precmd() { print -Pn "\\e]0;%~\\a"; print -n hook }
omz_preexec() { print -Pn "\\e]0;$1\\a"; print -n hook }
precmd_functions+=(omz_precmd); preexec_functions+=(omz_preexec)
precmd() { print -n more }
setopt prompt_subst auto_pushd hist_verify share_history prompt_cr
PROMPT='%{$fg[cyan]%}%c $(echo git)%{%}%# '; RPROMPT='%(?..%? )%*'; PS2='%_> '
autoload -Uz compinit && compinit -u
HISTFILE=~/.zsh_history HISTSIZE=100 SAVEHIST=100
"""
# Powerlevel10k's instant prompt: output goes to a file until the first prompt, and a descriptor redraws it later.
POWERLEVEL10K = """
exec {out}>&1 {err}>&2 >instant 2>&1
zmodload zsh/system
_p9k_precmd() {
  if (( out )); then exec >&$out 2>&$err {out}>&- {err}>&-; out=0; fi
  PROMPT='p10k %~ > '
  local fd; exec {fd}< <(echo async); zle -F $fd _p9k_async
}
_p9k_async() { local line; read -r line <&$1; zle -F $1; exec {1}<&-; PROMPT="$line $PROMPT"; zle reset-prompt }
precmd_functions+=(_p9k_precmd)
echo "console output of a start-up file"
"""


@pytest.mark.parametrize("theme", [OH_MY_ZSH, POWERLEVEL10K], ids=["oh-my-zsh", "powerlevel10k"])
async def test_the_frameworks_of_zsh_keep_working(tmp_path: Path, own_state: Path, theme: str) -> None:
    """T20: hooks, right prompt, instant prompt, redraws; the agent's results are its own, and a person types."""
    if shutil.which("zsh") is None:
        lacking("zsh is not installed")
    (own_state / ".zshrc").write_text(theme)
    async with open_terminal(cwd=tmp_path, shell="zsh") as terminal:
        first = [await terminal.run(f"echo {each}; (exit {each})") for each in range(3)]
        await terminal.type("echo person > theirs\r")
        theirs = await terminal.run("cat theirs")
        hooks = await terminal.run("print -r -- $precmd_functions; print -r -- $PROMPT")
    assert terminal.provider == "pty"
    assert [(each.output, each.exit_code) for each in first] == [("0\n", 0), ("1\n", 1), ("2\n", 2)]
    assert theirs.output == "person\n"
    assert ("omz_precmd" in hooks.output, "_p9k_precmd" in hooks.output) == (theme is OH_MY_ZSH, theme is POWERLEVEL10K)
    assert not (own_state / ".zsh_history").exists()


# --- Where zsh looks for its files ---


async def test_zsh_finds_its_files_as_without_us(tmp_path: Path, own_state: Path) -> None:
    """T20: a ZDOTDIR that .zshenv chooses is where .zshrc is read and completion dumps are kept; ours is never seen."""
    if shutil.which("zsh") is None:
        lacking("zsh is not installed")
    place = own_state / "my zsh"
    place.mkdir()
    (own_state / ".zshenv").write_text('ZDOTDIR="$HOME/my zsh"; ENV=1\n')
    (place / ".zshrc").write_text("RC=$ENV; autoload -Uz compinit && compinit -u; echo $ZDOTDIR > ~/seen\n")
    async with open_terminal(cwd=tmp_path, shell="zsh") as terminal:
        result = await terminal.run(
            "echo \"$RC $ZDOTDIR\"; zsh -c 'echo ${ZDOTDIR-none}'; print -r -- ${(k)parameters[(R)*export*]}"
        )
    assert result.output.splitlines()[0] == f"1 {place}"
    assert (own_state / "seen").read_text() == f"{place}\n"
    assert list(place.glob(".zcompdump*"))
    assert "ZDOTDIR" not in result.output.splitlines()[2].split()


async def test_without_start_up_files_none_is_read(tmp_path: Path, speech: Speech, start_up: StartUp) -> None:
    """T20: `start_up_files=False`."""
    start_up.write("touch read-it\n")
    if speech.shell == "zsh":
        start_up.write("touch read-it\n", ".zshenv")
    async with open_terminal(cwd=tmp_path, shell=speech.shell, settings=Settings(start_up_files=False)) as terminal:
        assert (await terminal.run("echo hi")).output == "hi\n"
    assert not (tmp_path / "read-it").exists()


async def test_a_zsh_whose_hooks_were_wiped_by_its_start_up_files_is_integrated(
    tmp_path: Path, own_state: Path
) -> None:
    """T20: `precmd_functions=()`: no mark comes, zsh waits in its editor, and the line is typed."""
    if shutil.which("zsh") is None:
        lacking("zsh is not installed")
    (own_state / ".zshrc").write_text("precmd_functions=()\n")
    async with open_terminal(cwd=tmp_path, shell="zsh") as terminal:
        result = await terminal.run("echo hi")
    assert (terminal.provider, result.output, result.notes) == ("pty", "hi\n", ())


@pytest.mark.parametrize("provider", ["pty", "exec"])
async def test_a_private_zdotdir_runs_the_users_files_and_goes_with_the_terminal(
    tmp_path: Path, speech: Speech, start_up: StartUp, provider: Provider
) -> None:
    """T23: `zdotdir`: what a zsh writes there is not the user's; their own files see their own place."""
    if shutil.which("zsh") is None:
        lacking("zsh is not installed")
    start_up.write("RC=$ZDOTDIR\n", ".zshrc")
    start_up.write("export ENV_RC=1\n", ".zshenv")
    settings = Settings(zdotdir=True)
    ask = """zsh -i -c 'echo "$ENV_RC $RC"; touch $ZDOTDIR/dump; echo $ZDOTDIR' 2>/dev/null"""
    async with open_terminal(cwd=tmp_path, shell=speech.shell, provider=provider, settings=settings) as terminal:
        place = Path((await terminal.run("printenv ZDOTDIR")).output.strip())
        result = await terminal.run(ask)
        assert result.output == f"1 {start_up.home}\n{place}\n"
        assert (place / "dump").exists()
    assert not place.exists()
    assert not (start_up.home / "dump").exists()


async def test_the_seeds_switches_reach_every_shell(tmp_path: Path, speech: Speech, start_up: StartUp) -> None:
    """T23: `zsh_oh_my`, `zsh_p10k`, `zsh_clear_eol_mark`."""
    on = Settings(zsh_oh_my=True, zsh_p10k=True)
    off = Settings(zsh_clear_eol_mark=False)
    names = "ITERM_SHELL_INTEGRATION_INSTALLED POWERLEVEL9K_TERM_SHELL_INTEGRATION PROMPT_EOL_MARK"
    found = []
    for settings in (on, off):
        async with open_terminal(cwd=tmp_path, shell=speech.shell, settings=settings) as terminal:
            found.append([(await terminal.run(f"printenv {name}")).output for name in names.split()])
    assert found == [["Yes\n", "true\n", "\n"], ["", "", ""]]


async def test_keys_that_start_up_files_export_are_not_there_for_commands(start_up: StartUp, tmp_path: Path) -> None:
    """T23: unset after the start-up files, by name or its beginning; once, so that a command may set one."""
    speech = start_up.speech
    names = ("ANTHROPIC_API_KEY", "AWS_SECRET_ACCESS_KEY", "AWS_X", "HARMLESS")
    start_up.write("\n".join(speech.export.format(name=each, value="s3cret") for each in names) + "\n")
    settings = Settings(secret_variables=("ANTHROPIC_API_KEY", "AWS_*", "TARMAC_*", "NOT_SET"))
    async with open_terminal(cwd=tmp_path, shell=speech.shell, settings=settings) as terminal:
        seen = await terminal.run("env | grep s3cret")
        assert seen.output == "HARMLESS=s3cret\n"
        assert "s3cret" not in (await terminal.run("echo $ANTHROPIC_API_KEY$AWS_X")).output
        assert (await terminal.run("env | grep -c TARMAC_TERMINAL")).output == "1\n"  # our own mark
        own = speech.export.format(name="ANTHROPIC_API_KEY", value="mine")
        assert (await terminal.run(f"{own}; env | grep -c ANTHROPIC_API_KEY=mine")).output == "1\n"
        assert terminal.quality == "rich"


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
async def test_a_key_that_can_not_be_unset_keeps_no_shell_from_coming_up(own_state: Path, tmp_path: Path) -> None:
    (own_state / ".bashrc").write_text("set -e; readonly OPENAI_API_KEY=x; export ANTHROPIC_API_KEY=s3cret\n")
    async with open_terminal(cwd=tmp_path, shell="bash") as terminal:
        result = await terminal.run("set +e; echo [$ANTHROPIC_API_KEY]")
        assert (result.output, result.exit_code, terminal.quality) == ("[]\n", 0, "rich")


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
async def test_a_universal_variable_of_fish_is_hidden_and_not_lost(own_state: Path, tmp_path: Path) -> None:
    """T23: it is the user's, for all shells to come."""
    (own_state / ".config/fish").mkdir(parents=True)
    stored = own_state / ".config/fish/fish_variables"
    head = "# This file contains fish universal variable definitions.\n# VERSION: 3.0\n"
    stored.write_text(f"{head}SETUVAR --export OPENAI_API_KEY:s3cret\n")
    async with open_terminal(cwd=tmp_path, shell="fish") as terminal:
        assert "s3cret" not in (await terminal.run("env | grep OPENAI_API_KEY; echo [$OPENAI_API_KEY]")).output
    assert "OPENAI_API_KEY:s3cret" in stored.read_text()
