"""Programs that show or change the machine, and those that speak with others: clusters, clouds, databases."""

from tarmac.policy.programs.rules import EffectEntry, ProgramEntry, WrapperEntry
from tarmac.policy.programs.rules import common_effects as effect

# fmt: off
PROGRAMS = {
    "pwd": ProgramEntry(
        why="prints the directory", short="LP", long="logical physical", traits="quiet named-only core suggest-line",
    ),
    "true|false": ProgramEntry(
        why="does nothing", operands="text", check="anything", traits="quiet named-only core suggest-line",
    ),
    ":": ProgramEntry(why="does nothing", operands="text", check="anything", instead="true", traits="quiet"),
    "date": ProgramEntry(
        why="prints the time; another form would set it", short="d:r@uRI::",
        long="date: reference@ utc universal rfc-email rfc-2822 rfc-3339: iso-8601:: help version debug",
        refuse="set file", operands="text", each=r"\+.*", or_else="date with such a word sets the clock",
        does=[effect.CHANGES_MACHINE, effect.ONLY_ASKS_MACHINE, effect.MAY_WRITE_OR_START],
        traits="text-values answers named-only suggest-line",
    ),
    "sleep": ProgramEntry(
        why="waits", operands="number", each="[0-9.]{1,3}[sm]?", or_else="it waits for very long",
        traits="quiet named-only",
    ),
    "uname|id": ProgramEntry(
        why="prints a fact about the machine or the user", short="asnrvmpioudGgZzhbHlqTtVfc",
        long="""
            all kernel-name nodename kernel-release kernel-version machine processor hardware-platform operating-system
            user group groups name real zero pretty since silent quiet help version ignore: no-header short from
        """,
        operands="word", harmless_options=True,
        never="/", or_else="it would read another file", traits="answers named-only suggest-line",
    ),
    "arch|groups": ProgramEntry(like="uname", traits="named-only"),
    "nproc": ProgramEntry(like="uname", needs="/proc", traits="named-only"),
    "tty": ProgramEntry(like="uname", traits="answers named-only"),
    "users": ProgramEntry(like="uname", needs="/run/utmp /var/log/wtmp /proc"),
    "uptime": ProgramEntry(like="uname", needs="/proc", traits="answers named-only"),
    "whoami": ProgramEntry(like="uname", traits="named-only suggest-line"),
    "who": ProgramEntry(
        like="uname", does=[effect.MAY_WRITE_OR_START], needs="/run/utmp /var/log/wtmp /proc", traits="answers",
    ),
    "w": ProgramEntry(like="uname", does=[effect.MAY_WRITE_OR_START], needs="/run/utmp /var/log/wtmp /proc"),
    "hostname": ProgramEntry(
        why="prints the machine's name; an operand would set it, and other options ask the network", short="sIV",
        long="all-ip-addresses short help version",
        refuse="file boot fqdn long ip-address all-fqdns alias domain yp nis node",
        does=[effect.CHANGES_MACHINE, effect.ONLY_ASKS_MACHINE], needs="/etc/hostname /etc/hosts", traits="named-only",
    ),
    "hostnamectl": ProgramEntry(
        why="prints the machine's settings", long="no-pager help version", operands="status", first="status",
        does=[effect.CHANGES_MACHINE], needs="/etc/hostname", traits="server",
    ),
    "timedatectl|localectl": ProgramEntry(like="hostnamectl", does=[effect.CHANGES_MACHINE], traits="server"),
    "locale": ProgramEntry(
        why="prints settings", short="ackm", long="all-locales charmaps category-name keyword-name help version",
        operands="word", needs="/etc/default/locale", traits="named-only",
    ),
    "getconf": ProgramEntry(like="locale", traits="named-only"),
    "env": ProgramEntry(
        why="prints the environment, which holds no secrets here; with words it would run them", short="0",
        long="null help version",
        runs=WrapperEntry(value="-u --unset -C --chdir", assigns=True, code="-S --split-string"),
        does=[effect.MAY_WRITE_OR_START], grant="line", traits="prints-environment answers named-only suggest-line",
    ),
    "printenv": ProgramEntry(
        why="prints the environment, which holds no secrets here", short="0", long="null help version", operands="text",
        check="no-secrets",
        does=[
            effect.MAY_WRITE_OR_START,
            EffectEntry(
                "high", "reads", "shows {what}, which is named like a secret",
                operand="(?i)(token|secret|passw|credential|(api|private|access)_?key|_auth|(^|_)(key|pwd|pass)$)",
            ),
        ],
        traits="prints-environment named-only suggest-line",
    ),
    "free": ProgramEntry(
        why="prints facts about the machine", short="bkmghtlvws:c:",
        long="bytes kilo mega giga human total lohi wide si count: seconds: help version", operands="word",
        abbreviate=False, needs="/proc", traits="answers named-only",
    ),
    "vmstat|iostat": ProgramEntry(
        why="prints facts about the machine", short="adfmnsDtwVp:S:xkhz",
        long="active forks slabs stats disk disk-sum timestamp wide one-header help version", operands="word",
        abbreviate=False, needs="/proc",
    ),
    "lscpu": ProgramEntry(
        why="prints facts about the machine", short="abceJpxyBC",
        long="all online offline bytes json extended:: parse:: caches:: physical hex help version", refuse="sysroot",
        abbreviate=False, needs="/sys /run/udev/data /proc",
    ),
    "lsblk": ProgramEntry(
        why="prints facts about the machine", short="aAbDzdfilJnPprSmstI:e:o:x:w:OVhT::",
        long="""
            all bytes nodeps discard fs ascii list json noheadings output: output-all paths pairs raw scsi inverse
            topology perms exclude: include: sort: tree:: width: help version
        """,
        refuse="sysroot", operands="word", abbreviate=False, needs="/sys /run/udev/data /proc", traits="names-only",
    ),
    "findmnt": ProgramEntry(
        why="prints facts about the machine", short="AabCDefilJkmnPrRuUvVho:S:T:t:O:w:d:M:N:",
        long="""
            all ascii bytes canonicalize df evaluate first-only invert json kernel list noheadings output: output-all
            pairs raw real source: target: mountpoint: types: options: submounts tree uniq nofsroot verbose help version
        """,
        refuse="tab-file fstab mtab poll", operands="word", abbreviate=False, needs="/proc",
    ),
    "lspci|lsusb": ProgramEntry(
        why="prints facts about the machine", short="abJlPrtvknmVh",
        long="all bytes json list noheadings pairs raw tree verbose summary:: help version", refuse="sysroot",
        abbreviate=False, needs="/sys /run/udev/data /proc",
    ),
    "ps": ProgramEntry(
        why="lists processes", operands="text", check="ps", cwd=False, does=[effect.MAY_WRITE_OR_START], needs="/proc",
        traits="answers named-only suggest-line",
    ),
    "pgrep": ProgramEntry(
        why="finds processes", short="acd:fg:lnou:U:G:P:s:t:vwxzi",
        long="""
            list-name list-full full newest oldest exact parent: session: terminal: uid: euid: group: delimiter: count
            inverse ignore-case help version
        """,
        operands="text", needs="/proc", traits="answers named-only",
    ),
    "pidof": ProgramEntry(like="pgrep", needs="/proc"),
    "pstree": ProgramEntry(why="draws the processes", short="aAcgGhH:lnN:psStTuUZ", operands="word", needs="/proc"),
    "top": ProgramEntry(
        why="prints the processes, once", short="bn:d:p:u:ciHo:w::SEs:l:", operands="none",
        one_of="b l", or_else="it needs a terminal",
        does=[effect.MAY_WRITE_OR_START], needs="/proc", traits="answers keyboard",
    ),
    "lsof": ProgramEntry(
        why="lists open files and ports", short="abi::nPp:tu:c:U+d:s::RlM", operands="text", check="lsof",
        does=[effect.MAY_WRITE_OR_START], answers_to="-v", needs="/proc", traits="answers",
    ),
    "ss": ProgramEntry(
        why="lists connections and ports", short="altunpeioms46xHOZhV",
        long="""
            all listening tcp udp numeric processes extended info options memory summary ipv4 ipv6 unix no-header help
            version
        """,
        refuse="kill diag filter resolve", operands="word", abbreviate=False, does=[effect.MAY_WRITE_OR_START],
        needs="/proc", traits="server",
    ),
    "netstat": ProgramEntry(
        why="lists connections and ports", short="altunpeiomsr46xhVcwgvMN",
        long="all listening tcp udp numeric programs route interfaces statistics extend", abbreviate=False,
        one_of="n numeric", or_else="it asks another machine for names",
        does=[effect.MAY_WRITE_OR_START], needs="/proc", traits="server",
    ),
    "ip": ProgramEntry(
        why="shows addresses and routes", operands="text", check="ip",
        does=[effect.CHANGES_NETWORK, effect.ONLY_ASKS_MACHINE], needs="/proc", traits="server",
    ),
    "ifconfig": ProgramEntry(
        why="shows addresses", short="as", operands="word", most=1,
        does=[effect.CHANGES_NETWORK, effect.ONLY_ASKS_MACHINE], needs="/proc", traits="server",
    ),
    "systemctl": ProgramEntry(
        why="asks about services", short="alqn:t:p:",
        long="""
            all no-pager full lines: type: state: property: no-legend plain output: user system failed quiet value help
            version recursive show-types reverse after before
        """,
        refuse="host machine root", operands="text", abbreviate=False,
        first="""
            status list-units list-unit-files list-timers list-sockets list-dependencies list-jobs is-active
            is-enabled is-failed is-system-running show cat get-default
        """,
        does=[
            effect.HALTS.on("poweroff|reboot|halt|suspend|hibernate|rescue|emergency|isolate"), effect.STEERS_SERVICES,
            effect.STARTS_WITH_MACHINE.on(
                "start|daemon-reload|import-environment|disable|mask|enable|link|edit|set-default",
            ),
            effect.STARTS_AUTOMATICALLY.on("enable|start"),
            effect.STOPS_SERVICES.on(
                "stop|restart|kill|try-restart|reload-or-restart|revert|set-property|reset-failed",
            ),
        ],
        globals="--host --machine -H -M", grant="command", traits="answers server",
    ),
    "service": ProgramEntry(
        why="asks about a service", long="status-all", operands="text", check="service",
        does=[
            effect.STEERS_SERVICES, effect.STOPS_SERVICES.on(operand="^(stop|start|restart|force-reload|reload|kill)$"),
        ],
        grant="command", traits="server",
    ),
    "journalctl": ProgramEntry(
        why="prints the journal", short="u:n:frekxqb::p:t:S:U:o:g:aN",
        long="""
            unit: lines: follow reverse pager-end dmesg catalog quiet boot:: priority: identifier: since: until: output:
            grep: all no-pager user system user-unit: list-boots disk-usage no-hostname utc case-sensitive:: fields
            header version help no-tail output-fields:
        """,
        refuse="""
            vacuum-size vacuum-time vacuum-files rotate flush sync relinquish-var smart-relinquish-var setup-keys
            update-catalog file directory root machine cursor-file
        """,
        operands="text", abbreviate=False,
        does=[
            effect.STARTS_BY_OPTION_OR_SOURCE.on(options="--pager"), effect.MAY_WRITE_OR_START,
            effect.MAY_READ_OR_START,
        ],
        needs="/var/log/journal /run/log/journal /etc/machine-id", grant="command", traits="answers",
    ),
    "dmesg": ProgramEntry(
        why="prints the kernel's messages; -c, -C, -D, -E, -n would change them", short="HTteklpPrsuwWxhVL::",
        long="""
            human ctime notime level: facility: kernel decode follow follow-new raw reltime userspace nopager color::
            time-format: since: until: help version json
        """,
        refuse="clear read-clear console-level console-on console-off", operands="none", abbreviate=False,
        does=[effect.CHANGES_MACHINE, effect.ONLY_ASKS_MACHINE, effect.MAY_WRITE_OR_START], traits="server",
    ),
    "tput": ProgramEntry(
        why="asks about the terminal", operands="word",
        first="cols lines colors longname size", least=1, does=[effect.MAY_WRITE_OR_START],
        needs="/etc/terminfo",
    ),
    "stty -a|stty size|stty -g": ProgramEntry(why="asks about the terminal"),
    "stty": ProgramEntry(like="tput", does=[effect.MAY_WRITE_OR_START]),
    # A clean bash, not the terminal's: -p takes no functions, no BASH_ENV and no options from the environment; the
    # words are arguments of a fixed text, and `type` runs none of them.
    "type": ProgramEntry(
        why="says what a command is", short="atpP", operands="word", least=1,
        instead=["bash", "-p", "-c", 'type "$@"', "bash"], does=[effect.MAY_WRITE_OR_START, effect.ONLY_WORKS_ON_SHELL],
        traits="suggest-line",
    ),
    "xdpyinfo": ProgramEntry(
        why="prints facts about the machine", long="productVersion productName buildVersion list-gpus version",
        abbreviate=False, traits="server",
    ),
    "sw_vers": ProgramEntry(like="xdpyinfo"),
    "lsb_release": ProgramEntry(
        why="prints facts about the machine", short="adicrvs", long="all id description codename release short version",
        abbreviate=False,
    ),
    "getent": ProgramEntry(
        why="prints facts about users and services", operands="word", abbreviate=False, check="getent",
        needs="/etc/services /etc/protocols /etc/networks /etc/rpc",
    ),
    "nvidia-smi": ProgramEntry(why="shows the devices", short="Lquf", long="list-gpus query", traits="server"),
    "dpkg": ProgramEntry(
        why="asks about packages", short="lLsSpVC",
        long="list listfiles status search print-avail verify audit get-selections print-architecture version help",
        refuse="install remove purge configure unpack root admindir", operands="text", abbreviate=False,
        does=[effect.REMOVES_PACKAGES.on("-r|-P|--remove|--purge"), effect.CHANGES_PACKAGES],
        needs="/var/lib/dpkg /etc/dpkg/dpkg.cfg /etc/dpkg/dpkg.cfg.d /etc/dpkg/origins", grant="command",
        traits="answers",
    ),
    "dpkg-query": ProgramEntry(
        why="asks about packages", short="lLsSWf:p", long="list listfiles status search show showformat: version help",
        refuse="admindir root", operands="text", abbreviate=False,
        needs="/var/lib/dpkg /etc/dpkg/dpkg.cfg /etc/dpkg/dpkg.cfg.d /etc/dpkg/origins",
    ),
    "apt-cache": ProgramEntry(
        why="asks about packages", short="anq",
        long="names-only all-versions no-all-versions installed quiet version help full recurse", operands="text",
        abbreviate=False,
        first="show search policy depends rdepends showpkg pkgnames madison stats", least=1,
        does=[effect.MAY_WRITE_OR_START],
        needs="""
            /var/lib/dpkg /etc/dpkg/dpkg.cfg /etc/dpkg/dpkg.cfg.d /etc/dpkg/origins /var/lib/apt /var/cache/apt
            /etc/apt/sources.list /etc/apt/sources.list.d /etc/apt/apt.conf.d /etc/apt/preferences.d
            /etc/apt/trusted.gpg.d
        """,
        traits="temporary",
    ),
    "rpm": ProgramEntry(
        why="asks about packages", short="qailfRc",
        long="query all info list file requires changelog version whatprovides last",
        refuse="eval define pipe root erase install upgrade import", operands="text", abbreviate=False,
        one_of="q query version", or_else="only rpm's questions are known",
        does=[effect.REMOVES_PACKAGES.on("-e"), effect.CHANGES_PACKAGES, effect.MAY_WRITE_OR_START],
        needs="/var/lib/rpm /etc/rpm /etc/dnf /etc/yum.repos.d", grant="command",
    ),
    "kill": ProgramEntry(
        why="lists signals, or asks whether a process is there; others end it", operands="text", check="kill",
        does=[effect.STEERS_PROCESSES], special="end_processes", traits="textual partial answers suggest-line",
    ),
    "mount": ProgramEntry(
        why="lists what is mounted; with a place it would mount", short="lt:", long="types: show-labels help version",
        abbreviate=False, does=[effect.CHANGES_MACHINE, effect.ONLY_ASKS_MACHINE], needs="/proc",
        traits="shows-when-alone answers suggest-line",
    ),
    "ldconfig": ProgramEntry(
        why="lists libraries; without -p it would change their cache", short="pv", long="print-cache verbose",
        refuse="C f n N r X l", abbreviate=False,
        one_of="p print-cache", or_else="without -p it would change the machine",
        does=[
            effect.CHANGES_MACHINE,
            EffectEntry("low", "reads", "shows which libraries are known", options="-p --print-cache", instead=True),
        ],
        needs="/etc/ld.so.conf /etc/ld.so.conf.d",
    ),
    "loginctl": ProgramEntry(
        like="swapon --show",
        does=[
            effect.HALTS.on("terminate-user"), effect.STEERS_SERVICES, effect.STARTS_WITH_MACHINE.on("enable-linger"),
        ],
        traits="server",
    ),
    "nmcli": ProgramEntry(
        like="swapon --show",
        does=[
            effect.CHANGES_NETWORK,
            effect.SHOWS_NETWORK.on("device status|dev status|device show|connection show|con show|general|radio"),
        ],
        traits="server",
    ),
    "lsmod": ProgramEntry(like="swapon --show", does=[effect.SHOWS_MACHINE, effect.ASKS_MACHINE], needs="/proc"),
    "umask": ProgramEntry(
        why="shows the umask; a number would change it", short="Sp", instead=["bash", "-c", 'umask "$@"', "bash"],
        does=[effect.CHANGES_RIGHTS, effect.CHANGES_SHELL], traits="shows-when-alone suggest-line",
    ),
    "ulimit": ProgramEntry(
        why="shows limits; a number would change one", short="aHScdeflmnpqrstuvx",
        instead=["bash", "-c", 'ulimit "$@"', "bash"], does=[effect.CHANGES_SHELL],
        traits="shows-when-alone suggest-line",
    ),
    "help": ProgramEntry(
        why="shows what a builtin of the shell does", short="ds", operands="word",
        instead=["bash", "-c", 'help "$@"', "bash"],
    ),
    "modinfo": ProgramEntry(
        why="shows a kernel module", short="F:nadp", operands="word", abbreviate=False,
        never="/", or_else="it would read another file",
        does=[effect.SHOWS_MACHINE, effect.ASKS_MACHINE],
    ),
    "fuser": ProgramEntry(
        why="shows who uses a port or a file; -k would end them", short="v", operands="word",
        each="[0-9]+/(tcp|udp)", or_else="only ports are known",
        does=[effect.STEERS_PROCESSES, effect.ONLY_ASKS_MACHINE, effect.MAY_WRITE_OR_START], needs="/proc",
    ),
    "last": ProgramEntry(
        why="says who logged in", short="n:aFRwx", operands="word", numbers=True,
        never="/", or_else="it would read another file",
        does=[effect.MAY_WRITE_OR_START], needs="/run/utmp /var/log/wtmp /proc",
    ),
    "apt-get|apt": ProgramEntry(
        does=[effect.REMOVES_PACKAGES.on("remove|purge|autoremove"), effect.CHANGES_PACKAGES],
        needs="""
            /var/lib/dpkg /etc/dpkg/dpkg.cfg /etc/dpkg/dpkg.cfg.d /etc/dpkg/origins /var/lib/apt /var/cache/apt
            /etc/apt/sources.list /etc/apt/sources.list.d /etc/apt/apt.conf.d /etc/apt/preferences.d
            /etc/apt/trusted.gpg.d
        """,
        grant="command", traits="answers temporary",
    ),
    "apt list": ProgramEntry(
        why="lists packages", long="installed upgradable all-versions upgradeable", operands="text", abbreviate=False,
    ),
    "apt show|apt search|apt policy|apt depends|apt rdepends": ProgramEntry(
        why="asks about packages", short="an", long="all-versions names-only full", operands="text", abbreviate=False,
    ),
    "yum": ProgramEntry(
        does=[effect.REMOVES_PACKAGES.on("remove|erase"), effect.CHANGES_PACKAGES],
        needs="/var/lib/rpm /etc/rpm /etc/dnf /etc/yum.repos.d", grant="command",
    ),
    "dnf": ProgramEntry(
        does=[effect.REMOVES_PACKAGES.on("remove|autoremove"), effect.CHANGES_PACKAGES],
        needs="/var/lib/rpm /etc/rpm /etc/dnf /etc/yum.repos.d", grant="command",
    ),
    "pacman": ProgramEntry(
        does=[effect.REMOVES_PACKAGES.on("-R"), effect.REMOVES_PACKAGES.on(options="-R"), effect.CHANGES_PACKAGES],
        grant="command",
    ),
    "apk": ProgramEntry(does=[effect.REMOVES_PACKAGES.on("del"), effect.CHANGES_PACKAGES], grant="command"),
    """
        snap list|snap info|snap find|pacman -Q|pacman -Qi|pacman -Ql|pacman -Qs|pacman -Si|pacman -Ss|apk info|
        apk list|dnf list|dnf info|yum list|yum info
    """: ProgramEntry(why="asks about packages", long="all installed", operands="word", abbreviate=False),
    "snap": ProgramEntry(
        does=[effect.REMOVES_PACKAGES.on("remove"), effect.CHANGES_PACKAGES, effect.MAY_WRITE_OR_START],
        grant="command", traits="server",
    ),
    """
        brew list|brew info|brew deps|brew outdated|brew search|brew config|brew leaves|brew desc|brew uses|brew ls
    """: ProgramEntry(
        why="asks about packages", short="l1", long="versions formula cask tree installed json:: full-name",
        operands="word", abbreviate=False, never=r"^[/.]|\.rb\Z", or_else="a formula in a file is run",
    ),
    "brew": ProgramEntry(
        does=[
            effect.REMOVES_PACKAGES.on("uninstall|remove"), effect.INSTALLS.on("|install"),
            effect.STEERS_SERVICES.on("services"), effect.MAY_WRITE_OR_START,
            effect.INSTALLS_FROM_ADDRESS.on("install"),
        ],
        server_commands="info outdated search", grant="command", traits="prints-setup answers",
    ),
    "chmod": ProgramEntry(
        does=[effect.CHANGES_RIGHTS], touches="changes", special="change_rights",
        traits="changes-rights names-only textual mode answers suggest-line",
    ),
    "chown": ProgramEntry(
        does=[effect.CHANGES_RIGHTS], touches="changes", special="change_rights",
        traits="changes-rights names-only answers suggest-line",
    ),
    "chgrp": ProgramEntry(
        does=[effect.CHANGES_RIGHTS], touches="changes", special="change_rights",
        traits="changes-rights answers suggest-line",
    ),
    "setfacl": ProgramEntry(does=[effect.CHANGES_RIGHTS], special="change_rights"),
    "chflags|xattr": ProgramEntry(does=[effect.CHANGES_RIGHTS]),
    "chattr|setcap|setenforce|semanage|restorecon|aa-disable|apparmor_parser": ProgramEntry(
        does=[effect.CHANGES_MACHINE_RIGHTS],
    ),
    "visudo": ProgramEntry(does=[effect.CHANGES_MACHINE_RIGHTS, effect.CHANGES_USERS]),
    "pkill|killall": ProgramEntry(does=[effect.STEERS_PROCESSES], traits="answers suggest-line"),
    "renice": ProgramEntry(does=[effect.STEERS_PROCESSES]),
    "shutdown|reboot|halt|poweroff|init|pm-suspend": ProgramEntry(does=[effect.HALTS]),
    "telinit": ProgramEntry(does=[effect.HALTS, effect.CHANGES_MACHINE]),
    "launchctl": ProgramEntry(
        does=[
            effect.STEERS_SERVICES, effect.STARTS_WITH_MACHINE.on("load|bootstrap|unload|submit"),
            effect.STARTS_AUTOMATICALLY.on("load"), effect.STOPS_SERVICES.on("stop|kickstart"),
        ],
        grant="command",
    ),
    "rc-service": ProgramEntry(does=[effect.STEERS_SERVICES, effect.STOPS_SERVICES]),
    "supervisorctl|sv": ProgramEntry(does=[effect.STEERS_SERVICES]),
    "update-rc.d|chkconfig": ProgramEntry(does=[effect.STEERS_SERVICES, effect.STARTS_WITH_MACHINE]),
    "crontab": ProgramEntry(
        does=[
            effect.RUNS_LATER, effect.MAY_WRITE_OR_START,
            EffectEntry("medium", "reads", "shows what runs automatically later", options="-l", instead=True),
            effect.RUNS_LATER.on(options="-e -r"),
        ],
        grant="line", traits="answers",
    ),
    "at|batch": ProgramEntry(does=[effect.RUNS_LATER], grant="line"),
    "atrm|anacron": ProgramEntry(does=[effect.RUNS_LATER]),
    "useradd|usermod|passwd": ProgramEntry(does=[effect.CHANGES_USERS], traits="answers suggest-line"),
    """
        adduser|userdel|deluser|groupadd|groupdel|groupmod|gpasswd|chpasswd|chfn|vipw|vigr|newgrp|sudoedit|dscl|
        sysadminctl|ssh-copy-id|authselect|pam-auth-update
    """: ProgramEntry(does=[effect.CHANGES_USERS]),
    "chsh": ProgramEntry(does=[effect.CHANGES_USERS], traits="answers"),
    "iptables -nL|ip6tables -nL|iptables -S|ip6tables -S": ProgramEntry(
        why="shows the rules of the network", short="vt:", long="line-numbers verbose table:", operands="word", most=1,
        abbreviate=False,
    ),
    "iptables -L|ip6tables -L": ProgramEntry(
        why="shows the rules of the network", short="nvt:", long="line-numbers numeric verbose table:", operands="word",
        most=1, abbreviate=False, one_of="n numeric", or_else="it asks another machine for names",
    ),
    "iptables|ip6tables": ProgramEntry(
        does=[
            effect.CHANGES_NETWORK,
            EffectEntry(
                "low", "reads", "shows the rules of the network", options="-L -S --list --list-rules", instead=True,
            ),
            effect.CHANGES_NETWORK.on(
                options="""
                    -A -D -I -R -F -Z -N -X -P -E --append --delete --insert --replace --flush --zero --new-chain
                    --delete-chain --policy --rename-chain
                """,
            ),
        ],
        traits="server",
    ),
    "nft": ProgramEntry(does=[effect.CHANGES_NETWORK, effect.SHOWS_NETWORK.on("list")]),
    "ufw": ProgramEntry(does=[effect.CHANGES_NETWORK, effect.SHOWS_NETWORK.on("status|version")], traits="server"),
    "firewall-cmd": ProgramEntry(does=[effect.CHANGES_NETWORK, effect.SHOWS_NETWORK.on("--state|--list-all")]),
    "pfctl|ipset|ebtables|iwconfig|networksetup|ovs-vsctl|wg-quick|openvpn|scutil|netsh": ProgramEntry(
        does=[effect.CHANGES_NETWORK],
    ),
    "tc": ProgramEntry(does=[effect.CHANGES_NETWORK, effect.SHOWS_NETWORK.on("qdisc show")]),
    "route|arp": ProgramEntry(does=[effect.CHANGES_NETWORK, effect.ONLY_ASKS_MACHINE], needs="/proc", traits="server"),
    "iw": ProgramEntry(does=[effect.CHANGES_NETWORK, effect.SHOWS_NETWORK.on("dev")]),
    "ethtool": ProgramEntry(does=[effect.CHANGES_NETWORK, effect.SHOWS_NETWORK.on("-i")]),
    "brctl|wg": ProgramEntry(does=[effect.CHANGES_NETWORK, effect.SHOWS_NETWORK.on("show")]),
    "resolvectl": ProgramEntry(does=[effect.CHANGES_NETWORK, effect.SHOWS_NETWORK.on("status|query")]),
    "umount": ProgramEntry(does=[effect.CHANGES_MACHINE], traits="answers suggest-line"),
    "losetup": ProgramEntry(does=[effect.CHANGES_MACHINE, effect.SHOWS_DISKS.on("--list")], needs="/proc"),
    """
        swapon --show|swapon -s|swapon --summary|ufw status|loginctl list-sessions|loginctl list-users|
        nmcli device status|nmcli device|nmcli connection show|nmcli general status|arp -n|arp -an|route -n|route -ne|
        crontab -l
    """: ProgramEntry(why="shows how the machine is set up"),
    "swapon": ProgramEntry(
        does=[
            effect.CHANGES_MACHINE,
            EffectEntry(
                "low", "reads", "shows where memory is swapped to", options="-s --summary --show", instead=True,
            ),
            effect.CHANGES_MACHINE.on(options="-a --all"),
        ],
        needs="/proc",
    ),
    """
        swapoff|modprobe|insmod|rmmod|depmod|kexec|hdparm|blockdev|update-grub|grub-install|dracut|update-initramfs|
        fsck|e2fsck|resize2fs|xfs_repair|debugfs|quotacheck|hwclock|dpkg-reconfigure|alternatives|csrutil|spctl|nvram|
        tmutil|loadkeys
    """: ProgramEntry(does=[effect.CHANGES_MACHINE]),
    "sysctl": ProgramEntry(
        does=[
            effect.CHANGES_MACHINE, effect.ONLY_ASKS_MACHINE,
            EffectEntry(
                "high", "machine", "changes how the machine's kernel works", options="-w --write -p --load --system",
            ),
            EffectEntry("high", "machine", "changes how the machine's kernel works", operand="="),
            effect.SHOWS_MACHINE.on("-a|-n"),
        ],
        needs="/proc", traits="shows-when-alone",
    ),
    "smartctl|defaults": ProgramEntry(does=[effect.CHANGES_MACHINE, effect.ONLY_ASKS_MACHINE]),
    "nvme": ProgramEntry(
        does=[effect.CHANGES_MACHINE, effect.DESTROYS_DISK.on("format"), effect.SHOWS_DISKS.on("list")],
    ),
    "dmsetup": ProgramEntry(does=[effect.CHANGES_MACHINE, effect.SHOWS_DISKS.on("ls|info")]),
    "efibootmgr": ProgramEntry(does=[effect.CHANGES_MACHINE, effect.SHOWS_MACHINE.on("-v")]),
    "bcdedit": ProgramEntry(does=[effect.CHANGES_MACHINE, effect.CHANGES_MACHINE_SETTINGS]),
    "tune2fs": ProgramEntry(does=[effect.CHANGES_MACHINE, effect.SHOWS_MACHINE.on("-l")]),
    "diskutil": ProgramEntry(
        does=[
            effect.CHANGES_MACHINE, effect.DESTROYS_DISK.on("eraseDisk|eraseVolume"), effect.ASKS_DISKS.on("list"),
            effect.SHOWS_DISKS.on("list|info"),
        ],
    ),
    "setterm": ProgramEntry(does=[effect.CHANGES_MACHINE, effect.MAY_WRITE_OR_START]),
    "fdisk|gdisk": ProgramEntry(
        does=[effect.DESTROYS_DISK, effect.SHOWS_DISKS.on(options="-l --list -s --show-size -p --print")],
        traits="names-only",
    ),
    "sfdisk": ProgramEntry(
        does=[
            effect.DESTROYS_DISK, effect.SHOWS_DISKS.on(options="-l --list -s --show-size -p --print"),
            effect.DESTROYS_DISK.on(
                options="""
                    -o -z -Z -n -d -t -g --delete --clear --zap --zap-all --new --typecode --mbrtogpt --wipe -w --append
                    -a --script
                """,
            ),
        ],
        traits="names-only",
    ),
    "cfdisk": ProgramEntry(
        does=[effect.DESTROYS_DISK, effect.SHOWS_DISKS.on(options="-l --list -s --show-size -p --print")],
    ),
    "sgdisk": ProgramEntry(
        does=[
            effect.DESTROYS_DISK, effect.SHOWS_DISKS.on(options="-l --list -s --show-size -p --print"),
            effect.DESTROYS_DISK.on(
                options="""
                    -o -z -Z -n -d -t -g --delete --clear --zap --zap-all --new --typecode --mbrtogpt --wipe -w --append
                    -a --script
                """,
            ),
        ],
    ),
    "parted": ProgramEntry(
        does=[
            effect.DESTROYS_DISK, effect.SHOWS_DISKS.on(options="-l --list -s --show-size -p --print"),
            effect.DESTROYS_DISK.on(
                options="""
                    -o -z -Z -n -d -t -g --delete --clear --zap --zap-all --new --typecode --mbrtogpt --wipe -w --append
                    -a --script
                """,
            ),
            effect.DESTROYS_DISK.on(operand="^(mk|rm|resize|set|rescue|name|toggle|disk_)"),
        ],
        traits="names-only",
    ),
    """
        wipefs|mkswap|blkdiscard|lvremove|vgremove|pvremove|lvreduce|badblocks|newfs|newfs_msdos|mke2fs|mkdosfs|mkntfs|
        ddrescue|dcfldd|sg_format|flashrom|fwupdmgr|dc3dd
    """: ProgramEntry(does=[effect.DESTROYS_DISK]),
    "cryptsetup": ProgramEntry(does=[effect.DESTROYS_DISK, effect.SHOWS_DISKS.on("status|luksDump|isLuks")]),
    "zpool": ProgramEntry(
        does=[effect.DESTROYS_DISK, effect.ASKS_DISKS.on("list|status"), effect.SHOWS_DISKS.on("list|status")],
    ),
    "zfs": ProgramEntry(does=[effect.DESTROYS_DISK, effect.ASKS_DISKS.on("list"), effect.SHOWS_DISKS.on("list|get")]),
    "mdadm": ProgramEntry(does=[effect.DESTROYS_DISK, effect.SHOWS_DISKS.on("--detail")]),
    "hdiutil": ProgramEntry(does=[effect.DESTROYS_DISK, effect.ASKS_DISKS.on("info")]),
    "lvs|vgs|pvs|lvdisplay|vgdisplay|pvdisplay|getenforce|sestatus|atq|lsattr|getcap": ProgramEntry(
        does=[effect.SHOWS_MACHINE],
    ),
    # ── other machines
    "curl": ProgramEntry(
        does=[
            effect.CONNECTS, effect.SENDS.on(options="-T --upload-file -F --form --form-string"),
            EffectEntry("high", "connects", "sends a file to another machine", operand="^@|^[A-Za-z_]*=?@|=@"),
            EffectEntry("high", "connects", "does what a file of options says", options="-K --config"),
        ],
        saves="-o --output --output-document", uploads="-T --upload-file", special="transfer", answers_to="-V",
        traits="fetches cmdlet-fetches partial answers suggest-line",
    ),
    "wget": ProgramEntry(
        does=[
            effect.CONNECTS,
            EffectEntry(
                "high", "connects", "sends a file to another machine, or starts a program",
                options="--post-file --body-file --use-askpass",
            ),
            EffectEntry("medium", "connects", "sends data to another machine", options="--post-data --body-data"),
            effect.STARTS_BY_OPTION_OR_SOURCE.on(options="--use-askpass"),
        ],
        saves="-o --output -O --output-document", special="transfer", answers_to="-V",
        traits="fetches saves-by-address cmdlet-fetches partial answers suggest-line",
    ),
    "aria2c|axel|http|https|httpie|xh|fetch|lynx|links|w3m": ProgramEntry(does=[effect.CONNECTS], traits="fetches"),
    """
        youtube-dl|yt-dlp|ping6|traceroute|tracepath|mtr|drill|whois|masscan|ab|tshark|wireshark|hping3|
        git-remote-https|sensible-browser|google-chrome|firefox|chromium|notify-send|say|write
    """: ProgramEntry(does=[effect.CONNECTS]),
    "ftp": ProgramEntry(does=[effect.CONNECTS, effect.CARRIES], traits="fetches typed-code"),
    "sftp": ProgramEntry(
        does=[effect.CONNECTS, effect.CARRIES, effect.STARTS_ANOTHER], grant="line", traits="sends carries typed-code",
    ),
    "tftp": ProgramEntry(does=[effect.CONNECTS, effect.CARRIES], traits="fetches"),
    "lftp|croc|mail|mailx|sendmail": ProgramEntry(does=[effect.CONNECTS, effect.CARRIES], traits="sends"),
    "telnet": ProgramEntry(does=[effect.CONNECTS], grant="line", traits="sends typed-code"),
    "ping|nslookup|host": ProgramEntry(does=[effect.CONNECTS], traits="sends"),
    "dig": ProgramEntry(does=[effect.CONNECTS, effect.MAY_WRITE_OR_START], traits="sends"),
    "nmap|xdg-open|open|start": ProgramEntry(does=[effect.CONNECTS], grant="line"),
    "nc": ProgramEntry(
        does=[effect.CONNECTS, effect.LISTENS, effect.GIVES_A_SHELL.on(options="-e -c --exec --sh-exec --lua-exec")],
        grant="line", traits="fetches shows-content relay",
    ),
    "ncat": ProgramEntry(
        does=[effect.CONNECTS, effect.LISTENS, effect.GIVES_A_SHELL.on(options="-e -c --exec --sh-exec --lua-exec")],
        grant="line", traits="fetches relay",
    ),
    "netcat": ProgramEntry(
        does=[effect.CONNECTS, effect.LISTENS, effect.GIVES_A_SHELL.on(options="-e -c --exec --sh-exec --lua-exec")],
        traits="fetches",
    ),
    "socat": ProgramEntry(
        does=[
            effect.CONNECTS, effect.LISTENS, effect.GIVES_A_SHELL.on(options="-e -c --exec --sh-exec --lua-exec"),
            effect.GIVES_A_SHELL.on(operand="(?i)(exec|system|shell):"),
        ],
        grant="line", traits="fetches relay",
    ),
    "scp": ProgramEntry(
        does=[effect.CONNECTS, effect.CARRIES, effect.CARRIES.on(operand="^[^/:]+:"), effect.STARTS_ANOTHER],
        grant="line", traits="sends carries places-judged answers",
    ),
    "rsync": ProgramEntry(
        does=[
            effect.CONNECTS, effect.CARRIES, EffectEntry("medium", "writes", "copies files: {what}", instead=True),
            EffectEntry(
                "high", "deletes", "copies files and deletes others: {what}",
                options="""
                    --delete --delete-before --delete-after --delete-during --delete-excluded --remove-source-files -e
                    --rsh --rsync-path
                """,
            ),
            effect.CARRIES.on(operand="^[^/:]+:"), effect.STARTS_ANOTHER,
            effect.STARTS_BY_OPTION_OR_SOURCE.on(options="--rsh --rsync-path"),
        ],
        special="mirror", answers_to="-V", grant="line", traits="sends carries places-judged partial answers",
    ),
    "smbclient|wormhole|onionshare|transfer|mutt|swaks": ProgramEntry(does=[effect.CONNECTS, effect.CARRIES]),
    "tcpdump": ProgramEntry(does=[effect.CONNECTS, effect.STARTS_BY_OPTION_OR_SOURCE.on(options="-z")], grant="line"),
    "wall": ProgramEntry(does=[effect.CONNECTS, effect.MAY_WRITE_OR_START]),
    """
        msfvenom|msfconsole|hydra|john|hashcat|sqlmap|mimikatz|nikto|responder|bettercap|ettercap|aircrack-ng|
        metasploit|xmrig|minerd|linpeas|pspy|chisel|frpc|ligolo|evil-winrm|crackmapexec
    """: ProgramEntry(does=[EffectEntry("critical", "connects", "attacks machines, or mines coins")]),
    # ── containers, clusters, clouds and databases
    "nerdctl": ProgramEntry(
        does=[effect.DELETES_CONTAINERS.on("rm|rmi"), effect.STEERS_CONTAINERS], grant="command", grant_line="run exec",
    ),
    "ctr": ProgramEntry(does=[effect.DELETES_CONTAINERS.on("images rm"), effect.STEERS_CONTAINERS]),
    "crictl": ProgramEntry(does=[effect.DELETES_CONTAINERS.on("rmi"), effect.STEERS_CONTAINERS]),
    "lxc exec": ProgramEntry(runs=WrapperEntry(skip=1, risk="medium", does="in a container", elsewhere=True)),
    "lxc": ProgramEntry(does=[effect.DELETES_CONTAINERS.on("delete"), effect.STEERS_CONTAINERS], traits="relay"),
    "minikube|kind": ProgramEntry(
        does=[effect.DELETES_CONTAINERS.on("delete"), effect.STEERS_CONTAINERS], answers_to="version", traits="answers",
    ),
    "k3d": ProgramEntry(does=[effect.DELETES_CONTAINERS.on("cluster delete"), effect.STEERS_CONTAINERS]),
    "buildah": ProgramEntry(does=[effect.STEERS_CONTAINERS], answers_to="version", traits="answers"),
    "skopeo|lxd|colima|limactl|containerd": ProgramEntry(
        does=[effect.STEERS_CONTAINERS],
    ),
    "eksctl|kops|flux": ProgramEntry(does=[effect.DELETES_IN_CLUSTER.on("delete"), effect.CHANGES_CLUSTER]),
    "argocd": ProgramEntry(does=[effect.DELETES_IN_CLUSTER.on("app delete"), effect.CHANGES_CLUSTER]),
    "istioctl": ProgramEntry(does=[effect.DELETES_IN_CLUSTER.on("uninstall"), effect.CHANGES_CLUSTER]),
    "kustomize|kubeadm|skaffold": ProgramEntry(does=[effect.CHANGES_CLUSTER]),
    "k9s": ProgramEntry(does=[effect.CHANGES_CLUSTER, effect.MAY_WRITE_OR_START], traits="answers"),
    "terragrunt": ProgramEntry(
        does=[effect.DESTROYS_ELSEWHERE.on("destroy"), effect.DEPLOYS.on("apply"), effect.ASKS_A_SERVICE],
    ),
    "pulumi": ProgramEntry(
        does=[effect.DESTROYS_ELSEWHERE.on("destroy"), effect.DEPLOYS.on("up"), effect.ASKS_A_SERVICE], grant="command",
    ),
    "cdk": ProgramEntry(
        does=[effect.DESTROYS_ELSEWHERE.on("destroy"), effect.DEPLOYS.on("deploy"), effect.ASKS_A_SERVICE],
    ),
    "serverless|sls": ProgramEntry(
        does=[effect.DESTROYS_ELSEWHERE.on("remove"), effect.DEPLOYS.on("deploy"), effect.ASKS_A_SERVICE],
    ),
    "fly": ProgramEntry(
        does=[
            effect.DESTROYS_ELSEWHERE.on("apps destroy"), effect.DEPLOYS.on("deploy"), effect.ASKS_A_SERVICE,
            effect.SHOWS_SECRETS.on("auth token"),
        ],
    ),
    "flyctl": ProgramEntry(
        does=[effect.DESTROYS_ELSEWHERE.on("apps destroy"), effect.DEPLOYS.on("deploy"), effect.ASKS_A_SERVICE],
        answers_to="version", grant="command", traits="answers",
    ),
    "firebase": ProgramEntry(
        does=[effect.DESTROYS_ELSEWHERE.on("projects:delete"), effect.DEPLOYS.on("deploy"), effect.ASKS_A_SERVICE],
        traits="answers",
    ),
    "vercel": ProgramEntry(
        does=[effect.DESTROYS_ELSEWHERE.on("remove"), effect.DEPLOYS], grant="command", traits="answers",
    ),
    "netlify": ProgramEntry(
        does=[effect.DESTROYS_ELSEWHERE.on("sites:delete"), effect.DEPLOYS.on("deploy"), effect.ASKS_A_SERVICE],
        grant="command", traits="answers",
    ),
    "doctl": ProgramEntry(
        does=[effect.DESTROYS_ELSEWHERE.on("compute droplet delete"), effect.ASKS_A_SERVICE], grant="command",
    ),
    "wrangler": ProgramEntry(
        does=[effect.DEPLOYS.on("deploy|publish"), effect.ASKS_A_SERVICE], grant="command", traits="answers",
    ),
    "eb": ProgramEntry(does=[effect.DEPLOYS.on("deploy"), effect.ASKS_A_SERVICE]),
    "cap": ProgramEntry(does=[effect.DEPLOYS]),
    "gsutil": ProgramEntry(
        does=[effect.ASKS_A_SERVICE, effect.CHANGES_KEPT_ELSEWHERE.on("rm|rb"), effect.DELETES_ELSEWHERE],
        grant="command", traits="fetches",
    ),
    "bq": ProgramEntry(does=[effect.ASKS_A_SERVICE, effect.CHANGES_KEPT_ELSEWHERE.on("rm")]),
    "supabase": ProgramEntry(does=[effect.ASKS_A_SERVICE], traits="answers"),
    "oci|linear|sentry-cli|stripe|cf|osc": ProgramEntry(does=[effect.ASKS_A_SERVICE]),
    "rclone": ProgramEntry(
        does=[effect.ASKS_A_SERVICE, effect.CHANGES_KEPT_ELSEWHERE.on("delete|purge|sync"), effect.CONNECTS],
    ),
    "s3cmd": ProgramEntry(
        does=[effect.ASKS_A_SERVICE, effect.CHANGES_KEPT_ELSEWHERE.on("del|rb")], traits="sends carries",
    ),
    "mc": ProgramEntry(does=[effect.ASKS_A_SERVICE], traits="keyboard"),
    "vault": ProgramEntry(
        does=[effect.ASKS_A_SERVICE, effect.SHOWS_SECRETS.on("read|kv get|kv")], answers_to="version", traits="answers",
    ),
    "consul|nomad": ProgramEntry(does=[effect.ASKS_A_SERVICE], answers_to="version", traits="answers"),
    "sops": ProgramEntry(does=[effect.ASKS_A_SERVICE, effect.SHOWS_SECRETS], traits="answers"),
    "ansible-vault": ProgramEntry(does=[effect.ASKS_A_SERVICE, effect.SHOWS_SECRETS.on("view|decrypt")]),
    "glab": ProgramEntry(does=[effect.ASKS_A_SERVICE], answers_to="version -h", grant="command", traits="answers"),
    "ngrok|cloudflared|localtunnel|lt": ProgramEntry(does=[effect.ASKS_A_SERVICE, effect.CARRIES]),
    "op": ProgramEntry(does=[effect.SHOWS_SECRETS.on("read|item get")]),
    "pass": ProgramEntry(does=[effect.SHOWS_SECRETS.on("|show")]),
    "gopass|ssh-add|kwallet-query|cmdkey": ProgramEntry(does=[effect.SHOWS_SECRETS]),
    "bw|keyring": ProgramEntry(does=[effect.SHOWS_SECRETS.on("get")]),
    "lpass": ProgramEntry(does=[effect.SHOWS_SECRETS.on("show")]),
    "security": ProgramEntry(
        does=[effect.SHOWS_SECRETS.on("find-generic-password|find-internet-password|dump-keychain")],
    ),
    "secret-tool": ProgramEntry(does=[effect.SHOWS_SECRETS.on("lookup")]),
    "gpg": ProgramEntry(
        does=[
            effect.SHOWS_SECRETS.on("--export-secret-keys"),
            EffectEntry("high", "reads", "shows secret keys", options="--export-secret-keys --export-secret-subkeys"),
            effect.MAY_WRITE_OR_START,
        ],
        traits="answers",
    ),
    "doppler": ProgramEntry(does=[effect.SHOWS_SECRETS.on("secrets")]),
    "psql|mysql": ProgramEntry(
        does=[effect.DATABASE, effect.CHANGES_DATA, effect.STARTS_BY_OPTION_OR_SOURCE.on(options="--pager")],
        answers_to="-V", grant="line", traits="answers typed-code",
    ),
    "mariadb|mongo|cqlsh|sqlcmd|clickhouse-client|duckdb": ProgramEntry(
        does=[effect.DATABASE, effect.CHANGES_DATA], traits="typed-code",
    ),
    "sqlite3": ProgramEntry(
        does=[effect.DATABASE, effect.CHANGES_DATA, effect.MAY_WRITE_OR_START], answers_to="-version", grant="line",
        traits="answers",
    ),
    "mongosh": ProgramEntry(does=[effect.DATABASE, effect.CHANGES_DATA], traits="answers typed-code"),
    "redis-cli": ProgramEntry(
        does=[effect.DATABASE, effect.CHANGES_DATA], answers_to="-v", traits="answers typed-code",
    ),
    """
        influx|pg_restore|pg_dump|mysqldump|mongodump|mongorestore|createdb|sequelize|knex|typeorm|flyway|liquibase|
        createuser
    """: ProgramEntry(does=[effect.DATABASE]),
    "prisma": ProgramEntry(does=[effect.DATABASE, effect.DELETES_DATABASE.on("migrate reset")]),
    "dropdb|dropuser|pg_dropcluster|pg_resetwal|initdb": ProgramEntry(does=[effect.DELETES_DATABASE]),
    "mysqladmin": ProgramEntry(does=[effect.DELETES_DATABASE.on("drop|")]),
}
