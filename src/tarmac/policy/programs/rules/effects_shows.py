"""Programs that change the machine, asked to only show something; read after effects.py, and written as there.

Each is followed by what makes it change something after all.
"""

from tarmac.policy.programs.rules.shapes import Deed

DEEDS = [
    Deed(
        run="fdisk|sfdisk|gdisk|sgdisk|parted|cfdisk",
        options=["-l --list -s --show-size -p --print"],
        risk="low",
        kind="reads",
        does="shows the disks",
        instead=True,
    ),
    Deed(
        run="sgdisk|sfdisk|parted",
        options=[
            """
                -o -z -Z -n -d -t -g --delete --clear --zap --zap-all --new --typecode --mbrtogpt --wipe -w --append
                -a --script
            """
        ],
        risk="critical",
        kind="machine",
        does="can destroy a disk and all on it",
    ),
    Deed(
        run="parted",
        operand="^(mk|rm|resize|set|rescue|name|toggle|disk_)",
        risk="critical",
        kind="machine",
        does="can destroy a disk and all on it",
    ),
    Deed(
        run="""
            cryptsetup status|cryptsetup luksDump|cryptsetup isLuks|zpool list|zpool status|zfs list|zfs get|
            diskutil list|diskutil info|nvme list|mdadm --detail|losetup --list|dmsetup ls|dmsetup info
        """,
        risk="low",
        kind="reads",
        does="shows the disks",
        instead=True,
    ),
    Deed(
        run="iptables|ip6tables",
        options=["-L -S --list --list-rules"],
        risk="low",
        kind="reads",
        does="shows the rules of the network",
        instead=True,
    ),
    Deed(
        run="iptables|ip6tables",
        options=[
            """
                -A -D -I -R -F -Z -N -X -P -E --append --delete --insert --replace --flush --zero --new-chain
                --delete-chain --policy --rename-chain
            """
        ],
        risk="high",
        kind="machine",
        does="changes the network of the machine",
    ),
    Deed(
        run="""
            nft list|ufw status|ufw version|nmcli device status|nmcli dev status|nmcli device show|
            nmcli connection show|nmcli con show|nmcli general|nmcli radio|wg show|firewall-cmd --state|
            firewall-cmd --list-all|resolvectl status|resolvectl query|ethtool -i|tc qdisc show|brctl show|iw dev
        """,
        risk="low",
        kind="reads",
        does="shows how the network is set up",
        instead=True,
    ),
    Deed(
        run="ldconfig",
        options=["-p --print-cache"],
        risk="low",
        kind="reads",
        does="shows which libraries are known",
        instead=True,
    ),
    Deed(
        run="swapon",
        options=["-s --summary --show"],
        risk="low",
        kind="reads",
        does="shows where memory is swapped to",
        instead=True,
    ),
    Deed(run="swapon", options=["-a --all"], risk="high", kind="machine", does="changes how the machine is set up"),
    Deed(
        run="crontab", options=["-l"], risk="medium", kind="reads", does="shows what runs by itself later", instead=True
    ),
    Deed(run="crontab", options=["-e -r"], risk="high", kind="configures", does="changes what runs by itself later"),
    Deed(
        run="""
            blkid|lsmod|modinfo|lvs|vgs|pvs|lvdisplay|vgdisplay|pvdisplay|getenforce|sestatus|getfacl|atq|lsattr|
            getcap|getsebool|sysctl -a|sysctl -n|efibootmgr -v|update-alternatives --list|tune2fs -l|lsns|lslogins
        """,
        risk="low",
        kind="reads",
        does="shows how the machine is set up",
        instead=True,
    ),
    Deed(
        run="lsmod|blkid|modinfo",
        options=["-c -w -g"],
        risk="medium",
        kind="machine",
        does="asks or changes how the machine is set up",
    ),
    Deed(
        run="""
            pip config list|pip3 config list|pip config get|pip3 config get|pip config debug|npm config list|
            npm config ls|gcloud config list|go env
        """,
        risk="medium",
        kind="reads",
        does="prints settings, in which credentials may stand",
        instead=True,
    ),
    Deed(run="go env", options=["-w -u"], risk="medium", kind="configures", does="changes go's settings", instead=True),
]
