"""All that is known of git: its commands that only read, and what the others do.

A plan turns off what a repository's own configuration could start: hooks, fsmonitor, pagers, external diffs. The
options --exec-path, --git-dir and -c could turn them on again, so no command that only reads may have them; but -c
with a key that changes only how git prints.
"""

from tarmac.policy.programs.rules import EffectEntry, ProgramEntry, ReaderFields
from tarmac.policy.programs.rules import common_effects as effect

# fmt: off
SHARED = {  # what several have in common: `like`
    "log": ReaderFields(
        short="pusn:S:G:zciwbaDl:trRmgEL:FI:PqWU::X::M::C::B::",
        long="""
            patch no-patch unified:: raw patch-with-raw patch-with-stat indent-heuristic no-indent-heuristic minimal
            patience histogram anchored: diff-algorithm: stat:: compact-summary numstat shortstat dirstat:: cumulative
            dirstat-by-file:: summary name-only name-status submodule:: color:: no-color color-moved:: no-color-moved
            color-moved-ws: word-diff:: word-diff-regex: color-words:: no-renames rename-empty no-rename-empty check
            ws-error-highlight: full-index binary abbrev:: break-rewrites:: find-renames:: find-copies::
            find-copies-harder irreversible-delete diff-filter: pickaxe-all pickaxe-regex skip-to: rotate-to: relative::
            no-relative text ignore-cr-at-eol ignore-space-at-eol ignore-space-change ignore-all-space
            ignore-blank-lines ignore-matching-lines: inter-hunk-context: function-context exit-code quiet no-ext-diff
            no-textconv ignore-submodules:: src-prefix: dst-prefix: no-prefix default-prefix line-prefix:
            ita-invisible-in-index follow no-follow decorate:: no-decorate decorate-refs: decorate-refs-exclude:
            clear-decorations source mailmap no-mailmap use-mailmap full-diff log-size max-count: skip: since: after:
            until: before: since-as-filter: author: committer: grep-reflog: grep: all-match invert-grep
            regexp-ignore-case basic-regexp extended-regexp fixed-strings perl-regexp remove-empty merges no-merges
            min-parents: max-parents: no-min-parents no-max-parents first-parent exclude-first-parent-only not all
            branches:: tags:: remotes:: glob: exclude: reflog single-worktree ignore-missing bisect cherry-mark
            cherry-pick left-only right-only cherry walk-reflogs merge boundary simplify-by-decoration show-pulls
            full-history dense sparse simplify-merges ancestry-path:: date-order author-date-order topo-order reverse
            pretty:: format: abbrev-commit no-abbrev-commit oneline encoding: expand-tabs:: no-expand-tabs notes::
            no-notes relative-date date: parents children left-right graph no-graph show-linear-break:: diff-merges:
            no-diff-merges combined-all-paths cc dd remerge-diff root no-walk:: do-walk no-commit-id cached staged
            merge-base name-status committer-date-order no-standard-notes show-notes
        """,
        refuse="output ext-diff textconv no-index show-signature paginate stdin", operands="rev", numbers=True,
        cwd=True,
    ),
}

PROGRAMS = {
    "git": ProgramEntry(
        why="options before the command", short="PC@c:",
        long="""
            no-pager no-optional-locks no-replace-objects literal-pathspecs glob-pathspecs noglob-pathspecs
            icase-pathspecs version help html-path man-path info-path
        """,
        refuse="exec-path git-dir work-tree namespace bare config-env super-prefix paginate", abbreviate=False,
        prefix=True, check="git-settings", cwd=True,
        does=[
            effect.STARTS_BY_OPTION_OR_SOURCE.on("log", options="--pager"), effect.MAY_WRITE_OR_START,
            effect.CHANGES_USER_SETTINGS.on("config --global"), effect.ONLY_CHANGES_USER_SETTINGS.on("config --global"),
            EffectEntry("medium", "repository", "makes a commit", "commit"),
            EffectEntry("medium", "connects", "sends commits to a remote", "push"),
            EffectEntry("medium", "connects", "fetches commits from a remote and merges them", "pull"),
            EffectEntry("medium", "connects", "speaks with a remote", "fetch|ls-remote"),
            EffectEntry("medium", "connects", "fetches a repository from elsewhere", "clone"),
            EffectEntry(
                "medium", "repository", "moves to another branch or commit, or takes files from one", "checkout|switch",
            ),
            EffectEntry("medium", "repository", "marks changes for the next commit", "add"),
            EffectEntry("medium", "repository", "puts changes away, or brings them back", "stash"),
            EffectEntry(
                "medium", "repository", "changes files and commits of the branch",
                "merge|cherry-pick|revert|am|apply|rebase",
            ),
            EffectEntry("medium", "repository", "moves the branch, or takes changes out of the next commit", "reset"),
            EffectEntry("medium", "repository", "renames {what}", "mv"),
            EffectEntry("medium", "repository", "makes a repository", "init"),
            EffectEntry("medium", "repository", "makes or changes a tag", "tag"),
            EffectEntry("medium", "repository", "makes or changes a branch", "branch"),
            EffectEntry("medium", "configures", "changes which remotes there are, or asks them", "remote"),
            EffectEntry("medium", "configures", "changes git's settings", "config"),
            EffectEntry(
                "medium", "reads", "prints git's settings, in which credentials may stand", "config",
                options="-l --list --get-regexp", instead=True,
            ),
            EffectEntry(
                "medium", "reads", "prints git's settings, in which credentials may stand", "config list", instead=True,
            ),
            EffectEntry(
                "medium", "repository", "changes which files of the repository are here",
                "worktree|sparse-checkout|submodule",
            ),
            EffectEntry(
                "medium", "repository", "changes the repository (git {sub})",
                """
                    notes|bisect|replace|update-ref|symbolic-ref|update-index|read-tree|commit-tree|write-tree|
                    hash-object|fast-import|rerere|lfs|subtree|flow
                """,
            ),
            EffectEntry("medium", "repository", "tidies up the repository", "gc|maintenance|repack|pack-refs|prune"),
            EffectEntry(
                "medium", "writes", "writes what is in the repository to files",
                "archive|bundle|format-patch|fast-export|range-diff",
            ),
            EffectEntry(
                "medium", "connects", "speaks with other machines (git {sub})",
                "request-pull|send-email|daemon|svn|p4|instaweb",
            ),
            EffectEntry("medium", "runs", "starts another program (git {sub})", "mergetool|difftool|gui|citool"),
            EffectEntry(
                "low", "reads", "shows branches", "branch",
                options="""
                    --show-current --list -l -a --all -r --remotes -v -vv --merged --no-merged --contains --no-contains
                    --points-at --format --sort
                """,
                instead=True,
            ),
            EffectEntry(
                "low", "reads", "shows tags", "tag",
                options="-l --list -n --contains --no-contains --merged --no-merged --points-at --sort", instead=True,
            ),
            EffectEntry("low", "reads", "shows remotes", "remote get-url", instead=True),
            EffectEntry("low", "reads", "shows remotes", "remote", options="-v --verbose", instead=True),
            EffectEntry(
                "low", "reads", "shows what the repository holds",
                """
                    stash list|stash show|worktree list|submodule status|notes list|notes show|bisect log|
                    sparse-checkout list|lfs ls-files|lfs status
                """,
                instead=True,
            ),
            EffectEntry(
                "low", "reads", "shows git's settings", "config",
                options="--get --get-all --get-regexp -l --list --show-origin", instead=True,
            ),
            EffectEntry(
                "medium", "repository", "changes a branch", "branch",
                options="""
                    -m -M --move -c -C --copy -u --set-upstream-to --unset-upstream --edit-description -f --force
                    --track
                """,
            ),
            EffectEntry(
                "medium", "repository", "makes or changes a tag", "tag",
                options="-a -s -f -d -m -F -u --annotate --sign --force --delete --message --file --local-user",
            ),
            EffectEntry(
                "medium", "configures", "changes which remotes there are, or asks them",
                """
                    remote add|remote rename|remote remove|remote rm|remote set-url|remote set-head|remote set-branches|
                    remote prune|remote update
                """,
            ),
            EffectEntry(
                "medium", "configures", "changes git's settings", "config",
                options="""
                    --add --unset --unset-all --replace-all --remove-section --rename-section -e --edit --global
                    --system --file -f --blob
                """,
            ),
            EffectEntry("high", "deletes", "throws away all changes that are not committed", "reset", options="--hard"),
            EffectEntry(
                "high", "deletes", "throws away changes that are not committed", "reset", options="--merge --keep",
            ),
            EffectEntry("high", "deletes", "deletes files that git doesn't know", "clean", options="-f --force"),
            EffectEntry("medium", "deletes", "deletes files that git doesn't know, if told to", "clean"),
            EffectEntry("high", "deletes", "throws away changes in {what}", "restore"),
            EffectEntry(
                "medium", "deletes", "takes {what} out of the next commit", "restore", options="--staged -S",
                instead=True,
            ),
            EffectEntry(
                "high", "deletes", "throws away changes that are not committed", "checkout", options="-f --force",
            ),
            EffectEntry(
                "high", "deletes", "throws away changes in {what}", "checkout", operand=r"^(\.|\./.*|:/|[^*]*\*.*|--)$",
            ),
            EffectEntry(
                "high", "deletes", "throws away changes that are not committed", "switch",
                options="-f --force --discard-changes",
            ),
            EffectEntry("medium", "deletes", "deletes the branch {what}", "branch", options="-D -d --delete"),
            EffectEntry(
                "high", "deletes", "deletes the branch {what}, also what is in no other", "branch", options="-D",
            ),
            EffectEntry(
                "high", "deletes", "deletes the branch {what}, also what is in no other", "branch",
                options="-d --delete, -f --force",
            ),
            EffectEntry("high", "deletes", "deletes stashed changes", "stash drop|stash clear"),
            EffectEntry(
                "high", "deletes", "rewrites or forgets history",
                "reflog expire|reflog delete|filter-branch|filter-repo|lfs prune",
            ),
            EffectEntry("high", "deletes", "deletes a branch, and what is in no other", "update-ref", options="-d"),
            EffectEntry("high", "deletes", "deletes what no branch reaches, for good", "gc", options="--prune"),
            EffectEntry("medium", "deletes", "removes a worktree", "worktree remove|worktree prune"),
            EffectEntry(
                "high", "deletes", "removes a worktree with its changes", "worktree remove", options="-f --force",
            ),
            EffectEntry("medium", "deletes", "deletes {what} and tells git so", "rm"),
            EffectEntry(
                "high", "deletes", "deletes {what} and all below, and tells git so", "rm", options="-r, -f --force",
            ),
            EffectEntry(
                "critical", "connects", "overwrites history on the remote, for everybody", "push",
                options="-f --force --force-with-lease --force-if-includes --mirror",
            ),
            EffectEntry(
                "critical", "connects", "overwrites history on the remote, for everybody", "push", operand=r"^\+.",
            ),
            EffectEntry("high", "connects", "deletes branches on the remote", "push", options="-d --delete --prune"),
            EffectEntry("high", "connects", "deletes branches on the remote", "push", operand="^:."),
            EffectEntry(
                "high", "runs", "makes git start another program", options="-c --config-env",
                operand=(
                    "(?i)(pager|editor|alias|fsmonitor|hookspath|sshcommand|external|textconv|filter|credential|gpg|"
                    "askpass|proxy|program|command|include|protocol|helper|template|http|remote|url)"
                ),
            ),
            EffectEntry(
                "high", "runs", "makes git start another program",
                options="""
                    --exec-path --upload-pack --receive-pack --upload-pa --exec -O --open-files-in-pager --extcmd
                    --template --ext-diff --textconv
                """,
            ),
            EffectEntry(
                "high", "runs", "runs a command for each commit", "rebase|bisect run|submodule foreach",
                options="-x --exec",
            ),
            EffectEntry(
                "medium", "runs", "runs other programs through git",
                "bisect run|submodule foreach|filter-branch|difftool|mergetool|rebase",
            ),
            EffectEntry(
                "high", "configures", "makes git start a program from now on", "config",
                operand=(
                    r"^(alias\.|core\.(hookspath|fsmonitor|pager|editor|sshcommand|gitproxy|askpass)|filter\.|diff\.|"
                    r"credential|gpg\.|include|url\.|protocol\.|pager\.|merge\.|difftool|mergetool|sequence\.)"
                ),
            ),
            EffectEntry(
                "high", "runs", "makes git start another program", "clone|fetch|pull|remote|ls-remote|submodule",
                operand="^ext::|^fd::|--upload-pack",
            ),
            EffectEntry(
                "high", "reads", "shows passwords that git keeps", "credential|credential-store|credential-cache",
            ),
            EffectEntry(
                "high", "configures", "makes git start a program, or go elsewhere, in every repository from now on",
                "config", options="--global --system",
                operand=(
                    r"(?i)^(alias\.|core\.(hookspath|fsmonitor|pager|editor|sshcommand|gitproxy|askpass|"
                    r"attributesfile)|filter\.|diff\.|credential|gpg\.|include|url\.|protocol\.|pager\.|merge\.|"
                    r"difftool|mergetool|sequence\.|init\.templatedir|http\.|uploadpack\.)"
                ),
            ),
        ],
        changes="mv rm checkout restore", globals="-C -c --git-dir --work-tree --namespace --exec-path --config-env",
        listing="ls-files --name-only -l", answers_to="version -h",
        own="""
            add am apply bisect blame branch checkout cherry-pick clean clone commit config describe diff fetch
            format-patch grep init log merge mv notes pull push rebase reflog remote reset restore revert rm show stash
            status submodule switch tag worktree
        """,
        needs="/etc/gitconfig /etc/manpath.config /etc/man_db.conf /var/cache/man", core_commands="status diff log",
        grant="command", grant_words="stash remote branch tag worktree config submodule",
        grant_line="""
            config filter-branch difftool mergetool bisect rebase submodule daemon credential hook clone fetch pull
            ls-remote grep archive
        """,
        suggest_line="diff log show status blame cat-file",
        traits="no-files revisions text-values repository no-exec repository-settings answers",
    ),
    "git log": ProgramEntry(
        like="log", why="shows history and changes",
        long="""
            count objects use-bitmap-index disk-usage:: no-object-names timestamp header base ours theirs
            creation-factor: no-dual-color
        """,
        check="pretty", adds="--no-ext-diff --no-textconv", traits="line-ranges",
    ),
    "git show|git whatchanged|git diff-tree|git diff-index|git diff-files|git rev-list|git range-diff": ProgramEntry(
        like="git log",
    ),
    "git diff": ProgramEntry(
        like="git log", whole="-z", names_by="name-only",
        naming="cached staged diff-filter merge-base relative no-relative no-renames M find-renames z w b",
        traits="outside-files",
    ),
    "git diff --no-index": ProgramEntry(
        like="log", why="compares two files", operands="path", check="pretty", adds="--no-ext-diff --no-textconv",
    ),
    "git clean": ProgramEntry(
        why="says what it would delete; without -n it deletes it", short="ndxXqfe:",
        long="dry-run quiet force exclude:", refuse="interactive", operands="listed",
        one_of="n dry-run", or_else="without -n it does more than say what it would do", cwd=True,
    ),
    "git add|git rm": ProgramEntry(
        why="says what it would do; without -n it does it", short="nvAurf",
        long="dry-run verbose all update force recursive cached ignore-unmatch",
        refuse="patch interactive edit pathspec-from-file chmod renormalize intent-to-add refresh", operands="listed",
        abbreviate=False, one_of="n dry-run", or_else="without -n it does more than say what it would do", cwd=True,
    ),
    "git commit": ProgramEntry(
        why="says what would be committed; without --dry-run it commits", short="av",
        long="dry-run short porcelain long all verbose branch", abbreviate=False,
        one_of="n dry-run", or_else="without -n it does more than say what it would do", cwd=True,
    ),
    "git hash-object": ProgramEntry(
        why="computes a file's object id; -w would store it", short="t:", long="no-filters literally",
        refuse="stdin stdin-paths path w", operands="path",
    ),
    "git remote show": ProgramEntry(
        why="shows remotes; without -n it would contact them", short="n", operands="word", check="offline",
    ),
    "git submodule": ProgramEntry(why="lists submodules", long="quiet cached", operands="none"),
    "git fsck": ProgramEntry(
        why="looks for faults in the repository", short="v",
        long="""
            full no-full strict unreachable no-reflogs connectivity-only dangling no-dangling root tags verbose progress
            no-progress name-objects cache
        """,
        refuse="lost-found", operands="listed",
    ),
    "git shortlog": ProgramEntry(
        why="counts commits by author", short="sencw::",
        long="""
            summary numbered email committer group: format: all since: until: after: before: author: no-merges merges
            branches:: tags:: remotes:: max-count: first-parent grep:
        """,
        operands="listed", check="pretty", cwd=True, traits="waits-for-log",
    ),
    "git reflog": ProgramEntry(
        like="log", why="shows where branches have been; expire and delete would forget it", check="reflog",
    ),
    "git status": ProgramEntry(
        why="shows what changed", short="sbvu::z",
        long="""
            short branch show-stash porcelain:: long verbose untracked-files:: ignore-submodules:: ignored:: column::
            no-column ahead-behind no-ahead-behind renames no-renames find-renames:: help
        """,
        operands="listed", cwd=True,
    ),
    "git blame|git annotate": ProgramEntry(
        why="shows who wrote each line", short="L:lstfnpewbMC::h",
        long="""
            root show-stats date: since: until: porcelain line-porcelain incremental encoding: first-parent progress
            no-progress color-lines color-by-age show-name show-number show-email abbrev: ignore-rev: ignore-revs-file@
            reverse minimal
        """,
        refuse="contents", operands="rev", cwd=True, adds="--no-textconv",
    ),
    "git branch": ProgramEntry(
        why="lists branches; a name would make one", short="arvqli",
        long="""
            all remotes list verbose show-current contains:: no-contains:: merged:: no-merged:: sort: points-at: format:
            column:: no-column color:: no-color abbrev: no-abbrev ignore-case omit-empty
        """,
        refuse="""
            delete move copy force track set-upstream set-upstream-to unset-upstream edit-description create-reflog
            recurse-submodules
        """,
        operands="listed", check="git-listing",
    ),
    "git tag": ProgramEntry(
        why="lists tags; a name would make one", short="ln::i",
        long="list contains:: no-contains:: merged:: no-merged:: sort: points-at: format: column:: color:: ignore-case",
        refuse="delete annotate sign force message file verify local-user cleanup create-reflog edit",
        operands="listed", check="git-listing",
    ),
    "git remote": ProgramEntry(
        why="lists remotes; add, remove and set-url would change them, show and update go to the network", short="v",
        long="verbose push all", operands="word", first="get-url", traits="addresses",
    ),
    "git stash list": ProgramEntry(like="log", why="lists stashes", check="pretty"),
    "git stash show": ProgramEntry(
        like="log", why="shows a stash", long="include-untracked only-untracked", check="pretty",
    ),
    "git ls-files": ProgramEntry(
        why="lists files", short="cdmoikstuvfzx:X@",
        long="""
            cached deleted modified others ignored stage directory no-empty-directory unmerged killed resolve-undo
            exclude: exclude-from@ exclude-per-directory: exclude-standard error-unmatch full-name recurse-submodules
            abbrev:: debug eol deduplicate sparse format: with-tree:
        """,
        operands="listed", cwd=True, whole="-z",
        naming="""
            c d m o i z x cached deleted modified others ignored exclude exclude-standard deduplicate recurse-submodules
        """,
    ),
    "git ls-tree": ProgramEntry(
        why="lists a tree", short="drtlz",
        long="long name-only name-status object-only full-name full-tree abbrev:: format:", operands="listed",
    ),
    "git cat-file": ProgramEntry(
        why="prints an object", short="tspe",
        long="batch-check:: follow-symlinks allow-unknown-type unordered batch-all-objects",
        refuse="textconv filters batch batch-command", operands="rev",
    ),
    "git rev-parse": ProgramEntry(
        why="resolves a name", short="q",
        long="""
            abbrev-ref:: short:: verify quiet show-toplevel show-prefix show-cdup git-dir absolute-git-dir
            git-common-dir is-inside-work-tree is-inside-git-dir is-bare-repository is-shallow-repository
            show-superproject-working-tree symbolic symbolic-full-name all branches:: tags:: remotes:: revs-only no-revs
            flags no-flags default: sq-quote since: until: path-format: git-path: show-object-format:: show-ref-format
        """,
        operands="listed", interspersed=True,
    ),
    "git describe|git name-rev": ProgramEntry(
        why="names a commit by its tags",
        long="""
            dirty:: broken:: all tags contains abbrev: candidates: exact-match long match: exclude: always first-parent
            name-only refs: no-undefined
        """,
        operands="listed",
    ),
    "git grep": ProgramEntry(
        why="searches the files of a commit", short="iIvhHEGFPnlLzocpWwA:B:C:e:qm:a",
        long="""
            cached untracked no-exclude-standard exclude-standard recurse-submodules text ignore-case max-depth:
            recursive no-recursive word-regexp invert-match full-name extended-regexp basic-regexp perl-regexp
            fixed-strings line-number column files-with-matches name-only files-without-match null only-matching count
            color:: no-color break heading show-function after-context: before-context: context: function-context
            max-count: all-match quiet and or not threads:
        """,
        refuse="open-files-in-pager textconv no-index", operands="pattern rev", numbers=True, cwd=True,
        traits="outside-files",
    ),
    "git config": ProgramEntry(
        why="prints settings; a value would set one", short="lz",
        long="""
            get get-all get-regexp list show-origin show-scope name-only local global system worktree includes
            no-includes type: bool int path null default: all
        """,
        refuse="file blob add unset unset-all replace-all rename-section remove-section edit", operands="text",
        check="git-config", front="env -u GIT_CONFIG_COUNT", traits="addresses",
    ),
    "git help|git var": ProgramEntry(
        why="shows a page of git's manual, or what git is set to", short="ag", long="all guides", operands="word",
        each=r"(?!.*\.\.)([A-Za-z0-9_.+:-]+|\[)", or_else="man of a file may run what is in it",
    ),
    "git apply": ProgramEntry(
        why="says what a patch would change; without --stat, --check and their kin it changes it", short="p:vR",
        long="stat numstat summary check verbose reverse", operands="path",
        one_of="stat numstat summary check", or_else="it changes files",
    ),
    "git symbolic-ref": ProgramEntry(
        why="says what a ref points to; a second word would change it", short="q",
        long="short quiet recurse no-recurse", refuse="delete", operands="listed", most=1, least=1,
    ),
    "git merge-base": ProgramEntry(
        why="finds a common ancestor", short="a", long="all octopus is-ancestor independent fork-point",
        operands="listed",
    ),
    "git show-ref|git for-each-ref|git show-branch": ProgramEntry(
        why="lists refs", short="dsqa",
        long="""
            head heads tags branches dereference hash:: verify abbrev:: quiet count: sort: format: contains::
            no-contains:: merged:: no-merged:: points-at: all remotes list current topo-order ignore-case color::
        """,
        refuse="exclude-existing shell perl python tcl", operands="listed", check="pretty",
    ),
    "git check-ignore|git check-attr": ProgramEntry(
        why="shows which ignore rule matches a file", short="vqnza",
        long="verbose quiet non-matching no-index all cached", refuse="stdin source", operands="listed",
    ),
    "git count-objects": ProgramEntry(why="counts objects", short="vH", long="verbose human-readable"),
    "git worktree list": ProgramEntry(why="lists worktrees", short="vz", long="verbose porcelain"),
    "git submodule status|git submodule summary": ProgramEntry(
        why="lists submodules", long="recursive cached", operands="none",
    ),
    """
        git bisect log|git notes list|git notes show|git lfs ls-files|git lfs status|git sparse-checkout list|
        git version|git cherry
    """: ProgramEntry(
        why="shows what git knows", short="avls", long="all build-options size long name-only verbose", operands="word",
    ),
    "git archive": ProgramEntry(why="lists formats", short="l", long="list"),
}
