#!/bin/sh
# The first process of a machine of the laboratory: it mounts what a program needs, runs the scene's
# script and switches the machine off. /lab is a directory of the host.
export PATH=/bin:/sbin HOME=/root TERM=linux
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
mount -t tmpfs none /tmp
mount -t tmpfs none /run
mkdir -p /dev/shm /lab /mnt /root
ln -s /run /var/run
mount -t tmpfs none /dev/shm
mount -t cgroup2 none /sys/fs/cgroup 2>/dev/null
ip link set lo up
for module in virtio_pci 9pnet_virtio 9p nvme virtio_blk virtio_net ahci sd_mod ext4 crc32c_generic; do
    modprobe "$module" || echo "init: no module $module"
done
mount -t 9p -o trans=virtio,version=9p2000.L,cache=none,msize=262144 lab /lab || poweroff -f

for word in $(cat /proc/cmdline); do
    case $word in
    lab.machine=*) MACHINE=${word#*=} ;;
    lab.boot=*) BOOT=${word#*=} ;;
    esac
done
export MACHINE BOOT
hostname "$MACHINE"

# try NAME COMMAND...: runs it, and keeps its output, errors and exit code.
try() {
    name=$1
    shift
    "$@" >"/tmp/try.$name.out" 2>"/tmp/try.$name.err"
    code=$?
    cp "/tmp/try.$name.out" "/lab/out/$name.out"
    cp "/tmp/try.$name.err" "/lab/out/$name.err"
    echo "$code" >"/lab/out/$name.rc"
    return 0
}

# say NAME TEXT: a result.
say() {
    name=$1
    shift
    echo "$*" >"/lab/out/$name"
}

# keep FILE...: copies files to the results.
keep() { cp "$@" /lab/out/; }

# bench NAME ARGUMENTS...: gpuio bench, and its record as NAME.json.
bench() {
    record=$1
    shift
    try "$record" gpuio bench -o "/tmp/$record.json" "$@"
    [ -e "/tmp/$record.json" ] && keep "/tmp/$record.json"
    return 0
}

# ask WORDS...: has the host do something, and waits for the answer.
ask() {
    asked=1
    while [ -e "/lab/ask/$MACHINE.$BOOT.$asked" ]; do asked=$((asked + 1)); done
    request=/lab/ask/$MACHINE.$BOOT.$asked
    echo "$*" >"$request.new"
    mv "$request.new" "$request"
    while [ ! -e "$request.done" ]; do sleep 0.1; done
}

# signal WORD, await WORD: between machines.
signal() { : >"/lab/ask/signal.$1"; }
await() {
    while [ ! -e "/lab/ask/signal.$1" ]; do sleep 0.2; done
}

# drive SERIAL: the name of the NVMe drive with this serial number.
drive() {
    for found in /sys/class/nvme/nvme*; do
        [ "$(tr -d ' ' <"$found/serial")" = "$1" ] || continue
        for name in "$found"/nvme*n*; do basename "$name"; done | head -1
    done
}

# by_serial: text with the names of NVMe drives as drive-SERIAL, and further namespaces as
# drive-SERIAL-nN: the kernel's numbers change from boot to boot.
by_serial() {
    for found in /sys/class/nvme/nvme*/nvme*n*; do
        name=$(basename "$found")
        serial=$(tr -d ' ' <"$found/../serial")
        case $name in
        *n1) echo "s/\\b$name\\b/drive-$serial/g" ;;
        *) echo "s/\\b$name\\b/drive-$serial-n${name##*n}/g" ;;
        esac
    done >/tmp/by_serial
    sed -f /tmp/by_serial
}

# file_system DEVICE DIRECTORY: makes an ext4 and mounts it.
file_system() {
    mkdir -p "$2"
    mkfs.ext4 -F -q -E lazy_itable_init=0,lazy_journal_init=0 "$1" && mount -t ext4 "$1" "$2"
}

# network ADDRESS [CARD]: the first card, or this one, has this address.
network() {
    ip link set "${2:-eth0}" up
    ip addr add "$1/24" dev "${2:-eth0}"
}

# nfs_server DIRECTORY [PORT]: exports it by NFS 4, and by NFS 3 where $NFS3 is set, with RDMA on this
# port, and signals server-ready. The grace time is the shortest: the first file waits for its end.
nfs_server() {
    ip -4 addr show | grep -q 10.9.0.1/ || network 10.9.0.1
    modprobe nfsd
    mkdir -p /var/lib/nfs/rpc_pipefs /var/lib/nfs/v4recovery
    touch /etc/exports /var/lib/nfs/etab /var/lib/nfs/rmtab
    mount -t rpc_pipefs rpc_pipefs /var/lib/nfs/rpc_pipefs
    mount -t nfsd nfsd /proc/fs/nfsd
    echo 10 >/proc/fs/nfsd/nfsv4leasetime
    echo 10 >/proc/fs/nfsd/nfsv4gracetime
    chmod 777 "$1"
    exportfs -o rw,no_root_squash,insecure,fsid=1 "*:$1"
    if [ -n "$NFS3" ]; then
        mkdir -p /run/rpcbind
        rpcbind
        rpc.mountd -p 20048
        rpc.nfsd -V 3 -V 4 -V 4.1 -V 4.2 ${2:+--rdma=$2} 4
    else
        rpc.mountd -N 2 -N 3
        rpc.nfsd -N 3 -V 4 -V 4.1 -V 4.2 ${2:+--rdma=$2} 4
    fi
    signal server-ready
}

. /lab/variables
if [ -e /lab/shell ]; then
    echo "machine $MACHINE: the script is /lab/script.$MACHINE, results go to /lab/out; exit ends it"
    setsid cttyhack sh </dev/ttyS0 >/dev/ttyS0 2>&1
else
    . "/lab/script.$MACHINE"
    : >"/lab/ask/$MACHINE.end"
fi
sync
poweroff -f
