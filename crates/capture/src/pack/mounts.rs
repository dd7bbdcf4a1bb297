//! Mounts without what they were mounted from: `/proc/self/mountinfo`, field by field
//! (proc_pid_mountinfo(5)).

use std::collections::BTreeSet;

use super::secrets::{Secret, Secrets};
use super::words::scrub;

/// Options whose value is a word of the kernel's, or a number with a unit.
const PLAIN: [&str; 24] = [
    "alloc",
    "data",
    "errors",
    "fsc",
    "iocharset",
    "journal_checksum",
    "local_lock",
    "logbsize",
    "lookupcache",
    "memory",
    "mode",
    "mpol",
    "nfsvers",
    "proto",
    "sec",
    "size",
    "space_cache",
    "stripe",
    "sunit",
    "swidth",
    "vers",
    "xprtsec",
    "compress",
    "discard",
];

/// Directories that every system has: their names reveal nothing.
const EVERYWHERE: [&str; 40] = [
    "bin",
    "boot",
    "containers",
    "containerd",
    "data",
    "dev",
    "docker",
    "efi",
    "etc",
    "export",
    "fs",
    "home",
    "hostname",
    "hosts",
    "kubelet",
    "lib",
    "libpod",
    "local",
    "log",
    "lxc",
    "media",
    "mnt",
    "net",
    "opt",
    "overlay2",
    "pods",
    "proc",
    "resolv.conf",
    "root",
    "run",
    "sbin",
    "scratch",
    "self",
    "srv",
    "sys",
    "tmp",
    "user",
    "usr",
    "var",
    "volumes",
];

/// Words that control groups have in their names on every system.
const GROUPS: [&str; 43] = [
    "app",
    "besteffort",
    "burstable",
    "conmon",
    "container",
    "containerd",
    "containers",
    "cpu",
    "cri",
    "crio",
    "docker",
    "guaranteed",
    "init",
    "job",
    "kubelet",
    "kubepods",
    "libpod",
    "lxc",
    "machine",
    "memory",
    "monitor",
    "nspawn",
    "payload",
    "pod",
    "podman",
    "runtime",
    "scope",
    "service",
    "session",
    "slice",
    "slurm",
    "slurmd",
    "slurmstepd",
    "ssh",
    "sshd",
    "step",
    "system",
    "systemd",
    "task",
    "uid",
    "unified",
    "user",
    "batch",
];

/// One line of mountinfo; a line of another form becomes a single token.
pub(super) fn line(line: &str, devices: &BTreeSet<String>, secrets: &mut Secrets) -> String {
    let mut fields: Vec<String> = line.split(' ').map(str::to_owned).collect();
    let Some(hyphen) = fields.iter().position(|field| field == "-").filter(|at| *at >= 6) else {
        return secrets.token(Secret::Value, line);
    };
    let Some(kind) = fields.get(hyphen + 1).cloned() else {
        return secrets.token(Secret::Value, line);
    };
    fields[3] = match kind.as_str() {
        "cgroup" | "cgroup2" => group(&fields[3], secrets),
        _ => hidden(&fields[3], secrets),
    };
    fields[4] = mount_point(&fields[4], secrets);
    fields[5] = options(&fields[5], secrets);
    if let Some(from) = fields.get(hyphen + 2) {
        fields[hyphen + 2] = source(from, &kind, devices, secrets);
    }
    for field in fields.iter_mut().skip(hyphen + 3) {
        *field = options(field, secrets);
    }
    fields.join(" ")
}

/// Where something is mounted stays, without users, UUIDs and keys.
pub(super) fn mount_point(path: &str, secrets: &mut Secrets) -> String {
    let mut after_home = false;
    let parts = path.split('/').map(|part| {
        let user = after_home && !part.is_empty();
        after_home = matches!(part, "home" | "Users" | "media");
        // `/run/user/1000` has a number for the user.
        if user { secrets.token(Secret::User, part) } else { scrub(part, true, secrets) }
    });
    parts.collect::<Vec<_>>().join("/")
}

/// A path within a file system: each part that is not on every system.
pub(super) fn hidden(path: &str, secrets: &mut Secrets) -> String {
    let plain = |part: &str| part.is_empty() || EVERYWHERE.contains(&part) || number(part);
    let parts = path.split('/').map(|part| match plain(part) {
        true => part.to_owned(),
        false => secrets.token(Secret::Path, part),
    });
    parts.collect::<Vec<_>>().join("/")
}

/// A control group's path: each word that is not on every system.
pub(super) fn group(path: &str, secrets: &mut Secrets) -> String {
    let mut out = String::new();
    let mut rest = path;
    while !rest.is_empty() {
        let run = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let word = &rest[..run];
        let plain = word.is_empty() || GROUPS.contains(&word) || word.len() < 3 && number(word);
        if plain {
            out.push_str(word);
        } else {
            out.push_str(&secrets.token(Secret::Path, word));
        }
        let mark = rest[run..].chars().next().map_or(0, char::len_utf8);
        // Letters of other alphabets are words too.
        let between = &rest[run..run + mark];
        out.push_str(if between.is_ascii() { between } else { "_" });
        rest = &rest[run + mark..];
    }
    out
}

/// The source of a mount. Kernel names of devices stay, as the facts hang on them.
fn source(from: &str, kind: &str, devices: &BTreeSet<String>, secrets: &mut Secrets) -> String {
    if let Some(device) = from.strip_prefix("/dev/") {
        return format!("/dev/{}", device_name(device, devices, secrets));
    }
    let plain = ["none", "udev", "shm", "systemd-1", "cgroup", "cgroup2", "rootfs", "/dev"];
    if from == kind || plain.contains(&from) || gpuio_host::mounted::is_kernels_own(kind) {
        return from.to_owned();
    }
    if secrets.keeps_addresses() {
        return without_login(from, kind, secrets);
    }
    match from.find(":/") {
        Some(colon) => {
            let (server, path) = (&from[..colon], &from[colon + 1..]);
            let path = secrets.token(Secret::Source, path);
            format!("{}:/{path}", servers(server, secrets))
        }
        None => secrets.token(Secret::Source, from),
    }
}

/// The source without what a user logs in with: `//ann:word@filer/share`, `https://host/x?key=…`.
/// A password may hold any character, so the last `@` ends it. Where a source has no login, an `@`
/// has another meaning: `10.0.0.1@o2ib:/fs`, `pool/data@monday`.
fn without_login(from: &str, kind: &str, secrets: &mut Secrets) -> String {
    if ["lustre", "nfs", "nfs4", "zfs"].contains(&kind) {
        return from.to_owned();
    }
    let (place, query) = from.split_once('?').map_or((from, None), |(a, b)| (a, Some(b)));
    let scheme = ["://", "//", "#"].iter().find_map(|mark| Some(place.find(mark)? + mark.len()));
    let (scheme, rest) = place.split_at(scheme.unwrap_or(0));
    let place = match rest.rsplit_once('@') {
        Some((login, rest)) => {
            format!("{scheme}{}@{rest}", secrets.token(Secret::User, login))
        }
        None => place.to_owned(),
    };
    match query {
        Some(query) => format!("{place}?{}", secrets.token(Secret::Value, query)),
        None => place,
    }
}

/// Addresses as addresses, names as hosts: `[fd00::7]`, `10.0.0.1@o2ib:10.0.0.2@o2ib`.
fn servers(text: &str, secrets: &mut Secrets) -> String {
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    if bare.parse::<std::net::IpAddr>().is_ok() {
        return scrub(text, false, secrets);
    }
    let parts = text.split(':').map(|server| {
        let (name, net) = server.split_once('@').map_or((server, None), |(a, b)| (a, Some(b)));
        let mut host = |name: &str| match name.parse::<std::net::Ipv4Addr>() {
            Ok(address) => secrets.v4(address).to_string(),
            Err(_) => secrets.token(Secret::Host, name),
        };
        match net {
            // The network of a Lustre server's address.
            Some(net)
                if ["o2ib", "tcp", "gni", "kfi"].iter().any(|kind| is_numbered(net, kind)) =>
            {
                format!("{}@{net}", host(name))
            }
            // A user's name before the host's.
            Some(at) => format!("{}@{}", host(name), host(at)),
            None => host(name),
        }
    });
    parts.collect::<Vec<_>>().join(":")
}

/// A path below `/dev`: kernel names stay, volumes and whatever people name do not.
pub(super) fn device_name(path: &str, devices: &BTreeSet<String>, secrets: &mut Secrets) -> String {
    let plain = ["mapper", "disk", "by-uuid", "by-id", "by-label", "by-path", "root", "fuse", "md"];
    let known = |part: &str| {
        plain.contains(&part) || devices.contains(part) || matches!(part, "." | ".." | "control")
    };
    let parts = path.split('/').map(|part| match known(part) {
        true => part.to_owned(),
        false => secrets.token(Secret::Volume, part),
    });
    parts.collect::<Vec<_>>().join("/")
}

/// Options: flags stay, values where they are numbers, addresses or the kernel's words.
fn options(field: &str, secrets: &mut Secrets) -> String {
    let each = field.split(',').map(|option| {
        let Some((key, value)) = option.split_once('=') else { return option.to_owned() };
        let address = value.split('%').next().unwrap_or_default();
        let value = if address.parse::<std::net::IpAddr>().is_ok() {
            scrub(value, false, secrets)
        } else if !is_secret(key) && (number(value) || PLAIN.contains(&key) && !value.contains('/'))
        {
            value.to_owned()
        } else {
            secrets.token(Secret::Value, value)
        };
        format!("{key}={value}")
    });
    each.collect::<Vec<_>>().join(",")
}

/// A word with a number behind it, or none: `tcp`, `o2ib7`.
fn is_numbered(text: &str, word: &str) -> bool {
    text.strip_prefix(word).is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether an option's value is never shown, even if it is a number.
fn is_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    let parts = ["pass", "pwd", "secret", "token", "cred", "user", "login"];
    parts.iter().any(|part| key.contains(part)) && key != "user_id"
        || ["pin", "key"].contains(&&*key)
}

/// Digits, and a unit behind them.
fn number(word: &str) -> bool {
    let digits = word.trim_end_matches(['k', 'K', 'm', 'M', 'g', 'G', 't', 'T', '%']);
    word.len() < 20 && !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}
