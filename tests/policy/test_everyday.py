"""Everyday reading, as agents write it: allowed, with a plan of the same meaning; its hostile neighbours are not."""

from pathlib import Path

import pytest

from tarmac.policy import Execute, Policy, PrefixRules

NOWHERE = Path("/no/such/place/project")


async def stages(line: str, *, shell: str = "bash", workspace: Path = NOWHERE) -> list[list[str]] | str:
    """The words of each stage of the plan; the decision when there is none."""
    verdict = await Policy().judge(Execute(line, cwd=workspace, shell=shell), workspace=workspace)
    if verdict.plan is None:
        return verdict.decision
    return [list(stage.words) for step in verdict.plan.steps for stage in step.stages]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("LC_ALL=C sort a", "env LC_ALL=C sort a"),
        ("LANG=en_US.UTF-8 LC_ALL=C ls", "env LANG=en_US.UTF-8 LC_ALL=C ls"),
        ("TZ=America/New_York date", "env TZ=America/New_York date"),
        ("TZ='UTC' date", "env TZ=UTC date"),
        ("GIT_PAGER= git log -3", "env GIT_PAGER= git log -3"),
        ("PAGER=cat git show", "env PAGER=cat git show"),
        ("NO_COLOR=1 COLUMNS=200 ls", "env NO_COLOR=1 COLUMNS=200 ls"),
    ],
)
async def test_a_variable_in_front_that_changes_only_looks_goes_into_the_plan(line: str, words: str) -> None:
    """P2: the plan has it as words of env."""
    found = await stages(line)
    assert [each for each in found[0] if not each.startswith("--no-")] == words.split()


@pytest.mark.parametrize(
    "line",
    [
        "LC_ALL=../x sort a",
        "LANG=/tmp/x ls",
        "LC_ALL=$X ls",
        "LC_ALL=$(id) ls",
        "LC_ALL+=C ls",
        "TZ=/etc/shadow date",
        "TZ=:../../x date",
        "PAGER=./x git show",
        "GIT_PAGER='cat; id' git log",
        "PAGER=~/cat git log",
        "MANPAGER=sh man ls",
        "PATH=. ls",
        "LD_PRELOAD=./x.so ls",
        "LC_ALL=C LD_PRELOAD=x ls",
        "GIT_DIR=x git log",
        "GIT_EXTERNAL_DIFF=x git diff",
        "LC_ALL=C rm a",
        "LC_ALL=C",
        "LC_ALL=C; rm a",
        "NO_COLOR=1 cd src",
        "IFS=x ls",
        "LOCPATH=. ls",
        "TERMINFO=. ls",
        "NO_COLOR=(a) ls",
        "LC_ALL=C sort -o x a",
        "LC_ALL[0]=C ls",
        "LESSOPEN='|id' less a",
        "TERM=../x less a",
    ],
)
async def test_a_variable_in_front_that_could_do_more_asks(line: str) -> None:
    """P2: a short list of names, each with the values that are known."""
    assert await stages(line) == "ask"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("cat a # show it", [["cat", "a"]]),
        ("# look first\nls src", [["ls", "src"]]),
        ("ls # one\ncat a # two", [["ls"], ["cat", "a"]]),
        ("ls # 'open \" $(rm x) `", [["ls"]]),
        ("echo a#b '#c'", [["echo", "a#b", "#c"]]),
        ("ls -l a \\\n  b", [["ls", "-l", "a", "b"]]),
        ("cat a \\\n | wc -l", [["cat", "a"], ["wc", "-l"]]),
        ("ls {src,tests}", [["ls", "src", "tests"]]),
        ("ls -la {package,tsconfig}.json", [["ls", "-la", "package.json", "tsconfig.json"]]),
        ("cat {a,b}/{c,d}", [["cat", "a/c", "a/d", "b/c", "b/d"]]),
        ("diff a{,.orig}", [["diff", "a", "a.orig"]]),
        (
            "grep -rn --exclude-dir={node_modules,.git} x .",
            [["grep", "-rn", "--exclude-dir=node_modules", "--exclude-dir=.git", "x", "."]],
        ),
        ("/bin/ls -la", [["/bin/ls", "-la"]]),
        ("/usr/bin/cat a | /usr/bin/head -3", [["/usr/bin/cat", "a"], ["/usr/bin/head", "-3"]]),
    ],
)
async def test_another_spelling_gives_the_same_words(line: str, words: list[list[str]]) -> None:
    """P2: comments, continued lines, braces and a program's whole path."""
    assert await stages(line) == words


@pytest.mark.parametrize(
    "line",
    [
        "ls # x\nrm a",
        "ls # x \\\nrm a",
        "ls a#\\\n; rm a",
        "ls \\\n; rm a",
        "ls; \\\nrm a",
        "ls &\\\n& rm a",
        "ls '#'; rm a # x",
        "cat {a,/etc/shadow}",
        "cat {a,.env}",
        "cat {.e,}nv{,x}",
        "cat .{env,x}",
        "cat {a,{b,c}}",
        "ls {1..99999999}",
        "cat {a,$X}",
        "cat {a,$(id)}",
        "{ls,-l}",
        "{rm,a}",
        "sort {-o,x} a",
        "cat {a,~/.ssh/id_rsa}",
        "cat {..,x}/{..,y}/z",
        "ls {,}",
        "echo " + "{a,b}" * 20,
        "/bin/rm a",
        "/usr/bin/sort -o x a",
        "./ls",
        "bin/ls",
        "/tmp/ls",
        "/usr/bin/../../tmp/ls",
        "//tmp/ls",
        "/opt/bin/ls",
        "/no/such/place/project/ls",
        "find . -type f -exec /usr/bin/git show {} +",
        "timeout 5 /usr/bin/xargs ls",
        "/usr/bin/command ls",
        "/usr/bin/env | grep SECRET",
        "LC_ALL=C env | grep -i token",
        "cat *.{pem,key}",
    ],
)
async def test_another_spelling_hides_nothing(line: str) -> None:
    """P2: what stands behind the spelling is judged like words typed one by one."""
    assert isinstance(await stages(line), str)


@pytest.mark.parametrize(("line", "shell"), [("ls {src,tests}", "sh"), ("ls {src,tests}", "dash"), ("ls # a", "zsh")])
async def test_what_a_shell_reads_otherwise_asks_there(line: str, shell: str) -> None:
    """P2: sh has no braces, and at zsh's prompt a # begins no comment."""
    assert await stages(line, shell=shell) == "ask"


@pytest.mark.parametrize(
    "line", ["ls # x \\\nrm -rf /", "# x \\\nrm -rf /", "(ls # x \\\nrm -rf /)", "ls \\\n # x \\\nrm -rf /"]
)
async def test_a_comment_that_seems_to_go_on_is_never_of_low_risk(line: str) -> None:
    """P2: a shell ends the comment with its line and runs the next; shfmt takes that for words of the first."""
    verdict = await Policy().judge(Execute(line, cwd=NOWHERE), workspace=NOWHERE)
    assert (verdict.decision in ("ask", "deny"), verdict.risk in ("high", "critical")) == (True, True)


async def test_a_system_folder_inside_of_the_workspace_is_no_safe_place() -> None:
    """P1: whoever writes the workspace could put a program there."""
    assert await stages("/usr/bin/ls", workspace=Path("/usr")) == "ask"
    assert await stages("ls", workspace=Path("/usr")) == [["ls"]]


@pytest.mark.parametrize(
    "line",
    [
        "for f in a b; do rm $f; done",
        "for f in a b; do cat $f > c; done",
        "for f in ls rm; do $f a; done",
        "for f in /etc/shadow; do cat $f; done",
        'for f in .env; do cat "$f"; done',
        "for f in a; do cat /etc/sha$f; cat .en$f; done; for f in v; do cat .en$f; done",
        "for f in '-o x'; do sort $f a; done",
        "for f in -o; do sort $f x a; done",
        "for f in 'a b'; do ls $f; done",
        "for f in '*'; do ls $f; done",
        "for f in $(ls); do cat $f; done",
        "for f in `ls`; do cat $f; done",
        'for f in "$@"; do cat $f; done',
        "for f in $X; do cat $f; done",
        "for f; do cat $f; done",
        "for PATH in .; do ls; done",
        "for IFS in x; do ls; done",
        "for ((i = 0; i < 3; i++)); do echo $i; done",
        "select f in a b; do cat $f; done",
        "for f in a b; do cat $f & done",
        "for f in a; do cat $f; done > out",
        "for f in a; do cat $f; done | sh",
        "for f in a; do cat ${f:-$(id)}; done",
        "for f in a; do cat ${f//a/.env}; done",
        "for f in a; do f() { rm x; }; ls; done",
        "for f in {1..9999}; do ls; done",
        "for f in " + "a " * 300 + "; do ls; done",
        "for a in 1 2 3 4 5 6; do for b in 1 2 3 4 5 6; do for c in 1 2 3 4 5 6; do ls; done; done; done",
        "while true; do ls; done",
        'while read -r f; do cat "$f"; done < list',
        "until ls; do ls; done",
        "if rm a; then ls; fi",
        "if ls; then rm a; fi",
        "if ls; then ls; else rm a; fi",
        "if ls; then ls; elif rm a; then ls; fi",
        "if ls; then ls; fi > out",
        "if ls; then cd src; fi; cat x",
        "if cd src; then ls; fi",
        "if ls; then ls; fi &",
        "case a in a) ls ;; esac",
        "[[ 'a[$(id)]' -eq 1 ]]",
        "[[ -v a ]]",
        "[[ $(id) == x ]]",
        "[[ -f a && -f b ]] > out",
        "[[ a =~ b ]]",
        "[[ -f a ]] && rm a",
        "time rm a",
        "time -p sh -c ls",
        "time",
        "cat <<< $(id)",
        "cat <<< `id`",
        "cat <<< $X",
        "cat <<< ~",
        "sh <<< 'rm a'",
        "cat <<END\n$(id)\nEND",
        "cat <<END\n`id`\nEND",
        "cat <<END\n$HOME\nEND",
        "cat <<'END' > a\nx\nEND",
        "cat <<'END' | sh\nrm a\nEND",
        "cat <<'END'\nx\nEND\nrm a",
        "cat <<'END'\nx\n END\nrm a\nEND\nrm b",
        "bash <<'END'\nls\nEND",
        "sed -f - a <<< 'w b'",
        "xargs cat <<< /etc/shadow",
        "ls; rm $?",
        "ls; cat $?",
        "ls; sort -o $? a",
        "ls; exit $?",
        "ls; cat <<< $?",
        "ls; wc < $?",
        "ls; $?",
        "echo $?",
        "ls $HOME",
        "cat ${PWD}/../x",
        "cat $PWD/.env",
        'cat "$PWD"/../../etc/passwd',
        "ls ${PWD%/*}",
        "echo ${!PWD}",
        "echo $SECRET",
        "$PWD/a.sh",
        "PWD=/ ls $PWD",
        "x=a; cat $x",
        "x=a && ls",
        "ls && { rm a; }",
        "ls || (rm a)",
        "ls && { ls; } > out",
        "ls && { ls; } &",
        "(ls; rm a)",
        "! (rm a)",
        "! { ls; }",
        "false || { cd src; }; cat x",
    ],
)
async def test_what_is_no_reading_asks_wherever_it_stands(line: str) -> None:
    """P2: in loops, conditions, groups, tests and here-documents; behind variables."""
    assert isinstance(await stages(line), str), line


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('for f in a b; do cat "src/$f.py"; done', [["cat", "src/a.py"], ["cat", "src/b.py"]]),
        ("for f in {a,b}.py; do wc -l ${f}; done", [["wc", "-l", "a.py"], ["wc", "-l", "b.py"]]),
        ("time ls -l", [["ls", "-l"]]),
        ("[[ a != b ]]", [["test", "a", "!=", "b"]]),
        ("[[ ! -e a ]]", [["test", "!", "-e", "a"]]),
        ('ls "$PWD"/src', [["ls", f"{NOWHERE}/src"]]),
        ("cd src && ls $PWD", [["ls", f"{NOWHERE}/src"]]),
        ('ls; echo "$?"', [["ls"], ["echo", "\0"]]),
        ("cd src; echo $?", [["echo", "0"]]),
    ],
)
async def test_what_is_known_is_written_out(line: str, words: list[list[str]]) -> None:
    """P2: the plan has the words that the programs get; the status of the step before is put in by its runner."""
    assert await stages(line) == words


async def test_a_rule_for_words_does_not_reach_into_loops_and_conditions() -> None:
    """P4: it covers plain lines, as ever."""
    policy = Policy(rules=PrefixRules(allow=(("npm", "test"),)))
    for line in (
        "if ls; then npm test; fi",
        "for x in a; do npm test; done",
        "npm test $PWD",
        "[[ -f a ]] && npm test",
    ):
        assert (await policy.judge(Execute(line, cwd=NOWHERE), workspace=NOWHERE)).decision == "ask", line
