# The part of Tarmac's zsh integration that changes options for good. It is not sticky (see zsh.zsh), so it runs under
# whatever options the user has: plain words only. Sourced with aliases off.

# The host drives: no line editor, no words about jobs in the middle of a command, no marks of a missing newline.
__tarmac_drive() {
  __tarmac_person=0 __tarmac_new=1
  builtin unsetopt local_options zle notify prompt_sp
  builtin setopt hist_ignore_space # our lines are none of the history's
} 2>/dev/null

__tarmac_driven() {
  if [[ -o xtrace ]]; then __tarmac_x=1; else __tarmac_x=; fi
  builtin unsetopt local_options xtrace
  __tarmac_drive
  __tarmac_restore
} 2>/dev/null

# A person's line is next: what they had on is on again.
__tarmac_hand_over() {
  __tarmac_person=2
  builtin unsetopt local_options
  builtin setopt "${__tarmac_options[@]}" zle
  if [[ -n $__tarmac_x ]]; then builtin setopt xtrace; fi
  __tarmac_x=
  __tarmac_unmark_prompt
  __tarmac_keys
  __tarmac_recall
} 2>/dev/null

# The private key.
__tarmac_take_back() {
  if [[ -n $BUFFER || $CONTEXT != start || $__tarmac_person == 0 ]]; then
    __tarmac_person=1
    __tarmac_prompted 0
  else
    builtin unsetopt local_options
    builtin setopt hist_ignore_space
    BUFFER=' \__tarmac_driven'
    builtin zle .accept-line
  fi
}

# Once, when the start-up files are done: at the first prompt, or typed.
__tarmac_begin() {
  __tarmac_person=0 __tarmac_new=1
  __tarmac_options=()
  for __tarmac_text in notify prompt_sp hist_ignore_space; do
    if [[ -o $__tarmac_text ]]; then __tarmac_options+=($__tarmac_text); else __tarmac_options+=(no_$__tarmac_text); fi
  done
  if [[ -o xtrace ]]; then __tarmac_x=1; fi
  builtin unsetopt local_options xtrace
  builtin unset HISTFILE # an agent's lines are none of the user's history
  # In an empty history `fc -l` shows the line that is running, which is ours: an empty one takes its place.
  if (( ! ${#history[@]} )); then builtin print -rs -- ''; fi
  __tarmac_drive
  __tarmac_find
  __tarmac_hook
  __tarmac_export $__tarmac_in.env
  __tarmac_write $'\e]633;P;'"$__tarmac_nonce;Shell=zsh;Version=$ZSH_VERSION"$'\a'
} 2>/dev/null
