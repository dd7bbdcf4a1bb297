//! Why the files of a run are not as it needs them.

use gpuio_dataset::manifest::ManifestError;
use gpuio_dataset::{MakeError, Refusal, clean as remove, refusal};

/// Why the data set is not as the plan needs it.
#[derive(Debug, thiserror::Error)]
pub enum DataSetError {
    /// Targets that may not be used as planned. Nothing was written.
    #[error("{}", refusal::lines(.0))]
    Refused(Vec<Refusal>),
    /// Making files failed; what was half made is gone.
    #[error(transparent)]
    Make(#[from] MakeError),
    /// Processes can't use a file together.
    #[error("{0}")]
    Together(String),
    /// The list of our files could not be kept.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// The same after the jobs ran.
    #[error(
        "{0}. The figures hold. Only the list of gpuio's files lacks what the files of the last \
         jobs hold now: the next run there writes them again"
    )]
    NotNoted(ManifestError),
    /// Files of ours could not be removed.
    #[error("{}", lines(.0))]
    Clean(Vec<remove::CleanError>),
}

fn lines<T: ToString>(all: &[T]) -> String {
    all.iter().map(T::to_string).collect::<Vec<_>>().join("\n")
}
