"""Everyday reading, as agents write it: allowed, with a plan of the same meaning; its hostile neighbours are not."""

from pathlib import Path

import pytest

from tarmac.policy import Execute, Policy, PrefixRules

pytestmark = pytest.mark.slow

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


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("find . -name '*.py' | xargs grep -n x", "find . -name *.py -type f -print0|xargs -0 grep -n x --"),
        ("find . -name '*.py' -print0 | xargs -0 cat", "find . -name *.py -type f -print0|xargs -0 cat --"),
        (
            "find src -name '*.py' | xargs -I{} grep x {}",
            "find src -name *.py -type f -print0|xargs -0 -I{} grep x -- {}",
        ),
        ("find . -name '*.md' 2>/dev/null | xargs head -3", "find . -name *.md -type f -print0|xargs -0 head -3 --"),
        ("find . -name '*.py' | head -2 | xargs cat", "find . -name *.py -type f -print0|head -2 -z|xargs -0 cat --"),
        ("find . -name '*.py' -exec cat {} +", "find . -name *.py -type f -exec cat {} +"),
        (
            "for d in a; do find $d -name '*.py' | xargs grep x; done",
            "find a -name *.py -type f -print0|xargs -0 grep x --",
        ),
        ("find . -name '*.py' | xargs rg x", "find . -name *.py -type f -print0|xargs -0 rg x --"),
        ("git ls-files | xargs grep -n x", "git ls-files -z|xargs -0 grep -n x --"),
        ("git ls-files -- src ':!*.pem' | xargs rg x", "git ls-files -z -- src :!*.pem|xargs -0 rg x --"),
        ("git ls-files '*.py' | head -5 | xargs cat", "git ls-files -z *.py|head -5 -z|xargs -0 cat --"),
        ("git ls-files -z | xargs -0 grep x", "git ls-files -z -z|xargs -0 grep x --"),
        ("git ls-files | xargs -I{} grep x {}", "git ls-files -z|xargs -0 -I{} grep x -- {}"),
        (
            "git diff --name-only HEAD~1 | xargs cat",
            "git diff --no-ext-diff --no-textconv -z --name-only HEAD~1|xargs -0 cat --",
        ),
        ("rg -l x | xargs head -3", "rg --null -l x|xargs -0 head -3 --"),
        ("rg -l0 x | xargs -0 rg -n y", "rg --null -l0 x|xargs -0 rg -n y --"),
        ("rg --files -g '*.py' | xargs cat", "rg --null --files -g *.py|xargs -0 cat --"),
        ("grep -Rl x . | xargs grep y", "grep --null -rl x .|xargs -0 grep y --"),
        ("git -c core.quotepath=false status", "git -c core.quotepath=false status"),
        (
            "git --no-pager -c color.ui=never -C src log -3",
            "git --no-pager -c color.ui=never -C src log --no-ext-diff --no-textconv -3",
        ),
        (
            "git -P -c log.date=format:%Y-%m-%d -c core.pager=cat log",
            "git -P -c log.date=format:%Y-%m-%d -c core.pager=cat log --no-ext-diff --no-textconv",
        ),
        ("bash -n a.sh", "bash -n a.sh"),
        ("sh -n -- a.sh", "sh -n -- a.sh"),
        ("find . -name '*.sh' -exec bash -n {} ';'", "find . -name *.sh -type f -exec bash -n {} ;"),
        ("python3 -m pip list", "python3 -I -m pip list"),
        ("python -m json.tool a.json", "python -I -m json.tool a.json"),
        ("docker compose -f a.yml -p x config -q", "docker compose -f a.yml -p x config -q"),
        ("npm help install", "npm help --viewer=man install"),
        ("umask", 'bash -c umask "$@" bash'),
    ],
)
async def test_a_plan_says_it_more_safely_than_the_line(line: str, words: str) -> None:
    """P2: whole names of plain files for xargs, no modules of the project for python."""
    assert "|".join(" ".join(stage) for stage in await stages(line)) == words


@pytest.mark.parametrize(
    "line",
    [
        "cp --help", "rm --version", "git commit --help", "git push -h", "cargo build --help", "docker run --help",
        "docker compose logs --help", "gh pr create --help", "uv pip install --help", "kill -l", "kill -l 9",
        "kill -0 12", "mount", "ldconfig -p", "lsof -nP -i :80 -sTCP:LISTEN",
        "crontab -l", "ulimit -a", "git clean -nd", "git add -n .", "git commit --dry-run", "git hash-object a",
        "git diff --no-index a b", "git remote show -n origin", "git submodule", "git fsck", "jq .a[0].b x.json",
        "jq .env x.json", "npm query '*'", "cat /var/log/syslog", "cat /proc/self/status", "cat /proc/self/cgroup",
        "cat /sys/class/net/eth0/address", "ls | tee /dev/null", "jar tf a.jar", "ar t a.a", "wc -l .env",
        "ls *.py | xargs wc -l", "gofmt -l .",
    ],
)  # fmt: skip
async def test_asking_a_program_something_needs_no_question(line: str) -> None:
    """P2: help, lists and dry runs."""
    assert not isinstance(await stages(line), str), line


@pytest.mark.parametrize(
    "line",
    [
        "find . -name '*' | xargs cat", "find . -name '*.*' -type f -exec cat {} +",
        "find . -path './*' | xargs head", "find . -name '*.py' | uniq | xargs cat",
        "find . -name '*.py' | sed s/a/b/ | xargs cat", "find . -name '*.py' | sort -o x | xargs cat",
        "find . -type l -exec cat {} +", "find . -name '*.py' -exec cat {} + -o -exec rm {} +",
        "find src/* -name '*.py' | xargs grep x", "find $X -name '*.py' | xargs grep x",
        "awk -f - <<< 'BEGIN{system(0)}'", "jq -f /dev/stdin <<< x", "docker run x --help", "docker exec web --help",
        "docker compose run web --help", "uv run x --help", "npx x --help", "go run x --help", "go tool x --help",
        "podman run x --help", "kubectl exec x --help", "npm exec x --help", "cargo xtask --help", "git xtask --help",
        "git lfs --help", "make --help x", "sudo ls --help", "env ls --help x", "xargs --help rm", "rm --help x",
        "rm x --help", "kill 1", "kill -9 1", "kill -l; kill 1", "kill -0", "kill -s 0 1", "mount /dev/sda1 /mnt",
        "mount -a", "mount --bind a b", "ldconfig", "ldconfig -v", "iptables -F", "iptables -L -Z", "ufw disable",
        "crontab a", "crontab -r", "crontab", "ulimit -n 5", "umask 0", "swapon -a", "fuser -k 80/tcp", "git clean",
        "git clean -fd", "git clean -f", "git add .", "git add -p", "git commit", "git commit -m x",
        "git commit --dry-run -m x", "git rm a", "git hash-object -w a", "git hash-object --stdin",
        "git fsck --lost-found", "git diff --no-index a /etc/passwd", "git diff --no-index a ../../x",
        "git remote show origin", "git remote add a b", "git submodule foreach ls", "git submodule update", "nm @x",
        "objdump -d @x", "strings @x", "size @x", "ar t @x", "ar r a b", "jar cf a b", "jar tf @x", "jar xf a",
        "javap @x", "7z x a", "zstd a", "tee a", "tee -a a", "python -m http.server", "python -m pip install x",
        "python -m pip", "python -m json.tool a b", "python -m x", "python -m pip download x",
        "docker compose -f https://x.example/a.yml ps", "docker compose -f /etc/x ps", "docker compose -f a.yml up",
        "docker compose -f .env ps", "cat /proc/self/environ", "cat /proc/1/environ", "cat /proc/self/mem",
        "cat /var/log/auth.log", "cat /sys/../etc/shadow", "pdftotext a", "pdftotext a b",
        "find . -name .env | xargs cat", "find / -name x | xargs cat", "find . -name x -o -name y | xargs cat",
        "find . | xargs cat", "find . -type l | xargs sh", "find . -name x | xargs rm", "find .. -name x | xargs cat",
        "find . -name x -exec rm {} + | xargs cat", "wc -l /dev/zero", "wc /root/.ssh/id_rsa", "gofmt -w .",
        "git ls-files | xargs cat", "git ls-files '*.py' . | xargs cat", "git ls-files ':!*.py' | xargs cat",
        "git ls-files .env | xargs grep x", "git ls-files '*.pem' | xargs cat", "git ls-files -s | xargs grep x",
        "git ls-files --format='/etc/passwd' | xargs grep x", "git -C src ls-files | xargs grep x",
        "git ls-files -z | xargs grep x", "git ls-files | xargs -0 grep x",
        "git ls-files -z | head -1 | xargs -0 grep x", "git diff --name-only -- .env | xargs cat",
        "git ls-files ':/*.pem' | xargs grep x", "git ls-files ':(glob)*.pem' | xargs grep x",
        "git ls-files | xargs grep -e", "git ls-files | xargs grep -e --", "git ls-files | xargs rg -A",
        "git ls-files | xargs rg --pre=x y", "git ls-files | xargs rm", "git ls-files | xargs sed -n 1p",
        "git ls-files | xargs git grep", "git ls-files | xargs timeout 5 grep x", "git ls-files | xargs bash -n",
        "git ls-files | sed s,^,/etc/, | xargs grep x", "git ls-files | rg -r /etc/passwd . | xargs wc",
        "ls | rg -r /etc/passwd . | xargs wc -l", "git diff | xargs grep x", "git diff --name-only -p | xargs grep x",
        "git log --name-only | xargs grep x", "git show --name-only | xargs cat", "rg x | xargs cat",
        "rg -l x -r y | xargs cat", "rg -t -l x | xargs cat", "rg -l --pre=x y | xargs cat", "rg --files | xargs cat",
        "rg --files -g '!*.py' | xargs cat", "rg --files -g '*.py' -g '*' | xargs cat", "grep -rL x . | xargs cat",
        "grep -r x . | xargs grep y", "grep -rl x /etc | xargs grep y", "git ls-files --exec=x | xargs cat",
        "git -c core.pager=evil log", "git -c core.pager log", "git -c CORE.PAGER=sh log", "git -ccore.pager=cat log",
        "git -c core.fsmonitor=x status", "git -c alias.log=!x log", "git -c include.path=x log",
        "git -c diff.external=x diff", "git -c diff.x.textconv=y diff", "git -c log.showSignature=true log",
        "git -c gpg.program=x log", "git -c core.hooksPath=x status", "git -c color.ui=./x log", "git -c color.ui log",
        "git -c color.ui='$(touch x)' log", "git -c color.ui=$X log", "git -c status.submoduleSummary=true status",
        "git -c diff.submodule=diff diff", "git -c grep.fallbackToNoIndex=true grep x", "git -c 'color.ui=a\nb' log",
        "git -c core.abbrev=/etc/x log", "git -c 'core.quotepath=x' -c core.editor=x log", "git -c x.y=z status",
        "git --config-env=core.pager=HOME log", "git --config-env core.pager=HOME log", "git -c color.ui=never",
        "GIT_CONFIG_COUNT=1 git -c color.ui=never log", "GIT_CONFIG_PARAMETERS=x git log", "GIT_PAGER=x git log",
        "git -c color.ui=never commit -m x", "git -c color.ui=never branch x", "git -c color.ui=never -C .. log",
        "bash -n", "bash -n -", "bash -n +n", "bash -n -- +n", "bash -n -- -x", "bash a.sh -n", "bash -n a.sh b",
        "bash -nx a.sh", "bash -n +n a.sh", "bash +n a.sh", "bash -n -c ls", "bash -nc ls", "bash -n -O x a.sh",
        "bash -n -i a.sh", "bash -n --rcfile x a.sh", "bash -n -o noexec a.sh", "bash -n < a.sh", "bash -n <(ls)",
        "bash -n .env", "bash -n ../a.sh", "bash -n /etc/profile.d/x", "bash -n a.sh > b", "bash -n a.sh; ./a.sh",
        "BASH_ENV=x bash -n a.sh", "ENV=x sh -n a.sh", "zsh -n a.sh", "ls | bash -n +n", "sudo bash -n a.sh",
        "gofmt -r 'a -> b' x", "rustc a.rs", "rustc --print sysroot a.rs", "npm fund x",
    ],
)  # fmt: skip
async def test_what_looks_like_a_question_and_does_more_asks(line: str) -> None:
    """P2: a word more or less, and it changes something, or runs somebody's code."""
    found = await stages(line)
    assert isinstance(found, str), (line, found)


@pytest.mark.parametrize(
    "line",
    [
        'echo "branch: $(git branch --show-current)"', "echo $(date)", "echo `git rev-parse HEAD`",
        'echo "$(git log -1 --format=%s)" "$(wc -l < a)"', "case a in a) ls ;; esac", "while true; do git status; done",
        "ls & git status", "for f in $(git ls-files); do echo $f; done", "x=$(git rev-parse HEAD)", "echo $((x + 2))",
    ],
)  # fmt: skip
async def test_reading_that_no_plan_can_have_is_of_low_risk(line: str) -> None:
    """P3: each part is proven to read; the whole asks, and no more is said of it."""
    verdict = await Policy().judge(Execute(line, cwd=NOWHERE), workspace=NOWHERE)
    assert (verdict.decision, verdict.risk) == ("ask", "low"), verdict.reason


@pytest.mark.parametrize(
    ("line", "risk"),
    [("echo $(rm a)", "medium"), ("echo $(cat .env)", "high"), ("while true; do rm -rf x; done", "critical"),
     ("ls & curl https://x.example", "medium"), ("cat $(curl https://x.example)", "medium"),
     ("f() { ls; }; f", "medium"), ("alias ls=x; ls", "medium")],
)  # fmt: skip
async def test_what_does_more_keeps_its_risk_beside_reading(line: str, risk: str) -> None:
    """P3: as dangerous as its worst part."""
    verdict = await Policy().judge(Execute(line, cwd=NOWHERE), workspace=NOWHERE)
    assert (verdict.decision, verdict.risk) == ("ask", risk), verdict.reason
