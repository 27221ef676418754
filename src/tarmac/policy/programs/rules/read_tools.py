"""Tools of developers: their questions.

What runs code of the project (yarn with its yarnPath, pnpm with its pnpmfile, composer with its plugins, anything that
compiles) is not here.
"""

from tarmac.policy.programs.rules.table import ReaderEntry

READERS = {
    "npm ls": ReaderEntry(
        also="""
            npm list|npm la|npm ll|npm explain|npm why|npm root|npm prefix|npm bin|npm config get|npm get|npm pkg get
        """,
        why="asks npm about packages",
        short="alpgJs",
        long="""
            all json long parseable global depth: omit: include: link package-lock-only unicode workspace:
            workspaces include-workspace-root production prod dev only: silent no-color color:: registry-undefined
        """,
        refuse="registry script-shell node-options userconfig globalconfig prefix browser editor viewer",
        operands="word",
        abbreviate=False,
        unless=".npmrc",
        check="no-secrets",
    ),
    "npm query": ReaderEntry(
        why="asks npm about packages",
        long="json global workspaces",
        operands="text",
        most=1,
        abbreviate=False,
        unless=".npmrc",
    ),
    "npm fund": ReaderEntry(
        why="lists packages that ask for funding; a name would open a page",
        long="json",
        abbreviate=False,
        unless=".npmrc",
    ),
    "npm help": ReaderEntry(
        why="shows a page of npm's manual",
        operands="word",
        most=1,
        unless=".npmrc",
        check="man",
        adds="--viewer=man",
    ),
    "npm run": ReaderEntry(
        also="npm run-script", why="lists the project's scripts; with a name it would run one", unless=".npmrc"
    ),
    "pip list": ReaderEntry(
        also="pip3 list",
        why="asks pip about installed packages",
        short="ulvqe",
        long="""
            uptodate editable local user pre format: not-required exclude-editable include-editable exclude: verbose
            quiet disable-pip-version-check no-color no-input
        """,
        refuse="outdated path python index-url extra-index-url find-links log cert client-cert proxy cache-dir",
        abbreviate=False,
    ),
    "pip list --outdated": ReaderEntry(
        also="pip list -o|pip3 list --outdated|pip3 list -o",
        why="asks the registry for newer packages",
        connects="the package registry",
        short="ulvq",
        long="local user pre format: not-required exclude: disable-pip-version-check no-color no-input",
        abbreviate=False,
    ),
    "pip show": ReaderEntry(
        also="pip3 show",
        why="asks pip about installed packages",
        short="fvq",
        long="files verbose quiet disable-pip-version-check no-color no-input",
        refuse="log python",
        operands="word",
        abbreviate=False,
    ),
    "pip freeze": ReaderEntry(
        also="pip3 freeze|pip check|pip3 check|pip inspect|pip cache dir|pip3 cache dir|pip cache info|pip cache list",
        why="asks pip about installed packages",
        short="lvq",
        long="local user all exclude: exclude-editable verbose quiet disable-pip-version-check no-color no-input",
        refuse="log python requirement path cache-dir",
        abbreviate=False,
    ),
    "pip help": ReaderEntry(also="pip3 help", why="prints its help", operands="word", most=1, abbreviate=False),
    "go list": ReaderEntry(
        why="asks go about packages",
        check="go-list",
        short="m",
        long="m json:: f: deps test find e u versions retracted tags:",
        refuse="toolexec exec modfile overlay export compiled C vcs",
        operands="word",
        single=True,
        abbreviate=False,
        cwd=True,
    ),
    "go env": ReaderEntry(
        why="prints some of go's settings; -w and -u would change them, and others may hold credentials",
        check="go-env",
        long="json",
        refuse="w u",
        operands="word",
        least=1,
        single=True,
        abbreviate=False,
    ),
    "go version": ReaderEntry(
        also="go doc|go help|go mod graph|go mod why|go mod verify",
        why="asks go about versions, documentation and modules",
        long="m v all src short u c cmd",
        operands="word",
        single=True,
        abbreviate=False,
    ),
    "go tool": ReaderEntry(why="lists go's tools; with a name it would run one"),
    "rustc -vV": ReaderEntry(
        also="""
            rustc --print sysroot|rustc --print target-list|rustc --print cfg|rustc --print target-cpus|
            rustc --print host-tuple
        """,
        why="prints facts about the compiler",
        unless="rust-toolchain rust-toolchain.toml .cargo",
    ),
    "gofmt": ReaderEntry(
        why="prints how it would format files; -w would write them",
        short="lds",
        refuse="w r cpuprofile",
        operands="path",
    ),
    "javap": ReaderEntry(
        why="prints what is in a class",
        short="cpvsl",
        long="c p v s l public protected package private constants help version",
        single=True,
        refuse="J classpath cp bootclasspath module-path",
        operands="path",
    ),
    "jar": ReaderEntry(check="jar", why="lists an archive; other forms write", operands="text"),
    "rustup toolchain list": ReaderEntry(
        also="rustup target list|rustup component list",
        why="asks rustup what is installed",
        long="installed verbose",
        short="v",
        unless="rust-toolchain rust-toolchain.toml",
    ),
    "kubectl config get-contexts": ReaderEntry(
        also="kubectl config current-context|kubectl config get-clusters|kubectl config get-users",
        why="prints the names in kubectl's settings",
        short="o:",
        long="output: no-headers",
        refuse="raw flatten kubeconfig",
        operands="word",
        abbreviate=False,
    ),
    "kubectl version": ReaderEntry(
        why="prints its version; without --client it would ask the cluster",
        check="client",
        short="o:",
        long="client output: short",
        refuse="kubeconfig server token",
        abbreviate=False,
    ),
    "terraform version": ReaderEntry(
        also="terraform workspace show|tofu version",
        why="asks terraform what there is",
        long="json",
        single=True,
        abbreviate=False,
    ),
    "conda list": ReaderEntry(
        also="""
            conda env list|pipx list|pyenv versions|pyenv version|rbenv versions|rbenv version|gem list|gem which|
            gem contents|asdf list|asdf current|opam list|update-alternatives --list|update-alternatives --display|
            brew --prefix|brew --cellar
        """,
        why="asks a tool what is installed",
        short="anelpovgq",
        long="""
            all json env envs name: tree latest top-level no-dev only: installed local short full-path prefix verbose
            no-headers format:
        """,
        operands="word",
        abbreviate=False,
    ),
    "dotnet --info": ReaderEntry(
        also="""
            dotnet --list-sdks|dotnet --list-runtimes|gcc -dumpversion|gcc -dumpmachine|gcc -v|g++ -dumpversion|
            clang -dumpversion|nginx -v|nginx -V|java --list-modules|php -m|perl -V|node --v8-options|
            brew --repository|screen -ls|code --list-extensions
        """,
        why="asks a tool what there is",
        operands="none",
    ),
    "openssl x509": ReaderEntry(
        also="openssl dgst|openssl asn1parse",
        why="shows a certificate or a checksum",
        check="openssl",
        long="""
            in@ noout text subject issuer dates startdate enddate fingerprint serial pubkey sha256 sha1 sha512 md5
            inform: ext: hash r hex email purpose checkend:
        """,
        refuse="out signkey CA CAkey engine provider sign key",
        operands="path",
        single=True,
        abbreviate=False,
    ),
    "shellcheck": ReaderEntry(
        why="checks a script",
        short="s:S:f:e:i:W:C::",
        long="shell: severity: format: exclude: include: color:: wiki-link-count: version help norc list-optional",
        operands="path",
        refuse="rcfile source-path",
    ),
    "kubectl": ReaderEntry(
        also="oc",
        why="options before the command",
        prefix=True,
        short="n:",
        long="namespace: context:",
        refuse="kubeconfig server token",
        abbreviate=False,
    ),
    "npm": ReaderEntry(
        why="options before the command",
        prefix=True,
        short="sg",
        long="silent global no-color",
        refuse="prefix registry",
        abbreviate=False,
    ),
    # ── Questions to a server or a daemon. They only read, and are asked about, as is all that needs the network.
    "npm view": ReaderEntry(
        also="npm info|npm show|npm v",
        why="asks the registry about a package",
        connects="the package registry",
        long="json silent no-color",
        operands="word",
        abbreviate=False,
        unless=".npmrc",
        check="npm-view",
    ),
    "npm outdated": ReaderEntry(
        also="npm search|npm ping|npm owner ls|npm dist-tag ls|npm whoami",
        why="asks the registry about packages",
        connects="the package registry",
        long="json long parseable global depth: silent no-color",
        operands="word",
        unless=".npmrc",
        abbreviate=False,
        check="no-secrets",
    ),
    "pip index versions": ReaderEntry(
        also="pip3 index versions",
        why="asks the registry about a package",
        connects="the package registry",
        long="pre disable-pip-version-check no-color no-input",
        operands="word",
        abbreviate=False,
    ),
    "cargo tree": ReaderEntry(
        also="""
            cargo metadata|cargo locate-project|cargo pkgid|cargo search|cargo info|cargo help|cargo read-manifest|
            cargo verify-project
        """,
        why="asks cargo about packages",
        connects="the package registry, and fetches what is missing",
        short="p:e:i:F:dvq",
        long="""
            package: workspace all exclude: edges: invert: prune: depth: no-dedupe duplicates charset: format:
            features: all-features no-default-features target: prefix: locked offline frozen quiet verbose color:
            no-deps format-version: filter-platform: message-format: limit:
        """,
        refuse="config manifest-path registry index",
        operands="word",
        abbreviate=False,
        unless=".cargo/config .cargo/config.toml rust-toolchain rust-toolchain.toml",
        cwd=True,
    ),
    "docker ps": ReaderEntry(
        also="""
            docker images|docker container ls|docker container list|docker container ps|docker image ls|
            docker image list|docker volume ls|docker network ls|docker info|docker version|docker history|
            docker image history|docker port|docker container port|docker top|docker container top|docker diff|
            docker container diff|docker system df|docker system info|docker context ls|docker context show|
            docker stack ls|docker service ls|docker service ps|docker node ls|docker search|docker stats|
            docker container stats|docker events|docker buildx ls|docker compose ls|docker compose version|
            docker plugin ls|docker secret ls|docker config ls|podman ps|podman images|podman info|podman version|
            podman volume ls|podman network ls|podman stats|podman top
        """,
        why="asks docker what there is",
        connects="the docker daemon",
        short="aqslnf:",
        long="""
            all quiet size latest last: no-trunc filter: format: digests tree no-stream human:: since: until: limit:
            verbose
        """,
        operands="word",
        abbreviate=False,
    ),
    "docker logs": ReaderEntry(
        also="docker container logs|docker service logs|podman logs|docker compose logs|docker-compose logs",
        why="prints a container's output",
        connects="the docker daemon",
        short="ftn:",
        long="follow timestamps tail: since: until: details no-color no-log-prefix",
        operands="word",
        abbreviate=False,
    ),
    "docker inspect": ReaderEntry(
        also="""
            docker container inspect|docker image inspect|docker volume inspect|docker network inspect|
            podman inspect
        """,
        why="prints a container's settings",
        connects="the docker daemon",
        short="f:s",
        long="format: size type: verbose",
        operands="word",
        check="docker-inspect",
        abbreviate=False,
    ),
    "docker compose ps": ReaderEntry(
        also="""
            docker compose images|docker compose top|docker compose port|docker-compose ps|docker-compose images|
            docker-compose top
        """,
        why="asks about the services of the project",
        connects="the docker daemon",
        short="aq",
        long="""
            all quiet services status: filter: format: volumes images hash: profiles no-interpolate environment
            orphans
        """,
        refuse="output lock-image-digests",
        operands="word",
        abbreviate=False,
    ),
    "kubectl get": ReaderEntry(
        also="""
            kubectl describe|kubectl top pods|kubectl top pod|kubectl top nodes|kubectl top node|
            kubectl api-resources|kubectl api-versions|kubectl explain|kubectl cluster-info|
            kubectl rollout status|kubectl rollout history|kubectl auth can-i|kubectl events|oc get|oc describe
        """,
        why="asks the cluster what it has",
        connects="the cluster",
        check="kubectl",
        short="n:Al:o:wLR",
        long="""
            namespace: all-namespaces selector: output: watch watch-only show-labels label-columns: field-selector:
            sort-by: no-headers ignore-not-found chunk-size: context: cluster: show-kind show-managed-fields
            recursive api-version: client short verbs: namespaced api-group: containers revision: timeout: types:
            for: output-watch-events server-print:: limit:
        """,
        refuse="""
            kubeconfig server token raw filename kustomize template user as password username
            insecure-skip-tls-verify
        """,
        operands="word",
        abbreviate=False,
    ),
    "kubectl logs": ReaderEntry(
        also="oc logs",
        why="prints a container's output",
        connects="the cluster",
        short="n:fc:l:p",
        long="""
            namespace: follow container: selector: previous tail: since: since-time: timestamps all-containers
            prefix context: limit-bytes: max-log-requests: ignore-errors
        """,
        refuse="kubeconfig server token insecure-skip-tls-verify",
        operands="word",
        abbreviate=False,
    ),
    "helm list": ReaderEntry(
        also="""
            helm ls|helm status|helm history|helm version|helm search repo|helm repo list|helm env|helm show chart|
            helm get notes
        """,
        why="asks helm what is installed",
        connects="the cluster",
        short="n:aAo:qdr",
        long="""
            namespace: all all-namespaces output: filter: short date reverse max: revision: versions kube-context:
            failed deployed pending
        """,
        refuse="kubeconfig post-renderer registry-config repository-config",
        operands="word",
        abbreviate=False,
    ),
    "gh pr list": ReaderEntry(
        also="""
            gh pr view|gh pr status|gh pr diff|gh pr checks|gh issue list|gh issue view|gh issue status|
            gh repo view|gh repo list|gh run list|gh run view|gh workflow list|gh workflow view|gh release list|
            gh release view|gh search issues|gh search prs|gh search repos|gh search code|gh label list|
            gh gist list|gh status|gh org list|gh cache list|gh ruleset list|gh project list
        """,
        why="reads from GitHub",
        connects="GitHub",
        short="cs:a:A:l:L:q:H:B:S:R:j:b:u:",
        long="""
            comments state: assignee: author: label: limit: json: jq: template: head: base: search: draft repo: app:
            milestone: mention: log log-failed job: verbose exit-status attempt: workflow: branch: user: event:
            commit: status: patch name-only color: hostname: active required watch interval: archived fork source
            language: topic: visibility: owner: language: sort: order: created: updated: match: filename: extension:
            exclude-drafts exclude-pre-releases all
        """,
        refuse="web show-token",
        operands="text",
        abbreviate=False,
    ),
    "aws s3 ls": ReaderEntry(
        why="lists a bucket",
        connects="a cloud service",
        long="recursive human-readable summarize profile: region:",
        refuse="endpoint-url",
        operands="word",
        abbreviate=False,
    ),
    "docker compose config": ReaderEntry(
        also="docker-compose config",
        why="says what services there are",
        check="compose-config",
        short="q",
        long="quiet services volumes images profiles",
        refuse="output lock-image-digests environment",
        operands="none",
        abbreviate=False,
    ),
    "docker compose": ReaderEntry(
        also="docker-compose",
        why="options before the command",
        prefix=True,
        refuse="file project-directory env-file",
        abbreviate=False,
    ),
    "terraform state list": ReaderEntry(
        also="terraform workspace list|tofu state list",
        why="asks terraform what there is",
        connects="the place where its state is kept",
        long="id:",
        refuse="state",
        operands="word",
        single=True,
        abbreviate=False,
    ),
    "gcloud info": ReaderEntry(
        also="""
            gcloud projects list|az account show|az account list|aws sts get-caller-identity|
            aws ec2 describe-instances|heroku apps|conda info|conda search|gem env|gem info|gem search|
            tmux ls|tmux list-sessions|tmux list-windows|virsh list|multipass list|ollama list|ollama ps|
            tailscale status
        """,
        why="asks a tool what there is",
        connects="a server or a daemon",
        short="anelpovgq",
        long="""
            all json env envs name: tree latest outdated installed local remote short verbose no-headers format: output:
            region: profile:
        """,
        refuse="endpoint-url",
        operands="word",
        abbreviate=False,
    ),
}


WHY = "prints its version or its help"
WORDS = "--version --help"
PROGRAMS = """
    python python3 python2 pypy3 node nodejs npm npx yarn mvn pnpm deno bun ruby gem perl php java javac kotlin
    kotlinc scala go gofmt rustc rustfmt gcc g++ cc c++ clang clang++ clang-format clang-tidy ld gdb lldb cmake
    ninja meson bazel buck ant gradle sbt docker docker-compose podman buildah kubectl helm minikube kind k9s
    terraform tofu packer vagrant aws az gcloud gh glab git hg svn tmux screen vim nvim nano emacs code bash zsh
    fish sh dash ssh scp curl wget rsync jq yq rg fd fzf bat eza tree ag pip pip3 pipx poetry uv ruff black isort
    flake8 mypy pyright hatch pdm conda mamba virtualenv pre-commit tsc eslint prettier jest vitest vite webpack
    esbuild rollup turbo nx lerna ts-node tsx swc biome swift swiftc xcodebuild dotnet lua luajit R Rscript julia
    ghc cabal stack elixir mix erl iex ocaml opam dune zig nim crystal dart psql mysql sqlite3 mongosh redis-cli
    redis-server mongod postgres nginx httpd apache2 systemctl openssl gpg gzip tar zip unzip xz zstd sed awk gawk
    grep find ls cat sort make gmake autoconf automake protoc buf hadolint shellcheck shfmt yamllint markdownlint
    ffmpeg convert pandoc latex pdflatex cloc tokei hyperfine strace ltrace perf valgrind sops age vault consul
    nomad flyctl heroku vercel netlify firebase wrangler supabase cargo-clippy rustup cargo rbenv pyenv asdf mise
    direnv starship lsof less man cp mv rm mkdir rmdir chmod chown chgrp ln touch tee dd install split csplit
    truncate shred mktemp mkfifo sync kill pkill killall xargs env nohup nice timeout stdbuf setsid tr cut paste
    join comm fold fmt nl od tac shuf seq stat du df basename dirname readlink realpath date id uname sudo mount
    umount patch diff cmp file watch ps pgrep free uptime top head tail wc uniq tty who base64 md5sum sha256sum
    numfmt gunzip bzip2 crontab systemd-run journalctl useradd usermod passwd chsh dpkg apt apt-get brew javap jar
    7z ar nm objdump readelf strings
"""
# The other words mean something else in most programs (`python3 version` runs a file, `ninja -v` builds): by their
# manuals.
ALSO = {
    "version": """
        go git buildah helm minikube kind terraform tofu packer openssl npm
        cargo zig uv ruff gh glab az gcloud flyctl vault consul nomad perf direnv mise
    """,
    "-version": "java javac kotlin kotlinc scala swiftc terraform tofu ffmpeg sqlite3 ocaml",
    "-v": """
        node nodejs npm npx yarn pnpm bun ruby gem perl php mvn gradle elixir iex tsc eslint webpack rollup vite gcc
        g++ cc c++ clang clang++ nginx httpd apache2 make gmake lua luajit julia fish code docker docker-compose
        podman terraform redis-cli redis-server unzip zip lsof screen rbenv
    """,
    "-V": """
        python python3 pypy3 pip pip3 ssh tmux rustc cargo rustup less man curl wget rg fd ag bat jq yq gzip xz zstd
        nginx deno poetry uv ruff mypy conda mamba psql mysql gawk strace ltrace hyperfine tokei starship nano
        shellcheck mise rsync
    """,
    "-VV": "python python3",
    "-h": """
        node npm npx yarn pnpm deno bun cargo rustc rustup kubectl helm gh glab pip pip3 poetry uv ruff black isort
        eslint prettier tsc fd bat jq yq python python3 php ruby perl terraform go git cmake tokei hyperfine
    """,
}

# These believe a file of the project before they answer: asked when it is there
UNLESS = """
    dotnet:global.json cargo-clippy:rust-toolchain cargo-clippy:rust-toolchain.toml cargo-clippy:.cargo
    cargo:rust-toolchain cargo:rust-toolchain.toml rustc:rust-toolchain rustc:rust-toolchain.toml
    rustfmt:rust-toolchain rustfmt:rust-toolchain.toml rustup:rust-toolchain rustup:rust-toolchain.toml sbt:.sbtopts
    sbt:.jvmopts bazel:.bazeliskrc bazel:.bazelversion yarn:.yarnrc yarn:.yarnrc.yml yarn:.yarn mvn:.mvn
    jest:node_modules webpack:node_modules vitest:node_modules vite:node_modules lerna:node_modules
    turbo:node_modules nx:node_modules ts-node:node_modules tsx:node_modules gradle:gradle.properties go:go.work
    pnpm:.pnpmfile.cjs pnpm:package.json yarn:package.json hg:.hg flake8:setup.cfg flake8:tox.ini flake8:.flake8
    pdm:.pdm-plugins poetry:.poetry bazel:tools vagrant:Vagrantfile prettier:node_modules eslint:node_modules
    mypy:mypy.ini mypy:setup.cfg cargo:.cargo rustup:.cargo rustc:.cargo dune:dune-project mix:mix.exs
    gradle:build.gradle gradle:gradle sbt:project npm:.npmrc npx:.npmrc
"""
# `docker run --help`: their commands print help and stop
HELPED = "docker kubectl npm gh pip pip3 helm terraform uv podman go ruff docker-compose"
GROUPS = {
    "docker": "compose container image volume network system buildx builder context manifest",
    "podman": "container image volume network system pod",
    "gh": "pr issue repo release run workflow auth gist label search project cache ruleset variable",
    "kubectl": "config create rollout set top auth certificate",
    "helm": "repo show get dependency search",
    "terraform": "state workspace providers",
    "uv": "pip python cache tool",
    "go": "mod work",
    "pip": "config cache index",
}
# `cargo build --help`, `git commit --help`: only their own commands, as others may be aliases of the project
OWN = {
    "cargo": """
        add bench build check clean doc fetch fix init install metadata new publish remove run search test tree
        update vendor
    """,
    "git": """
        add am apply bisect blame branch checkout cherry-pick clean clone commit config describe diff fetch
        format-patch grep init log merge mv notes pull push rebase reflog remote reset restore revert rm show stash
        status submodule switch tag worktree
    """,
}
