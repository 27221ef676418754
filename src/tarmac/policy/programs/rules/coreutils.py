"""Programs that read, search, change and pack files and text."""

from tarmac.policy.programs.rules import EffectEntry, ProgramEntry
from tarmac.policy.programs.rules import common_effects as effect

# fmt: off
PROGRAMS = {
    "ls": ProgramEntry(
        why="lists names, sizes and dates", short="aAbBcCdDfFgGhHiI:klLmnNopqQrRsStT:uUvw:xXZ1",
        long="""
            all almost-all author escape block-size: ignore-backups classify:: color:: directory dired file-type format:
            full-time group-directories-first no-group human-readable si dereference-command-line
            dereference-command-line-symlink-to-dir hide: hyperlink:: indicator-style: inode ignore: kibibytes
            dereference numeric-uid-gid literal hide-control-chars show-control-chars quote-name quoting-style: reverse
            recursive size sort: time: time-style: tabsize: width: context zero help version
        """,
        operands="name", harmless_options=True, check="ls", cwd=True,
        traits="names-only metadata prints-names answers named-only core suggest-line",
    ),
    "dir": ProgramEntry(like="ls", traits="named-only suggest-line"),
    "eza": ProgramEntry(
        why="lists names, sizes and dates", short="1lahRTrDfFSsgimutUxdGoOZ@L:I:Hb",
        long="""
            oneline long all grid across recurse tree dereference classify:: color: colour: color-scale icons:: no-icons
            hyperlink sort: level: ignore-glob: git-ignore only-dirs only-files list-dirs group-directories-first
            reverse binary bytes group header inode links modified blocksize time: accessed created time-style:
            no-permissions no-filesize no-user no-time octal-permissions git git-repos extended context width:
            absolute:: smart-group total-size numeric help version
        """,
        operands="path", abbreviate=False, cwd=True, traits="answers",
    ),
    "exa": ProgramEntry(like="eza"),
    "cat": ProgramEntry(
        why="prints files", short="AbeEnstTuv",
        long="show-all number-nonblank show-ends number squeeze-blank show-tabs show-nonprinting help version",
        operands="path", harmless_options=True, traits="shows-content opens answers named-only core suggest-line",
    ),
    "tac": ProgramEntry(
        why="prints files from their end", short="brs:", long="before regex separator: help version", operands="path",
        harmless_options=True, traits="shows-content answers named-only temporary",
    ),
    "bat": ProgramEntry(
        why="prints files in colours", short="pnAl:H:r:",
        long="""
            plain number show-all language: highlight-line: line-range: style: color: decorations: theme: tabs: wrap:
            terminal-width: list-languages list-themes help version
        """,
        refuse="pager config-file diagnostic", operands="path", abbreviate=False,
        does=[effect.STARTS_BY_OPTION_OR_SOURCE.on(options="--pager")], answers_to="-V -h", traits="answers",
    ),
    "batcat": ProgramEntry(like="bat", does=[effect.STARTS_BY_OPTION_OR_SOURCE.on(options="--pager")]),
    "head": ProgramEntry(
        why="prints the beginning of files", short="c:n:qvz",
        long="bytes: lines: quiet silent verbose zero-terminated help version", operands="path", numbers=True,
        harmless_options=True, choosing="-[0-9]+|-n[0-9]*|-[qz]",
        traits="shows-content ends-soon opens filters answers named-only core suggest-line",
    ),
    "tail": ProgramEntry(
        why="prints the end of files", short="c:fFn:qrs:vz",
        long="""
            bytes: follow:: lines: max-unchanged-stats: pid: quiet silent retry sleep-interval: verbose zero-terminated
            help version
        """,
        operands="path", numbers=True, harmless_options=True, choosing="-[0-9]+|-n[0-9]*|-[qz]",
        traits="shows-content opens filters answers named-only core suggest-line",
    ),
    "wc": ProgramEntry(
        why="counts lines, words and bytes", short="clmLw",
        long="bytes chars lines words max-line-length total: help version", refuse="files0-from", operands="name",
        harmless_options=True, traits="counts metadata answers named-only core suggest-line",
    ),
    "nl": ProgramEntry(
        why="numbers lines", short="b:d:f:h:i:l:n:ps:v:w:",
        long="""
            body-numbering: section-delimiter: footer-numbering: header-numbering: line-increment: join-blank-lines:
            number-format: no-renumber number-separator: starting-line-number: number-width: help version
        """,
        operands="path", harmless_options=True, traits="answers named-only suggest-line",
    ),
    "od": ProgramEntry(
        why="shows bytes", short="A:j:N:S:t:vw::abcdfiloswx",
        long="""
            address-radix: skip-bytes: read-bytes: strings:: format: output-duplicates width:: endian: help version
            traditional
        """,
        operands="path", harmless_options=True, traits="shows-content answers named-only suggest-line",
    ),
    "hexdump": ProgramEntry(
        why="shows bytes", short="bcCde:n:os:vx",
        long="""
            one-byte-octal one-byte-char canonical two-bytes-decimal two-bytes-octal two-bytes-hex format: length: skip:
            no-squeezing color:: help version
        """,
        refuse="format-file", operands="path", does=[effect.MAY_WRITE_OR_START],
        traits="shows-content named-only suggest-line",
    ),
    "hd": ProgramEntry(like="hexdump"),
    "xxd": ProgramEntry(
        why="shows bytes; a second file would be written", operands="path", check="xxd",
        does=[effect.MAY_WRITE_OR_START], traits="decodes shows-content writes-by-form named-only suggest-line",
    ),
    "strings": ProgramEntry(
        why="shows the text in a binary", short="adfn:owt:e:",
        long="all data print-file-name bytes: radix: encoding: include-all-whitespace help version", operands="path",
        numbers=True, traits="shows-content response-files answers named-only suggest-line",
    ),
    "less": ProgramEntry(
        why="shows files; without a terminal it only prints, and its commands are off (LESSSECURE)",
        short="aAcCeEfFgGiIJKmMnNqQrRsSuUwWX",
        long="""
            LINE-NUMBERS line-numbers chop-long-lines RAW-CONTROL-CHARS raw-control-chars quit-if-one-screen no-init
            ignore-case version
        """,
        operands="path", abbreviate=False,
        never=r"^\+", or_else="a pager's + gives it a command", does=[effect.MAY_WRITE_OR_START], answers_to="-V",
        grant="line", traits="shows-content answers keyboard",
    ),
    "more": ProgramEntry(
        why="shows files; without a terminal it only prints", short="dflcpsu", operands="path",
        never=r"^\+", or_else="a pager's + gives it a command",
        does=[effect.MAY_WRITE_OR_START], grant="line", traits="shows-content keyboard",
    ),
    "file": ProgramEntry(
        why="says what kind of file it is", short="bcEF:hikLlNnP:prsSvz0e:",
        long="""
            brief checking-printout exclude: exclude-quiet: separator: mime mime-type mime-encoding apple extension
            keep-going no-dereference dereference no-buffer no-pad preserve-date print0 raw special-files uncompress
            list help version
        """,
        refuse="compile magic-file files-from", operands="path", does=[effect.MAY_WRITE_OR_START],
        needs="/etc/magic /etc/magic.mime", traits="names-only metadata answers named-only core suggest-line",
    ),
    "stat": ProgramEntry(
        why="shows size, dates and rights", short="c:fLtx",
        long="dereference file-system cached: format: printf: terse help version", operands="name",
        harmless_options=True, traits="names-only metadata answers named-only core suggest-line",
    ),
    "du": ProgramEntry(
        why="adds up sizes", short="0abB:cd:DhHklLmPsSt:xX@",
        long="""
            null all apparent-size block-size: bytes total dereference-args max-depth: human-readable inodes dereference
            no-dereference separate-dirs si summarize threshold: time:: time-style: exclude: exclude-from@
            one-file-system help version
        """,
        refuse="files0-from", operands="name", harmless_options=True, check="recursive", cwd=True,
        traits="names-only metadata answers named-only suggest-line",
    ),
    "df": ProgramEntry(
        why="shows free space", short="aB:hHiklmPt:Tvx:g",
        long="""
            all block-size: human-readable si inodes local no-sync output:: portability sync type: print-type
            exclude-type: total help version
        """,
        operands="text", harmless_options=True, needs="/proc", traits="names-only answers named-only suggest-line",
    ),
    "tree": ProgramEntry(
        why="draws the folders; -o would write", short="adfilxL:P:I:hpugsDFrtUvcACSnNJX",
        long="""
            gitignore gitfile: matchdirs metafirst prune ignore-case noreport charset: filelimit: si du timefmt: inodes
            device sort:: dirsfirst filesfirst fromfile nolinks help version info infofile:
        """,
        refuse="output", operands="name", abbreviate=False, check="recursive", cwd=True,
        does=[effect.MAY_WRITE_OR_START], writes_by="-o", traits="names-only text-values answers suggest-line",
    ),
    "lsd": ProgramEntry(
        why="lists names, sizes and dates", short="1lahRrtSd:n:F",
        long="""
            all almost-all long tree recursive depth: oneline human-readable size: date: group-dirs: icon: icon-theme:
            color: blocks: header reverse sort: total-size classic help version
        """,
        operands="name", abbreviate=False, check="recursive", cwd=True,
    ),
    "pdfinfo|pdfimages -list": ProgramEntry(
        why="shows facts about a document", short="f:l:", operands="path", most=1,
    ),
    "pdftotext": ProgramEntry(
        why="prints the text of a document; a second file would be written", short="f:l:", long="layout raw nopgbrk",
        operands="path text", most=2, least=2, single=True, check="to-stdout",
    ),
    "readlink|realpath": ProgramEntry(
        why="says where a path leads", short="efmnqsvzLPz",
        long="""
            canonicalize canonicalize-existing canonicalize-missing no-newline quiet silent verbose zero logical
            physical relative-to: relative-base: strip no-symlinks help version
        """,
        operands="name", harmless_options=True, traits="names-only metadata answers named-only suggest-line",
    ),
    "basename|dirname": ProgramEntry(
        why="splits a path, as text", short="as:z", long="multiple suffix: zero help version", operands="text",
        harmless_options=True, traits="quiet names-only no-files metadata answers named-only suggest-line",
    ),
    "md5sum": ProgramEntry(
        why="computes a checksum", short="a:bcl:qrstwz",
        long="""
            algorithm: binary check length: tag text zero ignore-missing quiet status strict warn help version untagged
            raw base64 debug
        """,
        operands="path", harmless_options=True, traits="shows-content metadata answers named-only suggest-line",
    ),
    "sha1sum": ProgramEntry(like="md5sum", traits="metadata named-only suggest-line"),
    "sha224sum|sha384sum|sha512sum|b2sum|cksum|sum": ProgramEntry(like="md5sum", traits="named-only"),
    "sha256sum": ProgramEntry(like="md5sum", traits="metadata answers named-only suggest-line"),
    "shasum|md5|b3sum": ProgramEntry(like="md5sum"),
    "cmp": ProgramEntry(
        why="compares bytes", short="bi:ln:s",
        long="print-bytes ignore-initial: verbose bytes: quiet silent help version", operands="path",
        harmless_options=True, traits="shows-content answers named-only suggest-line",
    ),
    "diff": ProgramEntry(
        why="compares files", short="abBcC:dD:eEF:hHiI:L:nNpPqrsS:tTuU:vwW:x:X@yZ",
        long="""
            normal brief report-identical-files context:: unified:: ed rcs side-by-side width: left-column
            suppress-common-lines show-c-function show-function-line: label: expand-tabs initial-tab tabsize:
            suppress-blank-empty recursive no-dereference new-file unidirectional-new-file ignore-file-name-case
            no-ignore-file-name-case exclude: exclude-from@ starting-file: from-file@ to-file@ ignore-case
            ignore-tab-expansion ignore-trailing-space ignore-space-change ignore-all-space ignore-blank-lines
            ignore-matching-lines: text strip-trailing-cr ifdef: line-format: old-group-format: new-group-format:
            old-line-format: new-line-format: unchanged-line-format: horizon-lines: speed-large-files minimal color::
            palette: help version
        """,
        refuse="paginate", operands="path", numbers=True,
        traits="no-dereference answers named-only looked-into suggest-line",
    ),
    "colordiff": ProgramEntry(like="diff", traits="no-dereference"),
    "diff3": ProgramEntry(
        why="compares three files", short="aAeEimTxX3L:", long="text show-all ed easy-only merge label: help version",
        refuse="diff-program", operands="path",
        does=[effect.STARTS_BY_OPTION_OR_SOURCE.on(options="--diff-program"), effect.MAY_WRITE_OR_START],
    ),
    "comm": ProgramEntry(
        why="compares sorted files", short="123z",
        long="check-order nocheck-order output-delimiter: total zero-terminated help version", operands="path",
        traits="answers named-only suggest-line",
    ),
    "join": ProgramEntry(
        why="puts files side by side", short="a:e:ij:o:t:v:z1:2:",
        long="check-order nocheck-order zero-terminated ignore-case header help version", operands="path",
        traits="answers named-only suggest-line",
    ),
    "paste": ProgramEntry(
        why="puts files side by side", short="d:sz", long="delimiters: serial zero-terminated help version",
        operands="path", traits="text-values answers named-only suggest-line",
    ),
    "sdiff": ProgramEntry(
        why="compares side by side; -o would write", short="aBbdEHiI:lstvWw:Z",
        long="suppress-common-lines left-column ignore-case ignore-all-space width: text help version",
        refuse="output diff-program", operands="path",
        does=[effect.STARTS_BY_OPTION_OR_SOURCE.on(options="--diff-program"), effect.MAY_WRITE_OR_START],
        writes_by="-o --output",
    ),
    "test": ProgramEntry(
        why="answers a question about a file or a text", operands="text", check="test", special="evaluate_index",
        traits="quiet names-only textual takes-status partial named-only core suggest-line",
    ),
    "[": ProgramEntry(
        like="test", special="evaluate_index",
        traits="quiet names-only textual takes-status closing-bracket partial named-only core suggest-line",
    ),
    "which": ProgramEntry(
        why="says where a program is", short="as", long="all skip-alias skip-functions help version", operands="text",
        harmless_options=True, traits="textual named-only suggest-line",
    ),
    "whereis": ProgramEntry(
        why="says where a program and its manual are", short="bmsul", operands="text", traits="suggest-line",
    ),
    "whatis": ProgramEntry(
        why="searches the manuals' titles", short="adelrwvs:",
        long="exact wildcard regex long sections: help version and", operands="word",
        needs="/etc/manpath.config /etc/man_db.conf /var/cache/man",
    ),
    "apropos": ProgramEntry(
        like="whatis", needs="/etc/manpath.config /etc/man_db.conf /var/cache/man", traits="temporary",
    ),
    "man": ProgramEntry(
        why="shows a manual page, without a pager", short="aks:fw",
        long="all where path apropos whatis sections: help version",
        refuse="html pager preprocessor troff-device gxditview browser config-file", operands="text", abbreviate=False,
        each=r"(?!.*\.\.)([A-Za-z0-9_.+:-]+|\[)", or_else="man of a file may run what is in it",
        does=[
            effect.STARTS_BY_OPTION_OR_SOURCE.on(
                options="--pager --html --preprocessor --browser --gxditview --troff-device --config-file",
            ),
            effect.STARTS_BY_OPTION.on(options="-P -H -p -X -C"), effect.MAY_WRITE_OR_START,
        ],
        answers_to="-V", needs="/etc/manpath.config /etc/man_db.conf /var/cache/man", grant="line",
        traits="text-values answers temporary keyboard",
    ),
    "nm": ProgramEntry(
        why="shows the symbols of a binary", short="aABCDeghlnopPrsSuvVWf:t:",
        long="""
            demangle:: dynamic extern-only defined-only undefined-only line-numbers numeric-sort size-sort reverse-sort
            print-size radix: format: print-file-name no-demangle portability print-armap help version
        """,
        refuse="plugin target special-syms synthetic", operands="path", traits="response-files answers named-only",
    ),
    "readelf": ProgramEntry(
        why="shows the tables of a binary", short="aehlSgtsnrudVAcDIWHvx:p:R:",
        long="""
            all file-header program-headers headers section-headers sections segments section-details symbols syms
            dyn-syms notes relocs unwind dynamic version-info arch-specific archive-index histogram wide help version
            hex-dump: string-dump: demangle::
        """,
        refuse="debug-dump dwarf-depth ctf sframe process-links", operands="path",
        traits="response-files answers named-only",
    ),
    "size": ProgramEntry(
        why="adds up the sections of a binary", short="ABGdoxtVh", long="format: totals common radix: help version",
        operands="path", traits="response-files named-only",
    ),
    "objdump": ProgramEntry(
        why="shows what is in a binary", short="aCdDfghj:lM:prRstTwxz",
        long="""
            archive-headers file-headers private-headers headers all-headers disassemble disassemble-all full-contents
            syms dynamic-syms reloc dynamic-reloc demangle:: section: line-numbers wide no-show-raw-insn help version
            info disassembler-options: start-address: stop-address: visualize-jumps::
        """,
        operands="path", traits="response-files answers named-only",
    ),
    "tar": ProgramEntry(
        why="lists what is in an archive", short="tzjJvaf@C@ZO",
        long="""
            list verbose gzip bzip2 xz zstd lzma auto-compress file@ exclude: wildcards full-time numeric-owner help
            version
        """,
        refuse="""
            to-command use-compress-program checkpoint-action rsh-command info-script new-volume-script rmt-command
        """,
        operands="path", abbreviate=False, check="tar",
        does=[
            effect.STARTS_BY_OPTION_OR_SOURCE.on(
                options="""
                    --use-compress-program --to-command --checkpoint-action --rsh-command --info-script
                    --new-volume-script --rmt-command
                """,
            ),
            effect.STARTS_BY_OPTION.on(options="-I -F"), effect.PACKS,
        ],
        unpacks_into="-C --directory", special="unpack", grant="line", traits="writes-by-form partial answers",
    ),
    "unzip": ProgramEntry(
        why="lists or prints what is in an archive", short="lvZ1tqpchmsTzC", operands="path text",
        one_of="l v Z t p c", or_else="it would write files",
        does=[effect.PACKS], unpacks_into="-d", special="unpack", answers_to="-v",
        traits="writes-by-form partial answers suggest-line",
    ),
    "zcat": ProgramEntry(
        why="prints compressed files", short="fqvk", long="force quiet verbose help version", operands="path",
        traits="decodes named-only",
    ),
    "bzcat|xzcat": ProgramEntry(like="zcat", traits="named-only"),
    "zstdcat|lzcat|gzcat": ProgramEntry(like="zcat"),
    "zgrep": ProgramEntry(
        why="searches compressed files", short="cinlLvwxEFhHoqA:B:C:e:m:", operands="pattern path",
        check="plain-values", traits="text-values",
    ),
    "zegrep|zfgrep|bzgrep|xzgrep": ProgramEntry(like="zgrep"),
    "gzip": ProgramEntry(
        why="lists or prints; without -l, -t or -c it would write", short="cdlkqtv",
        long="stdout to-stdout decompress list keep quiet test verbose help version", operands="path", check="gzip",
        does=[effect.PACKS], answers_to="-V", traits="decodes shows-content writes-by-form answers named-only",
    ),
    "gunzip": ProgramEntry(
        like="gzip", does=[effect.PACKS], traits="decodes writes-by-form answers named-only suggest-line",
    ),
    "xz": ProgramEntry(like="gzip", does=[effect.PACKS], answers_to="-V", traits="decodes writes-by-form answers"),
    "bzip2": ProgramEntry(like="gzip", does=[effect.PACKS], traits="decodes writes-by-form answers"),
    "echo": ProgramEntry(
        why="prints text", operands="text", check="echo",
        traits="prints-words quiet no-files takes-status prints-dashes metadata named-only core suggest-line",
    ),
    "printf": ProgramEntry(
        why="prints text", operands="text", check="printf", special="evaluate_index",
        traits="""
            prints-words quiet no-files text-values takes-status partial named-only core suggest-line sets-variable
        """,
    ),
    "grep": ProgramEntry(
        why="searches text", short="A:abB:cC:d:D:e:EFf@GhHiIlLm:nNoPqrRsTuUvwxyzZ",
        long="""
            extended-regexp fixed-strings basic-regexp perl-regexp regexp: file@ ignore-case no-ignore-case word-regexp
            line-regexp null-data no-messages invert-match max-count: byte-offset line-number line-buffered
            with-filename no-filename label: only-matching quiet silent binary-files: text directories: devices:
            recursive dereference-recursive include: exclude: exclude-from@ exclude-dir: files-without-match
            files-with-matches count initial-tab null before-context: after-context: context: color:: colour:: binary
            help version group-separator: no-group-separator
        """,
        operands="pattern path", numbers=True, harmless_options=True, cwd=True, choosing="-[EFGPviwxz]+|-e",
        listing="-l -rl -lr -ril -rli --files --files-with-matches -L",
        whole="--null", names_by="l files-with-matches",
        naming="r R recursive i w x E F G P e s I include exclude exclude-dir ignore-case regexp word-regexp null Z",
        traits="""
            shows-content textual text-values recursive-links searches answers named-only looked-into core suggest-line
        """,
    ),
    "egrep|fgrep": ProgramEntry(
        like="grep", choosing="-[EFGPviwxz]+|-e",
        traits="textual text-values recursive-links searches named-only looked-into suggest-line",
    ),
    "rg": ProgramEntry(
        why="searches text; --pre and --hostname-bin would run a program",
        short="A:aB:bcC:e:E:f@FhHiIj:lm:M:nNoPpqr:Ss.t:T:uUvVwxg:d:0",
        long="""
            after-context: before-context: context: auto-hybrid-regex no-auto-hybrid-regex binary no-binary
            block-buffered byte-offset case-sensitive color: colors: column no-column context-separator: count
            count-matches crlf debug dfa-size-limit: encoding: engine: field-context-separator: field-match-separator:
            file@ files files-with-matches files-without-match fixed-strings no-follow generate: glob:
            glob-case-insensitive heading no-heading help hidden no-hidden iglob: ignore-case ignore-file@
            ignore-file-case-insensitive include-zero invert-match json line-buffered line-number no-line-number
            line-regexp max-columns: max-columns-preview max-count: max-depth: maxdepth: max-filesize: mmap no-mmap
            multiline multiline-dotall no-config no-ignore no-ignore-dot no-ignore-exclude no-ignore-files
            no-ignore-global no-ignore-messages no-ignore-parent no-ignore-vcs no-messages no-require-git no-unicode
            null null-data one-file-system only-matching path-separator: passthru pcre2 pcre2-version pretty quiet
            regex-size-limit: regexp: replace: smart-case sort: sortr: stats stop-on-nonmatch text threads: trace trim
            type: type-add: type-clear: type-list type-not: unrestricted version vimgrep with-filename no-filename
            word-regexp
        """,
        refuse="pre hostname-bin search-zip pre-glob follow", operands="pattern path", abbreviate=False, cwd=True,
        does=[effect.STARTS_BY_OPTION_OR_SOURCE.on(options="--pre --hostname-bin"), effect.MAY_WRITE_OR_START],
        listing="-l -rl -lr -ril -rli --files --files-with-matches -L",
        whole="--null", names_by="l files files-with-matches",
        naming="""
            i S s w x F U u g t T e regexp glob iglob type type-not ignore-case smart-case word-regexp hidden sort
            no-ignore null 0
        """,
        answers_to="-V", grant="line",
        traits="textual text-values searches answers core",
    ),
    "ag": ProgramEntry(
        why="searches text; --pager would run a program", short="A:aB:cC:DFg:G:HhilLm:no0pQrRsSuUvwWz",
        long="""
            ackmate all-text all-types after:: before:: context:: color nocolor color-line-number: column count depth:
            filename nofilename file-search-regex: files-with-matches files-without-matches fixed-strings group nogroup
            hidden ignore: ignore-case ignore-dir: invert-match line-numbers list-file-types literal match-case
            max-count: nobreak null numbers nonumbers only-matching print-long-lines path-to-ignore@ recurse norecurse
            skip-vcs-ignores smart-case stats unrestricted vimgrep width: word-regexp help version silent
        """,
        refuse="pager search-zip follow", operands="pattern path", abbreviate=False, cwd=True,
        does=[effect.STARTS_BY_OPTION_OR_SOURCE.on(options="--pager")], answers_to="-V",
        traits="textual text-values answers",
    ),
    "fd": ProgramEntry(
        why="finds files; -x and -X would run a program", short="HIusigFapLt:e:E:d:c:0lS:j:1qhVo:",
        long="""
            hidden no-hidden no-ignore ignore no-ignore-vcs no-ignore-parent no-global-ignore-file unrestricted
            case-sensitive ignore-case glob regex fixed-strings and: absolute-path relative-path full-path follow
            max-depth: maxdepth: min-depth: exact-depth: type: extension: exclude: prune size: changed-within:
            changed-before: change-newer-than: newer: change-older-than: older: owner: list-details print0 color:
            max-results: quiet show-errors one-file-system path-separator: format: strip-cwd-prefix:: hyperlink:: help
            version threads: base-directory@ search-path@ ignore-file@
        """,
        refuse="exec exec-batch batch-size", operands="text path", abbreviate=False, cwd=True,
        does=[
            effect.STARTS_BY_OPTION_OR_SOURCE.on(options="--exec --exec-batch"), effect.RUNS_ON_FOUND,
            effect.MAY_WRITE_OR_START,
        ],
        answers_to="-V -h", grant="line", traits="text-values prints-names answers",
    ),
    "fdfind": ProgramEntry(
        like="fd", does=[effect.STARTS_BY_OPTION_OR_SOURCE.on(options="--exec --exec-batch"), effect.RUNS_ON_FOUND],
        grant="line", traits="text-values prints-names",
    ),
    "find": ProgramEntry(
        why="finds files; only its tests and printing are known", operands="text", check="find", cwd=True,
        does=[effect.MAY_WRITE_OR_START], special="find", grant="line",
        traits="names-only textual places-judged text-values no-exec finds prints-names answers",
    ),
    "sort": ProgramEntry(
        why="sorts lines; -o would write, --compress-program run a program", short="bdfgiMhnRrVcCk:mst:uz",
        long="""
            ignore-leading-blanks dictionary-order ignore-case general-numeric-sort ignore-nonprinting month-sort
            human-numeric-sort numeric-sort random-sort reverse sort: version-sort batch-size: check:: debug key: merge
            stable field-separator: unique zero-terminated parallel: help version
        """,
        refuse="output compress-program temporary-directory files0-from random-source buffer-size", operands="path",
        does=[effect.STARTS_BY_OPTION_OR_SOURCE.on(options="--compress-program"), effect.MAY_WRITE_OR_START],
        writes_by="-o --output", choosing="-[bdfgiMhnRrVsuz]+", grant="line",
        traits="text-values filters answers named-only temporary",
    ),
    "uniq": ProgramEntry(
        why="drops repeated lines; a second file would be written", short="cdDf:is:uw:z",
        long="""
            count repeated all-repeated:: skip-fields: group:: ignore-case skip-chars: unique zero-terminated
            check-chars: help version
        """,
        operands="path", most=1, does=[effect.MAY_WRITE_OR_START], special="write_second",
        traits="writes-by-form filters partial answers named-only suggest-line",
    ),
    "cut": ProgramEntry(
        why="cuts columns", short="b:c:d:f:nsz",
        long="""
            bytes: characters: delimiter: fields: complement only-delimited output-delimiter: zero-terminated help
            version
        """,
        operands="path", harmless_options=True, traits="quiet text-values answers named-only suggest-line",
    ),
    "tr": ProgramEntry(
        why="translates characters", short="cCdst", long="complement delete squeeze-repeats truncate-set1 help version",
        operands="text", interspersed=False, traits="decodes quiet answers named-only suggest-line",
    ),
    "fold": ProgramEntry(
        why="formats text", short="bsw:", long="bytes spaces width: help version", operands="path", numbers=True,
        traits="answers named-only",
    ),
    "fmt": ProgramEntry(
        why="formats text", short="cp:stuw:g:",
        long="crown-margin prefix: split-only tagged-paragraph uniform-spacing width: goal: help version",
        operands="path", numbers=True, traits="answers named-only",
    ),
    "expand": ProgramEntry(
        why="formats text", short="it:", long="initial tabs: help version", operands="path", numbers=True,
        traits="named-only",
    ),
    "pr": ProgramEntry(
        why="formats text in pages", short="abcdD:e::fFh:i::Jl:mn::N:o:rs::S::tTvw:W:",
        long="""
            across show-control-chars double-space date-format: expand-tabs:: form-feed header: output-tabs:: join-lines
            length: merge number-lines:: first-line-number: indent: no-file-warnings separator:: sep-string::
            omit-header omit-pagination show-nonprinting width: page-width: columns: help version
        """,
        operands="path", numbers=True,
    ),
    "rev": ProgramEntry(
        why="reverses lines", short="0hV", long="zero help version", operands="path", traits="decodes named-only",
    ),
    "column": ProgramEntry(
        why="formats text in columns", short="tc:s:o:xen:N:R:H:O:W:T:E:JdLl:mi:r:p:",
        long="""
            table separator: output-separator: columns: table-columns: table-right: table-hide: table-order: table-wrap:
            table-noheadings output-width: fillrows json table-name: keep-empty-lines help version
        """,
        operands="path", does=[effect.MAY_WRITE_OR_START], traits="named-only suggest-line",
    ),
    "shuf": ProgramEntry(
        why="shuffles lines; -o would write", short="ei:n:rz",
        long="echo input-range: head-count: repeat zero-terminated help version", refuse="output random-source",
        operands="path", does=[effect.MAY_WRITE_OR_START], writes_by="-o --output", traits="answers temporary",
    ),
    "seq": ProgramEntry(
        why="prints numbers", short="f:s:w", long="format: separator: equal-width help version", operands="text",
        numbers=True, each="-?[0-9.]{1,7}", or_else="it may print without end", traits="quiet answers named-only",
    ),
    "factor": ProgramEntry(
        why="calculates", short="f:s:wd:hz",
        long="""
            format: separator: equal-width from: to: padding: suffix: delimiter: field: grouping header:: invalid:
            round: help version
        """,
        operands="text", harmless_options=True, traits="named-only",
    ),
    "numfmt": ProgramEntry(like="factor", traits="answers named-only"),
    "expr": ProgramEntry(why="calculates", operands="text", check="anything", traits="quiet named-only"),
    "look": ProgramEntry(
        why="looks up words", short="df", operands="path", does=[effect.MAY_WRITE_OR_START], traits="named-only",
    ),
    "base64": ProgramEntry(
        why="encodes or decodes to the screen", short="diw:D",
        long="decode ignore-garbage wrap: base64 base64url base32 base32hex base16 base2msbf z85 help version",
        operands="path", does=[effect.MAY_WRITE_OR_START],
        traits="decodes shows-content answers named-only suggest-line",
    ),
    "sed": ProgramEntry(
        why="prints lines; scripts that write, run or read other files are not known to be harmless",
        short="nEre:sl:uz",
        long="""
            quiet silent expression: regexp-extended posix separate unbuffered null-data line-length: debug sandbox help
            version
        """,
        refuse="in-place file follow-symlinks", operands="script path", check="sed", adds="--sandbox",
        does=[effect.MAY_WRITE_OR_START], writes_by="-i --in-place", special="edit_stream", grant="line",
        traits="textual text-values adds-not-on-mac partial answers named-only",
    ),
    "awk": ProgramEntry(
        why="prints fields; programs that write, run or read other files are not known to be harmless", short="F:v:",
        long="field-separator: assign: help version",
        refuse="file include load exec debug dump-variables profile pretty-print source lint", operands="script path",
        abbreviate=False, interspersed=False, check="awk", does=[effect.MAY_WRITE_OR_START], special="run_awk",
        grant="line", traits="textual text-values partial answers named-only typed-code",
    ),
    "gawk": ProgramEntry(
        like="awk", does=[effect.MAY_WRITE_OR_START], special="run_awk", answers_to="-V", grant="line",
        traits="textual text-values partial answers named-only",
    ),
    "mawk": ProgramEntry(like="awk", special="run_awk", grant="line", traits="text-values partial named-only"),
    "nawk": ProgramEntry(like="awk", special="run_awk", grant="line", traits="partial"),
    "jq": ProgramEntry(
        why="selects from JSON", short="cCMnrRsSaejL@hV",
        long="""
            compact-output color-output monochrome-output null-input raw-output raw-output0 raw-input slurp sort-keys
            ascii-output exit-status join-output tab indent: stream stream-errors seq unbuffered arg+ argjson+ args
            jsonargs help version
        """,
        refuse="from-file rawfile slurpfile", operands="script path", abbreviate=False, check="jq",
        does=[effect.MAY_READ_OR_START], answers_to="-V -h", traits="textual filter answers named-only suggest-line",
    ),
    "yq": ProgramEntry(
        why="selects from YAML; -i would write", short="PMCejnrN0o:p:I:h",
        long="""
            prettyPrint no-colors colors exit-status tojson null-input unwrapScalar:: no-doc output-format:
            input-format: indent: help version raw-output
        """,
        refuse="inplace split-exp from-file front-matter", operands="script path", abbreviate=False, check="yq",
        does=[effect.MAY_WRITE_OR_START], writes_by="-i --inplace", answers_to="-V -h",
        traits="filter answers suggest-line",
    ),
    "xmllint": ProgramEntry(
        why="checks or prints XML", long="noout format xpath: nonet version noblanks", refuse="output shell",
        operands="path", single=True, abbreviate=False, does=[effect.MAY_WRITE_OR_START], writes_by="-o --output",
    ),
    "cloc": ProgramEntry(
        why="counts lines of code",
        long="by-file exclude-dir: include-lang: exclude-lang: json quiet vcs: md csv version help",
        refuse="config report-file out script-lang", operands="path", abbreviate=False, check="cloc", cwd=True,
        needs="/etc/perl", traits="answers",
    ),
    "tokei": ProgramEntry(
        why="counts lines of code", short="fCe:s:t:o:",
        long="files compact exclude: sort: types: output: languages version help hidden no-ignore", refuse="input",
        operands="path", abbreviate=False, cwd=True, answers_to="-V -h", traits="answers",
    ),
    "scc": ProgramEntry(
        why="counts lines of code", short="wf:s:i:x:",
        long="by-file wide no-cocomo sort: format: include-ext: exclude-ext: exclude-dir: version help",
        refuse="output format-multi", operands="path", abbreviate=False, cwd=True,
    ),
    "bc": ProgramEntry(
        why="calculates what it reads", short="lq", long="mathlib quiet version", operands="none",
        does=[effect.MAY_WRITE_OR_START], grant="line", traits="typed-code",
    ),
    "iconv": ProgramEntry(
        why="converts text to the screen", short="f:t:cls", long="from-code: to-code: list version", refuse="output",
        operands="path", does=[effect.MAY_WRITE_OR_START], writes_by="-o --output",
    ),
    "cal": ProgramEntry(why="prints a calendar", short="13jmyhwbMsY", operands="text", traits="named-only"),
    "tee": ProgramEntry(
        why="prints its input; a file would be written", short="ai", operands="text",
        each="/dev/(null|stderr|stdout)", or_else="it writes files",
        does=[effect.MAY_WRITE_OR_START], touches="changes", special="write_operands",
        traits="last-written writes-all answers named-only suggest-line",
    ),
    "python -m json.tool": ProgramEntry(
        why="prints JSON, in order; a second file would be written",
        long="sort-keys no-ensure-ascii json-lines indent: tab no-indent compact help", operands="path", most=1,
        abbreviate=False,
    ),
    "python": ProgramEntry(
        does=[
            effect.RUNS_PROGRAM, effect.RUNS_CODE, effect.SERVES.on("-m http.server|-m SimpleHTTPServer"),
            effect.SERVES_OUTSIDE.on("-m http.server|-m SimpleHTTPServer"),
        ],
        answers_to="-V -VV -h", needs="/etc/python3 /etc/python3.11 /etc/python3.12", needs_in_home=".local/lib",
        grant="script", turning="-c", typed_code="-c", traits="interprets versioned answers modules",
    ),
    "python -m|python3 -m": ProgramEntry(prove="python_module"),
    "shred": ProgramEntry(
        does=[EffectEntry("high", "deletes", "overwrites files so that nobody can bring them back: {what}")],
        touches="changes", special="write_operands", traits="writes-all moves-away answers suggest-line",
    ),
    "ack": ProgramEntry(does=[effect.STARTS_BY_OPTION_OR_SOURCE.on(options="--pager")], needs="/etc/perl"),
    "bsdtar": ProgramEntry(
        does=[
            effect.STARTS_BY_OPTION_OR_SOURCE.on(
                options="""
                    --use-compress-program --to-command --checkpoint-action --rsh-command --info-script
                    --new-volume-script --rmt-command
                """,
            ),
            effect.STARTS_BY_OPTION.on(options="-I -F"), effect.PACKS,
        ],
        unpacks_into="-C --directory", special="unpack", grant="line", traits="partial",
    ),
    "zip": ProgramEntry(
        does=[effect.STARTS_BY_OPTION_OR_SOURCE.on(options="--unzip-command"), effect.PACKS], answers_to="-v",
        grant="line", traits="answers",
    ),
    "split": ProgramEntry(
        does=[effect.STARTS_BY_OPTION_OR_SOURCE.on(options="--filter"), effect.MAY_WRITE_OR_START], grant="line",
        traits="answers",
    ),
    "fzf": ProgramEntry(
        does=[effect.STARTS_BY_OPTION_OR_SOURCE.on(options="--preview --bind"), effect.MAY_WRITE_OR_START],
        traits="prints-setup answers keyboard",
    ),
    "cpio": ProgramEntry(
        does=[effect.STARTS_BY_OPTION_OR_SOURCE.on(options="--rsh-command"), effect.PACKS], grant="line",
    ),
    "delta": ProgramEntry(does=[effect.STARTS_BY_OPTION_OR_SOURCE.on(options="--pager")]),
    "svn": ProgramEntry(
        does=[effect.STARTS_BY_OPTION_OR_SOURCE.on(options="--config --config-option")], grant="command",
        traits="answers",
    ),
    "hg": ProgramEntry(
        does=[effect.STARTS_BY_OPTION_OR_SOURCE.on(options="--config --config-option")], answers_unless=".hg",
        grant="command", traits="answers",
    ),
    "bunzip2|unxz|unzstd|rar|unrar|compress|uncompress|pigz|lz4|brotli|zipnote|zipsplit": ProgramEntry(
        does=[effect.PACKS],
    ),
    "zstd -l|zstd --list": ProgramEntry(why="shows facts about compressed files", short="v", operands="path"),
    "zstd": ProgramEntry(does=[effect.PACKS], answers_to="-V", traits="answers"),
    "7z l|7za l": ProgramEntry(why="lists an archive", operands="path", most=1),
    "7z|ar": ProgramEntry(does=[effect.PACKS], traits="response-files answers"),
    "7za": ProgramEntry(does=[effect.PACKS], traits="response-files"),
    "ar t|ar tv": ProgramEntry(why="lists an archive", operands="path text"),
    "csplit|convert|pandoc|pdflatex|latex|age|mktemp": ProgramEntry(does=[effect.MAY_WRITE_OR_START], traits="answers"),
    "patch": ProgramEntry(does=[effect.MAY_WRITE_OR_START], traits="answers suggest-line"),
    "ed|dc": ProgramEntry(does=[effect.MAY_WRITE_OR_START], grant="line", traits="typed-code"),
    "ex|vi": ProgramEntry(does=[effect.MAY_WRITE_OR_START], grant="line", traits="keyboard"),
    "vim|nvim|emacs": ProgramEntry(does=[effect.MAY_WRITE_OR_START], grant="line", traits="answers keyboard"),
    "nano": ProgramEntry(does=[effect.MAY_WRITE_OR_START], answers_to="-V", grant="line", traits="answers keyboard"),
    "pico|micro|hx|lazygit|tig": ProgramEntry(does=[effect.MAY_WRITE_OR_START], traits="keyboard"),
    """
        helix|subl|cursor|rename|dos2unix|unix2dos|magick|mogrify|xelatex|inkscape|gimp|soffice|libreoffice|dot|
        wkhtmltopdf|age-keygen|xclip|xsel|pbcopy|pbpaste|wl-copy|asciinema|dialog|whiptail|stow|chezmoi|link|updatedb|
        mandb|gsettings|dconf|logger|systemd-cat|reset|clear|btop|iotop|yes|jo|envsubst|gettext|msgfmt|xgettext|cpp|
        info|tldr|units|ptx|locate|ldapsearch
    """: ProgramEntry(does=[effect.MAY_WRITE_OR_START]),
    "mkfifo": ProgramEntry(does=[effect.MAY_WRITE_OR_START], special="write_operands", traits="writes-all answers"),
    "mknod|sponge": ProgramEntry(does=[effect.MAY_WRITE_OR_START], special="write_operands", traits="writes-all"),
    "install": ProgramEntry(
        does=[effect.MAY_WRITE_OR_START], special="write_operands", traits="copies answers suggest-line",
    ),
    "ffmpeg": ProgramEntry(does=[effect.MAY_WRITE_OR_START], answers_to="-version", traits="answers"),
    "ssh-keygen": ProgramEntry(does=[effect.MAY_WRITE_OR_START], traits="textual"),
    "zellij": ProgramEntry(does=[effect.MAY_WRITE_OR_START], grant="line", traits="relay"),
    "ln": ProgramEntry(
        does=[effect.MAY_WRITE_OR_START], touches="moves or links", special="write_operands",
        traits="copies second-name links answers suggest-line",
    ),
    "htop": ProgramEntry(does=[effect.MAY_WRITE_OR_START], needs="/proc", traits="keyboard"),
    "m4": ProgramEntry(does=[effect.MAY_WRITE_OR_START], grant="line"),
    "ldd": ProgramEntry(does=[effect.MAY_WRITE_OR_START], traits="named-only"),
    "pmap": ProgramEntry(does=[effect.MAY_WRITE_OR_START], needs="/proc"),
    "getfacl": ProgramEntry(does=[effect.MAY_WRITE_OR_START, effect.SHOWS_MACHINE]),
    "history": ProgramEntry(
        does=[
            effect.MAY_WRITE_OR_START, effect.ONLY_WORKS_ON_SHELL,
            EffectEntry("low", "reads", "shows the shell's history", instead=True), effect.CHANGES_HISTORY,
        ],
    ),
    "fc": ProgramEntry(does=[effect.MAY_WRITE_OR_START, effect.CHANGES_HISTORY]),
    "jobs": ProgramEntry(does=[effect.MAY_WRITE_OR_START, effect.ONLY_WORKS_ON_SHELL], traits="suggest-line"),
    "hash": ProgramEntry(does=[effect.MAY_WRITE_OR_START, effect.CHANGES_SHELL]),
    "mkdir": ProgramEntry(
        does=[effect.CHANGES_FILES], verb="creates the folder", special="write_operands",
        traits="names-only writes-all answers suggest-line",
    ),
    "touch": ProgramEntry(
        does=[effect.CHANGES_FILES], touches="changes", verb="creates or updates", special="write_operands",
        traits="last-written names-only textual writes-all answers suggest-line",
    ),
    "cp": ProgramEntry(
        does=[effect.CHANGES_FILES], special="write_operands",
        traits="last-written shows-content copies answers suggest-line",
    ),
    "mv": ProgramEntry(
        does=[effect.CHANGES_FILES], touches="moves or links", special="write_operands",
        traits="last-written copies moves-away second-name answers suggest-line",
    ),
    "rmdir": ProgramEntry(
        does=[effect.CHANGES_FILES], touches="deletes", verb="deletes the folder", special="write_operands",
        traits="writes-all answers suggest-line",
    ),
    "unlink": ProgramEntry(
        does=[effect.CHANGES_FILES], touches="deletes", verb="deletes", special="write_operands", traits="writes-all",
    ),
    "truncate": ProgramEntry(
        does=[effect.CHANGES_FILES], touches="changes", special="write_operands",
        traits="writes-all size-operand answers suggest-line",
    ),
    "gio": ProgramEntry(does=[effect.DELETES.on("trash")]),
    "trash|trash-put|trash-empty|rmtrash|rimraf|del-cli|srm|wipe|scrub|bleachbit": ProgramEntry(does=[effect.DELETES]),
    "rm": ProgramEntry(
        touches="deletes", special="remove", traits="dangerous-inside textual places-judged answers suggest-line",
    ),
    "dd": ProgramEntry(
        special="copy_bytes", traits="dangerous-inside shows-content places-judged answers suggest-line",
    ),
    "addr2line": ProgramEntry(traits="response-files"),
    "grm": ProgramEntry(special="remove"),
    "gdd": ProgramEntry(special="copy_bytes"),
}
