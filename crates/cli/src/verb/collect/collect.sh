#!/bin/sh
# Prints what gpuio needs to know of this machine: gpuio check, topo and plan read it (--from FILE).
#
#   sh collect.sh > machine.txt
#
# It needs no root, installs nothing, changes nothing and sends nothing; read the file before you
# pass it on. Replaced in it: names of the host and of the user, serial numbers, UUIDs, hardware
# and IP addresses (by private ones; those for documentation stay), servers and paths behind network
# mounts, names of volumes, paths in cufile.log, its directory; the same value by the same word. Kept: mount points,
# names of network interfaces and block devices, models, cufile.json without comments. The last lines say what is not
# in it and why.
#
# With a directory as its argument it reads the copies of /sys, /proc, /dev and /etc there.
set -u
LC_ALL=C
export LC_ALL
PATH=$PATH:/usr/sbin:/sbin:/usr/local/cuda/gds/tools
root=${1:-}
missing=''

left_out() {
    missing="$missing# left out: $1
"
}

# The first line of a file below /sys in $value; empty where it can't be read. Some shells read one
# byte at a time, and integers below /proc/sys answer the first read alone: `cat` reads those.
value=''
get() {
    value=''
    if [ -r "$1" ]; then
        read -r value 2>/dev/null < "$1" || :
    fi
}

# Whether a program is here: `command -v` names functions of this script too.
is_here() {
    case $(command -v "$1" 2>/dev/null) in
        */*) ;;
        *) return 1 ;;
    esac
}

# A command under a limit of time, where the machine has one.
limited() {
    if is_here timeout; then
        timeout 30 "$@"
    else
        "$@"
    fi
}

# A tool's output below its command. Copies of a machine have no tools.
run() {
    tool=$1
    if [ -n "$root" ]; then
        return
    fi
    if ! is_here "$tool"; then
        left_out "$*: there is no $tool here"
        return
    fi
    if text=$(limited "$@" 2>&1) && [ -n "$text" ]; then
        printf '$ %s\n%s\n\n' "$*" "$text"
    else
        left_out "$*: it failed or printed nothing"
    fi
}

# A file below its command.
show() {
    if text=$(cat "$root$1" 2>/dev/null); then
        printf '$ cat %s\n%s\n\n' "$1" "$text"
    else
        left_out "$1: $2"
    fi
}

# Functions, buses and links as `lspci -vvn` prints them, from files that everyone may read.
pci() {
    if [ ! -d "$root/sys/bus/pci/devices" ]; then
        left_out 'PCI functions: /sys/bus/pci is not here'
        return
    fi
    echo '$ lspci -vvn'
    for function in "$root"/sys/bus/pci/devices/*; do
        [ -e "$function/class" ] || continue
        address=${function##*/}
        get "$function/class"; class=${value#0x}
        get "$function/vendor"; vendor=${value#0x}
        get "$function/device"; device=${value#0x}
        interface=${class#????}
        printf '%s %s: %s:%s (prog-if %s)\n' "$address" "${class%??}" "$vendor" "$device" "$interface"
        get "$function/subsystem_vendor"; vendor=${value#0x}
        get "$function/subsystem_device"; device=${value#0x}
        [ -n "$vendor" ] && printf '\tSubsystem: [%s:%s]\n' "$vendor" "$device"
        get "$function/numa_node"
        [ -n "$value" ] && printf '\tNUMA node: %s\n' "$value"
        group=$(readlink "$function/iommu_group" 2>/dev/null)
        [ -n "$group" ] && printf '\tIOMMU group: %s\n' "${group##*/}"
        get "$function/secondary_bus_number"; secondary=$value
        get "$function/subordinate_bus_number"; subordinate=$value
        if [ -n "$secondary" ] && [ -n "$subordinate" ]; then
            bus=${address#*:}
            printf '\tBus: primary=%s, secondary=%02x, subordinate=%02x, sec-latency=0\n' \
                "${bus%%:*}" "$secondary" "$subordinate"
        fi
        link LnkCap "$function/max_link_speed" "$function/max_link_width"
        link LnkSta "$function/current_link_speed" "$function/current_link_width"
        driver=$(readlink "$function/driver" 2>/dev/null)
        [ -n "$driver" ] && printf '\tKernel driver in use: %s\n' "${driver##*/}"
    done
    echo
}

# `16.0 GT/s PCIe` and `16` as `Speed 16GT/s, Width x16`.
link() {
    get "$2"; speed=${value%% *}
    get "$3"
    case $speed:$value in
        [0-9]*:[1-9]*) printf '\t\t%s: Port #0, Speed %sGT/s, Width x%s\n' "$1" "${speed%.0}" "$value" ;;
    esac
}

# Drives by their PCI address, as udev names them.
by_path() {
    if [ -n "$root" ] || [ ! -d /dev/disk/by-path ]; then
        # Of NVMe the kernel has it too.
        set -- "$root"/sys/class/nvme/nvme*
        [ -e "$1/address" ] || { left_out 'addresses of drives: /dev/disk/by-path is not here'; return; }
        echo '$ ls -l /dev/disk/by-path'
        for controller in "$@"; do
            get "$controller/address"; address=$value
            for drive in "$controller"/nvme*n*; do
                [ -e "$drive/size" ] && [ -n "$address" ] || continue
                printf 'lrwxrwxrwx 1 root root 13 Jan  1 00:00 pci-%s-nvme-1 -> ../../%s\n' \
                    "$address" "${drive##*/}"
            done
        done
        echo
        return
    fi
    echo '$ ls -l /dev/disk/by-path'
    for name in /dev/disk/by-path/pci-*; do
        [ -L "$name" ] || continue
        case $name in *-iscsi-* | *-ip-*) continue ;; esac
        printf 'lrwxrwxrwx 1 root root 13 Jan  1 00:00 %s -> %s\n' "${name##*/}" "$(readlink "$name")"
    done
    echo
}

# RDMA ports with their cards, interfaces and rates, as ibdev2netdev -v and ibstatus print them.
rdma() {
    set -- "$root"/sys/class/infiniband/*/ports/*
    if [ ! -e "$1" ]; then
        left_out 'RDMA ports: /sys/class/infiniband has none'
        return
    fi
    echo '$ ibdev2netdev -v'
    for port in "$@"; do
        device=${port%/ports/*}
        address=$(cd "$device/device" 2>/dev/null && pwd -P)
        get "$port/state"; state=${value#*: }
        for interface in "$device"/device/net/*; do
            [ -e "$interface" ] || continue
            get "$interface/operstate"
            case $value in up) up='Up' ;; *) up='Down' ;; esac
            printf '%s %s port %s (%s) ==> %s (%s)\n' "${address##*/}" "${device##*/}" \
                "${port##*/}" "$state" "${interface##*/}" "$up"
        done
    done
    echo
    echo '$ ibstatus'
    for port in "$@"; do
        device=${port%/ports/*}
        printf "Infiniband device '%s' port %s status:\n" "${device##*/}" "${port##*/}"
        for key in state phys_state rate link_layer; do
            get "$port/$key"
            printf '\t%s:\t %s\n' "$key" "$value"
        done
        echo
    done
}

# Mounts of storage, as `mount` prints them.
mounts() {
    if [ ! -r "$root/proc/self/mounts" ] && [ ! -r "$root/proc/mounts" ]; then
        left_out 'mounts: /proc/mounts is not here'
        return
    fi
    file=$root/proc/self/mounts
    [ -r "$file" ] || file=$root/proc/mounts
    echo '$ mount'
    awk '
        BEGIN {
            count = split("proc sysfs devtmpfs devpts cgroup cgroup2 pstore bpf tracefs debugfs " \
                "configfs securityfs mqueue hugetlbfs fusectl autofs binfmt_misc rpc_pipefs nsfs " \
                "efivarfs selinuxfs squashfs overlay ramfs", names, " ")
            for (i = 1; i <= count; i++) kernel[names[i]] = 1
        }
        !($3 in kernel) && $2 !~ /^\/(proc|sys|dev|run)(\/|$)/ {
            gsub(/\\040/, " ", $2)
            print $1 " on " $2 " type " $3 " (" $4 ")"
        }
    ' "$file"
    echo
}

cufile_json() {
    # Another place may have a name of the site in it.
    if [ -z "$root" ] && [ -n "${CUFILE_ENV_PATH_JSON:-}" ]; then
        text=$(cat "$CUFILE_ENV_PATH_JSON" 2>/dev/null) && printf '$ cat cufile.json\n%s\n\n' "$text" ||
            left_out 'the file that CUFILE_ENV_PATH_JSON names: it may not be read'
        return
    fi
    show /etc/cufile.json 'there is none, or it may not be read'
}

# Modules as lsmod prints them.
modules() {
    if [ ! -r "$root/proc/modules" ]; then
        left_out 'modules: /proc/modules is not here'
        return
    fi
    echo '$ lsmod'
    awk '
        BEGIN { print "Module Size Used by" }
        { sub(/,$/, "", $4); print $1, $2, $3, ($4 == "-" ? "" : $4) }
    ' "$root/proc/modules"
    echo
}

# Lines of files, each behind the name of its file.
files() {
    old=$IFS
    IFS=
    for pattern in "$@"; do
        # Without a separator the name is one word, and its pattern still counts.
        for file in $root$pattern; do
            [ -f "$file" ] || continue
            if text=$(cat "$file" 2>/dev/null && echo .); then
                printf '%s' "${text%.}" | awk -v name="${file#"$root"}" '{ print name ":" $0 }'
            else
                left_out "${file#"$root"}: it may not be read"
            fi
        done
    done
    IFS=$old
}

# Directories that only have to be there.
directories() {
    for file in "$@"; do
        [ -d "$root$file" ] && printf '%s/:\n' "$file"
    done
}

# The options of the kernel's configuration that matter.
config() {
    release=$(cat "$root/proc/sys/kernel/osrelease" 2>/dev/null)
    for file in "/boot/config-$release" "/lib/modules/$release/config"; do
        [ -r "$root$file" ] || continue
        grep -E "^CONFIG_($1)=" "$root$file" | sed "s|^|/boot/config-$release:|"
        return
    done
    if [ -r "$root/proc/config.gz" ] && is_here gzip; then
        gzip -dc "$root/proc/config.gz" | grep -E "^CONFIG_($1)=" |
            sed "s|^|/boot/config-$release:|"
    else
        left_out "the kernel's options: neither /boot/config-RELEASE nor /proc/config.gz may be read"
    fi
}

# Settings of the kernel, limits of this shell, queues of drives, parameters of modules.
settings() {
    echo '$ gpuio collect'
    files /proc/sys/kernel/osrelease /proc/sys/kernel/version /proc/self/limits \
        /proc/sys/kernel/io_uring_disabled /proc/sys/kernel/numa_balancing \
        /proc/sys/vm/zone_reclaim_mode /proc/sys/fs/aio-max-nr /proc/sys/fs/aio-nr \
        /sys/kernel/mm/transparent_hugepage/enabled \
        '/sys/devices/system/cpu/cpufreq/policy*/scaling_governor' \
        '/sys/devices/system/cpu/cpufreq/policy*/affected_cpus' \
        /proc/driver/nvidia/version /proc/driver/nvidia/params /proc/driver/nvidia-fs/modules
    for queue in scheduler nr_requests rotational logical_block_size physical_block_size \
        max_sectors_kb read_ahead_kb write_cache; do
        for drive in nvme sd vd md dm-; do
            files "/sys/class/block/$drive*/queue/$queue"
        done
    done
    directories /run /run/udev /sys/module/kernel
    for module in nvidia nvidia_uvm nvidia_fs nvidia_peermem nv_peer_mem gdrdrv mlx5_core mlx5_ib \
        ib_core ib_uverbs nvme nvme_core nvme_rdma nvme_tcp nfs rpcrdma lustre lnet ko2iblnd beegfs \
        wekafsio mmfslinux; do
        directories "/sys/module/$module"
        files "/sys/module/$module/version" "/sys/module/$module/parameters/*"
    done
    config '64BIT|AIO|AMD_IOMMU|ARM_SMMU_V3|BLK_DEV_MD|BLK_DEV_NVME|DEVICE_PRIVATE|DMA_SHARED_BUFFER|HMM_MIRROR|HZ|INFINIBAND|INFINIBAND_ON_DEMAND_PAGING|INTEL_IOMMU|INTEL_IOMMU_DEFAULT_ON|IOMMU_DEFAULT_DMA_LAZY|IOMMU_DEFAULT_DMA_STRICT|IOMMU_DEFAULT_PASSTHROUGH|IO_URING|MD_RAID0|MEMORY_HOTPLUG|MLX5_CORE|NFS_V3|NFS_V4|NFS_V4_1|NFS_V4_2|NUMA|NUMA_BALANCING|NVME_MULTIPATH|PCI_P2PDMA|SUNRPC_XPRT_RDMA|TRANSPARENT_HUGEPAGE|VMD|ZONE_DEVICE'
    echo
}

# The end of cuFile's log, without its traces.
cufile_log() {
    for file in "${CUFILE_LOGFILE_PATH:-/var/log/cufile.log}" ./cufile.log; do
        case $file in ./*) ;; *) file=$root$file ;; esac
        [ -r "$file" ] || continue
        echo '$ cat cufile.log'
        grep -Ev '(TRACE|DEBUG) ' "$file" | tail -n 200
        echo
        return
    done
    left_out 'cufile.log: it is not in /var/log and here (CUFILE_LOGFILE_PATH names it)'
}

gds_check() {
    [ -n "$root" ] && return
    for tool in gdscheck gdscheck.py /usr/local/cuda*/gds/tools/gdscheck \
        /usr/local/cuda*/gds/tools/gdscheck.py; do
        if is_here "$tool"; then
            run "$tool" -p
            return
        fi
    done
    left_out 'gdscheck -p: it is not installed'
}

collect() {
    echo '# gpuio collect 1'
    pci
    run lspci -Dnn
    if [ "$(id -u)" = 0 ]; then
        run lspci -Dvv
    else
        left_out 'ACS, relaxed ordering, payload sizes (lspci -vv): only root may read them'
    fi
    run nvidia-smi --query-gpu=index,name,pci.bus_id,pcie.link.gen.max,pcie.link.width.max --format=csv
    run nvidia-smi topo -m
    run nvidia-smi -q
    run lsblk -bP -o NAME,KNAME,PKNAME,TYPE,SIZE,MODEL,TRAN,FSTYPE,MOUNTPOINT
    by_path
    show /proc/mdstat 'there are no software arrays'
    mounts
    rdma
    run ip addr
    run ip route
    run lscpu
    run numactl -H
    run iostat -xm 1 2
    modules
    settings
    gds_check
    cufile_json
    cufile_log
    show /proc/driver/nvidia-fs/stats 'nvidia-fs is not loaded'
    printf '%s' "$missing"
    echo '# left out: serial numbers, command lines, environments, processes, other logs, files'
}

# Replaces what belongs to this site, the same value by the same word.
scrub() {
    volumes=$(cd /dev/mapper 2>/dev/null && echo *)
    seed=$(od -An -N4 -tu4 /dev/urandom 2>/dev/null | tr -d ' ')
    awk -v seed="${seed:-$$}" -v host="$(uname -n)" -v user="$(id -un)" -v volumes="$volumes" '
        BEGIN {
            srand(seed)
            split(host, part, ".")
            if (host != "localhost" && length(host) > 1) {
                names[host] = "host1"
                if (length(part[1]) > 1) names[part[1]] = "host1"
                hosts = 1
            }
            if (user != "root" && length(user) > 1) names[user] = "user1"
            count = split(volumes, part, " ")
            for (i = 1; i <= count; i++)
                if (part[i] != "control" && part[i] != "*") names[part[i]] = "volume" (++listed)
        }
        function token(kind, word) {
            if (!((kind, word) in tokens)) tokens[kind, word] = kind (++numbers[kind])
            return tokens[kind, word]
        }
        function number(kind, word) {
            if (!((kind, word) in tokens)) tokens[kind, word] = ++numbers[kind]
            return tokens[kind, word]
        }
        function hex(word, least, most) {
            return word ~ /^[0-9A-Fa-f]+$/ && length(word) >= least && length(word) <= most
        }
        # The first octet of an image: private addresses, of one network of 10.0.0.0/8 for the
        # first octet that is seen, else of a network of 16 bits for two octets.
        function private(first, second,    place) {
            if (!firsts++) ten = first
            if (first == ten) return "10."
            place = number("half", first "." second) - 1
            return place < 16 ? "172." (16 + place) "." : "100." (64 + (place - 16) % 64) "."
        }
        # Addresses keep common beginnings, bit by bit, so that networks stay networks. Those for
        # documentation (RFC 5737) are of no site.
        function v4(word,    octets, bits, i, bit, value, image, result) {
            split(word, octets, ".")
            if (word ~ /^(127|0|255|22[4-9]|23[0-9])\./) return word
            if (word ~ /^(192\.0\.2|198\.51\.100|203\.0\.113)\./) return word
            result = private(octets[1], octets[2])
            bits = octets[1] "."
            if (result != "10.") bits = bits octets[2] "."
            for (i = result == "10." ? 2 : 3; i <= 4; i++) {
                value = octets[i] + 0
                image = 0
                for (bit = 128; bit >= 1; bit /= 2) {
                    if (!(bits in flip)) flip[bits] = rand() < 0.5
                    one = value >= bit
                    if (one) value -= bit
                    if (one != flip[bits]) image += bit
                    bits = bits one
                }
                # A network and its broadcast stay what they are.
                if (i == 4 && (octets[4] == 0 || octets[4] == 255)) image = octets[4] + 0
                result = result image (i < 4 ? "." : "")
            }
            return result
        }
        function is_v4(word,    octets, i) {
            if (split(word, octets, ".") != 4) return 0
            for (i = 1; i <= 4; i++)
                if (octets[i] !~ /^[0-9]+$/ || octets[i] > 255) return 0
            return 1
        }
        function clean(word,    parts, count, i, all) {
            # A key and its value.
            if (match(word, /^[A-Za-z_]*[G-Zg-z_][A-Za-z_]*:/) && RLENGTH < length(word))
                return substr(word, 1, RLENGTH) clean(substr(word, RLENGTH + 1))
            if (word in names) return names[word]
            split(word, parts, ".")
            if (parts[1] in names && word ~ /\./ && names[parts[1]] ~ /^host/) return names[parts[1]]
            if (is_v4(word)) return versions ? word : v4(word)
            count = split(word, parts, "-")
            if (count == 6 && parts[1] ~ /^(GPU|MIG)$/ && hex(parts[2], 8, 8))
                return parts[1] "-" uuid(word)
            if (count == 5 && hex(parts[1], 8, 8) && hex(parts[5], 12, 12)) return uuid(word)
            if (word ~ /\.[0-9a-f]$/) return word
            count = split(word, parts, ":")
            all = count > 2
            for (i = 1; i <= count; i++) if (parts[i] != "" && !hex(parts[i], 1, 4)) all = 0
            if (all && (count == 6 || count == 20) && hex(parts[1], 2, 2) && hex(parts[2], 2, 2))
                return sprintf("02:00:00:00:00:%02x", number("mac", word))
            if (all && word != "::1" && word != "::" && (count > 4 || word ~ /::/))
                return v6(word)
            if (all && count == 4 && hex(parts[1], 4, 4))
                return sprintf("0000:0000:0000:%04x", number("guid", word))
            if (hex(word, 16, 64) && word ~ /[0-9]/) return token("serial", word)
            if (word ~ /^0x/ && hex(substr(word, 3), 16, 32)) return token("serial", word)
            if (word ~ /^(eui|naa|nvme|wwn|uuid|iqn)\.[0-9A-Za-z]/) return token("serial", word)
            return word
        }
        # By one for documentation (RFC 3849).
        function v6(word) {
            return word ~ /^2001:0?[dD][bB]8:/ ? word : "2001:db8::" number("v6", word)
        }
        function uuid(word) {
            return sprintf("00000000-0000-0000-0000-%012x", number("uuid", word))
        }
        function line(text,    out, word, end) {
            out = ""
            while (match(text, /[0-9A-Za-z_:.-]+/)) {
                out = out substr(text, 1, RSTART - 1)
                word = substr(text, RSTART, RLENGTH)
                text = substr(text, RSTART + RLENGTH)
                end = ""
                while (word ~ /[:.-]$/ && word !~ /::$/) {
                    end = substr(word, length(word)) end
                    word = substr(word, 1, length(word) - 1)
                }
                out = out (word == "" ? "" : clean(word)) end
            }
            return out text
        }
        # Paths of a log; those of the system tell nothing of the site.
        function paths(text,    out, before, word) {
            out = ""
            while (match(text, /\/[^][ ,;:()"]+/)) {
                before = substr(text, 1, RSTART - 1)
                word = substr(text, RSTART, RLENGTH)
                text = substr(text, RSTART + RLENGTH)
                if (word !~ /^\/(proc|sys|dev|run|etc|usr|lib|opt|boot)\// && word != "/var/log") word = "/" token("path", word)
                out = out line(before) word
            }
            return out line(text)
        }
        # A line of cufile.json with blanks in the place of comments, and of the values of names that
        # sound like secrets: cuFile reads none of these.
        function plain(text,    out, at, char, two, string, start) {
            out = ""
            for (at = 1; at <= length(text); at++) {
                char = substr(text, at, 1)
                two = substr(text, at, 2)
                if (comment) {
                    if (two == "*/") { comment = 0; out = out " "; at++; char = " " }
                    else char = " "
                } else if (string) {
                    if (char == "\\") { out = out char; at++; char = substr(text, at, 1) }
                    else if (char == "\"") string = 0
                } else if (char == "\"") string = 1
                else if (two == "/*") { comment = 1; out = out " "; at++; char = " " }
                else if (two == "//") break
                out = out char
            }
            if (match(tolower(out), /"[^"]*(token|secret|passw|credential|api_?key|private)[^"]*"[ \t]*:/)) {
                start = RSTART + RLENGTH
                out = substr(out, 1, start - 1) " \"value\"" (out ~ /,[ \t]*$/ ? "," : "")
            }
            return out
        }
        # What stands before the mount point: a server and its path, a device, or a name.
        function source(text, type,    server, path, parts, count, i, out) {
            if (text ~ /^\/dev\//) {
                count = split(text, parts, "/")
                if (count < 4 || parts[3] ~ /^(disk|block|loop|fd|cciss|ida)$/) return line(text)
                out = "/dev"
                for (i = 3; i <= count; i++)
                    out = out "/" (parts[i] ~ /^(mapper|md)$/ ? parts[i] : parts[i] in names ? names[parts[i]] : token("lv", parts[i]))
                return out
            }
            if (text == type || text ~ /^(none|tmpfs|shm|udev|rootfs|overlay|systemd-1)$/) return text
            if (text ~ /^\/\//) { server = substr(text, 3); sub(/\/.*/, "", server); path = text
                sub(/^\/\/[^\/]*/, "", path); out = "//" word_of(server) }
            else if (match(text, /:\//)) { server = substr(text, 1, RSTART - 1)
                path = substr(text, RSTART + 1); out = servers(server) ":" }
            else { path = "/" text; sub(/^\/+/, "/", path); out = "" }
            count = split(path, parts, "/")
            for (i = 2; i <= count; i++) out = out "/" (parts[i] == "" ? "" : token("part", parts[i]))
            return text ~ /^\/|:\// ? out : substr(out, 2)
        }
        function word_of(server) {
            if (is_v4(server)) return v4(server)
            if (server in names) return names[server]
            if (server ~ /^\[/) return "[" v6(substr(server, 2, length(server) - 2)) "]"
            names[server] = "host" (++hosts)
            return names[server]
        }
        # `10.0.0.1@o2ib:10.0.0.2@o2ib`: names of networks stay.
        function servers(text,    parts, count, i, net, user, out) {
            if (text !~ /@/) return word_of(text)
            count = split(text, parts, ":")
            out = ""
            for (i = 1; i <= count; i++) {
                net = parts[i]
                if (!sub(/^[^@]*@/, "", net)) net = ""
                sub(/@.*/, "", parts[i])
                # A name before another host is a user.
                user = net != "" && net !~ /^(o2ib|tcp|gni|kfi)[0-9]*$/
                if (user && !(parts[i] in names)) names[parts[i]] = "user" (++users + 1)
                if (net != "") net = "@" (user ? word_of(net) : net)
                out = out (i > 1 ? ":" : "") word_of(parts[i]) net
            }
            return out
        }
        # Options that are read keep their values.
        function options(text,    all, count, i, pair, out) {
            count = split(text, all, ",")
            out = ""
            for (i = 1; i <= count; i++) {
                split(all[i], pair, "=")
                if (all[i] !~ /=/) ;
                else if (pair[1] ~ /^(clientaddr|addr|mountaddr)$/) all[i] = pair[1] "=" word_of(pair[2])
                else if (pair[1] !~ /^(vers|rsize|wsize|proto|port|nconnect|timeo|retrans|sec|mountvers|mountproto|mountport|namlen|local_lock|lookupcache|stripe|data|spread_reads|max_connect|inode64|logbsize|logbufs|sunit|swidth|subvol|subvolid|size|mode)$/)
                    all[i] = pair[1] "=value"
                out = out (i > 1 ? "," : "") all[i]
            }
            return out
        }
        /^\$ / { section = $0 }
        # Numbers of releases look like addresses.
        { versions = /[Vv]ersion|release|firmware|rev / }
        /Serial|serial|\[SN\]|\[V[0-9A-Z]\]|\[PN\]/ && section ~ /lspci/ { next }
        /Serial|Part Number|Board ID|Process|^ +Name +:/ && section ~ /nvidia-smi -q/ { next }
        section ~ /cufile\.json/ && !/^\$ / { $0 = plain($0) }
        section ~ /cufile\.log/ || section ~ /cufile\.json/ && /"dir"/ { print paths($0); next }
        # Names of the files of the kernel, which a host may share: `vm`.
        section == "$ gpuio collect" && match($0, /^\/(proc|sys|boot)\/[^:]*:/) {
            print substr($0, 1, RLENGTH) line(substr($0, RLENGTH + 1))
            next
        }
        section == "$ mount" && / on .* type / {
            at = index($0, " on ")
            rest = substr($0, at + 4)
            open = index(rest, " (")
            type = substr(rest, 1, open - 1)
            sub(/.* type /, "", type)
            print source(substr($0, 1, at - 1), type) " on " line(substr(rest, 1, open - 1)) \
                " (" options(substr(rest, open + 2, length(rest) - open - 2)) ")"
            next
        }
        { print line($0) }
    '
}

collect | scrub
