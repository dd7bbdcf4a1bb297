//! The findings that gdscheck printed, where its output is among the files read.

use gpuio_record::facts::{Fact, GdsCheck, GdsGpu, Machine};

use super::Rule;
use crate::check::configuration::compat_allowed;
use crate::check::finding::Found;
use crate::check::gdscheck::interpret::{is_on, printed, setting};

pub(super) const RULE: Rule = Rule {
    name: "gdscheck",
    question: "If gdscheck's output was given: does it list every GPU as supported, and is \
               compatibility mode not forced?",
    why: "gdscheck succeeds even where all bytes go through host memory: what matters stands in \
          its lines.",
    fix: "Set properties.force_compat_mode to false in cufile.json; use GPUs that NVIDIA's \
           GPUDirect Storage supports, or paths that do not need it (`gpuio bench --path auto`).",
    source: "NVIDIA, GPUDirect Storage Installation and Troubleshooting Guide, gdscheck; its \
             output in releases 0.9 to 1.16",
    shown_by: "gdscheck -p",
    evaluate,
};

fn evaluate(machine: &Machine) -> Vec<Found> {
    let Some((check, printed)) = printed(machine) else {
        return vec![Found::not_applicable("no output of gdscheck was given with --from")];
    };
    let mut found: Vec<Found> = Vec::new();
    let refused = |gpu: &&GdsGpu| gpu.support.known().is_some_and(|words| words != "supports GDS");
    for gpu in check.gpus.iter().filter(refused) {
        let words = gpu.support.known().map_or("", String::as_str);
        let location = gpu.index.known().map(|index| format!("GPU index {index}"));
        let fix = "use paths that do not need it: `gpuio bench --path auto`";
        found.push(if words.to_ascii_lowercase().contains("not") {
            Found::warn(format!("{printed} `{words}`"), fix).at(location)
        } else {
            let observed =
                format!("{printed} `{words}`, which no known release prints; the line may be torn");
            Found::unknown(observed).at(location)
        });
    }
    found.extend(modes(machine, check, printed));
    match check.verification.known().map(String::as_str) {
        Some("succeeded") => {}
        Some(word) if !["fail", "err"].iter().any(|start| word.starts_with(start)) => {
            let observed =
                format!("{printed} `Platform verification {word}`; the line may be torn");
            found.push(Found::unknown(observed));
        }
        Some(word) => {
            let observed = format!("{printed} `Platform verification {word}`");
            found.push(Found::fail(observed, "look at gdscheck's lines before that one"));
        }
        None => {
            let why = check.verification.why().unwrap_or_default();
            let observed = format!("what came of its verification is not known: {why}");
            found.push(Found::unknown(observed));
        }
    }
    if found.is_empty() {
        found.push(Found::pass(format!("{printed} that its verification succeeded")));
    }
    found
}

/// Compatibility mode, where settings were printed.
fn modes(machine: &Machine, check: &GdsCheck, printed: &str) -> Option<Found> {
    let forced = setting(check, "properties.force_compat_mode").is_some_and(is_on);
    let allowed = setting(check, "properties.use_compat_mode").is_some_and(is_on);
    let location = "properties.force_compat_mode";
    if forced {
        let observed = format!("{printed} `{location} : true`: all bytes go through host memory");
        let fix = format!("set {location} to false in cufile.json, unset CUFILE_FORCE_COMPAT_MODE");
        return Some(Found::warn(observed, fix).at([location]));
    }
    // The default: cuFile falls back without a word.
    allowed.then(|| {
        let location = "properties.use_compat_mode";
        let observed =
            format!("{printed} `{location}` as on: cuFile may go through host memory unseen");
        let own = compat_allowed(machine);
        let fix = match own.value {
            Fact::Known(false) => format!(
                "name one file for gdscheck and the program in CUFILE_ENV_PATH_JSON, since the \
                 mode is forbidden by {}",
                own.from
            ),
            _ => {
                let key = "properties.allow_compat_mode";
                format!("set {key} to false where that has to be an error")
            }
        };
        Found::info(observed).fix(fix).at([location])
    })
}

#[cfg(test)]
mod tests {
    use gpuio_record::facts::GdsLine;

    use super::*;
    use crate::check::{Severity, sample};

    fn of(check: GdsCheck) -> Vec<Found> {
        evaluate(&Machine { gdscheck: Some(check), ..Machine::default() })
    }

    #[test]
    fn without_its_output_it_does_not_apply() {
        assert_eq!(evaluate(&Machine::default())[0].severity, Severity::NotApplicable);
        let machine = sample::gpu_and_drive_below_a_switch();
        assert_eq!(evaluate(&machine)[0].severity, Severity::NotApplicable);
    }

    #[test]
    fn forced_modes_refused_gpus_and_failures_are_reported() {
        let line = |name: &str, value: &str| GdsLine {
            name: name.to_owned(),
            value: Fact::Known(value.to_owned()),
        };
        let gpu = GdsGpu {
            index: Fact::Known(1),
            name: Fact::default(),
            bar1_bytes: Fact::default(),
            support: Fact::Known("does not support GDS".to_owned()),
            iommu: Fact::default(),
        };
        let found = of(GdsCheck {
            gpus: vec![gpu],
            settings: vec![line("properties.force_compat_mode", "true")],
            verification: Fact::Known("failed".to_owned()),
            ..GdsCheck::default()
        });
        let severities: Vec<Severity> = found.iter().map(|found| found.severity).collect();
        assert_eq!(severities, [Severity::Warn, Severity::Warn, Severity::Fail]);
        assert_eq!(found[0].locations, ["GPU index 1"]);
        assert!(
            found.iter().all(|found| found.observed.starts_with("gdscheck printed")),
            "{found:?}"
        );
        let found = of(GdsCheck {
            settings: vec![line("properties.use_compat_mode", "0")],
            verification: Fact::Known("succeeded".to_owned()),
            ..GdsCheck::default()
        });
        assert_eq!(found[0].severity, Severity::Pass);
    }

    #[test]
    fn a_file_that_forbids_the_mode_already_is_not_advised() {
        let settings = vec![GdsLine {
            name: "properties.use_compat_mode".to_owned(),
            value: Fact::Known("true".to_owned()),
        }];
        let check = GdsCheck { settings, ..GdsCheck::default() };
        let mut machine = Machine { gdscheck: Some(check), ..Machine::default() };
        let fix = |machine: &Machine| evaluate(machine)[0].fix.clone().unwrap();
        assert!(fix(&machine).contains("set properties.allow_compat_mode to false"));
        let text = "{\"properties\": {\"allow_compat_mode\": false}}";
        machine.cufile.text = Fact::Known(Some(text.to_owned()));
        assert!(fix(&machine).contains("CUFILE_ENV_PATH_JSON"), "{}", fix(&machine));
    }
}
