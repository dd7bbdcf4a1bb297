//! One key with a value, as a person writes it on a command line or in a job file.

use serde_json::Value;

use crate::cufilejson::fault::near;
use crate::cufilejson::{Key, ValueType, find, value};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingError {
    /// cuFile has no such key, and would ignore it silently.
    Unknown {
        /// The key that was probably meant, or else the most similar keys of its group, best first.
        /// Empty if it names no group.
        nearest: Vec<&'static str>,
    },
    /// The key does not allow the value.
    Value {
        key: &'static str,
        /// The fault, as a clause that can follow the key.
        message: String,
    },
}

/// The key of this path with this value: parsed as JSON, or as plain text for a text key.
///
/// # Errors
/// A path that is not in [`crate::cufilejson::KEYS`], and a value of another type or out of the
/// key's range.
///
/// ```
/// let (key, value) = gpuio_base::cufilejson::setting("logging.level", "TRACE").unwrap();
/// assert_eq!((key.path, value.to_string()), ("logging.level", "\"TRACE\"".to_owned()));
/// ```
pub fn setting(path: &str, text: &str) -> Result<(&'static Key, Value), SettingError> {
    let key = find(path).ok_or_else(|| SettingError::Unknown { nearest: near(path) })?;
    let plain = || Value::String(text.to_owned());
    let read: Value = serde_json::from_str(text).unwrap_or_else(|_| plain());
    let takes_text =
        matches!(key.value_type, ValueType::Text | ValueType::Word(_) | ValueType::Hex);
    let read = if takes_text && !read.is_string() { plain() } else { read };
    match value::wrong(key, &read) {
        None => Ok((key, read)),
        Some((_, message)) => Err(SettingError::Value { key: key.path, message }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(path: &str, text: &str) -> String {
        match setting(path, text) {
            Err(SettingError::Value { message, .. }) => message,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn values_are_read_as_their_keys_take_them() {
        let json = |path, text| setting(path, text).unwrap().1.to_string();
        assert_eq!(json("properties.allow_compat_mode", "false"), "false");
        assert_eq!(json("execution.max_io_threads", "8"), "8");
        assert_eq!(json("logging.dir", "/tmp/a"), "\"/tmp/a\"");
        assert_eq!(json("logging.dir", "7"), "\"7\"");
        assert_eq!(json("logging.level", "\"INFO\""), "\"INFO\"");
        assert_eq!(json("denylist.mounts", "[\"/a\"]"), "[\"/a\"]");
    }

    #[test]
    fn what_cufile_would_pass_over_is_refused() {
        assert!(wrong("properties.allow_compat_mode", "1").contains("true or false"));
        assert!(wrong("execution.max_io_threads", "500").contains("from 0 to 128"));
        assert!(wrong("properties.poll_mode_max_size_kb", "6").contains("4 KiB grid"));
        let unknown = |path| match setting(path, "1") {
            Err(SettingError::Unknown { nearest }) => nearest,
            other => panic!("{other:?}"),
        };
        let near = ["properties.allow_compat_mode"];
        assert_eq!(unknown("properties.alow_compat_mode"), near);
        assert_eq!(unknown("allow_compat_mode"), near);
        assert_eq!(unknown("properties.allow_compat")[0], near[0], "it begins so");
        let group = unknown("properties.nonsense");
        assert_eq!(group.len(), 5);
        assert!(group.iter().all(|key| key.starts_with("properties.")), "{group:?}");
        assert_eq!(unknown("zebra.stripes"), [""; 0]);
        assert_eq!(unknown(&format!("properties.{}", "x".repeat(1 << 20))), [""; 0]);
    }
}
