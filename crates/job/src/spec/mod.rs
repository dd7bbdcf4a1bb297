//! The request: job files in the INI dialect shared with fio and gdsio, gdsio's command line, and
//! the table of keys that both and gpuio's own flags use.
//!
//! This module parses what was requested and nothing else. It sets no default and reads no file, no
//! environment and no machine: functions take text and closures and return values. All of them may
//! be called from any thread, and none panics on any input.
//!
//! Values that a plan holds as they were requested have the types of `gpuio_record`.
//!
//! To add a key: a field of [`JobSpec`], a row in one of the tables of `keys`, and the code
//! that obeys it (`plan`). The row says how the value is read, which flags of which verbs set
//! it and their help, of which loads it is not, when it has no effect, how a plan prints it,
//! and two values with which the tests that walk the tables try it. A key of another tool that
//! sets nothing is a line of `keys/known.tsv`. The reference has the printed tables.

mod command_line;
mod dialect;
mod gdsio;
mod ini;
mod job;
mod keys;
mod origin;
mod taken;
mod value;
mod vocabulary;

pub use command_line::speak_fio;
pub use dialect::Dialect;
pub use gdsio::{
    GDSIO_KEYS, GdsioError, GdsioRequest, GdsioRun, is_flag as is_gdsio_flag, parse as parse_gdsio,
};
pub use gpuio_base::nearest::nearest;
pub use ini::{
    At, JobFileError, JobFileFault, MACHINE_WORDS, MAX_ERRORS, Sources, has_key_of,
    parse as parse_job_file, parse_at as parse_job_file_at, parse_with as parse_job_file_with,
};
pub(crate) use job::OWN_NAME;
pub use job::{
    Ceilings, ComputationRequest, CufileSetting, FeedRequest, GpuDriver, GpuRequest, GpuWhich,
    IoSize, JobSpec, OfWrites, RankPlace, ReadShift, ReplayRequest, Rw, Spec, SteadyCriterion,
    ViaPeer, WriteRefusal,
};
pub(crate) use keys::take_writes;
pub use keys::{
    CUFILE_PREFIX, Flag, Key, KeyContext, KeyError, LoadKind, Raises, Setter, Status, apply, find,
    keys, markdown_table, not_of, plan_lines, searched,
};
pub use origin::{Origin, Requested};
pub use taken::TakenKeys;
pub use value::one_name;
pub(crate) use value::{FIO_NAMES, formatted_name, named_format};
pub use vocabulary::Vocabulary;
