//! Reading `sweep.json`.

use gpuio_record::{SWEEP_VERSION, Sweep};

/// The sweep in this text.
///
/// # Errors Why this gpuio can't read it.
pub fn parse(text: &str) -> Result<Sweep, String> {
    let sweep: Sweep = serde_json::from_str(text)
        .map_err(|error| format!("this is not a gpuio sweep: {error}"))?;
    if sweep.gpuio_sweep != SWEEP_VERSION {
        return Err(format!(
            "this sweep has version {}, but this gpuio reads {SWEEP_VERSION}; use the gpuio that \
             wrote it",
            sweep.gpuio_sweep
        ));
    }
    Ok(sweep)
}
