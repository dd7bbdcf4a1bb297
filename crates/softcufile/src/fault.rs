//! Injected faults, by the environment.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{CallError, code};

/// How a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultMode {
    /// With a code of cuFile's, or an errno below 5001.
    Code(i32),
    /// By moving half of what was requested.
    Short,
    /// By ending the process, as NVIDIA's library can.
    Crash,
    /// By never completing.
    Lost,
}

impl FaultMode {
    /// The failure of a call that moves nothing.
    pub(crate) fn refusal(self) -> CallError {
        match self {
            FaultMode::Crash => std::process::abort(),
            FaultMode::Code(code) if code > 5000 => code.into(),
            _ => code::INTERNAL_ERROR.into(),
        }
    }
}

#[derive(Debug)]
struct Fault {
    call: String,
    mode: FaultMode,
    after: u64,
    times: u64,
    calls_seen: AtomicU64,
}

#[derive(Debug, Default)]
pub(crate) struct Faults(Vec<Fault>);

impl Faults {
    /// Parses `call:code[:after_n[:times]][,…]`.
    pub(crate) fn read(text: &str) -> Result<Faults, String> {
        let parts = text.split(',').filter(|part| !part.is_empty());
        parts.map(Fault::read).collect::<Result<_, _>>().map(Faults)
    }

    /// Counts one more `call` and returns its fault, if any.
    pub(crate) fn next(&self, call: &str) -> Option<FaultMode> {
        let fault = self.0.iter().find(|fault| fault.call == call)?;
        // Only the count matters; it orders nothing else.
        let before = fault.calls_seen.fetch_add(1, Ordering::Relaxed);
        let failed = before.checked_sub(fault.after)?;
        (failed < fault.times).then_some(fault.mode)
    }
}

impl Fault {
    fn read(text: &str) -> Result<Fault, String> {
        let wrong =
            || format!("GPUIO_SOFT_CUFILE_FAIL: {text:?} is not call:code[:after_n[:times]]");
        let mut parts = text.split(':');
        let call = parts.next().filter(|call| !call.is_empty()).ok_or_else(wrong)?;
        let mode = match parts.next().ok_or_else(wrong)? {
            "short" => FaultMode::Short,
            "crash" => FaultMode::Crash,
            "lost" => FaultMode::Lost,
            code => {
                let code = code.parse().ok().filter(|&code: &i32| code > 0);
                FaultMode::Code(code.ok_or_else(wrong)?)
            }
        };
        let mut count = |default: u64| match parts.next() {
            None => Ok(default),
            Some(count) => count.parse().map_err(|_| wrong()),
        };
        let (after, times) = (count(0)?, count(u64::MAX)?);
        if parts.next().is_some() {
            return Err(wrong());
        }
        Ok(Fault { call: call.to_owned(), mode, after, times, calls_seen: AtomicU64::new(0) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_come_in_their_time() {
        let text = "cuFileRead:5:1:2,cuFileWrite:short,cuFileBufRegister:crash:1,c:lost";
        let faults = Faults::read(text).unwrap();
        let answers: Vec<_> = (0..4).map(|_| faults.next("cuFileRead")).collect();
        let five = Some(FaultMode::Code(5));
        assert_eq!(answers, [None, five, five, None]);
        assert_eq!(faults.next("cuFileWrite"), Some(FaultMode::Short));
        let answers: Vec<_> = (0..2).map(|_| faults.next("cuFileBufRegister")).collect();
        assert_eq!(answers, [None, Some(FaultMode::Crash)]);
        assert_eq!(faults.next("c"), Some(FaultMode::Lost));
        assert_eq!(faults.next("cuFileHandleRegister"), None);
    }

    #[test]
    fn wrong_ones_are_reported() {
        for text in ["cuFileRead", ":5", "a:0", "a:b", "a:1:x", "a:1:2:3:4"] {
            assert!(Faults::read(text).unwrap_err().contains("GPUIO_SOFT_CUFILE_FAIL"), "{text}");
        }
    }
}
