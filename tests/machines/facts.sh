# What a seed came to, in a form that is the same on every system: run in a guest as root (or as whoever may read these files).
# usage: sh -s USER... FILE... ; users by name, files by whole path
for word in "$@"; do
    case $word in
        /*)
            if [ -e "$word" ]; then
                echo "file $word $(stat -c '%a %U:%G' "$word") $(sha256sum <"$word" | cut -d' ' -f1)"
            else
                echo "file $word missing"
            fi
            ;;
        *)
            entry=$(grep "^$word:" /etc/passwd) || {
                echo "user $word missing"
                continue
            }
            home=$(echo "$entry" | cut -d: -f6)
            keys=$(grep -c . "$home/.ssh/authorized_keys" 2>/dev/null)
            groups=$(id -Gn "$word" | tr ' ' '\n' | sort | tr '\n' ',')
            password=$(grep "^$word:" /etc/shadow | cut -d: -f2)
            case $password in
                # A hash that no password has: the guest's way to lock.
                '$6$nobody$!') password=locked ;;
                \$*) password=set ;;
                *) password=locked ;;
            esac
            echo "user $word uid=$(id -u "$word") home=$home($(stat -c '%U' "$home" 2>/dev/null)) shell=$(echo "$entry" | cut -d: -f7)" \
                "gecos=$(echo "$entry" | cut -d: -f5 | cut -d, -f1) groups=$groups password=$password keys=${keys:-0}" \
                "$(stat -c '%a' "$home/.ssh/authorized_keys" 2>/dev/null)"
            ;;
    esac
done
echo "hostname $(hostname) $(cat /etc/hostname)"
echo "hosts $(grep -c "127.0.1.1.*$(hostname)" /etc/hosts)"
