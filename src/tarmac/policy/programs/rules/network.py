"""Programs that speak with other machines, containers, clusters, clouds and databases."""

from tarmac.policy.programs.rules import EffectEntry, ProgramEntry, WrapperEntry
from tarmac.policy.programs.rules.common_effects import (
    ASKS_A_SERVICE,
    CARRIES,
    CHANGES_CLUSTER,
    CHANGES_DATA,
    CHANGES_KEPT_ELSEWHERE,
    CONNECTS,
    DATABASE,
    DELETES_CONTAINERS,
    DELETES_DATABASE,
    DELETES_ELSEWHERE,
    DELETES_IN_CLUSTER,
    DEPLOYS,
    DESTROYS_ELSEWHERE,
    GIVES_A_SHELL,
    LISTENS,
    MAY_WRITE_OR_START,
    SENDS,
    SHOWS_SECRETS,
    STARTS_ANOTHER,
    STARTS_BY_OPTION_OR_SOURCE,
    STEERS_CONTAINERS,
)

PROGRAMS = {
    # ── other machines
    "curl": ProgramEntry(
        does=[
            CONNECTS,
            SENDS.on(options="-T --upload-file -F --form --form-string"),
            EffectEntry("high", "connects", "sends a file to another machine", operand="^@|^[A-Za-z_]*=?@|=@"),
            EffectEntry("high", "connects", "does what a file of options says", options="-K --config"),
        ],
        saves="-o --output --output-document",
        uploads="-T --upload-file",
        special="transfer",
        answers_to="-V",
        traits="fetches cmdlet-fetches partial answers suggest-line",
    ),
    "wget": ProgramEntry(
        does=[
            CONNECTS,
            EffectEntry(
                "high",
                "connects",
                "sends a file to another machine, or starts a program",
                options="--post-file --body-file --use-askpass",
            ),
            EffectEntry("medium", "connects", "sends data to another machine", options="--post-data --body-data"),
            STARTS_BY_OPTION_OR_SOURCE.on(options="--use-askpass"),
        ],
        saves="-o --output -O --output-document",
        special="transfer",
        answers_to="-V",
        traits="fetches saves-by-address cmdlet-fetches partial answers suggest-line",
    ),
    "aria2c|axel|http|https|httpie|xh|fetch|lynx|links|w3m": ProgramEntry(does=[CONNECTS], traits="fetches"),
    """
        elinks|httrack|youtube-dl|yt-dlp|ping6|traceroute|tracepath|mtr|drill|whois|masscan|grpcurl|ab|wrk|hey|siege|
        k6|vegeta|iperf|iperf3|tshark|wireshark|arp-scan|dhclient|hping3|speedtest|speedtest-cli|git-remote-https|
        magic-wormhole|irssi|sensible-browser|google-chrome|firefox|chromium|notify-send|say|write
    """: ProgramEntry(does=[CONNECTS]),
    "ftp": ProgramEntry(does=[CONNECTS, CARRIES], traits="fetches typed-code"),
    "sftp": ProgramEntry(does=[CONNECTS, CARRIES, STARTS_ANOTHER], grant="line", traits="sends carries typed-code"),
    "tftp": ProgramEntry(does=[CONNECTS, CARRIES], traits="fetches"),
    "lftp|croc|mail|mailx|sendmail": ProgramEntry(does=[CONNECTS, CARRIES], traits="sends"),
    "telnet": ProgramEntry(does=[CONNECTS], grant="line", traits="sends typed-code"),
    "ping|nslookup|host|wscat|websocat": ProgramEntry(does=[CONNECTS], traits="sends"),
    "dig": ProgramEntry(does=[CONNECTS, MAY_WRITE_OR_START], traits="sends"),
    "nmap|xdg-open|open|start": ProgramEntry(does=[CONNECTS], grant="line"),
    "nc": ProgramEntry(
        does=[CONNECTS, LISTENS, GIVES_A_SHELL.on(options="-e -c --exec --sh-exec --lua-exec")],
        grant="line",
        traits="fetches shows-content relay",
    ),
    "ncat": ProgramEntry(
        does=[CONNECTS, LISTENS, GIVES_A_SHELL.on(options="-e -c --exec --sh-exec --lua-exec")],
        grant="line",
        traits="fetches relay",
    ),
    "netcat": ProgramEntry(
        does=[CONNECTS, LISTENS, GIVES_A_SHELL.on(options="-e -c --exec --sh-exec --lua-exec")], traits="fetches"
    ),
    "socat": ProgramEntry(
        does=[
            CONNECTS,
            LISTENS,
            GIVES_A_SHELL.on(options="-e -c --exec --sh-exec --lua-exec"),
            GIVES_A_SHELL.on(operand="(?i)(exec|system|shell):"),
        ],
        grant="line",
        traits="fetches relay",
    ),
    "scp": ProgramEntry(
        does=[CONNECTS, CARRIES, CARRIES.on(operand="^[^/:]+:"), STARTS_ANOTHER],
        grant="line",
        traits="sends carries places-judged answers",
    ),
    "rsync": ProgramEntry(
        does=[
            CONNECTS,
            CARRIES,
            EffectEntry("medium", "writes", "copies files: {what}", instead=True),
            EffectEntry(
                "high",
                "deletes",
                "copies files and deletes others: {what}",
                options="""
                --delete --delete-before --delete-after --delete-during --delete-excluded --remove-source-files -e
                --rsh --rsync-path
            """,
            ),
            CARRIES.on(operand="^[^/:]+:"),
            STARTS_ANOTHER,
            STARTS_BY_OPTION_OR_SOURCE.on(options="--rsh --rsync-path"),
        ],
        special="mirror",
        answers_to="-V",
        grant="line",
        traits="sends carries places-judged partial answers",
    ),
    "smbclient|wormhole|onionshare|transfer|mutt|swaks": ProgramEntry(does=[CONNECTS, CARRIES]),
    "tcpdump": ProgramEntry(does=[CONNECTS, STARTS_BY_OPTION_OR_SOURCE.on(options="-z")], grant="line"),
    "wall": ProgramEntry(does=[CONNECTS, MAY_WRITE_OR_START]),
    """
        msfvenom|msfconsole|hydra|john|hashcat|sqlmap|mimikatz|nikto|responder|bettercap|ettercap|aircrack-ng|
        metasploit|xmrig|minerd|linpeas|pspy|chisel|frpc|ligolo|evil-winrm|crackmapexec
    """: ProgramEntry(does=[EffectEntry("critical", "connects", "attacks machines, or mines coins")]),
    # ── containers, clusters, clouds and databases
    "nerdctl": ProgramEntry(
        does=[DELETES_CONTAINERS.on("rm|rmi"), STEERS_CONTAINERS], grant="command", grant_line="run exec"
    ),
    "ctr": ProgramEntry(does=[DELETES_CONTAINERS.on("images rm"), STEERS_CONTAINERS]),
    "crictl": ProgramEntry(does=[DELETES_CONTAINERS.on("rmi"), STEERS_CONTAINERS]),
    "lxc exec": ProgramEntry(runs=WrapperEntry(skip=1, risk="medium", does="in a container", elsewhere=True)),
    "lxc": ProgramEntry(does=[DELETES_CONTAINERS.on("delete"), STEERS_CONTAINERS], traits="relay"),
    "minikube|kind": ProgramEntry(
        does=[DELETES_CONTAINERS.on("delete"), STEERS_CONTAINERS], answers_to="version", traits="answers"
    ),
    "k3d": ProgramEntry(does=[DELETES_CONTAINERS.on("cluster delete"), STEERS_CONTAINERS]),
    "buildah": ProgramEntry(does=[STEERS_CONTAINERS], answers_to="version", traits="answers"),
    "skopeo|lxd|colima|limactl|containerd|kompose|dive|buildctl|docker-machine": ProgramEntry(does=[STEERS_CONTAINERS]),
    "eksctl|kops|flux": ProgramEntry(does=[DELETES_IN_CLUSTER.on("delete"), CHANGES_CLUSTER]),
    "argocd": ProgramEntry(does=[DELETES_IN_CLUSTER.on("app delete"), CHANGES_CLUSTER]),
    "istioctl": ProgramEntry(does=[DELETES_IN_CLUSTER.on("uninstall"), CHANGES_CLUSTER]),
    "kustomize|kubeadm|kubectx|kubens|skaffold|tilt|stern": ProgramEntry(does=[CHANGES_CLUSTER]),
    "k9s": ProgramEntry(does=[CHANGES_CLUSTER, MAY_WRITE_OR_START], traits="answers"),
    "terragrunt": ProgramEntry(does=[DESTROYS_ELSEWHERE.on("destroy"), DEPLOYS.on("apply"), ASKS_A_SERVICE]),
    "pulumi": ProgramEntry(does=[DESTROYS_ELSEWHERE.on("destroy"), DEPLOYS.on("up"), ASKS_A_SERVICE], grant="command"),
    "cdk": ProgramEntry(does=[DESTROYS_ELSEWHERE.on("destroy"), DEPLOYS.on("deploy"), ASKS_A_SERVICE]),
    "serverless|sls": ProgramEntry(does=[DESTROYS_ELSEWHERE.on("remove"), DEPLOYS.on("deploy"), ASKS_A_SERVICE]),
    "fly": ProgramEntry(
        does=[
            DESTROYS_ELSEWHERE.on("apps destroy"),
            DEPLOYS.on("deploy"),
            ASKS_A_SERVICE,
            SHOWS_SECRETS.on("auth token"),
        ]
    ),
    "flyctl": ProgramEntry(
        does=[DESTROYS_ELSEWHERE.on("apps destroy"), DEPLOYS.on("deploy"), ASKS_A_SERVICE],
        answers_to="version",
        grant="command",
        traits="answers",
    ),
    "firebase": ProgramEntry(
        does=[DESTROYS_ELSEWHERE.on("projects:delete"), DEPLOYS.on("deploy"), ASKS_A_SERVICE], traits="answers"
    ),
    "vercel": ProgramEntry(does=[DESTROYS_ELSEWHERE.on("remove"), DEPLOYS], grant="command", traits="answers"),
    "netlify": ProgramEntry(
        does=[DESTROYS_ELSEWHERE.on("sites:delete"), DEPLOYS.on("deploy"), ASKS_A_SERVICE],
        grant="command",
        traits="answers",
    ),
    "doctl": ProgramEntry(does=[DESTROYS_ELSEWHERE.on("compute droplet delete"), ASKS_A_SERVICE], grant="command"),
    "wrangler": ProgramEntry(does=[DEPLOYS.on("deploy|publish"), ASKS_A_SERVICE], grant="command", traits="answers"),
    "eb": ProgramEntry(does=[DEPLOYS.on("deploy"), ASKS_A_SERVICE]),
    "cap": ProgramEntry(does=[DEPLOYS]),
    "gsutil": ProgramEntry(
        does=[ASKS_A_SERVICE, CHANGES_KEPT_ELSEWHERE.on("rm|rb"), DELETES_ELSEWHERE], grant="command", traits="fetches"
    ),
    "bq": ProgramEntry(does=[ASKS_A_SERVICE, CHANGES_KEPT_ELSEWHERE.on("rm")]),
    "supabase": ProgramEntry(does=[ASKS_A_SERVICE], traits="answers"),
    """
        oci|ibmcloud|linode-cli|hcloud|boundary|waypoint|hub|jira|linear|sentry-cli|datadog|stripe|twilio|railway|
        render|cf|osc
    """: ProgramEntry(does=[ASKS_A_SERVICE]),
    "rclone": ProgramEntry(does=[ASKS_A_SERVICE, CHANGES_KEPT_ELSEWHERE.on("delete|purge|sync"), CONNECTS]),
    "s3cmd": ProgramEntry(does=[ASKS_A_SERVICE, CHANGES_KEPT_ELSEWHERE.on("del|rb")], traits="sends carries"),
    "mc": ProgramEntry(does=[ASKS_A_SERVICE], traits="keyboard"),
    "vault": ProgramEntry(
        does=[ASKS_A_SERVICE, SHOWS_SECRETS.on("read|kv get|kv")], answers_to="version", traits="answers"
    ),
    "consul|nomad": ProgramEntry(does=[ASKS_A_SERVICE], answers_to="version", traits="answers"),
    "sops": ProgramEntry(does=[ASKS_A_SERVICE, SHOWS_SECRETS], traits="answers"),
    "ansible-vault": ProgramEntry(does=[ASKS_A_SERVICE, SHOWS_SECRETS.on("view|decrypt")]),
    "glab": ProgramEntry(does=[ASKS_A_SERVICE], answers_to="version -h", grant="command", traits="answers"),
    "ngrok|cloudflared|localtunnel|lt": ProgramEntry(does=[ASKS_A_SERVICE, CARRIES]),
    "op": ProgramEntry(does=[SHOWS_SECRETS.on("read|item get")]),
    "pass": ProgramEntry(does=[SHOWS_SECRETS.on("|show")]),
    "gopass|ssh-add|kwallet-query|cmdkey": ProgramEntry(does=[SHOWS_SECRETS]),
    "bw|keyring": ProgramEntry(does=[SHOWS_SECRETS.on("get")]),
    "lpass": ProgramEntry(does=[SHOWS_SECRETS.on("show")]),
    "security": ProgramEntry(does=[SHOWS_SECRETS.on("find-generic-password|find-internet-password|dump-keychain")]),
    "secret-tool": ProgramEntry(does=[SHOWS_SECRETS.on("lookup")]),
    "gpg": ProgramEntry(
        does=[
            SHOWS_SECRETS.on("--export-secret-keys"),
            EffectEntry("high", "reads", "shows secret keys", options="--export-secret-keys --export-secret-subkeys"),
            MAY_WRITE_OR_START,
        ],
        traits="answers",
    ),
    "doppler": ProgramEntry(does=[SHOWS_SECRETS.on("secrets")]),
    "psql|mysql": ProgramEntry(
        does=[DATABASE, CHANGES_DATA, STARTS_BY_OPTION_OR_SOURCE.on(options="--pager")],
        answers_to="-V",
        grant="line",
        traits="answers typed-code",
    ),
    "mariadb|mongo|cqlsh|sqlcmd|clickhouse-client|duckdb": ProgramEntry(
        does=[DATABASE, CHANGES_DATA], traits="typed-code"
    ),
    "sqlite3": ProgramEntry(
        does=[DATABASE, CHANGES_DATA, MAY_WRITE_OR_START], answers_to="-version", grant="line", traits="answers"
    ),
    "mongosh": ProgramEntry(does=[DATABASE, CHANGES_DATA], traits="answers typed-code"),
    "redis-cli": ProgramEntry(does=[DATABASE, CHANGES_DATA], answers_to="-v", traits="answers typed-code"),
    """
        influx|pg_restore|pg_dump|mysqldump|mongodump|mongorestore|createdb|sequelize|knex|typeorm|flyway|liquibase|
        createuser
    """: ProgramEntry(does=[DATABASE]),
    "prisma": ProgramEntry(does=[DATABASE, DELETES_DATABASE.on("migrate reset")]),
    "dropdb|dropuser|pg_dropcluster|pg_resetwal|initdb": ProgramEntry(does=[DELETES_DATABASE]),
    "mysqladmin": ProgramEntry(does=[DELETES_DATABASE.on("drop|")]),
}
