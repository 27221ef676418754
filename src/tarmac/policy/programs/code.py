"""Code that a command runs: down a pipe, out of a substitution, in an argument, from a file it just fetched."""

import re

from tarmac.policy.parse.command import Simple
from tarmac.policy.parse.words import UNKNOWN, Word
from tarmac.policy.programs.effects import Arguments, Assessment
from tarmac.policy.programs.files_touched import At
from tarmac.policy.programs.wrappers import program_name
from tarmac.policy.rule import Rule

FETCHERS = frozenset(
    """
    curl wget aria2c axel http https httpie xh fetch lynx links w3m nc ncat netcat socat ftp tftp gsutil aws
""".split()
)
NETWORK = FETCHERS | frozenset(
    """
    sftp scp ssh rsync telnet openssl dig nslookup host ping s3cmd mail mailx sendmail wscat websocat lftp croc
""".split()
)
DECODERS = frozenset(
    """
    base64 base32 xxd openssl rev tr gzip gunzip zcat uudecode hex rot13 xz bzip2
""".split()
)
SHELLS = frozenset(
    """
    bash sh zsh dash ksh mksh ash fish rbash csh tcsh busybox pwsh powershell
""".split()
)
INTERPRETERS = SHELLS | frozenset(
    """
    python python2 pypy perl ruby node nodejs php lua luajit Rscript julia deno bun osascript tclsh elixir
    groovy ipython source . eval
""".split()
)
_INLINE = ("-c", "-e", "-r", "--eval", "-E", "-S", "-p")
_FETCHING = re.compile(
    r"urllib|urlopen|requests\.|http\.client|LWP|Net::HTTP|open-uri|fetch\(|https?://|curl|wget|file_get_contents",
    re.IGNORECASE,
)
_STARTING = re.compile(
    r"\b(exec|eval|system|popen|spawn\w*|subprocess|pty|os\.exec\w*|child_process|qx|shell_exec|passthru|Function)\b|`"
)
_SOCKET = re.compile(r"\bsocket\b|/dev/tcp|fsockopen|TCPSocket|net\.connect|net\.Socket", re.IGNORECASE)
_REMOVING = re.compile(
    r"rmtree|unlink|remove\(|rmdir|rm\s+-|rmSync|rm_rf|FileUtils|fs\.rm|File\.delete|shutil|truncate", re.IGNORECASE
)
_REMOVING_ALL = re.compile(r"rmtree\(\s*['\"](/|~|/\*)['\"]|rm_rf\W+/['\"]")
_ALL = re.compile(r"[\"']?(/|~|\*|/\*|\$HOME)[\"']?(?=[\"';)]|$)")
# What sets up a shell by printing text for eval: everyday, though it runs what is printed.
_SETTING_UP = frozenset(
    """
    ssh-agent brew direnv pyenv rbenv starship zoxide fnm mise asdf opam dircolors fzf conda thefuck gh kubectl
    docker
""".split()
)


def names_of(simple: Simple) -> set[str]:
    """The program names in a command and in the wrappers around it: every early word that could be one."""
    return {name for word in simple.words[:8] if (name := program_name(word))}


def run_code(found: Assessment, simple: Simple, args: Arguments, words: tuple[Word, ...], at: At) -> None:
    """Add what an interpreter is given to run."""
    operands = [each for each in args.operands if each != "--"]
    inline = args.has(*_INLINE) and args.name not in ("source", ".", "eval")
    inside = {name for each in simple.holds for name in names_of(each)}
    if inside & FETCHERS:
        found.add("critical", Rule.REMOTE, "runs code that it fetches from another machine")
    elif inside & DECODERS and args.name in SHELLS | {"eval", "source", "."}:
        found.add("critical", Rule.DISGUISED, "runs code that is disguised")
    reads_stdin = not operands or operands[0] in ("-", "/dev/stdin") or (args.name in SHELLS and args.has("-s"))
    piped = {name for each in simple.upstream for name in names_of(each)}
    if piped and reads_stdin and not inline and args.name != "eval":
        _piped(found, simple, piped)
    code = " ".join(args.words)
    if inline and args.name not in SHELLS:
        _inline(found, code, fetched=bool(piped & FETCHERS))
    if any(at.ground.locate(each).path in at.fetched for each in operands[:2] if UNKNOWN not in each):
        found.add("critical", Rule.REMOTE, "runs code that it just fetched from another machine")
    if args.name == "eval":
        _evaluated(found, words, inside)
    if args.name in SHELLS and not operands:
        _here_documents(found, simple)


def _evaluated(found: Assessment, words: tuple[Word, ...], inside: set[str]) -> None:
    if all(word.literal for word in words[1:]):
        found.scripts.append(" ".join(word.text or "" for word in words[1:]))
    elif not inside or (not inside <= _SETTING_UP | {"hook", "init", "shellenv", "-s"} and not inside & _SETTING_UP):
        found.add("high", Rule.ASK_HIDDEN, "runs text that is known only when it runs", known=False)


def _here_documents(found: Assessment, simple: Simple) -> None:
    for redirect in simple.redirects:
        if redirect.op in ("<<", "<<-", "<<<"):
            text = redirect.heredoc if redirect.heredoc is not None else redirect.target
            if text is not None and text.text is not None:
                found.scripts.append(text.text)
            else:
                found.add("high", Rule.ASK_HIDDEN, "runs text that is known only when it runs", known=False)


def _piped(found: Assessment, simple: Simple, piped: set[str]) -> None:
    if piped & FETCHERS:
        found.add("critical", Rule.REMOTE, "runs code that it fetches from another machine")
    elif piped & DECODERS:
        found.add("critical", Rule.DISGUISED, "runs code that is disguised")
    else:
        words = simple.upstream[-1].literal_words()
        if words and words[0] in ("echo", "printf") and len(simple.upstream) == 1:
            found.scripts.append(" ".join(w for w in words[1:] if not re.fullmatch(r"-[neE]+", w)).replace("\\n", "\n"))
        found.add("high", Rule.PIPED, "runs what comes down a pipe")


def _removes_all(code: str) -> bool:
    """`rm -r /` in any text, word by word: an expression for it would take the square of its length."""
    after = recursive = False
    for word in code.split():
        if after and word.startswith("-"):
            recursive |= "r" in word or "R" in word
        elif recursive and _ALL.match(word):
            return True
        elif not word.startswith("-"):
            after = recursive = False
        if re.search(r"\brm$", word):
            after = True
    return False


def _inline(found: Assessment, code: str, *, fetched: bool) -> None:
    if _REMOVING_ALL.search(code) or _removes_all(code):
        found.add("critical", Rule.CODE, "runs code that removes all it can reach")
    elif _SOCKET.search(code) and _STARTING.search(code):
        found.add("critical", Rule.SHELL, "gives another machine a shell on this one")
    elif (fetched or _FETCHING.search(code)) and _STARTING.search(code):
        found.add("critical", Rule.REMOTE, "runs code that it fetches from another machine")
    elif _STARTING.search(code) or _REMOVING.search(code) or _SOCKET.search(code):
        found.add("high", Rule.CODE, "runs code that starts programs, removes files or speaks with machines")


def fetched_files(simple: Simple, at: At) -> frozenset[str]:
    """The files a command downloads, as far as they are named."""
    if not simple.words or program_name(simple.words[0]) not in ("curl", "wget"):
        return frozenset()
    shapes = [word.shape for word in simple.words]
    names: list[str] = []
    for index, shape in enumerate(shapes):
        if shape in ("-o", "--output", "--output-document") or (shape == "-O" and shapes[0] == "wget"):
            names += shapes[index + 1 : index + 2]
        if shape.startswith(("http://", "https://")):
            names.append(shape.partition("?")[0].rstrip("/").rpartition("/")[2])
    names += [each.target.shape for each in simple.redirects if each.target is not None and each.op in (">", ">|")]
    return frozenset(at.ground.locate(name).path for name in names if name and UNKNOWN not in name)


def sends(simple: Simple) -> bool:
    """Whether a command carries to another machine what others read: by a pipe, a substitution or a file."""
    names = names_of(simple)
    if not names & NETWORK:
        return False
    carried = bool(simple.upstream or simple.holds or simple.redirects)
    return (
        carried
        or bool(names & {"scp", "rsync", "sftp", "s3cmd"})
        or any("@" in word.shape for word in simple.words[1:])
    )
