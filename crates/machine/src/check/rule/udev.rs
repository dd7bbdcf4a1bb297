//! udev's database.

use gpuio_record::facts::{Fact, Machine};

use super::Rule;
use crate::check::finding::Found;
use crate::check::machine::{gpu_is_absent, without_gpu};

pub(super) const RULE: Rule = Rule {
    name: "udev",
    question: "Is /run/udev there?",
    why: "NVIDIA's cuFile queries udev about the device below a file. Without udev's database, as \
          in most containers, cuFileHandleRegister fails with 5027 (the file is not registered), \
          and KvikIO silently falls back to POSIX.",
    fix: "In a container: start it with `-v /run/udev:/run/udev:ro`. On a machine: \
           `systemctl start systemd-udevd` and `udevadm trigger`.",
    source: "udev(7); KvikIO, Runtime Settings, KVIKIO_COMPAT_MODE (falls back where /run/udev \
             can't be read); cuFile's code \
             5027 as seen in containers",
    shown_by: super::COLLECTED,
    evaluate,
};

fn evaluate(machine: &Machine) -> Vec<Found> {
    if let Some(found) = gpu_is_absent(machine) {
        return vec![found];
    }
    match &machine.settings.udev_runtime {
        Fact::Known(true) => return vec![Found::pass("/run/udev is there")],
        Fact::Unknown(why) => {
            return vec![Found::unknown(format!("whether /run/udev is there is not known: {why}"))];
        }
        Fact::Known(false) => {}
    }
    let observed = "/run/udev is missing";
    if let Some(found) = without_gpu(machine) {
        return vec![found];
    }
    let fix = match &machine.host.kernel.containment.container {
        Some(container) => {
            format!("start the container ({container}) with `-v /run/udev:/run/udev:ro`")
        }
        None => {
            "`systemctl start systemd-udevd && udevadm trigger`; in a container, start it with \
                 `-v /run/udev:/run/udev:ro`"
                .to_owned()
        }
    };
    vec![Found::fail(format!("{observed}: NVIDIA's cuFile fails with 5027"), fix).at(["/run/udev"])]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{Severity, sample};

    #[test]
    fn it_fails_with_a_gpu_and_the_fix_fits_containers() {
        let mut machine = sample::gpu_and_drive_below_a_switch();
        assert_eq!(evaluate(&machine)[0].severity, Severity::Unknown);
        machine.settings.udev_runtime = Fact::Known(false);
        machine.host.kernel.containment.container = Some("docker".to_owned());
        let found = evaluate(&machine);
        assert_eq!(found[0].severity, Severity::Fail);
        assert!(found[0].fix.as_ref().unwrap().contains("(docker)"));
        machine.settings.udev_runtime = Fact::Known(true);
        assert_eq!(evaluate(&machine)[0].severity, Severity::Pass);
        machine.gpus.clear();
        assert_eq!(evaluate(&machine)[0].severity, Severity::NotApplicable);
    }
}
