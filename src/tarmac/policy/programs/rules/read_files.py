"""Programs that read files and text. How to read an entry: grammar.py, docs/policy.md."""

from tarmac.policy.programs.rules.table import ReaderEntry

READERS = {
    "ls": ReaderEntry(
        also="dir|vdir",
        why="lists names, sizes and dates",
        short="aAbBcCdDfFgGhHiI:klLmnNopqQrRsStT:uUvw:xXZ1",
        long="""
            all almost-all author escape block-size: ignore-backups classify:: color:: directory dired file-type
            format: full-time group-directories-first no-group human-readable si dereference-command-line
            dereference-command-line-symlink-to-dir hide: hyperlink:: indicator-style: inode ignore: kibibytes
            dereference numeric-uid-gid literal hide-control-chars show-control-chars quote-name quoting-style:
            reverse recursive size sort: time: time-style: tabsize: width: context zero help version
        """,
        operands="name",
        harmless_options=True,
        cwd=True,
        check="ls",
    ),
    "eza": ReaderEntry(
        also="exa",
        why="lists names, sizes and dates",
        short="1lahRTrDfFSsgimutUxdGoOZ@L:I:Hb",
        long="""
            oneline long all grid across recurse tree dereference classify:: color: colour: color-scale icons::
            no-icons hyperlink sort: level: ignore-glob: git-ignore only-dirs only-files list-dirs
            group-directories-first reverse binary bytes group header inode links modified blocksize time: accessed
            created time-style: no-permissions no-filesize no-user no-time octal-permissions git git-repos extended
            context width: absolute:: smart-group total-size numeric help version
        """,
        operands="path",
        abbreviate=False,
        cwd=True,
    ),
    "cat": ReaderEntry(
        why="prints files",
        short="AbeEnstTuv",
        long="show-all number-nonblank show-ends number squeeze-blank show-tabs show-nonprinting help version",
        operands="path",
        harmless_options=True,
    ),
    "tac": ReaderEntry(
        why="prints files from their end",
        short="brs:",
        long="before regex separator: help version",
        operands="path",
        harmless_options=True,
    ),
    "bat": ReaderEntry(
        also="batcat",
        why="prints files in colours",
        short="pnAl:H:r:",
        long="""
            plain number show-all language: highlight-line: line-range: style: color: decorations: theme: tabs:
            wrap: terminal-width: list-languages list-themes help version
        """,
        refuse="pager config-file diagnostic",
        operands="path",
        abbreviate=False,
    ),
    "head": ReaderEntry(
        why="prints the beginning of files",
        short="c:n:qvz",
        long="bytes: lines: quiet silent verbose zero-terminated help version",
        operands="path",
        numbers=True,
        harmless_options=True,
    ),
    "tail": ReaderEntry(
        why="prints the end of files",
        short="c:fFn:qrs:vz",
        long="""
            bytes: follow:: lines: max-unchanged-stats: pid: quiet silent retry sleep-interval: verbose
            zero-terminated help version
        """,
        operands="path",
        numbers=True,
        harmless_options=True,
    ),
    "wc": ReaderEntry(
        why="counts lines, words and bytes",
        short="clmLw",
        long="bytes chars lines words max-line-length total: help version",
        refuse="files0-from",
        operands="name",
        harmless_options=True,
    ),
    "nl": ReaderEntry(
        why="numbers lines",
        short="b:d:f:h:i:l:n:ps:v:w:",
        long="""
            body-numbering: section-delimiter: footer-numbering: header-numbering: line-increment: join-blank-lines:
            number-format: no-renumber number-separator: starting-line-number: number-width: help version
        """,
        operands="path",
        harmless_options=True,
    ),
    "od": ReaderEntry(
        why="shows bytes",
        short="A:j:N:S:t:vw::abcdfiloswx",
        long="""
            address-radix: skip-bytes: read-bytes: strings:: format: output-duplicates width:: endian: help version
            traditional
        """,
        operands="path",
        harmless_options=True,
    ),
    "hexdump": ReaderEntry(
        also="hd",
        why="shows bytes",
        short="bcCde:n:os:vx",
        long="""
            one-byte-octal one-byte-char canonical two-bytes-decimal two-bytes-octal two-bytes-hex format: length:
            skip: no-squeezing color:: help version
        """,
        operands="path",
        refuse="format-file",
    ),
    "xxd": ReaderEntry(
        why="shows bytes; a second file would be written",
        operands="path",
        check="xxd",
    ),
    "strings": ReaderEntry(
        why="shows the text in a binary",
        short="adfn:owt:e:",
        long="all data print-file-name bytes: radix: encoding: include-all-whitespace help version",
        operands="path",
        numbers=True,
    ),
    "less": ReaderEntry(
        why="shows files; without a terminal it only prints, and its commands are off (LESSSECURE)",
        short="aAcCeEfFgGiIJKmMnNqQrRsSuUwWX",
        long="""
            LINE-NUMBERS line-numbers chop-long-lines RAW-CONTROL-CHARS raw-control-chars quit-if-one-screen no-init
            ignore-case version
        """,
        operands="path",
        abbreviate=False,
        check="pager",
    ),
    "more": ReaderEntry(
        why="shows files; without a terminal it only prints",
        short="dflcpsu",
        operands="path",
        check="pager",
    ),
    "file": ReaderEntry(
        why="says what kind of file it is",
        short="bcEF:hikLlNnP:prsSvz0e:",
        long="""
            brief checking-printout exclude: exclude-quiet: separator: mime mime-type mime-encoding apple extension
            keep-going no-dereference dereference no-buffer no-pad preserve-date print0 raw special-files uncompress
            list help version
        """,
        refuse="compile magic-file files-from",
        operands="path",
    ),
    "stat": ReaderEntry(
        why="shows size, dates and rights",
        short="c:fLtx",
        long="dereference file-system cached: format: printf: terse help version",
        operands="name",
        harmless_options=True,
    ),
    "du": ReaderEntry(
        why="adds up sizes",
        short="0abB:cd:DhHklLmPsSt:xX@",
        long="""
            null all apparent-size block-size: bytes total dereference-args max-depth: human-readable inodes
            dereference no-dereference separate-dirs si summarize threshold: time:: time-style: exclude:
            exclude-from@ one-file-system help version
        """,
        refuse="files0-from",
        operands="name",
        cwd=True,
        check="recursive",
        harmless_options=True,
    ),
    "df": ReaderEntry(
        why="shows free space",
        short="aB:hHiklmPt:Tvx:g",
        long="""
            all block-size: human-readable si inodes local no-sync output:: portability sync type: print-type
            exclude-type: total help version
        """,
        operands="text",
        harmless_options=True,
    ),
    "tree": ReaderEntry(
        why="draws the folders; -o would write",
        short="adfilxL:P:I:hpugsDFrtUvcACSnNJX",
        long="""
            gitignore gitfile: matchdirs metafirst prune ignore-case noreport charset: filelimit: si du timefmt:
            inodes device sort:: dirsfirst filesfirst fromfile nolinks help version info infofile:
        """,
        refuse="output",
        operands="name",
        abbreviate=False,
        cwd=True,
        check="recursive",
    ),
    "lsd": ReaderEntry(
        also="dust",
        why="lists names, sizes and dates",
        short="1lahRrtSd:n:F",
        long="""
            all almost-all long tree recursive depth: oneline human-readable size: date: group-dirs: icon:
            icon-theme: color: blocks: header reverse sort: total-size classic help version
        """,
        operands="name",
        check="recursive",
        abbreviate=False,
        cwd=True,
    ),
    "hexyl": ReaderEntry(
        why="prints bytes",
        short="n:s:c:",
        long="length: skip: no-squeezing color: border: plain bytes:",
        operands="path",
        abbreviate=False,
    ),
    "pdfinfo": ReaderEntry(
        also="pdffonts|pdfimages -list",
        why="shows facts about a document",
        short="f:l:",
        operands="path",
        most=1,
    ),
    "pdftotext": ReaderEntry(
        why="prints the text of a document; a second file would be written",
        check="to-stdout",
        short="f:l:",
        long="layout raw nopgbrk",
        single=True,
        operands="path text",
        most=2,
        least=2,
    ),
    "7z l": ReaderEntry(also="7za l|7zz l", why="lists an archive", operands="path", most=1),
    "ar t": ReaderEntry(also="ar tv", why="lists an archive", operands="path text"),
    "zstd -l": ReaderEntry(also="zstd --list", why="shows facts about compressed files", short="v", operands="path"),
    "readlink": ReaderEntry(
        also="realpath",
        why="says where a path leads",
        short="efmnqsvzLPz",
        long="""
            canonicalize canonicalize-existing canonicalize-missing no-newline quiet silent verbose zero logical
            physical relative-to: relative-base: strip no-symlinks help version
        """,
        operands="name",
        harmless_options=True,
    ),
    "basename": ReaderEntry(
        also="dirname",
        why="splits a path, as text",
        short="as:z",
        long="multiple suffix: zero help version",
        operands="text",
        harmless_options=True,
    ),
    "pathchk": ReaderEntry(
        why="checks names, as text",
        short="pP",
        long="portability help version",
        operands="text",
        harmless_options=True,
    ),
    "md5sum": ReaderEntry(
        also="sha1sum|sha224sum|sha256sum|sha384sum|sha512sum|b2sum|cksum|sum|shasum|md5|b3sum",
        why="computes a checksum",
        short="a:bcl:qrstwz",
        long="""
            algorithm: binary check length: tag text zero ignore-missing quiet status strict warn help version
            untagged raw base64 debug
        """,
        operands="path",
        harmless_options=True,
    ),
    "cmp": ReaderEntry(
        why="compares bytes",
        short="bi:ln:s",
        long="print-bytes ignore-initial: verbose bytes: quiet silent help version",
        operands="path",
        harmless_options=True,
    ),
    "diff": ReaderEntry(
        also="colordiff",
        why="compares files",
        short="abBcC:dD:eEF:hHiI:L:nNpPqrsS:tTuU:vwW:x:X@yZ",
        long="""
            normal brief report-identical-files context:: unified:: ed rcs side-by-side width: left-column
            suppress-common-lines show-c-function show-function-line: label: expand-tabs initial-tab tabsize:
            suppress-blank-empty recursive no-dereference new-file unidirectional-new-file ignore-file-name-case
            no-ignore-file-name-case exclude: exclude-from@ starting-file: from-file@ to-file@ ignore-case
            ignore-tab-expansion ignore-trailing-space ignore-space-change ignore-all-space ignore-blank-lines
            ignore-matching-lines: text strip-trailing-cr ifdef: line-format: old-group-format: new-group-format:
            old-line-format: new-line-format: unchanged-line-format: horizon-lines: speed-large-files minimal
            color:: palette: help version
        """,
        refuse="paginate",
        operands="path",
        numbers=True,
    ),
    "diff3": ReaderEntry(
        why="compares three files",
        short="aAeEimTxX3L:",
        long="text show-all ed easy-only merge label: help version",
        refuse="diff-program",
        operands="path",
    ),
    "comm": ReaderEntry(
        why="compares sorted files",
        short="123z",
        long="check-order nocheck-order output-delimiter: total zero-terminated help version",
        operands="path",
    ),
    "join": ReaderEntry(
        why="puts files side by side",
        short="a:e:ij:o:t:v:z1:2:",
        long="check-order nocheck-order zero-terminated ignore-case header help version",
        operands="path",
    ),
    "paste": ReaderEntry(
        why="puts files side by side",
        short="d:sz",
        long="delimiters: serial zero-terminated help version",
        operands="path",
    ),
    "sdiff": ReaderEntry(
        why="compares side by side; -o would write",
        short="aBbdEHiI:lstvWw:Z",
        long="suppress-common-lines left-column ignore-case ignore-all-space width: text help version",
        refuse="output diff-program",
        operands="path",
    ),
    "test": ReaderEntry(also="[", why="answers a question about a file or a text", check="test", operands="text"),
    "which": ReaderEntry(
        why="says where a program is",
        short="as",
        long="all skip-alias skip-functions help version",
        operands="text",
        harmless_options=True,
    ),
    "whereis": ReaderEntry(why="says where a program and its manual are", short="bmsul", operands="text"),
    "whatis": ReaderEntry(
        also="apropos",
        why="searches the manuals' titles",
        short="adelrwvs:",
        long="exact wildcard regex long sections: help version and",
        operands="word",
    ),
    "man": ReaderEntry(
        why="shows a manual page, without a pager",
        short="aks:fw",
        long="all where path apropos whatis sections: help version",
        refuse="html pager preprocessor troff-device gxditview browser config-file",
        operands="text",
        abbreviate=False,
        check="man",
    ),
    "nm": ReaderEntry(
        why="shows the symbols of a binary",
        short="aABCDeghlnopPrsSuvVWf:t:",
        long="""
            demangle:: dynamic extern-only defined-only undefined-only line-numbers numeric-sort size-sort
            reverse-sort print-size radix: format: print-file-name no-demangle portability print-armap help version
        """,
        refuse="plugin target special-syms synthetic",
        operands="path",
    ),
    "readelf": ReaderEntry(
        why="shows the tables of a binary",
        short="aehlSgtsnrudVAcDIWHvx:p:R:",
        long="""
            all file-header program-headers headers section-headers sections segments section-details symbols syms
            dyn-syms notes relocs unwind dynamic version-info arch-specific archive-index histogram wide help version
            hex-dump: string-dump: demangle::
        """,
        refuse="debug-dump dwarf-depth ctf sframe process-links",
        operands="path",
    ),
    "size": ReaderEntry(
        why="adds up the sections of a binary",
        short="ABGdoxtVh",
        long="format: totals common radix: help version",
        operands="path",
    ),
    "otool": ReaderEntry(why="shows the tables of a binary", short="afhlLDtdorvVXxIm", operands="path"),
    "c++filt": ReaderEntry(
        why="shows the source names of symbols",
        short="_nptiVhs:",
        long="no-params no-verbose no-strip-underscore strip-underscore types format: help version",
        operands="text",
    ),
    "objdump": ReaderEntry(
        why="shows what is in a binary",
        short="aCdDfghj:lM:prRstTwxz",
        long="""
            archive-headers file-headers private-headers headers all-headers disassemble disassemble-all
            full-contents syms dynamic-syms reloc dynamic-reloc demangle:: section: line-numbers wide
            no-show-raw-insn help version info disassembler-options: start-address: stop-address: visualize-jumps::
        """,
        operands="path",
    ),
    "tar": ReaderEntry(
        why="lists what is in an archive",
        check="tar",
        operands="path",
        short="tzjJvaf@C@ZO",
        long="""
            list verbose gzip bzip2 xz zstd lzma auto-compress file@ exclude: wildcards full-time numeric-owner help
            version
        """,
        refuse="""
            to-command use-compress-program checkpoint-action rsh-command info-script new-volume-script rmt-command
        """,
        abbreviate=False,
    ),
    "unzip": ReaderEntry(
        why="lists or prints what is in an archive",
        check="unzip",
        operands="path text",
        short="lvZ1tqpchmsTzC",
    ),
    "zipinfo": ReaderEntry(why="lists what is in an archive", operands="path text", short="12smlvhtTzC"),
    "zcat": ReaderEntry(
        also="bzcat|xzcat|zstdcat|lzcat|gzcat",
        why="prints compressed files",
        short="fqvk",
        long="force quiet verbose help version",
        operands="path",
    ),
    "zgrep": ReaderEntry(
        also="zegrep|zfgrep|bzgrep|xzgrep",
        why="searches compressed files",
        check="plain-values",
        short="cinlLvwxEFhHoqA:B:C:e:m:",
        operands="pattern path",
    ),
    "gzip": ReaderEntry(
        also="gunzip|xz|bzip2",
        why="lists or prints; without -l, -t or -c it would write",
        short="cdlkqtv",
        long="stdout to-stdout decompress list keep quiet test verbose help version",
        operands="path",
        check="gzip",
    ),
    # ── Programs that search, sort and cut text.
    "echo": ReaderEntry(why="prints text", check="echo", operands="text"),
    "printf": ReaderEntry(why="prints text", check="printf", operands="text"),
    "grep": ReaderEntry(
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
    "rg": ReaderEntry(
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
    "ag": ReaderEntry(
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
    "fd": ReaderEntry(
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
    "find": ReaderEntry(
        why="finds files; only its tests and printing are known", check="find", operands="text", cwd=True
    ),
    "sort": ReaderEntry(
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
    "uniq": ReaderEntry(
        why="drops repeated lines; a second file would be written",
        short="cdDf:is:uw:z",
        long="""
            count repeated all-repeated:: skip-fields: group:: ignore-case skip-chars: unique zero-terminated
            check-chars: help version
        """,
        operands="path",
        most=1,
    ),
    "cut": ReaderEntry(
        why="cuts columns",
        short="b:c:d:f:nsz",
        long="""
            bytes: characters: delimiter: fields: complement only-delimited output-delimiter: zero-terminated help
            version
        """,
        operands="path",
        harmless_options=True,
    ),
    "tr": ReaderEntry(
        why="translates characters",
        short="cCdst",
        long="complement delete squeeze-repeats truncate-set1 help version",
        operands="text",
        interspersed=False,
    ),
    "fold": ReaderEntry(
        why="formats text", short="bsw:", long="bytes spaces width: help version", operands="path", numbers=True
    ),
    "fmt": ReaderEntry(
        why="formats text",
        short="cp:stuw:g:",
        long="crown-margin prefix: split-only tagged-paragraph uniform-spacing width: goal: help version",
        operands="path",
        numbers=True,
    ),
    "expand": ReaderEntry(
        why="formats text", short="it:", long="initial tabs: help version", operands="path", numbers=True
    ),
    "unexpand": ReaderEntry(why="formats text", short="at:", long="all first-only tabs: help version", operands="path"),
    "pr": ReaderEntry(
        why="formats text in pages",
        short="abcdD:e::fFh:i::Jl:mn::N:o:rs::S::tTvw:W:",
        long="""
            across show-control-chars double-space date-format: expand-tabs:: form-feed header: output-tabs::
            join-lines length: merge number-lines:: first-line-number: indent: no-file-warnings separator:: sep-string::
            omit-header omit-pagination show-nonprinting width: page-width: columns: help version
        """,
        operands="path",
        numbers=True,
    ),
    "rev": ReaderEntry(why="reverses lines", short="0hV", long="zero help version", operands="path"),
    "column": ReaderEntry(
        why="formats text in columns",
        short="tc:s:o:xen:N:R:H:O:W:T:E:JdLl:mi:r:p:",
        long="""
            table separator: output-separator: columns: table-columns: table-right: table-hide: table-order:
            table-wrap: table-noheadings output-width: fillrows json table-name: keep-empty-lines help version
        """,
        operands="path",
    ),
    "shuf": ReaderEntry(
        why="shuffles lines; -o would write",
        short="ei:n:rz",
        long="echo input-range: head-count: repeat zero-terminated help version",
        refuse="output random-source",
        operands="path",
    ),
    "seq": ReaderEntry(
        why="prints numbers",
        short="f:s:w",
        long="format: separator: equal-width help version",
        operands="text",
        numbers=True,
        check="seq",
    ),
    "factor": ReaderEntry(
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
    "expr": ReaderEntry(why="calculates", operands="text", check="anything"),
    "tsort": ReaderEntry(also="look", why="sorts or looks up words", short="df", operands="path"),
    "base64": ReaderEntry(
        also="base32|basenc",
        why="encodes or decodes to the screen",
        short="diw:D",
        long="decode ignore-garbage wrap: base64 base64url base32 base32hex base16 base2msbf z85 help version",
        operands="path",
    ),
    "sed": ReaderEntry(
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
    "awk": ReaderEntry(
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
    "jq": ReaderEntry(
        also="gojq|jaq",
        why="selects from JSON",
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
    "yq": ReaderEntry(
        why="selects from YAML; -i would write",
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
    "xmllint": ReaderEntry(
        why="checks or prints XML",
        long="noout format xpath: nonet version noblanks",
        refuse="output shell",
        operands="path",
        abbreviate=False,
        single=True,
    ),
    "cloc": ReaderEntry(
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
    "tokei": ReaderEntry(
        why="counts lines of code",
        short="fCe:s:t:o:",
        long="files compact exclude: sort: types: output: languages version help hidden no-ignore",
        refuse="input",
        operands="path",
        abbreviate=False,
        cwd=True,
    ),
    "scc": ReaderEntry(
        why="counts lines of code",
        short="wf:s:i:x:",
        long="by-file wide no-cocomo sort: format: include-ext: exclude-ext: exclude-dir: version help",
        refuse="output format-multi",
        operands="path",
        abbreviate=False,
        cwd=True,
    ),
    "diffstat": ReaderEntry(why="counts the changes in a patch", short="bcCklmtuvw:p:n:f:", operands="path"),
    "bc": ReaderEntry(why="calculates what it reads", short="lq", long="mathlib quiet version", operands="none"),
    "iconv": ReaderEntry(
        why="converts text to the screen",
        short="f:t:cls",
        long="from-code: to-code: list version",
        refuse="output",
        operands="path",
    ),
    "cal": ReaderEntry(also="ncal", why="prints a calendar", short="13jmyhwbMsY", operands="text"),
    "python -m json.tool": ReaderEntry(
        why="prints JSON, in order; a second file would be written",
        long="sort-keys no-ensure-ascii json-lines indent: tab no-indent compact help",
        operands="path",
        most=1,
        abbreviate=False,
    ),
    "tee": ReaderEntry(why="prints its input; a file would be written", check="tee", short="ai", operands="text"),
}
