"""What an outside review got past the tables: each was allowed, and ran, wrote or sent something. Now each asks.

The last tests are about their class: every check is used, and where a program is installed, its own parser decides
whether our table reads an option as it does (test_arity.py).
"""

import os
import subprocess
from pathlib import Path

import pytest
from tests.policy.test_plan import carry_out

from tarmac.policy import Execute, Policy, Verdict
from tarmac.policy.plan import environment
from tarmac.policy.programs.checks import FURTHER, OWN
from tarmac.policy.programs.program import grammars


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one commit."""
    root = tmp_path / "shop"
    (root / "src").mkdir(parents=True)
    (root / "a.txt").write_text("one\n")
    (root / "src" / "b.py").write_text("x = 1\n")
    git(root, "init -q -b main")
    git(root, "add .")
    git(root, "commit -qm first")
    return root


def git(where: Path, line: str) -> None:
    who = ("-c", "user.name=x", "-c", "user.email=x@x.example", "-c", "protocol.file.allow=always")
    subprocess.run(["git", *who, *line.split()], cwd=where, check=True, timeout=20, capture_output=True)


def run(*words: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, cwd=cwd, capture_output=True, text=True, timeout=20, check=False)


async def judge(line: str, workspace: Path) -> Verdict:
    return await Policy().judge(Execute(line, cwd=workspace), workspace=workspace)


async def plan_words(line: str, workspace: Path) -> list[str]:
    verdict = await judge(line, workspace)
    assert verdict.decision == "allow", verdict.reason
    assert verdict.plan is not None
    return [" ".join(stage.words) for step in verdict.plan.steps for stage in step.stages]


ASKS = {
    "a class in a bracket expression moves the end of sed's pattern": [
        "sed 's/[[:alpha:]/]/touch P/e' a.txt",
        "sed 's/[[:space:]/]/g;e touch P/;p' a.txt",
        "sed -n '/[[:alpha:]/]/e touch P' a.txt",
        "sed 's/[[.slash.]/]/id/e' a.txt",
        "sed 's/[[=a=]/]/id/e' a.txt",
    ],
    "an option takes a value that the table did not know of": [
        "nm -f -- --plugin=./x.so a.txt",
        "scc -f -- -o out",
        "sdiff -w -- -o out a.txt a.txt",
        "pip list -f -- --log out",
        "xxd -ps a.txt out",
        "xxd -ps -r a.txt",
        "xxd -postscript a.txt out",
        "xxd -cols 8 a.txt out",
        "xxd -c 8 a.txt out",
    ],
    "a service is a name": ["service ../x status", "service /tmp/x status", "service ./x status"],
    "a script splits its values": [
        "bzgrep -A '1 -f /etc/passwd' x a.bz2",
        "bzgrep -m '1 --file=/etc/passwd' x a.bz2",
        "xzgrep -e 'x y' a.xz",
        "zgrep -C '1 -r' x a.gz",
        "bzgrep x 'a b.bz2'",
    ],
    "a filter makes other names of those it gets": [
        "find . -name '.env.example' | head -c 7 | xargs cat",
        "find . -name '*.example' | grep -o '.*/.env' | xargs cat",
        "find . -name '*.py' | uniq -c | xargs cat",
        "find . -name '*.py' | grep -c x | xargs cat",
        "find . -name '*.py' | grep -n x | xargs cat",
        "find . -name '*.py' | sort -o out | xargs cat",
        "find . -name '*.py' | tail -c 9 | xargs cat",
        "find . -name '*.py' | grep -A1 x | xargs cat",
    ],
    "it runs a project's code, contacts a server, or writes a lock file": [
        "cargo --list",
        "cargo metadata",
        "cargo metadata --no-deps",
        "cargo tree",
        "cargo search serde",
        "rustup which cargo",
        "pytest --help",
        "tox --version",
        "tox --help",
        "pylint --version",
        "pylint --help",
        "terraform state list",
        "terraform workspace list",
        "tofu state list",
        "ansible --version",
        "ansible --help",
        "npm view lodash",
        "npm search x",
        "npm ping",
        "npm whoami",
        "npm outdated",
        "pip index versions requests",
        "pip list --outdated",
        "docker ps",
        "docker version",
        "kubectl get pods",
        "kubectl version",
        "gh pr list",
        "helm list",
        "aws s3 ls",
        "conda search numpy",
        "gem search x",
    ],
    "it prints credentials": [
        "git config --list",
        "git config -l",
        "git config list",
        "git config --get-regexp .",
        "git config --get-regexp '.*'",
        "git config --get-regexp url",
        "git config --global --list",
        "pip config list",
        "pip config get global.index-url",
        "pip3 config list",
        "python3 -m pip config list",
        "npm config list",
        "npm config ls -l",
        "gcloud config list",
        "go env",
        "go env GOPROXY",
        "go env GOAUTH GOPATH",
    ],
    "a name is looked up in the network": [
        "hostname -f",
        "hostname -i",
        "hostname -d",
        "hostname -A",
        "hostname --fqdn",
        "netstat -t",
        "lsof -i",
        "arp -a",
        "route",
        "iptables -L",
        "ss -r",
        "getent hosts example.org",
        "getent ahosts example.org",
    ],
    "a submodule's own diff forgets the plan's switches": [
        "git diff --submodule=diff",
        "git log -p --submodule=diff",
        "git show --submodule=diff",
    ],
    "openssl takes a colon for an address": ["openssl x509 -in http:x -noout"],
}


@pytest.mark.parametrize(("why", "line"), [(why, line) for why, lines in ASKS.items() for line in lines])
async def test_what_the_review_got_through_asks(repository: Path, why: str, line: str) -> None:
    """P2: none of these runs without a question."""
    verdict = await judge(line, repository)
    assert (verdict.decision, verdict.plan) == ("ask", None), why


@pytest.mark.parametrize(
    "line",
    [
        "sed -n '/[[:alpha:]]/p' a.txt", "sed 's/[[:space:]]*$//' a.txt", "sed 's/[][]/x/' a.txt",
        "xxd a.txt", "xxd -l 64 a.txt", "xxd -c8 a.txt", "xxd -p a.txt", "xxd -ps a.txt",
        "zgrep -i error a.gz", "zgrep -A 2 error a.gz", "bzgrep -n error a.bz2",
        "find . -name '*.py' | sort -r | head -5 | xargs cat", "find . -name '*.py' | grep -v test | xargs head",
        "cargo --version", "rustc --version", "pip list", "pip show requests", "npm ls", "npm --version",
        "git config --get user.name", "git config user.email", "git config --get-regexp ^alias",
        "git config --get remote.origin.url", "git remote -v", "go env GOPATH", "hostname", "hostname -s",
        "lsof -nP -i", "openssl x509 -in a.txt -noout -subject", "terraform version",
        "git diff --submodule=log", "git diff a.txt src",
    ],
)  # fmt: skip
async def test_their_everyday_kin_are_still_allowed(repository: Path, line: str) -> None:
    """P1: what was meant by the entries stays."""
    verdict = await judge(line, repository)
    assert verdict.decision == "allow", verdict.reason


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("sed -n 1p a.txt", "sed --sandbox -n 1p a.txt"),
        ("timeout 5 sed -n 1p a.txt", "timeout 5 sed --sandbox -n 1p a.txt"),
        ("nice -n 5 git diff", "nice -n 5 git diff --no-ext-diff --no-textconv"),
        ("stdbuf -oL grep -R x src", "stdbuf -oL grep -r x src"),
        ("timeout 5 diff -r src src", "timeout 5 diff --no-dereference -r src src"),
        ("timeout 5 git config user.name", "timeout 5 env -u GIT_CONFIG_COUNT git config user.name"),
        ("nohup git show", "git show --no-ext-diff --no-textconv"),
        ("find src -type f -name '*.py' -exec sed -n 1p {} +",
         "find src -type f -name *.py -exec sed --sandbox -n 1p {} +"),
        ("find src -type f -name '*.py' -exec grep -R x {} ;", "find src -type f -name *.py -exec grep -r x {} ;"),
        ("python3 -m json.tool a.txt", "python3 -I -m json.tool a.txt"),
    ],
)  # fmt: skip
async def test_a_wrapper_keeps_what_makes_its_command_safe(repository: Path, line: str, words: str) -> None:
    """P2: the plan inside of timeout, nice, stdbuf and find -exec is the hardened one."""
    assert await plan_words(line.replace(" ;", " \\;"), repository) == [words]


async def test_a_plan_of_sed_runs_nothing_even_if_its_script_was_read_wrongly(repository: Path) -> None:
    """P2: with --sandbox sed itself refuses e, r and w."""
    words = (await plan_words("sed -n 1p a.txt", repository))[0].split()
    ran = run(*words[:2], "1e touch P", "a.txt", cwd=repository)
    assert (ran.returncode != 0, (repository / "P").exists()) == (True, False)


async def test_a_path_of_git_diff_that_leads_out_through_a_link_asks(tmp_path: Path) -> None:
    """P2: outside of a repository git diff reads any two files."""
    workspace = tmp_path / "plain"
    workspace.mkdir()
    (workspace / "a.txt").write_text("one\n")
    (workspace / "link").symlink_to("/etc")
    assert (await judge("git diff link/passwd a.txt", workspace)).decision == "ask"
    assert (await judge("git diff --stat -- a.txt link/passwd", workspace)).decision == "ask"


@pytest.mark.parametrize("line", ["npm ls", "npm list -g", "npm root", "npm config get registry", "npm help install"])
async def test_npm_asks_where_the_project_has_an_npmrc(repository: Path, line: str) -> None:
    """P2: a repository's .npmrc chooses the proxy that gets the person's token, and programs to run."""
    (repository / ".npmrc").write_text("proxy=http://127.0.0.1:9\n")
    assert (await judge(line, repository)).decision == "ask"


@pytest.mark.parametrize("line", ["git remote -v", "git remote get-url origin", "git config --get remote.origin.url"])
async def test_an_address_with_a_password_in_it_is_asked_about(repository: Path, line: str) -> None:
    """P2: it would be printed."""
    git(repository, "remote add origin https://x:hunter2@example.org/x.git")
    assert (await judge(line, repository)).decision == "ask"


# submodules


def submodule(parent: Path, name: str, source: Path) -> Path:
    git(parent, f"submodule add -q {source} {name}")
    git(parent, "commit -qm submodule")
    return parent / name


@pytest.fixture
def library(tmp_path: Path) -> Path:
    root = tmp_path / "library"
    root.mkdir()
    (root / "l.txt").write_text("l\n")
    git(root, "init -q -b main")
    git(root, "add .")
    git(root, "commit -qm first")
    return root


async def test_the_configuration_of_a_submodule_in_a_submodule_counts(repository: Path, library: Path) -> None:
    """P2: git status goes into every one of them, with its own filters."""
    middle = library.parent / "middle"
    run("cp", "-r", library, middle, cwd=library)
    inner = submodule(middle, "inner", library)
    outer = repository / "vendored"
    run("cp", "-r", middle, outer, cwd=library)
    git(repository, "add vendored")  # a repository in it, not absorbed
    assert (await judge("git status", repository)).decision == "allow"
    real = run("git", "rev-parse", "--absolute-git-dir", cwd=outer / inner.name)
    with (Path(real.stdout.strip()) / "config").open("a") as config:
        config.write('[filter "x"]\n clean = touch P\n')
    assert (await judge("git status", repository)).decision == "ask"


async def test_an_index_of_sha256_is_not_misread(library: Path, tmp_path: Path) -> None:
    """P2: where hashes are longer, names stand elsewhere."""
    root = tmp_path / "long"
    root.mkdir()
    git(root, "init -q -b main --object-format=sha256")
    inner = root / "inner"
    inner.mkdir()
    git(inner, "init -q -b main --object-format=sha256")
    (inner / "l.txt").write_text("l\n")
    git(inner, "add .")
    git(inner, "commit -qm first")
    git(root, "add inner")
    with (inner / ".git" / "config").open("a") as config:
        config.write('[filter "x"]\n clean = touch P\n')
    assert (await judge("git status", root)).decision == "ask"


async def test_a_split_index_is_read_in_both_its_files(repository: Path, library: Path) -> None:
    """P2: the submodules of a split index stand in the shared one."""
    inner = repository / "inner"
    run("cp", "-r", library, inner, cwd=library)
    git(repository, "add inner")
    git(repository, "update-index --split-index")
    assert b"\x00\x00\xe0\x00" not in (repository / ".git" / "index").read_bytes()
    with (inner / ".git" / "config").open("a") as config:
        config.write('[filter "x"]\n clean = touch P\n')
    assert (await judge("git status", repository)).decision == "ask"


# the classes


def test_every_check_is_used_and_every_check_that_is_named_exists() -> None:
    """P2: a check that no entry names protects nobody."""
    named = {program.check for program in grammars().values()} - {""}
    assert named == FURTHER.keys() | OWN.keys()


async def test_what_is_allowed_of_these_still_does_what_the_shell_would(repository: Path) -> None:
    """P2: the hardened words print the same."""
    for line in (
        "timeout 5 sed -n 1p a.txt",
        "find src -type f -name '*.py' -exec sed -n 1p {} +",
        "nice grep -R x src",
    ):
        verdict = await judge(line, repository)
        assert verdict.plan is not None
        env = environment(os.environ, workspace=repository)
        bash = run("bash", "-c", line, cwd=repository)
        assert await carry_out(verdict.plan, env) == (bash.stdout, bash.returncode)
