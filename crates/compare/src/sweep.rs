//! Reading `sweep.json`.

use gpuio_record::{SWEEP_VERSION, Sweep};

/// The sweep in this text.
///
/// # Errors
/// Why it is none that this gpuio reads.
pub fn parse(text: &str) -> Result<Sweep, String> {
    let sweep: Sweep = serde_json::from_str(text)
        .map_err(|error| format!("this is no sweep of gpuio's: {error}"))?;
    if sweep.gpuio_sweep != SWEEP_VERSION {
        return Err(format!(
            "this sweep has version {} and this gpuio reads {SWEEP_VERSION}; take the gpuio that \
             wrote it",
            sweep.gpuio_sweep
        ));
    }
    Ok(sweep)
}
