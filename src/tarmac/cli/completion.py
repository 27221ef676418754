"""`tarmac completion bash|zsh|fish`: completion scripts, written from the table of the parser."""

import shlex
from collections.abc import Iterator

from tarmac.cli.parser import TABLE, Option, parse
from tarmac.cli.verb_list import VERBS
from tarmac.errors import BadRequest

FOLDERS = {"DIR"}
FILES = {"FILE", "PATH"}


def main(arguments: list[str]) -> int:
    """Print the script of a shell; the exit code."""
    _, words = parse("completion", arguments)
    scripts = {"bash": bash, "zsh": zsh, "fish": fish}
    if len(words) != 1 or words[0] not in scripts:
        raise BadRequest("which shell?", hint=f"tarmac completion {' | '.join(scripts)}")
    print(scripts[words[0]]())
    return 0


def bash() -> str:
    """PURE: a function for bash's `complete`."""
    cases = []
    for verb, spec in TABLE.items():
        flags = " ".join(["--help", *(f"--{each.name}" for each in spec.options)])
        valued = "".join(f"          --{each.name}) {_bash_value(each)} ;;\n" for each in spec.options if each.value)
        values = f'        case "$previous" in\n{valued}        esac\n' if valued else ""
        first = f'        [ "$COMP_CWORD" = 2 ] && words="{" ".join(spec.actions)}"\n' if spec.actions else ""
        if spec.names:
            first = f'        [ "$COMP_CWORD" = 2 ] && words="$({spec.names} 2>/dev/null | cut -d " " -f 1)"\n'
        cases.append(f'      {verb})\n{values}{first}        words="$words {flags}"\n        ;;\n')
    verbs = " ".join([*VERBS, "--help", "--version"])
    return f"""\
# bash completion of tarmac
_tarmac() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}" words=""
  if [ "$COMP_CWORD" = 1 ]; then
    words="{verbs}"
  else
    case "${{COMP_WORDS[1]}}" in
      help) words="{" ".join(TABLE)}" ;;
{"".join(cases)}    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o bashdefault -o default -F _tarmac tarmac"""


def _bash_value(option: Option) -> str:
    if option.values:
        return f'COMPREPLY=($(compgen -W "{" ".join(option.values)}" -- "$word")); return'
    return f'COMPREPLY=($(compgen {"-d" if option.value in FOLDERS else "-f"} -- "$word")); return'


def zsh() -> str:
    """PURE: a function for zsh's completion system."""
    verbs = "\n".join(f"      {shlex.quote(f'{verb}:{_plain(line)}')}" for verb, line in VERBS.items())
    cases = []
    for verb, spec in TABLE.items():
        rows = [shlex.quote(f"*--{each.name}[{_plain(each.what)}]{_zsh_value(each)}") for each in spec.options]
        rows += [shlex.quote(f"1:what:({' '.join(spec.actions)})")] if spec.actions else []
        rows += (
            [shlex.quote(f"1:name:{{compadd -- $({spec.names} 2>/dev/null | cut -d ' ' -f 1)}}")] if spec.names else []
        )
        rows += [shlex.quote("--help[show this page]"), shlex.quote("*:file:_files")]
        cases.append(f"    {verb}) _arguments {' '.join(rows)} ;;\n")
    return f"""\
#compdef tarmac
# zsh completion of tarmac
_tarmac() {{
  if (( CURRENT == 2 )); then
    local -a verbs=(
{verbs}
    )
    _describe 'command' verbs
    return
  fi
  local verb=$words[2]
  words=("${{words[@]:1}}")
  (( CURRENT-- ))
  case "$verb" in
    help) _values 'command' {" ".join(TABLE)} ;;
{"".join(cases)}  esac
}}
if [ "$funcstack[1]" = _tarmac ]; then _tarmac "$@"; else compdef _tarmac tarmac; fi"""


def _zsh_value(option: Option) -> str:
    if not option.value:
        return ""
    if option.values:
        return f":{option.value}:({' '.join(option.values)})"
    return f":{option.value}:{'_files -/' if option.value in FOLDERS else '_files' if option.value in FILES else ' '}"


def fish() -> str:
    """PURE: `complete` lines for fish."""
    return "\n".join(["# fish completion of tarmac", "complete -c tarmac -f", *_fish_lines()])


def _fish_lines() -> Iterator[str]:
    for verb, line in VERBS.items():
        yield f"complete -c tarmac -n __fish_use_subcommand -a {verb} -d {_quoted(line)}"
    for verb, spec in TABLE.items():
        when = f"-n '__fish_seen_subcommand_from {verb}'"
        for action in spec.actions:
            yield f"complete -c tarmac {when} -a {action}"
        if spec.names:
            yield f"complete -c tarmac {when} -a '({spec.names} 2>/dev/null | string split -f 1 \" \")'"
        for each in spec.options:
            value = " -r" if each.value else ""
            if each.values:
                value += f" -a {_quoted(' '.join(each.values))}"
            elif each.value in FOLDERS:
                value += " -a '(__fish_complete_directories)'"
            elif each.value in FILES:
                value += " -F"
            yield f"complete -c tarmac {when} -l {each.name}{value} -d {_quoted(each.what)}"


def _plain(text: str) -> str:
    """Without what the completion languages read as their own."""
    return "".join(" " if each in "[]:'`\"\\$()" else each for each in text)


def _quoted(text: str) -> str:
    return "'" + _plain(text).replace("'", " ") + "'"
