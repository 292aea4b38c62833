# Waits until the engine dies, then kills its commands. $1 matches their environment, $2 their limits.
# Stdin carries no data; it is closed when the engine dies. Stdout is a pipe to read from: the log of running groups,
# with lines `+id` and `-id`.
trap '' HUP INT QUIT TERM
read -r nothing
groups=' '
while read -r change; do
    id=${change#?}
    case $change in
    +*) groups="$groups$id " ;;
    -*) case $groups in *" $id "*) groups="${groups%% "$id" *} ${groups#* "$id" }" ;; esac ;;
    esac
done <&1
exec >/dev/null
for id in $groups; do kill -9 "-$id"; done
for pause in 0 0.1 0.5; do
    sleep "$pause"
    for file in $(grep -ls -e "$1" -e "$2" /proc/[0-9]*/environ /proc/[0-9]*/limits); do
        id=${file#/proc/}
        kill -9 "${id%/*}"
    done
done
