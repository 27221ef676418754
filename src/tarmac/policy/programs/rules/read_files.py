"""Programs that look at files. How to read an entry: grammar.py, docs/policy.md."""

from tarmac.policy.programs.rules.shapes import Reader

READERS = {
    "ls": Reader(
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
    "eza": Reader(
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
    "cat": Reader(
        why="prints files",
        short="AbeEnstTuv",
        long="show-all number-nonblank show-ends number squeeze-blank show-tabs show-nonprinting help version",
        operands="path",
        harmless_options=True,
    ),
    "tac": Reader(
        why="prints files from their end",
        short="brs:",
        long="before regex separator: help version",
        operands="path",
        harmless_options=True,
    ),
    "bat": Reader(
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
    "head": Reader(
        why="prints the beginning of files",
        short="c:n:qvz",
        long="bytes: lines: quiet silent verbose zero-terminated help version",
        operands="path",
        numbers=True,
        harmless_options=True,
    ),
    "tail": Reader(
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
    "wc": Reader(
        why="counts lines, words and bytes",
        short="clmLw",
        long="bytes chars lines words max-line-length total: help version",
        refuse="files0-from",
        operands="name",
        harmless_options=True,
    ),
    "nl": Reader(
        why="numbers lines",
        short="b:d:f:h:i:l:n:ps:v:w:",
        long="""
            body-numbering: section-delimiter: footer-numbering: header-numbering: line-increment: join-blank-lines:
            number-format: no-renumber number-separator: starting-line-number: number-width: help version
        """,
        operands="path",
        harmless_options=True,
    ),
    "od": Reader(
        why="shows bytes",
        short="A:j:N:S:t:vw::abcdfiloswx",
        long="""
            address-radix: skip-bytes: read-bytes: strings:: format: output-duplicates width:: endian: help version
            traditional
        """,
        operands="path",
        harmless_options=True,
    ),
    "hexdump": Reader(
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
    "xxd": Reader(
        why="shows bytes; a second file would be written",
        operands="path",
        check="xxd",
    ),
    "strings": Reader(
        why="shows the text in a binary",
        short="adfn:owt:e:",
        long="all data print-file-name bytes: radix: encoding: include-all-whitespace help version",
        operands="path",
        numbers=True,
    ),
    "less": Reader(
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
    "more": Reader(
        why="shows files; without a terminal it only prints",
        short="dflcpsu",
        operands="path",
        check="pager",
    ),
    "file": Reader(
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
    "stat": Reader(
        why="shows size, dates and rights",
        short="c:fLtx",
        long="dereference file-system cached: format: printf: terse help version",
        operands="name",
        harmless_options=True,
    ),
    "du": Reader(
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
    "df": Reader(
        why="shows free space",
        short="aB:hHiklmPt:Tvx:g",
        long="""
            all block-size: human-readable si inodes local no-sync output:: portability sync type: print-type
            exclude-type: total help version
        """,
        operands="text",
        harmless_options=True,
    ),
    "tree": Reader(
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
    "lsd": Reader(
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
    "hexyl": Reader(
        why="prints bytes",
        short="n:s:c:",
        long="length: skip: no-squeezing color: border: plain bytes:",
        operands="path",
        abbreviate=False,
    ),
    "pdfinfo": Reader(
        also="pdffonts|pdfimages -list",
        why="tells about a document",
        short="f:l:",
        operands="path",
        most=1,
    ),
    "pdftotext": Reader(
        why="prints the text of a document; a second file would be written",
        check="to-stdout",
        short="f:l:",
        long="layout raw nopgbrk",
        single=True,
        operands="path text",
        most=2,
        least=2,
    ),
    "7z l": Reader(also="7za l|7zz l", why="lists an archive", operands="path", most=1),
    "ar t": Reader(also="ar tv", why="lists an archive", operands="path text"),
    "zstd -l": Reader(also="zstd --list", why="tells about compressed files", short="v", operands="path"),
    "readlink": Reader(
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
    "basename": Reader(
        also="dirname",
        why="takes a path apart, as text",
        short="as:z",
        long="multiple suffix: zero help version",
        operands="text",
        harmless_options=True,
    ),
    "pathchk": Reader(
        why="checks names, as text",
        short="pP",
        long="portability help version",
        operands="text",
        harmless_options=True,
    ),
    "md5sum": Reader(
        also="sha1sum|sha224sum|sha256sum|sha384sum|sha512sum|b2sum|cksum|sum|shasum|md5|b3sum",
        why="adds up a checksum",
        short="a:bcl:qrstwz",
        long="""
            algorithm: binary check length: tag text zero ignore-missing quiet status strict warn help version
            untagged raw base64 debug
        """,
        operands="path",
        harmless_options=True,
    ),
    "cmp": Reader(
        why="compares bytes",
        short="bi:ln:s",
        long="print-bytes ignore-initial: verbose bytes: quiet silent help version",
        operands="path",
        harmless_options=True,
    ),
    "diff": Reader(
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
    "diff3": Reader(
        why="compares three files",
        short="aAeEimTxX3L:",
        long="text show-all ed easy-only merge label: help version",
        refuse="diff-program",
        operands="path",
    ),
    "comm": Reader(
        why="compares sorted files",
        short="123z",
        long="check-order nocheck-order output-delimiter: total zero-terminated help version",
        operands="path",
    ),
    "join": Reader(
        why="puts files side by side",
        short="a:e:ij:o:t:v:z1:2:",
        long="check-order nocheck-order zero-terminated ignore-case header help version",
        operands="path",
    ),
    "paste": Reader(
        why="puts files side by side",
        short="d:sz",
        long="delimiters: serial zero-terminated help version",
        operands="path",
    ),
    "sdiff": Reader(
        why="compares side by side; -o would write",
        short="aBbdEHiI:lstvWw:Z",
        long="suppress-common-lines left-column ignore-case ignore-all-space width: text help version",
        refuse="output diff-program",
        operands="path",
    ),
    "test": Reader(also="[", why="answers a question about a file or a text", check="test", operands="text"),
    "which": Reader(
        why="says where a program is",
        short="as",
        long="all skip-alias skip-functions help version",
        operands="text",
        harmless_options=True,
    ),
    "whereis": Reader(why="says where a program and its manual are", short="bmsul", operands="text"),
    "whatis": Reader(
        also="apropos",
        why="searches the manuals' titles",
        short="adelrwvs:",
        long="exact wildcard regex long sections: help version and",
        operands="word",
    ),
    "man": Reader(
        why="shows a manual page, without a pager",
        short="aks:fw",
        long="all where path apropos whatis sections: help version",
        refuse="html pager preprocessor troff-device gxditview browser config-file",
        operands="text",
        abbreviate=False,
        check="man",
    ),
    "nm": Reader(
        why="shows the symbols of a binary",
        short="aABCDeghlnopPrsSuvVWf:t:",
        long="""
            demangle:: dynamic extern-only defined-only undefined-only line-numbers numeric-sort size-sort
            reverse-sort print-size radix: format: print-file-name no-demangle portability print-armap help version
        """,
        refuse="plugin target special-syms synthetic",
        operands="path",
    ),
    "readelf": Reader(
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
    "size": Reader(
        why="adds up the sections of a binary",
        short="ABGdoxtVh",
        long="format: totals common radix: help version",
        operands="path",
    ),
    "otool": Reader(why="shows the tables of a binary", short="afhlLDtdorvVXxIm", operands="path"),
    "c++filt": Reader(
        why="says names of symbols as they were written",
        short="_nptiVhs:",
        long="no-params no-verbose no-strip-underscore strip-underscore types format: help version",
        operands="text",
    ),
    "objdump": Reader(
        why="shows what is in a binary",
        short="aCdDfghj:lM:prRstTwxz",
        long="""
            archive-headers file-headers private-headers headers all-headers disassemble disassemble-all
            full-contents syms dynamic-syms reloc dynamic-reloc demangle:: section: line-numbers wide
            no-show-raw-insn help version info disassembler-options: start-address: stop-address: visualize-jumps::
        """,
        operands="path",
    ),
    "tar": Reader(
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
    "unzip": Reader(
        why="lists or prints what is in an archive",
        check="unzip",
        operands="path text",
        short="lvZ1tqpchmsTzC",
    ),
    "zipinfo": Reader(why="lists what is in an archive", operands="path text", short="12smlvhtTzC"),
    "zcat": Reader(
        also="bzcat|xzcat|zstdcat|lzcat|gzcat",
        why="prints compressed files",
        short="fqvk",
        long="force quiet verbose help version",
        operands="path",
    ),
    "zgrep": Reader(
        also="zegrep|zfgrep|bzgrep|xzgrep",
        why="searches compressed files",
        check="plain-values",
        short="cinlLvwxEFhHoqA:B:C:e:m:",
        operands="pattern path",
    ),
    "gzip": Reader(
        also="gunzip|xz|bzip2",
        why="lists or prints; without -l, -t or -c it would write",
        short="cdlkqtv",
        long="stdout to-stdout decompress list keep quiet test verbose help version",
        operands="path",
        check="gzip",
    ),
}
