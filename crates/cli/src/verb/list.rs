//! `gpuio list`: what is built in, and what of it can run here.

use std::fmt::Write;
use std::process::ExitCode;

use gpuio_cufile::{Calls, Library};
use gpuio_gpu::{Driver, Which};
use gpuio_io::engine::ENGINES;
use gpuio_io::path::{Mover, PATHS};
use gpuio_report::format::FORMATS;

use crate::args::CufileFlags;
use crate::failure::Failure;
use crate::output;

pub(crate) fn run() -> Result<ExitCode, Failure> {
    let gpu = Driver::load(&Which::System).map(|_| ()).map_err(|absent| absent.to_string());
    let software = Driver::load(&Which::Software).map(|_| ()).map_err(|absent| absent.to_string());
    let search = crate::cufile::search(&CufileFlags::default(), false);
    // Loaded, not opened: that starts threads and reads the whole machine.
    let library = Library::load(&search).map_err(|absent| absent.to_string());
    let cufile = |calls: Calls| match &library {
        Err(why) => Err(why.clone()),
        Ok(library) => library.lacks(calls).map_or(Ok(()), |lacks| Err(lacks.to_string())),
    };
    let mut text = String::new();
    let mut line = |name: &str, summary: &str, state: &Result<(), String>| {
        let state = match state {
            Ok(()) => "runs here".to_owned(),
            Err(why) => format!("not here: {why}"),
        };
        // Writing to a String can't fail.
        let _ = writeln!(text, "  {name:<9} {summary}\n            {state}");
    };
    line("PATHS", "how bytes travel between host memory and their destination", &Ok(()));
    for row in PATHS {
        let state = match (row.needs_gpu, row.mover) {
            (true, Mover::Cufile(calls)) => gpu.clone().and_then(|()| cufile(calls)),
            (true, Mover::Engine) => gpu.clone(),
            (false, _) => Ok(()),
        };
        let number = match row.gdsio {
            Some(number) => format!("gdsio -x {number}"),
            None => "gdsio has none like it".to_owned(),
        };
        line(row.name, &format!("{} ({number})", row.summary), &state);
    }
    line("ENGINES", "how bytes travel between files and host memory", &Ok(()));
    for row in ENGINES {
        line(row.name, row.summary, &(row.available)());
    }
    line("GPUS", "CUDA drivers", &Ok(()));
    line("system", "libcuda.so.1 of this machine", &gpu);
    line("software", "gpuio's software GPU, for trying job files: --gpu software", &software);
    line("FORMATS", "what results look like", &Ok(()));
    for row in FORMATS {
        line(row.name, row.summary, &Ok(()));
    }
    let text = text.replace("\n            runs here", "");
    output::put(&text)?;
    Ok(ExitCode::SUCCESS)
}
