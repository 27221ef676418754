"""What commands do that are not proven to only read, and how much that weighs.

run      the words a command begins with, options left out ("docker rm"); `|` separates several
options  it has one of these, bundled or shortened or not; of several groups (a list), one of each
operand  a regular expression that one of its operands matches
kind     what sort of thing it does: rule.EffectKind
risk     low, medium, high, critical; the highest that matches counts
does     what a person reads; {what} stands for the operands, {words} for the same with blanks between
skip     how many operands {what} leaves out (a mode, an owner)
instead  it counts in place of those before it, also when it weighs less
vague    not said where something else is known of the command

git is in git.py. What a program does to files (rm, cp, dd, find …) depends on where they are, so it is in specials.py
and files_touched.py.
"""

from tarmac.policy.programs.rules.table import EffectEntry

EFFECTS = [
    # ── packages
    EffectEntry(
        run="""
            apt-get remove|apt-get purge|apt-get autoremove|apt remove|apt purge|apt autoremove|yum remove|
            yum erase|dnf remove|dnf autoremove|pacman -R|zypper remove|apk del|rpm -e|dpkg -r|dpkg -P|
            dpkg --remove|dpkg --purge|snap remove|brew uninstall|brew remove|flatpak uninstall
        """,
        risk="high",
        kind="deletes",
        does="removes packages from the machine: {what}",
    ),
    EffectEntry(
        run="pacman", options=["-R"], risk="high", kind="deletes", does="removes packages from the machine: {what}"
    ),
    EffectEntry(
        run="""
            apt-get|apt|aptitude|yum|dnf|pacman|zypper|apk|dpkg|rpm|snap|flatpak|port|emerge|nix-env|nix|guix|
            add-apt-repository|apt-key
        """,
        risk="medium",
        kind="installs",
        does="changes the packages of the machine",
    ),
    EffectEntry(
        run="""
            pip3|pip3 install|pip3 uninstall|npm|npm install|npm ci|npm uninstall|npm update|yarn|pnpm|bun|pip|
            pip install|pip uninstall|pipx|poetry|pdm|uv|pipenv|conda|mamba|gem|bundle|bundler|composer|cargo|
            cargo install|go get|go install|go mod|brew|brew install|rustup|nvm|pyenv|rbenv|asdf|mise|volta|
            corepack|cpan|cpanm|luarocks|opam|cabal|stack|hex|mix|rebar3|dart|flutter|pod|carthage|nuget|dotnet|
            vcpkg|conan|deno|easy_install|sdk|sdkman|helm|virtualenv|pip-compile|pip-sync|bower
        """,
        risk="medium",
        kind="installs",
        does="installs or changes packages, whose scripts run",
    ),
    EffectEntry(
        run="""
            npm publish|npm unpublish|npm deprecate|npm dist-tag|npm owner|yarn publish|pnpm publish|cargo publish|
            cargo yank|twine upload|gem push|poetry publish|uv publish|flit publish|hatch publish|docker push|
            podman push|helm push|vsce publish|gh release create|gh release upload|gh release delete|mvn deploy|
            npm access|npm token
        """,
        risk="high",
        kind="connects",
        does="publishes something for everybody to see",
    ),
    # ── code of the project
    EffectEntry(
        run="""
            make|gmake|cmake|ninja|meson|bazel|ant|mvn|mvnw|gradle|gradlew|sbt|rake|just|task|tox|nox|npm run|
            npm run-script|npm test|npm t|npm start|npm stop|npm restart|yarn run|yarn test|yarn build|yarn start|
            pnpm run|pnpm test|bun run|bun test|deno run|deno task|deno test|cargo build|cargo run|cargo test|
            cargo check|cargo clippy|cargo bench|cargo doc|cargo fmt|cargo fix|go build|go run|go test|go vet|
            go generate|go fmt|go tool|pytest|py.test|jest|vitest|mocha|karma|cypress|playwright|tsc|eslint|
            prettier|webpack|vite|rollup|esbuild|next|nuxt|ng|vue|gulp|grunt|turbo|nx|lerna|rspec|rails|bin/rails|
            django-admin|manage.py|flask|uvicorn|gunicorn|celery|alembic|phpunit|artisan|mix test|dotnet build|
            dotnet run|dotnet test|swift build|swift run|swift test|xcodebuild|javac|java|gcc|g++|cc|c++|clang|
            clang++|ld|rustc|ghc|ocamlfind|dune|zig|nim|crystal|kotlinc|scalac|ctest|autoconf|automake|./configure|
            configure|ruff|black|isort|flake8|mypy|pylint|pyright|pre-commit|coverage|sphinx-build|mkdocs|hugo|
            jekyll|storybook|tsx|ts-node|nodemon|pm2|serve|http-server|forever|foreman|honcho|overmind|streamlit|
            jupyter|ipython|scrapy|ansible|ansible-playbook|vagrant|packer|molecule|black|biome|stylelint|rubocop|
            golangci-lint|gofmt|goimports|rustfmt|clang-format|clang-tidy|shfmt|terraform fmt|buf|protoc|swiftlint|
            ktlint|detekt|spotless|checkstyle|phpstan|psalm|php-cs-fixer|hadolint|yamllint|markdownlint|dbt|airflow|
            prefect|dagster|spark-submit|hardhat|forge|truffle|anchor|solana|expo|react-native|fastlane|tauri|
            electron|cordova|ionic|capacitor
        """,
        risk="medium",
        kind="runs-project",
        does="runs code of the project",
    ),
    EffectEntry(
        run="""
            python|python2|pypy|node|nodejs|ruby|perl|php|lua|luajit|Rscript|R|julia|elixir|erl|iex|irb|pry|ghci|
            runghc|scala|groovy|kotlin|swift|osascript|tclsh|wish|expect|guile|racket|sbcl|clisp|pwsh|powershell|
            bun|deno|gdb|lldb|tsx|dotnet|mono|wine|qemu-system-x86_64|octave|gnuplot|maxima|jshell|ts-node
        """,
        risk="medium",
        kind="runs",
        does="runs a program: {what}",
    ),
    EffectEntry(
        run="python|python2|pypy|node|nodejs|ruby|perl|php|lua|luajit|Rscript|R|julia|elixir|deno|bun",
        options=["-c -e -r --eval -E"],
        risk="medium",
        kind="runs",
        does="runs code: {what}",
        instead=True,
    ),
    EffectEntry(
        run="bash|sh|zsh|dash|ksh|mksh|fish|ash|rbash|csh|tcsh|source|.",
        risk="medium",
        kind="runs",
        does="runs a script: {what}",
    ),
    # ── containers and clusters
    EffectEntry(
        run="""
            docker rm|docker rmi|docker container rm|docker container remove|docker image rm|docker image remove|
            docker volume rm|docker volume prune|docker network rm|docker stack rm|docker service rm|
            docker secret rm|docker config rm|docker context rm|docker swarm leave|docker node rm|docker plugin rm|
            docker buildx rm|podman rm|podman rmi|podman volume rm|podman pod rm|podman system reset|nerdctl rm|
            nerdctl rmi|ctr images rm|crictl rmi|lxc delete|multipass delete|virsh destroy|virsh undefine|
            vagrant destroy|minikube delete|kind delete|k3d cluster delete
        """,
        risk="high",
        kind="deletes",
        does="deletes containers, images or what they keep: {what}",
    ),
    EffectEntry(
        run="""
            docker system prune|docker image prune|docker container prune|docker network prune|docker builder prune|
            docker buildx prune|podman system prune|podman image prune
        """,
        risk="medium",
        kind="deletes",
        does="deletes containers, images and networks that are not in use",
    ),
    EffectEntry(
        run="docker system prune|podman system prune",
        options=["--volumes"],
        risk="high",
        kind="deletes",
        does="deletes containers, images, networks and volumes that are not in use",
    ),
    EffectEntry(
        run="docker compose down|docker-compose down|docker compose rm|docker-compose rm",
        options=["-v --volumes --rmi"],
        risk="high",
        kind="deletes",
        does="stops the services and deletes their data",
    ),
    EffectEntry(
        run="""
            docker|docker-compose|podman|buildah|skopeo|nerdctl|ctr|crictl|lxc|lxd|multipass|virsh|minikube|kind|
            k3d|colima|limactl|containerd|kompose|dive|buildctl|docker-machine
        """,
        risk="medium",
        kind="connects",
        does="builds or steers containers",
    ),
    EffectEntry(
        run="docker run|docker create|podman run|docker container run",
        options=["--privileged --pid --cap-add --device --userns --security-opt"],
        risk="high",
        kind="runs",
        does="starts a container with power over the machine",
    ),
    EffectEntry(
        run="docker run|docker create|podman run|docker container run|docker compose run",
        operand=(
            r"^(/|/etc|/root|/home|/var/run/docker\.sock|/proc|/sys|/dev|~[^:]*):|docker\.sock|source=/(,|$)|"
            "src=/(,|$)"
        ),
        risk="high",
        kind="runs",
        does="starts a container that reaches the machine's own files",
    ),
    EffectEntry(
        run="""
            kubectl delete|kubectl drain|kubectl cordon|kubectl taint|kubectl replace|oc delete|helm uninstall|
            helm delete|kubectl rollout undo|eksctl delete|kops delete|flux delete|argocd app delete|
            istioctl uninstall
        """,
        risk="high",
        kind="connects",
        does="deletes or empties objects of the cluster: {words}",
    ),
    EffectEntry(
        run="""
            kubectl get secret|kubectl get secrets|kubectl describe secret|kubectl describe secrets|oc get secret|
            helm get values
        """,
        risk="high",
        kind="reads",
        does="shows secrets of the cluster",
    ),
    EffectEntry(
        run="""
            kubectl|oc|helm|kustomize|k9s|istioctl|argocd|flux|eksctl|kops|kubeadm|kubectx|kubens|skaffold|tilt|
            stern
        """,
        risk="medium",
        kind="connects",
        does="changes the cluster, or asks more of it than is known",
    ),
    EffectEntry(
        run="kubectl config view",
        options=["--raw --flatten"],
        risk="high",
        kind="reads",
        does="shows the keys of the cluster",
    ),
    # ── clouds and databases
    EffectEntry(
        run="""
            terraform destroy|tofu destroy|terragrunt destroy|pulumi destroy|cdk destroy|serverless remove|
            sls remove|heroku apps:destroy|heroku pg:reset|fly apps destroy|flyctl apps destroy|
            gcloud projects delete|gh repo delete|aws s3 rb|firebase projects:delete|vercel remove|
            netlify sites:delete|doctl compute droplet delete|az group delete
        """,
        risk="high",
        kind="connects",
        does="destroys what runs somewhere else",
    ),
    EffectEntry(
        run="""
            terraform apply|tofu apply|terragrunt apply|pulumi up|cdk deploy|serverless deploy|sls deploy|
            terraform import|terraform state rm|terraform state mv|terraform taint|terraform force-unlock|vercel|
            netlify deploy|firebase deploy|fly deploy|flyctl deploy|heroku run|heroku releases:rollback|
            wrangler deploy|wrangler publish|gcloud app deploy|gcloud run deploy|eb deploy|cap
        """,
        risk="high",
        kind="connects",
        does="changes what runs somewhere else",
    ),
    EffectEntry(
        run="""
            terraform|tofu|terragrunt|pulumi|cdk|serverless|sls|aws|gcloud|gsutil|bq|az|doctl|fly|flyctl|netlify|
            firebase|wrangler|supabase|eb|oci|ibmcloud|linode-cli|hcloud|rclone|s3cmd|mc|vault|consul|nomad|
            boundary|waypoint|sops|ansible-vault|gh|glab|hub|jira|linear|sentry-cli|datadog|stripe|twilio|ngrok|
            cloudflared|localtunnel|lt|tailscale|heroku|railway|render|cf|osc
        """,
        risk="medium",
        kind="connects",
        does="speaks with a service somewhere else",
    ),
    EffectEntry(
        run="""
            aws s3 rm|aws s3 rb|gsutil rm|gsutil rb|rclone delete|rclone purge|rclone sync|s3cmd del|s3cmd rb|
            aws ec2 terminate-instances|aws rds delete-db-instance|aws dynamodb delete-table|
            aws cloudformation delete-stack|aws lambda delete-function|aws iam delete-user|gh repo delete|
            gh repo archive|gh release delete|gh secret delete|gh secret set|gh issue delete|gh pr merge|bq rm|
            gcloud compute instances delete|gcloud sql instances delete|kubectl delete
        """,
        risk="high",
        kind="connects",
        does="deletes or changes what is kept somewhere else",
    ),
    EffectEntry(
        run="aws|gcloud|az|gsutil",
        operand="^(delete|terminate|destroy|remove|purge)(-|$)|-delete$",
        risk="high",
        kind="connects",
        does="deletes what is kept somewhere else",
    ),
    EffectEntry(
        run="""
            aws secretsmanager get-secret-value|aws ssm get-parameter|aws configure get|
            gcloud auth print-access-token|gcloud secrets versions access|az account get-access-token|vault read|
            vault kv get|vault kv|op read|op item get|pass|pass show|gopass|bw get|lpass show|
            security find-generic-password|security find-internet-password|security dump-keychain|
            secret-tool lookup|gh auth token|heroku config|heroku auth:token|fly auth token|keyring get|
            gpg --export-secret-keys|ssh-add|npm token|doppler secrets|sops|ansible-vault view|
            ansible-vault decrypt|kwallet-query|cmdkey
        """,
        risk="high",
        kind="reads",
        does="shows secrets",
    ),
    EffectEntry(
        run="gpg",
        options=["--export-secret-keys --export-secret-subkeys"],
        risk="high",
        kind="reads",
        does="shows secret keys",
    ),
    EffectEntry(run="gh auth status", options=["-t --show-token"], risk="high", kind="reads", does="shows secrets"),
    EffectEntry(
        run="""
            psql|mysql|mariadb|sqlite3|mongo|mongosh|redis-cli|cqlsh|sqlcmd|influx|clickhouse-client|duckdb|
            pg_restore|pg_dump|mysqldump|mongodump|mongorestore|createdb|prisma|sequelize|knex|typeorm|flyway|
            liquibase|createuser
        """,
        risk="medium",
        kind="connects",
        does="works on a database",
    ),
    EffectEntry(
        run="psql|mysql|mariadb|sqlite3|mongo|mongosh|redis-cli|cqlsh|sqlcmd|clickhouse-client|duckdb|mongo",
        operand=(
            r"(?i)\b(drop|truncate|delete|flushall|flushdb|dropdatabase|remove|deletemany|alter|grant|"
            r"shutdown|config)\b"
        ),
        risk="high",
        kind="deletes",
        does="deletes or changes data of a database",
    ),
    EffectEntry(
        run="""
            dropdb|dropuser|pg_dropcluster|rails db:drop|rails db:reset|rake db:drop|rake db:reset|
            prisma migrate reset|manage.py flush|php artisan migrate:fresh|mysqladmin drop|mysqladmin|pg_resetwal|
            initdb
        """,
        risk="high",
        kind="deletes",
        does="deletes a database",
    ),
    # ── the machine
    EffectEntry(
        run="chmod|chown|chgrp|setfacl|umask|chflags|xattr",
        risk="medium",
        kind="writes",
        does="changes who may read or write {what}",
        skip=1,
    ),
    EffectEntry(
        run="chattr|setcap|visudo|setenforce|semanage|restorecon|aa-disable|apparmor_parser",
        risk="high",
        kind="machine",
        does="changes rights of the machine",
    ),
    EffectEntry(
        run="kill|pkill|killall|xkill|skill|snice|renice|fuser",
        risk="medium",
        kind="machine",
        does="ends or steers processes",
    ),
    EffectEntry(
        run="""
            shutdown|reboot|halt|poweroff|init|telinit|systemctl poweroff|systemctl reboot|systemctl halt|
            systemctl suspend|systemctl hibernate|systemctl rescue|systemctl emergency|systemctl isolate|pm-suspend|
            loginctl terminate-user
        """,
        risk="high",
        kind="machine",
        does="brings the machine to a halt",
    ),
    EffectEntry(
        run="""
            systemctl|service|launchctl|rc-service|supervisorctl|sv|s6-rc|initctl|loginctl|update-rc.d|chkconfig|
            brew services
        """,
        risk="medium",
        kind="machine",
        does="steers the machine's services",
    ),
    EffectEntry(
        run="""
            systemctl start|systemctl daemon-reload|systemctl import-environment|loginctl enable-linger|
            systemctl disable|systemctl mask|systemctl enable|systemctl link|systemctl edit|systemctl set-default|
            launchctl load|launchctl bootstrap|launchctl unload|launchctl submit|update-rc.d|chkconfig
        """,
        risk="high",
        kind="configures",
        does="changes what starts with the machine",
    ),
    EffectEntry(
        run="systemctl enable|systemctl start|launchctl load",
        options=["--user"],
        risk="high",
        kind="configures",
        does="changes what starts by itself",
    ),
    EffectEntry(
        run="crontab|at|batch|atrm|anacron", risk="high", kind="configures", does="changes what runs by itself later"
    ),
    EffectEntry(
        run="""
            useradd|adduser|usermod|userdel|deluser|groupadd|groupdel|groupmod|gpasswd|passwd|chpasswd|chsh|chfn|
            vipw|vigr|newgrp|su|sudoedit|visudo|dscl|sysadminctl|ssh-copy-id|authselect|pam-auth-update
        """,
        risk="high",
        kind="machine",
        does="changes who may use the machine",
    ),
    EffectEntry(
        run="""
            iptables|ip6tables|nft|ufw|firewall-cmd|pfctl|ipset|ebtables|tc|route|ifconfig|ip|iw|iwconfig|nmcli|
            networksetup|ethtool|brctl|ovs-vsctl|wg|wg-quick|openvpn|resolvectl|scutil|netsh|arp
        """,
        risk="high",
        kind="machine",
        does="changes the network of the machine",
    ),
    EffectEntry(
        run="""
            mount|umount|losetup|swapon|swapoff|modprobe|insmod|rmmod|depmod|sysctl|kexec|hdparm|smartctl|nvme|
            blockdev|dmsetup|update-grub|grub-install|efibootmgr|bcdedit|dracut|update-initramfs|fsck|e2fsck|
            tune2fs|resize2fs|xfs_repair|debugfs|quotacheck|date|hwclock|timedatectl|hostnamectl|hostname|localectl|
            dpkg-reconfigure|update-alternatives|ldconfig|alternatives|defaults|csrutil|spctl|nvram|diskutil|tmutil|
            dmesg|telinit|setterm|loadkeys
        """,
        risk="high",
        kind="machine",
        does="changes how the machine is set up",
    ),
    EffectEntry(
        run="date|hostname|mount|sysctl|update-alternatives|defaults|ip|ifconfig|dmesg|arp|route|smartctl|fuser",
        risk="medium",
        kind="machine",
        does="asks or changes how the machine is set up",
        instead=True,
    ),
    EffectEntry(
        run="""
            fdisk|sfdisk|cfdisk|gdisk|sgdisk|parted|wipefs|mkswap|blkdiscard|cryptsetup|lvremove|vgremove|pvremove|
            lvreduce|zpool|zfs|mdadm|badblocks|newfs|newfs_msdos|format|diskpart|mke2fs|mkdosfs|mkntfs|hdiutil|
            ddrescue|dcfldd|nvme format|diskutil eraseDisk|diskutil eraseVolume|sg_format|flashrom|fwupdmgr|dc3dd
        """,
        risk="critical",
        kind="machine",
        does="can destroy a disk and all on it",
    ),
    EffectEntry(
        run="shred", risk="high", kind="deletes", does="overwrites files so that nobody can bring them back: {what}"
    ),
    EffectEntry(
        run="zpool list|zpool status|zfs list|diskutil list|hdiutil info",
        risk="medium",
        kind="reads",
        does="shows the disks",
        instead=True,
    ),
    # ── network
    EffectEntry(
        run="""
            curl|wget|aria2c|axel|http|https|httpie|xh|fetch|lynx|links|w3m|elinks|httrack|youtube-dl|yt-dlp|ftp|
            sftp|tftp|lftp|telnet|ping|ping6|traceroute|tracepath|mtr|dig|nslookup|host|drill|whois|nmap|masscan|nc|
            ncat|netcat|socat|openssl s_client|ssh|scp|rsync|mosh|smbclient|wscat|websocat|grpcurl|ab|wrk|hey|siege|
            k6|vegeta|iperf|iperf3|tcpdump|tshark|wireshark|arp-scan|dhclient|hping3|speedtest|speedtest-cli|
            git-remote-https|croc|wormhole|magic-wormhole|onionshare|transfer|rclone|mail|mailx|sendmail|mutt|swaks|
            irssi|gcloud|xdg-open|open|start|sensible-browser|google-chrome|firefox|chromium|notify-send|say|wall|
            write
        """,
        risk="medium",
        kind="connects",
        does="speaks with another machine",
    ),
    EffectEntry(
        run="curl",
        options=["-T --upload-file -F --form --form-string"],
        risk="high",
        kind="connects",
        does="sends data to another machine",
    ),
    EffectEntry(
        run="curl", operand="^@|^[A-Za-z_]*=?@|=@", risk="high", kind="connects", does="sends a file to another machine"
    ),
    EffectEntry(
        run="wget",
        options=["--post-file --body-file --use-askpass"],
        risk="high",
        kind="connects",
        does="sends a file to another machine, or starts a program",
    ),
    EffectEntry(
        run="wget",
        options=["--post-data --body-data"],
        risk="medium",
        kind="connects",
        does="sends data to another machine",
    ),
    EffectEntry(
        run="curl", options=["-K --config"], risk="high", kind="connects", does="does what a file of options says"
    ),
    EffectEntry(
        run="""
            scp|sftp|rsync|croc|wormhole|ftp|lftp|tftp|smbclient|mail|mailx|sendmail|mutt|swaks|transfer|ngrok|
            cloudflared|localtunnel|lt|onionshare
        """,
        risk="high",
        kind="connects",
        does="carries data to or from another machine",
    ),
    EffectEntry(run="rsync", risk="medium", kind="writes", does="copies files: {what}", instead=True),
    EffectEntry(
        run="rsync",
        options=[
            """
                --delete --delete-before --delete-after --delete-during --delete-excluded --remove-source-files -e
                --rsh --rsync-path
            """
        ],
        risk="high",
        kind="deletes",
        does="copies files and deletes others: {what}",
    ),
    EffectEntry(
        run="rsync|scp",
        operand="^[^/:]+:",
        risk="high",
        kind="connects",
        does="carries data to or from another machine",
    ),
    EffectEntry(
        run="nc|ncat|netcat|socat",
        options=["-l -k --listen"],
        risk="high",
        kind="connects",
        does="opens this machine to others",
    ),
    EffectEntry(
        run="nc|ncat|netcat|socat|busybox nc",
        options=["-e -c --exec --sh-exec --lua-exec"],
        risk="critical",
        kind="connects",
        does="gives another machine a shell on this one",
    ),
    EffectEntry(
        run="socat",
        operand="(?i)(exec|system|shell):",
        risk="critical",
        kind="connects",
        does="gives another machine a shell on this one",
    ),
    EffectEntry(
        run="ssh",
        options=["-R -D -w"],
        risk="high",
        kind="connects",
        does="opens a way into this machine or its network",
    ),
    EffectEntry(
        run="ssh|scp|sftp|rsync",
        operand="(?i)(proxycommand|localcommand|permitlocalcommand|knownhostscommand)",
        risk="high",
        kind="runs",
        does="starts another program",
    ),
    EffectEntry(
        run="python -m http.server|python -m SimpleHTTPServer|php -S|serve|http-server",
        risk="medium",
        kind="connects",
        does="shows files to others over the network",
    ),
    EffectEntry(
        run="python -m http.server|python -m SimpleHTTPServer|http-server|serve",
        operand=r"^(/|~|\.\.)",
        risk="high",
        kind="connects",
        does="shows files outside of the workspace to others over the network",
    ),
    EffectEntry(
        run="""
            msfvenom|msfconsole|hydra|john|hashcat|sqlmap|mimikatz|nikto|responder|bettercap|ettercap|aircrack-ng|
            metasploit|xmrig|minerd|linpeas|pspy|chisel|frpc|ligolo|evil-winrm|crackmapexec
        """,
        risk="critical",
        kind="connects",
        does="attacks machines, or mines coins",
    ),
    # ── reading programs that start or write something by an option
    EffectEntry(
        run="rg",
        options=["--pre --hostname-bin"],
        risk="high",
        kind="runs",
        does="starts another program by an option, or believes another source",
    ),
    EffectEntry(
        run="ag|ack|bat|batcat|git log|journalctl|psql|mysql",
        options=["--pager"],
        risk="high",
        kind="runs",
        does="starts another program by an option, or believes another source",
    ),
    EffectEntry(
        run="fd|fdfind",
        options=["--exec --exec-batch"],
        risk="high",
        kind="runs",
        does="starts another program by an option, or believes another source",
    ),
    EffectEntry(
        run="sort",
        options=["--compress-program"],
        risk="high",
        kind="runs",
        does="starts another program by an option, or believes another source",
    ),
    EffectEntry(
        run="tar|bsdtar",
        options=[
            """
                --use-compress-program --to-command --checkpoint-action --rsh-command --info-script
                --new-volume-script --rmt-command
            """
        ],
        risk="high",
        kind="runs",
        does="starts another program by an option, or believes another source",
    ),
    EffectEntry(
        run="man",
        options=["--pager --html --preprocessor --browser --gxditview --troff-device --config-file"],
        risk="high",
        kind="runs",
        does="starts another program by an option, or believes another source",
    ),
    EffectEntry(
        run="zip",
        options=["--unzip-command"],
        risk="high",
        kind="runs",
        does="starts another program by an option, or believes another source",
    ),
    EffectEntry(
        run="split",
        options=["--filter"],
        risk="high",
        kind="runs",
        does="starts another program by an option, or believes another source",
    ),
    EffectEntry(
        run="diff3|sdiff",
        options=["--diff-program"],
        risk="high",
        kind="runs",
        does="starts another program by an option, or believes another source",
    ),
    EffectEntry(
        run="helm",
        options=["--post-renderer --kubeconfig"],
        risk="high",
        kind="runs",
        does="starts another program by an option, or believes another source",
    ),
    EffectEntry(
        run="kubectl|oc",
        options=["--kubeconfig"],
        risk="high",
        kind="runs",
        does="starts another program by an option, or believes another source",
    ),
    EffectEntry(
        run="fzf",
        options=["--preview --bind"],
        risk="high",
        kind="runs",
        does="starts another program by an option, or believes another source",
    ),
    EffectEntry(
        run="rsync",
        options=["--rsh --rsync-path"],
        risk="high",
        kind="runs",
        does="starts another program by an option, or believes another source",
    ),
    EffectEntry(
        run="npm|npx|pnpm|yarn",
        options=["--script-shell --node-options --globalconfig --userconfig --registry"],
        risk="high",
        kind="runs",
        does="starts another program by an option, or believes another source",
    ),
    EffectEntry(
        run="pip|pip3|pip install|pip3 install",
        options=["--index-url --extra-index-url --find-links --python --trusted-host"],
        risk="high",
        kind="runs",
        does="starts another program by an option, or believes another source",
    ),
    EffectEntry(
        run="cpio",
        options=["--rsh-command"],
        risk="high",
        kind="runs",
        does="starts another program by an option, or believes another source",
    ),
    EffectEntry(
        run="openssl",
        options=["--engine -engine -provider"],
        risk="high",
        kind="runs",
        does="starts another program by an option, or believes another source",
    ),
    EffectEntry(
        run="gcc|cc|clang|g++",
        options=["-fplugin --wrapper -wrapper"],
        risk="high",
        kind="runs",
        does="starts another program by an option, or believes another source",
    ),
    EffectEntry(
        run="tcpdump",
        options=["-z"],
        risk="high",
        kind="runs",
        does="starts another program by an option, or believes another source",
    ),
    EffectEntry(
        run="delta",
        options=["--pager"],
        risk="high",
        kind="runs",
        does="starts another program by an option, or believes another source",
    ),
    EffectEntry(
        run="wget",
        options=["--use-askpass"],
        risk="high",
        kind="runs",
        does="starts another program by an option, or believes another source",
    ),
    EffectEntry(
        run="xargs|parallel",
        options=["--arg-file -a"],
        risk="high",
        kind="runs",
        does="starts another program by an option, or believes another source",
    ),
    EffectEntry(
        run="svn|hg",
        options=["--config --config-option"],
        risk="high",
        kind="runs",
        does="starts another program by an option, or believes another source",
    ),
    EffectEntry(
        run="cargo",
        options=["--config"],
        risk="high",
        kind="runs",
        does="starts another program by an option, or believes another source",
    ),
    EffectEntry(
        run="man", options=["-P -H -p -X -C"], risk="high", kind="runs", does="starts another program by an option"
    ),
    EffectEntry(
        run="fd|fdfind", options=["-x -X"], risk="high", kind="runs", does="runs a command on each file it finds"
    ),
    EffectEntry(
        run="tar|bsdtar", options=["-I -F"], risk="high", kind="runs", does="starts another program by an option"
    ),
    EffectEntry(
        run="""
            tar|bsdtar|zip|unzip|gzip|gunzip|bzip2|bunzip2|xz|unxz|zstd|unzstd|7z|7za|rar|unrar|cpio|ar|jar|
            compress|uncompress|pigz|lz4|brotli|zipnote|zipsplit
        """,
        risk="medium",
        kind="writes",
        does="packs or unpacks files: {what}",
    ),
    EffectEntry(
        run="""
            split|csplit|patch|ed|ex|vi|vim|nvim|nano|emacs|pico|micro|helix|hx|code|subl|cursor|mkfifo|mknod|
            install|rename|mmv|dos2unix|unix2dos|recode|convert|magick|mogrify|ffmpeg|pandoc|pdflatex|latex|xelatex|
            inkscape|gimp|soffice|libreoffice|exiftool|jpegoptim|optipng|sox|dot|mmdc|wkhtmltopdf|asciidoctor|groff|
            gpg|openssl|ssh-keygen|age|age-keygen|minisign|signify|cosign|xdotool|xclip|xsel|pbcopy|pbpaste|wl-copy|
            tmux|screen|zellij|script|ttyrec|asciinema|dialog|whiptail|stow|chezmoi|ln|link|mktemp|updatedb|mandb|
            texhash|gsettings|dconf|gconftool-2|sponge|logger|systemd-cat|wall|mesg|stty|tput|reset|clear|setterm|
            less|more|top|htop|btop|iotop|nvtop|ncdu|lazygit|tig|k9s|fzf|xxd|yes|sqlite3|jo|envsubst|gettext|msgfmt|
            xgettext|m4|cpp|awk|gawk|sed|find|sort|tee|yq|rg|fd|tree|date|watch|dmesg|journalctl|ltrace|strace|perf|
            bpftrace|dtrace|lsof|ss|netstat|ps|man|info|tldr|file|column|git|npx|docker|rpm|hexdump|xmllint|bc|dc|
            units|look|ptx|gnuplot|base64|iconv|uniq|shuf|sdiff|diff3|w|who|last|env|printenv|locate|crontab|
            apt-cache|brew|snap|rustc|cargo|go|pip|npm|ldd|pmap|gcore|fuser|getfacl|ldapsearch|dig|history|fc|jobs|
            type|hash
        """,
        risk="medium",
        kind="may",
        does="may write a file or start a program",
        vague=True,
    ),
    # ── the shell itself
    EffectEntry(run="eval", risk="medium", kind="runs", does="runs text as a command"),
    EffectEntry(
        run="""
            export|declare|typeset|local|readonly|unset|alias|unalias|set|shopt|setopt|unsetopt|enable|hash|trap|
            bind|complete|compgen|compopt|umask|ulimit|exit|logout|return|break|continue|shift|getopts|read|mapfile|
            readarray|let|disown|bg|fg|wait|suspend|times|pushd|popd|dirs|caller|exec|zle|bindkey|zmodload|autoload|
            emulate|vared|print|functions|zcompile|zstyle|zformat|zparseopts|sched|ztcp|zpty|coproc|function|
            deactivate|activate|workon|conda|nvm|rvm|chruby|source
        """,
        risk="medium",
        kind="shell",
        does="changes the shell itself",
    ),
    EffectEntry(
        run="exit|logout|return|break|continue|shift|times|dirs|caller|wait|jobs|pushd|popd|history|cd|type|read",
        risk="low",
        kind="shell",
        does="works on the shell itself",
        instead=True,
    ),
    EffectEntry(run="[[|((|let", risk="low", kind="shell", does="compares or calculates", instead=True),
    EffectEntry(run="history", risk="low", kind="reads", does="shows the shell's history", instead=True),
    EffectEntry(
        run="history|fc",
        options=["-c -d -w -a -s -r -n -e -p"],
        risk="medium",
        kind="shell",
        does="changes the shell's history, or runs from it",
    ),
    EffectEntry(
        run="mkdir|touch|cp|mv|rmdir|unlink|truncate",
        risk="medium",
        kind="writes",
        does="makes or changes files: {what}",
        vague=True,
    ),
    EffectEntry(run="tarmac", risk="high", kind="runs", does="steers Tarmac itself"),
    EffectEntry(
        run="claude|codex|gemini|aider|goose|opencode|cursor-agent|amp|crush|copilot",
        risk="high",
        kind="runs",
        does="starts another agent",
    ),
    EffectEntry(
        run="""
            npm install|npm i|npm add|npx|pip install|pip3 install|yarn add|pnpm add|cargo install|go install|
            go run|gem install|brew install|uv pip install|npm exec
        """,
        operand=r"^(https?|ftp|git|ssh|file)(\+\w+)?://|^git@|\.tgz$|^git\+",
        risk="high",
        kind="installs",
        does="installs code from an address, and runs its scripts",
    ),
    EffectEntry(
        run="""
            npm config set|npm set|pip config set|yarn config set|git config --global|go env -w|cargo login|
            npm login|npm adduser|docker login|gh auth login
        """,
        risk="high",
        kind="configures",
        does="changes settings of the user that stay",
    ),
    EffectEntry(
        run="docker login|npm login|gh auth login|cargo login|git config --global|yarn config set",
        risk="medium",
        kind="configures",
        does="changes settings of the user that stay",
        instead=True,
    ),
    EffectEntry(
        run="""
            gio trash|trash|trash-put|trash-empty|rmtrash|rimraf|del-cli|del|erase|rd|Remove-Item|ri|srm|wipe|scrub|
            bleachbit
        """,
        risk="high",
        kind="deletes",
        does="deletes {what}",
    ),
    EffectEntry(
        run="jq|gojq|jaq|xargs|parallel|journalctl|kubectl|docker inspect",
        risk="medium",
        kind="may",
        does="may read or start something else",
        vague=True,
    ),
    # ── what reaches further than the entries above say
    EffectEntry(
        run="""
            systemctl stop|systemctl restart|systemctl kill|systemctl try-restart|systemctl reload-or-restart|
            systemctl revert|systemctl set-property|systemctl reset-failed|launchctl stop|launchctl kickstart|
            rc-service
        """,
        risk="high",
        kind="machine",
        does="stops or starts services of the machine: {what}",
    ),
    EffectEntry(
        run="service",
        operand="^(stop|start|restart|force-reload|reload|kill)$",
        risk="high",
        kind="machine",
        does="stops or starts services of the machine: {what}",
    ),
    EffectEntry(
        run="sysctl",
        options=["-w --write -p --load --system"],
        risk="high",
        kind="machine",
        does="changes how the machine's kernel works",
    ),
    EffectEntry(run="sysctl", operand="=", risk="high", kind="machine", does="changes how the machine's kernel works"),
    EffectEntry(
        run="printenv",
        operand="(?i)(token|secret|passw|credential|(api|private|access)_?key|_auth|(^|_)(key|pwd|pass)$)",
        risk="high",
        kind="reads",
        does="shows {what}, which is named like a secret",
    ),
    EffectEntry(
        run="go run", operand="@", risk="high", kind="runs", does="fetches code from elsewhere and runs it: {what}"
    ),
    EffectEntry(
        run="deno run|deno install|deno serve|deno test|deno eval|deno|bun run|bun|node|deno task",
        operand="^(https?://|jsr:|npm:)",
        risk="high",
        kind="runs",
        does="fetches code from elsewhere and runs it: {what}",
    ),
]

# Programs that change the machine, asked to only show something. Each is followed by what makes it change
# something after all. Read after EFFECTS and git's.

SHOWS = [
    EffectEntry(
        run="fdisk|sfdisk|gdisk|sgdisk|parted|cfdisk",
        options=["-l --list -s --show-size -p --print"],
        risk="low",
        kind="reads",
        does="shows the disks",
        instead=True,
    ),
    EffectEntry(
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
    EffectEntry(
        run="parted",
        operand="^(mk|rm|resize|set|rescue|name|toggle|disk_)",
        risk="critical",
        kind="machine",
        does="can destroy a disk and all on it",
    ),
    EffectEntry(
        run="""
            cryptsetup status|cryptsetup luksDump|cryptsetup isLuks|zpool list|zpool status|zfs list|zfs get|
            diskutil list|diskutil info|nvme list|mdadm --detail|losetup --list|dmsetup ls|dmsetup info
        """,
        risk="low",
        kind="reads",
        does="shows the disks",
        instead=True,
    ),
    EffectEntry(
        run="iptables|ip6tables",
        options=["-L -S --list --list-rules"],
        risk="low",
        kind="reads",
        does="shows the rules of the network",
        instead=True,
    ),
    EffectEntry(
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
    EffectEntry(
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
    EffectEntry(
        run="ldconfig",
        options=["-p --print-cache"],
        risk="low",
        kind="reads",
        does="shows which libraries are known",
        instead=True,
    ),
    EffectEntry(
        run="swapon",
        options=["-s --summary --show"],
        risk="low",
        kind="reads",
        does="shows where memory is swapped to",
        instead=True,
    ),
    EffectEntry(
        run="swapon", options=["-a --all"], risk="high", kind="machine", does="changes how the machine is set up"
    ),
    EffectEntry(
        run="crontab", options=["-l"], risk="medium", kind="reads", does="shows what runs by itself later", instead=True
    ),
    EffectEntry(
        run="crontab", options=["-e -r"], risk="high", kind="configures", does="changes what runs by itself later"
    ),
    EffectEntry(
        run="""
            blkid|lsmod|modinfo|lvs|vgs|pvs|lvdisplay|vgdisplay|pvdisplay|getenforce|sestatus|getfacl|atq|lsattr|
            getcap|getsebool|sysctl -a|sysctl -n|efibootmgr -v|update-alternatives --list|tune2fs -l|lsns|lslogins
        """,
        risk="low",
        kind="reads",
        does="shows how the machine is set up",
        instead=True,
    ),
    EffectEntry(
        run="lsmod|blkid|modinfo",
        options=["-c -w -g"],
        risk="medium",
        kind="machine",
        does="asks or changes how the machine is set up",
    ),
    EffectEntry(
        run="""
            pip config list|pip3 config list|pip config get|pip3 config get|pip config debug|npm config list|
            npm config ls|gcloud config list|go env
        """,
        risk="medium",
        kind="reads",
        does="prints settings, in which credentials may stand",
        instead=True,
    ),
    EffectEntry(
        run="go env", options=["-w -u"], risk="medium", kind="configures", does="changes go's settings", instead=True
    ),
]

# What PowerShell's cmdlets do. Names are small, aliases are resolved before.

POWERSHELL = [
    EffectEntry(
        run="""
            get-childitem|get-content|get-location|set-location|get-item|get-itemproperty|get-process|get-service|
            get-command|get-help|get-member|get-date|get-host|get-history|get-alias|get-module|get-unique|
            get-variable|get-filehash|get-acl|get-psdrive|get-volume|get-disk|get-netadapter|get-netipaddress|
            get-nettcpconnection|get-computerinfo|get-culture|get-timezone|get-random|get-verb|get-package|
            get-hotfix|get-ciminstance|get-wmiobject|get-eventlog|get-winevent|select-string|select-object|
            select-xml|where-object|foreach-object|sort-object|measure-object|measure-command|group-object|
            compare-object|format-table|format-list|format-wide|format-hex|test-path|test-json|resolve-path|
            split-path|join-path|convert-path|convertto-json|convertfrom-json|convertto-csv|convertfrom-csv|
            import-csv|out-string|out-host|out-null|out-default|write-output|write-host|write-verbose|write-error|
            write-warning|push-location|pop-location|start-sleep|clear-host
        """,
        risk="low",
        kind="reads",
        does="reads",
    ),
    EffectEntry(
        run="""
            if|else|elseif|for|while|do|switch|try|catch|finally|return|param|in|until|break|continue|begin|process|
            end|throw
        """,
        risk="low",
        kind="shell",
        does="works on the shell itself",
    ),
    EffectEntry(
        run="get-childitem|get-item|get-content",
        operand="(?i)^env:",
        risk="medium",
        kind="reads",
        does="shows variables, which may hold secrets",
    ),
    EffectEntry(
        run="get-credential|get-secret|export-clixml|convertfrom-securestring",
        risk="high",
        kind="reads",
        does="asks for credentials, or shows them",
    ),
    EffectEntry(
        run="""
            set-content|add-content|out-file|tee-object|new-item|copy-item|move-item|rename-item|export-csv|
            clear-content|expand-archive|compress-archive|set-item|new-temporaryfile|set-date
        """,
        risk="medium",
        kind="writes",
        does="makes or changes files: {what}",
        vague=True,
    ),
    EffectEntry(
        run="""
            invoke-webrequest|invoke-restmethod|test-connection|test-netconnection|resolve-dnsname|
            start-bitstransfer|send-mailmessage
        """,
        risk="medium",
        kind="connects",
        does="speaks with another machine",
    ),
    EffectEntry(
        run="invoke-webrequest|invoke-restmethod",
        operand="(?i)^-(infile|body|form)$|^(put|post)$",
        risk="high",
        kind="connects",
        does="sends data to another machine",
    ),
    EffectEntry(
        run="send-mailmessage|enter-pssession|new-pssession|invoke-command|copy-vmfile",
        risk="high",
        kind="connects",
        does="carries data or commands to another machine",
    ),
    EffectEntry(
        run="""
            start-process|start-job|start-threadjob|invoke-item|import-module|add-type|new-object|invoke-history|
            invoke-pester|invoke-build
        """,
        risk="medium",
        kind="runs",
        does="starts a program, or loads one: {what}",
    ),
    EffectEntry(
        run="start-process", operand="(?i)^runas$", risk="high", kind="runs", does="runs a command as the administrator"
    ),
    EffectEntry(
        run="""
            install-module|install-package|install-script|update-module|uninstall-module|install-psresource|
            save-module|winget|choco|scoop
        """,
        risk="medium",
        kind="installs",
        does="installs or changes packages, whose scripts run",
    ),
    EffectEntry(
        run="set-alias|set-variable|new-alias|set-psdebug|function|set-strictmode|remove-module|set-psreadlineoption",
        risk="medium",
        kind="shell",
        does="changes the shell itself",
    ),
    EffectEntry(
        run="stop-process|stop-job|wait-process", risk="medium", kind="machine", does="ends or steers processes"
    ),
    EffectEntry(
        run="""
            stop-service|start-service|restart-service|set-service|new-service|remove-service|
            register-scheduledtask|new-scheduledtask|set-scheduledtask|unregister-scheduledtask|schtasks|sc.exe|
            register-wmievent|register-objectevent
        """,
        risk="high",
        kind="configures",
        does="changes what runs on the machine by itself",
    ),
    EffectEntry(
        run="""
            set-executionpolicy|set-acl|icacls|takeown|new-localuser|remove-localuser|set-localuser|
            add-localgroupmember|net|set-mppreference|add-mppreference|disable-netfirewallprofile|
            set-netfirewallprofile|new-netfirewallrule|set-itemproperty|new-itemproperty|remove-itemproperty|reg|
            regedit|bcdedit|wmic|vssadmin|enable-psremoting|set-wsmaninstance|rename-computer|add-computer
        """,
        risk="high",
        kind="configures",
        does="changes rights or settings of the machine",
    ),
    EffectEntry(
        run="stop-computer|restart-computer|suspend-computer",
        risk="high",
        kind="machine",
        does="brings the machine to a halt",
    ),
    EffectEntry(
        run="""
            format-volume|clear-disk|initialize-disk|remove-partition|set-disk|set-partition|repair-volume|format|
            diskpart|new-partition|resize-partition|remove-volume|reset-physicaldisk
        """,
        risk="critical",
        kind="machine",
        does="can destroy a disk and all on it",
    ),
    EffectEntry(
        run="powershell|pwsh|powershell.exe|pwsh.exe",
        operand="(?i)^[-/]e(n(c(o.*)?)?|c)?$",
        risk="critical",
        kind="runs",
        does="runs code that is disguised",
    ),
]
