//! cuFile's compatibility mode.

use gpuio_record::facts::{Fact, Machine};

use super::Rule;
use crate::check::configuration::{File, compat_allowed, compat_forced, file, p2pdma, unused};
use crate::check::finding::Found;
use crate::check::machine::{gpu_is_absent, known_module, modules_not_read};

pub(super) const RULE: Rule = Rule {
    name: "compat-mode",
    question: "Is cuFile's compatibility mode neither forced nor forbidden where nothing else \
               works?",
    why: "In it cuFile reads into host memory and copies from there, which looks like GPUDirect \
          Storage to the program. Forced, no I/O is direct; forbidden, what can't be direct fails.",
    fix: "Take force_compat_mode out of cufile.json and unset CUFILE_FORCE_COMPAT_MODE; set \
           allow_compat_mode to false where slow I/O should rather be an error.",
    source: "NVIDIA, cuFile API Reference Guide, cuFile Compatibility Mode; NVIDIA, GPUDirect \
             Storage Installation and Troubleshooting Guide, Environment Variables",
    shown_by: "cat /etc/cufile.json",
    evaluate,
};

fn evaluate(machine: &Machine) -> Vec<Found> {
    if let Some(found) = unused(machine) {
        return vec![found];
    }
    let (forced, allowed) = (compat_forced(machine), compat_allowed(machine));
    let (on, allowed_on) = match (&forced.value, &allowed.value) {
        (Fact::Known(on), Fact::Known(allowed)) => (*on, *allowed),
        (Fact::Unknown(why), _) | (_, Fact::Unknown(why)) => {
            return vec![Found::unknown(why.as_str())];
        }
    };
    if on {
        let observed = "it is forced: every I/O of cuFile goes through host memory";
        let fix = "set properties.force_compat_mode to false, and unset CUFILE_FORCE_COMPAT_MODE";
        return vec![Found::warn(observed, fix).at([forced.from])];
    }
    if allowed_on {
        let observed = "it is allowed: I/O that can't be direct silently goes through host \
                    memory (`gpuio bench --evidence` shows it)";
        return vec![Found::info(observed).at([allowed.from])];
    }
    if let Some(found) = gpu_is_absent(machine) {
        return vec![found];
    }
    let Some(nvidia_fs) = known_module(machine, "nvidia_fs") else {
        let why = format!(
            "it is forbidden, and what is direct here is not known: {}",
            modules_not_read(machine)
        );
        return vec![Found::unknown(why).at([allowed.from])];
    };
    // A mode that gdscheck printed was in force, its variables included.
    let by_file = !matches!(file(machine), File::Unknown(_));
    if let (true, Fact::Unknown(why)) = (by_file, &machine.cufile.environment) {
        let why = format!(
            "the file forbids it; environment variables, which have priority, are not known: {why}"
        );
        return vec![Found::unknown(why).at([allowed.from])];
    }
    if !nvidia_fs.loaded {
        match p2pdma(machine).value {
            Fact::Known(false) => {}
            Fact::Known(true) => {
                let why = "it is forbidden and nvidia-fs is not loaded: run `gpuio check --mount \
                           DIR` to see whether peer-to-peer DMA works, which is on";
                return vec![Found::unknown(why).at([allowed.from])];
            }
            Fact::Unknown(why) => return vec![Found::unknown(why).at([allowed.from])],
        }
        let observed = "it is forbidden, nvidia-fs is not loaded, and use_pci_p2pdma is off: each \
                    call of cuFile fails";
        let fix = "`modprobe nvidia-fs`, or set properties.allow_compat_mode to true";
        return vec![Found::fail(observed, fix).at([allowed.from])];
    }
    vec![Found::pass("it is forbidden: I/O that can't be direct is an error").at([allowed.from])]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{Severity, sample};

    #[test]
    fn each_answer() {
        let of = |keys: &str| evaluate(&sample::configured(&format!("{{ {keys} }}"))).remove(0);
        assert_eq!(of("").severity, Severity::Info);
        let forced = of(r#""properties": { "force_compat_mode": true }"#);
        assert_eq!(
            (forced.severity, &forced.locations[0][..]),
            (Severity::Warn, "/etc/cufile.json:1:19")
        );
        let off = r#""properties": { "allow_compat_mode": false }"#;
        assert_eq!(of(off).severity, Severity::Unknown, "nvidia-fs was not looked for");
        let mut machine = sample::configured(&format!("{{ {off} }}"));
        machine.cufile.environment = Fact::Known(Default::default());
        machine.modules.push(sample::module("nvidia_fs", false));
        assert_eq!(evaluate(&machine)[0].severity, Severity::Fail);
        machine.modules.last_mut().unwrap().loaded = true;
        assert_eq!(evaluate(&machine)[0].severity, Severity::Pass);
    }

    #[test]
    fn without_file_and_gpu_it_is_not_applicable() {
        let mut machine = sample::gpu_and_drive_below_a_switch();
        machine.cufile.text = Fact::Known(None);
        assert_eq!(evaluate(&machine)[0].severity, Severity::Info);
        machine.gpus.clear();
        assert_eq!(evaluate(&machine)[0].severity, Severity::NotApplicable);
    }
}
