"""Programs that may be asked for their version or help, by one word alone (WORDS)."""

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
