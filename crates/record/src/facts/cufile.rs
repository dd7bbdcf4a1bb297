//! How NVIDIA's cuFile library is configured for this process.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Fact;

/// cuFile's configuration, as it lies there: `gpuio_base::cufilejson` knows what its keys mean.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CufileFacts {
    /// The file that the library reads: the one that `CUFILE_ENV_PATH_JSON` names, else
    /// `/etc/cufile.json`.
    pub path: String,
    /// Its text; `null` where there is no such file and the library's own defaults hold.
    pub text: Fact<Option<String>>,
    /// Whether the directory of `logging.dir` can be written by this process; known only where the
    /// file names one.
    pub log_directory_writable: Fact<bool>,
    /// Variables of this process that begin with `CUFILE_`, which go before the file; unknown of
    /// another machine.
    pub environment: Fact<BTreeMap<String, String>>,
    /// The library's file; `null` where there is none. Unknown of another machine.
    pub library: Fact<Option<String>>,
}
