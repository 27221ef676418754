# Tarmac's shell integration for bash (4.4 or newer).
#
# A command is not typed, unless it is a few plain words and the prompt before it said that all is calm: see PS0, PS1.
# The host writes its bytes to $__tarmac_in, then types one constant line (dialects/bash.py):
#
#   __tarmac_load         reads the file, moves, prints the start mark C;n
#   eval "$__tarmac_cmd"  runs the bytes at top level, so that declare, trap and set mean what they mean at a prompt
#   __tarmac_done         notes what came of it; the end mark is the prompt's own (A), or one before it (D)
#
# Marks go to the terminal itself, so that `exec >file` swallows none, and carry a nonce, so that output forges none.
# An interrupt discards the rest of the line: the prompt's mark tells of its end all the same.
# Everything here runs in the user's shell, under whatever options, functions and aliases it has become: hence
# `\builtin`, `${x-}`, no bare test as a last statement (set -e), no external program at all (PATH=), and few words:
# this is on the path of every command (a redirection costs 10 µs, an open of /dev/tty 30). And no `x=(…)`: an interrupt
# in the middle of one leaves bash's parser inside it, and the shell ends.

# Sourced again, it heals: what it remembers stays.
__tarmac_n=${__tarmac_n-0}         # the command loaded last: nothing runs twice
__tarmac_ended=$__tarmac_n         # the command that ended last, and what it left in $? and PIPESTATUS
__tarmac_status=${__tarmac_status-0}
__tarmac_k=${__tarmac_k-0}         # lines executed so far, counted by PS0; before the last prompt; when one was last loaded
__tarmac_at=$__tarmac_k __tarmac_slow=$__tarmac_k
__tarmac_natural=                  # $_ before the last prompt; after a loaded line it is ours, and theirs is in
__tarmac_last=${__tarmac_last-} __tarmac_from=${__tarmac_from--1} # here, if that is the line it is from
__tarmac_person=${__tarmac_person-0} # 0: the host drives, line editor off; 2, 1, 3: a person's line is next, edited, done
__tarmac_ps0=${__tarmac_ps0-${PS0-}}
__tarmac_ps1=${__tarmac_ps1--}     # our PS1; not yet made
__tarmac_x=${__tarmac_x-}          # set -x was on when the last command ended
__tarmac_now=0 __tarmac_guarded= __tarmac_calm=- __tarmac_fast= __tarmac_why= __tarmac_cmd= __tarmac_inner= __tarmac_code= __tarmac_pwd= __tarmac_where=
# An interactive bash keeps its terminal at 255, closed for children; with few descriptors it can't, and we open our own.
if [[ ! -v __tarmac_tty ]]; then
  __tarmac_tty=255
  if [[ ! -t 255 ]]; then \exec {__tarmac_tty}>/dev/tty; fi
  \builtin readonly __tarmac_tty
fi

# `builtin` itself may have become a function. In posix mode special builtins come before functions, and an
# assignment is all it takes to enter it.
__tarmac_heal() {
  if [[ ${_+${_@a}} == *i* ]]; then \declare -g +i _; fi # after `declare -i _` the last word of whatever runs must be a number
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

# Load the command in the file; the one argument is what $_ was.
__tarmac_load() {
  # Without these nothing of ours works, and a command may have turned them off (`enable -n eval`). It takes 6 µs.
  \builtin enable eval local mapfile printf read return set || \enable builtin eval local mapfile printf read return set
  if ((__tarmac_slow != __tarmac_k - 1)); then __tarmac_status=$__tarmac_now; fi # of a line that was typed
  __tarmac_inner= __tarmac_code= __tarmac_why= __tarmac_slow=$__tarmac_k
  __tarmac_load_file
  if [[ -n $__tarmac_why ]]; then \builtin return 0; fi
  \builtin printf '\e]633;C;%s;%s\a' "$__tarmac_nonce" "$__tarmac_n" >&"$__tarmac_tty" || __tarmac_mark_start
  if [[ $__tarmac_status != 0* ]]; then \builtin return "${__tarmac_status%% *}"; fi
}
# Without a start mark nothing may run: the host would not know.
__tarmac_mark_start() {
  \builtin printf '\e]633;C;%s;%s\a' "$__tarmac_nonce" "$__tarmac_n" >/dev/tty || __tarmac_cmd=
}

# The start mark of words that were typed after a move, or why they are not run.
__tarmac_go() { \builtin printf '\e]633;C;%s;%s\a' "$__tarmac_nonce" "$1" >&"$__tarmac_tty"; }
__tarmac_stay() {
  \builtin printf '\e]633;X;%s;%s;cd\a' "$__tarmac_nonce" "$1" >&"$__tarmac_tty"
  \builtin return 1
}

# Read, refuse, move, keep quiet under set -x and -v, stay out of the history. The file: number, directory ('' to stay),
# text, last line (a note, "e" and a note for set -e only, or nothing), and perhaps the line count it is meant for (the
# host had typed these words before, and must not have them run twice); NUL after each.
__tarmac_load_file() {
  \builtin mapfile -d '' -t __tarmac_f <"$__tarmac_in"
  if ((${#__tarmac_f[@]} == 0)); then
    __tarmac_heal
    \builtin mapfile -d '' -t __tarmac_f <"$__tarmac_in"
  fi
  if [[ -o history ]]; then
    \builtin history -d -1
    \builtin set +o history +o histexpand
  fi
  if ((${#__tarmac_f[@]} < 4 || __tarmac_f[0] <= __tarmac_n || ${__tarmac_f[4]-__tarmac_k} != __tarmac_k)); then
    __tarmac_why=stale
  else
    __tarmac_n=${__tarmac_f[0]}
    if [[ -n ${__tarmac_f[1]} ]]; then
      \builtin cd -- "${__tarmac_f[1]}" &>/dev/null || __tarmac_why=cd
    fi
  fi
  if [[ -z $__tarmac_why && ${__tarmac_f[2]} == *set*[-+]o* ]]; then __tarmac_guard_set; fi
  if [[ -z $__tarmac_why && ${__tarmac_f[2]} == *exit* ]]; then __tarmac_guard_exit; fi
  if [[ -n $__tarmac_why ]]; then
    __tarmac_ended=$__tarmac_n
    \builtin printf '\e]633;X;%s;%s;%s\a' "$__tarmac_nonce" "${__tarmac_f[0]-0}" "$__tarmac_why" >&"$__tarmac_tty"
  elif [[ -n $__tarmac_x || $- == *x* ]]; then
    # Our own words must not show in a trace: it is on only while the command runs.
    { \builtin set +x; } 2>/dev/null
    __tarmac_x=
    __tarmac_cmd="{ \\builtin set -x; __tarmac_restore \"\${__tarmac_last[__tarmac_k-1!=__tarmac_from]-\$__tarmac_natural}\"; } 2>/dev/null; ${__tarmac_f[2]}"
  elif [[ $- == *v* || ( ${__tarmac_f[3]} == e* && $- != *e* ) ]]; then
    __tarmac_cmd=${__tarmac_f[2]}
  else
    __tarmac_cmd=${__tarmac_f[2]}${__tarmac_f[3]#e}
  fi
}

# `eval 'set -o vi'` crashes bash 5.2 when it runs without a line editor. A command that says so gets this `set` for its
# time: the editor is for a person's lines, and theirs will have it. (Not where `set --` is meant to last.)
__tarmac_guard_set() {
  if [[ ${__tarmac_f[2]} == *set*[-+]o*@(vi|emacs)* && ${__tarmac_f[2]} != *'set --'* ]]; then
    set() {
      if [[ $# -eq 2 && $1 == [-+]o && $2 == @(vi|emacs) ]]; then
        if [[ $1 == -o ]]; then __tarmac_editor=$2; fi
      else
        \builtin set "$@"
      fi
    }
    __tarmac_guarded+=' set'
  fi
}

# When `exit` ends it, bash prints "exit", as after a typed line: that would be output of the command. A command that says
# so gets this `exit` for its time. (Not where it could be told apart: by a trap that runs inside it, or in a trace.)
__tarmac_says_exit='(^|[;&|(){'$'\n''])[[:space:]]*((then|else|do)[[:space:]]+)?exit([[:space:];&|)}]|$)'
__tarmac_unlike_exit='exit[[:space:]]*\(|trap|set[[:space:]]+-[a-zA-Z]*[xT]|trace|posix'
__tarmac_guard_exit() {
  if [[ ${__tarmac_f[2]} =~ $__tarmac_says_exit && ! ${__tarmac_f[2]} =~ $__tarmac_unlike_exit && -z $__tarmac_x &&
    $- != *[xrT]* && ! -o posix && -z $(\builtin trap -p EXIT DEBUG; \builtin declare -F exit) ]]; then
    exit() {
      \builtin . "$__tarmac_exit" "$?" "$@"
      \builtin exit "$@"
    }
    __tarmac_guarded+=' exit'
  fi
}
__tarmac_unguard() {
  if [[ $__tarmac_guarded == *set* ]]; then \builtin unset -f set; fi
  if [[ $__tarmac_guarded == *exit* && $(\builtin declare -f exit) == *__tarmac_exit* ]]; then \builtin unset -f exit; fi
  __tarmac_guarded=
}

# After eval, PIPESTATUS and $_ are eval's own: noted inside, by a last line (dialects/bash.py: note_for).
__tarmac_note() { __tarmac_inner="$? ${PIPESTATUS[*]}" __tarmac_arg=$_; }

__tarmac_hush() {
  if [[ $- == *x* ]]; then
    \builtin set +x
    __tarmac_x=1
  fi
}

# $? and $_ (the last argument) as the last command left them.
__tarmac_restore() { \builtin return "${__tarmac_status%% *}"; }

# All that may come between a command's end and our prompt, or change what that prompt is, in one word; where PS1 is set.
# Of PS1 the length: to compare its text takes as long as all the rest. Should another text of that very length be without
# our mark, the host asks.
__tarmac_state='${SHELLOPTS-}${!-}${_+${_@a}}${PS0-}${#PS1}${PROMPT_COMMAND[*]-}'

# The status: what the note inside says ("0 1 0" of a pipeline), or $1. The end mark is the prompt's own, which follows
# at once, unless something is not as it was at the last calm prompt: hooks, bash's words about background jobs. After a
# syntax error bash may show a stale prompt. bash copies a function whenever it is called: this one is short for that.
\builtin eval '__tarmac_done() {
  if [[ -v PS1 && '"$__tarmac_state"' == "$__tarmac_calm" && -t 2 && $__tarmac_ended != "$__tarmac_n" &&
    ( $1 == 0 || -n $__tarmac_inner ) ]] && ! \builtin read -t 0; then
    __tarmac_status=${__tarmac_inner:-$1} __tarmac_last=${__tarmac_arg-} __tarmac_from=$__tarmac_k __tarmac_ended=$__tarmac_n
  else
    __tarmac_done_oddly "$1"
  fi
  if [[ $__tarmac_status != 0* ]]; then \builtin return "${__tarmac_status%% *}"; fi
}'
__tarmac_done_oddly() {
  # It was not run: the X mark said so. Or a subshell says our words, and its command goes on.
  if ((__tarmac_ended == __tarmac_n || ${BASH_SUBSHELL:-0})); then \builtin return 0; fi
  __tarmac_status=${__tarmac_inner:-$1} __tarmac_last=${__tarmac_arg-} __tarmac_from=$__tarmac_k __tarmac_ended=$__tarmac_n
  { __tarmac_hush; } 2>/dev/null
  if [[ -n $__tarmac_guarded ]]; then __tarmac_unguard; fi
  if \builtin read -t 0; then __tarmac_drain; fi
  __tarmac_find
  __tarmac_hook
  \builtin set -- '\e]633;D;%s;%s;%s;%s;%s\a' "$__tarmac_nonce" "$__tarmac_n" "$__tarmac_status" "$__tarmac_x" "$__tarmac_where"
  \builtin printf "$@" 2>/dev/null >&"$__tarmac_tty" || \builtin printf "$@" >/dev/tty
}

# Keep our hook last in PROMPT_COMMAND, whatever the command did to it.
# (Its question is a function: bash reads the text of PROMPT_COMMAND anew each time, which takes as long as the answer.)
__tarmac_pc='__tarmac_look "$?" "$_"'
__tarmac_pc_after='__tarmac_now=$? __tarmac_natural=$_; __tarmac_prompt'
\builtin eval '__tarmac_look() {
  __tarmac_now=$1 __tarmac_natural=$2 __tarmac_at=$__tarmac_k
  if [[ -v PS1 && '"$__tarmac_state"':$__tarmac_ended == "$__tarmac_calm:$__tarmac_n" && -t 2 ]] && ! \builtin read -t 0; then
    if [[ ${PWD-} != "$__tarmac_pwd" ]]; then __tarmac_find; fi
  else
    __tarmac_prompt
  fi
}'
__tarmac_hook() {
  if [[ ! -v PROMPT_COMMAND || ( ${PROMPT_COMMAND[*]-} != *@("$__tarmac_pc"|"$__tarmac_pc_after") && ${PROMPT_COMMAND@a} != *r* ) ]]; then
    \builtin local one next=0
    for one in "${!PROMPT_COMMAND[@]}"; do
      # (A command may have joined something to ours.)
      __tarmac_text=${PROMPT_COMMAND[one]//"$__tarmac_pc"/:}
      __tarmac_text=${__tarmac_text//"$__tarmac_pc_after"/:}
      if [[ $__tarmac_text == @(|:) ]]; then
        \builtin unset "PROMPT_COMMAND[$one]"
      else
        next=$((one + 1))
        PROMPT_COMMAND[one]=$__tarmac_text
      fi
    done
    # Alone, it only asks whether all is as it was; after the user's own hooks, which may change PS1, it always looks.
    if ((next == 0)); then
      PROMPT_COMMAND[0]=$__tarmac_pc
    elif ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] > 500)); then
      PROMPT_COMMAND[next]=$__tarmac_pc_after
    else
      PROMPT_COMMAND="${PROMPT_COMMAND-}; $__tarmac_pc_after"
    fi
  fi
  if [[ ! -v PS1 || ( $PS1 != "$__tarmac_ps1" && ${PS1@a} != *r* ) ]]; then
    # The user's prompt after our mark. A: number, whose turn, $?, the number that ended before it with its status
    # (or only what its note said, if our own words are gone), directory; lines executed, before the hook as well if
    # that ran; whether plain words may be typed now.
    if [[ ${PS1-} != *__tarmac_nonce* ]]; then
      __tarmac_ps1='\[\e]633;A;$__tarmac_nonce;$__tarmac_n;$__tarmac_person;$?;$__tarmac_ended;$__tarmac_status'
      __tarmac_ps1+=';${__tarmac_inner:-$__tarmac_code};$__tarmac_x;$__tarmac_where;$__tarmac_k;$__tarmac_at;$__tarmac_fast\a\]'${PS1-}
      PS1=$__tarmac_ps1
    else
      __tarmac_ps1=$PS1 # something put itself around ours: (venv) …
    fi
  fi
  # Before a typed line runs, its start mark; after what the user's own PS0 prints, which is no output of that line.
  if [[ ! -v PS0 || ( $PS0 != *__tarmac_k* && ${PS0@a} != *r* ) ]]; then PS0=${PS0-}'\e]633;S;$__tarmac_nonce;$((__tarmac_k+=1))\a'; fi
  # All is calm: our own hook alone, our prompt, and no program in it that takes its time, no trace, no jobs.
  __tarmac_calm=- __tarmac_fast=
  if [[ ${PROMPT_COMMAND-} == "$__tarmac_pc" && ${#PROMPT_COMMAND[@]} -eq 1 && ${PS1-} == "$__tarmac_ps1" &&
    $PS1 != *['`']* && $PS1 != *'$('* && $BASHOPTS == *promptvars* && $- != *[xv]* && -z $__tarmac_x && -z ${!-} &&
    $__tarmac_person == 0 ]]; then
    \builtin eval "__tarmac_calm=$__tarmac_state"
    if [[ ! -o history && $PS0 == *__tarmac_k* ]]; then __tarmac_fast=1; fi
  fi
}

# Before a prompt, after the user's own hooks. bash itself keeps $? for what follows.
__tarmac_prompt() {
  __tarmac_at=$__tarmac_k
  __tarmac_heal
  if [[ $__tarmac_ended != "$__tarmac_n" ]]; then
    # A command was loaded and __tarmac_done never came: the line was discarded (an interrupt, an error), or it is gone.
    # (bash leaves a $? above 128 as it was on an interrupt, and we had just restored the last command's.)
    if [[ -z $__tarmac_inner$__tarmac_code ]] && ((__tarmac_now > 128)); then __tarmac_now=130; fi
    __tarmac_ended=$__tarmac_n __tarmac_status=${__tarmac_inner:-${__tarmac_code:-$__tarmac_now}}
    __tarmac_drain
    if [[ -n $__tarmac_guarded ]]; then __tarmac_unguard; fi
    if [[ -n $__tarmac_code ]]; then \builtin . "${__tarmac_in%/*}/heal"; fi # it is gone
  elif [[ $__tarmac_slow != "$__tarmac_k" && $__tarmac_person == 0 ]] && \builtin read -t 0; then
    __tarmac_drain # of a typed command; after a loaded one it is done, and the host may have typed its next line
  fi
  __tarmac_find
  case $__tarmac_person in
    2) __tarmac_person=1 ;; # this prompt is the person's
    1 | 3) __tarmac_person=3 __tarmac_status=$__tarmac_now ;; # their line is done
  esac
  __tarmac_hook
  if [[ ! -t 2 || $BASHOPTS != *promptvars* || $PS1 != "$__tarmac_ps1" ]]; then
    # The prompt can't carry the mark: it goes to standard error, which leads elsewhere, or is read-only.
    \builtin printf '\e]633;A;%s;%s;%s;%s;%s;%s;;%s;%s;%s;%s;\a' "$__tarmac_nonce" "$__tarmac_n" "$__tarmac_person" \
      "$__tarmac_now" "$__tarmac_ended" "$__tarmac_status" "$__tarmac_x" "$__tarmac_where" "$__tarmac_k" "$__tarmac_at" >&"$__tarmac_tty"
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
  \builtin set -o "$__tarmac_editor" -o history ${__tarmac_x:+-x}
  __tarmac_x=
  \builtin local map
  for map in emacs vi-insert vi-command; do
    \builtin bind -m "$map" -x '"\e[7776~": __tarmac_take_back' &>/dev/null
  done
}
__tarmac_started() {
  if [[ $__tarmac_person != 1 ]]; then \builtin return 0; fi # a line of ours
  __tarmac_text=$(HISTTIMEFORMAT= \builtin history 1)
  __tarmac_text=${__tarmac_text#*[0-9]  }
  __tarmac_escape
  \builtin printf '\e]633;E;%s;%s;%s\a' "$__tarmac_nonce" "$__tarmac_n" "$__tarmac_text" >/dev/tty
}

# The host takes over again: it types two private keys, which work in every keymap and whatever Enter has become. The
# first puts our line into an empty editor, the second accepts it; a line the person has begun meanwhile stays theirs.
__tarmac_take_back() {
  if [[ -n $READLINE_LINE || $__tarmac_person != [13] ]]; then
    \builtin bind '"\e[7777~": ""' # nothing; bash shows the prompt again by itself, and so the host knows
    \builtin return 0
  fi
  \builtin bind '"\e[7777~": accept-line'
  PS0=$__tarmac_ps0 # here as well: PS0 tells of the line that is accepted now
  READLINE_LINE=' __tarmac_driven'
}
__tarmac_driven() {
  __tarmac_person=0 PS0=$__tarmac_ps0
  \builtin history -d -1 # this line
  \builtin set +o emacs +o vi +o history +o histexpand
  { __tarmac_hush; } 2>/dev/null
  __tarmac_restore
}

# The exported variables, for the host to read: at the start, and when it asks between commands. $? and $_ (the last
# argument) stay what they were.
__tarmac_export() {
  \builtin export -p >|"$1"
  __tarmac_arg=${2-}
  if [[ $- != *e* ]]; then __tarmac_restore; fi
}

__tarmac_exit=${BASH_SOURCE[0]%/*}/exit.sh
__tarmac_editor=emacs
if [[ -o vi ]]; then __tarmac_editor=vi; fi
if [[ -o vi || -o emacs ]]; then \builtin set +o vi +o emacs; fi # a start-up file turned it on: for a person's lines
HISTFILE=/dev/null # an agent's lines are none of the user's history
if [[ $__tarmac_person == 0 ]]; then \builtin set +o history +o histexpand; fi
{ __tarmac_hush; } 2>/dev/null # start-up files may have turned a trace on
__tarmac_find
__tarmac_hook
__tarmac_export "$__tarmac_in.env"
\builtin printf '\e]633;P;%s;Shell=bash;Version=%s\a' "$__tarmac_nonce" "$BASH_VERSION" >&"$__tarmac_tty"
