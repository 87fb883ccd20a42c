# Ends what a rig started when the rig's own process has ended, however it ended, or when its time is up.
# Standard input is a pipe whose other end only that process holds: it closes by itself, even after a kill -9.
folder=$1
seconds=$2

limit=
if command -v timeout >/dev/null 2>&1; then limit="timeout $seconds"; fi
$limit cat >/dev/null

arguments() {
    if [ -d /proc/self ]; then
        tr '\0' ' ' <"/proc/$1/cmdline"
    else
        ps -ww -o command= -p "$1"
    fi 2>/dev/null
}

# Whether a process is still one of ours, and not a stranger that was given the same number: ours have the folder
# among their arguments. One without any has ended, or is about to, or is just becoming another program; so that is
# looked at again.
ours() {
    for _ in 1 2 3; do
        case $(arguments "$1") in
        *"$folder"*) return 0 ;;
        ?*) return 1 ;;
        esac
        [ -f "/proc/$1/status" ] || return 1
        grep -q '^State:[[:space:]]*[ZX]' "/proc/$1/status" 2>/dev/null && return 1
        sleep 0.1
    done
    return 1
}

# Waits up to so many tenths of a second.
gone_within() {
    left=$2
    while ours "$1"; do
        [ "$left" -gt 0 ] || return 1
        left=$((left - 1))
        sleep 0.1
    done
}

# The last that was started ends first: an API server without its etcd hangs.
last_first=
if [ -f "$folder/pids" ]; then
    while read -r pid; do last_first="$pid $last_first"; done <"$folder/pids"
fi
for pid in $last_first; do
    ours "$pid" || continue
    kill -TERM "$pid" 2>/dev/null
    gone_within "$pid" 50 && continue
    kill -KILL "$pid" 2>/dev/null
    gone_within "$pid" 50
done
rm -rf -- "$folder"
