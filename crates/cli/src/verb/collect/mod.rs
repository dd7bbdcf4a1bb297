//! `gpuio collect`: the script that prints what another machine has.

use std::process::ExitCode;

use gpuio_base::units::ShellLine;

use crate::args::Collect;
use crate::failure::Failure;
use crate::output::{self, Output, Replace};

/// Plain sh and awk: it runs where gpuio is not installed.
const SCRIPT: &str = include_str!("collect.sh");

pub(crate) fn run(collect: &Collect) -> Result<ExitCode, Failure> {
    match &collect.output {
        Some(path) => {
            let output = Output::begin("-o", path, Replace::forced(collect.force))?;
            let at = output.save_text("the script", SCRIPT)?;
            let (run, at) = (ShellLine::new("sh").file(&at), at.display());
            output::put(&format!(
                "{at}: run `{run} > machine.txt` there, and here gpuio check --from machine.txt\n"
            ))?;
        }
        None => output::put(SCRIPT)?,
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::SCRIPT;

    #[test]
    fn it_asks_for_the_options_and_modules_that_are_read() {
        let words: Vec<&str> = SCRIPT.split(|c: char| !(c.is_alphanumeric() || c == '_')).collect();
        let options = gpuio_host::build_config::OPTIONS.map(|name| &name["CONFIG_".len()..]);
        for name in options.iter().chain(&gpuio_host::module::MODULES) {
            assert!(words.contains(name), "{name}");
        }
    }
}
