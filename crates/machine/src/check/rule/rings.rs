//! The needs of path `initiated`.

use gpuio_record::facts::Machine;

use super::Rule;
use crate::check::finding::Found;
use crate::check::machine::without_gpu;
use crate::check::rings::needs;
use crate::check::verdict::Answer;

pub(super) const RULE: Rule = Rule {
    name: "rings",
    question: "Can the GPU start file I/O by itself (path initiated)?",
    why: "A kernel on the GPU then reads what only it knows the place of, without a way through \
          the CPU for each block. The other paths do not need it.",
    fix: "Use Linux 6.6 or later with `sysctl kernel.io_uring_disabled=0`; in a container, a \
           seccomp profile that allows io_uring_setup, io_uring_enter and io_uring_register; \
           `ulimit -l unlimited`.",
    source: "io_uring_setup(2), IORING_SETUP_NO_MMAP (Linux 6.5) and IORING_SETUP_NO_SQARRAY \
             (Linux 6.6); io_uring_register(2), IORING_REGISTER_BUFFERS; gpuio, docs/paths.md",
    shown_by: super::COLLECTED,
    evaluate,
};

fn evaluate(machine: &Machine) -> Vec<Found> {
    if let Some(found) = without_gpu(machine) {
        return vec![found];
    }
    let found = needs(machine).into_iter().map(|need| {
        let found = match need.met {
            Answer::Yes => Found::pass(need.found),
            // Rules `io-uring` and `memlock` warn of what costs other paths too.
            Answer::No => Found::info(need.found),
            Answer::Unknown => Found::unknown(need.found),
        };
        Found { fix: need.fix, ..found }
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use gpuio_base::catalog::RingAnswer;
    use gpuio_record::facts::{Fact, ResourceLimit};

    use super::*;
    use crate::check::Severity::{self, Info, Pass, Unknown};
    use crate::check::machine::CAP_SYS_ADMIN;
    use crate::check::sample;

    /// The finding on the rings, after a change of a machine on which they were not tried.
    fn of(change: impl FnOnce(&mut Machine)) -> (Severity, String) {
        let mut machine = sample::gpu_and_drive_below_a_switch();
        machine.settings.gpu_rings = Fact::unknown("it was not tried");
        change(&mut machine);
        let found = evaluate(&machine).remove(0);
        (found.severity, format!("{}; {}", found.observed, found.fix.unwrap_or_default()))
    }

    fn release(machine: &mut Machine, release: &str, disabled: Option<u64>) {
        machine.host.kernel.release = Some(release.to_owned());
        machine.host.kernel.io_uring_disabled = disabled;
    }

    #[track_caller]
    fn is(change: impl FnOnce(&mut Machine), severity: Severity, words: &str) {
        let (found, said) = of(change);
        assert_eq!(found, severity, "{said}");
        assert!(said.contains(words), "{said}");
    }

    #[test]
    fn what_was_tried_decides() {
        let tried = |answer, release: &'static str, disabled| {
            move |machine: &mut Machine| {
                self::release(machine, release, disabled);
                machine.settings.gpu_rings = Fact::Known(answer);
            }
        };
        // A kernel of a distribution has more than its release says.
        is(tried(RingAnswer::Made, "5.14.0-611.el9", Some(0)), Pass, "rings that the GPU can fill");
        is(tried(RingAnswer::Forbidden, "6.18.0", Some(0)), Info, "seccomp");
        is(tried(RingAnswer::Forbidden, "6.18.0", Some(2)), Info, "io_uring_disabled=0");
        is(tried(RingAnswer::NoSuchRing, "6.5.0", None), Info, "use 6.6 or later");
        is(tried(RingAnswer::NoMemory, "6.18.0", Some(0)), Info, "ulimit -l");
    }

    #[test]
    fn what_was_not_tried_is_ruled_out_or_unknown() {
        is(|m| release(m, "5.15.0-91-generic", None), Info, "Linux 5.15.0-91-generic has no rings");
        is(|m| release(m, "6.5.13", None), Info, "use 6.6 or later");
        is(|m| release(m, "5.14.0-611.el9", Some(0)), Unknown, "it was not tried");
        is(|m| release(m, "6.8.0", Some(2)), Info, "io_uring_disabled is 2");
        is(|m| release(m, "6.8.0", Some(1)), Unknown, "io_uring_disabled is 1");
        is(|m| release(m, "6.8.0", Some(0)), Unknown, "`gpuio list` there tries it");
        is(|m| m.host.kernel.release = None, Unknown, "it was not tried");
        let root = |m: &mut Machine| {
            release(m, "6.8.0", Some(1));
            m.host.kernel.capabilities = Some(1 << CAP_SYS_ADMIN);
        };
        assert!(!of(root).1.contains("is 1"));
        let built = |m: &mut Machine| {
            m.config.options.insert("CONFIG_IO_URING".to_owned(), "n".to_owned());
        };
        is(built, Info, "CONFIG_IO_URING=y");
    }

    #[test]
    fn buffers_have_to_be_locked() {
        let locks = |bytes: u64| {
            let mut machine = sample::gpu_and_drive_below_a_switch();
            let limit = ResourceLimit { soft: Some(bytes), hard: None };
            machine.host.kernel.memlock_bytes = Some(limit);
            machine.host.kernel.capabilities = Some(0);
            evaluate(&machine).remove(1)
        };
        assert_eq!(locks(256 << 10).severity, Pass);
        let small = locks(64 << 10);
        assert_eq!(small.severity, Info);
        assert!(small.observed.contains("a ring with 64 blocks of 4 KiB takes 256"), "{small:?}");
        assert!(small.fix.unwrap().contains("ulimit -l"));
    }
}
