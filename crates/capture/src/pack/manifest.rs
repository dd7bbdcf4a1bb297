//! The list of what a capture holds.

use super::Redacted;

/// As text: what was replaced, what was kept, and each file with its size.
pub(super) fn manifest(redacted: &Redacted) -> String {
    let mut out = String::from(
        "gpuio capture 1\n\n\
         Kernel files as `gpuio topo` and `gpuio check` read them; nothing else was taken.\n\
         Read it with: gpuio topo --from FILE.tar, gpuio check --from FILE.tar, or with --from DIR \
         where it is unpacked.\n\n\
         REPLACED (the same value by the same word, all over)\n",
    );
    for (kind, count) in &redacted.counts {
        out.push_str(&format!("  {count:>6}  {}\n", kind.words()));
    }
    if redacted.counts.is_empty() {
        out.push_str("  nothing: no secret was met\n");
    }
    out.push_str(
        "\nLEFT OUT\n  of proc/cmdline, boot/config-* and proc/config.gz, proc/cpuinfo and \
         proc/self/status: every option or line that is not read\n  of configuration space: every \
         word that is not read, serial numbers among them\n\n\
         KEPT\n  mount points, names of interfaces and block devices, models, firmware, PCI \
         addresses, numbers of vendor and device, sizes, states\n",
    );
    if redacted.addresses_kept {
        out.push_str("  names of hosts, network addresses, sources of mounts (--keep-addresses)\n");
    }
    out.push_str(
        "\nFILES (bytes; * differs from the machine's; 0 bytes: empty, or only seen to be there)\n",
    );
    for file in &redacted.taken {
        let mark = if file.changed { '*' } else { ' ' };
        out.push_str(&format!("  {:>8} {mark} {}\n", file.bytes, file.path.display()));
    }
    out
}
