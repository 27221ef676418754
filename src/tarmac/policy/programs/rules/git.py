"""All that is known of git: its commands that only read (READERS), and what the others do (EFFECTS).

A plan turns off what a repository's own configuration could start: hooks, fsmonitor, pagers, external diffs. The
options -c, --exec-path and --git-dir could turn them on again, so READERS does not have them.
"""

from tarmac.policy.programs.rules.table import EffectEntry, ReaderEntry, ReaderFields

SHARED = {  # what several have in common: `like`
    "log": ReaderFields(
        short="pusn:S:G:zciwbaDl:trRmgEL:FI:PqWU::X::M::C::B::",
        long="""
            patch no-patch unified:: raw patch-with-raw patch-with-stat indent-heuristic no-indent-heuristic minimal
            patience histogram anchored: diff-algorithm: stat:: compact-summary numstat shortstat dirstat::
            cumulative dirstat-by-file:: summary name-only name-status submodule:: color:: no-color color-moved::
            no-color-moved color-moved-ws: word-diff:: word-diff-regex: color-words:: no-renames rename-empty
            no-rename-empty check ws-error-highlight: full-index binary abbrev:: break-rewrites:: find-renames::
            find-copies:: find-copies-harder irreversible-delete diff-filter: pickaxe-all pickaxe-regex skip-to:
            rotate-to: relative:: no-relative text ignore-cr-at-eol ignore-space-at-eol ignore-space-change
            ignore-all-space ignore-blank-lines ignore-matching-lines: inter-hunk-context: function-context
            exit-code quiet no-ext-diff no-textconv ignore-submodules:: src-prefix: dst-prefix: no-prefix
            default-prefix line-prefix: ita-invisible-in-index follow no-follow decorate:: no-decorate
            decorate-refs: decorate-refs-exclude: clear-decorations source mailmap no-mailmap use-mailmap full-diff
            log-size max-count: skip: since: after: until: before: since-as-filter: author: committer: grep-reflog:
            grep: all-match invert-grep regexp-ignore-case basic-regexp extended-regexp fixed-strings perl-regexp
            remove-empty merges no-merges min-parents: max-parents: no-min-parents no-max-parents first-parent
            exclude-first-parent-only not all branches:: tags:: remotes:: glob: exclude: reflog single-worktree
            ignore-missing bisect cherry-mark cherry-pick left-only right-only cherry walk-reflogs merge boundary
            simplify-by-decoration show-pulls full-history dense sparse simplify-merges ancestry-path:: date-order
            author-date-order topo-order reverse pretty:: format: abbrev-commit no-abbrev-commit oneline encoding:
            expand-tabs:: no-expand-tabs notes:: no-notes relative-date date: parents children left-right graph
            no-graph show-linear-break:: diff-merges: no-diff-merges combined-all-paths cc dd remerge-diff root
            no-walk:: do-walk no-commit-id cached staged merge-base name-status committer-date-order
            no-standard-notes show-notes
        """,
        refuse="output ext-diff textconv no-index show-signature paginate stdin",
        operands="rev",
        numbers=True,
        cwd=True,
    ),
}

READERS = {
    "git": ReaderEntry(
        why="options before the command",
        prefix=True,
        short="PC@",
        long="""
            no-pager no-optional-locks no-replace-objects literal-pathspecs glob-pathspecs noglob-pathspecs
            icase-pathspecs version help html-path man-path info-path
        """,
        refuse="exec-path git-dir work-tree namespace bare config-env super-prefix paginate",
        abbreviate=False,
        cwd=True,
    ),
    "git log": ReaderEntry(
        also="""
            git show|git diff|git whatchanged|git diff-tree|git diff-index|git diff-files|git rev-list|
            git range-diff
        """,
        like="log",
        why="shows history and changes",
        adds="--no-ext-diff --no-textconv",
        check="pretty",
        long="""
            count objects use-bitmap-index disk-usage:: no-object-names timestamp header base ours theirs
            creation-factor: no-dual-color
        """,
    ),
    "git diff --no-index": ReaderEntry(
        like="log",
        why="compares two files",
        adds="--no-ext-diff --no-textconv",
        operands="path",
        check="pretty",
    ),
    "git clean": ReaderEntry(
        why="says what it would delete; without -n it deletes it",
        check="dry",
        short="ndxXqfe:",
        long="dry-run quiet force exclude:",
        refuse="interactive",
        operands="listed",
        cwd=True,
    ),
    "git add": ReaderEntry(
        also="git rm",
        why="says what it would do; without -n it does it",
        check="dry",
        short="nvAurf",
        long="dry-run verbose all update force recursive cached ignore-unmatch",
        refuse="patch interactive edit pathspec-from-file chmod renormalize intent-to-add refresh",
        operands="listed",
        abbreviate=False,
        cwd=True,
    ),
    "git commit": ReaderEntry(
        why="says what would be committed; without --dry-run it commits",
        check="dry",
        short="av",
        long="dry-run short porcelain long all verbose branch",
        abbreviate=False,
        cwd=True,
    ),
    "git hash-object": ReaderEntry(
        why="computes a file's object id; -w would store it",
        short="t:",
        long="no-filters literally",
        refuse="stdin stdin-paths path w",
        operands="path",
    ),
    "git remote show": ReaderEntry(
        why="shows remotes; without -n it would contact them",
        check="offline",
        short="n",
        operands="word",
    ),
    "git submodule": ReaderEntry(why="lists submodules", long="quiet cached", operands="none"),
    "git fsck": ReaderEntry(
        why="looks for faults in the repository",
        short="v",
        long="""
            full no-full strict unreachable no-reflogs connectivity-only dangling no-dangling root tags verbose
            progress no-progress name-objects cache
        """,
        refuse="lost-found",
        operands="listed",
    ),
    "git shortlog": ReaderEntry(
        why="counts commits by author",
        check="pretty",
        short="sencw::",
        long="""
            summary numbered email committer group: format: all since: until: after: before: author: no-merges
            merges branches:: tags:: remotes:: max-count: first-parent grep:
        """,
        operands="listed",
        cwd=True,
    ),
    "git reflog": ReaderEntry(
        like="log",
        why="shows where branches have been; expire and delete would forget it",
        check="reflog",
    ),
    "git status": ReaderEntry(
        why="shows what changed",
        short="sbvu::z",
        long="""
            short branch show-stash porcelain:: long verbose untracked-files:: ignore-submodules:: ignored::
            column:: no-column ahead-behind no-ahead-behind renames no-renames find-renames:: help
        """,
        operands="listed",
        cwd=True,
    ),
    "git blame": ReaderEntry(
        also="git annotate",
        why="shows who wrote each line",
        adds="--no-textconv",
        short="L:lstfnpewbMC::h",
        long="""
            root show-stats date: since: until: porcelain line-porcelain incremental encoding: first-parent progress
            no-progress color-lines color-by-age show-name show-number show-email abbrev: ignore-rev:
            ignore-revs-file@ reverse minimal
        """,
        refuse="contents",
        operands="rev",
        cwd=True,
    ),
    "git branch": ReaderEntry(
        why="lists branches; a name would make one",
        check="git-listing",
        short="arvqli",
        long="""
            all remotes list verbose show-current contains:: no-contains:: merged:: no-merged:: sort: points-at:
            format: column:: no-column color:: no-color abbrev: no-abbrev ignore-case omit-empty
        """,
        refuse="""
            delete move copy force track set-upstream set-upstream-to unset-upstream edit-description create-reflog
            recurse-submodules
        """,
        operands="listed",
    ),
    "git tag": ReaderEntry(
        why="lists tags; a name would make one",
        check="git-listing",
        short="ln::i",
        long="""
            list contains:: no-contains:: merged:: no-merged:: sort: points-at: format: column:: color:: ignore-case
        """,
        refuse="delete annotate sign force message file verify local-user cleanup create-reflog edit",
        operands="listed",
    ),
    "git remote": ReaderEntry(
        why="lists remotes; add, remove and set-url would change them, show and update go to the network",
        check="git-remote",
        short="v",
        long="verbose push all",
        operands="word",
    ),
    "git stash list": ReaderEntry(like="log", check="pretty", why="lists stashes"),
    "git stash show": ReaderEntry(
        like="log", check="pretty", why="shows a stash", long="include-untracked only-untracked"
    ),
    "git ls-files": ReaderEntry(
        why="lists files",
        short="cdmoikstuvfzx:X@",
        long="""
            cached deleted modified others ignored stage directory no-empty-directory unmerged killed resolve-undo
            exclude: exclude-from@ exclude-per-directory: exclude-standard error-unmatch full-name
            recurse-submodules abbrev:: debug eol deduplicate sparse format: with-tree:
        """,
        operands="listed",
        cwd=True,
    ),
    "git ls-tree": ReaderEntry(
        why="lists a tree",
        short="drtlz",
        long="long name-only name-status object-only full-name full-tree abbrev:: format:",
        operands="listed",
    ),
    "git cat-file": ReaderEntry(
        why="prints an object",
        short="tspe",
        long="batch-check:: follow-symlinks allow-unknown-type unordered batch-all-objects",
        refuse="textconv filters batch batch-command",
        operands="rev",
    ),
    "git rev-parse": ReaderEntry(
        why="resolves a name",
        short="q",
        long="""
            abbrev-ref:: short:: verify quiet show-toplevel show-prefix show-cdup git-dir absolute-git-dir
            git-common-dir is-inside-work-tree is-inside-git-dir is-bare-repository is-shallow-repository
            show-superproject-working-tree symbolic symbolic-full-name all branches:: tags:: remotes:: revs-only
            no-revs flags no-flags default: sq-quote since: until: path-format: git-path: show-object-format::
            show-ref-format
        """,
        operands="listed",
        interspersed=True,
    ),
    "git describe": ReaderEntry(
        also="git name-rev",
        why="names a commit by its tags",
        long="""
            dirty:: broken:: all tags contains abbrev: candidates: exact-match long match: exclude: always
            first-parent name-only refs: no-undefined
        """,
        operands="listed",
    ),
    "git grep": ReaderEntry(
        why="searches the files of a commit",
        short="iIvhHEGFPnlLzocpWwA:B:C:e:qm:a",
        long="""
            cached untracked no-exclude-standard exclude-standard recurse-submodules text ignore-case max-depth:
            recursive no-recursive word-regexp invert-match full-name extended-regexp basic-regexp perl-regexp
            fixed-strings line-number column files-with-matches name-only files-without-match null only-matching
            count color:: no-color break heading show-function after-context: before-context: context:
            function-context max-count: all-match quiet and or not threads:
        """,
        refuse="open-files-in-pager textconv no-index",
        operands="pattern rev",
        numbers=True,
        cwd=True,
    ),
    "git config": ReaderEntry(
        why="prints settings; a value would set one",
        check="git-config",
        short="lz",
        long="""
            get get-all get-regexp list show-origin show-scope name-only local global system worktree includes
            no-includes type: bool int path null default: all
        """,
        refuse="file blob add unset unset-all replace-all rename-section remove-section edit",
        operands="text",
    ),
    "git help": ReaderEntry(
        also="git var",
        why="shows a page of git's manual, or what git is set to",
        short="ag",
        long="all guides",
        operands="word",
        check="man",
    ),
    "git apply": ReaderEntry(
        why="says what a patch would change; without --stat, --check and their kin it changes it",
        check="git-apply",
        short="p:vR",
        long="stat numstat summary check verbose reverse",
        operands="path",
    ),
    "git symbolic-ref": ReaderEntry(
        why="says what a ref points to; a second word would change it",
        short="q",
        long="short quiet recurse no-recurse",
        refuse="delete",
        operands="listed",
        most=1,
        least=1,
    ),
    "git merge-base": ReaderEntry(
        why="finds a common ancestor",
        short="a",
        long="all octopus is-ancestor independent fork-point",
        operands="listed",
    ),
    "git show-ref": ReaderEntry(
        also="git for-each-ref|git show-branch",
        why="lists refs",
        check="pretty",
        short="dsqa",
        long="""
            head heads tags branches dereference hash:: verify abbrev:: quiet count: sort: format: contains::
            no-contains:: merged:: no-merged:: points-at: all remotes list current topo-order ignore-case color::
        """,
        refuse="exclude-existing shell perl python tcl",
        operands="listed",
    ),
    "git check-ignore": ReaderEntry(
        also="git check-attr",
        why="shows which ignore rule matches a file",
        short="vqnza",
        long="verbose quiet non-matching no-index all cached",
        refuse="stdin source",
        operands="listed",
    ),
    "git count-objects": ReaderEntry(why="counts objects", short="vH", long="verbose human-readable"),
    "git worktree list": ReaderEntry(why="lists worktrees", short="vz", long="verbose porcelain"),
    "git submodule status": ReaderEntry(
        also="git submodule summary",
        why="lists submodules",
        long="recursive cached",
        operands="none",
    ),
    "git bisect log": ReaderEntry(
        also="""
            git notes list|git notes show|git lfs ls-files|git lfs status|git sparse-checkout list|git version|
            git cherry
        """,
        why="shows what git knows",
        short="avls",
        long="all build-options size long name-only verbose",
        operands="word",
    ),
    "git archive": ReaderEntry(why="lists formats", short="l", long="list"),
}

# First what each command does by itself, then what only shows something, then what weighs more.
EFFECTS = [
    EffectEntry(run="git commit", risk="medium", kind="repository", does="makes a commit"),
    EffectEntry(run="git push", risk="medium", kind="connects", does="sends commits to a remote"),
    EffectEntry(run="git pull", risk="medium", kind="connects", does="fetches commits from a remote and merges them"),
    EffectEntry(run="git fetch|git ls-remote", risk="medium", kind="connects", does="speaks with a remote"),
    EffectEntry(run="git clone", risk="medium", kind="connects", does="fetches a repository from elsewhere"),
    EffectEntry(
        run="git checkout|git switch",
        risk="medium",
        kind="repository",
        does="moves to another branch or commit, or takes files from one",
    ),
    EffectEntry(run="git add", risk="medium", kind="repository", does="marks changes for the next commit"),
    EffectEntry(run="git stash", risk="medium", kind="repository", does="puts changes away, or brings them back"),
    EffectEntry(
        run="git merge|git cherry-pick|git revert|git am|git apply|git rebase",
        risk="medium",
        kind="repository",
        does="changes files and commits of the branch",
    ),
    EffectEntry(
        run="git reset",
        risk="medium",
        kind="repository",
        does="moves the branch, or takes changes out of the next commit",
    ),
    EffectEntry(run="git mv", risk="medium", kind="repository", does="renames {what}"),
    EffectEntry(run="git init", risk="medium", kind="repository", does="makes a repository"),
    EffectEntry(run="git tag", risk="medium", kind="repository", does="makes or changes a tag"),
    EffectEntry(run="git branch", risk="medium", kind="repository", does="makes or changes a branch"),
    EffectEntry(
        run="git remote", risk="medium", kind="configures", does="changes which remotes there are, or asks them"
    ),
    EffectEntry(run="git config", risk="medium", kind="configures", does="changes git's settings"),
    EffectEntry(
        run="git config",
        options=["-l --list --get-regexp"],
        risk="medium",
        kind="reads",
        does="prints git's settings, in which credentials may stand",
        instead=True,
    ),
    EffectEntry(
        run="git config list",
        risk="medium",
        kind="reads",
        does="prints git's settings, in which credentials may stand",
        instead=True,
    ),
    EffectEntry(
        run="git worktree|git sparse-checkout|git submodule",
        risk="medium",
        kind="repository",
        does="changes which files of the repository are here",
    ),
    EffectEntry(
        run="""
            git notes|git bisect|git replace|git update-ref|git symbolic-ref|git update-index|git read-tree|
            git commit-tree|git write-tree|git hash-object|git fast-import|git rerere|git lfs|git subtree|git flow
        """,
        risk="medium",
        kind="repository",
        does="changes the repository (git {sub})",
    ),
    EffectEntry(
        run="git gc|git maintenance|git repack|git pack-refs|git prune",
        risk="medium",
        kind="repository",
        does="tidies up the repository",
    ),
    EffectEntry(
        run="git archive|git bundle|git format-patch|git fast-export|git range-diff",
        risk="medium",
        kind="writes",
        does="writes what is in the repository to files",
    ),
    EffectEntry(
        run="git request-pull|git send-email|git daemon|git svn|git p4|git instaweb",
        risk="medium",
        kind="connects",
        does="speaks with other machines (git {sub})",
    ),
    EffectEntry(
        run="git mergetool|git difftool|git gui|git citool",
        risk="medium",
        kind="runs",
        does="starts another program (git {sub})",
    ),
    # ── only showing
    EffectEntry(
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
    EffectEntry(
        run="git tag",
        options=["-l --list -n --contains --no-contains --merged --no-merged --points-at --sort"],
        risk="low",
        kind="reads",
        does="shows tags",
        instead=True,
    ),
    EffectEntry(run="git remote get-url", risk="low", kind="reads", does="shows remotes", instead=True),
    EffectEntry(
        run="git remote", options=["-v --verbose"], risk="low", kind="reads", does="shows remotes", instead=True
    ),
    EffectEntry(
        run="""
            git stash list|git stash show|git worktree list|git submodule status|git notes list|git notes show|
            git bisect log|git sparse-checkout list|git lfs ls-files|git lfs status
        """,
        risk="low",
        kind="reads",
        does="shows what the repository holds",
        instead=True,
    ),
    EffectEntry(
        run="git config",
        options=["--get --get-all --get-regexp -l --list --show-origin"],
        risk="low",
        kind="reads",
        does="shows git's settings",
        instead=True,
    ),
    EffectEntry(
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
    EffectEntry(
        run="git tag",
        options=["-a -s -f -d -m -F -u --annotate --sign --force --delete --message --file --local-user"],
        risk="medium",
        kind="repository",
        does="makes or changes a tag",
    ),
    EffectEntry(
        run="""
            git remote add|git remote rename|git remote remove|git remote rm|git remote set-url|git remote set-head|
            git remote set-branches|git remote prune|git remote update
        """,
        risk="medium",
        kind="configures",
        does="changes which remotes there are, or asks them",
    ),
    EffectEntry(
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
    EffectEntry(
        run="git reset",
        options=["--hard"],
        risk="high",
        kind="deletes",
        does="throws away all changes that are not committed",
    ),
    EffectEntry(
        run="git reset",
        options=["--merge --keep"],
        risk="high",
        kind="deletes",
        does="throws away changes that are not committed",
    ),
    EffectEntry(
        run="git clean", options=["-f --force"], risk="high", kind="deletes", does="deletes files that git doesn't know"
    ),
    EffectEntry(run="git clean", risk="medium", kind="deletes", does="deletes files that git doesn't know, if told to"),
    EffectEntry(run="git restore", risk="high", kind="deletes", does="throws away changes in {what}"),
    EffectEntry(
        run="git restore",
        options=["--staged -S"],
        risk="medium",
        kind="deletes",
        does="takes {what} out of the next commit",
        instead=True,
    ),
    EffectEntry(
        run="git checkout",
        options=["-f --force"],
        risk="high",
        kind="deletes",
        does="throws away changes that are not committed",
    ),
    EffectEntry(
        run="git checkout",
        operand=r"^(\.|\./.*|:/|[^*]*\*.*|--)$",
        risk="high",
        kind="deletes",
        does="throws away changes in {what}",
    ),
    EffectEntry(
        run="git switch",
        options=["-f --force --discard-changes"],
        risk="high",
        kind="deletes",
        does="throws away changes that are not committed",
    ),
    EffectEntry(
        run="git branch", options=["-D -d --delete"], risk="medium", kind="deletes", does="deletes the branch {what}"
    ),
    EffectEntry(
        run="git branch",
        options=["-D"],
        risk="high",
        kind="deletes",
        does="deletes the branch {what}, also what is in no other",
    ),
    EffectEntry(
        run="git branch",
        options=["-d --delete", "-f --force"],
        risk="high",
        kind="deletes",
        does="deletes the branch {what}, also what is in no other",
    ),
    EffectEntry(run="git stash drop|git stash clear", risk="high", kind="deletes", does="deletes stashed changes"),
    EffectEntry(
        run="git reflog expire|git reflog delete|git filter-branch|git filter-repo|git lfs prune",
        risk="high",
        kind="deletes",
        does="rewrites or forgets history",
    ),
    EffectEntry(
        run="git update-ref",
        options=["-d"],
        risk="high",
        kind="deletes",
        does="deletes a branch, and what is in no other",
    ),
    EffectEntry(
        run="git gc", options=["--prune"], risk="high", kind="deletes", does="deletes what no branch reaches, for good"
    ),
    EffectEntry(run="git worktree remove|git worktree prune", risk="medium", kind="deletes", does="removes a worktree"),
    EffectEntry(
        run="git worktree remove",
        options=["-f --force"],
        risk="high",
        kind="deletes",
        does="removes a worktree with its changes",
    ),
    EffectEntry(run="git rm", risk="medium", kind="deletes", does="deletes {what} and tells git so"),
    EffectEntry(
        run="git rm",
        options=["-r", "-f --force"],
        risk="high",
        kind="deletes",
        does="deletes {what} and all below, and tells git so",
    ),
    EffectEntry(
        run="git push",
        options=["-f --force --force-with-lease --force-if-includes --mirror"],
        risk="critical",
        kind="connects",
        does="overwrites history on the remote, for everybody",
    ),
    EffectEntry(
        run="git push",
        operand=r"^\+.",
        risk="critical",
        kind="connects",
        does="overwrites history on the remote, for everybody",
    ),
    EffectEntry(
        run="git push",
        options=["-d --delete --prune"],
        risk="high",
        kind="connects",
        does="deletes branches on the remote",
    ),
    EffectEntry(run="git push", operand="^:.", risk="high", kind="connects", does="deletes branches on the remote"),
    EffectEntry(
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
    EffectEntry(
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
    EffectEntry(
        run="git rebase|git bisect run|git submodule foreach",
        options=["-x --exec"],
        risk="high",
        kind="runs",
        does="runs a command for each commit",
    ),
    EffectEntry(
        run="git bisect run|git submodule foreach|git filter-branch|git difftool|git mergetool|git rebase",
        risk="medium",
        kind="runs",
        does="runs other programs through git",
    ),
    EffectEntry(
        run="git config",
        operand=(
            r"^(alias\.|core\.(hookspath|fsmonitor|pager|editor|sshcommand|gitproxy|askpass)|filter\.|diff\.|"
            r"credential|gpg\.|include|url\.|protocol\.|pager\.|merge\.|difftool|mergetool|sequence\.)"
        ),
        risk="high",
        kind="configures",
        does="makes git start a program from now on",
    ),
    EffectEntry(
        run="git clone|git fetch|git pull|git remote|git ls-remote|git submodule",
        operand="^ext::|^fd::|--upload-pack",
        risk="high",
        kind="runs",
        does="makes git start another program",
    ),
    EffectEntry(
        run="git credential|git credential-store|git credential-cache",
        risk="high",
        kind="reads",
        does="shows passwords that git keeps",
    ),
    EffectEntry(
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
