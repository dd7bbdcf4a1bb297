//! `cufile.KEY`: keys of cuFile's own configuration, by the table of `cufilejson`.

use gpuio_base::cufilejson::SettingError;

use super::KeyError;
use crate::spec::Origin;
use crate::spec::job::{CufileSetting, JobSpec};

/// Prefix of a cuFile key: `cufile.properties.allow_compat_mode`.
pub const PREFIX: &str = "cufile.";

/// Sets the key of this path in cuFile's configuration.
pub(super) fn set(
    job: &mut JobSpec,
    path: &str,
    value: &str,
    origin: Origin,
) -> Result<(), KeyError> {
    match gpuio_base::cufilejson::setting(path, value) {
        Ok(_) if value.is_empty() => no_value(path),
        Ok((key, value)) => {
            job.cufile.insert(key.path, CufileSetting { json: value.to_string(), origin });
            Ok(())
        }
        Err(SettingError::Value { .. }) if value.is_empty() => no_value(path),
        Err(SettingError::Value { key, message }) => {
            Err(KeyError::CufileValue { key, words: message })
        }
        Err(SettingError::Unknown { nearest }) => {
            Err(KeyError::CufileUnknown { key: crate::spec::value::shown(path), nearest })
        }
    }
}

fn no_value(path: &str) -> Result<(), KeyError> {
    let key = gpuio_base::cufilejson::find(path).map_or("", |key| key.path);
    let words = format!("it needs a value; write cufile.{key}=VALUE, or leave it out");
    Err(KeyError::CufileValue { key, words })
}
