"""Homes: the start-up files that the fuzzed shells read."""

from pathlib import Path

NOISY = r"""
echo hello from a start-up file
printf '\033]0;title\007\033[31mred\033[m no newline'
echo to standard error >&2
false
"""
BASH = {
    "none": "",
    "plain": r"""
alias ll='ls -l'
export EDITOR=vi
PS1='\u@\h:\w\$ '
shopt -s histappend checkwinsize
""",
    "noisy": NOISY,
    "hooks": r"""
__clock() { local e=$?; PS1="[$e] \w \$ "; return $e; }
PROMPT_COMMAND='__clock; history -a'
PS0='\e[m'
PS1='\[\e[32m\]\w\n\$ \[\e[m\]'
""",
    "array hooks": "PROMPT_COMMAND=('true' 'echo -n' 'sleep 0.01')\n",
    "vi": r"""
set -o vi
bind '"\C-m": accept-line' 2>/dev/null
bind 'set show-mode-in-prompt on' 2>/dev/null
""",
    "debug trap": "__pre() { [[ $BASH_COMMAND == x ]] || return 0; }\ntrap '__pre' DEBUG\nset -T\n",
    "strict": "set -u -o pipefail\nset +u +o pipefail\nIFS=$' \\t\\n'\n",
}
ZSH = {
    "none": "",
    "plain": r"""
alias ll='ls -l'
export EDITOR=vi
PROMPT='%n@%m:%~%# '
setopt hist_ignore_dups share_history
autoload -Uz compinit
""",
    "noisy": NOISY,
    "hooks": r"""
setopt prompt_subst
autoload -Uz add-zsh-hook
__p() { local e=$?; PROMPT="[$e] %~ %# "; RPROMPT='%T' }
__x() { : }
add-zsh-hook precmd __p; add-zsh-hook preexec __x; add-zsh-hook chpwd __x
""",
    "vi": r"""
bindkey -v
zle-keymap-select() { zle reset-prompt }
zle -N zle-keymap-select
zle-line-init() { zle -K vicmd }
zle -N zle-line-init
""",
    "options": "setopt extended_glob no_nomatch interactive_comments auto_cd correct no_beep notify long_list_jobs\n",
}
FISH = {
    "none": "",
    "plain": "alias ll 'ls -l'\nset -gx EDITOR vi\n",
    "noisy": NOISY,
    "hooks": r"""
function fish_prompt; set -l e $status; echo "[$e] "(prompt_pwd)" > "; end
function fish_right_prompt; date +%T; end
function __a --on-event fish_preexec; true; end
function __b --on-event fish_postexec; false; end
function __c --on-event fish_prompt; true; end
""",
    "vi": "fish_vi_key_bindings\n",
}
HOMES = {"bash": BASH, "zsh": ZSH, "fish": FISH}
FILES = {"bash": ".bashrc", "zsh": ".zshrc", "fish": ".config/fish/config.fish"}


def make_home(folder: Path, shell: str, name: str) -> Path:
    """A home directory with that start-up file."""
    folder.mkdir()
    if text := HOMES[shell][name]:
        file = folder / FILES[shell]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder
