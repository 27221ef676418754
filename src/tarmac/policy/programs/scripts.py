"""Small languages inside an argument (sed scripts, awk programs, jq filters): whether a script only reads.

Each is read by the language's own rules. What is not known, or what versions disagree about, raises Unproven.
"""

import re

from tarmac.policy.verdict import Unproven


def check_sed(script: str) -> None:
    """sed: addresses and commands that print, delete or change the stream; no w, W, r, R, e, and no such flags of s."""
    at = 0
    while at < len(script):
        at = _sed_command(script, at)


def _sed_command(script: str, at: int) -> int:
    at = _skip(script, at, " \t\n;{}")
    if at >= len(script):
        return at
    if script[at] == "#":
        end = script.find("\n", at)
        return len(script) if end < 0 else end
    at = _sed_address(script, at)
    at = _skip(script, at, " \t")
    if script[at : at + 1] == ",":
        at = _sed_address(script, _skip(script, at + 1, " \t"))
        at = _skip(script, at, " \t")
    at = _skip(script, at, "! \t")
    command = script[at : at + 1]
    if command == "":
        raise Unproven("the sed script ends in the middle")
    if command == "{":
        return at + 1
    if command == "s":
        return _sed_substitute(script, at + 1)
    if command == "y":
        return _delimited(script, at + 1, times=2)
    if command in "pPdDnNgGhHxzF=":
        return at + 1
    if command in "qQl":
        return _skip(script, at + 1, " 0123456789")
    if command in ":btT":
        match = re.compile(r"[ \t]*[A-Za-z0-9_]*").match(script, at + 1)
        return match.end() if match else at + 1
    if command in "aic":  # text to print, to the end of its line
        if "\n" in script[at:]:
            raise Unproven("the sed script can't be read with certainty")
        return len(script)
    raise Unproven(f"the sed command `{command}` may write or run something")


def _sed_address(script: str, at: int) -> int:
    match = re.compile(r"[0-9]+(~[0-9]+)?|\$|[+~][0-9]+").match(script, at)
    if match:
        return match.end()
    if script[at : at + 1] == "/":
        at = _delimited(script, at, times=1)
    elif script[at : at + 1] == "\\" and at + 1 < len(script):
        at = _delimited(script, at + 1, times=1)
    else:
        return at
    return _skip(script, at, "IM")


def _sed_substitute(script: str, at: int) -> int:
    at = _delimited(script, at, times=2)
    match = re.compile(r"[gpiIm0-9M]*").match(script, at)
    at = match.end() if match else at
    if at < len(script) and script[at] not in " \t\n;}":
        raise Unproven(f"the flag `{script[at]}` of sed's s may write or run something")
    return at


def _delimited(script: str, at: int, *, times: int) -> int:
    """Past `/…/` or `/…/…/`, whatever character delimits."""
    delimiter = script[at : at + 1]
    if not delimiter or delimiter in "\\\n":
        raise Unproven("the sed script can't be read")
    at += 1
    for _ in range(times):
        bracket = False
        while True:
            if at >= len(script):
                raise Unproven("the sed script ends in the middle")
            character = script[at]
            if character == "\\":
                at += 2
                continue
            if bracket and character == delimiter:  # in a bracket or not: versions of sed disagree
                raise Unproven("the sed script can't be read")
            if character == "[" and not bracket:
                bracket = True
                at += 1
                if script[at : at + 1] == "^":
                    at += 1
                if script[at : at + 1] == "]":
                    at += 1
                continue
            if character == "[" and script[at + 1 : at + 2] in (":", ".", "="):  # [[:alpha:]]: its ] ends no bracket
                named = re.compile(r"\[:[a-z]+:\]").match(script, at)
                if named is None:
                    raise Unproven("the sed script can't be read with certainty")
                at = named.end()
                continue
            if character == "]":
                bracket = False
            if character == delimiter:
                at += 1
                break
            at += 1
    return at


def _skip(script: str, at: int, characters: str) -> int:
    while at < len(script) and script[at] in characters:
        at += 1
    return at


_AWK_NEVER = re.compile(
    r"\b(system|getline|ARGV|ARGC|fflush|close|include|load|namespace|nextfile|ENVIRON|PROCINFO|SYMTAB)\b|@"
)
_AWK_TOKEN = re.compile(
    r"""  "(?:[^"\\\n]|\\.)*"  |  \#[^\n]*  |  \|\|  |  &&  |  \+\+  |  --
    |  [A-Za-z_][A-Za-z0-9_]*  |  (?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?
    |  (?:[ \t\r\f\v]|\\\r?\n)+  |  .""",
    re.VERBOSE | re.DOTALL,
)
# Words of the language: what a / after one of them means depends on the awk.
_AWK_WORDS = frozenset(
    """
    BEGIN END BEGINFILE ENDFILE print printf return in case else do while for if function func delete exit next break
    continue switch default length substr index split sub gsub match sprintf sin cos atan2 exp log sqrt int rand srand
    tolower toupper strftime systime mktime gensub and or xor compl lshift rshift strtonum asort asorti patsplit
""".split()
)


def check_awk(program: str) -> None:
    """awk: no system(), getline, pipes, files written, or arguments changed; nothing that can be read in two ways."""
    if _AWK_NEVER.search(program):
        raise Unproven("the awk program may run or read something else")
    printing = False  # in a print statement, where > is a file
    depth = 0
    before = ""  # the token before, blanks and comments left out
    at = 0
    while at < len(program):
        if program[at] == "/" and _begins_regex(before, program[at:]):
            at = _past_regex(program, at)
            before = "/"
            continue
        match = _AWK_TOKEN.match(program, at)
        token = match[0] if match else program[at]
        at += len(token)
        if token[0] in " \t\r\f\v#" or (token[0] == "\\" and len(token) > 1):
            continue
        if token in ('"', "\\", "'", "`"):
            raise Unproven("the awk program can't be read")
        if token in ("print", "printf"):
            printing, depth = True, 0
        elif token in (";", "}") or (token == "\n" and depth <= 0 and before not in (",", "&&", "||")):
            printing = False
        elif token == "(":
            depth += 1
        elif token == ")":
            depth -= 1
        elif token == "|":
            raise Unproven("the awk program may start another program")
        elif token == ">" and printing and depth <= 0:
            raise Unproven("the awk program may write a file")
        if token != "\n" or before not in (",", "&&", "||"):  # after these the statement goes on in the next line
            before = token


def _begins_regex(before: str, rest: str) -> bool:
    """Whether a / after this token begins an expression; else it divides. Unproven when awks may disagree."""
    if before in (")", "++", "--", "/") or before in _AWK_WORDS:
        if "/" in rest[1:]:
            raise Unproven("the awk program can't be read with certainty")
        return False
    return not (
        before == "]" or before[:1] == '"' or before[:1].isalnum() or (before[:1] in ("_", ".") and len(before) > 1)
    )


def _past_regex(program: str, at: int) -> int:
    at += 1
    bracket = False
    while at < len(program):
        character = program[at]
        if character == "\\":
            at += 1
        elif character == "\n":
            break
        elif character == "[" and not bracket:
            bracket = True
            if program[at + 1 : at + 2] == "^":
                at += 1
            if program[at + 1 : at + 2] == "]":
                at += 1
        elif character == "[":
            named = re.compile(r"\[:[a-z]+:\]").match(program, at)
            if named is None:
                raise Unproven("the awk program can't be read with certainty")
            at = named.end()
            continue
        elif character == "]":
            bracket = False
        elif character == "/":
            if bracket:
                raise Unproven("the awk program can't be read with certainty")
            return at + 1
        at += 1
    raise Unproven("the awk program can't be read")


def check_jq(script: str) -> None:
    """jq and its kin: no modules or other files."""
    if re.search(
        r"(?<![.\w])(import|include|modulemeta|get_search_list|load\w*|eval|system|exec|split_doc|splitDoc|env|envsubst|strenv|input_filename|filename)\b|\$ENV|\$__",
        script,
    ):
        raise Unproven("the filter may read other files or run something")
