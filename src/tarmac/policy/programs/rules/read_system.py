"""Programs that ask the machine."""

from tarmac.policy.programs.rules.table import ReaderEntry

READERS = {
    "pwd": ReaderEntry(why="prints the directory", short="LP", long="logical physical"),
    "true": ReaderEntry(also="false", why="does nothing", operands="text", check="anything"),
    ":": ReaderEntry(why="does nothing", operands="text", check="anything", instead="true"),
    "date": ReaderEntry(
        why="prints the time; another form would set it",
        short="d:r@uRI::",
        long="date: reference@ utc universal rfc-email rfc-2822 rfc-3339: iso-8601:: help version debug",
        refuse="set file",
        operands="text",
        check="date",
    ),
    "sleep": ReaderEntry(why="waits", operands="number", check="sleep"),
    "uname": ReaderEntry(
        also="arch|nproc|tty|logname|users|uptime|whoami|groups|id|who|w|hostid",
        why="prints a fact about the machine or the user",
        short="asnrvmpioudGgZzhbHlqTtVfc",
        long="""
            all kernel-name nodename kernel-release kernel-version machine processor hardware-platform
            operating-system user group groups name real zero pretty since silent quiet help version ignore:
            no-header short from
        """,
        operands="word",
        check="no-files",
        harmless_options=True,
    ),
    "hostname": ReaderEntry(
        why="prints the machine's name; an operand would set it, and other options ask the network",
        short="sIV",
        long="all-ip-addresses short help version",
        refuse="file boot fqdn long ip-address all-fqdns alias domain yp nis node",
    ),
    "hostnamectl": ReaderEntry(
        also="timedatectl|localectl",
        why="prints the machine's settings",
        operands="status",
        check="status",
        long="no-pager help version",
    ),
    "locale": ReaderEntry(
        also="getconf",
        why="prints settings",
        short="ackm",
        long="all-locales charmaps category-name keyword-name help version",
        operands="word",
    ),
    "env": ReaderEntry(
        why="prints the environment, which holds no secrets here; with words it would run them",
        short="0",
        long="null help version",
    ),
    "printenv": ReaderEntry(
        why="prints the environment, which holds no secrets here",
        short="0",
        long="null help version",
        operands="text",
        check="no-secrets",
    ),
    "free": ReaderEntry(
        why="prints facts about the machine",
        short="bkmghtlvws:c:",
        long="bytes kilo mega giga human total lohi wide si count: seconds: help version",
        operands="word",
        abbreviate=False,
    ),
    "vmstat": ReaderEntry(
        also="iostat|mpstat|numastat",
        why="prints facts about the machine",
        short="adfmnsDtwVp:S:xkhz",
        long="active forks slabs stats disk disk-sum timestamp wide one-header help version",
        operands="word",
        abbreviate=False,
    ),
    "lscpu": ReaderEntry(
        why="prints facts about the machine",
        short="abceJpxyBC",
        long="all online offline bytes json extended:: parse:: caches:: physical hex help version",
        refuse="sysroot",
        abbreviate=False,
    ),
    "lsblk": ReaderEntry(
        why="prints facts about the machine",
        short="aAbDzdfilJnPprSmstI:e:o:x:w:OVhT::",
        long="""
            all bytes nodeps discard fs ascii list json noheadings output: output-all paths pairs raw scsi inverse
            topology perms exclude: include: sort: tree:: width: help version
        """,
        refuse="sysroot",
        operands="word",
        abbreviate=False,
    ),
    "findmnt": ReaderEntry(
        why="prints facts about the machine",
        short="AabCDefilJkmnPrRuUvVho:S:T:t:O:w:d:M:N:",
        long="""
            all ascii bytes canonicalize df evaluate first-only invert json kernel list noheadings output: output-all
            pairs raw real source: target: mountpoint: types: options: submounts tree uniq nofsroot verbose help version
        """,
        refuse="tab-file fstab mtab poll",
        operands="word",
        abbreviate=False,
    ),
    "lsmem": ReaderEntry(
        also="lspci|lsusb|lsipc",
        why="prints facts about the machine",
        short="abJlPrtvknmVh",
        long="all bytes json list noheadings pairs raw tree verbose summary:: help version",
        refuse="sysroot",
        abbreviate=False,
    ),
    "ps": ReaderEntry(why="lists processes", check="ps", operands="text", cwd=False),
    "pgrep": ReaderEntry(
        also="pidof",
        why="finds processes",
        short="acd:fg:lnou:U:G:P:s:t:vwxzi",
        long="""
            list-name list-full full newest oldest exact parent: session: terminal: uid: euid: group: delimiter:
            count inverse ignore-case help version
        """,
        operands="text",
    ),
    "pstree": ReaderEntry(why="draws the processes", short="aAcgGhH:lnN:psStTuUZ", operands="word"),
    "top": ReaderEntry(why="prints the processes, once", check="top", short="bn:d:p:u:ciHo:w::SEs:l:", operands="none"),
    "lsof": ReaderEntry(
        why="lists open files and ports",
        short="abi::nPp:tu:c:U+d:s::RlM",
        operands="text",
        check="lsof",
    ),
    "ss": ReaderEntry(
        why="lists connections and ports",
        short="altunpeioms46xHOZhV",
        long="""
            all listening tcp udp numeric processes extended info options memory summary ipv4 ipv6 unix no-header
            help version
        """,
        refuse="kill diag filter resolve",
        operands="word",
        abbreviate=False,
    ),
    "netstat": ReaderEntry(
        why="lists connections and ports",
        check="numeric",
        short="altunpeiomsr46xhVcwgvMN",
        long="all listening tcp udp numeric programs route interfaces statistics extend",
        abbreviate=False,
    ),
    "ip": ReaderEntry(why="shows addresses and routes", check="ip", operands="text"),
    "ifconfig": ReaderEntry(why="shows addresses", short="as", operands="word", most=1),
    "systemctl": ReaderEntry(
        why="asks about services",
        check="systemctl",
        short="alqn:t:p:",
        long="""
            all no-pager full lines: type: state: property: no-legend plain output: user system failed quiet value
            help version recursive show-types reverse after before
        """,
        refuse="host machine root",
        operands="text",
        abbreviate=False,
    ),
    "service": ReaderEntry(why="asks about a service", check="service", operands="text", long="status-all"),
    "journalctl": ReaderEntry(
        why="prints the journal",
        short="u:n:frekxqb::p:t:S:U:o:g:aN",
        long="""
            unit: lines: follow reverse pager-end dmesg catalog quiet boot:: priority: identifier: since: until:
            output: grep: all no-pager user system user-unit: list-boots disk-usage no-hostname utc case-sensitive::
            fields header version help no-tail output-fields:
        """,
        refuse="""
            vacuum-size vacuum-time vacuum-files rotate flush sync relinquish-var smart-relinquish-var setup-keys
            update-catalog file directory root machine cursor-file
        """,
        operands="text",
        abbreviate=False,
    ),
    "dmesg": ReaderEntry(
        why="prints the kernel's messages; -c, -C, -D, -E, -n would change them",
        short="HTteklpPrsuwWxhVL::",
        long="""
            human ctime notime level: facility: kernel decode follow follow-new raw reltime userspace nopager
            color:: time-format: since: until: help version json
        """,
        refuse="clear read-clear console-level console-on console-off",
        operands="none",
        abbreviate=False,
    ),
    "stty -a": ReaderEntry(also="stty size|stty -g", why="asks about the terminal"),
    "tput": ReaderEntry(also="stty", why="asks about the terminal", check="tput", operands="word"),
    "type": ReaderEntry(
        why="says what a command is",
        short="atpP",
        operands="word",
        least=1,
        # A clean bash, not the terminal's: -p takes no functions, no BASH_ENV and no options from the environment; the
        # words are arguments of a fixed text, and `type` runs none of them.
        instead=["bash", "-p", "-c", 'type "$@"', "bash"],
    ),
    "xdpyinfo": ReaderEntry(
        also="sw_vers|system_profiler|vm_stat|acpi",
        why="prints facts about the machine",
        long="productVersion productName buildVersion list-gpus version",
        abbreviate=False,
    ),
    "lsb_release": ReaderEntry(
        why="prints facts about the machine",
        short="adicrvs",
        long="all id description codename release short version",
        abbreviate=False,
    ),
    "getent": ReaderEntry(
        why="prints facts about users and services", operands="word", abbreviate=False, check="getent"
    ),
    "nvidia-smi": ReaderEntry(also="sensors", why="shows the devices", short="Lquf", long="list-gpus query"),
    "dpkg": ReaderEntry(
        why="asks about packages",
        short="lLsSpVC",
        long="list listfiles status search print-avail verify audit get-selections print-architecture version help",
        refuse="install remove purge configure unpack root admindir",
        operands="text",
        abbreviate=False,
    ),
    "dpkg-query": ReaderEntry(
        why="asks about packages",
        short="lLsSWf:p",
        long="list listfiles status search show showformat: version help",
        refuse="admindir root",
        operands="text",
        abbreviate=False,
    ),
    "apt-cache": ReaderEntry(
        why="asks about packages",
        check="apt-cache",
        operands="text",
        short="anq",
        long="names-only all-versions no-all-versions installed quiet version help full recurse",
        abbreviate=False,
    ),
    "apt list": ReaderEntry(
        why="lists packages",
        long="installed upgradable all-versions upgradeable",
        operands="text",
        abbreviate=False,
    ),
    "apt show": ReaderEntry(
        also="apt search|apt policy|apt depends|apt rdepends",
        why="asks about packages",
        short="an",
        long="all-versions names-only full",
        operands="text",
        abbreviate=False,
    ),
    "rpm": ReaderEntry(
        why="asks about packages",
        check="rpm",
        short="qailfRc",
        long="query all info list file requires changelog version whatprovides last",
        refuse="eval define pipe root erase install upgrade import",
        operands="text",
        abbreviate=False,
    ),
    "brew list": ReaderEntry(
        also="brew info|brew deps|brew outdated|brew search|brew config|brew leaves|brew desc|brew uses|brew ls",
        why="asks about packages",
        check="brew",
        long="versions formula cask tree installed json:: full-name",
        short="l1",
        operands="word",
        abbreviate=False,
    ),
    "snap list": ReaderEntry(
        also="""
            snap info|snap find|flatpak list|pacman -Q|pacman -Qi|pacman -Ql|pacman -Qs|pacman -Si|pacman -Ss|
            apk info|apk list|dnf list|dnf info|yum list|yum info
        """,
        why="asks about packages",
        long="all installed",
        operands="word",
        abbreviate=False,
    ),
    "kill": ReaderEntry(
        why="lists signals, or asks whether a process is there; others end it",
        check="kill",
        operands="text",
    ),
    "mount": ReaderEntry(
        why="lists what is mounted; with a place it would mount",
        short="lt:",
        long="types: show-labels help version",
        abbreviate=False,
    ),
    "ldconfig": ReaderEntry(
        why="lists libraries; without -p it would change their cache",
        check="needs-p",
        short="pv",
        long="print-cache verbose",
        refuse="C f n N r X l",
        abbreviate=False,
    ),
    "swapon --show": ReaderEntry(
        also="""
            swapon -s|swapon --summary|ufw status|loginctl|loginctl list-sessions|loginctl list-users|
            nmcli device status|nmcli device|nmcli connection show|nmcli general status|nmcli|lsmod|blkid|
            arp -n|arp -an|route -n|route -ne|crontab -l|duf|procs
        """,
        why="shows how the machine is set up",
    ),
    "iptables -nL": ReaderEntry(
        also="ip6tables -nL|iptables -S|ip6tables -S",
        why="shows the rules of the network",
        short="vt:",
        long="line-numbers verbose table:",
        operands="word",
        most=1,
        abbreviate=False,
    ),
    "iptables -L": ReaderEntry(
        also="ip6tables -L",
        why="shows the rules of the network",
        check="numeric",
        short="nvt:",
        long="line-numbers numeric verbose table:",
        operands="word",
        most=1,
        abbreviate=False,
    ),
    "umask": ReaderEntry(
        why="shows the umask; a number would change it",
        short="Sp",
        instead=["bash", "-c", 'umask "$@"', "bash"],
    ),
    "ulimit": ReaderEntry(
        why="shows limits; a number would change one",
        short="aHScdeflmnpqrstuvx",
        instead=["bash", "-c", 'ulimit "$@"', "bash"],
    ),
    "help": ReaderEntry(
        why="shows what a builtin of the shell does",
        short="ds",
        operands="word",
        instead=["bash", "-c", 'help "$@"', "bash"],
    ),
    "modinfo": ReaderEntry(
        why="shows a kernel module",
        short="F:nadp",
        operands="word",
        check="no-files",
        abbreviate=False,
    ),
    "fuser": ReaderEntry(
        why="shows who uses a port or a file; -k would end them",
        check="fuser",
        short="v",
        operands="word",
    ),
    "last": ReaderEntry(why="says who logged in", short="n:aFRwx", operands="word", numbers=True, check="no-files"),
}
