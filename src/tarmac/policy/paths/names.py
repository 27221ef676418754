"""Find special names in a path: which name of a list is in it, and why it is listed.

Names(listed).why(path) → "it holds keys" | ""

A listed name has one or more parts. It matches at any depth of the path, or from the root if it begins with a slash.
`*` is any part of a part. The leftmost match in the path counts, and there the first of the list. Case is ignored.
"""

import unicodedata
from collections.abc import Mapping, Sequence
from typing import NamedTuple


class _Name(NamedTuple):
    rank: int
    parts: tuple[str, ...]
    rooted: bool
    why: str


class Names:
    """One list, by the first part of each name; those that begin with a pattern are tried one by one."""

    def __init__(self, listed: Mapping[str, str]) -> None:
        self._plain: dict[str, list[_Name]] = {}
        self._patterns: list[_Name] = []
        for rank, (why, names) in enumerate(listed.items()):
            for name in _folded(names).split():
                parts = tuple(name.removeprefix("/").split("/"))
                made = _Name(rank, parts, name.startswith("/"), why)
                if "*" in parts[0]:
                    self._patterns.append(made)
                else:
                    self._plain.setdefault(parts[0], []).append(made)
        # What begins or ends like none of the patterns needs no look at each.
        firsts = [each.parts[0] for each in self._patterns]
        self._heads = tuple(head for each in firsts if (head := each.partition("*")[0]))
        self._tails = tuple(each.rpartition("*")[2] for each in firsts if each.startswith("*"))

    def why(self, path: str) -> str:
        """Why a path with one of the names in it is more than a file; empty when none is."""
        parts = _folded(path).split("/")
        rooted = path.startswith("/")
        if rooted:
            del parts[0]
        for place, part in enumerate(parts):
            found = self._plain.get(part, ())
            if part.startswith(self._heads) or part.endswith(self._tails):
                found = sorted((*found, *self._patterns))
            for each in found:
                if _matches(each, parts, place, rooted=rooted):
                    return each.why
        return ""


def _matches(name: _Name, parts: Sequence[str], place: int, *, rooted: bool) -> bool:
    if name.rooted and not (rooted and place == 0):
        return False
    here = parts[place : place + len(name.parts)]
    return len(here) == len(name.parts) and all(map(_fits, name.parts, here))


def _fits(pattern: str, part: str) -> bool:
    """As a shell would have it, with `*` alone."""
    if "*" not in pattern:
        return pattern == part
    head, *middle, tail = pattern.split("*")
    if not (part.startswith(head) and part.endswith(tail) and len(part) >= len(head) + len(tail)):
        return False
    at = len(head)
    for each in middle:
        at = part.find(each, at, len(part) - len(tail))
        if at < 0:
            return False
        at += len(each)
    return True


def _folded(path: str) -> str:
    """As a file system that ignores case and invisible letters may read it: `.GIT`, `.g\u200cit`."""
    if path.isascii():
        return path.lower()
    return "".join(
        each for each in unicodedata.normalize("NFKC", path).casefold() if unicodedata.category(each) != "Cf"
    )


# ── A change is always asked about, also when they don't exist yet.
PROTECTED = {
    "it configures Tarmac": ".tarmac .tarmacignore",
    "it configures an agent": """
        .claude .claude.json .cursor .roo .roo-code .roomodes .cline .windsurf .kilocode .kiro .codex .gemini
        .opencode opencode.json* .continue .continuerc.json .aider* .amazonq .junie .openhands .goose*
    """,
    "agents follow what it says": """
        agents.md agent.md claude.md claude.local.md gemini.md copilot-instructions.md .cursorrules .roorules*
        .clinerules* .windsurfrules
    """,
    "it says which files agents may not see": """
        .rooignore .rooprotected .clineignore .cursorignore .geminiignore .aiignore
    """,
    "it names programs that agents start": ".mcp.json mcp.json mcp_settings.json mcp_servers.toml",
    "hooks and settings in it run programs, and it holds the history": ".git .hg .svn .jj",
    "it can make git run programs, or fetch code from elsewhere": """
        .gitmodules .gitattributes .gitconfig .config/git .husky .pre-commit-config.yaml lefthook.y*ml
        .lefthook.y*ml
    """,
    "it runs programs on the project's servers": ".github .gitlab-ci.yml .circleci .travis.yml",
    "an editor runs what it says": """
        .vscode .idea .zed .fleet .devcontainer .devcontainer.json *.code-workspace .exrc .vimrc .nvimrc .nvim.lua
        .dir-locals.el .emacs* .config/nvim
    """,
    "shells run what it says": """
        .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .inputrc .zshrc .zshenv .zprofile
        .zlogin .zlogout .config/fish .envrc .mise.toml mise.toml
    """,
    "what it names starts by itself": ".config/autostart .config/systemd Library/LaunchAgents",
    "it can make ripgrep run a program": ".ripgreprc",
    "it says who may log in, and how": ".ssh",
}

# ── ParsedArguments is always asked about: what is read goes to a model.
CREDENTIAL = {
    "it holds keys": ".ssh .gnupg *.jks *.keystore /etc/ssl/private /etc/ssh/ssh_host_*",
    "it may be a private key": "id_rsa* id_dsa* id_ecdsa* id_ed25519* *.pem *.key *.p12 *.pfx",
    "it holds passwords": """
        *.kdbx .password-store .netrc _netrc .pgpass .my.cnf .mylogin.cnf .htpasswd .git-credentials
        .config/git/credentials .vault_pass* wp-config.php .local/share/keyrings Library/Keychains /etc/shadow*
        /etc/gshadow* /etc/sudoers*
    """,
    "it often holds secrets": """
        .env .env.* *.env .envrc *.tfstate *.tfstate.backup *.tfvars secrets.y*ml secrets.json secrets.toml
        credentials.json client_secret*.json service-account*.json
    """,
    "it may hold a token": """
        .npmrc .yarnrc.yml .pypirc .gem/credentials .cargo/credentials* .config/gh .config/hub .config/glab-cli
        .docker/config.json .dockercfg .terraform.d/credentials* .terraformrc .vault-token .claude.json
        .codex/auth.json .claude/.credentials.json
    """,
    "it holds credentials": """
        .aws .azure .oci .kube .config/gcloud .config/rclone .config/op /etc/kubernetes /run/secrets
        /var/run/secrets
    """,
    "it holds passwords and sessions": """
        .mozilla .config/google-chrome .config/chromium .config/BraveSoftware
    """,
    "it holds what somebody typed": ".*_history fish_history",
    "it shows the inside of a running process": """
        /proc/*/environ /proc/*/mem /proc/*/fd /proc/*/root /proc/*/cwd /proc/kcore /dev/mem /dev/kmem
    """,
}

# ── What looks like a credential and is made to be shared.
EXAMPLE = {
    "it is an example": """
        .env.example .env.sample .env.template .env.dist .env.defaults *.env.example example.env sample.env
    """,
    "it holds public keys": "*.pub .ssh/known_hosts",
}

# ── Outside of the workspace, and no secret to whoever may use this machine at all.
PUBLIC = {
    "it belongs to an installed program": "/usr /bin /sbin /lib* /opt/homebrew /nix/store",
    "it holds facts about the system": """
        /etc/*-release /etc/*_version /etc/hostname /etc/hosts /etc/resolv.conf /etc/timezone /etc/localtime
        /etc/shells /etc/services /etc/protocols /etc/issue* /etc/motd /etc/mime.types /proc/cpuinfo /proc/meminfo
        /proc/version /proc/uptime /proc/loadavg /proc/filesystems /proc/swaps /proc/stat /proc/partitions
        /proc/mounts /proc/*/status /proc/*/limits /proc/*/cgroup /proc/*/mountinfo /proc/*/mounts /proc/*/stat
        /proc/*/comm /proc/net/dev /proc/net/route /proc/net/tcp /proc/sys/kernel /proc/sys/fs /proc/sys/vm
        /sys/class /sys/devices /sys/block /sys/fs/cgroup
    """,
    "it holds messages of the system's programs": """
        /var/log/syslog* /var/log/messages* /var/log/kern.log* /var/log/dmesg* /var/log/dpkg.log* /var/log/apt
        /var/log/nginx /var/log/apache2 /var/log/httpd /var/log/supervisor /var/log/daemon.log* /var/log/boot.log*
        /var/log/cloud-init* /var/log/alternatives.log*
    """,
    "it holds nothing of anybody": "/dev/null /dev/zero /dev/full /dev/urandom /dev/random",
}
