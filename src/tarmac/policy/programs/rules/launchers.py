"""Programs that run other programs.

To allow one of these by its first word would be to allow everything, so "always allow" takes more words, or the whole
line only.
"""

# Nothing at all: whoever may run it could allow themselves the rest.
NEVER = "tarmac"

# Only a whole line: any further word may be a program, a script, or an option that names one.
WHOLE_LINE = (
    # shells' own words
    "eval|exec|source|.|command|builtin|trap|alias|enable|coproc|"
    # they take a command
    """
        env|xargs|sudo|doas|su|runuser|pkexec|setpriv|nice|ionice|chrt|nohup|setsid|stdbuf|timeout|time|watch|
        parallel|entr|flock|chroot|unshare|nsenter|bwrap|firejail|script|expect|unbuffer|strace|ltrace|gdb|lldb|
        valgrind|perf|taskset|numactl|xvfb-run|dbus-run-session|systemd-run|at|batch|crontab|busybox|toybox|direnv|
        torsocks|proxychains|caffeinate|start-stop-daemon|screen|tmux|zellij|dtach|nvim|vim|vi|ex|ed|emacs|nano|
    """
    # they take code, or an option that names a program
    """
        find|fd|fdfind|awk|gawk|mawk|nawk|sed|perl|ruby|lua|luajit|tclsh|osascript|php|m4|bc|dc|jshell|ghci|irb|
        sqlite3|psql|mysql|tar|bsdtar|cpio|rsync|zip|less|more|man|rg|sort|split|tcpdump|nmap|openssl|ssh|scp|sftp|
        mosh|telnet|nc|ncat|socat|rsh|ansible|ansible-playbook|salt|fab|cmake|ctest|npx|bunx|uvx|pnpx|claude|codex|
        gemini|aider|goose|opencode|cursor-agent|code|xdg-open|open|start|explorer|cmd|powershell|pwsh|wscript|
        cscript|rundll32|wsl
    """
)

# A program that has commands of its own: the one that is meant must be named, before any option.
SECOND_WORD = """
    make|gmake|ninja|git|hg|svn|jj|gh|glab|npm|yarn|pnpm|bun|deno|docker|podman|nerdctl|kubectl|oc|helm|cargo|
    rustup|go|pip|pip3|pipx|uv|poetry|pdm|hatch|rye|conda|mamba|gem|bundle|rake|composer|mvn|gradle|gradlew|mvnw|
    dotnet|swift|mix|rebar3|stack|cabal|apt|apt-get|dpkg|dnf|yum|rpm|pacman|apk|zypper|snap|flatpak|brew|port|nix|
    systemctl|service|launchctl|journalctl|aws|gcloud|gsutil|az|doctl|heroku|flyctl|vercel|netlify|wrangler|
    terraform|tofu|pulumi|vagrant|just|task|invoke|nox|tox|asdf|mise|nvm|pyenv|rbenv|bazel|buck2|earthly|dagger
"""

# … and these commands of theirs take one more word …
THIRD_WORD = """
    npm run|npm run-script|yarn run|pnpm run|bun run|deno task|composer run|composer run-script|docker compose|
    docker container|docker image|docker volume|docker network|docker system|docker buildx|podman compose|git stash|
    git remote|git branch|git tag|git worktree|git config|git submodule|gh pr|gh issue|gh repo|gh run|gh release|
    gh workflow|uv pip|cargo xtask|mise run|nix flake|aws s3|gcloud compute|terraform state|terraform workspace|
    conda env|go mod|go work|go tool
"""

# … or a program, which must itself be fit to be granted …
THEN_A_PROGRAM = "uv run|poetry run|pdm run|hatch run|rye run|pipx run|bundle exec|mise exec|conda run"

# … or are good for a whole line only.
PAIR_WHOLE_LINE = """
    git config|git filter-branch|git difftool|git mergetool|git bisect|git rebase|git submodule|git daemon|
    git credential|git hook|git clone|git fetch|git pull|git ls-remote|git grep|git archive|npm exec|npm x|
    npm explore|npm create|npm init|yarn dlx|yarn exec|yarn create|pnpm dlx|pnpm exec|pnpm create|bun x|bun create|
    deno run|deno eval|docker run|docker exec|docker build|docker cp|podman run|podman exec|podman build|
    nerdctl run|nerdctl exec|kubectl exec|kubectl run|kubectl debug|kubectl cp|oc exec|oc rsh|uv tool|gh api|
    gh alias|gh extension|gh codespace|nix run|nix shell|nix develop|gcloud ssh|go generate|cargo install|
    pip config|npm config
"""

# They run a script: the script must be named; never the code itself.
INTERPRETERS = """
    bash|sh|dash|ash|zsh|fish|ksh|mksh|csh|tcsh|rbash|nu|xonsh|elvish|python|pypy|ipython|node|nodejs|ts-node|tsx|
    java|Rscript|R|julia|groovy|scala|kotlin
"""

# `python -m` with one of these is no better than `python -c`.
MODULES_WHOLE_LINE = "pdb|runpy|timeit|code|cProfile|profile|trace|pip|venv|http.server|IPython"

# What "always allow" suggests only as a whole line: each call of it is another thing …
NO_PREFIX_SUGGESTED = (
    """
        rm|rmdir|mv|cp|ln|dd|chmod|chown|chgrp|kill|pkill|killall|curl|wget|tee|truncate|shred|install|mount|umount|
        touch|mkdir|unzip|gunzip|patch|useradd|usermod|passwd|
    """
    # … or it is asked about for what it reads: without, it would be allowed anyway
    """
        cat|head|tail|ls|dir|cd|pushd|popd|pwd|echo|printf|grep|egrep|fgrep|wc|uniq|cut|tr|diff|cmp|comm|paste|join|
        column|nl|od|xxd|hexdump|strings|file|stat|du|df|tree|date|test|[|true|false|which|type|whereis|readlink|
        realpath|basename|dirname|jq|yq|base64|md5sum|sha1sum|sha256sum|set|export|unset|read|declare|typeset|local|
        umask|ulimit|wait|jobs|fg|bg|return|exit|printenv|ps|id|whoami|uname|env|git diff|git log|git show|
        git status|git blame|git cat-file
    """
)

# Suggested by their name alone: what their options can do is known, below. Of all others two words are suggested.
BY_NAME = """
    pytest|py.test|mypy|pyright|black|isort|flake8|pylint|tsc|eslint|prettier|jest|vitest|mocha|rspec|rubocop|
    phpunit|stylelint|yamllint|markdownlint|hadolint|golangci-lint|gofmt|rustfmt|clang-format|pre-commit
"""

# Options that make another thing of a program: they name a program, a plugin, a configuration that runs code, or
# another project. No prefix covers them, granted or written. `-x` of more than a letter
# means `--x` as well.
TURNING = {
    "go": "-exec -toolexec -vettool -overlay -modfile -C -gccgoflags -asmflags -pkgdir",
    "pytest py.test": "-p -c -o --rootdir --confcutdir --override-ini --pdbcls --basetemp --import-mode --config-file",
    "gcc g++ cc c++ clang clang++": "-B -fplugin -wrapper -specs -fuse-ld -Xclang -load @",
    "ld javac": "@ -plugin -processor -processorpath",
    "eslint": "-c -f --config --rulesdir --plugin --parser --format --resolve-plugins-relative-to --output-file -o",
    "prettier": "--config --plugin --plugin-search-dir --find-config-path",
    "stylelint": "--config --config-basedir --custom-syntax --custom-formatter --plugins",
    "jest": """
        -c --config --rootDir --runner --testEnvironment --setupFiles --setupFilesAfterEnv --globalSetup
        --globalTeardown --transform --resolver --reporters --testRunner --projects --env --haste --watchPlugins
        --moduleDirectories
    """,
    "vitest": "-c -r --config --root --globalSetup --reporter --environment --dir",
    "mocha": "-r --require --config --file --package --ui --reporter --import --loader --experimental-loader",
    "webpack vite rollup next": "-c -r --config --require --root --configPlugin --plugin",
    "mypy": "--config-file --python-executable --custom-typeshed-dir --cache-dir --shadow-file",
    "pylint": "--rcfile --init-hook --load-plugins",
    "flake8": "--config --append-config",
    "tsc": "--plugins --outDir --outFile",
    "rspec": "-r -I -O --require --options --default-path",
    "rubocop": "-c -r --config --require --plugin",
    "phpunit": "-c --configuration --bootstrap --extension --printer",
    "npm pnpm yarn": "-C --prefix --script-shell --node-options --userconfig --globalconfig --registry --cwd --dir",
    "bun": "-r --preload --cwd --config",
    "cargo": "-C -Z --config --manifest-path --target-dir",
    "tox": "-c -x --conf --root --workdir --override --installpkg",
    "nox": "-f --noxfile",
    "mvn": "-f -s -gs -t --file --settings --global-settings --toolchains",
    "gradle": """
        -b -c -I -p -g -D -P --build-file --settings-file --init-script --project-dir --gradle-user-home
        --include-build
    """,
    "dotnet": "--property --packages --source --tool-path --configfile --additionalprobingpath",
    "pip uv": """
        -i -f --index-url --extra-index-url --index --default-index --find-links --requirement --config-settings
        --python --target --trusted-host --directory --project
    """,
    "pre-commit": "-c --config",
    "python": "-c",
    "golangci-lint": "-c --config",
}
