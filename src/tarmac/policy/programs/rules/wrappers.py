"""Programs that run the command in their arguments: what stands between their name and that command.

value    options that take a value (all others take none)
skip     how many words come before the command (timeout's time, ssh's host)
script   the rest is shell text, not words: it is parsed again
code     the option whose value is shell text (bash -c)
assigns  VAR=x may stand before the command
plain    the options with which it does no more than what it starts, as a pattern: then a plan may hold it
before   what the words before the command must be, in a plan
left_out a plan runs what is inside, without it
risk     at least this, whatever is inside; `does` says what the wrapper adds
"""

from tarmac.policy.programs.rules.shapes import Wrapping

WRAPPERS = {
    "sudo": Wrapping(
        value="""
            -u -g -p -C -T -h -R -r -t -U -D --user --group --prompt --close-from --command-timeout --host --chroot
            --role --type --other-user --chdir
        """,
        assigns=True,
        risk="high",
        does="as the administrator",
    ),
    "doas": Wrapping(value="-u -C", risk="high", does="as the administrator"),
    "pkexec": Wrapping(value="--user", risk="high", does="as the administrator"),
    "su": Wrapping(
        value="-s --shell -g -G -w",
        code="-c --command --session-command",
        risk="high",
        does="as another user",
    ),
    "runuser": Wrapping(value="-u -g -G -s", code="-c --command", risk="high", does="as another user"),
    "env": Wrapping(value="-u --unset -C --chdir", assigns=True, code="-S --split-string", does=""),
    "nice": Wrapping(value="-n --adjustment", plain=r"-n?-?[0-9]*"),
    "ionice": Wrapping(value="-c -n -p --class --classdata"),
    "chrt": Wrapping(skip=1),
    "nohup": Wrapping(plain="", left_out=True),
    "setsid": Wrapping(),
    "stdbuf": Wrapping(value="-i -o -e --input --output --error", plain="-[ioe][0L]"),
    "timeout": Wrapping(
        value="-k -s --kill-after --signal",
        skip=1,
        plain=r"-[ks]?[0-9.]*[smhd]?|--preserve-status|--foreground",
        before=r"[0-9.]+[smhd]?",
    ),
    "gtimeout": Wrapping(value="-k -s", skip=1),
    "time": Wrapping(value="-o -f --output --format"),
    "gtime": Wrapping(value="-o -f"),
    "command": Wrapping(plain="", left_out=True),
    "builtin": Wrapping(),
    "exec": Wrapping(value="-a"),
    "catchsegv": Wrapping(),
    "faketime": Wrapping(skip=1),
    "fakeroot": Wrapping(),
    "unbuffer": Wrapping(),
    "caffeinate": Wrapping(value="-t -w"),
    "taskset": Wrapping(value="-p", skip=1),
    "numactl": Wrapping(),
    "proxychains": Wrapping(value="-f"),
    "proxychains4": Wrapping(value="-f"),
    "torsocks": Wrapping(),
    "strace": Wrapping(value="-o -e -p -s -P -E -u -a"),
    "ltrace": Wrapping(value="-o -e -p -s -u"),
    "valgrind": Wrapping(),
    "perf": Wrapping(skip=1, value="-o -e -F -p"),
    "xvfb-run": Wrapping(value="-n -s -w"),
    "dbus-run-session": Wrapping(),
    "systemd-run": Wrapping(
        value="-u -p --unit --property --slice --on-calendar --on-active --uid",
        risk="high",
        does="as a service that stays",
    ),
    "flock": Wrapping(value="-w -E --timeout", code="-c --command", skip=1),
    "chroot": Wrapping(value="--userspec --groups", skip=1, risk="high", does="under another root"),
    "unshare": Wrapping(value="-R -w -S -G"),
    "nsenter": Wrapping(value="-t -S -G", risk="high", does="in the namespaces of another process"),
    "firejail": Wrapping(),
    "bwrap": Wrapping(risk="medium"),
    "setpriv": Wrapping(value="--reuid --regid"),
    "capsh": Wrapping(code="-c"),
    "script": Wrapping(code="-c --command"),
    "watch": Wrapping(value="-n --interval", script=True),
    "entr": Wrapping(),
    "xargs": Wrapping(
        value="""
            -I -i -n -P -L -d -E -s -a --max-args --max-procs --replace --delimiter --arg-file --max-lines
            --max-chars
        """,
        fed=True,
    ),
    "parallel": Wrapping(
        value="-j -a -N -n -S --jobs --arg-file --joblog --delay --retries --sshlogin --colsep",
        script=True,
        fed=True,
    ),
    "rust-parallel": Wrapping(value="-j", fed=True),
    "bash": Wrapping(value="-o -O --rcfile --init-file", code="-c", shell=True),
    "sh": Wrapping(value="-o", code="-c", shell=True),
    "zsh": Wrapping(value="-o", code="-c", shell=True),
    "dash": Wrapping(value="-o", code="-c", shell=True),
    "ksh": Wrapping(value="-o", code="-c", shell=True),
    "mksh": Wrapping(code="-c", shell=True),
    "ash": Wrapping(code="-c", shell=True),
    "fish": Wrapping(code="-c --command -C --init-command", shell=True),
    "rbash": Wrapping(code="-c", shell=True),
    "busybox": Wrapping(multi=True),
    "toybox": Wrapping(multi=True),
    "ssh": Wrapping(
        value="-b -c -D -E -e -F -I -i -J -L -l -m -O -o -p -Q -R -S -W -w",
        skip=1,
        script=True,
        risk="medium",
        does="on another machine",
        elsewhere=True,
    ),
    "mosh": Wrapping(value="--ssh --port -p", skip=1, risk="medium", does="on another machine", elsewhere=True),
    "rsh": Wrapping(value="-l", skip=1, script=True, risk="medium", does="on another machine", elsewhere=True),
    "docker exec": Wrapping(
        value="-u -w -e --user --workdir --env --env-file --detach-keys",
        skip=1,
        risk="medium",
        does="in a container",
        elsewhere=True,
    ),
    "docker run": Wrapping(
        value="""
            -v -e -p -u -w -h -l -m --volume --env --publish --user --workdir --name --network --net --mount
            --entrypoint --hostname --label --env-file --cpus --memory --restart --add-host --device --gpus --pid
            --ipc --platform --tmpfs --ulimit --cap-add --cap-drop --security-opt --volumes-from --link --log-driver
            --pull --shm-size --ip --dns --expose --runtime --userns --cidfile --health-cmd -c -a --attach
        """,
        skip=1,
        risk="medium",
        does="in a new container",
        elsewhere=True,
    ),
    "docker container exec": Wrapping(like="docker exec"),
    "docker container run": Wrapping(like="docker run"),
    "podman exec": Wrapping(like="docker exec"),
    "podman run": Wrapping(like="docker run"),
    "docker compose exec": Wrapping(
        value="-u -w -e --user --workdir --env --index",
        skip=1,
        risk="medium",
        does="in a container",
        elsewhere=True,
    ),
    "docker compose run": Wrapping(
        value="-u -w -e -v -p --user --workdir --env --volume --publish --name --entrypoint",
        skip=1,
        risk="medium",
        does="in a new container",
        elsewhere=True,
    ),
    "docker-compose exec": Wrapping(like="docker compose exec"),
    "docker-compose run": Wrapping(like="docker compose run"),
    "kubectl exec": Wrapping(
        value="-n -c --namespace --container --context --kubeconfig -f --filename",
        skip=1,
        risk="medium",
        does="in the cluster",
        elsewhere=True,
    ),
    "kubectl run": Wrapping(
        value="-n --image --namespace --env --labels --restart",
        skip=1,
        risk="medium",
        does="in the cluster",
        elsewhere=True,
    ),
    "lxc exec": Wrapping(skip=1, risk="medium", does="in a container", elsewhere=True),
    "multipass exec": Wrapping(skip=1, risk="medium", does="in a virtual machine", elsewhere=True),
    "tmux new-session": Wrapping(value="-s -n -c -t -x -y -e -F", script=True, risk="medium"),
    "tmux send-keys": Wrapping(value="-t -N", script=True, risk="medium"),
    "screen -dm": Wrapping(value="-S", risk="medium"),
    "npx": Wrapping(
        value="-p --package -w --workspace",
        code="-c --call",
        project="runs a package's program, which may be fetched first",
    ),
    "npm exec": Wrapping(
        value="-p --package -w --workspace",
        code="-c --call",
        project="runs a package's program, which may be fetched first",
    ),
    "bunx": Wrapping(project="fetches a package and runs it", fetches=True),
    "bun x": Wrapping(project="fetches a package and runs it", fetches=True),
    "pnpx": Wrapping(project="fetches a package and runs it", fetches=True),
    "pnpm dlx": Wrapping(project="fetches a package and runs it", fetches=True),
    "yarn dlx": Wrapping(project="fetches a package and runs it", fetches=True),
    "pnpm exec": Wrapping(project="runs a program of the project"),
    "yarn exec": Wrapping(project="runs a program of the project"),
    "uvx": Wrapping(value="--from --with --python -p", project="fetches a package and runs it", fetches=True),
    "uv run": Wrapping(
        value="--with --python -p --extra --group --project --package --env-file",
        project="runs a program in the project's environment",
    ),
    "uv tool run": Wrapping(value="--from --with --python", project="fetches a package and runs it", fetches=True),
    "pipx run": Wrapping(value="--spec --python", project="fetches a package and runs it", fetches=True),
    "poetry run": Wrapping(project="runs a program in the project's environment"),
    "pipenv run": Wrapping(project="runs a program in the project's environment"),
    "pdm run": Wrapping(project="runs a program in the project's environment"),
    "hatch run": Wrapping(project="runs a program in the project's environment"),
    "rye run": Wrapping(project="runs a program in the project's environment"),
    "conda run": Wrapping(value="-n --name -p --prefix", project="runs a program in another environment"),
    "bundle exec": Wrapping(project="runs a program in the project's environment"),
    "mise exec": Wrapping(project="runs a program of the project"),
    "mise x": Wrapping(project="runs a program of the project"),
    "asdf exec": Wrapping(project="runs a program of the project"),
    "rbenv exec": Wrapping(project="runs a program of the project"),
    "nix run": Wrapping(project="fetches a package and runs it", fetches=True),
    "nix-shell": Wrapping(
        code="--run --command", value="-p -A -I", project="fetches packages and opens a shell", fetches=True
    ),
    "direnv exec": Wrapping(skip=1, project="runs a program in the project's environment"),
    "dotenv": Wrapping(value="-e -f", project="runs a program with the variables of a file"),
}
