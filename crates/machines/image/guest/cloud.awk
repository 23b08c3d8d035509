# Makes shell commands of a seed: cloud-config, meta data or network configuration. It reads as much of YAML as people
# write there: mappings, lists, texts in every form, and JSON; no anchors, aliases, or several documents. What it does
# not understand becomes an error that `cloud-init status --long` shows.

{ sub(/\r$/, ""); L[NR] = $0 }

END {
    N = NR
    I = 1
    KIND[""] = "null"
    if (N > 0) {
        while (I <= N && (blank(L[I]) || L[I] ~ /^(---|%)/)) I++
        if (I <= N) node(0, "")
        if (I <= N && !blank(L[I]) && L[I] !~ /^(---|\.\.\.)/) fail("this is not understood: " substr(L[I], 1, 60))
    }
    if (BAD != "") print "error " quote(kind " data: " BAD)
    else if (kind == "meta") meta()
    else if (kind == "network") network()
    else user()
}

# ---- YAML ----

function blank(s) { return s ~ /^[ \t]*(#.*)?$/ }
function indent(s) { match(s, /^ */); return RLENGTH }
function trim(s) { sub(/^[ \t]+/, "", s); sub(/[ \t]+$/, "", s); return s }
function spaces(n,  s) { while (n-- > 0) s = s " "; return s }
function fail(why) { if (BAD == "") BAD = "line " (I > N ? N : I) ": " why; I = N + 1 }
function skip() { while (I <= N && blank(L[I])) I++ }
function under(path, key) { return path == "" ? key : path SUBSEP key }
function child(path, key) { NAME[path, COUNT[path]++] = key; return under(path, key) }

# How many characters the key has with which a line begins; 0 if it begins with none.
function key_length(s,  c, n) {
    c = substr(s, 1, 1)
    if (c == "\"" || c == "'") {
        n = closing(s)
        return n && substr(s, n + 1) ~ /^[ \t]*:([ \t]|$)/ ? n : 0
    }
    if (c ~ /[\[{|>#&*!%@`]/) return 0
    if (match(s, /:([ \t]|$)/)) {
        n = RSTART - 1
        return n && substr(s, 1, n) !~ /[ \t]#/ ? n : 0
    }
    return 0
}

# Where the quote that a text begins with is closed; 0 if it is not.
function closing(s,  c, i, n) {
    c = substr(s, 1, 1)
    n = length(s)
    for (i = 2; i <= n; i++) {
        if (c == "\"" && substr(s, i, 1) == "\\") i++
        else if (substr(s, i, 1) == c) {
            if (c == "'" && substr(s, i + 1, 1) == c) i++
            else return i
        }
    }
    return 0
}

function node(least, path,  at, s) {
    skip()
    if (I > N) return
    at = indent(L[I])
    if (at < least) return
    s = substr(L[I], at + 1)
    if (s ~ /^\t/) return fail("a tab cannot be used to indent")
    if (s ~ /^-([ \t]|$)/) list(at, path)
    else if (key_length(s)) mapping(at, path)
    else { I++; value(s, least - 1, path) }
}

function list(at, path,  s, body, gap, one) {
    KIND[path] = "list"
    while (1) {
        skip()
        if (I > N || indent(L[I]) != at) break
        s = substr(L[I], at + 1)
        if (s !~ /^-([ \t]|$)/) break
        body = substr(s, 2)
        match(body, /^[ \t]*/)
        gap = RLENGTH
        body = substr(body, gap + 1)
        one = child(path, COUNT[path] + 0)
        KIND[one] = "null"
        if (body == "" || body ~ /^#/) { I++; node(at + 1, one) }
        else if (body ~ /^-([ \t]|$)/ || key_length(body)) { L[I] = spaces(at + 1 + gap) body; node(at + 1, one) }
        else { I++; value(body, at, one) }
    }
}

function mapping(at, path,  s, n, rest, one) {
    KIND[path] = "map"
    while (1) {
        skip()
        if (I > N || indent(L[I]) != at) break
        s = substr(L[I], at + 1)
        if (s ~ /^-([ \t]|$)/ || s ~ /^(---|\.\.\.)/) break
        n = key_length(s)
        if (!n) return fail("a key is missing: " substr(s, 1, 60))
        rest = substr(s, n + 1)
        sub(/^[ \t]*:[ \t]*/, "", rest)
        one = child(path, scalar(trim(substr(s, 1, n))))
        KIND[one] = "null"
        I++
        if (rest == "" || rest ~ /^#/) {
            skip()
            if (I > N) break
            if (indent(L[I]) > at) node(at + 1, one)
            else if (indent(L[I]) == at && substr(L[I], at + 1) ~ /^-([ \t]|$)/) list(at, one)
        } else value(rest, at, one)
    }
}

# A value that begins on this line; what belongs to it is indented by more than `at`.
function value(s, at, path,  c) {
    if (s ~ /^!/) sub(/^![^ ]*[ \t]*/, "", s)
    c = substr(s, 1, 1)
    if (c == "&" || c == "*") return fail("anchors and aliases are not understood here")
    if (c == "|" || c == ">") return block(s, at, path)
    if (c == "[" || c == "{") {
        while (!balanced(s) && I <= N) s = s " " trim(L[I++])
        S = s
        P = 1
        flow(path)
        return
    }
    if (c == "\"" || c == "'") {
        while (!closing(s) && I <= N) { s = s (trim(L[I]) == "" ? "\n" : (s ~ /\n$/ ? "" : " ")) trim(L[I]); I++ }
        if (!closing(s)) return fail("a quotation mark is missing")
        s = substr(s, 1, closing(s))
    } else {
        sub(/[ \t]+#.*$/, "", s)
        while (I <= N && trim(L[I]) != "" && indent(L[I]) > at && L[I] !~ /^ *#/) {
            c = trim(L[I++])
            sub(/[ \t]+#.*$/, "", c)
            s = trim(s) " " c
        }
        s = trim(s)
    }
    put(path, s)
}

function put(path, s) {
    KIND[path] = s ~ /^(~|null|)$/ ? "null" : "text"
    VALUE[path] = KIND[path] == "null" ? "" : scalar(s)
}

# Lines as they are (|), or joined (>).
function block(s, at, path,  style, chomp, deep, n, i, line, out, lines, was_more, is_more, empty) {
    style = substr(s, 1, 1)
    chomp = s ~ /^..?-/ || s ~ /^.-/ ? "-" : (s ~ /^..?\+/ || s ~ /^.\+/ ? "+" : "")
    if (match(s, /[1-9]/) && RSTART <= 3) deep = (at < 0 ? 0 : at) + substr(s, RSTART, 1)
    n = 0
    while (I <= N) {
        line = L[I]
        if (line ~ /^ *$/) { lines[++n] = deep ? substr(line, deep + 1) : ""; I++; continue }
        if (!deep) {
            deep = indent(line)
            if (deep <= at) { deep = 0; break }
        }
        if (indent(line) < deep) break
        lines[++n] = substr(line, deep + 1)
        I++
    }
    out = ""
    empty = 0
    for (i = 1; i <= n; i++) {
        if (lines[i] == "") { empty++; continue }
        is_more = lines[i] ~ /^[ \t]/
        if (out == "") out = repeat("\n", empty) lines[i]
        else if (style == "|" || is_more || was_more) out = out repeat("\n", empty + 1) lines[i]
        else out = out (empty ? repeat("\n", empty) : " ") lines[i]
        was_more = is_more
        empty = 0
    }
    if (out != "" && chomp != "-") out = out "\n"
    if (chomp == "+") out = out repeat("\n", empty)
    KIND[path] = "text"
    VALUE[path] = out
}

function repeat(s, n,  out) { while (n-- > 0) out = out s; return out }

function balanced(s,  i, n, c, deep, end) {
    n = length(s)
    for (i = 1; i <= n; i++) {
        c = substr(s, i, 1)
        if (c == "\"" || c == "'") {
            end = closing(substr(s, i))
            if (!end) return 0
            i += end - 1
        } else if (c == "[" || c == "{") deep++
        else if (c == "]" || c == "}") deep--
    }
    return deep <= 0
}

# Lists and mappings in brackets, from position P of S.
function flow(path,  c, one, key, end) {
    gap()
    c = substr(S, P, 1)
    if (c == "[") {
        KIND[path] = "list"
        P++
        while (1) {
            gap()
            if (P > length(S)) return fail("a bracket is missing")
            if (substr(S, P, 1) == "]") { P++; return }
            one = child(path, COUNT[path] + 0)
            flow(one)
            gap()
            if (substr(S, P, 1) == ",") P++
        }
    }
    if (c == "{") {
        KIND[path] = "map"
        P++
        while (1) {
            gap()
            if (P > length(S)) return fail("a bracket is missing")
            if (substr(S, P, 1) == "}") { P++; return }
            key = word(":")
            one = child(path, scalar(key))
            KIND[one] = "null"
            gap()
            if (substr(S, P, 1) == ":") { P++; flow(one); gap() }
            if (substr(S, P, 1) == ",") P++
        }
    }
    put(path, word(""))
}

function gap() { while (substr(S, P, 1) ~ /[ \t\n]/) P++ }

# A text within brackets. A plain one ends at a comma or bracket, a key at a colon.
function word(stop,  end, start, c) {
    c = substr(S, P, 1)
    if (c == "\"" || c == "'") {
        end = closing(substr(S, P))
        if (!end) { fail("a quotation mark is missing"); P = length(S) + 1; return "" }
        start = P
        P += end
        return substr(S, start, end)
    }
    start = P
    while (P <= length(S)) {
        c = substr(S, P, 1)
        if (index(",]}", c) || (stop == ":" && c == ":") || (c == ":" && substr(S, P + 1, 1) ~ /[ \t]/)) break
        P++
    }
    if (P == start) P++
    return trim(substr(S, start, P - start))
}

# What a text stands for: quotation marks and escapes resolved.
function scalar(s,  c, i, n, out, e) {
    c = substr(s, 1, 1)
    if (c == "'") {
        s = substr(s, 2, length(s) - 2)
        gsub(/''/, "'", s)
        return s
    }
    if (c != "\"") return s
    s = substr(s, 2, length(s) - 2)
    if (index(s, "\\") == 0) return s
    n = length(s)
    out = ""
    for (i = 1; i <= n; i++) {
        c = substr(s, i, 1)
        if (c != "\\") { out = out c; continue }
        e = substr(s, ++i, 1)
        if (e == "n") out = out "\n"
        else if (e == "t") out = out "\t"
        else if (e == "r") out = out "\r"
        else if (e == "e") out = out "\033"
        else if (e == "a") out = out "\007"
        else if (e == "b") out = out "\b"
        else if (e == "0") out = out ""
        else if (e == "x") { out = out letter(substr(s, i + 1, 2)); i += 2 }
        else if (e == "u") { out = out letter(substr(s, i + 1, 4)); i += 4 }
        else if (e == "U") { out = out letter(substr(s, i + 1, 8)); i += 8 }
        else out = out e
    }
    return out
}

# The letter of a hexadecimal number, as UTF-8.
function letter(hex,  i, n) {
    n = 0
    hex = tolower(hex)
    for (i = 1; i <= length(hex); i++) n = n * 16 + index("0123456789abcdef", substr(hex, i, 1)) - 1
    if (n < 128) return sprintf("%c", n)
    if (n < 2048) return sprintf("%c%c", 192 + int(n / 64), 128 + n % 64)
    if (n < 65536) return sprintf("%c%c%c", 224 + int(n / 4096), 128 + int(n / 64) % 64, 128 + n % 64)
    return sprintf("%c%c%c%c", 240 + int(n / 262144), 128 + int(n / 4096) % 64, 128 + int(n / 64) % 64, 128 + n % 64)
}

# ---- commands ----

function quote(s) { gsub(/'/, "'\\''", s); return "'" s "'" }
function has(path) { return path in KIND && KIND[path] != "null" }
function truth(s) { return tolower(s) ~ /^(true|yes|on|1)$/ }
function get(path, key,  full) { full = under(path, key); return full in VALUE ? VALUE[full] : "" }

function meta(  id, name, path, i, one) {
    id = get("", "instance-id")
    if (id == "") id = get("", "uuid")
    if (id == "") id = "nocloud"
    print "set_instance " quote(id)
    name = get("", "local-hostname")
    if (name == "") name = get("", "hostname")
    print "meta_hostname=" quote(name)
    path = has("public-keys") ? "public-keys" : (has("public_keys") ? "public_keys" : "public-ssh-keys")
    print "meta_keys() {"
    print ":"
    if (KIND[path] == "text") keys_of_text(VALUE[path])
    for (i = 0; i < COUNT[path]; i++) {
        one = under(path, NAME[path, i])
        if (KIND[one] == "text") print "add_key \"$1\" " quote(trim(VALUE[one]))
        else if (has(under(one, "openssh-key"))) print "add_key \"$1\" " quote(get(one, "openssh-key"))
    }
    print "}"
}

function keys_of_text(text,  n, lines, i) {
    n = split(text, lines, "\n")
    for (i = 1; i <= n; i++) if (lines[i] != "") print "add_key \"$1\" " quote(lines[i])
}

function user(  i, path, one, name, login) {
    # `user` names the default user, or describes it, and makes that there is one whatever `users` says.
    if (has("user")) {
        name = KIND["user"] == "text" ? VALUE["user"] : get("user", "name")
        if (name != "") default_user = name
    }
    script("bootcmd", "boot")
    print "[ -e $cloud/scripts/boot ] && { sh $cloud/scripts/boot >>/var/log/cloud-init-output.log 2>&1 || error \"bootcmd: it ended with $?\"; }"
    name = get("", "fqdn")
    if (name == "") name = get("", "hostname")
    if (!truth(get("", "preserve_hostname"))) {
        if (name != "") print "set_hostname " quote(name)
        else print "set_hostname \"$meta_hostname\""
    }
    files(0)
    if (has("ssh_pwauth")) print "allow_passwords " (truth(VALUE["ssh_pwauth"]) ? 1 : 0)
    for (i = 0; i < COUNT["groups"]; i++) {
        one = under("groups", NAME["groups", i])
        if (KIND[one] == "text" && KIND["groups"] == "list") print "add_group " quote(VALUE[one])
        else if (KIND["groups"] == "map") print "add_group " quote(NAME["groups", i])
        else print "add_group " quote(NAME[one, 0])
    }
    login = ""
    if (!("users" in KIND) || has("user")) login = default_user
    for (i = 0; i < COUNT["users"]; i++) {
        one = under("users", NAME["users", i])
        if (is_default(one)) login = default_user
    }
    for (i = 0; i < COUNT["users"]; i++) one_user(under("users", NAME["users", i]))
    # The default user comes last, as in the real one: numbers of users depend on it.
    if (login != "") {
        if (has("user") && KIND["user"] == "map") described("user", login)
        else print "add_user " quote(login) " '' '' '' '' '' ''"
    }
    if (login == "") login = "root"
    for (i = 0; i < COUNT["ssh_authorized_keys"]; i++)
        print "add_key " quote(login) " " quote(trim(VALUE[under("ssh_authorized_keys", i)]))
    print "meta_keys " quote(login)
    if (has("password")) print "set_password " quote(login) " " quote(VALUE["password"]) " auto"
    passwords()
    script("runcmd", "runcmd")
    files(1)
    for (i = 0; i < COUNT[""]; i++) {
        name = NAME["", i]
        if (name ~ /^(packages|package_update|package_upgrade|package_reboot_if_required|apt|apt_sources|snap|ca_certs|ca-certs|ntp|mounts|swap|disk_setup|fs_setup|ansible|chef|puppet|salt_minion|yum_repos|wireguard|lxd)$/) {
            if (KIND[name] == "text" && !truth(VALUE[name])) continue
            print "unsupported " quote(name)
        }
    }
    path = "power_state"
    if (has(path)) {
        name = get(path, "mode") == "reboot" ? "reboot" : "poweroff"
        print "[ -n \"$is_new\" ] && echo " name " >/run/cloud-init/power"
    }
    print ":"
}

# Whether a name that goes into a command unquoted is one.
function groups_of(path,  i, out) {
    if (KIND[path] == "text") { out = VALUE[path]; gsub(/[ \t]/, "", out); return out }
    for (i = 0; i < COUNT[path]; i++) out = out (i ? "," : "") trim(VALUE[under(path, i)])
    return out
}

# Whether an entry of `users` stands for the default user.
function is_default(path) {
    return KIND[path] == "text" ? VALUE[path] == "default" : get(path, "name") == "default"
}

function one_user(path) {
    if (is_default(path)) return
    if (KIND[path] == "text") print "add_user " quote(VALUE[path]) " '' '' '' '' '' ''"
    else described(path, get(path, "name"))
}

# A user with everything that the mapping at a path says.
function described(path, name,  i, keys, hash) {
    print "add_user " quote(name) " " quote(get(path, "uid")) " " quote(get(path, "gecos")) " " quote(get(path, "homedir")) \
        " " quote(get(path, "shell")) " " quote(get(path, "primary_group")) " " quote(groups_of(under(path, "groups")))
    if (has(under(path, "plain_text_passwd"))) print "set_password " quote(name) " " quote(get(path, "plain_text_passwd")) " text"
    hash = has(under(path, "hashed_passwd")) ? get(path, "hashed_passwd") : get(path, "passwd")
    # A password is locked unless the seed says otherwise, as elsewhere; a lock stands before the hash.
    if (hash != "") print "set_password " quote(name) " " quote((locked(path) ? "!" : "") hash) " hash"
    else if (has(under(path, "plain_text_passwd")) && locked(path)) print "set_password " quote(name) " '!' hash"
    keys = under(path, "ssh_authorized_keys")
    if (!has(keys)) keys = under(path, "ssh-authorized-keys")
    if (KIND[keys] == "text") print "add_key " quote(name) " " quote(trim(VALUE[keys]))
    for (i = 0; i < COUNT[keys]; i++) print "add_key " quote(name) " " quote(trim(VALUE[under(keys, i)]))
}

function locked(path) { return has(under(path, "lock_passwd")) ? truth(get(path, "lock_passwd")) : 1 }

function passwords(  path, i, n, lines, one, at, how) {
    path = under("chpasswd", "users")
    for (i = 0; i < COUNT[path]; i++) {
        one = under(path, i)
        how = get(one, "type")
        print "set_password " quote(get(one, "name")) " " quote(get(one, "password")) " " (how == "" ? "hash" : quote(how))
    }
    path = under("chpasswd", "list")
    n = 0
    if (KIND[path] == "text") n = split(VALUE[path], lines, "\n")
    for (i = 0; i < COUNT[path]; i++) lines[++n] = VALUE[under(path, i)]
    for (i = 1; i <= n; i++) {
        at = index(lines[i], ":")
        if (at) print "set_password " quote(substr(lines[i], 1, at - 1)) " " quote(substr(lines[i], at + 1)) \
            " " (substr(lines[i], at + 1) ~ /^(R|RANDOM)$/ ? "RANDOM" : "auto")
    }
}

# Files; those that wait for users and packages are written at the end.
function files(late,  i, one, mode, owner, any, line) {
    for (i = 0; i < COUNT["write_files"]; i++) {
        one = under("write_files", i)
        if (truth(get(one, "defer")) != late) continue
        mode = get(one, "permissions")
        if (mode !~ /^[0-7]+$/) mode = "0644"
        owner = get(one, "owner")
        if (owner == "") owner = "root:root"
        line = "write_file " quote(get(one, "path")) " " mode " " quote(owner) " " quote(get(one, "encoding")) " " \
            (truth(get(one, "append")) ? 1 : 0) " " quote(get(one, "content"))
        if (!late) print line
        else {
            if (!any++) print "[ -n \"$is_new\" ] && { echo '. /etc/fairway/functions; is_new=1' >$cloud/scripts/files; }"
            print "[ -n \"$is_new\" ] && printf '%s\\n' " quote(line) " >>$cloud/scripts/files"
        }
    }
}

# Commands as a script: a text is a line of it, a list is a program with its arguments.
function script(path, name,  i, j, one, line) {
    if (!COUNT[path]) return
    if (name == "runcmd") print "[ -n \"$is_new\" ] && {"
    else print "{"
    print "echo '#!/bin/sh' >$cloud/scripts/" name
    for (i = 0; i < COUNT[path]; i++) {
        one = under(path, i)
        if (KIND[one] == "null") continue
        line = VALUE[one]
        if (KIND[one] == "list") {
            line = ""
            for (j = 0; j < COUNT[one]; j++) line = line (j ? " " : "") quote(VALUE[under(one, j)])
        } else if (KIND[one] == "map") {
            print "error " quote(path ": entry " (i + 1) " is a mapping; put the command in quotes")
            continue
        }
        print "printf '%s\\n' " quote(line) " >>$cloud/scripts/" name
    }
    print "}"
}

function network(  path, i) {
    path = has("network") ? "network" : ""
    if (get(path, "config") == "disabled") print "configured=1"
    else if (get(path, "version") == "2" || has(under(path, "ethernets"))) network_2(under(path, "ethernets"))
    else if (get(path, "version") == "1" || has(under(path, "config"))) network_1(under(path, "config"))
    else print "error 'network-config: its version is neither 1 nor 2'"
    for (i = 0; i < COUNT[path]; i++)
        if (NAME[path, i] ~ /^(bonds|bridges|vlans|tunnels|wifis)$/) print "unsupported " quote("network-config " NAME[path, i])
}

# What follows is done with every interface that an entry is about, until `done`. Where there is `match`, the name of the entry means nothing.
function interfaces(name, mac, pattern) {
    print "configured=1"
    print "for interface in $(net_interfaces " quote(name) " " quote(mac) " " quote(pattern) "); do"
}

# Texts of a list, or a single one, each as the argument of a command.
function each(command, path,  i) {
    if (KIND[path] == "text") print command " " quote(VALUE[path])
    for (i = 0; i < COUNT[path]; i++) print command " " quote(VALUE[under(path, i)])
}

# What a list of routes says; the second version calls things otherwise than the first.
function routes(path,  i, one, to) {
    for (i = 0; i < COUNT[path]; i++) {
        one = under(path, i)
        to = first_of(one, "to", "destination", "network")
        if (to !~ /\// && get(one, "netmask") != "") print "net_route_by_mask " quote(to) " " quote(get(one, "netmask")) " " quote(get(one, "gateway"))
        else print "net_route " quote(to) " " quote(first_of(one, "via", "gateway", ""))
    }
}

function first_of(path, a, b, c) {
    if (get(path, a) != "") return get(path, a)
    if (b != "" && get(path, b) != "") return get(path, b)
    return c == "" ? "" : get(path, c)
}

function network_2(path,  i, one, match_path) {
    for (i = 0; i < COUNT[path]; i++) {
        one = under(path, NAME[path, i])
        match_path = under(one, "match")
        interfaces(has(match_path) ? "" : NAME[path, i], get(match_path, "macaddress"), get(match_path, "name"))
        if (get(one, "set-name") != "") print "net_rename " quote(get(one, "set-name"))
        if (get(one, "mtu") != "") print "net_mtu " quote(get(one, "mtu"))
        if (truth(get(one, "dhcp4"))) print "net_dhcp"
        else if (truth(get(one, "dhcp6"))) print "unsupported 'network-config dhcp6'"
        each("net_address", under(one, "addresses"))
        if (get(one, "gateway4") != "") print "net_route default " quote(get(one, "gateway4"))
        if (get(one, "gateway6") != "") print "net_route default " quote(get(one, "gateway6"))
        routes(under(one, "routes"))
        each("net_dns", under(under(one, "nameservers"), "addresses"))
        each("net_search", under(under(one, "nameservers"), "search"))
        print "done"
    }
}

function network_1(path,  i, j, one, subnets, net, kind_of) {
    for (i = 0; i < COUNT[path]; i++) {
        one = under(path, i)
        kind_of = get(one, "type")
        if (kind_of == "nameserver") {
            each("net_dns", under(one, "address"))
            each("net_search", under(one, "search"))
            continue
        }
        if (kind_of == "route") {
            print "interface="
            if (get(one, "destination") !~ /\// && get(one, "netmask") != "")
                print "net_route_by_mask " quote(get(one, "destination")) " " quote(get(one, "netmask")) " " quote(get(one, "gateway"))
            else print "net_route " quote(get(one, "destination")) " " quote(get(one, "gateway"))
            continue
        }
        if (kind_of != "physical") { print "unsupported " quote("network-config type " kind_of); continue }
        interfaces(get(one, "mac_address") == "" ? get(one, "name") : "", get(one, "mac_address"), "")
        if (get(one, "mac_address") != "" && get(one, "name") != "") print "net_rename " quote(get(one, "name"))
        if (get(one, "mtu") != "") print "net_mtu " quote(get(one, "mtu"))
        subnets = under(one, "subnets")
        for (j = 0; j < COUNT[subnets]; j++) {
            net = under(subnets, j)
            kind_of = get(net, "type")
            if (kind_of ~ /^dhcp4?$/) print "net_dhcp"
            else if (kind_of ~ /^(dhcp6|ipv6_)/) print "unsupported " quote("network-config " kind_of)
            else if (get(net, "address") != "") {
                if (get(net, "address") ~ /\//) print "net_address " quote(get(net, "address"))
                else if (get(net, "netmask") != "") print "net_netmask " quote(get(net, "address")) " " quote(get(net, "netmask"))
                else print "net_address " quote(get(net, "address") (get(net, "address") ~ /:/ ? "/64" : "/24"))
            }
            if (get(net, "gateway") != "") print "net_route default " quote(get(net, "gateway"))
            routes(under(net, "routes"))
            each("net_dns", under(net, "dns_nameservers"))
            each("net_search", under(net, "dns_search"))
        }
        print "done"
    }
}
