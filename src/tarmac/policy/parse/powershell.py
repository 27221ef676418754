"""Read a line of PowerShell, or of cmd, for its risk alone: nothing of it is ever allowed by this reading.

text → read_powershell() → CommandLine(simples, obstacles)

Names are made what PowerShell makes of them (`ri`, `del` and `REMOVE-ITEM` are remove-item); what stands in brackets is
a command of its own. It need not be exact: what isn't known is asked about as well. What cmdlets do is in
rules/shell.py and specials.py.
"""

import re
from dataclasses import dataclass, field

from tarmac.policy.parse.command import CommandLine, LineObstacle, ObstacleKind
from tarmac.policy.parse.words import UNKNOWN, Redirect, Simple, Word, word_of

OBSTACLE = "it is in another shell's language"
MOST_COMMANDS = 200
_ALIASES = """
    Get-ChildItem: ls dir gci; Get-Content: cat gc type; Get-Location: pwd gl; Set-Location: cd sl chdir
    Copy-Item: cp copy cpi; Move-Item: mv move mi; Remove-Item: rm ri del erase rd rmdir; Write-Output: echo write
    Invoke-Expression: iex; Invoke-WebRequest: iwr curl wget; Invoke-RestMethod: irm; Select-String: sls
    Select-Object: select; Where-Object: where ?; ForEach-Object: foreach %; Sort-Object: sort; Measure-Object: measure
    Get-Process: ps gps; Stop-Process: kill spps; New-Item: ni md mkdir; Set-Content: sc; Add-Content: ac
    Tee-Object: tee; Start-Process: start saps; Invoke-Command: icm; Get-Command: gcm; Get-Help: man help
    Format-Table: ft; Format-List: fl; Format-Wide: fw; Get-History: h history; Invoke-History: r; Start-Sleep: sleep
    Compare-Object: diff compare; Clear-Host: clear cls; Set-Variable: set sv; Get-Variable: gv; Get-Service: gsv
    Start-Service: sasv; Stop-Service: spsv; Get-Item: gi; Invoke-Item: ii; Get-ItemProperty: gp
    Set-ItemProperty: sp; Rename-Item: ren rni; Get-Member: gm; Get-Unique: gu; Group-Object: group; Get-Alias: gal
    Set-Alias: sal nal; Push-Location: pushd; Pop-Location: popd; Resolve-Path: rvpa; Start-Job: sajb
"""
NAMES = {
    alias: name.strip().lower()
    for entry in re.split(r"[;\n]", _ALIASES)
    if ":" in entry
    for name, aliases in [entry.split(":")]
    for alias in aliases.split()
}
_CMDLET = re.compile(r"[a-z]+-[a-z]+$")
_OPENING = re.compile(r"[$@]?\(|@?\{")
_OPERATOR = re.compile(r"&&|\|\||[|;\n\r]")
_REDIRECTION = re.compile(r"[0-9*]?>>?(&[0-9])?")
_VARIABLE = re.compile(r"\$[\w:?^$]+")
_ASSIGNED = re.compile(r"\s*\$env:(\w+)\s*\+?=", re.IGNORECASE)
_KNOWN_VARIABLES = {"$home": "~", "$env:home": "~", "$env:userprofile": "~", "$profile": "~/.config/powershell/profile"}


@dataclass(slots=True)
class _Command:
    """A command that is being read."""

    start: int = 0
    upstream: tuple[Simple, ...] = ()
    words: list[str] = field(default_factory=list)
    redirects: list[Redirect] = field(default_factory=list)
    holds: list[Simple] = field(default_factory=list)
    called: bool = False  # by `&`, or as a method: what a variable holds is run
    quoted: bool = False  # its first word is a text
    arguments: bool = False  # of a method: no command


def read_powershell(text: str) -> CommandLine:
    """The commands of `text`, as far as they can be told apart."""
    reader = _PowerShellReader(text)
    reader.read()
    return CommandLine(text, reader.simples, [LineObstacle(ObstacleKind.NOT_PLAIN, OBSTACLE)])


class _PowerShellReader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.simples: list[Simple] = []
        self.command = _Command()
        self.outer: list[_Command] = []

    def read(self) -> None:
        text = self.text
        while self.at < len(text) and len(self.simples) < MOST_COMMANDS:
            character = text[self.at]
            if operator := _OPERATOR.match(text, self.at):
                self._operator(operator)
            elif character in " \t,":
                self.at += 1
            elif character == "#" and not self.command.words:
                self.at = (text + "\n").index("\n", self.at)
            elif opening := _OPENING.match(text, self.at):
                self._open(opening)
            elif character in ")}":
                self._close()
            elif redirection := _REDIRECTION.match(text, self.at):
                self._redirection(redirection)
            elif character == "&":
                self.at += 1  # runs what follows, or leaves what went before in the background
                self.command.called |= not self.command.words
            else:
                self.command.quoted |= not self.command.words and character in "'\""
                self.command.words.append(self._word())
        while self.outer:
            self._close()
        self._end()

    def _operator(self, operator: re.Match[str]) -> None:
        before = self._end()
        self.at = operator.end()
        upstream = (*before.upstream, before) if operator[0] == "|" and before is not None else ()
        self.command = _Command(self.at, upstream)

    def _open(self, opening: re.Match[str]) -> None:
        method = opening[0] == "(" and bool(self.command.words) and self.text[self.at - 1] not in " \t,"
        self.command.called |= method
        self.at = opening.end()
        self.outer.append(self.command)
        self.command = _Command(self.at, self.command.upstream, arguments=method)

    def _close(self) -> None:
        place = len(self.simples)
        self._end()
        self.at += 1
        if self.outer:
            self.command = self.outer.pop()
            self.command.words.append(UNKNOWN)
            self.command.holds += self.simples[place:]

    def _redirection(self, redirection: re.Match[str]) -> None:
        self.at = redirection.end()
        if redirection[1]:
            return
        while self.text[self.at : self.at + 1] in (" ", "\t"):
            self.at += 1
        nowhere = self.text[self.at : self.at + 5].lower() == "$null"
        target = self._word()
        if target and not nowhere:
            op = redirection[0].lstrip("0123456789*")
            self.command.redirects.append(Redirect(op, "", _as_word(target), None, ""))

    def _word(self) -> str:
        """One word; what a variable or an expansion stands for is UNKNOWN."""
        pieces: list[str] = []
        text = self.text
        while self.at < len(text):
            character = text[self.at]
            if character in "'\"":
                end = text.find(character, self.at + 1)
                end = len(text) if end < 0 else end
                piece = text[self.at + 1 : end]
                self.at = end + 1
                pieces.append(self._text(piece) if character == '"' else piece)
            elif character == "`":
                pieces.append(text[self.at + 1 : self.at + 2])
                self.at += 2
            elif character == "$" and (variable := _VARIABLE.match(text, self.at)):
                pieces.append(_KNOWN_VARIABLES.get(variable[0].lower(), UNKNOWN))
                self.at = variable.end()
            elif character in " \t,;|\n\r(){}&" or (character in ">#" and pieces):
                break
            else:
                pieces.append(character)
                self.at += 1
        return "".join(pieces)

    def _text(self, piece: str) -> str:
        """What is in double quotes; the commands in it count too."""
        _, opened, inside = piece.partition("$(")
        if opened:
            found = read_powershell(inside.rpartition(")")[0] or inside).simples
            self.simples += found
            self.command.holds += found
            return UNKNOWN
        return re.sub(r"\$\{?[\w:]+\}?", UNKNOWN, piece)

    def _end(self) -> Simple | None:
        """Put the command that was read among the others."""
        command, self.command = self.command, _Command(self.at)
        words, value = command.words, command.quoted
        while len(words) > 1 and words[1] in ("=", "+=") and UNKNOWN in words[0]:  # $x = …
            words, value = words[2:], True
        if len(words) > 2 and words[0].lower() in ("cmd", "cmd.exe") and words[1].lower() in ("/c", "/k"):
            words = words[2:]
        elif words and not command.called and (value or words[0].startswith(UNKNOWN)) and not _names(words[0]):
            words = []  # an expression, no command
        variable = _ASSIGNED.match(self.text, command.start)
        if command.arguments or not (words or command.redirects or variable):
            return None
        named = (_canonical(words[0]), *words[1:]) if words else ()
        simple = Simple(
            tuple(_as_word(each) for each in named),
            ((variable[1].upper(), None),) if variable else (),
            tuple(command.redirects),
            self.text[command.start : self.at].strip(),
            upstream=command.upstream,
            holds=tuple(command.holds),
        )
        self.simples.append(simple)
        return simple


def _names(word: str) -> bool:
    """Whether a word after `$x =` is the name of a command."""
    return word.lower() in NAMES or _CMDLET.match(word.lower()) is not None


def _as_word(text: str) -> Word:
    return word_of(text) if UNKNOWN not in text else Word(text, None, text)


def _canonical(word: str) -> str:
    name = word.rpartition("\\")[2].lower().removesuffix(".exe")
    return NAMES.get(name) or (name if _CMDLET.match(name) else word)
