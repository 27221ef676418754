"""Words of shells, and programs that run the command in their arguments."""

from tarmac.policy.programs.rules import EffectEntry, ProgramEntry, WrapperEntry
from tarmac.policy.programs.rules import common_effects as effect

# fmt: off
PROGRAMS = {
    # ── words of the shell itself
    "eval": ProgramEntry(
        does=[EffectEntry("medium", "runs", "runs text as a command")], grant="line",
        traits="interprets runs-in-shell joins-words",
    ),
    "export|declare": ProgramEntry(
        does=[effect.CHANGES_SHELL], special="evaluate_index", traits="shows-when-alone partial suggest-line",
    ),
    "typeset|local|unset": ProgramEntry(
        does=[effect.CHANGES_SHELL], special="evaluate_index", traits="partial suggest-line",
    ),
    """
        readonly|unalias|setopt|unsetopt|bind|complete|compgen|compopt|getopts|mapfile|readarray|disown|suspend|zle|
        bindkey|zmodload|autoload|emulate|vared|print|functions|zcompile|zstyle|zparseopts|sched|deactivate|activate|
        rvm
    """: ProgramEntry(does=[effect.CHANGES_SHELL]),
    "alias": ProgramEntry(
        does=[effect.CHANGES_SHELL], special="define_alias", grant="line", traits="shows-when-alone partial",
    ),
    "set": ProgramEntry(does=[effect.CHANGES_SHELL], traits="shows-when-alone suggest-line"),
    "shopt": ProgramEntry(does=[effect.CHANGES_SHELL], traits="shows-when-alone"),
    "enable|coproc": ProgramEntry(does=[effect.CHANGES_SHELL], grant="line"),
    "trap": ProgramEntry(
        does=[effect.CHANGES_SHELL], special="set_trap", grant="line", traits="shows-when-alone partial",
    ),
    "exit|wait|popd": ProgramEntry(does=[effect.CHANGES_SHELL, effect.ONLY_WORKS_ON_SHELL], traits="suggest-line"),
    "logout|shift|times|dirs|caller": ProgramEntry(does=[effect.CHANGES_SHELL, effect.ONLY_WORKS_ON_SHELL]),
    "return": ProgramEntry(
        does=[effect.CHANGES_SHELL, effect.ONLY_WORKS_ON_SHELL, effect.WORKS_ON_SHELL], traits="suggest-line",
    ),
    "break|continue": ProgramEntry(does=[effect.CHANGES_SHELL, effect.ONLY_WORKS_ON_SHELL, effect.WORKS_ON_SHELL]),
    "read": ProgramEntry(
        does=[effect.CHANGES_SHELL, effect.ONLY_WORKS_ON_SHELL], special="evaluate_index",
        traits="partial suggest-line",
    ),
    "let": ProgramEntry(does=[effect.CHANGES_SHELL, effect.CALCULATES], special="evaluate_index", traits="partial"),
    "bg|fg": ProgramEntry(does=[effect.CHANGES_SHELL], traits="suggest-line"),
    "pushd": ProgramEntry(does=[effect.CHANGES_SHELL, effect.ONLY_WORKS_ON_SHELL], traits="suggest-line moves"),
    "cd": ProgramEntry(does=[effect.ONLY_WORKS_ON_SHELL], traits="core suggest-line moves"),
    "[[|((": ProgramEntry(does=[effect.CALCULATES], special="evaluate_index", traits="partial"),
    # ── programs that run the command in their arguments
    "sudo": ProgramEntry(
        runs=WrapperEntry(
            value="""
                -u -g -p -C -T -h -R -r -t -U -D --user --group --prompt --close-from --command-timeout --host --chroot
                --role --type --other-user --chdir
            """,
            assigns=True, risk="high", does="as the administrator",
        ),
        grant="line", traits="administrator answers relay",
    ),
    "doas": ProgramEntry(
        runs=WrapperEntry(value="-u -C", risk="high", does="as the administrator"), grant="line",
        traits="administrator relay",
    ),
    "pkexec": ProgramEntry(
        runs=WrapperEntry(value="--user", risk="high", does="as the administrator"), grant="line",
        traits="administrator",
    ),
    "su": ProgramEntry(
        runs=WrapperEntry(
            value="-s --shell -g -G -w", code="-c --command --session-command", risk="high", does="as another user",
        ),
        does=[effect.CHANGES_USERS], grant="line", traits="relay",
    ),
    "runuser": ProgramEntry(
        runs=WrapperEntry(value="-u -g -G -s", code="-c --command", risk="high", does="as another user"), grant="line",
    ),
    "nice": ProgramEntry(
        runs=WrapperEntry(value="-n --adjustment", plain="-n?-?[0-9]*"), grant="line", traits="answers",
    ),
    "ionice": ProgramEntry(runs=WrapperEntry(value="-c -n -p --class --classdata"), grant="line"),
    "chrt": ProgramEntry(runs=WrapperEntry(skip=1), grant="line"),
    "nohup": ProgramEntry(runs=WrapperEntry(plain="", left_out=True), grant="line", traits="answers"),
    "setsid|valgrind": ProgramEntry(runs=WrapperEntry(), grant="line", traits="answers"),
    "stdbuf": ProgramEntry(
        runs=WrapperEntry(value="-i -o -e --input --output --error", plain="-[ioe][0L]"), grant="line",
        traits="answers",
    ),
    "timeout": ProgramEntry(
        runs=WrapperEntry(
            value="-k -s --kill-after --signal", skip=1, plain="-[ks]?[0-9.]*[smhd]?|--preserve-status|--foreground",
            before="[0-9.]+[smhd]?",
        ),
        grant="line", traits="answers",
    ),
    "gtimeout": ProgramEntry(runs=WrapperEntry(value="-k -s", skip=1)),
    "time": ProgramEntry(runs=WrapperEntry(value="-o -f --output --format"), grant="line"),
    "gtime": ProgramEntry(runs=WrapperEntry(value="-o -f")),
    "command": ProgramEntry(runs=WrapperEntry(plain="", left_out=True), grant="line", traits="says-where"),
    "builtin|unbuffer|torsocks|dbus-run-session|firejail|entr": ProgramEntry(runs=WrapperEntry(), grant="line"),
    "exec": ProgramEntry(runs=WrapperEntry(value="-a"), does=[effect.CHANGES_SHELL], grant="line"),
    "fakeroot": ProgramEntry(runs=WrapperEntry()),
    "faketime": ProgramEntry(runs=WrapperEntry(skip=1)),
    "caffeinate": ProgramEntry(runs=WrapperEntry(value="-t -w"), grant="line"),
    "taskset": ProgramEntry(runs=WrapperEntry(value="-p", skip=1), grant="line"),
    "numactl": ProgramEntry(runs=WrapperEntry(), needs="/proc", grant="line"),
    "proxychains": ProgramEntry(runs=WrapperEntry(value="-f"), grant="line"),
    "proxychains4": ProgramEntry(runs=WrapperEntry(value="-f")),
    "strace": ProgramEntry(
        runs=WrapperEntry(value="-o -e -p -s -P -E -u -a"), does=[effect.MAY_WRITE_OR_START], answers_to="-V",
        grant="line", traits="answers",
    ),
    "ltrace": ProgramEntry(
        runs=WrapperEntry(value="-o -e -p -s -u"), does=[effect.MAY_WRITE_OR_START], answers_to="-V", grant="line",
        traits="answers",
    ),
    "perf": ProgramEntry(
        runs=WrapperEntry(skip=1, value="-o -e -F -p"), does=[effect.MAY_WRITE_OR_START], answers_to="version",
        grant="line", traits="answers",
    ),
    "xvfb-run": ProgramEntry(runs=WrapperEntry(value="-n -s -w"), grant="line"),
    "systemd-run": ProgramEntry(
        runs=WrapperEntry(
            value="-u -p --unit --property --slice --on-calendar --on-active --uid", risk="high",
            does="as a service that stays",
        ),
        grant="line", traits="answers",
    ),
    "flock": ProgramEntry(runs=WrapperEntry(value="-w -E --timeout", code="-c --command", skip=1), grant="line"),
    "chroot": ProgramEntry(
        runs=WrapperEntry(value="--userspec --groups", skip=1, risk="high", does="under another root"), grant="line",
        traits="relay",
    ),
    "unshare": ProgramEntry(runs=WrapperEntry(value="-R -w -S -G"), grant="line"),
    "nsenter": ProgramEntry(
        runs=WrapperEntry(value="-t -S -G", risk="high", does="in the namespaces of another process"), grant="line",
        traits="relay",
    ),
    "bwrap": ProgramEntry(runs=WrapperEntry(risk="medium"), grant="line", traits="relay"),
    "setpriv": ProgramEntry(runs=WrapperEntry(value="--reuid --regid"), grant="line"),
    "capsh": ProgramEntry(runs=WrapperEntry(code="-c")),
    "script": ProgramEntry(
        runs=WrapperEntry(code="-c --command"), does=[effect.MAY_WRITE_OR_START], grant="line", traits="relay",
    ),
    "watch": ProgramEntry(
        runs=WrapperEntry(value="-n --interval", script=True), does=[effect.MAY_WRITE_OR_START], grant="line",
        traits="answers",
    ),
    "xargs": ProgramEntry(
        runs=WrapperEntry(
            value="""
                -I -i -n -P -L -d -E -s -a --max-args --max-procs --replace --delimiter --arg-file --max-lines
                --max-chars
            """,
            fed=True,
        ),
        does=[effect.STARTS_BY_OPTION_OR_SOURCE.on(options="--arg-file -a"), effect.MAY_READ_OR_START], prove="xargs",
        grant="line", traits="no-exec answers",
    ),
    "parallel": ProgramEntry(
        runs=WrapperEntry(
            value="-j -a -N -n -S --jobs --arg-file --joblog --delay --retries --sshlogin --colsep", script=True,
            fed=True,
        ),
        does=[effect.STARTS_BY_OPTION_OR_SOURCE.on(options="--arg-file -a"), effect.MAY_READ_OR_START], grant="line",
    ),
    "rust-parallel": ProgramEntry(runs=WrapperEntry(value="-j", fed=True)),
    "bash": ProgramEntry(
        why="checks the syntax of a script; without -n it runs it", short="n", operands="path", most=1, least=1,
        abbreviate=False, interspersed=False, check="syntax",
        runs=WrapperEntry(value="-o -O --rcfile --init-file", code="-c", shell=True), does=[effect.RUNS_SCRIPT],
        grant="script", traits="shell dangerous-inside runs-file versioned answers typed-shell",
    ),
    "sh": ProgramEntry(
        like="bash",
        runs=WrapperEntry(value="-o", code="-c", shell=True), does=[effect.RUNS_SCRIPT], grant="script",
        traits="shell dangerous-inside runs-file answers typed-shell",
    ),
    "zsh": ProgramEntry(
        runs=WrapperEntry(value="-o", code="-c", shell=True), does=[effect.RUNS_SCRIPT], grant="script",
        traits="shell runs-file versioned answers typed-shell",
    ),
    "dash": ProgramEntry(
        runs=WrapperEntry(value="-o", code="-c", shell=True), does=[effect.RUNS_SCRIPT], grant="script",
        traits="shell runs-file answers typed-shell",
    ),
    "ksh": ProgramEntry(
        runs=WrapperEntry(value="-o", code="-c", shell=True), does=[effect.RUNS_SCRIPT], grant="script",
        traits="shell runs-file versioned typed-shell",
    ),
    "mksh|ash|rbash": ProgramEntry(
        runs=WrapperEntry(code="-c", shell=True), does=[effect.RUNS_SCRIPT], grant="script", traits="shell typed-shell",
    ),
    "fish": ProgramEntry(
        runs=WrapperEntry(code="-c --command -C --init-command", shell=True), does=[effect.RUNS_SCRIPT],
        answers_to="-v", grant="script", traits="shell runs-file versioned answers typed-shell",
    ),
    "busybox": ProgramEntry(
        runs=WrapperEntry(multi=True),
        does=[effect.GIVES_A_SHELL.on("nc", options="-e -c --exec --sh-exec --lua-exec")], grant="line",
        traits="shell typed-code",
    ),
    "toybox": ProgramEntry(runs=WrapperEntry(multi=True), grant="line", traits="typed-code"),
    "ssh": ProgramEntry(
        runs=WrapperEntry(
            value="-b -c -D -E -e -F -I -i -J -L -l -m -O -o -p -Q -R -S -W -w", skip=1, script=True, risk="medium",
            does="on another machine", elsewhere=True,
        ),
        does=[
            effect.CONNECTS,
            EffectEntry("high", "connects", "opens a way into this machine or its network", options="-R -D -w"),
            effect.STARTS_ANOTHER,
        ],
        answers_to="-V", grant="line", traits="sends answers relay",
    ),
    "mosh": ProgramEntry(
        runs=WrapperEntry(value="--ssh --port -p", skip=1, risk="medium", does="on another machine", elsewhere=True),
        does=[effect.CONNECTS], grant="line", traits="relay",
    ),
    "rsh": ProgramEntry(
        runs=WrapperEntry(value="-l", skip=1, script=True, risk="medium", does="on another machine", elsewhere=True),
        grant="line",
    ),
    "npx": ProgramEntry(
        runs=WrapperEntry(
            value="-p --package -w --workspace", code="-c --call",
            project="runs a package's program, which may be fetched first",
        ),
        does=[
            effect.STARTS_BY_OPTION_OR_SOURCE.on(
                options="--script-shell --node-options --globalconfig --userconfig --registry",
            ),
            effect.MAY_WRITE_OR_START, effect.INSTALLS_FROM_ADDRESS,
        ],
        answers_to="-v -h", answers_unless=".npmrc", grant="line", traits="answers empty-home",
    ),
    "bunx|pnpx": ProgramEntry(runs=WrapperEntry(project="fetches a package and runs it", fetches=True), grant="line"),
    "uvx": ProgramEntry(
        runs=WrapperEntry(value="--from --with --python -p", project="fetches a package and runs it", fetches=True),
        grant="line",
    ),
    "nix-shell": ProgramEntry(
        runs=WrapperEntry(
            code="--run --command", value="-p -A -I", project="fetches packages and opens a shell", fetches=True,
        ),
    ),
    "dotenv": ProgramEntry(runs=WrapperEntry(value="-e -f", project="runs a program with the variables of a file")),
    "direnv exec": ProgramEntry(runs=WrapperEntry(skip=1, project="runs a program in the project's environment")),
    "direnv": ProgramEntry(answers_to="version", grant="line", traits="prints-setup answers"),
    "rye": ProgramEntry(grant="command", grant_program="run"),
    # ── cmdlets of PowerShell; names are small, aliases are resolved before
    """
        format|diskpart|format-volume|clear-disk|initialize-disk|remove-partition|set-disk|set-partition|repair-volume|
        new-partition|resize-partition|remove-volume|reset-physicaldisk
    """: ProgramEntry(does=[effect.DESTROYS_DISK]),
    """
        function|set-alias|set-variable|new-alias|set-psdebug|set-strictmode|remove-module|set-psreadlineoption
    """: ProgramEntry(does=[effect.CHANGES_SHELL]),
    "del|erase|rd|Remove-Item|ri": ProgramEntry(does=[effect.DELETES]),
    "get-childitem|get-item": ProgramEntry(does=[effect.READS, effect.SHOWS_VARIABLES], traits="names-only"),
    "get-content": ProgramEntry(does=[effect.READS, effect.SHOWS_VARIABLES]),
    """
        get-location|set-location|get-itemproperty|get-process|get-service|get-command|get-help|get-member|get-date|
        get-host|get-history|get-alias|get-module|get-unique|get-variable|get-filehash|get-acl|get-psdrive|get-volume|
        get-disk|get-netadapter|get-netipaddress|get-nettcpconnection|get-computerinfo|get-culture|get-timezone|
        get-random|get-verb|get-package|get-hotfix|get-ciminstance|get-wmiobject|get-eventlog|get-winevent|
        select-string|select-object|select-xml|where-object|foreach-object|sort-object|measure-object|measure-command|
        group-object|compare-object|format-table|format-list|format-wide|format-hex|test-json|convert-path|
        convertto-json|convertfrom-json|convertto-csv|convertfrom-csv|import-csv|out-string|out-host|out-null|
        out-default|write-output|write-host|write-verbose|write-error|write-warning|push-location|pop-location|
        start-sleep|clear-host
    """: ProgramEntry(does=[effect.READS]),
    "test-path|resolve-path|split-path|join-path": ProgramEntry(does=[effect.READS], traits="names-only"),
    "if|else|elseif|for|while|do|switch|try|catch|finally|param|in|until|begin|process|end|throw": ProgramEntry(
        does=[effect.WORKS_ON_SHELL],
    ),
    "get-credential|get-secret|export-clixml|convertfrom-securestring": ProgramEntry(
        does=[EffectEntry("high", "reads", "asks for credentials, or shows them")],
    ),
    "set-content|add-content|out-file|tee-object|new-item|export-csv|clear-content": ProgramEntry(
        does=[effect.CHANGES_FILES], special="write_item",
    ),
    "copy-item|move-item|rename-item": ProgramEntry(
        does=[effect.CHANGES_FILES], special="write_item", traits="to-last",
    ),
    "expand-archive|compress-archive|set-item|new-temporaryfile|set-date": ProgramEntry(does=[effect.CHANGES_FILES]),
    "invoke-webrequest|invoke-restmethod": ProgramEntry(
        does=[effect.CONNECTS, effect.SENDS.on(operand="(?i)^-(infile|body|form)$|^(put|post)$")],
        traits="cmdlet-fetches",
    ),
    "test-connection|test-netconnection|resolve-dnsname": ProgramEntry(does=[effect.CONNECTS]),
    "start-bitstransfer": ProgramEntry(does=[effect.CONNECTS], traits="cmdlet-fetches"),
    "send-mailmessage": ProgramEntry(does=[effect.CONNECTS, effect.COMMANDS_ELSEWHERE]),
    "enter-pssession|new-pssession|invoke-command|copy-vmfile": ProgramEntry(does=[effect.COMMANDS_ELSEWHERE]),
    "start-process": ProgramEntry(
        does=[
            effect.STARTS_OR_LOADS,
            EffectEntry("high", "runs", "runs a command as the administrator", operand="(?i)^runas$"),
        ],
    ),
    """
        start-job|start-threadjob|invoke-item|import-module|add-type|new-object|invoke-history|invoke-pester|
        invoke-build
    """: ProgramEntry(does=[effect.STARTS_OR_LOADS]),
    """
        install-module|install-package|install-script|update-module|uninstall-module|install-psresource|save-module|
        winget|choco|scoop
    """: ProgramEntry(does=[effect.INSTALLS]),
    "stop-process|stop-job|wait-process": ProgramEntry(does=[effect.STEERS_PROCESSES]),
    """
        stop-service|start-service|restart-service|set-service|new-service|remove-service|register-scheduledtask|
        new-scheduledtask|set-scheduledtask|unregister-scheduledtask|schtasks|sc.exe|register-wmievent|
        register-objectevent
    """: ProgramEntry(does=[EffectEntry("high", "configures", "changes what runs on the machine automatically")]),
    """
        set-executionpolicy|set-acl|icacls|takeown|new-localuser|remove-localuser|set-localuser|add-localgroupmember|
        net|set-mppreference|add-mppreference|disable-netfirewallprofile|set-netfirewallprofile|new-netfirewallrule|
        set-itemproperty|new-itemproperty|remove-itemproperty|reg|regedit|wmic|vssadmin|enable-psremoting|
        set-wsmaninstance|rename-computer|add-computer
    """: ProgramEntry(does=[effect.CHANGES_MACHINE_SETTINGS]),
    "stop-computer|restart-computer|suspend-computer": ProgramEntry(does=[effect.HALTS]),
    "powershell.exe|pwsh.exe": ProgramEntry(does=[effect.RUNS_DISGUISED]),
}
