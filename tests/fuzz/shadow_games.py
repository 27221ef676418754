"""Games with what our integration lives by: prompts, hooks, and the words it is made of."""

import re

from tests.fuzz.pieces import Draw
from tests.fuzz.steps import Game, Step


def prompts(draw: Draw) -> Game:
    tag = draw.tag()
    texts = {
        "bash": [
            "PS1='$ '",
            "PS1=",
            "unset PS1",
            "PS0='started '",
            "PROMPT_COMMAND=",
            "unset PROMPT_COMMAND",
            "PROMPT_COMMAND='echo noise'",
            "PROMPT_COMMAND=(true 'PS1=\"\\w \"')",
            "PS1='\\[\\e]0;\\w\\a\\]$(date) \\n$ '",
            "PROMPT_COMMAND='PS1=\"[$?] \"'",
            "PS2=; PS4=",
            "PROMPT_DIRTRIM=1",
        ],
        "zsh": [
            "PS1='%% '",
            "PROMPT=",
            "RPROMPT='%~ right'",
            "precmd() { echo noise; }",
            "precmd_functions=()",
            "preexec() { echo noise >/dev/null; }",
            "PROMPT=$'%n\\n%# '",
            "setopt prompt_subst; PROMPT='$(date) '",
            "unset PROMPT",
        ],
        "fish": [
            "function fish_prompt; echo '> '; end",
            "function fish_prompt; end",
            "function fish_right_prompt; echo right; end",
            "function fish_prompt; echo noise >&2; false; end",
            "functions -e fish_prompt",
            "function fish_title; echo title; end",
        ],
    }[draw.shell]
    return Game(
        "prompt",
        (
            Step(text=draw.rng.choice(texts)),
            Step(text=f"echo {tag}; sh -c 'exit 4'", output=f"{tag}\n", code=4),
            Step(text=f"echo {tag}b", output=f"{tag}b\n"),
        ),
    )


def shadowed(draw: Draw) -> Game:
    """Words that our integration may need mean something else."""
    tag = draw.tag()
    games = {
        "bash": [
            ("alias printf=false echo=false eval=false", "\\unalias -a"),
            ("printf() { :; }", "unset -f printf"),
            ("eval() { :; }", "unset -f eval"),
            ("set() { :; }", "unset -f set"),
            ("trap() { :; }", "unset -f trap"),
            ("read() { :; }", "unset -f read"),
            ('cd() { builtin cd "$@"; }', "unset -f cd"),
            ("enable -n printf", "enable printf"),
            ("enable -n eval", "enable eval"),
            ("enable -n read mapfile", "enable read mapfile"),
            ("enable -n builtin", "enable builtin"),
            ("OLDP=$PATH; PATH=", "PATH=$OLDP"),
            ("IFS=0123456789", "unset IFS"),
            ("set -o noclobber", "set +o noclobber"),
            ("set -f", "set +f"),
            ("set -k", "set +k"),
            ("set -v", "set +v"),
            ("set -o posix", "set +o posix"),
            ("shopt -s extdebug", "shopt -u extdebug"),
            ("shopt -u expand_aliases", "shopt -s expand_aliases"),
            ("shopt -s nullglob dotglob extglob failglob", "shopt -u nullglob dotglob extglob failglob"),
            ("set -o vi", "set -o emacs"),
            ("set -T; set -E", "set +T; set +E"),
            ("set -b", "set +b"),
            ("set +m", "set -m"),
            ("set +o history; HISTFILE=/dev/null", ":"),
            ("exec 2>/dev/null", "exec 2>/dev/tty"),
            ("umask 777", "umask 022"),
            ("ulimit -c 0", ":"),
            ("LC_ALL=C", "unset LC_ALL"),
            ("OPTIND=5; REPLY=x; BASH_REMATCH=1", ":"),
            ("TMOUT=60", "unset TMOUT"),
        ],
        "zsh": [
            ("alias printf=false echo=false eval=false", "\\unalias -m '*'"),
            ("printf() { :; }", "unfunction printf"),
            ("read() { :; }", "unfunction read"),
            ('cd() { builtin cd "$@"; }', "unfunction cd"),
            ("disable printf", "enable printf"),
            ("OLDP=$PATH; PATH=", "PATH=$OLDP"),
            ("IFS=0123456789", "IFS=$' \\t\\n\\0'"),
            ("setopt no_clobber", "setopt clobber"),
            ("setopt ksh_arrays", "unsetopt ksh_arrays"),
            ("setopt sh_word_split", "unsetopt sh_word_split"),
            ("setopt extended_glob null_glob", "unsetopt extended_glob null_glob"),
            ("setopt no_unset", "setopt unset"),
            ("setopt ignore_braces", "unsetopt ignore_braces"),
            ("setopt no_glob", "setopt glob"),
            ("setopt posix_builtins", "unsetopt posix_builtins"),
            ("setopt auto_cd auto_pushd", "unsetopt auto_cd auto_pushd"),
            ("setopt correct_all", "unsetopt correct_all"),
            ("setopt no_aliases", "setopt aliases"),
            ("bindkey -v", "bindkey -e"),
            ("exec 2>/dev/null", "exec 2>/dev/tty"),
            ("umask 777", "umask 022"),
            ("unset HISTFILE; HISTSIZE=0", ":"),
            ("typeset -g status_x=1; psvar=(a b)", ":"),
        ],
        "fish": [
            ("function printf; end", "functions -e printf"),
            (
                "functions -c cd cd0; function cd; builtin cd $argv; end",
                "functions -e cd; functions -c cd0 cd; functions -e cd0",
            ),
            ("function eval; end", "functions -e eval"),
            ("function read; end", "functions -e read"),
            ("set -g OLDP $PATH; set PATH", "set PATH $OLDP"),
            ("fish_vi_key_bindings", "fish_default_key_bindings"),
            ("umask 777", "umask 022"),
            ("set -g fish_greeting hello", ":"),
            ("function __x --on-event fish_postexec; true; end", "functions -e __x"),
            ("function __x --on-event fish_preexec; false; end", "functions -e __x"),
            ("function __x --on-variable PWD; true; end", "functions -e __x"),
            ("set -g fish_trace_x 1", ":"),
            ("bind -e \\r", "bind \\r execute"),
            ("abbr -a echo false", "abbr -e echo"),
        ],
    }[draw.shell]
    before, after = draw.rng.choice(games)
    # A shadowed word does not do what it says: so these two print by other means.
    return Game(
        f"shadowed: {before}",
        (
            Step(text=before, output=None, code=None, keeps_last=False),
            Step(text=f"/bin/echo {tag}; /bin/sh -c 'exit 4'", output=re.compile(f"(.*\n)*{tag}\n(.*\n)*"), code=4),
            Step(text=after, output=None, code=None, keeps_last=False),
            Step(text=f"echo {tag}b", output=f"{tag}b\n"),
        ),
    )
