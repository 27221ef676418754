"""Programs of developers: languages, builds, packages, editors, agents."""

from tarmac.policy.programs.rules import EffectEntry, ProgramEntry, WrapperEntry
from tarmac.policy.programs.rules import common_effects as effect

# fmt: off
PROGRAMS = {
    "gofmt": ProgramEntry(
        why="prints how it would format files; -w would write them", short="lds", refuse="w r cpuprofile",
        operands="path", does=[effect.RUNS_PROJECT], traits="answers suggest-name",
    ),
    "javap": ProgramEntry(
        why="prints what is in a class", short="cpvsl",
        long="c p v s l public protected package private constants help version",
        refuse="J classpath cp bootclasspath module-path", operands="path", single=True,
        needs="/etc/java /etc/java-11-openjdk /etc/java-17-openjdk /etc/java-21-openjdk /proc",
        traits="response-files answers",
    ),
    "jar": ProgramEntry(
        why="lists an archive; other forms write", operands="text", check="jar", does=[effect.PACKS],
        needs="/etc/java /etc/java-11-openjdk /etc/java-17-openjdk /etc/java-21-openjdk /proc",
        traits="response-files answers",
    ),
    "shellcheck": ProgramEntry(
        why="checks a script", short="s:S:f:e:i:W:C::",
        long="shell: severity: format: exclude: include: color:: wiki-link-count: version help norc list-optional",
        refuse="rcfile source-path", operands="path", answers_to="-V", traits="answers",
    ),
    """
        kubectl config get-contexts|kubectl config current-context|kubectl config get-clusters|kubectl config get-users
    """: ProgramEntry(
        why="prints the names in kubectl's settings", short="o:", long="output: no-headers",
        refuse="raw flatten kubeconfig", operands="word", abbreviate=False,
    ),
    "kubectl version": ProgramEntry(
        why="prints its version; without --client it would ask the cluster", short="o:", long="client output: short",
        refuse="kubeconfig server token", abbreviate=False, one_of="client", or_else="it asks the cluster",
    ),
    "kubectl": ProgramEntry(
        why="options before the command", short="n:", long="namespace: context:", refuse="kubeconfig server token",
        abbreviate=False, prefix=True,
        does=[
            effect.DELETES_IN_CLUSTER.on("delete|drain|cordon|taint|replace|rollout undo"),
            effect.SHOWS_CLUSTER_SECRETS.on("get secret|get secrets|describe secret|describe secrets"),
            effect.CHANGES_CLUSTER,
            EffectEntry("high", "reads", "shows the keys of the cluster", "config view", options="--raw --flatten"),
            effect.CHANGES_KEPT_ELSEWHERE.on("delete"), effect.STARTS_BY_OPTION_OR_SOURCE.on(options="--kubeconfig"),
            effect.MAY_READ_OR_START,
        ],
        globals="--cluster --context --kubeconfig --namespace --server --user -n -s", answers_to="-h",
        groups="config create rollout set top auth certificate", grant="command", grant_line="exec run debug cp",
        traits="prints-setup answers helps server relay",
    ),
    """
        kubectl get|kubectl describe|kubectl top pods|kubectl top pod|kubectl top nodes|kubectl top node|
        kubectl api-resources|kubectl api-versions|kubectl explain|kubectl cluster-info|kubectl rollout status|
        kubectl rollout history|kubectl auth can-i|kubectl events|oc get|oc describe
    """: ProgramEntry(
        why="asks the cluster what it has", short="n:Al:o:wLR",
        long="""
            namespace: all-namespaces selector: output: watch watch-only show-labels label-columns: field-selector:
            sort-by: no-headers ignore-not-found chunk-size: context: cluster: show-kind show-managed-fields recursive
            api-version: client short verbs: namespaced api-group: containers revision: timeout: types: for:
            output-watch-events server-print:: limit:
        """,
        refuse="""
            kubeconfig server token raw filename kustomize template user as password username insecure-skip-tls-verify
        """,
        operands="word", abbreviate=False, check="kubectl", connects="the cluster",
    ),
    "kubectl logs|oc logs": ProgramEntry(
        why="prints a container's output", short="n:fc:l:p",
        long="""
            namespace: follow container: selector: previous tail: since: since-time: timestamps all-containers prefix
            context: limit-bytes: max-log-requests: ignore-errors
        """,
        refuse="kubeconfig server token insecure-skip-tls-verify", operands="word", abbreviate=False,
        connects="the cluster",
    ),
    "kubectl exec": ProgramEntry(
        runs=WrapperEntry(
            value="-n -c --namespace --container --context --kubeconfig -f --filename", skip=1, risk="medium",
            does="in the cluster", elsewhere=True,
        ),
    ),
    "kubectl run": ProgramEntry(
        runs=WrapperEntry(
            value="-n --image --namespace --env --labels --restart", skip=1, risk="medium", does="in the cluster",
            elsewhere=True,
        ),
    ),
    "oc": ProgramEntry(
        like="kubectl",
        does=[
            effect.DELETES_IN_CLUSTER.on("delete"), effect.SHOWS_CLUSTER_SECRETS.on("get secret"),
            effect.CHANGES_CLUSTER, effect.STARTS_BY_OPTION_OR_SOURCE.on(options="--kubeconfig"),
        ],
        grant="command", grant_line="exec rsh", traits="server relay",
    ),
    """
        npm ls|npm list|npm la|npm ll|npm explain|npm why|npm root|npm prefix|npm bin|npm config get|npm get|
        npm pkg get
    """: ProgramEntry(
        why="asks npm about packages", short="alpgJs",
        long="""
            all json long parseable global depth: omit: include: link package-lock-only unicode workspace: workspaces
            include-workspace-root production prod dev only: silent no-color color:: registry-undefined
        """,
        refuse="registry script-shell node-options userconfig globalconfig prefix browser editor viewer",
        operands="word", abbreviate=False, check="no-secrets", unless=".npmrc",
    ),
    "npm query": ProgramEntry(
        why="asks npm about packages", long="json global workspaces", operands="text", most=1, abbreviate=False,
        unless=".npmrc",
    ),
    "npm fund": ProgramEntry(
        why="lists packages that ask for funding; a name would open a page", long="json", abbreviate=False,
        unless=".npmrc",
    ),
    "npm help": ProgramEntry(
        why="shows a page of npm's manual", operands="word", most=1,
        each=r"(?!.*\.\.)([A-Za-z0-9_.+:-]+|\[)", or_else="man of a file may run what is in it",
        unless=".npmrc", adds="--viewer=man",
    ),
    "npm run|npm run-script": ProgramEntry(
        why="lists the project's scripts; with a name it would run one", unless=".npmrc",
    ),
    "npm": ProgramEntry(
        why="options before the command", short="sg", long="silent global no-color", refuse="prefix registry",
        abbreviate=False, prefix=True,
        does=[
            effect.INSTALLS.on("|install|ci|uninstall|update"),
            effect.PUBLISHES.on("publish|unpublish|deprecate|dist-tag|owner|access|token"),
            effect.RUNS_PROJECT.on("run|run-script|test|t|start|stop|restart"), effect.SHOWS_SECRETS.on("token"),
            effect.STARTS_BY_OPTION_OR_SOURCE.on(
                options="--script-shell --node-options --globalconfig --userconfig --registry",
            ),
            effect.MAY_WRITE_OR_START, effect.INSTALLS_FROM_ADDRESS.on("install|i|add|exec"),
            effect.CHANGES_USER_SETTINGS.on("config set|set|login|adduser"),
            effect.ONLY_CHANGES_USER_SETTINGS.on("login"), effect.PRINTS_SETTINGS.on("config list|config ls"),
        ],
        globals="--prefix --workspace -C -w", answers_to="version -v -h", answers_unless=".npmrc",
        needs="/etc/manpath.config /etc/man_db.conf /var/cache/man",
        server_commands="dist-tag fund info outdated owner ping search show v view whoami", grant="command",
        grant_words="run run-script", grant_line="exec x explore create init config",
        turning="-C --prefix --script-shell --node-options --userconfig --globalconfig --registry --cwd --dir",
        traits="answers helps empty-home scoped",
    ),
    "npm view|npm info|npm show|npm v": ProgramEntry(
        why="asks the registry about a package", long="json silent no-color", operands="word", abbreviate=False,
        check="npm-view", unless=".npmrc", connects="the package registry",
    ),
    "npm outdated|npm search|npm ping|npm owner ls|npm dist-tag ls|npm whoami": ProgramEntry(
        why="asks the registry about packages", long="json long parseable global depth: silent no-color",
        operands="word", abbreviate=False, check="no-secrets", unless=".npmrc", connects="the package registry",
    ),
    "npm exec": ProgramEntry(
        runs=WrapperEntry(
            value="-p --package -w --workspace", code="-c --call",
            project="runs a package's program, which may be fetched first",
        ),
    ),
    "docker-compose": ProgramEntry(
        like="docker compose", does=[effect.DELETES_SERVICE_DATA.on("down|rm"), effect.STEERS_CONTAINERS],
        globals="--env-file --file --profile --project-name -f -p", answers_to="-v",
        traits="compose answers helps server",
    ),
    "zypper": ProgramEntry(does=[effect.REMOVES_PACKAGES.on("remove"), effect.CHANGES_PACKAGES], grant="command"),
    "nix-env|add-apt-repository|apt-key": ProgramEntry(does=[effect.CHANGES_PACKAGES]),
    "port": ProgramEntry(does=[effect.CHANGES_PACKAGES], grant="command"),
    "nix": ProgramEntry(
        does=[effect.CHANGES_PACKAGES], grant="command", grant_words="flake", grant_line="run shell develop",
    ),
    "pip3": ProgramEntry(
        does=[
            effect.INSTALLS.on("|install|uninstall"),
            effect.STARTS_BY_OPTION_OR_SOURCE.on(
                "|install", options="--index-url --extra-index-url --find-links --python --trusted-host",
            ),
            effect.INSTALLS_FROM_ADDRESS.on("install"), effect.PRINTS_SETTINGS.on("config list|config get"),
        ],
        answers_to="-V -h", needs="/etc/python3 /etc/python3.11 /etc/python3.12", needs_in_home=".local/lib",
        variables="PIP_NO_CACHE_DIR=1", server_commands="index", grant="command", traits="answers helps",
    ),
    "yarn": ProgramEntry(
        does=[
            effect.INSTALLS, effect.PUBLISHES.on("publish"), effect.RUNS_PROJECT.on("run|test|build|start"),
            effect.STARTS_BY_OPTION_OR_SOURCE.on(
                options="--script-shell --node-options --globalconfig --userconfig --registry",
            ),
            effect.INSTALLS_FROM_ADDRESS.on("add"), effect.CHANGES_USER_SETTINGS.on("config set"),
            effect.ONLY_CHANGES_USER_SETTINGS.on("config set"),
        ],
        globals="--cwd", answers_to="-v -h", answers_unless=".yarnrc .yarnrc.yml .yarn package.json", grant="command",
        grant_words="run", grant_line="dlx exec create",
        turning="-C --prefix --script-shell --node-options --userconfig --globalconfig --registry --cwd --dir",
        traits="answers empty-home scoped",
    ),
    "pnpm exec|yarn exec|mise exec|mise x|asdf exec|rbenv exec": ProgramEntry(
        runs=WrapperEntry(project="runs a program of the project"),
    ),
    "pnpm": ProgramEntry(
        does=[
            effect.INSTALLS, effect.PUBLISHES.on("publish"), effect.RUNS_PROJECT.on("run|test"),
            effect.STARTS_BY_OPTION_OR_SOURCE.on(
                options="--script-shell --node-options --globalconfig --userconfig --registry",
            ),
            effect.INSTALLS_FROM_ADDRESS.on("add"),
        ],
        globals="--dir --filter -C -F", answers_to="-v -h", answers_unless=".pnpmfile.cjs package.json",
        grant="command", grant_words="run", grant_line="dlx exec create",
        turning="-C --prefix --script-shell --node-options --userconfig --globalconfig --registry --cwd --dir",
        traits="answers empty-home scoped",
    ),
    "bun x|pnpm dlx|yarn dlx|nix run": ProgramEntry(
        runs=WrapperEntry(project="fetches a package and runs it", fetches=True),
    ),
    "bun": ProgramEntry(
        does=[
            effect.INSTALLS, effect.RUNS_PROJECT.on("run|test"), effect.RUNS_PROGRAM, effect.RUNS_CODE,
            effect.RUNS_FETCHED.on("run|", operand="^(https?://|jsr:|npm:)"),
        ],
        answers_to="-v -h", grant="command", grant_words="run", grant_line="x create",
        turning="-r --preload --cwd --config", traits="interprets answers scoped typed-code",
    ),
    "pip list|pip3 list": ProgramEntry(
        why="asks pip about installed packages", short="ulvqe",
        long="""
            uptodate editable local user pre format: not-required exclude-editable include-editable exclude: verbose
            quiet disable-pip-version-check no-color no-input
        """,
        refuse="outdated path python index-url extra-index-url find-links log cert client-cert proxy cache-dir",
        abbreviate=False,
    ),
    "pip list --outdated|pip list -o|pip3 list --outdated|pip3 list -o": ProgramEntry(
        why="asks the registry for newer packages", short="ulvq",
        long="local user pre format: not-required exclude: disable-pip-version-check no-color no-input",
        abbreviate=False, connects="the package registry",
    ),
    "pip show|pip3 show": ProgramEntry(
        why="asks pip about installed packages", short="fvq",
        long="files verbose quiet disable-pip-version-check no-color no-input", refuse="log python", operands="word",
        abbreviate=False,
    ),
    "pip freeze|pip3 freeze|pip inspect": ProgramEntry(
        why="asks pip about installed packages", short="lvq",
        long="local user all exclude: exclude-editable verbose quiet disable-pip-version-check no-color no-input",
        refuse="log python requirement path cache-dir", abbreviate=False,
    ),
    # Here pip takes `--local` for `--local-log FILE`.
    "pip check|pip3 check|pip cache dir|pip3 cache dir|pip cache info|pip cache list": ProgramEntry(
        why="asks pip about installed packages", short="vq",
        long="verbose quiet disable-pip-version-check no-color no-input",
        refuse="log python requirement path cache-dir local", abbreviate=False,
    ),
    "pip help|pip3 help": ProgramEntry(why="prints its help", operands="word", most=1, abbreviate=False),
    "pip index versions|pip3 index versions": ProgramEntry(
        why="asks the registry about a package", long="pre disable-pip-version-check no-color no-input",
        operands="word", abbreviate=False, connects="the package registry",
    ),
    "pip": ProgramEntry(
        does=[
            effect.INSTALLS.on("|install|uninstall"),
            effect.STARTS_BY_OPTION_OR_SOURCE.on(
                "|install", options="--index-url --extra-index-url --find-links --python --trusted-host",
            ),
            effect.MAY_WRITE_OR_START, effect.INSTALLS_FROM_ADDRESS.on("install"),
            effect.CHANGES_USER_SETTINGS.on("config set"),
            effect.PRINTS_SETTINGS.on("config list|config get|config debug"),
        ],
        answers_to="-V -h", groups="config cache index", needs="/etc/python3 /etc/python3.11 /etc/python3.12",
        needs_in_home=".local/lib", variables="PIP_NO_CACHE_DIR=1", server_commands="index", grant="command",
        grant_line="config",
        turning="""
            -i -f --index-url --extra-index-url --index --default-index --find-links --requirement --config-settings
            --python --target --trusted-host --directory --project
        """,
        traits="answers helps",
    ),
    "pipx run": ProgramEntry(
        runs=WrapperEntry(value="--spec --python", project="fetches a package and runs it", fetches=True),
    ),
    "pipx": ProgramEntry(
        does=[effect.INSTALLS], needs_in_home=".local/share/pipx .local/pipx", grant="command", grant_program="run",
        traits="answers",
    ),
    "poetry run|pipenv run|pdm run|hatch run|rye run|bundle exec": ProgramEntry(
        runs=WrapperEntry(project="runs a program in the project's environment"),
    ),
    "poetry": ProgramEntry(
        does=[effect.INSTALLS, effect.PUBLISHES.on("publish")], answers_to="-V -h", answers_unless=".poetry",
        grant="command", grant_program="run", traits="answers",
    ),
    "pdm": ProgramEntry(
        does=[effect.INSTALLS], answers_unless=".pdm-plugins", grant="command", grant_program="run", traits="answers",
    ),
    "uv run": ProgramEntry(
        runs=WrapperEntry(
            value="--with --python -p --extra --group --project --package --env-file",
            project="runs a program in the project's environment",
        ),
    ),
    "uv tool run": ProgramEntry(
        runs=WrapperEntry(value="--from --with --python", project="fetches a package and runs it", fetches=True),
    ),
    "uv": ProgramEntry(
        does=[effect.INSTALLS, effect.PUBLISHES.on("publish"), effect.INSTALLS_FROM_ADDRESS.on("pip install")],
        answers_to="version -V -h", groups="pip python cache tool", grant="command", grant_words="pip",
        grant_program="run", grant_line="tool",
        turning="""
            -i -f --index-url --extra-index-url --index --default-index --find-links --requirement --config-settings
            --python --target --trusted-host --directory --project
        """,
        traits="answers helps",
    ),
    "pipenv|bundler|flutter|pod|nuget|vcpkg|sdk|pip-compile|pip-sync": ProgramEntry(does=[effect.INSTALLS]),
    """
        conda list|conda env list|pipx list|pyenv versions|pyenv version|rbenv versions|rbenv version|gem list|
        gem which|gem contents|asdf list|asdf current|update-alternatives --list|update-alternatives --display|
        brew --prefix|brew --cellar
    """: ProgramEntry(
        why="asks a tool what is installed", short="anelpovgq",
        long="""
            all json env envs name: tree latest top-level no-dev only: installed local short full-path prefix verbose
            no-headers format:
        """,
        operands="word", abbreviate=False,
    ),
    "conda run": ProgramEntry(
        runs=WrapperEntry(value="-n --name -p --prefix", project="runs a program in another environment"),
    ),
    "conda": ProgramEntry(
        does=[effect.INSTALLS, effect.CHANGES_SHELL], answers_to="-V", server_commands="search", grant="command",
        grant_words="env", grant_program="run", traits="prints-setup answers empty-home",
    ),
    "mamba": ProgramEntry(does=[effect.INSTALLS], answers_to="-V", grant="command", traits="answers empty-home"),
    "gem": ProgramEntry(
        does=[effect.INSTALLS, effect.PUBLISHES.on("push"), effect.INSTALLS_FROM_ADDRESS.on("install")],
        answers_to="-v", needs_in_home=".gem/ruby .local/share/gem", server_commands="search", grant="command",
        traits="answers",
    ),
    "bundle": ProgramEntry(does=[effect.INSTALLS], grant="command", grant_program="exec"),
    "composer": ProgramEntry(does=[effect.INSTALLS], grant="command", grant_words="run run-script"),
    """
        cargo tree|cargo metadata|cargo locate-project|cargo pkgid|cargo search|cargo info|cargo help|
        cargo read-manifest|cargo verify-project
    """: ProgramEntry(
        why="asks cargo about packages", short="p:e:i:F:dvq",
        long="""
            package: workspace all exclude: edges: invert: prune: depth: no-dedupe duplicates charset: format: features:
            all-features no-default-features target: prefix: locked offline frozen quiet verbose color: no-deps
            format-version: filter-platform: message-format: limit:
        """,
        refuse="config manifest-path registry index", operands="word", abbreviate=False,
        unless=".cargo/config .cargo/config.toml rust-toolchain rust-toolchain.toml", cwd=True,
        connects="the package registry, and fetches what is missing",
    ),
    "cargo": ProgramEntry(
        does=[
            effect.INSTALLS.on("|install"), effect.PUBLISHES.on("publish|yank"),
            effect.RUNS_PROJECT.on("build|run|test|check|clippy|bench|doc|fmt|fix"),
            effect.STARTS_BY_OPTION_OR_SOURCE.on(options="--config"), effect.MAY_WRITE_OR_START,
            effect.INSTALLS_FROM_ADDRESS.on("install"), effect.CHANGES_USER_SETTINGS.on("login"),
            effect.ONLY_CHANGES_USER_SETTINGS.on("login"),
        ],
        globals="--config --manifest-path -C -Z", answers_to="version -V -h",
        answers_unless="rust-toolchain rust-toolchain.toml .cargo",
        own="""
            add bench build check clean doc fetch fix init install metadata new publish remove run search test tree
            update vendor
        """,
        needs_in_home=".cargo/registry .cargo/git/db .rustup", server_commands="info search", grant="command",
        grant_words="xtask", grant_line="install", turning="-C -Z --config --manifest-path --target-dir",
        traits="answers",
    ),
    "go list": ProgramEntry(
        why="asks go about packages", short="m", long="m json:: f: deps test find e u versions retracted tags:",
        refuse="toolexec exec modfile overlay export compiled C vcs", operands="word", single=True, abbreviate=False,
        never="@", or_else="it may fetch from anywhere", cwd=True,
    ),
    "go env": ProgramEntry(
        why="prints some of go's settings; -w and -u would change them, and others may hold credentials", long="json",
        refuse="w u", operands="word", least=1, single=True, abbreviate=False,
        never="^(GOPROXY|GOAUTH|GOFLAGS|GOSUMDB|GONOPROXY|GOPRIVATE|GOENV)$",
        or_else="it prints settings that may hold credentials",
    ),
    "go version|go doc|go help|go mod graph|go mod why|go mod verify": ProgramEntry(
        why="asks go about versions, documentation and modules", long="m v all src short u c cmd", operands="word",
        single=True, abbreviate=False,
    ),
    "go tool": ProgramEntry(why="lists go's tools; with a name it would run one"),
    "go": ProgramEntry(
        does=[
            effect.INSTALLS.on("get|install|mod"), effect.RUNS_PROJECT.on("build|run|test|vet|generate|fmt|tool"),
            effect.MAY_WRITE_OR_START, effect.INSTALLS_FROM_ADDRESS.on("install|run"),
            effect.CHANGES_USER_SETTINGS.on("env -w"), effect.RUNS_FETCHED.on("run", operand="@"),
            effect.PRINTS_SETTINGS.on("env"),
            EffectEntry("medium", "configures", "changes go's settings", "env", options="-w -u", instead=True),
        ],
        answers_to="version -h", answers_unless="go.work", groups="mod work", needs_in_home="go/pkg/mod",
        grant="command", grant_words="mod work tool", grant_line="generate",
        turning="-exec -toolexec -vettool -overlay -modfile -C -gccgoflags -asmflags -pkgdir",
        traits="repository answers helps builds single-dash",
    ),
    "rustup toolchain list|rustup target list|rustup component list": ProgramEntry(
        why="asks rustup what is installed", short="v", long="installed verbose",
        unless="rust-toolchain rust-toolchain.toml",
    ),
    "rustup": ProgramEntry(
        does=[effect.INSTALLS], answers_to="-V -h", answers_unless="rust-toolchain rust-toolchain.toml .cargo",
        needs_in_home=".rustup", grant="command", traits="answers",
    ),
    "nvm": ProgramEntry(does=[effect.INSTALLS, effect.CHANGES_SHELL], grant="command"),
    "pyenv|asdf": ProgramEntry(does=[effect.INSTALLS], grant="command", traits="prints-setup answers"),
    "rbenv": ProgramEntry(does=[effect.INSTALLS], answers_to="-v", grant="command", traits="prints-setup answers"),
    "mise": ProgramEntry(
        does=[effect.INSTALLS], answers_to="version -V", grant="command", grant_words="run", grant_program="exec",
        traits="prints-setup answers",
    ),
    "cabal|stack": ProgramEntry(does=[effect.INSTALLS], grant="command", traits="answers"),
    "hex": ProgramEntry(does=[effect.INSTALLS], traits="decodes"),
    "mix": ProgramEntry(
        does=[effect.INSTALLS, effect.RUNS_PROJECT.on("test")], answers_unless="mix.exs", grant="command",
        traits="answers",
    ),
    "rebar3": ProgramEntry(does=[effect.INSTALLS], grant="command"),
    "dart|virtualenv": ProgramEntry(does=[effect.INSTALLS], traits="answers"),
    """
        dotnet --info|dotnet --list-sdks|dotnet --list-runtimes|gcc -dumpversion|gcc -dumpmachine|gcc -v|
        g++ -dumpversion|clang -dumpversion|nginx -v|nginx -V|java --list-modules|php -m|perl -V|node --v8-options|
        brew --repository|screen -ls|code --list-extensions
    """: ProgramEntry(why="asks a tool what there is", operands="none"),
    "dotnet": ProgramEntry(
        does=[effect.INSTALLS, effect.RUNS_PROJECT.on("build|run|test"), effect.RUNS_PROGRAM],
        answers_unless="global.json", grant="command",
        turning="--property --packages --source --tool-path --configfile --additionalprobingpath",
        traits="answers empty-home",
    ),
    "deno": ProgramEntry(
        does=[
            effect.INSTALLS, effect.RUNS_PROJECT.on("run|task|test"), effect.RUNS_PROGRAM, effect.RUNS_CODE,
            effect.RUNS_FETCHED.on("run|install|serve|test|eval||task", operand="^(https?://|jsr:|npm:)"),
        ],
        answers_to="-V -h", grant="command", grant_words="task", grant_line="run eval",
        traits="interprets answers typed-code",
    ),
    """
        helm list|helm ls|helm status|helm history|helm search repo|helm repo list|helm show chart|helm get notes
    """: ProgramEntry(
        why="asks helm what is installed", short="n:aAo:qdr",
        long="""
            namespace: all all-namespaces output: filter: short date reverse max: revision: versions kube-context:
            failed deployed pending
        """,
        refuse="kubeconfig post-renderer registry-config repository-config", operands="word", abbreviate=False,
        connects="the cluster",
    ),
    "helm version|helm env": ProgramEntry(like="helm list", traits="local"),
    "helm": ProgramEntry(
        does=[
            effect.INSTALLS, effect.PUBLISHES.on("push"), effect.DELETES_IN_CLUSTER.on("uninstall|delete"),
            effect.SHOWS_CLUSTER_SECRETS.on("get values"), effect.CHANGES_CLUSTER,
            effect.STARTS_BY_OPTION_OR_SOURCE.on(options="--post-renderer --kubeconfig"),
        ],
        globals="--kube-context --kubeconfig --namespace -n", answers_to="version -h",
        groups="repo show get dependency search", grant="command", traits="answers helps empty-home server",
    ),
    "helm show": ProgramEntry(traits="local"),
    "twine": ProgramEntry(does=[effect.PUBLISHES.on("upload")]),
    "flit|vsce": ProgramEntry(does=[effect.PUBLISHES.on("publish")]),
    "hatch": ProgramEntry(
        does=[effect.PUBLISHES.on("publish")], grant="command", grant_program="run", traits="answers",
    ),
    """
        docker ps|docker images|docker container ls|docker container list|docker container ps|docker image ls|
        docker image list|docker volume ls|docker network ls|docker info|docker version|docker history|
        docker image history|docker port|docker container port|docker top|docker container top|docker diff|
        docker container diff|docker system df|docker system info|docker context ls|docker context show|docker stack ls|
        docker service ls|docker service ps|docker node ls|docker search|docker stats|docker container stats|
        docker events|docker buildx ls|docker compose ls|docker plugin ls|docker secret ls|docker config ls|podman ps|
        podman images|podman info|podman version|podman volume ls|podman network ls|podman stats|podman top
    """: ProgramEntry(
        why="asks docker what there is", short="aqslnf:",
        long="""
            all quiet size latest last: no-trunc filter: format: digests tree no-stream human:: since: until: limit:
            verbose
        """,
        operands="word", abbreviate=False, connects="the docker daemon",
    ),
    "docker compose version": ProgramEntry(like="docker ps", traits="local"),
    """
        docker logs|docker container logs|docker service logs|podman logs|docker compose logs|docker-compose logs
    """: ProgramEntry(
        why="prints a container's output", short="ftn:",
        long="follow timestamps tail: since: until: details no-color no-log-prefix", operands="word", abbreviate=False,
        connects="the docker daemon",
    ),
    """
        docker inspect|docker container inspect|docker image inspect|docker volume inspect|docker network inspect|
        podman inspect
    """: ProgramEntry(
        why="prints a container's settings", short="f:s", long="format: size type: verbose", operands="word",
        abbreviate=False, check="docker-inspect", connects="the docker daemon",
    ),
    """
        docker compose ps|docker compose images|docker compose top|docker compose port|docker-compose ps|
        docker-compose images|docker-compose top
    """: ProgramEntry(
        why="asks about the services of the project", short="aq",
        long="""
            all quiet services status: filter: format: volumes images hash: profiles no-interpolate environment orphans
        """,
        refuse="output lock-image-digests", operands="word", abbreviate=False, connects="the docker daemon",
    ),
    "docker compose config|docker-compose config": ProgramEntry(
        why="says what services there are", short="q", long="quiet services volumes images profiles",
        refuse="output lock-image-digests environment", operands="none", abbreviate=False,
        one_of="q quiet services volumes images profiles", or_else="it prints what .env and others hold",
        traits="local",
    ),
    "docker compose": ProgramEntry(
        why="options before the command", refuse="file project-directory env-file", abbreviate=False, prefix=True,
        traits="compose",
    ),
    "docker exec|docker container exec|podman exec": ProgramEntry(
        runs=WrapperEntry(
            value="-u -w -e --user --workdir --env --env-file --detach-keys", skip=1, risk="medium",
            does="in a container", elsewhere=True,
        ),
    ),
    "docker run|docker container run|podman run": ProgramEntry(
        runs=WrapperEntry(
            value="""
                -v -e -p -u -w -h -l -m --volume --env --publish --user --workdir --name --network --net --mount
                --entrypoint --hostname --label --env-file --cpus --memory --restart --add-host --device --gpus --pid
                --ipc --platform --tmpfs --ulimit --cap-add --cap-drop --security-opt --volumes-from --link --log-driver
                --pull --shm-size --ip --dns --expose --runtime --userns --cidfile --health-cmd -c -a --attach
            """,
            skip=1, risk="medium", does="in a new container", elsewhere=True,
        ),
    ),
    "docker compose exec|docker-compose exec": ProgramEntry(
        runs=WrapperEntry(
            value="-u -w -e --user --workdir --env --index", skip=1, risk="medium", does="in a container",
            elsewhere=True,
        ),
    ),
    "docker compose run|docker-compose run": ProgramEntry(
        runs=WrapperEntry(
            value="-u -w -e -v -p --user --workdir --env --volume --publish --name --entrypoint", skip=1, risk="medium",
            does="in a new container", elsewhere=True,
        ),
    ),
    "docker": ProgramEntry(
        does=[
            effect.PUBLISHES.on("push"),
            effect.DELETES_CONTAINERS.on(
                """
                    rm|rmi|container rm|container remove|image rm|image remove|volume rm|volume prune|network rm|
                    stack rm|service rm|secret rm|config rm|context rm|swarm leave|node rm|plugin rm|buildx rm
                """,
            ),
            effect.DELETES_UNUSED.on(
                "system prune|image prune|container prune|network prune|builder prune|buildx prune",
            ),
            effect.DELETES_UNUSED_VOLUMES.on("system prune"), effect.DELETES_SERVICE_DATA.on("compose down|compose rm"),
            effect.STEERS_CONTAINERS, effect.CONTAINER_WITH_POWER.on("run|create|container run"),
            effect.CONTAINER_WITH_FILES.on("run|create|container run|compose run"), effect.MAY_WRITE_OR_START,
            effect.CHANGES_USER_SETTINGS.on("login"), effect.ONLY_CHANGES_USER_SETTINGS.on("login"),
            effect.MAY_READ_OR_START.on("inspect"),
        ],
        globals="--config --context --host --log-level -H -c -l", answers_to="-v",
        groups="compose container image volume network system buildx builder context manifest", grant="command",
        grant_words="compose container image volume network system buildx", grant_line="run exec build cp",
        traits="prints-setup answers helps server relay",
    ),
    "podman": ProgramEntry(
        does=[
            effect.PUBLISHES.on("push"), effect.DELETES_CONTAINERS.on("rm|rmi|volume rm|pod rm|system reset"),
            effect.DELETES_UNUSED.on("system prune|image prune"), effect.DELETES_UNUSED_VOLUMES.on("system prune"),
            effect.STEERS_CONTAINERS, effect.CONTAINER_WITH_POWER.on("run"), effect.CONTAINER_WITH_FILES.on("run"),
        ],
        answers_to="-v", groups="container image volume network system pod", grant="command", grant_words="compose",
        grant_line="run exec build", traits="answers helps server relay",
    ),
    """
        gh pr list|gh pr view|gh pr status|gh pr diff|gh pr checks|gh issue list|gh issue view|gh issue status|
        gh repo view|gh repo list|gh run list|gh run view|gh workflow list|gh workflow view|gh release list|
        gh release view|gh search issues|gh search prs|gh search repos|gh search code|gh label list|gh gist list|
        gh status|gh org list|gh cache list|gh ruleset list|gh project list
    """: ProgramEntry(
        why="reads from GitHub", short="cs:a:A:l:L:q:H:B:S:R:j:b:u:",
        long="""
            comments state: assignee: author: label: limit: json: jq: template: head: base: search: draft repo: app:
            milestone: mention: log log-failed job: verbose exit-status attempt: workflow: branch: user: event: commit:
            status: patch name-only color: hostname: active required watch interval: archived fork source language:
            topic: visibility: owner: language: sort: order: created: updated: match: filename: extension:
            exclude-drafts exclude-pre-releases all
        """,
        refuse="web show-token", operands="text", abbreviate=False, connects="GitHub",
    ),
    "gh": ProgramEntry(
        does=[
            effect.PUBLISHES.on("release create|release upload|release delete"),
            effect.DESTROYS_ELSEWHERE.on("repo delete"), effect.ASKS_A_SERVICE,
            effect.CHANGES_KEPT_ELSEWHERE.on(
                "repo delete|repo archive|release delete|secret delete|secret set|issue delete|pr merge",
            ),
            effect.SHOWS_SECRETS.on("auth token"), effect.SHOWS_SECRETS.on("auth status", options="-t --show-token"),
            effect.CHANGES_USER_SETTINGS.on("auth login"), effect.ONLY_CHANGES_USER_SETTINGS.on("auth login"),
        ],
        answers_to="version -h",
        groups="pr issue repo release run workflow auth gist label search project cache ruleset variable",
        grant="command", grant_words="pr issue repo run release workflow", grant_line="api alias extension codespace",
        traits="prints-setup answers helps server",
    ),
    "mvn": ProgramEntry(
        does=[effect.PUBLISHES.on("deploy"), effect.RUNS_PROJECT], answers_to="-v", answers_unless=".mvn",
        needs="/etc/maven /etc/java /etc/java-11-openjdk /etc/java-17-openjdk /etc/java-21-openjdk /proc",
        grant="command", turning="-f -s -gs -t --file --settings --global-settings --toolchains",
        traits="answers empty-home",
    ),
    "make": ProgramEntry(
        does=[effect.RUNS_PROJECT], globals="-C -I -f", answers_to="-v", grant="command", traits="answers make-words",
    ),
    "gmake": ProgramEntry(does=[effect.RUNS_PROJECT], answers_to="-v", grant="command", traits="answers make-words"),
    "cmake": ProgramEntry(does=[effect.RUNS_PROJECT], answers_to="-h", grant="line", traits="answers"),
    "ninja": ProgramEntry(does=[effect.RUNS_PROJECT], grant="command", traits="answers make-words"),
    "meson|esbuild|xcodebuild|autoconf|automake|biome|clang-tidy|shfmt|buf|protoc": ProgramEntry(
        does=[effect.RUNS_PROJECT], traits="answers",
    ),
    "bazel": ProgramEntry(
        does=[effect.RUNS_PROJECT], answers_unless=".bazeliskrc .bazelversion tools", grant="command", traits="answers",
    ),
    "ant": ProgramEntry(
        does=[effect.RUNS_PROJECT],
        needs="/etc/java /etc/java-11-openjdk /etc/java-17-openjdk /etc/java-21-openjdk /proc", traits="answers",
    ),
    "mvnw|gradlew|just|task": ProgramEntry(does=[effect.RUNS_PROJECT], grant="command"),
    "gradle": ProgramEntry(
        does=[effect.RUNS_PROJECT], answers_to="-v", answers_unless="gradle.properties build.gradle gradle",
        needs="/etc/java /etc/java-11-openjdk /etc/java-17-openjdk /etc/java-21-openjdk /proc", grant="command",
        turning="""
            -b -c -I -p -g -D -P --build-file --settings-file --init-script --project-dir --gradle-user-home
            --include-build
        """,
        traits="answers empty-home",
    ),
    "sbt": ProgramEntry(
        does=[effect.RUNS_PROJECT], answers_unless=".sbtopts .jvmopts project",
        needs="/etc/java /etc/java-11-openjdk /etc/java-17-openjdk /etc/java-21-openjdk /proc",
        traits="answers empty-home",
    ),
    "rake": ProgramEntry(does=[effect.RUNS_PROJECT, effect.DELETES_DATABASE.on("db:drop|db:reset")], grant="command"),
    "tox": ProgramEntry(
        does=[effect.RUNS_PROJECT], grant="command", turning="-c -x --conf --root --workdir --override --installpkg",
    ),
    "nox": ProgramEntry(does=[effect.RUNS_PROJECT], grant="command", turning="-f --noxfile"),
    "pytest|py.test": ProgramEntry(
        does=[effect.RUNS_PROJECT],
        turning="-p -c -o --rootdir --confcutdir --override-ini --pdbcls --basetemp --import-mode --config-file",
        traits="suggest-name",
    ),
    "jest": ProgramEntry(
        does=[effect.RUNS_PROJECT], answers_unless="node_modules",
        turning="""
            -c --config --rootDir --runner --testEnvironment --setupFiles --setupFilesAfterEnv --globalSetup
            --globalTeardown --transform --resolver --reporters --testRunner --projects --env --haste --watchPlugins
            --moduleDirectories
        """,
        traits="answers suggest-name",
    ),
    "vitest": ProgramEntry(
        does=[effect.RUNS_PROJECT], answers_unless="node_modules",
        turning="-c -r --config --root --globalSetup --reporter --environment --dir", traits="answers suggest-name",
    ),
    "mocha": ProgramEntry(
        does=[effect.RUNS_PROJECT],
        turning="-r --require --config --file --package --ui --reporter --import --loader --experimental-loader",
        traits="suggest-name",
    ),
    """
        cypress|playwright|nuxt|ng|vue|gulp|grunt|bin/rails|django-admin|flask|uvicorn|gunicorn|alembic|artisan|
        scalac|./configure|configure|coverage|sphinx-build|mkdocs|hugo|jekyll|storybook|nodemon|pm2|streamlit|jupyter|
        goimports|swiftlint|ktlint|phpstan|php-cs-fixer|spark-submit|forge|expo|react-native|tauri|electron
    """: ProgramEntry(does=[effect.RUNS_PROJECT]),
    "tsc": ProgramEntry(
        does=[effect.RUNS_PROJECT], answers_to="-v -h", turning="--plugins --outDir --outFile",
        traits="answers suggest-name",
    ),
    "eslint": ProgramEntry(
        does=[effect.RUNS_PROJECT], answers_to="-v -h", answers_unless="node_modules",
        turning="-c -f --config --rulesdir --plugin --parser --format --resolve-plugins-relative-to --output-file -o",
        traits="answers suggest-name",
    ),
    "prettier": ProgramEntry(
        does=[effect.RUNS_PROJECT], answers_to="-h", answers_unless="node_modules",
        turning="--config --plugin --plugin-search-dir --find-config-path", traits="answers suggest-name",
    ),
    "webpack|vite": ProgramEntry(
        does=[effect.RUNS_PROJECT], answers_to="-v", answers_unless="node_modules",
        turning="-c -r --config --require --root --configPlugin --plugin", traits="answers",
    ),
    "rollup": ProgramEntry(
        does=[effect.RUNS_PROJECT], answers_to="-v", turning="-c -r --config --require --root --configPlugin --plugin",
        traits="answers",
    ),
    "next": ProgramEntry(does=[effect.RUNS_PROJECT], turning="-c -r --config --require --root --configPlugin --plugin"),
    "turbo|nx|lerna": ProgramEntry(does=[effect.RUNS_PROJECT], answers_unless="node_modules", traits="answers"),
    "rspec": ProgramEntry(
        does=[effect.RUNS_PROJECT], turning="-r -I -O --require --options --default-path", traits="suggest-name",
    ),
    "rails": ProgramEntry(does=[effect.RUNS_PROJECT, effect.DELETES_DATABASE.on("db:drop|db:reset")]),
    "manage.py": ProgramEntry(does=[effect.RUNS_PROJECT, effect.DELETES_DATABASE.on("flush")]),
    "phpunit": ProgramEntry(
        does=[effect.RUNS_PROJECT], turning="-c --configuration --bootstrap --extension --printer",
        traits="suggest-name",
    ),
    "swift": ProgramEntry(
        does=[effect.RUNS_PROJECT.on("build|run|test"), effect.RUNS_PROGRAM], grant="command",
        traits="answers typed-code",
    ),
    "javac": ProgramEntry(
        does=[effect.RUNS_PROJECT], answers_to="-version",
        needs="/etc/java /etc/java-11-openjdk /etc/java-17-openjdk /etc/java-21-openjdk /proc",
        turning="@ -plugin -processor -processorpath", traits="answers temporary single-dash",
    ),
    "java": ProgramEntry(
        does=[effect.RUNS_PROJECT], answers_to="-version",
        needs="/etc/java /etc/java-11-openjdk /etc/java-17-openjdk /etc/java-21-openjdk /proc", grant="script",
        traits="answers temporary",
    ),
    "gcc|g++|cc|clang": ProgramEntry(
        does=[effect.RUNS_PROJECT, effect.STARTS_BY_OPTION_OR_SOURCE.on(options="-fplugin --wrapper -wrapper")],
        answers_to="-v", turning="-B -fplugin -wrapper -specs -fuse-ld -Xclang -load @",
        traits="answers builds single-dash",
    ),
    "c++|clang++": ProgramEntry(
        does=[effect.RUNS_PROJECT], answers_to="-v", turning="-B -fplugin -wrapper -specs -fuse-ld -Xclang -load @",
        traits="answers builds single-dash",
    ),
    "ld": ProgramEntry(
        does=[effect.RUNS_PROJECT], turning="@ -plugin -processor -processorpath", traits="answers builds single-dash",
    ),
    """
        rustc -vV|rustc --print sysroot|rustc --print target-list|rustc --print cfg|rustc --print target-cpus|
        rustc --print host-tuple
    """: ProgramEntry(why="prints facts about the compiler", unless="rust-toolchain rust-toolchain.toml .cargo"),
    "rustc": ProgramEntry(
        does=[effect.RUNS_PROJECT, effect.MAY_WRITE_OR_START], answers_to="-V -h",
        answers_unless="rust-toolchain rust-toolchain.toml .cargo", traits="answers builds",
    ),
    "ghc": ProgramEntry(does=[effect.RUNS_PROJECT], traits="answers typed-code"),
    "zig|packer": ProgramEntry(does=[effect.RUNS_PROJECT], answers_to="version", traits="answers"),
    "kotlinc": ProgramEntry(does=[effect.RUNS_PROJECT], answers_to="-version", traits="answers typed-code"),
    "ctest|ansible|ansible-playbook": ProgramEntry(does=[effect.RUNS_PROJECT], grant="line"),
    "ruff": ProgramEntry(does=[effect.RUNS_PROJECT], answers_to="version -V -h", traits="answers helps"),
    "black|isort": ProgramEntry(does=[effect.RUNS_PROJECT], answers_to="-h", traits="answers suggest-name"),
    "flake8": ProgramEntry(
        does=[effect.RUNS_PROJECT], answers_unless="setup.cfg tox.ini .flake8", turning="--config --append-config",
        traits="answers suggest-name",
    ),
    "mypy": ProgramEntry(
        does=[effect.RUNS_PROJECT], answers_to="-V", answers_unless="mypy.ini setup.cfg",
        turning="--config-file --python-executable --custom-typeshed-dir --cache-dir --shadow-file",
        traits="answers suggest-name",
    ),
    "pylint": ProgramEntry(
        does=[effect.RUNS_PROJECT], turning="--rcfile --init-hook --load-plugins", traits="suggest-name",
    ),
    "pyright|clang-format|hadolint|yamllint|markdownlint": ProgramEntry(
        does=[effect.RUNS_PROJECT], traits="answers suggest-name",
    ),
    "pre-commit": ProgramEntry(does=[effect.RUNS_PROJECT], turning="-c --config", traits="answers suggest-name"),
    "tsx|ts-node": ProgramEntry(
        does=[effect.RUNS_PROJECT, effect.RUNS_PROGRAM], answers_unless="node_modules", grant="script",
        traits="answers",
    ),
    "serve|http-server": ProgramEntry(does=[effect.RUNS_PROJECT, effect.SERVES, effect.SERVES_OUTSIDE]),
    "ipython": ProgramEntry(does=[effect.RUNS_PROJECT], grant="script", traits="interprets typed-code"),
    "vagrant": ProgramEntry(
        does=[effect.RUNS_PROJECT, effect.DELETES_CONTAINERS.on("destroy")], answers_unless="Vagrantfile",
        grant="command", traits="answers relay",
    ),
    "stylelint": ProgramEntry(
        does=[effect.RUNS_PROJECT], turning="--config --config-basedir --custom-syntax --custom-formatter --plugins",
        traits="suggest-name",
    ),
    "rubocop": ProgramEntry(
        does=[effect.RUNS_PROJECT], turning="-c -r --config --require --plugin", traits="suggest-name",
    ),
    "golangci-lint": ProgramEntry(does=[effect.RUNS_PROJECT], turning="-c --config", traits="suggest-name"),
    "rustfmt": ProgramEntry(
        does=[effect.RUNS_PROJECT], answers_unless="rust-toolchain rust-toolchain.toml", traits="answers suggest-name",
    ),
    "terraform version|terraform workspace show|tofu version": ProgramEntry(
        why="asks terraform what there is", long="json", single=True, abbreviate=False,
    ),
    "terraform state list|terraform workspace list|tofu state list": ProgramEntry(
        why="asks terraform what there is", long="id:", refuse="state", operands="word", single=True, abbreviate=False,
        connects="the place where its state is kept",
    ),
    "terraform": ProgramEntry(
        does=[
            effect.RUNS_PROJECT.on("fmt"), effect.DESTROYS_ELSEWHERE.on("destroy"),
            effect.DEPLOYS.on("apply|import|state rm|state mv|taint|force-unlock"), effect.ASKS_A_SERVICE,
        ],
        answers_to="version -version -v -h", groups="state workspace providers", grant="command",
        grant_words="state workspace", traits="answers helps empty-home",
    ),
    "python2": ProgramEntry(does=[effect.RUNS_PROGRAM, effect.RUNS_CODE], traits="interprets answers"),
    "pypy": ProgramEntry(
        does=[effect.RUNS_PROGRAM, effect.RUNS_CODE], grant="script", typed_code="-c",
        traits="interprets versioned modules",
    ),
    "node": ProgramEntry(
        does=[effect.RUNS_PROGRAM, effect.RUNS_CODE, effect.RUNS_FETCHED.on(operand="^(https?://|jsr:|npm:)")],
        answers_to="-v -h", grant="script", typed_code="-e", traits="interprets versioned answers",
    ),
    "nodejs": ProgramEntry(
        does=[effect.RUNS_PROGRAM, effect.RUNS_CODE], answers_to="-v", grant="script", traits="interprets answers",
    ),
    "ruby": ProgramEntry(
        does=[effect.RUNS_PROGRAM, effect.RUNS_CODE], answers_to="-v -h", grant="line", typed_code="-e",
        traits="interprets versioned answers",
    ),
    "perl": ProgramEntry(
        does=[effect.RUNS_PROGRAM, effect.RUNS_CODE], answers_to="-v -h", needs="/etc/perl", grant="line",
        typed_code="-e", traits="interprets versioned answers",
    ),
    "php": ProgramEntry(
        does=[
            effect.RUNS_PROGRAM, effect.RUNS_CODE, effect.DELETES_DATABASE.on("artisan migrate:fresh"),
            effect.SERVES.on("-S"),
        ],
        answers_to="-v -h", grant="line", typed_code="-r", traits="interprets versioned answers",
    ),
    "lua": ProgramEntry(
        does=[effect.RUNS_PROGRAM, effect.RUNS_CODE], answers_to="-v", grant="line", typed_code="-e",
        traits="interprets versioned answers",
    ),
    "luajit": ProgramEntry(
        does=[effect.RUNS_PROGRAM, effect.RUNS_CODE], answers_to="-v", grant="line", traits="interprets answers",
    ),
    "Rscript": ProgramEntry(does=[effect.RUNS_PROGRAM, effect.RUNS_CODE], grant="script", traits="interprets answers"),
    "R": ProgramEntry(does=[effect.RUNS_PROGRAM, effect.RUNS_CODE], grant="script", traits="answers typed-code"),
    "julia": ProgramEntry(
        does=[effect.RUNS_PROGRAM, effect.RUNS_CODE], answers_to="-v", grant="script",
        traits="interprets answers typed-code",
    ),
    "elixir": ProgramEntry(
        does=[effect.RUNS_PROGRAM, effect.RUNS_CODE], answers_to="-v", traits="interprets answers typed-code",
    ),
    "erl": ProgramEntry(does=[effect.RUNS_PROGRAM], traits="answers typed-code"),
    "iex": ProgramEntry(does=[effect.RUNS_PROGRAM], answers_to="-v", traits="answers typed-code"),
    "irb|ghci|expect|jshell": ProgramEntry(does=[effect.RUNS_PROGRAM], grant="line", traits="typed-code"),
    "pry|octave": ProgramEntry(does=[effect.RUNS_PROGRAM], traits="typed-code"),
    "scala|kotlin": ProgramEntry(
        does=[effect.RUNS_PROGRAM], answers_to="-version",
        needs="/etc/java /etc/java-11-openjdk /etc/java-17-openjdk /etc/java-21-openjdk /proc", grant="script",
        traits="answers typed-code",
    ),
    "groovy": ProgramEntry(does=[effect.RUNS_PROGRAM], grant="script", traits="interprets typed-code"),
    "osascript": ProgramEntry(does=[effect.RUNS_PROGRAM], grant="line", traits="interprets"),
    "tclsh": ProgramEntry(does=[effect.RUNS_PROGRAM], grant="line", traits="interprets typed-code"),
    "pwsh": ProgramEntry(does=[effect.RUNS_PROGRAM, effect.RUNS_DISGUISED], grant="line", traits="shell typed-shell"),
    "powershell": ProgramEntry(does=[effect.RUNS_PROGRAM, effect.RUNS_DISGUISED], grant="line", traits="shell"),
    "gdb|lldb": ProgramEntry(does=[effect.RUNS_PROGRAM], grant="line", traits="answers typed-code"),
    "csh|tcsh": ProgramEntry(does=[effect.RUNS_SCRIPT], grant="script", traits="shell typed-shell"),
    "source": ProgramEntry(
        does=[effect.RUNS_SCRIPT, effect.CHANGES_SHELL], grant="line", traits="interprets runs-in-shell runs-file",
    ),
    ".": ProgramEntry(does=[effect.RUNS_SCRIPT], grant="line", traits="interprets runs-in-shell runs-file"),
    "multipass exec": ProgramEntry(
        runs=WrapperEntry(skip=1, risk="medium", does="in a virtual machine", elsewhere=True),
    ),
    "multipass": ProgramEntry(
        does=[effect.DELETES_CONTAINERS.on("delete"), effect.STEERS_CONTAINERS], traits="server relay",
    ),
    "tofu": ProgramEntry(
        does=[effect.DESTROYS_ELSEWHERE.on("destroy"), effect.DEPLOYS.on("apply"), effect.ASKS_A_SERVICE],
        answers_to="version -version", grant="command", traits="answers empty-home",
    ),
    "heroku": ProgramEntry(
        does=[
            effect.DESTROYS_ELSEWHERE.on("apps:destroy|pg:reset"), effect.DEPLOYS.on("run|releases:rollback"),
            effect.ASKS_A_SERVICE, effect.SHOWS_SECRETS.on("config|auth:token"),
        ],
        grant="command", traits="answers server",
    ),
    """
        gcloud info|gcloud projects list|az account show|az account list|aws sts get-caller-identity|
        aws ec2 describe-instances|heroku apps|conda info|conda search|gem env|gem info|gem search|tmux ls|
        tmux list-sessions|tmux list-windows|multipass list|ollama list|ollama ps
    """: ProgramEntry(
        why="asks a tool what there is", short="anelpovgq",
        long="""
            all json env envs name: tree latest outdated installed local remote short verbose no-headers format: output:
            region: profile:
        """,
        refuse="endpoint-url", operands="word", abbreviate=False, connects="a server or a daemon",
    ),
    "gcloud": ProgramEntry(
        does=[
            effect.DESTROYS_ELSEWHERE.on("projects delete"), effect.DEPLOYS.on("app deploy|run deploy"),
            effect.ASKS_A_SERVICE, effect.CHANGES_KEPT_ELSEWHERE.on("compute instances delete|sql instances delete"),
            effect.DELETES_ELSEWHERE, effect.SHOWS_SECRETS.on("auth print-access-token|secrets versions access"),
            effect.CONNECTS, effect.PRINTS_SETTINGS.on("config list"),
        ],
        globals="--account --project", answers_to="version", grant="command", grant_words="compute", grant_line="ssh",
        traits="answers server",
    ),
    "aws s3 ls": ProgramEntry(
        why="lists a bucket", long="recursive human-readable summarize profile: region:", refuse="endpoint-url",
        operands="word", abbreviate=False, connects="a cloud service", traits="any-address",
    ),
    "aws": ProgramEntry(
        does=[
            effect.DESTROYS_ELSEWHERE.on("s3 rb"), effect.ASKS_A_SERVICE,
            effect.CHANGES_KEPT_ELSEWHERE.on(
                """
                    s3 rm|s3 rb|ec2 terminate-instances|rds delete-db-instance|dynamodb delete-table|
                    cloudformation delete-stack|lambda delete-function|iam delete-user
                """,
            ),
            effect.DELETES_ELSEWHERE,
            effect.SHOWS_SECRETS.on("secretsmanager get-secret-value|ssm get-parameter|configure get"),
        ],
        globals="--endpoint-url --output --profile --region", grant="command", grant_words="s3",
        traits="fetches answers server",
    ),
    "az": ProgramEntry(
        does=[
            effect.DESTROYS_ELSEWHERE.on("group delete"), effect.ASKS_A_SERVICE, effect.DELETES_ELSEWHERE,
            effect.SHOWS_SECRETS.on("account get-access-token"),
        ],
        answers_to="version", grant="command", traits="answers server",
    ),
    "update-alternatives": ProgramEntry(
        does=[effect.CHANGES_MACHINE, effect.ONLY_ASKS_MACHINE, effect.SHOWS_MACHINE.on("--list")],
        needs="/var/lib/dpkg/alternatives",
    ),
    "openssl x509|openssl dgst|openssl asn1parse": ProgramEntry(
        why="shows a certificate or a checksum",
        long="""
            in@ noout text subject issuer dates startdate enddate fingerprint serial pubkey sha256 sha1 sha512 md5
            inform: ext: hash r hex email purpose checkend:
        """,
        refuse="out signkey CA CAkey engine provider sign key", operands="path", single=True, abbreviate=False,
        check="openssl",
    ),
    "openssl": ProgramEntry(
        does=[
            effect.CONNECTS.on("s_client"), effect.STARTS_BY_OPTION_OR_SOURCE.on(options="--engine -engine -provider"),
            effect.MAY_WRITE_OR_START,
        ],
        answers_to="version", grant="line", traits="sends decodes answers",
    ),
    "code": ProgramEntry(does=[effect.MAY_WRITE_OR_START], answers_to="-v", grant="line", traits="answers"),
    "tmux new-session": ProgramEntry(runs=WrapperEntry(value="-s -n -c -t -x -y -e -F", script=True, risk="medium")),
    "tmux send-keys": ProgramEntry(runs=WrapperEntry(value="-t -N", script=True, risk="medium")),
    "tmux": ProgramEntry(
        does=[effect.MAY_WRITE_OR_START], answers_to="-V", grant="line", traits="answers server relay",
    ),
    "screen -dm": ProgramEntry(runs=WrapperEntry(value="-S", risk="medium")),
    "screen": ProgramEntry(
        does=[effect.MAY_WRITE_OR_START], answers_to="-v", grant="line", traits="answers server relay",
    ),
    "tarmac": ProgramEntry(
        does=[EffectEntry("high", "runs", "steers Tarmac itself")], special="steer_tarmac", grant="never",
    ),
    "claude|codex|gemini|aider|goose|opencode|cursor-agent": ProgramEntry(does=[effect.STARTS_AGENT], grant="line"),
    "amp|crush|copilot": ProgramEntry(does=[effect.STARTS_AGENT]),
    "ssh-agent|fnm|dircolors|zoxide|thefuck": ProgramEntry(traits="prints-setup"),
    "starship": ProgramEntry(answers_to="-V", traits="prints-setup answers"),
    "mkfs": ProgramEntry(special="make_file_system", traits="dangerous-inside"),
    "python3": ProgramEntry(
        answers_to="-V -VV -h", needs="/etc/python3 /etc/python3.11 /etc/python3.12", needs_in_home=".local/lib",
        traits="answers",
    ),
    "pypy3": ProgramEntry(answers_to="-V", traits="answers"),
    "buck|swc|mongod|postgres|sync": ProgramEntry(traits="answers"),
    "swiftc": ProgramEntry(answers_to="-version", traits="answers"),
    "ocaml": ProgramEntry(answers_to="-version", traits="answers typed-code"),
    "redis-server|httpd|apache2": ProgramEntry(answers_to="-v", traits="answers"),
    "nginx": ProgramEntry(answers_to="-v -V", needs="/etc/nginx", traits="answers"),
    "hyperfine": ProgramEntry(answers_to="-V -h", traits="answers"),
    "cargo-clippy": ProgramEntry(answers_unless="rust-toolchain rust-toolchain.toml .cargo", traits="answers"),
    "ollama": ProgramEntry(traits="server"),
    "elvish|xonsh|nu": ProgramEntry(grant="script", traits="typed-shell"),
    "mysqlsh|bpython|pdb|clickhouse|gst|sqlite|octave-cli|clojure": ProgramEntry(traits="typed-code"),
    "wsl": ProgramEntry(grant="line", traits="relay"),
    "view|vim.tiny|most|lf": ProgramEntry(traits="keyboard"),
    "remove-item": ProgramEntry(special="remove_item"),
    "invoke-expression": ProgramEntry(special="invoke_expression"),
    "gfind": ProgramEntry(special="find"),
    "apt-mark|apt-config": ProgramEntry(
        needs="""
            /var/lib/dpkg /etc/dpkg/dpkg.cfg /etc/dpkg/dpkg.cfg.d /etc/dpkg/origins /var/lib/apt /var/cache/apt
            /etc/apt/sources.list /etc/apt/sources.list.d /etc/apt/apt.conf.d /etc/apt/preferences.d
            /etc/apt/trusted.gpg.d
        """,
    ),
    "udevadm": ProgramEntry(needs="/sys /run/udev/data /proc"),
    "prove": ProgramEntry(needs="/etc/perl"),
    "invoke": ProgramEntry(grant="command"),
    "cmd|rundll32|dtach|start-stop-daemon|wscript|explorer|cscript": ProgramEntry(grant="line"),
}
