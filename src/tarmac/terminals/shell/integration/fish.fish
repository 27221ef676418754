# Tarmac's shell integration for fish (3.4 or newer).
#
# fish has no prompt without its line editor. So while the host drives there is no prompt: one line ($__tarmac_drive)
# waits for commands on a pipe, outside of the editor, and runs each at top level.
#
#   the host writes a command to $__tarmac_in, then its number to the pipe → C;n → eval → D;n, and B;n: ready for the next
#
# A private key starts that line: at the first prompt, and whenever it was given up (an interrupt, `return`, a person's
# turn), of which the prompt's event tells (A). The line is made of builtins, which nothing can redefine.

# Sourced again, it heals: what it remembers stays.
set -q __tarmac_n; or set -g __tarmac_n 0 # the command loaded last: nothing runs twice
set -g __tarmac_ended $__tarmac_n # the command that ended last, and what it left in $status and $pipestatus
set -q __tarmac_status; or set -g __tarmac_status 0
set -q __tarmac_person; or set -g __tarmac_person 0 # 0: the host drives; 2, 1, 3: a person's line is next, edited, done
set -g __tarmac_pwd ''
set -g __tarmac_where ''

# Its output is the terminal: fish can't redirect itself. The file holds: number, directory ('' to stay), text, whether
# $status is of interest to it; $__tarmac_between them. (A command substitution would cost a thread.) A last line of a
# pipeline notes $pipestatus in __tarmac_parts.
set -g __tarmac_drive '
builtin printf "\e]633;B;%s;%s\a" "$__tarmac_nonce" "$__tarmac_n"
while builtin read __tarmac_go <$__tarmac_pipe
    if builtin test "$__tarmac_go" = person
        builtin set -g __tarmac_person 2
        break
    else if builtin test "$__tarmac_go" = ask
        builtin printf "\e]633;R;%s;%s;%s;;%s\a" "$__tarmac_nonce" "$__tarmac_n" "$__tarmac_status" "$__tarmac_where"
        continue
    end
    builtin read -gz -d "$__tarmac_between" __tarmac_number __tarmac_dir __tarmac_text __tarmac_keep <$__tarmac_in
    builtin set -g __tarmac_why
    if not builtin test "$__tarmac_go" -gt "$__tarmac_n" -a "$__tarmac_go" = "$__tarmac_number" 2>/dev/null
        builtin set -g __tarmac_why stale
    else
        builtin set -g __tarmac_n "$__tarmac_go"
        if builtin test -n "$__tarmac_dir"; and not builtin cd -- "$__tarmac_dir" >/dev/null 2>&1
            builtin set -g __tarmac_ended $__tarmac_n
            builtin set -g __tarmac_why cd
        end
    end
    if builtin test -n "$__tarmac_why"
        builtin printf "\e]633;X;%s;%s;%s\a" "$__tarmac_nonce" "$__tarmac_go" "$__tarmac_why"
        continue
    end
    builtin functions -q __tarmac_restore __tarmac_find __tarmac_prompt __tarmac_enter; or builtin source $__tarmac_heal
    builtin emit fish_preexec "$__tarmac_text"
    builtin printf "\e]633;C;%s;%s\a" "$__tarmac_nonce" "$__tarmac_n"; or continue
    builtin set -g __tarmac_parts
    if builtin test -n "$__tarmac_keep"
        __tarmac_restore
    else
        builtin true # or `set x 1` and `sleep 9 &`, which leave $status alone, would end as the command before them did
    end
    builtin eval $__tarmac_text
    builtin set -g __tarmac_status $status $__tarmac_parts
    builtin set -g __tarmac_ended $__tarmac_n
    builtin test "$PWD" = "$__tarmac_pwd"; or __tarmac_find
    builtin printf "\e]633;D;%s;%s;%s;;%s\a" "$__tarmac_nonce" "$__tarmac_n" "$__tarmac_status" "$__tarmac_where"
    __tarmac_restore
    builtin emit fish_postexec "$__tarmac_text"
    __tarmac_restore
    builtin emit fish_prompt __tarmac
    builtin printf "\e]633;B;%s;%s\a" "$__tarmac_nonce" "$__tarmac_n"
end'

# $status as the last command left it.
function __tarmac_restore
    return $__tarmac_status[1]
end

# What would end a mark, or be changed by the terminal on its way, as \xHH.
function __tarmac_escape
    builtin string replace -a -- \\ '\\x5c' $argv[1] | builtin string replace -a -- \; '\\x3b' |
        builtin string replace -a -- \a '\\x07' | builtin string replace -a -- \e '\\x1b' |
        builtin string replace -a -- \r '\\x0d' | builtin string join '\\x0a'
end
function __tarmac_find
    set -g __tarmac_pwd "$PWD"
    set -g __tarmac_where "$PWD"
    if builtin string match -q -r '[\\\\;\a\e\n\r]' -- "$PWD"
        set -g __tarmac_where (__tarmac_escape "$PWD")
    end
end

# A prompt: the line above was given up, or a person's turn begins or ends.
function __tarmac_prompt --on-event fish_prompt
    set -l now $status $pipestatus
    if test "$argv[1]" = __tarmac # our own word for the user's hooks
        return
    end
    if test "$__tarmac_ended" != "$__tarmac_n"
        set -g __tarmac_ended $__tarmac_n
        set -g __tarmac_status $now
    end
    __tarmac_find
    switch $__tarmac_person
        case 2
            set -g __tarmac_person 1 # this prompt is the person's, and our line not within reach of their up-arrow
            builtin history delete --exact --case-sensitive ' builtin eval $__tarmac_drive' 2>/dev/null
        case 1 3
            set -g __tarmac_person 3 # their line is done
            set -g __tarmac_status $now
    end
    __tarmac_prompted $now[1]
end
function __tarmac_prompted
    builtin printf '\e]633;A;%s;%s;%s;%s;%s;%s;;;%s\a' "$__tarmac_nonce" "$__tarmac_n" "$__tarmac_person" "$argv[1]" \
        "$__tarmac_ended" "$__tarmac_status" "$__tarmac_where" >/dev/tty
end

# What a person runs; or throws away.
function __tarmac_preexec --on-event fish_preexec
    if test "$__tarmac_person" = 1
        builtin printf '\e]633;E;%s;%s;%s\a' "$__tarmac_nonce" "$__tarmac_n" (__tarmac_escape "$argv[1]") >/dev/tty
    end
end
function __tarmac_cancel --on-event fish_cancel
    if test "$__tarmac_person" = 1
        set -g __tarmac_person 3
        __tarmac_prompted 130
    end
end

# The private key. A line that the person has begun meanwhile stays theirs.
function __tarmac_enter
    if test "$__tarmac_person" != 0 -a -n (builtin commandline | builtin string collect)
        set -g __tarmac_person 1
        __tarmac_prompted 0
        return
    end
    set -g __tarmac_person 0
    builtin commandline -r ' builtin eval $__tarmac_drive'
    builtin commandline -f execute
end
for __tarmac_mode in default insert visual replace replace_one (builtin bind --list-modes 2>/dev/null)
    builtin bind -M $__tarmac_mode \e\[7776~ __tarmac_enter
end

# The exported variables, for the host to read: at the start, and when it asks between commands. $status stays what it
# was.
function __tarmac_export
    for __tarmac_name in (builtin set -nx)
        builtin printf '%s=%s\0' $__tarmac_name "$$__tarmac_name"
    end >$argv[1]
    return $__tarmac_status[1]
end
