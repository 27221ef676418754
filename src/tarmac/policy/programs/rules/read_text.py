"""Programs that search, sort and cut text."""

from tarmac.policy.programs.rules.shapes import Reader

READERS = {
    "echo": Reader(why="prints its words", check="echo", operands="text"),
    "printf": Reader(why="prints its words", check="printf", operands="text"),
    "grep": Reader(
        also="egrep|fgrep",
        why="searches text",
        short="A:abB:cC:d:D:e:EFf@GhHiIlLm:nNoPqrRsTuUvwxyzZ",
        long="""
            extended-regexp fixed-strings basic-regexp perl-regexp regexp: file@ ignore-case no-ignore-case
            word-regexp line-regexp null-data no-messages invert-match max-count: byte-offset line-number
            line-buffered with-filename no-filename label: only-matching quiet silent binary-files: text
            directories: devices: recursive dereference-recursive include: exclude: exclude-from@ exclude-dir:
            files-without-match files-with-matches count initial-tab null before-context: after-context: context:
            color:: colour:: binary help version group-separator: no-group-separator
        """,
        operands="pattern path",
        numbers=True,
        harmless_options=True,
        cwd=True,
    ),
    "rg": Reader(
        why="searches text; --pre and --hostname-bin would run a program",
        short="A:aB:bcC:e:E:f@FhHiIj:lm:M:nNoPpqr:Ss.t:T:uUvVwxg:d:0",
        long="""
            after-context: before-context: context: auto-hybrid-regex no-auto-hybrid-regex binary no-binary
            block-buffered byte-offset case-sensitive color: colors: column no-column context-separator: count
            count-matches crlf debug dfa-size-limit: encoding: engine: field-context-separator:
            field-match-separator: file@ files files-with-matches files-without-match fixed-strings no-follow
            generate: glob: glob-case-insensitive heading no-heading help hidden no-hidden iglob: ignore-case
            ignore-file@ ignore-file-case-insensitive include-zero invert-match json line-buffered line-number
            no-line-number line-regexp max-columns: max-columns-preview max-count: max-depth: maxdepth:
            max-filesize: mmap no-mmap multiline multiline-dotall no-config no-ignore no-ignore-dot
            no-ignore-exclude no-ignore-files no-ignore-global no-ignore-messages no-ignore-parent no-ignore-vcs
            no-messages no-require-git no-unicode null null-data one-file-system only-matching path-separator:
            passthru pcre2 pcre2-version pretty quiet regex-size-limit: regexp: replace: smart-case sort: sortr:
            stats stop-on-nonmatch text threads: trace trim type: type-add: type-clear: type-list type-not:
            unrestricted version vimgrep with-filename no-filename word-regexp
        """,
        refuse="pre hostname-bin search-zip pre-glob follow",
        operands="pattern path",
        abbreviate=False,
        cwd=True,
    ),
    "ag": Reader(
        why="searches text; --pager would run a program",
        short="A:aB:cC:DFg:G:HhilLm:no0pQrRsSuUvwWz",
        long="""
            ackmate all-text all-types after:: before:: context:: color nocolor color-line-number: column count
            depth: filename nofilename file-search-regex: files-with-matches files-without-matches fixed-strings
            group nogroup hidden ignore: ignore-case ignore-dir: invert-match line-numbers list-file-types literal
            match-case max-count: nobreak null numbers nonumbers only-matching print-long-lines path-to-ignore@
            recurse norecurse skip-vcs-ignores smart-case stats unrestricted vimgrep width: word-regexp help version
            silent
        """,
        refuse="pager search-zip follow",
        operands="pattern path",
        abbreviate=False,
        cwd=True,
    ),
    "fd": Reader(
        also="fdfind",
        why="finds files; -x and -X would run a program",
        short="HIusigFapLt:e:E:d:c:0lS:j:1qhVo:",
        long="""
            hidden no-hidden no-ignore ignore no-ignore-vcs no-ignore-parent no-global-ignore-file unrestricted
            case-sensitive ignore-case glob regex fixed-strings and: absolute-path relative-path full-path follow
            max-depth: maxdepth: min-depth: exact-depth: type: extension: exclude: prune size: changed-within:
            changed-before: change-newer-than: newer: change-older-than: older: owner: list-details print0 color:
            max-results: quiet show-errors one-file-system path-separator: format: strip-cwd-prefix:: hyperlink::
            help version threads: base-directory@ search-path@ ignore-file@
        """,
        refuse="exec exec-batch batch-size",
        operands="text path",
        abbreviate=False,
        cwd=True,
    ),
    "find": Reader(why="finds files; only its tests and printing are known", check="find", operands="text", cwd=True),
    "sort": Reader(
        why="sorts lines; -o would write, --compress-program run a program",
        short="bdfgiMhnRrVcCk:mst:uz",
        long="""
            ignore-leading-blanks dictionary-order ignore-case general-numeric-sort ignore-nonprinting month-sort
            human-numeric-sort numeric-sort random-sort reverse sort: version-sort batch-size: check:: debug key:
            merge stable field-separator: unique zero-terminated parallel: help version
        """,
        refuse="output compress-program temporary-directory files0-from random-source buffer-size",
        operands="path",
    ),
    "uniq": Reader(
        why="drops repeated lines; a second file would be written",
        short="cdDf:is:uw:z",
        long="""
            count repeated all-repeated:: skip-fields: group:: ignore-case skip-chars: unique zero-terminated
            check-chars: help version
        """,
        operands="path",
        most=1,
    ),
    "cut": Reader(
        why="cuts columns",
        short="b:c:d:f:nsz",
        long="""
            bytes: characters: delimiter: fields: complement only-delimited output-delimiter: zero-terminated help
            version
        """,
        operands="path",
        harmless_options=True,
    ),
    "tr": Reader(
        why="translates characters of a pipe",
        short="cCdst",
        long="complement delete squeeze-repeats truncate-set1 help version",
        operands="text",
        interspersed=False,
    ),
    "fold": Reader(
        why="lays out text", short="bsw:", long="bytes spaces width: help version", operands="path", numbers=True
    ),
    "fmt": Reader(
        why="lays out text",
        short="cp:stuw:g:",
        long="crown-margin prefix: split-only tagged-paragraph uniform-spacing width: goal: help version",
        operands="path",
        numbers=True,
    ),
    "expand": Reader(
        why="lays out text", short="it:", long="initial tabs: help version", operands="path", numbers=True
    ),
    "unexpand": Reader(why="lays out text", short="at:", long="all first-only tabs: help version", operands="path"),
    "pr": Reader(
        why="lays out text in pages",
        short="abcdD:e::fFh:i::Jl:mn::N:o:rs::S::tTvw:W:",
        long="""
            across show-control-chars double-space date-format: expand-tabs:: form-feed header: output-tabs::
            join-lines length: merge number-lines:: first-line-number: indent: no-file-warnings separator:: sep-string::
            omit-header omit-pagination show-nonprinting width: page-width: columns: help version
        """,
        operands="path",
        numbers=True,
    ),
    "rev": Reader(why="turns lines around", short="0hV", long="zero help version", operands="path"),
    "column": Reader(
        why="lays out text in columns",
        short="tc:s:o:xen:N:R:H:O:W:T:E:JdLl:mi:r:p:",
        long="""
            table separator: output-separator: columns: table-columns: table-right: table-hide: table-order:
            table-wrap: table-noheadings output-width: fillrows json table-name: keep-empty-lines help version
        """,
        operands="path",
    ),
    "shuf": Reader(
        why="mixes lines; -o would write",
        short="ei:n:rz",
        long="echo input-range: head-count: repeat zero-terminated help version",
        refuse="output random-source",
        operands="path",
    ),
    "seq": Reader(
        why="prints numbers, not too many",
        short="f:s:w",
        long="format: separator: equal-width help version",
        operands="text",
        numbers=True,
        check="seq",
    ),
    "factor": Reader(
        also="numfmt",
        why="calculates",
        short="f:s:wd:hz",
        long="""
            format: separator: equal-width from: to: padding: suffix: delimiter: field: grouping header:: invalid:
            round: help version
        """,
        operands="text",
        harmless_options=True,
    ),
    "expr": Reader(why="calculates", operands="text", check="anything"),
    "tsort": Reader(also="look", why="orders or looks up words", short="df", operands="path"),
    "base64": Reader(
        also="base32|basenc",
        why="encodes or decodes to the screen",
        short="diw:D",
        long="decode ignore-garbage wrap: base64 base64url base32 base32hex base16 base2msbf z85 help version",
        operands="path",
    ),
    "sed": Reader(
        why="prints lines; scripts that write, run or read other files are not known to be harmless",
        short="nEre:sl:uz",
        long="""
            quiet silent expression: regexp-extended posix separate unbuffered null-data line-length: debug sandbox
            help version
        """,
        refuse="in-place file follow-symlinks",
        operands="script path",
        check="sed",
        adds="--sandbox",
    ),
    "awk": Reader(
        also="gawk|mawk|nawk|original-awk",
        why="prints fields; programs that write, run or read other files are not known to be harmless",
        short="F:v:",
        long="field-separator: assign: help version",
        refuse="file include load exec debug dump-variables profile pretty-print source lint",
        operands="script path",
        abbreviate=False,
        interspersed=False,
        check="awk",
    ),
    "jq": Reader(
        also="gojq|jaq",
        why="picks from JSON",
        short="cCMnrRsSaejL@hV",
        long="""
            compact-output color-output monochrome-output null-input raw-output raw-output0 raw-input slurp
            sort-keys ascii-output exit-status join-output tab indent: stream stream-errors seq unbuffered arg+
            argjson+ args jsonargs help version
        """,
        refuse="from-file rawfile slurpfile",
        operands="script path",
        abbreviate=False,
        check="jq",
    ),
    "yq": Reader(
        why="picks from YAML; -i would write",
        short="PMCejnrN0o:p:I:h",
        long="""
            prettyPrint no-colors colors exit-status tojson null-input unwrapScalar:: no-doc output-format:
            input-format: indent: help version raw-output
        """,
        refuse="inplace split-exp from-file front-matter",
        operands="script path",
        abbreviate=False,
        check="yq",
    ),
    "xmllint": Reader(
        why="checks or prints XML",
        long="noout format xpath: nonet version noblanks",
        refuse="output shell",
        operands="path",
        abbreviate=False,
        single=True,
    ),
    "cloc": Reader(
        why="counts lines of code",
        check="cloc",
        long="""
            by-file exclude-dir: include-lang: exclude-lang: json quiet vcs: md csv version help
        """,
        refuse="config report-file out script-lang",
        operands="path",
        abbreviate=False,
        cwd=True,
    ),
    "tokei": Reader(
        why="counts lines of code",
        short="fCe:s:t:o:",
        long="files compact exclude: sort: types: output: languages version help hidden no-ignore",
        refuse="input",
        operands="path",
        abbreviate=False,
        cwd=True,
    ),
    "scc": Reader(
        why="counts lines of code",
        short="wf:s:i:x:",
        long="by-file wide no-cocomo sort: format: include-ext: exclude-ext: exclude-dir: version help",
        refuse="output format-multi",
        operands="path",
        abbreviate=False,
        cwd=True,
    ),
    "diffstat": Reader(why="counts the changes in a patch", short="bcCklmtuvw:p:n:f:", operands="path"),
    "bc": Reader(why="calculates what a pipe says", short="lq", long="mathlib quiet version", operands="none"),
    "iconv": Reader(
        why="converts text to the screen",
        short="f:t:cls",
        long="from-code: to-code: list version",
        refuse="output",
        operands="path",
    ),
    "cal": Reader(also="ncal", why="prints a calendar", short="13jmyhwbMsY", operands="text"),
    "python -m json.tool": Reader(
        why="prints JSON, in order; a second file would be written",
        long="sort-keys no-ensure-ascii json-lines indent: tab no-indent compact help",
        operands="path",
        most=1,
        abbreviate=False,
    ),
    "tee": Reader(why="prints what it reads; a file would be written", check="tee", short="ai", operands="text"),
}
