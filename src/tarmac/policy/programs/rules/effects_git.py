"""What git does that is not proven to only read; read after effects.py, and written as there.

First what each command does by itself, then what only shows something, then what weighs more.
"""

from tarmac.policy.programs.rules.shapes import Deed

DEEDS = [
    Deed(run="git commit", risk="medium", kind="repository", does="makes a commit"),
    Deed(run="git push", risk="medium", kind="connects", does="sends commits to a remote"),
    Deed(run="git pull", risk="medium", kind="connects", does="fetches commits from a remote and merges them"),
    Deed(run="git fetch|git ls-remote", risk="medium", kind="connects", does="speaks with a remote"),
    Deed(run="git clone", risk="medium", kind="connects", does="fetches a repository from elsewhere"),
    Deed(
        run="git checkout|git switch",
        risk="medium",
        kind="repository",
        does="moves to another branch or commit, or takes files from one",
    ),
    Deed(run="git add", risk="medium", kind="repository", does="marks changes for the next commit"),
    Deed(run="git stash", risk="medium", kind="repository", does="puts changes away, or brings them back"),
    Deed(
        run="git merge|git cherry-pick|git revert|git am|git apply|git rebase",
        risk="medium",
        kind="repository",
        does="changes files and commits of the branch",
    ),
    Deed(
        run="git reset",
        risk="medium",
        kind="repository",
        does="moves the branch, or takes changes out of the next commit",
    ),
    Deed(run="git mv", risk="medium", kind="repository", does="renames {what}"),
    Deed(run="git init", risk="medium", kind="repository", does="makes a repository"),
    Deed(run="git tag", risk="medium", kind="repository", does="makes or changes a tag"),
    Deed(run="git branch", risk="medium", kind="repository", does="makes or changes a branch"),
    Deed(run="git remote", risk="medium", kind="configures", does="changes which remotes there are, or asks them"),
    Deed(run="git config", risk="medium", kind="configures", does="changes git's settings"),
    Deed(
        run="git config",
        options=["-l --list --get-regexp"],
        risk="medium",
        kind="reads",
        does="prints git's settings, in which credentials may stand",
        instead=True,
    ),
    Deed(
        run="git config list",
        risk="medium",
        kind="reads",
        does="prints git's settings, in which credentials may stand",
        instead=True,
    ),
    Deed(
        run="git worktree|git sparse-checkout|git submodule",
        risk="medium",
        kind="repository",
        does="changes which files of the repository are here",
    ),
    Deed(
        run="""
            git notes|git bisect|git replace|git update-ref|git symbolic-ref|git update-index|git read-tree|
            git commit-tree|git write-tree|git hash-object|git fast-import|git rerere|git lfs|git subtree|git flow
        """,
        risk="medium",
        kind="repository",
        does="changes the repository (git {sub})",
    ),
    Deed(
        run="git gc|git maintenance|git repack|git pack-refs|git prune",
        risk="medium",
        kind="repository",
        does="tidies up the repository",
    ),
    Deed(
        run="git archive|git bundle|git format-patch|git fast-export|git range-diff",
        risk="medium",
        kind="writes",
        does="writes what is in the repository to files",
    ),
    Deed(
        run="git request-pull|git send-email|git daemon|git svn|git p4|git instaweb",
        risk="medium",
        kind="connects",
        does="speaks with other machines (git {sub})",
    ),
    Deed(
        run="git mergetool|git difftool|git gui|git citool",
        risk="medium",
        kind="runs",
        does="starts another program (git {sub})",
    ),
    # ── only showing
    Deed(
        run="git branch",
        options=[
            """
                --show-current --list -l -a --all -r --remotes -v -vv --merged --no-merged --contains --no-contains
                --points-at --format --sort
            """
        ],
        risk="low",
        kind="reads",
        does="shows branches",
        instead=True,
    ),
    Deed(
        run="git tag",
        options=["-l --list -n --contains --no-contains --merged --no-merged --points-at --sort"],
        risk="low",
        kind="reads",
        does="shows tags",
        instead=True,
    ),
    Deed(run="git remote get-url", risk="low", kind="reads", does="shows remotes", instead=True),
    Deed(run="git remote", options=["-v --verbose"], risk="low", kind="reads", does="shows remotes", instead=True),
    Deed(
        run="""
            git stash list|git stash show|git worktree list|git submodule status|git notes list|git notes show|
            git bisect log|git sparse-checkout list|git lfs ls-files|git lfs status
        """,
        risk="low",
        kind="reads",
        does="shows what the repository holds",
        instead=True,
    ),
    Deed(
        run="git config",
        options=["--get --get-all --get-regexp -l --list --show-origin"],
        risk="low",
        kind="reads",
        does="shows git's settings",
        instead=True,
    ),
    Deed(
        run="git branch",
        options=[
            """
                -m -M --move -c -C --copy -u --set-upstream-to --unset-upstream --edit-description -f --force
                --track
            """
        ],
        risk="medium",
        kind="repository",
        does="changes a branch",
    ),
    Deed(
        run="git tag",
        options=["-a -s -f -d -m -F -u --annotate --sign --force --delete --message --file --local-user"],
        risk="medium",
        kind="repository",
        does="makes or changes a tag",
    ),
    Deed(
        run="""
            git remote add|git remote rename|git remote remove|git remote rm|git remote set-url|git remote set-head|
            git remote set-branches|git remote prune|git remote update
        """,
        risk="medium",
        kind="configures",
        does="changes which remotes there are, or asks them",
    ),
    Deed(
        run="git config",
        options=[
            """
                --add --unset --unset-all --replace-all --remove-section --rename-section -e --edit --global
                --system --file -f --blob
            """
        ],
        risk="medium",
        kind="configures",
        does="changes git's settings",
    ),
    # ── by options and operands
    Deed(
        run="git reset",
        options=["--hard"],
        risk="high",
        kind="deletes",
        does="throws away all changes that are not committed",
    ),
    Deed(
        run="git reset",
        options=["--merge --keep"],
        risk="high",
        kind="deletes",
        does="throws away changes that are not committed",
    ),
    Deed(
        run="git clean", options=["-f --force"], risk="high", kind="deletes", does="deletes files that git doesn't know"
    ),
    Deed(run="git clean", risk="medium", kind="deletes", does="deletes files that git doesn't know, if told to"),
    Deed(run="git restore", risk="high", kind="deletes", does="throws away changes in {what}"),
    Deed(
        run="git restore",
        options=["--staged -S"],
        risk="medium",
        kind="deletes",
        does="takes {what} out of the next commit",
        instead=True,
    ),
    Deed(
        run="git checkout",
        options=["-f --force"],
        risk="high",
        kind="deletes",
        does="throws away changes that are not committed",
    ),
    Deed(
        run="git checkout",
        operand=r"^(\.|\./.*|:/|[^*]*\*.*|--)$",
        risk="high",
        kind="deletes",
        does="throws away changes in {what}",
    ),
    Deed(
        run="git switch",
        options=["-f --force --discard-changes"],
        risk="high",
        kind="deletes",
        does="throws away changes that are not committed",
    ),
    Deed(run="git branch", options=["-D -d --delete"], risk="medium", kind="deletes", does="deletes the branch {what}"),
    Deed(
        run="git branch",
        options=["-D"],
        risk="high",
        kind="deletes",
        does="deletes the branch {what}, also what is in no other",
    ),
    Deed(
        run="git branch",
        options=["-d --delete", "-f --force"],
        risk="high",
        kind="deletes",
        does="deletes the branch {what}, also what is in no other",
    ),
    Deed(run="git stash drop|git stash clear", risk="high", kind="deletes", does="deletes stashed changes"),
    Deed(
        run="git reflog expire|git reflog delete|git filter-branch|git filter-repo|git lfs prune",
        risk="high",
        kind="deletes",
        does="rewrites or forgets history",
    ),
    Deed(
        run="git update-ref",
        options=["-d"],
        risk="high",
        kind="deletes",
        does="deletes a branch, and what is in no other",
    ),
    Deed(
        run="git gc", options=["--prune"], risk="high", kind="deletes", does="deletes what no branch reaches, for good"
    ),
    Deed(run="git worktree remove|git worktree prune", risk="medium", kind="deletes", does="removes a worktree"),
    Deed(
        run="git worktree remove",
        options=["-f --force"],
        risk="high",
        kind="deletes",
        does="removes a worktree with its changes",
    ),
    Deed(run="git rm", risk="medium", kind="deletes", does="deletes {what} and tells git so"),
    Deed(
        run="git rm",
        options=["-r", "-f --force"],
        risk="high",
        kind="deletes",
        does="deletes {what} and all below, and tells git so",
    ),
    Deed(
        run="git push",
        options=["-f --force --force-with-lease --force-if-includes --mirror"],
        risk="critical",
        kind="connects",
        does="overwrites history on the remote, for everybody",
    ),
    Deed(
        run="git push",
        operand=r"^\+.",
        risk="critical",
        kind="connects",
        does="overwrites history on the remote, for everybody",
    ),
    Deed(
        run="git push",
        options=["-d --delete --prune"],
        risk="high",
        kind="connects",
        does="deletes branches on the remote",
    ),
    Deed(run="git push", operand="^:.", risk="high", kind="connects", does="deletes branches on the remote"),
    Deed(
        run="git",
        options=["-c --config-env"],
        operand=(
            "(?i)(pager|editor|alias|fsmonitor|hookspath|sshcommand|external|textconv|filter|credential|gpg|"
            "askpass|proxy|program|command|include|protocol|helper|template|http|remote|url)"
        ),
        risk="high",
        kind="runs",
        does="makes git start another program",
    ),
    Deed(
        run="git",
        options=[
            """
                --exec-path --upload-pack --receive-pack --upload-pa --exec -O --open-files-in-pager --extcmd
                --template --ext-diff --textconv
            """
        ],
        risk="high",
        kind="runs",
        does="makes git start another program",
    ),
    Deed(
        run="git rebase|git bisect run|git submodule foreach",
        options=["-x --exec"],
        risk="high",
        kind="runs",
        does="runs a command for each commit",
    ),
    Deed(
        run="git bisect run|git submodule foreach|git filter-branch|git difftool|git mergetool|git rebase",
        risk="medium",
        kind="runs",
        does="runs other programs through git",
    ),
    Deed(
        run="git config",
        operand=(
            r"^(alias\.|core\.(hookspath|fsmonitor|pager|editor|sshcommand|gitproxy|askpass)|filter\.|diff\.|"
            r"credential|gpg\.|include|url\.|protocol\.|pager\.|merge\.|difftool|mergetool|sequence\.)"
        ),
        risk="high",
        kind="configures",
        does="makes git start a program from now on",
    ),
    Deed(
        run="git clone|git fetch|git pull|git remote|git ls-remote|git submodule",
        operand="^ext::|^fd::|--upload-pack",
        risk="high",
        kind="runs",
        does="makes git start another program",
    ),
    Deed(
        run="git credential|git credential-store|git credential-cache",
        risk="high",
        kind="reads",
        does="shows passwords that git keeps",
    ),
    Deed(
        run="git config",
        options=["--global --system"],
        operand=(
            r"(?i)^(alias\.|core\.(hookspath|fsmonitor|pager|editor|sshcommand|gitproxy|askpass|"
            r"attributesfile)|filter\.|diff\.|credential|gpg\.|include|url\.|protocol\.|pager\.|merge\.|difftool|mergetool|sequence\.|init\.templatedir|http\.|uploadpack\.)"
        ),
        risk="high",
        kind="configures",
        does="makes git start a program, or go elsewhere, in every repository from now on",
    ),
]
