"""What programs need to read besides the files they are given. Everything else is closed to a plan."""

# ── May be read and run by every plan.
PROGRAMS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store", "/gnu/store", "/snap")
# ── May be read by every plan. Never /etc, /proc, /var or a home as a whole.
ALWAYS = (
    "/etc/ld.so.cache", "/etc/ld.so.preload", "/etc/locale.alias", "/etc/localtime", "/etc/timezone", "/etc/passwd",
    "/etc/group", "/etc/nsswitch.conf", "/etc/os-release", "/etc/alternatives", "/etc/ssl/openssl.cnf",
    "/etc/ssl/certs", "/etc/pki/tls/certs",
    "/sys/devices/system/cpu",
)  # fmt: skip

_PACKAGES = ("/var/lib/dpkg", "/etc/dpkg/dpkg.cfg", "/etc/dpkg/dpkg.cfg.d", "/etc/dpkg/origins")
_APT = (
    *_PACKAGES, "/var/lib/apt", "/var/cache/apt", "/etc/apt/sources.list", "/etc/apt/sources.list.d",
    "/etc/apt/apt.conf.d", "/etc/apt/preferences.d", "/etc/apt/trusted.gpg.d",
)  # fmt: skip
_PROC = ("/proc",)  # Landlock closes what shows the inside of others: environ, mem, maps, fd, cwd, root
_MANUALS = ("/etc/manpath.config", "/etc/man_db.conf", "/var/cache/man")
_JAVA = ("/etc/java", "/etc/java-11-openjdk", "/etc/java-17-openjdk", "/etc/java-21-openjdk", *_PROC)
# ── By the name of the program.
OF_PROGRAMS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("ps", "pgrep", "pidof", "pstree", "top", "uptime", "free", "vmstat", "w", "lsof", "fuser"), _PROC),
    **dict.fromkeys(("mount", "findmnt", "df", "lsblk", "lscpu", "lsmem", "lsmod", "sysctl", "ss", "netstat"), _PROC),
    **dict.fromkeys(("ip", "ifconfig", "route", "arp", "iostat", "mpstat", "sar", "nproc", "numactl", "ipcs"), _PROC),
    **dict.fromkeys(("swapon", "losetup", "blkid", "htop", "pmap", "prtstat", "slabtop", "tload", "lsns"), _PROC),
    **dict.fromkeys(("dpkg", "dpkg-query"), _PACKAGES),
    **dict.fromkeys(("apt", "apt-cache", "apt-get", "apt-mark", "apt-config"), _APT),
    **dict.fromkeys(("rpm", "dnf", "yum"), ("/var/lib/rpm", "/etc/rpm", "/etc/dnf", "/etc/yum.repos.d")),
    **dict.fromkeys(("java", "javac", "javap", "jar", "kotlin", "scala", "mvn", "gradle", "sbt", "ant"), _JAVA),
    **dict.fromkeys(("lsblk", "lscpu", "lsmem", "lsusb", "lspci", "udevadm"), ("/sys", "/run/udev/data", *_PROC)),
    **dict.fromkeys(("who", "w", "users", "last", "lastlog"), ("/run/utmp", "/var/log/wtmp", *_PROC)),
    **dict.fromkeys(("man", "apropos", "whatis", "npm"), _MANUALS),
    **dict.fromkeys(("perl", "exiftool", "cloc", "ack", "prove"), ("/etc/perl",)),
    **dict.fromkeys(("python", "python3", "pip", "pip3"), ("/etc/python3", "/etc/python3.11", "/etc/python3.12")),
    "file": ("/etc/magic", "/etc/magic.mime"),
    "git": ("/etc/gitconfig", *_MANUALS),
    "locale": ("/etc/default/locale",),
    "hostname": ("/etc/hostname", "/etc/hosts"),
    "hostnamectl": ("/etc/hostname",),
    "crontab": (),
    "update-alternatives": ("/var/lib/dpkg/alternatives",),
    "ldconfig": ("/etc/ld.so.conf", "/etc/ld.so.conf.d"),
    "tput": ("/etc/terminfo",),
    "journalctl": ("/var/log/journal", "/run/log/journal", "/etc/machine-id"),
    "getent": ("/etc/services", "/etc/protocols", "/etc/networks", "/etc/rpc"),
    "nginx": ("/etc/nginx",),
    "mvn": ("/etc/maven", *_JAVA),
}
# ── In the home of whoever runs them: what was installed or downloaded before, and holds no credentials.
IN_HOME: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("python", "python3", "pip", "pip3"), (".local/lib",)),
    "go": ("go/pkg/mod",),
    "cargo": (".cargo/registry", ".cargo/git/db", ".rustup"),
    "rustup": (".rustup",),
    "pipx": (".local/share/pipx", ".local/pipx"),
    "gem": (".gem/ruby", ".local/share/gem"),
    "opam": (".opam",),
}
# ── These take a home that they can't read for an error. They get an empty one.
EMPTY_HOME = frozenset("npm npx yarn pnpm mvn gradle sbt dotnet conda mamba terraform tofu helm".split())
# ── What tells a program that it can't keep what it downloads.
VARIABLES: dict[str, tuple[tuple[str, str], ...]] = dict.fromkeys(("pip", "pip3"), (("PIP_NO_CACHE_DIR", "1"),))
# ── These read the files they are given, and nothing else of the workspace.
NAMED_ONLY = frozenset(
    """
    cat head tail wc sort uniq cut nl od xxd hexdump stat file cmp diff comm join paste tr rev tac fold fmt expand
    unexpand strings md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum sum base64 base32 basename
    dirname realpath readlink pwd echo printf true false test [ date seq sleep whoami id uname hostname nproc arch jq
    sed awk gawk mawk grep egrep fgrep column numfmt zcat gzip gunzip xzcat bzcat tee printenv which ls dir vdir du df
    cal expr factor groups logname tty uptime free ps pgrep getconf locale env nm objdump readelf size ldd tsort
    """.split()
)
# ── Given a folder, these read all in it.
LOOKED_INTO = frozenset(["grep", "egrep", "fgrep", "diff"])
# ── These put what does not fit into memory into a temporary file.
WRITES_TEMPORARY = frozenset(["sort", "tac", "man", "apropos", "apt", "apt-get", "apt-cache", "java", "javac", "shuf"])
# ── These ask a server, of another machine or of this one. A plan has no network, so a person is asked.
SERVERS = frozenset(
    """
    docker docker-compose podman kubectl oc gh aws az gcloud heroku multipass ollama tailscale virsh systemctl loginctl
    hostnamectl timedatectl localectl nmcli service ss ip ifconfig arp route netstat iptables ip6tables ufw dmesg tmux
    screen xdpyinfo nvidia-smi snap helm
    """.split()
)
# ── The same, for some of their commands.
SERVER_COMMANDS: dict[str, frozenset[str]] = {
    "npm": frozenset("view info show v outdated search ping whoami owner dist-tag fund".split()),
    **dict.fromkeys(("pip", "pip3"), frozenset(["index"])),
    "cargo": frozenset(["search", "info"]),
    "brew": frozenset("info search outdated".split()),
    "gem": frozenset(["search"]),
    "conda": frozenset(["search"]),
}
# ── Commands of theirs that ask nobody.
LOCAL_COMMANDS = frozenset(
    [
        "docker compose config",
        "docker-compose config",
        "helm env",
        "helm version",
        "helm show",
        "docker compose version",
    ]
)
# ── Where nothing keeps a command to reading, only these run without a question.
CORE = frozenset("cat ls head tail wc grep rg stat file pwd echo printf cd true false test [".split())
CORE_GIT = frozenset(["status", "diff", "log"])
