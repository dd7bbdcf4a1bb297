//! DCGM's profiling fields (`libdcgm.so`, NVIDIA's Data Center GPU Manager), loaded at run time:
//! how busy multiprocessors, tensor cores and memory of each GPU are, and bytes over PCIe and
//! NVLink.
//!
//! Purpose: plain values out of the host engine that runs on this machine (`nv-hostengine`). It
//! must not hold an engine of our own (it needs root and takes the counters from the running one),
//! health checks, jobs or policies. Data flows from the engine's cache through one callback into
//! [`Profile`]s; no pointer of the library leaves this crate.
//!
//! [`Engine::connect`] asks the engine to watch the fields of all GPUs for as long as the
//! connection lasts. That starts the GPUs' profiling counters, which other profilers then can't
//! have (NVIDIA's documentation, "Profiling metrics").
//!
//! Functions, constants and the one structure are those of `dcgm_agent.h`, `dcgm_structs.h` and
//! `dcgm_fields.h` (NVIDIA/go-dcgm, versions 1.4601 to 4.5, in which they are the same). The
//! structure has its size and version in its first field; values of another size are refused.
//!
//! Threads: an [`Engine`] belongs to one thread at a time. Calls go over a local socket and take
//! up to some milliseconds.

#![allow(unsafe_code)]

mod library;

use std::fmt;

use library::{Functions, Handle};

/// Names of the library, the newest first.
const LIBRARIES: [&str; 3] = ["libdcgm.so.4", "libdcgm.so.3", "libdcgm.so.2"];
/// Where the host engine listens by default (port 5555).
const LOCAL: &str = "127.0.0.1";
/// How often the engine reads the fields, in microseconds: it samples at 1 Hz for exporters, too.
const EVERY_US: i64 = 1_000_000;

/// The profiling fields in the order of [`Profile::values`].
pub const FIELDS: [u16; 12] =
    [1001, 1002, 1003, 1004, 1005, 1006, 1007, 1008, 1009, 1010, 1011, 1012];

/// Why there are no profiling fields.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Absent {
    /// No library could be loaded.
    #[error("DCGM (libdcgm.so.4, .3 or .2) is not installed")]
    NoLibrary,
    /// A library lacks a function.
    #[error("{library} lacks {function}, so it is no DCGM of version 2 to 4")]
    NoFunction {
        /// The library's name.
        library: String,
        function: &'static str,
    },
    /// No host engine answers.
    #[error("no DCGM host engine answers on this machine ({0}); start nv-hostengine")]
    NoEngine(String),
    /// The engine does not give the fields.
    #[error("DCGM gives no profiling fields: {call}: {why}")]
    Refused {
        /// The function that failed.
        call: &'static str,
        why: String,
    },
}

/// A GPU's profiling fields.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// DCGM's number of the GPU.
    pub id: u32,
    /// UUID as NVML has it (`GPU-…`); empty where DCGM does not tell.
    pub uuid: String,
    /// Values in the order of [`FIELDS`], over the engine's last second: shares of time from 0 to
    /// 1, of PCIe and NVLink bytes per second. `None` where this GPU has none, or none yet.
    pub values: [Option<f64>; FIELDS.len()],
}

/// A connection to the host engine, which watches the fields until it is dropped.
pub struct Engine {
    functions: Functions,
    handle: Handle,
    fields: Handle,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("handle", &self.handle).finish_non_exhaustive()
    }
}

impl Engine {
    /// Connects to the host engine of this machine and lets it watch the fields. The first values
    /// come after a second or two.
    ///
    /// # Errors
    /// Why there is none.
    pub fn connect() -> Result<Engine, Absent> {
        let mut absent = Absent::NoLibrary;
        for name in LIBRARIES {
            match Engine::at(name, LOCAL) {
                Err(Absent::NoLibrary) => {}
                Err(other) => absent = other,
                Ok(engine) => return Ok(engine),
            }
        }
        Err(absent)
    }

    /// As [`Engine::connect`], with a library and an address.
    ///
    /// # Errors
    /// Why there is none.
    pub fn at(library: &str, address: &str) -> Result<Engine, Absent> {
        let functions = library::load(library)?;
        let handle = functions.connect(address).map_err(Absent::NoEngine)?;
        let refused = |call| move |why| Absent::Refused { call, why };
        let fields = functions.field_group(handle, &library::all_fields());
        let engine = match fields {
            Ok(fields) => Engine { functions, handle, fields },
            Err(why) => {
                functions.disconnect(handle);
                return Err(refused("dcgmFieldGroupCreate")(why));
            }
        };
        // Dropped, and so disconnected, if this fails.
        let watched = engine.functions.watch(engine.handle, engine.fields, EVERY_US);
        watched.map_err(refused("dcgmWatchFields"))?;
        Ok(engine)
    }

    /// The latest values of all GPUs, by DCGM's number.
    ///
    /// # Errors
    /// Why there are none, such as an engine that stopped.
    pub fn latest(&mut self) -> Result<Vec<Profile>, Absent> {
        let read = self.functions.latest(self.handle, self.fields);
        read.map_err(|why| Absent::Refused { call: "dcgmGetLatestValues", why })
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // The engine forgets fields and watches of a connection that ends.
        self.functions.disconnect(self.handle);
    }
}
