# Waits until the engine dies, then kills what it ran. $1 marks the environment of its commands, $2 their limits.
# Standard input never says anything; it ends when the engine does. Standard output is a pipe to read from:
# the groups that were running, as `+id` and `-id`.
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
