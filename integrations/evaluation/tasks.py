"""Fourteen small tasks, each with what a model would type, and a check of the outcome.

`guess` is how long the model thinks that a command takes. It follows the advice in Terminus-2's own prompt: 0.1 s for
what is immediate (cd, ls, cat, sed), 1 s for programs (git, python3, tests), more for what is slow. `expect` is what
the model must see before it goes on; while it does not, it waits again.
"""

from dataclasses import dataclass

QUICK, PROGRAM, POLL = 0.1, 1.0, 10.0


@dataclass(frozen=True)
class Step:
    keys: str
    guess: float
    expect: str = ""
    program: bool = False  # the keys are for a running program, not for the shell


@dataclass(frozen=True)
class Task:
    name: str
    instruction: str
    setup: str  # a script, run in the empty working directory
    steps: tuple[Step, ...]
    check: str  # a script; exit code 0: solved


TASKS = (
    Task(
        "fix-test",
        "A test of this project fails. Repair the code so that `python3 -m unittest` passes.",
        """cat > area.py <<'EOF'
def area(width, height):
    return width + height
EOF
cat > test_area.py <<'EOF'
import unittest
from area import area
class T(unittest.TestCase):
    def test_area(self): self.assertEqual(area(3, 4), 12)
EOF""",
        (
            Step("ls\n", QUICK, r"test_area\.py"),
            Step("python3 -m unittest\n", PROGRAM, r"FAILED \(failures=1\)"),
            Step("cat area.py\n", QUICK, r"return width"),
            Step("sed -i 's/width + height/width * height/' area.py\n", QUICK),
            Step("python3 -m unittest\n", PROGRAM, r"^OK"),
        ),
        "python3 -m unittest",
    ),
    Task(
        "look-around",
        "Find the largest file below `data`, and write its name into answer.txt.",
        "mkdir -p data/a data/b; for n in 1 2 3 4 5; do head -c ${n}000 /dev/zero > data/a/f$n; done; "
        "head -c 90000 /dev/zero > data/b/big; echo note > data/README",
        (
            Step("ls\n", QUICK, r"^data"),
            Step("ls -R data\n", QUICK, r"^README|\bREADME"),
            Step("cat data/README\n", QUICK, r"^note"),
            Step("find data -type f | wc -l\n", PROGRAM, r"^7"),
            Step("find data -type f -printf '%s %p\\n' | sort -n | tail -1\n", PROGRAM, r"^90000 data/b/big"),
            Step("echo big > answer.txt\n", QUICK),
            Step("cat answer.txt\n", QUICK, r"^big"),
        ),
        "grep -qx big answer.txt",
    ),
    Task(
        "questions",
        "Run ./install.sh. Call the service `lamp`, and do not enable the demo.",
        """cat > install.sh <<'EOF'
#!/bin/bash
read -p "Name of the service: " name
read -p "Enable the demo? [Y/n] " demo
read -p "Write the configuration? [y/N] " sure
[ "$sure" = y ] && echo "name=$name demo=$demo" > service.conf && echo "All is written."
EOF
chmod +x install.sh""",
        (
            Step("./install.sh\n", PROGRAM, r"Name of the service:"),
            Step("lamp\n", PROGRAM, r"Enable the demo\?", program=True),
            Step("n\n", PROGRAM, r"Write the configuration\?", program=True),
            Step("y\n", PROGRAM, r"All is written", program=True),
        ),
        "grep -qx 'name=lamp demo=n' service.conf",
    ),
    Task(
        "password",
        "Unlock the vault with ./unlock.sh (the password is `tulip`) and leave its content in secret.txt.",
        """cat > unlock.sh <<'EOF'
#!/bin/bash
read -s -p "[vault] password: " word; echo
[ "$word" = tulip ] || { echo "Sorry, try again."; exit 1; }
sleep 0.3; echo opened-7731 > secret.txt; echo "The vault is open."
EOF
chmod +x unlock.sh""",
        (
            Step("./unlock.sh\n", PROGRAM, r"password:"),
            Step("tulip\n", PROGRAM, r"The vault is open", program=True),
            Step("cat secret.txt\n", QUICK, r"^opened-7731"),
        ),
        "grep -qx opened-7731 secret.txt",
    ),
    Task(
        "build",
        "Build the project with `make` and run the program `out/app`.",
        """cat > Makefile <<'EOF'
all: out/app
out/app: $(foreach n,1 2 3 4 5 6 7 8,out/$(n).o)
\t@printf '#!/bin/sh\\necho app-runs\\n' > $@; chmod +x $@; echo "LINK $@"
out/%.o:
\t@mkdir -p out; for i in `seq 1 30`; do echo "CC part $* unit $$i"; done; sleep 0.5; touch $@
EOF""",
        (
            Step("cat Makefile\n", QUICK, r"LINK"),
            Step("make\n", 15.0, r"^LINK out/app"),
            Step("./out/app | tee answer.txt\n", PROGRAM, r"^app-runs"),
        ),
        "grep -qx app-runs answer.txt",
    ),
    Task(
        "silent",
        "Run ./convert.sh, which prints nothing for a while, and then read result.txt.",
        "printf '#!/bin/bash\\nsleep 7\\necho converted-42 > result.txt\\necho finished\\n' > convert.sh; chmod +x convert.sh",
        (
            Step("./convert.sh\n", 5.0, r"^finished"),
            Step("cat result.txt\n", QUICK, r"^converted-42"),
        ),
        "grep -qx converted-42 result.txt",
    ),
    Task(
        "server",
        "Serve this folder with `python3 -m http.server 8931` in the background, fetch page.html over HTTP into "
        "copy.html, and end the server.",
        "echo '<p>over-http</p>' > page.html",
        (
            Step("python3 -m http.server 8931 --bind 127.0.0.1 > server.log 2>&1 &\n", 2.0),
            Step(
                "until curl -s -o copy.html http://127.0.0.1:8931/page.html; do sleep 0.1; done; cat copy.html\n",
                3.0,
                r"over-http",
            ),
            Step("kill %1; wait %1 2>/dev/null; echo gone\n", PROGRAM, r"^gone"),
        ),
        "grep -q over-http copy.html && ! curl -s http://127.0.0.1:8931/",
    ),
    Task(
        "rebase",
        "Rebase the branch `topic` onto `main`. Where they conflict, keep the line of topic.",
        """git init -q -b main; git config user.email a@b.c; git config user.name a
echo one > f; git add f; git commit -qm one; git checkout -qb topic; echo topic > f; git commit -qam topic
echo more > g; git add g; git commit -qm more; git checkout -q main; echo main > f; git commit -qam main; git checkout -q topic""",
        (
            Step("git log --oneline --graph --all | cat\n", PROGRAM, r"main"),
            Step("git rebase main\n", PROGRAM, r"CONFLICT"),
            Step("git checkout --theirs f && git add f\n", PROGRAM, r""),
            Step("GIT_EDITOR=true git rebase --continue\n", PROGRAM, r"Successfully rebased"),
            Step("git status\n", PROGRAM, r"working tree clean"),
        ),
        "[ \"$(git log --format=%s | tr '\\n' ' ')\" = 'more topic main one ' ] && grep -qx topic f",
    ),
    Task(
        "repl",
        "With the interactive Python, compute 2**61 - 1 modulo 97 and write it into answer.txt.",
        "",
        (
            Step("python3 -q\n", PROGRAM, r"^>>>"),
            Step("n = (2**61 - 1) % 97\n", PROGRAM, r"^>>>", program=True),
            Step("print('value', n)\n", PROGRAM, r"^value \d+", program=True),
            Step("_ = open('answer.txt', 'w').write(str(n))\n", PROGRAM, r"^>>>", program=True),
            Step("exit()\n", PROGRAM, r"", program=True),
            Step("cat answer.txt; echo\n", QUICK, r"^\d+"),
        ),
        "[ \"$(cat answer.txt)\" = $(python3 -c 'print((2**61 - 1) % 97)') ]",
    ),
    Task(
        "long-output",
        "Run ./report.sh and write the total that it prints at its end into answer.txt.",
        "printf '#!/bin/bash\\nseq 1 60000 | sed s/^/entry:/\\necho TOTAL: 60000 entries\\n' > report.sh; chmod +x report.sh",
        (
            Step("./report.sh\n", 2.0, r"^TOTAL: 60000"),
            Step("echo 60000 > answer.txt\n", QUICK),
            Step("cat answer.txt\n", QUICK, r"^60000"),
        ),
        "grep -qx 60000 answer.txt",
    ),
    Task(
        "here-document",
        "Write a program primes.py that prints the primes below 100, one a line, and run it into primes.txt.",
        "",
        (
            Step(
                "cat > primes.py <<'EOF'\n# 'quotes', \"more quotes\", `ticks` and $dollars\ndef prime(n):\n"
                "    return n > 1 and all(n % d for d in range(2, int(n ** 0.5) + 1))\n\n"
                "for n in range(100):\n    if prime(n):\n        print(n)\nEOF\n",
                QUICK,
            ),
            Step("python3 primes.py > primes.txt; wc -l primes.txt\n", PROGRAM, r"^25 primes"),
            Step("tail -1 primes.txt\n", QUICK, r"^97"),
        ),
        "[ $(wc -l < primes.txt) = 25 ] && grep -q dollars primes.py",
    ),
    Task(
        "state",
        "Go to work/deep, set the variable STAGE to `blue`, and run ../../report.sh there.",
        "mkdir -p work/deep; printf '#!/bin/bash\\necho \"$STAGE in $(basename $PWD)\" > ../../answer.txt\\n' > report.sh; chmod +x report.sh",
        (
            Step("cd work/deep\n", QUICK),
            Step("export STAGE=blue\n", QUICK),
            Step("pwd; echo stage=$STAGE\n", QUICK, r"^stage=blue"),
            Step("../../report.sh\n", PROGRAM),
            Step("cat ../../answer.txt\n", QUICK, r"^blue in deep"),
        ),
        "grep -qx 'blue in deep' answer.txt",
    ),
    Task(
        "editor",
        "Change the port in app.conf from 80 to 8080 with vim.",
        "printf 'host = here\\nport = 80\\nuser = me\\n' > app.conf",
        (
            Step("vim -u NONE -n app.conf\n", PROGRAM, r"port = 80"),
            Step(":%s/port = 80$/port = 8080/\n", PROGRAM, r"port = 8080", program=True),
            Step(":wq\n", PROGRAM, r"", program=True),
            Step("cat app.conf\n", QUICK, r"^port = 8080"),
        ),
        "grep -qx 'port = 8080' app.conf",
    ),
    Task(
        "shell-ends",
        "Load ./env.sh into the shell (it sets TOKEN), then write the value of TOKEN into answer.txt.",
        "printf 'export TOKEN=violet\\n[ -e missing ] || exit 4\\n' > env.sh",
        (
            Step("source ./env.sh\n", QUICK),
            Step("echo token=$TOKEN\n", QUICK, r"^token="),
            Step("grep TOKEN env.sh | cut -d= -f2 > answer.txt\n", QUICK),
            Step("cat answer.txt\n", QUICK, r"^violet"),
        ),
        "grep -qx violet answer.txt",
    ),
)
