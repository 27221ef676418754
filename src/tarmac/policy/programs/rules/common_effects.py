"""What several programs do, where nothing proves that they only read."""

from tarmac.policy.programs.rules import EffectEntry

REMOVES_PACKAGES = EffectEntry("high", "deletes", "removes packages from the machine: {what}")
CHANGES_PACKAGES = EffectEntry("medium", "installs", "changes the packages of the machine")
MAY_WRITE_OR_START = EffectEntry("medium", "may", "may write a file or start a program", vague=True)
INSTALLS = EffectEntry("medium", "installs", "installs or changes packages, whose scripts run")
STEERS_SERVICES = EffectEntry("medium", "machine", "steers the machine's services")
INSTALLS_FROM_ADDRESS = EffectEntry(
    "high",
    "installs",
    "installs code from an address, and runs its scripts",
    operand=r"^(https?|ftp|git|ssh|file)(\+\w+)?://|^git@|\.tgz$|^git\+",
)
STARTS_BY_OPTION_OR_SOURCE = EffectEntry(
    "high", "runs", "starts another program by an option, or believes another source"
)
PRINTS_SETTINGS = EffectEntry("medium", "reads", "prints settings, in which credentials may stand", instead=True)
PUBLISHES = EffectEntry("high", "connects", "publishes something for everybody to see")
RUNS_PROJECT = EffectEntry("medium", "runs-project", "runs code of the project")
SHOWS_SECRETS = EffectEntry("high", "reads", "shows secrets")
CHANGES_USER_SETTINGS = EffectEntry("high", "configures", "changes settings of the user that stay")
ONLY_CHANGES_USER_SETTINGS = EffectEntry("medium", "configures", "changes settings of the user that stay", instead=True)
RUNS_PROGRAM = EffectEntry("medium", "runs", "runs a program: {what}")
RUNS_CODE = EffectEntry("medium", "runs", "runs code: {what}", options="-c -e -r --eval -E", instead=True)
RUNS_FETCHED = EffectEntry("high", "runs", "fetches code from elsewhere and runs it: {what}")
CHANGES_SHELL = EffectEntry("medium", "shell", "changes the shell itself")
DELETES_IN_CLUSTER = EffectEntry("high", "connects", "deletes or empties objects of the cluster: {words}")
SHOWS_CLUSTER_SECRETS = EffectEntry("high", "reads", "shows secrets of the cluster")
CHANGES_CLUSTER = EffectEntry("medium", "connects", "changes the cluster, or asks more of it than is known")
DELETES_CONTAINERS = EffectEntry("high", "deletes", "deletes containers, images or what they keep: {what}")
DELETES_UNUSED = EffectEntry("medium", "deletes", "deletes containers, images and networks that are not in use")
DELETES_UNUSED_VOLUMES = EffectEntry(
    "high", "deletes", "deletes containers, images, networks and volumes that are not in use", options="--volumes"
)
DELETES_SERVICE_DATA = EffectEntry(
    "high", "deletes", "stops the services and deletes their data", options="-v --volumes --rmi"
)
STEERS_CONTAINERS = EffectEntry("medium", "connects", "builds or steers containers")
CONTAINER_WITH_POWER = EffectEntry(
    "high",
    "runs",
    "starts a container with power over the machine",
    options="--privileged --pid --cap-add --device --userns --security-opt",
)
CONTAINER_WITH_FILES = EffectEntry(
    "high",
    "runs",
    "starts a container that reaches the machine's own files",
    operand=(
        r"^(/|/etc|/root|/home|/var/run/docker\.sock|/proc|/sys|/dev|~[^:]*):|docker\.sock|" "source=/(,|$)|src=/(,|$)"
    ),
)
MAY_READ_OR_START = EffectEntry("medium", "may", "may read or start something else", vague=True)
DESTROYS_ELSEWHERE = EffectEntry("high", "connects", "destroys what runs somewhere else")
ASKS_A_SERVICE = EffectEntry("medium", "connects", "speaks with a service somewhere else")
CHANGES_KEPT_ELSEWHERE = EffectEntry("high", "connects", "deletes or changes what is kept somewhere else")
DELETES_DATABASE = EffectEntry("high", "deletes", "deletes a database")
SERVES = EffectEntry("medium", "connects", "shows files to others over the network")
SERVES_OUTSIDE = EffectEntry(
    "high", "connects", "shows files outside of the workspace to others over the network", operand=r"^(/|~|\.\.)"
)
DEPLOYS = EffectEntry("high", "connects", "changes what runs somewhere else")
RUNS_DISGUISED = EffectEntry("critical", "runs", "runs code that is disguised", operand="(?i)^[-/]e(n(c(o.*)?)?|c)?$")
RUNS_SCRIPT = EffectEntry("medium", "runs", "runs a script: {what}")
DELETES_ELSEWHERE = EffectEntry(
    "high",
    "connects",
    "deletes what is kept somewhere else",
    operand="^(delete|terminate|destroy|remove|purge)(-|$)|-delete$",
)
CONNECTS = EffectEntry("medium", "connects", "speaks with another machine")
CARRIES = EffectEntry("high", "connects", "carries data to or from another machine")
DATABASE = EffectEntry("medium", "connects", "works on a database")
CHANGES_DATA = EffectEntry(
    "high",
    "deletes",
    "deletes or changes data of a database",
    operand=(
        r"(?i)\b(drop|truncate|delete|flushall|flushdb|dropdatabase|remove|deletemany|alter|grant|"
        r"shutdown|config)\b"
    ),
)
CHANGES_RIGHTS = EffectEntry("medium", "writes", "changes who may read or write {what}", skip=1)
CHANGES_MACHINE_RIGHTS = EffectEntry("high", "machine", "changes rights of the machine")
CHANGES_USERS = EffectEntry("high", "machine", "changes who may use the machine")
STEERS_PROCESSES = EffectEntry("medium", "machine", "ends or steers processes")
ONLY_ASKS_MACHINE = EffectEntry("medium", "machine", "asks or changes how the machine is set up", instead=True)
HALTS = EffectEntry("high", "machine", "brings the machine to a halt")
CHANGES_MACHINE = EffectEntry("high", "machine", "changes how the machine is set up")
STARTS_WITH_MACHINE = EffectEntry("high", "configures", "changes what starts with the machine")
STARTS_AUTOMATICALLY = EffectEntry("high", "configures", "changes what starts automatically", options="--user")
STOPS_SERVICES = EffectEntry("high", "machine", "stops or starts services of the machine: {what}")
RUNS_LATER = EffectEntry("high", "configures", "changes what runs automatically later")
CHANGES_NETWORK = EffectEntry("high", "machine", "changes the network of the machine")
SHOWS_NETWORK = EffectEntry("low", "reads", "shows how the network is set up", instead=True)
SHOWS_DISKS = EffectEntry("low", "reads", "shows the disks", instead=True)
SHOWS_MACHINE = EffectEntry("low", "reads", "shows how the machine is set up", instead=True)
DESTROYS_DISK = EffectEntry("critical", "machine", "can destroy a disk and all on it")
CHANGES_MACHINE_SETTINGS = EffectEntry("high", "configures", "changes rights or settings of the machine")
ASKS_DISKS = EffectEntry("medium", "reads", "shows the disks", instead=True)
SENDS = EffectEntry("high", "connects", "sends data to another machine")
STARTS_ANOTHER = EffectEntry(
    "high",
    "runs",
    "starts another program",
    operand=("(?i)(proxycommand|localcommand|permitlocalcommand|knownhostscommand)"),
)
LISTENS = EffectEntry("high", "connects", "opens this machine to others", options="-l -k --listen")
GIVES_A_SHELL = EffectEntry("critical", "connects", "gives another machine a shell on this one")
RUNS_ON_FOUND = EffectEntry("high", "runs", "runs a command on each file it finds", options="-x -X")
STARTS_BY_OPTION = EffectEntry("high", "runs", "starts another program by an option")
PACKS = EffectEntry("medium", "writes", "packs or unpacks files: {what}")
ONLY_WORKS_ON_SHELL = EffectEntry("low", "shell", "works on the shell itself", instead=True)
CHANGES_HISTORY = EffectEntry(
    "medium", "shell", "changes the shell's history, or runs from it", options="-c -d -w -a -s -r -n -e -p"
)
WORKS_ON_SHELL = EffectEntry("low", "shell", "works on the shell itself")
CALCULATES = EffectEntry("low", "shell", "compares or calculates", instead=True)
CHANGES_FILES = EffectEntry("medium", "writes", "makes or changes files: {what}", vague=True)
STARTS_AGENT = EffectEntry("high", "runs", "starts another agent")
DELETES = EffectEntry("high", "deletes", "deletes {what}")
ASKS_MACHINE = EffectEntry("medium", "machine", "asks or changes how the machine is set up", options="-c -w -g")
READS = EffectEntry("low", "reads", "reads")
SHOWS_VARIABLES = EffectEntry("medium", "reads", "shows variables, which may hold secrets", operand="(?i)^env:")
COMMANDS_ELSEWHERE = EffectEntry("high", "connects", "carries data or commands to another machine")
STARTS_OR_LOADS = EffectEntry("medium", "runs", "starts a program, or loads one: {what}")
