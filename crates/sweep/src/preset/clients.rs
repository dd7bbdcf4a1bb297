//! How the rate of one mount grows with the clients of this host.
//!
//! A client is a thread with a file of its own and one I/O at a time, as each of gdsio's is.
//! Threads, not processes: a mount has one set of connections to its server (nfs(5), "nconnect")
//! which all processes of the host share, so that a second process brings the server nothing that a
//! second thread does not. Clients on other hosts are another matter, and not driven.

use super::Preset;

pub(super) const PRESET: Preset = Preset {
    name: "clients",
    summary: "threads of this one host, each with a file of its own: where a mount's rate stops \
              growing; say --directory /mnt/…",
    note: "All clients were threads of this one host. What the storage gives to several hosts at \
           once is another measurement.",
    fallbacks: &[],
    keys: &[("depth", "1"), ("runtime", "5s"), ("ramp", "500ms")],
    axes: &["rw=read,write", "bs=64k,1M", "threads=1..64*2"],
    needs: &[],
    repeats: 3,
    routes: false,
};
