//! cuFile's settings in force: variables first, then the file, then the library's defaults.

use gpuio_base::cufilejson::{Config, SyntaxError};
use gpuio_record::facts::{Fact, Machine};

use crate::check::finding::Found;
use crate::check::machine::gpu_is_absent;

/// cuFile's file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum File {
    /// It is not known, and why.
    Unknown(String),
    /// There is none.
    Absent,
    /// It can't be read as JSON.
    Broken(SyntaxError),
    Read(Config),
}

pub(crate) fn file(machine: &Machine) -> File {
    match &machine.cufile.text {
        Fact::Unknown(why) => File::Unknown(why.clone()),
        Fact::Known(None) => File::Absent,
        Fact::Known(Some(text)) => match gpuio_base::cufilejson::read(text) {
            Ok(config) => File::Read(config),
            Err(error) => File::Broken(error),
        },
    }
}

/// Why the keys are not known; `None` where they are, or where there is no file.
pub(crate) fn not_read(machine: &Machine) -> Option<String> {
    match file(machine) {
        File::Unknown(why) => Some(format!("cuFile's configuration is not known: {why}")),
        File::Broken(_) => Some(format!("{} can't be read as JSON", machine.cufile.path)),
        File::Absent | File::Read(_) => None,
    }
}

/// The finding of rules about the library where nothing is configured and no GPU could use it.
pub(crate) fn unused(machine: &Machine) -> Option<Found> {
    gpu_is_absent(machine).filter(|_| file(machine) == File::Absent)
}

/// The keys; of a file that is absent or broken, none.
pub(crate) fn config(machine: &Machine) -> Config {
    match file(machine) {
        File::Read(config) => config,
        _ => Config::default(),
    }
}

/// A setting in force, and its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting<T> {
    pub(crate) value: Fact<T>,
    /// The variable, the file with its line, or the library's default.
    pub(crate) from: String,
}

/// Whether a key is on: by its variable, the file, or else `default`. Where gdscheck printed the
/// opposite, its source says so: what a program reads itself decides, and no later report.
pub(crate) fn switch(
    machine: &Machine,
    path: &str,
    variable: &str,
    default: bool,
) -> Setting<bool> {
    let mut setting = read_switch(machine, path, variable, default);
    let printed = crate::check::gdscheck::interpret::in_force(machine, path);
    if let Some((value, from)) = printed
        && let (Some(other), Some(own)) = (as_switch(value), setting.value.known())
        && other != *own
    {
        setting.from.push_str(&format!(
            "; {from}, so it read another file, variable or version of it, or at another time"
        ));
    }
    setting
}

/// The same without what gdscheck says beside it. cuFile takes 0, 1, TRUE and FALSE in variables.
fn read_switch(machine: &Machine, path: &str, variable: &str, default: bool) -> Setting<bool> {
    let from_environment = machine.cufile.environment.known().and_then(|all| all.get(variable));
    if let Some(value) = from_environment {
        let on = ["1", "true", "TRUE", "True"].contains(&value.trim());
        return Setting { value: Fact::Known(on), from: format!("{variable}={value}") };
    }
    let default = |from: &str| Setting { value: Fact::Known(default), from: from.to_owned() };
    let unknown = |why: String| Setting { value: Fact::unknown(why), from: String::new() };
    match file(machine) {
        File::Unknown(why) => {
            let printed = crate::check::gdscheck::interpret::in_force(machine, path);
            let printed = printed.and_then(|(value, from)| Some((as_switch(value)?, from)));
            match printed {
                Some((on, from)) => Setting { value: Fact::Known(on), from },
                None => unknown(format!("cuFile's configuration is not known: {why}")),
            }
        }
        File::Broken(_) => unknown(format!("{} can't be read as JSON", machine.cufile.path)),
        File::Absent => default("cuFile's default: there is no cufile.json"),
        File::Read(config) => match (config.get(path), config.switch(path)) {
            (Some(entry), Some(on)) => {
                let from = location(machine, entry.line, entry.column);
                Setting { value: Fact::Known(on), from }
            }
            (Some(_), None) => unknown(format!("{path} holds no switch")),
            (None, _) => default("cuFile's default"),
        },
    }
}

/// A switch as gdscheck prints it: `true`, in the oldest layout `1`.
pub(crate) fn as_switch(value: &str) -> Option<bool> {
    match value {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

/// `FILE:LINE:COLUMN`.
pub(crate) fn location(machine: &Machine, line: usize, column: usize) -> String {
    format!("{}:{line}:{column}", machine.cufile.path)
}

pub(crate) fn compat_forced(machine: &Machine) -> Setting<bool> {
    switch(machine, "properties.force_compat_mode", "CUFILE_FORCE_COMPAT_MODE", false)
}

/// Allowed by default, by the library itself and by the file that NVIDIA installs today.
pub(crate) fn compat_allowed(machine: &Machine) -> Setting<bool> {
    let variable = "CUFILE_ALLOW_COMPAT_MODE";
    let mut setting = switch(machine, "properties.allow_compat_mode", variable, true);
    if setting.from.starts_with(variable) {
        setting.from.push_str(" (read by releases up to 1.15)");
    }
    setting
}

/// cuFile's compatibility mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compat {
    /// All I/O goes through host memory.
    Forced,
    /// I/O that can't be direct does.
    Allowed,
    /// I/O that can't be direct is an error.
    Forbidden,
}

/// The compatibility mode in force, and what shows it; `None` where it is not known.
pub fn compat_mode(machine: &Machine) -> Option<(Compat, String)> {
    let (forced, allowed) = (compat_forced(machine), compat_allowed(machine));
    if forced.value == Fact::Known(true) {
        return Some((Compat::Forced, forced.from));
    }
    let mode = if *allowed.value.known()? { Compat::Allowed } else { Compat::Forbidden };
    Some((mode, allowed.from))
}

pub(crate) fn p2pdma(machine: &Machine) -> Setting<bool> {
    switch(machine, "properties.use_pci_p2pdma", "CUFILE_USE_PCIP2PDMA", false)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn the_variable_goes_before_the_file_and_that_before_the_default() {
        let mut machine = Machine::default();
        assert!(compat_forced(&machine).value.known().is_none());
        machine.cufile.text = Fact::Known(None);
        assert_eq!(compat_forced(&machine).value, Fact::Known(false));
        machine.cufile.path = "/etc/cufile.json".to_owned();
        let text = "{\n\"properties\": { \"force_compat_mode\": true } }";
        machine.cufile.text = Fact::Known(Some(text.to_owned()));
        let forced = compat_forced(&machine);
        assert_eq!((forced.value, &forced.from[..]), (Fact::Known(true), "/etc/cufile.json:2:17"));
        let environment = [("CUFILE_FORCE_COMPAT_MODE".to_owned(), "0".to_owned())];
        machine.cufile.environment = Fact::Known(BTreeMap::from(environment));
        assert_eq!(compat_forced(&machine).from, "CUFILE_FORCE_COMPAT_MODE=0");
        machine.cufile.environment = Fact::unknown("no");
        machine.cufile.text = Fact::Known(Some("{".to_owned()));
        assert!(compat_forced(&machine).value.why().unwrap().contains("JSON"));
    }

    #[test]
    fn gdscheck_that_printed_the_opposite_is_named_beside_what_decides() {
        let of = |allowed: bool, printed: &str| {
            let line = gpuio_record::facts::GdsLine {
                name: "properties.use_compat_mode".to_owned(),
                value: Fact::Known(printed.to_owned()),
            };
            let check = gpuio_record::facts::GdsCheck {
                settings: vec![line],
                ..gpuio_record::facts::GdsCheck::default()
            };
            let mut machine = Machine { gdscheck: Some(check), ..Machine::default() };
            machine.cufile.path = "cufile.json".to_owned();
            let text = format!("{{\"properties\": {{\"allow_compat_mode\": {allowed}}}}}");
            machine.cufile.text = Fact::Known(Some(text));
            machine
        };
        let (mode, from) = compat_mode(&of(false, "true")).unwrap();
        assert_eq!(mode, Compat::Forbidden);
        assert!(from.starts_with("cufile.json:1:"), "{from}");
        assert!(from.contains("; gdscheck printed `properties.use_compat_mode : true`"), "{from}");
        let (_, from) = compat_mode(&of(true, "1")).unwrap();
        assert!(!from.contains("gdscheck"), "they agree: {from}");
    }
}
