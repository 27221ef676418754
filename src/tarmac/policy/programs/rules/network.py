"""Programs that speak with other machines, containers, clusters, clouds and databases."""

from tarmac.policy.programs.rules import EffectEntry, ProgramEntry, WrapperEntry
from tarmac.policy.programs.rules import common_effects as effect

# fmt: off
PROGRAMS = {
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
        elinks|httrack|youtube-dl|yt-dlp|ping6|traceroute|tracepath|mtr|drill|whois|masscan|grpcurl|ab|wrk|hey|siege|k6|
        vegeta|iperf|iperf3|tshark|wireshark|arp-scan|dhclient|hping3|speedtest|speedtest-cli|git-remote-https|
        magic-wormhole|irssi|sensible-browser|google-chrome|firefox|chromium|notify-send|say|write
    """: ProgramEntry(does=[effect.CONNECTS]),
    "ftp": ProgramEntry(does=[effect.CONNECTS, effect.CARRIES], traits="fetches typed-code"),
    "sftp": ProgramEntry(
        does=[effect.CONNECTS, effect.CARRIES, effect.STARTS_ANOTHER], grant="line", traits="sends carries typed-code",
    ),
    "tftp": ProgramEntry(does=[effect.CONNECTS, effect.CARRIES], traits="fetches"),
    "lftp|croc|mail|mailx|sendmail": ProgramEntry(does=[effect.CONNECTS, effect.CARRIES], traits="sends"),
    "telnet": ProgramEntry(does=[effect.CONNECTS], grant="line", traits="sends typed-code"),
    "ping|nslookup|host|wscat|websocat": ProgramEntry(does=[effect.CONNECTS], traits="sends"),
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
    "skopeo|lxd|colima|limactl|containerd|kompose|dive|buildctl|docker-machine": ProgramEntry(
        does=[effect.STEERS_CONTAINERS],
    ),
    "eksctl|kops|flux": ProgramEntry(does=[effect.DELETES_IN_CLUSTER.on("delete"), effect.CHANGES_CLUSTER]),
    "argocd": ProgramEntry(does=[effect.DELETES_IN_CLUSTER.on("app delete"), effect.CHANGES_CLUSTER]),
    "istioctl": ProgramEntry(does=[effect.DELETES_IN_CLUSTER.on("uninstall"), effect.CHANGES_CLUSTER]),
    "kustomize|kubeadm|kubectx|kubens|skaffold|tilt|stern": ProgramEntry(does=[effect.CHANGES_CLUSTER]),
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
    """
        oci|ibmcloud|linode-cli|hcloud|boundary|waypoint|hub|jira|linear|sentry-cli|datadog|stripe|twilio|railway|
        render|cf|osc
    """: ProgramEntry(does=[effect.ASKS_A_SERVICE]),
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
