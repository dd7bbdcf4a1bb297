//! Whether rings of io_uring may be made.

use gpuio_base::catalog::RingAnswer;
use gpuio_record::facts::Machine;

use super::Rule;
use crate::check::finding::Found;
use crate::check::machine::{CAP_SYS_ADMIN, has_capability};

pub(super) const RULE: Rule = Rule {
    name: "io-uring",
    question: "May this process use io_uring?",
    why: "It is the engine with the least processor time per I/O; without it small blocks cost \
          more, and threads end at a lower rate.",
    fix: "`sysctl kernel.io_uring_disabled=0`; in a container, a seccomp profile that allows \
           io_uring_setup.",
    source: "Documentation/admin-guide/sysctl/kernel.rst, io_uring_disabled (Linux 6.6); \
             capabilities(7)",
    shown_by: super::COLLECTED,
    evaluate,
};

fn evaluate(machine: &Machine) -> Vec<Found> {
    let location = "kernel.io_uring_disabled";
    if machine.config.options.get("CONFIG_IO_URING").map(String::as_str) == Some("n") {
        let fix = "use a kernel with CONFIG_IO_URING=y; engine libaio works without it";
        return vec![Found::warn("the kernel was built without io_uring", fix)];
    }
    let kernel = &machine.host.kernel;
    let tried = machine.settings.gpu_rings.known();
    if let Some(answer @ (RingAnswer::Forbidden | RingAnswer::NoCall)) = tried
        && let Some(refusal) = answer.refusal(kernel.io_uring_disabled, kernel.release.as_deref())
    {
        return vec![Found::warn(refusal.why, refusal.remedy)];
    }
    vec![match kernel.io_uring_disabled {
        Some(0) => Found::pass("every process may use io_uring").at([location]),
        _ if tried.is_some() => Found::pass("this process may use io_uring"),
        Some(1) if has_capability(machine, CAP_SYS_ADMIN) == Some(true) => {
            let observed =
                "only privileged processes may use io_uring, as this one may (CAP_SYS_ADMIN)";
            Found::pass(observed).at([location])
        }
        Some(1) => {
            let observed = "only privileged processes and the group of kernel.io_uring_group may";
            Found::warn(observed, format!("`sysctl {location}=0`, or join that group"))
                .at([location])
        }
        Some(_) => Found::warn("no process may use io_uring", format!("`sysctl {location}=0`"))
            .at([location]),
        None => Found::unknown(
            "the kernel has no such setting (it came with Linux 6.6), or it was not read",
        )
        .fix("`gpuio list` tries it"),
    }]
}
