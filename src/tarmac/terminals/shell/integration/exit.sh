# Sourced by the `exit` of bash.sh with what `$?` was and the words of `exit`. What is sourced is not interactive, and so
# bash prints nothing when it ends. In a subshell it prints nothing anyway; and it warns of jobs and of wrong words as ever.
if [[ $BASH_SUBSHELL == 0 && $# -lt 3 && ${2-} != -* && -z $(\builtin jobs -s) && $BASHOPTS != *checkjobs* ]]; then
  \builtin exit "${2-$1}"
fi
\builtin return "$1"
