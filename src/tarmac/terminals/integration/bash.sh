# Tarmac's shell integration for bash (4.4 or newer).
#
# A command is not typed. The host writes its bytes to $__tarmac_in, then types one constant line (shells.py):
#
#   __tarmac_load         reads the file, moves, prints the start mark C;n
#   eval "$__tarmac_cmd"  runs the bytes at top level, so that declare, trap and set mean what they mean at a prompt
#   __tarmac_done         prints the end mark D;n;status;pipestatus;directory
#
# Marks go to the terminal itself, so that `exec >file` swallows none, and carry a nonce, so that output forges none.
# An interrupt discards the rest of the line and with it the end mark: the prompt carries the same facts (A).
# Everything here runs in the user's shell, under whatever options, functions and aliases it has become: hence
# `\builtin`, `${x-}`, no bare test as a last statement (set -e), no external program at all (PATH=), and few words:
# this is on the path of every command (a redirection costs 10 µs, an open of /dev/tty 30).

# Sourced again, it heals: what it remembers stays.
__tarmac_n=${__tarmac_n-0}         # the command loaded last: nothing runs twice
__tarmac_ended=$__tarmac_n         # the command that ended last, and what it left in $?, PIPESTATUS and $_
__tarmac_status=${__tarmac_status-0}
__tarmac_last=${__tarmac_last-}
__tarmac_person=${__tarmac_person-0} # 0: the host drives, line editor off; 2, 1, 3: a person's line is next, edited, done
__tarmac_ps0=${__tarmac_ps0-${PS0-}}
__tarmac_ps1=${__tarmac_ps1--}     # our PS1; not yet made
__tarmac_cmd= __tarmac_inner= __tarmac_hooks= __tarmac_pwd= __tarmac_where=
__tarmac_tty=255 # an interactive bash keeps its terminal there, closed for children
if [[ ! -t 255 ]]; then \builtin exec {__tarmac_tty}>/dev/tty; fi

# `builtin` itself may have become a function. In posix mode special builtins come before functions, and an
# assignment is all it takes to enter it.
__tarmac_heal() {
  __tarmac_ok=
  \builtin eval __tarmac_ok=1
  if [[ -z $__tarmac_ok ]]; then
    POSIXLY_CORRECT=1
    \unset -f builtin
    \unset POSIXLY_CORRECT
  fi
}

# What would end a mark, or be changed by the terminal on its way, as \xHH. In and out: __tarmac_text.
__tarmac_escape() {
  if [[ $__tarmac_text == *[$'\\\a\e\n\r;']* ]]; then
    __tarmac_text=${__tarmac_text//\\/\\x5c} __tarmac_text=${__tarmac_text//;/\\x3b}
    __tarmac_text=${__tarmac_text//$'\a'/\\x07} __tarmac_text=${__tarmac_text//$'\e'/\\x1b}
    __tarmac_text=${__tarmac_text//$'\n'/\\x0a} __tarmac_text=${__tarmac_text//$'\r'/\\x0d}
  fi
}
__tarmac_find() {
  __tarmac_pwd=${PWD-} __tarmac_text=${PWD-}
  __tarmac_escape
  __tarmac_where=$__tarmac_text
}

# Whole lines that were sent to a command which ended without reading them: the shell would run them as commands.
__tarmac_drain() {
  __tarmac_heal
  \builtin local left=100
  while [[ -t 0 ]] && ((left-- > 0)) && \builtin read -t 0; do
    \builtin read -r -t 0.1 || \builtin break
  done
  \builtin return 0
}

# What the host wants, each ended by NUL: number, directory ('' to stay), command, last line (a note, or nothing).
__tarmac_load() {
  __tarmac_f=() __tarmac_inner=
  \builtin mapfile -d '' -t __tarmac_f <"$__tarmac_in"
  if ((${#__tarmac_f[@]} == 4 && __tarmac_f[0] > __tarmac_n)) &&
    [[ -z ${__tarmac_f[1]} && $- != *[xv]* && ! -o history ]]; then
    __tarmac_n=${__tarmac_f[0]} __tarmac_cmd=${__tarmac_f[2]}${__tarmac_f[3]}
  else
    __tarmac_load_oddly
    if [[ -n $__tarmac_why ]]; then \builtin return 0; fi
  fi
  # Without a start mark nothing may run: the host would not know.
  if ! \builtin printf '\e]633;C;%s;%s\a' "$__tarmac_nonce" "$__tarmac_n" >&"$__tarmac_tty"; then
    \builtin exec {__tarmac_tty}>/dev/tty
    \builtin printf '\e]633;C;%s;%s\a' "$__tarmac_nonce" "$__tarmac_n" >&"$__tarmac_tty" || __tarmac_cmd=
  fi
  \builtin return "${__tarmac_status%% *}"
}

# The same, when there is more to do: move, refuse, keep quiet under set -x and -v, stay out of the history.
__tarmac_load_oddly() {
  __tarmac_why=
  if ((${#__tarmac_f[@]} == 0)); then
    __tarmac_heal
    \builtin mapfile -d '' -t __tarmac_f <"$__tarmac_in"
  fi
  if [[ -o history ]]; then
    \builtin history -d -1
    \builtin set +o history +o histexpand
  fi
  if ((${#__tarmac_f[@]} != 4 || __tarmac_f[0] <= __tarmac_n)); then
    __tarmac_why=stale
  else
    __tarmac_n=${__tarmac_f[0]}
    if [[ -n ${__tarmac_f[1]} ]]; then
      \builtin cd -- "${__tarmac_f[1]}" &>/dev/null || __tarmac_why=cd
    fi
  fi
  if [[ -n $__tarmac_why ]]; then
    __tarmac_ended=$__tarmac_n
    \builtin printf '\e]633;X;%s;%s;%s\a' "$__tarmac_nonce" "${__tarmac_f[0]-0}" "$__tarmac_why" >&"$__tarmac_tty"
  elif [[ $- == *x* ]]; then
    # The trace of our own `eval` must not show: tracing goes off here and on again inside.
    \builtin set +x
    __tarmac_cmd="{ \\builtin set -x; __tarmac_restore \"\$__tarmac_last\"; } 2>/dev/null; ${__tarmac_f[2]}"
  elif [[ $- == *v* ]]; then
    __tarmac_cmd=${__tarmac_f[2]}
  else
    __tarmac_cmd=${__tarmac_f[2]}${__tarmac_f[3]}
  fi
}

# After eval, PIPESTATUS and $_ are eval's own: noted inside, by a last line (shells.py: room_for_note).
__tarmac_note() { __tarmac_inner="$? ${PIPESTATUS[*]}" __tarmac_arg=$_; }

# $? and $_ (the last argument) as the last command left them.
__tarmac_restore() { \builtin return "${__tarmac_status%% *}"; }

# Called with standard output on the terminal. The status: what the note inside says ("1 1 0" of a pipeline), or $1.
__tarmac_done() {
  if ((__tarmac_ended == __tarmac_n)); then \builtin return 0; fi # it was not run: the X mark said so
  __tarmac_status=${__tarmac_inner:-$1} __tarmac_last=${__tarmac_arg-} __tarmac_ended=$__tarmac_n
  if \builtin read -t 0; then __tarmac_drain; fi
  if [[ ${PWD-} != "$__tarmac_pwd" || ${PROMPT_COMMAND[*]-} != "$__tarmac_hooks" ]]; then
    __tarmac_find
    __tarmac_hook
  fi
  \builtin printf '\e]633;D;%s;%s;%s;%s\a' "$__tarmac_nonce" "$__tarmac_n" "$__tarmac_status" "$__tarmac_where"
  \builtin return "${__tarmac_status%% *}"
}

# Keep our hook last in PROMPT_COMMAND, whatever the command did to it.
__tarmac_hook() {
  if [[ ! -v PROMPT_COMMAND || ( ${PROMPT_COMMAND[*]-} != *__tarmac_prompt && ${PROMPT_COMMAND@a} != *r* ) ]]; then
    \builtin local -a kept
    \builtin local one
    kept=()
    for one in "${PROMPT_COMMAND[@]-}"; do
      if [[ $one != *__tarmac_prompt* && -n $one ]]; then kept+=("$one"); fi
    done
    if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] > 500)); then
      PROMPT_COMMAND=(${kept[@]+"${kept[@]}"} __tarmac_prompt)
    else
      PROMPT_COMMAND="${kept[*]:+${kept[*]}; }__tarmac_prompt"
    fi
  fi
  __tarmac_hooks=${PROMPT_COMMAND[*]-}
}

# Before every prompt, after the user's own hooks. bash itself keeps $? for what follows.
__tarmac_prompt() {
  __tarmac_now=$?
  if [[ $__tarmac_ended == "$__tarmac_n" && $__tarmac_person == 0 && -t 2 && ${PS1-} == "$__tarmac_ps1" &&
    $BASHOPTS == *promptvars* ]]; then
    \builtin return 0
  fi
  __tarmac_heal
  if [[ $__tarmac_ended != "$__tarmac_n" ]]; then
    # A command was loaded and __tarmac_done never came: interrupted.
    __tarmac_ended=$__tarmac_n __tarmac_status=${__tarmac_inner:-$__tarmac_now}
    __tarmac_drain
  fi
  __tarmac_find
  case $__tarmac_person in
    2) __tarmac_person=1 ;; # this prompt is the person's
    1 | 3) __tarmac_person=3 __tarmac_status=$__tarmac_now ;; # their line is done
  esac
  __tarmac_hook
  if [[ ! -v PS1 || ( $PS1 != "$__tarmac_ps1" && ${PS1@a} != *r* ) ]]; then
    # The user's prompt between two marks. A: number, whose turn, $?, the number that ended before it with its status
    # (or only what its note said, if our own words are gone), directory.
    if [[ ${PS1-} != *__tarmac_nonce* ]]; then
      __tarmac_ps1='\[\e]633;A;$__tarmac_nonce;$__tarmac_n;$__tarmac_person;$?;$__tarmac_ended;$__tarmac_status'
      __tarmac_ps1+=';$__tarmac_inner;$__tarmac_where\a\]'${PS1-}'\[\e]633;B;$__tarmac_nonce\a\]'
      PS1=$__tarmac_ps1
    else
      __tarmac_ps1=$PS1 # something put itself around ours: (venv) …
    fi
  fi
  if [[ ! -t 2 || $BASHOPTS != *promptvars* || $PS1 != "$__tarmac_ps1" ]]; then
    # The prompt can't carry the mark: it goes to standard error, which leads elsewhere, or is read-only.
    \builtin printf '\e]633;A;%s;%s;%s;%s;%s;%s;;%s\a' "$__tarmac_nonce" "$__tarmac_n" "$__tarmac_person" \
      "$__tarmac_now" "$__tarmac_ended" "$__tarmac_status" "$__tarmac_where" >&"$__tarmac_tty"
  fi
  \builtin return 0
}

# A person takes over for one line: line editor and history on, and PS0 tells what they run. Executed as a command of
# its own, as bash changes between its two ways of reading only between lines.
__tarmac_hand_over() {
  __tarmac_person=2
  if [[ -o history ]]; then \builtin history -d -1; fi # this line
  __tarmac_ps0=${PS0-}
  PS0='$(__tarmac_started)'${PS0-}
  \builtin set -o "$__tarmac_editor" -o history
  \builtin bind -x '"\e[7776~": __tarmac_take_back' &>/dev/null
}
__tarmac_started() {
  __tarmac_text=$(HISTTIMEFORMAT= \builtin history 1)
  __tarmac_text=${__tarmac_text#*[0-9]  }
  __tarmac_escape
  \builtin printf '\e]633;E;%s;%s;%s\a' "$__tarmac_nonce" "$__tarmac_n" "$__tarmac_text" >/dev/tty
}

# The host takes over again: it types two private keys, which work in every keymap and whatever Enter has become. The
# first puts our line into an empty editor, the second accepts it; a line the person has begun meanwhile stays theirs.
__tarmac_take_back() {
  if [[ -n $READLINE_LINE || $__tarmac_person != 3 ]]; then
    \builtin bind '"\e[7777~": redraw-current-line'
    \builtin return 0
  fi
  \builtin bind '"\e[7777~": accept-line'
  PS0=$__tarmac_ps0
  READLINE_LINE=' __tarmac_driven'
}
__tarmac_driven() {
  __tarmac_person=0
  \builtin history -d -1 # this line
  \builtin set +o emacs +o vi +o history +o histexpand
  __tarmac_restore
}

# The exported variables, for the host to read: at the start, and when it asks between commands.
__tarmac_export() { \builtin export -p >|"$1"; }

__tarmac_editor=emacs
if [[ -o vi ]]; then __tarmac_editor=vi; fi
HISTFILE=/dev/null # an agent's lines are none of the user's history
__tarmac_hook
__tarmac_export "$__tarmac_in.env"
\builtin printf '\e]633;P;%s;Shell=bash;Version=%s\a' "$__tarmac_nonce" "$BASH_VERSION" >&"$__tarmac_tty"
