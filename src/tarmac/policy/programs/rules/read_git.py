"""Git's commands that only look. The plan turns off what a repository's own configuration could start.

That is hooks, fsmonitor, pagers, external diffs. -c, --exec-path and --git-dir could turn them on again, so they are
not here.
"""

from tarmac.policy.programs.rules.shapes import Reader, Shared

SHARED = {  # what several have in common: `like`
    "log": Shared(
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
    "git": Reader(
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
    "git log": Reader(
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
    "git diff --no-index": Reader(
        like="log",
        why="compares two files",
        adds="--no-ext-diff --no-textconv",
        operands="path",
        check="pretty",
    ),
    "git clean": Reader(
        why="says what it would delete; without -n it deletes it",
        check="dry",
        short="ndxXqfe:",
        long="dry-run quiet force exclude:",
        refuse="interactive",
        operands="listed",
        cwd=True,
    ),
    "git add": Reader(
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
    "git commit": Reader(
        why="says what would be committed; without --dry-run it commits",
        check="dry",
        short="av",
        long="dry-run short porcelain long all verbose branch",
        abbreviate=False,
        cwd=True,
    ),
    "git hash-object": Reader(
        why="counts a file's name in git; -w would store it",
        short="t:",
        long="no-filters literally",
        refuse="stdin stdin-paths path w",
        operands="path",
    ),
    "git remote show": Reader(
        why="tells about remotes; without -n it would ask them",
        check="offline",
        short="n",
        operands="word",
    ),
    "git submodule": Reader(why="lists submodules", long="quiet cached", operands="none"),
    "git fsck": Reader(
        why="looks for faults in the repository",
        short="v",
        long="""
            full no-full strict unreachable no-reflogs connectivity-only dangling no-dangling root tags verbose
            progress no-progress name-objects cache
        """,
        refuse="lost-found",
        operands="listed",
    ),
    "git shortlog": Reader(
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
    "git reflog": Reader(
        like="log",
        why="shows where branches have been; expire and delete would forget it",
        check="reflog",
    ),
    "git status": Reader(
        why="shows what changed",
        short="sbvu::z",
        long="""
            short branch show-stash porcelain:: long verbose untracked-files:: ignore-submodules:: ignored::
            column:: no-column ahead-behind no-ahead-behind renames no-renames find-renames:: help
        """,
        operands="listed",
        cwd=True,
    ),
    "git blame": Reader(
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
    "git branch": Reader(
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
    "git tag": Reader(
        why="lists tags; a name would make one",
        check="git-listing",
        short="ln::i",
        long="""
            list contains:: no-contains:: merged:: no-merged:: sort: points-at: format: column:: color:: ignore-case
        """,
        refuse="delete annotate sign force message file verify local-user cleanup create-reflog edit",
        operands="listed",
    ),
    "git remote": Reader(
        why="lists remotes; add, remove and set-url would change them, show and update go to the network",
        check="git-remote",
        short="v",
        long="verbose push all",
        operands="word",
    ),
    "git stash list": Reader(like="log", check="pretty", why="lists stashes"),
    "git stash show": Reader(like="log", check="pretty", why="shows a stash", long="include-untracked only-untracked"),
    "git ls-files": Reader(
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
    "git ls-tree": Reader(
        why="lists a tree",
        short="drtlz",
        long="long name-only name-status object-only full-name full-tree abbrev:: format:",
        operands="listed",
    ),
    "git cat-file": Reader(
        why="prints an object",
        short="tspe",
        long="batch-check:: follow-symlinks allow-unknown-type unordered batch-all-objects",
        refuse="textconv filters batch batch-command",
        operands="rev",
    ),
    "git rev-parse": Reader(
        why="says what a name stands for",
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
    "git describe": Reader(
        also="git name-rev",
        why="names a commit by its tags",
        long="""
            dirty:: broken:: all tags contains abbrev: candidates: exact-match long match: exclude: always
            first-parent name-only refs: no-undefined
        """,
        operands="listed",
    ),
    "git grep": Reader(
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
    "git config": Reader(
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
    "git help": Reader(
        also="git var",
        why="shows a page of git's manual, or what git is set to",
        short="ag",
        long="all guides",
        operands="word",
        check="man",
    ),
    "git apply": Reader(
        why="says what a patch would change; without --stat, --check and their kin it changes it",
        check="git-apply",
        short="p:vR",
        long="stat numstat summary check verbose reverse",
        operands="path",
    ),
    "git symbolic-ref": Reader(
        why="says what a ref points to; a second word would change it",
        short="q",
        long="short quiet recurse no-recurse",
        refuse="delete",
        operands="listed",
        most=1,
        least=1,
    ),
    "git merge-base": Reader(
        why="finds a common ancestor",
        short="a",
        long="all octopus is-ancestor independent fork-point",
        operands="listed",
    ),
    "git show-ref": Reader(
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
    "git check-ignore": Reader(
        also="git check-attr",
        why="says which rule hides a file",
        short="vqnza",
        long="verbose quiet non-matching no-index all cached",
        refuse="stdin source",
        operands="listed",
    ),
    "git count-objects": Reader(why="counts objects", short="vH", long="verbose human-readable"),
    "git worktree list": Reader(why="lists worktrees", short="vz", long="verbose porcelain"),
    "git submodule status": Reader(
        also="git submodule summary",
        why="lists submodules",
        long="recursive cached",
        operands="none",
    ),
    "git bisect log": Reader(
        also="""
            git notes list|git notes show|git lfs ls-files|git lfs status|git sparse-checkout list|git version|
            git cherry
        """,
        why="shows what git knows",
        short="avls",
        long="all build-options size long name-only verbose",
        operands="word",
    ),
    "git archive": Reader(why="lists formats", short="l", long="list"),
}
