//! How the rate of one mount grows with the number of clients on this host.
//!
//! A client is a thread with a file of its own and one I/O at a time, as each of gdsio's is.
//! Threads, not processes: a mount has one set of connections to its server (nfs(5), "nconnect")
//! that all processes of the host share, so that a second process adds nothing that a second thread
//! does not. Clients on other hosts are another measurement and not driven.

use super::Preset;

pub(super) const PRESET: Preset = Preset {
    name: "clients",
    summary: "threads of this host, each with a file of its own: where a mount's rate stops \
        growing; needs --directory /mnt/…",
    note: "All clients were threads of this host. The rate for several hosts at once needs \
        another measurement.",
    fallbacks: &[],
    keys: &[("depth", "1"), ("runtime", "5s"), ("ramp", "500ms")],
    axes: &["rw=read,write", "bs=64k,1M", "threads=1..64*2"],
    needs: &[],
    repeats: 3,
    routes: false,
};
