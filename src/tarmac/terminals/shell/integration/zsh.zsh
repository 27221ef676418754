# Tarmac's shell integration for zsh (5.0.8 or newer). Read integration/bash.sh first: this is the same in zsh's words.
#
#   __tarmac_load                   prints the start mark C;n
#   eval "…" of one line, `.` of a file of more (eval would parse all before it runs any)
#   __tarmac_done                   prints the end mark D, and with it the prompt's (A) if nobody else has a hook
#
# Sourced by `emulate zsh -c` (dialects/zsh.py): each function here keeps zsh's own options whatever the user's have
# become, neither traces nor knows aliases, and can change no option for good. Those that must: zsh_options.zsh.
# An interrupt discards the rest of the line, and so does `return`: then the precmd hook tells of the end.

builtin zmodload zsh/system zsh/parameter 2>/dev/null

typeset -gi __tarmac_n=${__tarmac_n-0}      # the command loaded last: nothing runs twice
typeset -gi __tarmac_ended=__tarmac_n       # the command that ended last, and what it left in $?, pipestatus and $_
typeset -g __tarmac_status=${__tarmac_status-0} __tarmac_last=${__tarmac_last-}
typeset -gi __tarmac_person=${__tarmac_person-0} # 0: the host drives, editor off; 2, 1, 3: a person's line is next, edited, done
typeset -g __tarmac_x=${__tarmac_x-}        # xtrace was on when the last command ended
typeset -g __tarmac_new=1                   # the next prompt is to be told in any case
typeset -g __tarmac_cmd= __tarmac_how=: __tarmac_dir= __tarmac_why= __tarmac_code= __tarmac_said= __tarmac_arg= __tarmac_flags=
typeset -ga __tarmac_inner=()
# A last line of the command: what it leaves, from inside. After `eval` and `.` all of this is theirs. (zsh runs the rest
# of a list whose program was stopped in a subshell, when that program goes on: there it only hands its status on.)
typeset -g __tarmac_note=$'\n__tarmac_code=$? __tarmac_inner=(${pipestatus[@]}) __tarmac_arg=$_; (( ! ZSH_SUBSHELL )) || exit $__tarmac_code'
typeset -g __tarmac_text= __tarmac_where= __tarmac_pwd=
typeset -g __tarmac_ps1=$'\e]633;Q;'$__tarmac_nonce$'\a' # the prompt's text begins
if [[ ! -v __tarmac_tty ]]; then
  # Ours alone: no child gets it.
  typeset -gi __tarmac_tty=-1
  builtin sysopen -w -o cloexec -u __tarmac_tty /dev/tty 2>/dev/null || exec {__tarmac_tty}>/dev/tty
fi

# Our words begin with `builtin`, which may have become a function; and a command may have turned builtins off.
__tarmac_heal() {
  if (( $+functions[builtin] )); then unfunction builtin; fi
  local name
  for name in eval . set read print cd emulate syswrite; do builtin enable $name; done 2>/dev/null
}

__tarmac_write() {
  builtin syswrite -o $__tarmac_tty -- "$1" 2>/dev/null || builtin print -rn -- "$1" 2>/dev/null >/dev/tty
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
  __tarmac_pwd=$PWD __tarmac_text=$PWD
  __tarmac_escape
  __tarmac_where=$__tarmac_text
}

# What was sent to a command which ended without reading it: the shell would run it. (`read` might wait for a newline.)
__tarmac_drain() {
  integer left=100
  while (( left-- > 0 )) && [[ -t 0 ]] && builtin sysread -t 0 __tarmac_text; do :; done 2>/dev/null
}

# What the file holds: number, directory ('' to stay), text ('' for what is in the other file); NUL after each.
__tarmac_read() {
  local -a fields
  fields=("${(@0)$(<$__tarmac_in)}")
  __tarmac_dir=$fields[2]
  __tarmac_load_oddly "$fields[1]" "$fields[3]" later
  if [[ -n $1 ]]; then __tarmac_start; fi
  return ${__tarmac_status%% *}
}
# The first case is on the path of every short command: few words (a call costs 15 µs, a redirection 10).
__tarmac_load() {
  if [[ -z $3 && $1 -gt $__tarmac_n && $__tarmac_flags != *x* && -z $functions[builtin]$dis_builtins[eval] ]]; then
    __tarmac_inner=() __tarmac_code= __tarmac_said= __tarmac_why= __tarmac_how=eval
    __tarmac_n=$1 __tarmac_cmd=$2$__tarmac_note
    builtin syswrite -o $__tarmac_tty -- $'\e]633;C;'"$__tarmac_nonce;$1"$'\a' || __tarmac_load_oddly
  else
    __tarmac_load_oddly "$@"
  fi
  return ${__tarmac_status%% *}
}
__tarmac_load_oddly() {
  __tarmac_heal
  __tarmac_inner=() __tarmac_code= __tarmac_said= __tarmac_arg= __tarmac_why= __tarmac_how=: __tarmac_cmd=
  if [[ $__tarmac_flags == *x* ]]; then __tarmac_x=1; fi
  if [[ $1 != <1-> ]] || (( $1 <= __tarmac_n )); then
    __tarmac_refuse "$1" stale
  elif [[ -z $3 ]]; then
    __tarmac_n=$1 __tarmac_how=eval __tarmac_cmd=$2$__tarmac_note
  elif [[ -n $2 ]]; then
    __tarmac_n=$1 __tarmac_how=eval __tarmac_cmd=$2
  else
    __tarmac_n=$1 __tarmac_how=. __tarmac_cmd=${__tarmac_in%/*}/zsh
  fi
  if [[ -z $3$__tarmac_why ]]; then __tarmac_start; fi
}
# Without a start mark nothing may run: the host would not know. $1: the status of the move before it, if any.
__tarmac_start() {
  if [[ -n $__tarmac_why ]]; then return 0; fi
  if [[ $1 == <1-> ]]; then
    __tarmac_refuse $__tarmac_n cd
  else
    __tarmac_write $'\e]633;C;'"$__tarmac_nonce;$__tarmac_n"$'\a' || __tarmac_how=: __tarmac_cmd=
  fi
  return ${__tarmac_status%% *}
}
__tarmac_refuse() {
  __tarmac_how=: __tarmac_cmd= __tarmac_why=$2 __tarmac_ended=$__tarmac_n
  __tarmac_write $'\e]633;X;'"$__tarmac_nonce;${1:-0};$2"$'\a'
}

# $? and $_ (the last argument) as the last command left them.
__tarmac_restore() { return ${__tarmac_status%% *} }

# __tarmac_said is what `eval` or `.` left; the note, a last line inside, knows better: $?, pipestatus, $_.
__tarmac_done() {
  if [[ -n $functions[builtin] ]]; then __tarmac_heal; fi
  if (( $# )); then __tarmac_said=$1 __tarmac_flags=$2; fi
  if (( __tarmac_ended != __tarmac_n && ! ZSH_SUBSHELL )); then # a subshell tells no end: its command goes on
    if [[ $__tarmac_flags == *x* ]]; then __tarmac_x=1; else __tarmac_x=; fi
    if (( $#__tarmac_inner )); then
      __tarmac_status="$__tarmac_code ${(j: :)__tarmac_inner}" __tarmac_last=$__tarmac_arg
    else
      __tarmac_status=$__tarmac_said __tarmac_last=
    fi
    __tarmac_ended=$__tarmac_n __tarmac_new=1 # the prompt tells it, if an interrupt comes before we do
    if [[ -t 0 ]] && builtin sysread -t 0 __tarmac_text; then __tarmac_drain; fi
    if [[ $PWD != $__tarmac_pwd ]]; then __tarmac_find; fi
    if [[ ${precmd_functions[-1]-} != __tarmac_precmd ]]; then __tarmac_hook; fi
    if [[ ${PS1-} != $__tarmac_ps1* ]]; then __tarmac_mark_prompt; fi
    local facts="$__tarmac_nonce;$__tarmac_n"
    local told=$'\e]633;D;'"$facts;$__tarmac_status;$__tarmac_x;$__tarmac_where"$'\a'
    if [[ $#precmd_functions -gt 1 || -n $functions[precmd] ]]; then # the hooks of others come first
      builtin syswrite -o $__tarmac_tty -- $told || __tarmac_write $told
    else
      told+=$'\e]633;A;'"$facts;0;0;$__tarmac_n;$__tarmac_status;;$__tarmac_x;$__tarmac_where"$'\a'
      { builtin syswrite -o $__tarmac_tty -- $told || __tarmac_write $told } && __tarmac_new=
    fi
  fi
  return ${__tarmac_status%% *}
}

# An interrupt at the end of a loop makes zsh skip all hooks before its next prompt, but not the prompt: PS1 says where
# that begins. (No `%{…%}`: the editor is off, and not everybody has prompt_percent.) A person's PS1 is their own.
__tarmac_mark_prompt() {
  __tarmac_unmark_prompt
  if [[ -n ${PS1-} && ${(t)PS1} != *readonly* ]]; then PS1=$__tarmac_ps1$PS1; fi
}
__tarmac_unmark_prompt() {
  if [[ ${PS1-} == *$__tarmac_ps1* && ${(t)PS1} != *readonly* ]]; then PS1=${PS1//$__tarmac_ps1/}; fi
}

# Our hook last, whatever the command did to the others.
__tarmac_hook() {
  typeset -ga precmd_functions preexec_functions
  precmd_functions=(${precmd_functions:#__tarmac_(precmd|boot)} __tarmac_precmd) 2>/dev/null
  if [[ ${preexec_functions[(r)__tarmac_preexec]-} == '' ]]; then preexec_functions+=(__tarmac_preexec) 2>/dev/null; fi
}

# Before a prompt.
__tarmac_precmd() {
  local now=$? discarded=
  if [[ $__tarmac_ended == $__tarmac_n && $__tarmac_person == 0 && -z $__tarmac_new ]]; then return 0; fi
  __tarmac_new=
  __tarmac_heal
  if (( __tarmac_ended != __tarmac_n )); then
    # A command was loaded and __tarmac_done never came: the line was discarded (an interrupt, `return`, an error).
    # An `eval` that is interrupted in a builtin says 2, which is zsh's own flag, not a status.
    if [[ $now == 2 && $__tarmac_how == eval ]]; then now=130; fi
    # One that comes between two words may say 1 or 0: the host knows whether it sent one.
    if [[ -z $__tarmac_code$__tarmac_said ]]; then discarded=-; fi
    __tarmac_ended=$__tarmac_n __tarmac_status=${__tarmac_code:-${__tarmac_said:-$now}}
    if (( $#__tarmac_inner )); then __tarmac_status+=" ${(j: :)__tarmac_inner}"; fi
    __tarmac_drain
  fi
  __tarmac_find
  case $__tarmac_person in
    2) __tarmac_person=1 ;; # this prompt is the person's
    1|3) __tarmac_person=3 __tarmac_status=$now ;; # their line is done
  esac
  if [[ $__tarmac_person == 0 ]]; then __tarmac_mark_prompt; fi
  __tarmac_hook
  __tarmac_prompted $now $discarded
}
__tarmac_prompted() {
  __tarmac_write $'\e]633;A;'"$__tarmac_nonce;$__tarmac_n;$__tarmac_person;$1;$__tarmac_ended;$__tarmac_status;${2-};$__tarmac_x;$__tarmac_where"$'\a'
}

# What a person runs.
__tarmac_preexec() {
  if [[ $__tarmac_person == 1 ]]; then
    __tarmac_text=$1
    __tarmac_escape
    __tarmac_write $'\e]633;E;'"$__tarmac_nonce;$__tarmac_n;$__tarmac_text"$'\a'
  fi
}

# A person takes over for one line; then the host types a private key, which works in every keymap and whatever Enter
# has become. A line that the person has begun meanwhile stays theirs.
__tarmac_keys() {
  builtin zle -N __tarmac_take_back
  local map
  for map in ${(f)"$(builtin bindkey -l)"}; do
    if [[ $map != .safe ]]; then builtin bindkey -M "$map" '\e[7776~' __tarmac_take_back; fi
  done 2>/dev/null
}
# zsh keeps the last line, ours, in reach of the up-arrow until another comes: the person's own last line does.
__tarmac_recall() {
  local number
  for number in ${(Onk)history}; do
    if [[ $history[$number] != ' '*__tarmac_* ]]; then
      builtin print -rs -- "$history[$number]"
      break
    fi
  done
}

# The exported variables, for the host to read: at the start, and when it asks between commands. $? and $_ (the last
# argument) stay what they were.
__tarmac_export() {
  local __tarmac_name
  for __tarmac_name in ${(k)parameters[(R)*export*]}; do
    builtin print -rN -- "$__tarmac_name=${(P)__tarmac_name}"
  done >|$1
  if [[ ! -o errexit ]]; then return ${__tarmac_status%% *}; fi
}
