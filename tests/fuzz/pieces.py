"""Pieces of shell text that know what they print and how they end: the words of the fuzzer's grammar.

Draw(rng, shell) → atom() → Piece(text, output, code)         combine.py makes bigger ones out of them
"""

import random
from collections.abc import Callable
from dataclasses import dataclass

FORGED = [
    r"\033]633;D;0\007",
    r"\033]633;D;@000000000000000000000000;1;0;;/\007",
    r"\033]633;A;@000000000000000000000000;1;0;0;1;0;/\007",
    r"\033]633;C;1\007",
    r"\033]133;D;0\007",
    r"\033]133;A\033\134",
    r"\033]633;P;Cwd=/etc\007",
    r"\033]7;file://host/etc\007",
    r"\033]633\007",
]
QUERIES = [r"\033[6n", r"\033[c", r"\033]11;?\007", r"\033[5n", r"\033[?1u", r"\033[14t", r"\033P+q544e\033\134"]
ODD_TEXTS = [
    "a!b !! !$ !-1",
    "$HOME `date` $(id) \\n \\\\ \\",
    "tab\there",
    "żółć 日本語 ελληνικά",
    "family 👩‍👩‍👧 flag 🇵🇱",
    "e\u0301 a\u0308",
    "שלום עולם",
    "*?[a-z] {a,b} ~ ~root",
    "; | & && || > < >> ( ) { } [ ]",
    "'single' \"double\"",
    "# no comment",
    "-n -e --",
    "%s %d %% %",
    "user@host:~$ ",
    ">>> ",
    "EOF",
    "Password: ",
    "^C ^D ^[[A",
    "\\033[31m",
]


@dataclass(frozen=True, slots=True)
class Piece:
    """Shell text with a known result."""

    text: str
    output: str = ""  # as a reader sees it
    code: int = 0
    ends_line: bool = False  # a here-document or a comment: nothing may follow on its last line
    literal: bool = True  # the bytes it prints are its output: no escapes, no carriage returns


class Draw:
    """Chance, in one shell's dialect; each word it makes up is new."""

    def __init__(self, rng: random.Random, shell: str) -> None:
        self.rng = rng
        self.shell = shell
        self.fish = shell == "fish"
        self._tags = 0

    def tag(self) -> str:
        """A word that occurs nowhere else in this session."""
        self._tags += 1
        return f"t{self._tags}x{self.rng.randrange(16**4):04x}"

    def quote(self, text: str) -> str:
        """One word, whatever is in it."""
        if self.fish:
            return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
        return "'" + text.replace("'", "'\\''") + "'"

    def code(self) -> int:
        return self.rng.choice([0, 0, 1, 2, 3, 5, 42, 77, 126, 127, 128, 130, 137, 255])

    def atom(self) -> Piece:
        """One piece that is made of no others."""
        while True:
            piece = self.rng.choice(ATOMS)(self)
            if piece is not None:
                return piece


def echo(draw: Draw) -> Piece:
    tag = draw.tag()
    return Piece(f"echo {tag}", f"{tag}\n")


def no_newline(draw: Draw) -> Piece:
    tag = draw.tag()
    return Piece(f"printf %s {tag}", tag)


def odd_text(draw: Draw) -> Piece:
    text = f"{draw.tag()} {draw.rng.choice(ODD_TEXTS)}"
    return Piece(f"printf '%s\\n' {draw.quote(text)}", f"{text}\n")


def long_word(draw: Draw) -> Piece:
    text = draw.tag() + "x" * draw.rng.choice([100, 119, 120, 121, 1000, 4094, 4095, 4096, 9000])
    return Piece(f"printf '%s\\n' {text}", f"{text}\n")


def exit_code(draw: Draw) -> Piece:
    code = draw.code()
    return Piece(f"sh -c 'exit {code}'" if draw.fish else f"(exit {code})", code=code)


def plain_false(draw: Draw) -> Piece:
    return Piece("false", code=1)


def plain_true(draw: Draw) -> Piece:
    return Piece(draw.rng.choice(["true", ":", "test 1 = 1"]))


def negated(draw: Draw) -> Piece:
    return Piece("not true" if draw.fish else "! true", code=1)


def test_fails(draw: Draw) -> Piece:
    return Piece("test 1 = 2" if draw.fish else "[[ 1 == 2 ]]", code=1)


def here_document(draw: Draw) -> Piece | None:
    if draw.fish:
        return None
    end, lines = draw.tag(), [draw.tag(), *draw.rng.sample(ODD_TEXTS, 3), "  indented\t"]
    body = "\n".join(lines)
    return Piece(f"cat <<'{end}'\n{body}\n{end}", f"{body}\n", ends_line=True)


def here_document_with_tabs(draw: Draw) -> Piece | None:
    if draw.fish:
        return None
    tag = draw.tag()
    return Piece(
        f"v{tag}=in; cat <<-E{tag}\n\tbegin $v{tag}\n\t\t{tag}\n\tE{tag}", f"begin in\n{tag}\n", ends_line=True
    )


def here_string(draw: Draw) -> Piece | None:
    tag = draw.tag()
    return None if draw.fish else Piece(f"cat <<< {tag}", f"{tag}\n")


def comment(draw: Draw) -> Piece:
    tag = draw.tag()
    return Piece(f"echo {tag} # it's \"not' code; exit 9 <<", f"{tag}\n", ends_line=True)


def forged_marks(draw: Draw) -> Piece:
    tag, marks = draw.tag(), "".join(draw.rng.sample(FORGED, 3))
    return Piece(f"printf '{marks}'; echo {tag}", f"{tag}\n", literal=False)


def queries(draw: Draw) -> Piece:
    tag, asked = draw.tag(), "".join(draw.rng.sample(QUERIES, 2))
    return Piece(f"printf '{asked}'; echo {tag}", f"{tag}\n", literal=False)


def progress(draw: Draw) -> Piece:
    tag, steps = draw.tag(), draw.rng.choice([3, 30, 300])
    return Piece(
        f"echo {tag}; seq {steps} | while read -r n; do printf '\\r{tag} %d' $n; done; echo"
        if not draw.fish
        else f"echo {tag}; for n in (seq {steps}); printf '\\r{tag} %d' $n; end; echo",
        f"{tag}\n{tag} {steps}\n",
        literal=False,
    )


def backspaces(draw: Draw) -> Piece:
    tag = draw.tag()
    return Piece(f"printf '{tag}abc\\b\\bX\\n'", f"{tag}aXc\n", literal=False)


def colours(draw: Draw) -> Piece:
    tag = draw.tag()
    return Piece(f"printf '\\033[1;31m{tag}\\033[0m\\033]0;title\\007\\n'", f"{tag}\n", literal=False)


def link(draw: Draw) -> Piece:
    tag = draw.tag()
    text = f"printf '\\033]8;;http://x/\\033\\134{tag}\\033]8;;\\033\\134\\n'"
    return Piece(text, f"{tag}\n", literal=False)


def variable(draw: Draw) -> Piece:
    tag = draw.tag()
    set_it = f"set v{tag} {tag}" if draw.fish else f"v{tag}={tag}"
    return Piece(f'{set_it}; echo "$v{tag}"', f"{tag}\n")


def many_lines(draw: Draw) -> Piece:
    count, tag = draw.rng.randrange(2, 80), draw.tag()
    return Piece(f"seq -f {tag}.%g {count}", "".join(f"{tag}.{n + 1}\n" for n in range(count)))


def to_standard_error(draw: Draw) -> Piece:
    one, two = draw.tag(), draw.tag()
    return Piece(f"echo {one} >&2; echo {two}", f"{one}\n{two}\n")


def to_the_terminal(draw: Draw) -> Piece:
    tag = draw.tag()
    return Piece(f"sh -c 'echo {tag}' >/dev/null; printf ''")


def from_a_pipe(draw: Draw) -> Piece:
    tag = draw.tag()
    if draw.fish:
        return Piece(f'echo {tag} | begin; read -l x; echo "$x"; end', f"{tag}\n")
    return Piece(f'echo {tag} | (read -r x; echo "$x")', f"{tag}\n")


def pipeline(draw: Draw) -> Piece:
    tag, code = draw.tag(), draw.code()
    return Piece(f"echo {tag} | cat | sh -c 'cat; exit {code}'", f"{tag}\n", code)


def closed_input(draw: Draw) -> Piece:
    tag = draw.tag()
    return Piece(f"cat </dev/null; sh -c 'read x' </dev/null || echo {tag}", f"{tag}\n")


def other_shell(draw: Draw) -> Piece:
    tag, code = draw.tag(), draw.code()
    name = draw.rng.choice(["sh", "bash --norc", "sh -i" if not draw.fish else "sh"])
    if name == "sh -i":  # its prompt goes to standard error
        name = "sh"
    return Piece(f"{name} -c 'trap : INT; echo {tag}; exit {code}'", f"{tag}\n", code)


def other_session(draw: Draw) -> Piece:
    tag = draw.tag()
    return Piece(f"setsid -w sh -c 'echo {tag}; exit 4'", f"{tag}\n", 4)


def extra_descriptor(draw: Draw) -> Piece | None:
    tag = draw.tag()
    return None if draw.fish else Piece(f"exec 7>&1; echo {tag} >&7; exec 7>&-; :", f"{tag}\n")


def output_led_away(draw: Draw) -> Piece | None:
    tag = draw.tag()
    return (
        None if draw.fish else Piece(f"exec 8>&1 >/dev/null; echo {tag}; exec >&8 8>&-; :")
    )  # of `exec` alone zsh says another code


def process_substitution(draw: Draw) -> Piece:
    tag = draw.tag()
    return Piece(f"cat (echo {tag} | psub)" if draw.fish else f"cat <(echo {tag})", f"{tag}\n")


def function_returns(draw: Draw) -> Piece:
    name, code = f"f{draw.tag()}", draw.rng.randrange(256)
    if draw.fish:
        return Piece(f"function {name}; return {code}; end; {name}", code=code)
    return Piece(f"{name}() {{ return {code}; }}; {name}", code=code)


def killed_child(draw: Draw) -> Piece | None:
    """In a subshell whose last word it is not, so that no shell has something to say of it."""
    if draw.fish:
        return None
    name, code = draw.rng.choice([("TERM", 143), ("KILL", 137), ("SEGV", 139), ("HUP", 129), ("PIPE", 141)])
    return Piece(f"(sh -c 'kill -{name} $$; sleep 5' 2>/dev/null; exit $?) 2>/dev/null", code=code)


def terminal_modes(draw: Draw) -> Piece:
    """The last of these is what a careless program leaves behind."""
    tag = draw.tag()
    return Piece(f"stty -echo </dev/tty; stty echo </dev/tty; echo {tag}", f"{tag}\n")


ATOMS: list[Callable[[Draw], Piece | None]] = [
    echo,
    no_newline,
    odd_text,
    long_word,
    exit_code,
    plain_false,
    plain_true,
    negated,
    test_fails,
    here_document,
    here_document_with_tabs,
    here_string,
    comment,
    forged_marks,
    queries,
    progress,
    backspaces,
    colours,
    link,
    variable,
    many_lines,
    to_standard_error,
    to_the_terminal,
    from_a_pipe,
    pipeline,
    closed_input,
    other_shell,
    other_session,
    extra_descriptor,
    output_led_away,
    process_substitution,
    function_returns,
    killed_child,
    terminal_modes,
]
