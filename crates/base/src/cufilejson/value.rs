//! Checks a value against the type of its key.

use std::net::Ipv4Addr;

use serde_json::Value;

use crate::cufilejson::{FaultKind, Key, ValueType};

/// The fault of a value, and what it should be.
pub(crate) type ValueFault = (FaultKind, String);

/// The fault of a key's value; `None` if there is none.
pub(crate) fn wrong(key: &Key, value: &Value) -> Option<ValueFault> {
    let kind = |what: &str| Some((FaultKind::Type, format!("{value} is no {what}")));
    match key.value_type {
        ValueType::Switch => (!value.is_boolean()).then(|| kind("switch: write true or false"))?,
        ValueType::Text => (!value.is_string()).then(|| kind("text"))?,
        ValueType::Number(least, most) => match value.as_i64() {
            None if value.as_u64().is_some() => range(value, least, most),
            None => kind("whole number"),
            Some(number) if (least..=most).contains(&number) => None,
            Some(_) => range(value, least, most),
        },
        ValueType::Kib(least, most) => match value.as_u64() {
            None if value.as_i64().is_some() => range(value, least, most),
            None => kind("whole number of KiB"),
            Some(size) if !(least..=most).contains(&size) => range(value, least, most),
            Some(size) if size % 4 != 0 => Some(off_grid(value)),
            Some(_) => None,
        },
        ValueType::Word(message) => match value.as_str() {
            None => kind("text"),
            Some(word) => (!message.contains(&word)).then(|| one_of(value, message)),
        },
        ValueType::Hex => match value.as_str().and_then(|text| text.strip_prefix("0x")) {
            Some(digits) if u32::from_str_radix(digits, 16).is_ok() => None,
            _ => kind("number of 32 bits as text, like \"0xffeeddcc\""),
        },
        ValueType::Mounts => match value {
            Value::Object(mounts) if mounts.keys().all(|path| path.starts_with('/')) => None,
            // NVIDIA's table of defaults prints the empty one as a list.
            Value::Array(none) if none.is_empty() => None,
            _ => kind("group of mount points, like {\"/mnt/a\": [\"10.0.0.1\"]}"),
        },
        value_type => match value.as_array() {
            None => kind("list"),
            Some(list) => in_list(value_type, list),
        },
    }
}

fn in_list(value_type: ValueType, list: &[Value]) -> Option<ValueFault> {
    let kind = |value: &Value, what: &str| (FaultKind::Type, format!("{value} is no {what}"));
    let wrong = |value: &Value| match value_type {
        ValueType::Texts => (!value.is_string()).then(|| kind(value, "text")),
        ValueType::Words(message) => match value.as_str() {
            Some(word) => (!message.contains(&word)).then(|| one_of(value, message)),
            None => Some(kind(value, "text")),
        },
        ValueType::Addresses => {
            // NVIDIA's own files have [""] for an empty list.
            let text = value.as_str();
            let good = text.is_some_and(|t| t.is_empty() || t.parse::<Ipv4Addr>().is_ok());
            (!good).then(|| kind(value, "IPv4 address"))
        }
        ValueType::Counts => {
            let good = value.as_u64().is_some_and(|count| count > 0);
            (!good).then(|| (FaultKind::Range, format!("{value} is no number from 1")))
        }
        ValueType::Sizes => match value.as_u64() {
            None => Some(kind(value, "whole number of KiB")),
            Some(size) if size == 0 || size % 4 != 0 => Some(off_grid(value)),
            Some(_) => None,
        },
        _ => None,
    };
    list.iter().find_map(wrong).or_else(|| order(value_type, list))
}

/// Sizes must ascend, and words must not be repeated.
fn order(value_type: ValueType, list: &[Value]) -> Option<ValueFault> {
    match value_type {
        ValueType::Sizes => {
            let sizes: Vec<u64> = list.iter().filter_map(Value::as_u64).collect();
            let message = "its sizes do not ascend".to_owned();
            (!sizes.is_sorted_by(|a, b| a < b)).then_some((FaultKind::Range, message))
        }
        ValueType::Words(_) => {
            let twice = list.iter().enumerate().find(|(index, v)| list[..*index].contains(v));
            twice.map(|(_, value)| (FaultKind::Range, format!("{value} stands there twice")))
        }
        _ => None,
    }
}

fn range<T: std::fmt::Display + PartialOrd + From<u32>>(
    value: &Value,
    least: T,
    most: T,
) -> Option<ValueFault> {
    let beyond = most > T::from(u32::MAX / 2);
    let message =
        if beyond { format!("from {least} up") } else { format!("from {least} to {most}") };
    Some((FaultKind::Range, format!("{value} is out of range: {message} is allowed")))
}

fn off_grid(value: &Value) -> ValueFault {
    (FaultKind::Alignment, format!("{value} KiB is off the 4 KiB grid"))
}

fn one_of(value: &Value, message: &[&str]) -> ValueFault {
    (FaultKind::Range, format!("{value} is none of {}", message.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cufilejson::find;

    fn of(path: &str, value: &str) -> Option<ValueFault> {
        wrong(find(path).unwrap(), &serde_json::from_str(value).unwrap())
    }

    #[test]
    fn types_ranges_and_the_grid() {
        let kind = |path, value| of(path, value).map(|(kind, _)| kind);
        let compat = "properties.allow_compat_mode";
        assert_eq!(kind(compat, "true"), None);
        assert_eq!(kind(compat, "\"true\""), Some(FaultKind::Type));
        assert_eq!(kind(compat, "1"), Some(FaultKind::Type));
        let stats = "profile.cufile_stats";
        assert_eq!((kind(stats, "3"), kind(stats, "4")), (None, Some(FaultKind::Range)));
        assert_eq!(kind(stats, "1.5"), Some(FaultKind::Type));
        assert_eq!(kind(stats, "18446744073709551615"), Some(FaultKind::Range));
        let direct = "properties.max_direct_io_size_kb";
        assert_eq!(kind(direct, "1024"), None);
        assert_eq!(kind(direct, "1026"), Some(FaultKind::Alignment));
        assert_eq!(kind(direct, "32768"), Some(FaultKind::Range));
        assert_eq!(kind(direct, "-4"), Some(FaultKind::Range));
        assert_eq!(kind("properties.rdma_dc_key", "\"0xffeeddcc\""), None);
        assert_eq!(kind("properties.rdma_dc_key", "\"ffeeddcc\""), Some(FaultKind::Type));
    }

    #[test]
    fn lists() {
        let kind = |path, value| of(path, value).map(|(kind, _)| kind);
        let order = "properties.rdma_dynamic_routing_order";
        assert_eq!(kind(order, r#"["P2P"]"#), None);
        assert_eq!(kind(order, r#"["P2P", "P2P"]"#), Some(FaultKind::Range));
        assert_eq!(kind(order, r#"["NVLINK"]"#), Some(FaultKind::Range));
        let slabs = "properties.posix_pool_slab_size_kb";
        assert_eq!(kind(slabs, "[1024, 4]"), Some(FaultKind::Range));
        assert_eq!(kind(slabs, "[6]"), Some(FaultKind::Alignment));
        assert_eq!(kind("properties.posix_pool_slab_count", "[0]"), Some(FaultKind::Range));
        let list = "properties.rdma_dev_addr_list";
        assert_eq!((kind(list, r#"[""]"#), kind(list, r#"["10.0.0.1"]"#)), (None, None));
        assert_eq!(kind(list, r#"["ib0"]"#), Some(FaultKind::Type));
        assert_eq!(kind(list, "\"10.0.0.1\""), Some(FaultKind::Type));
        assert_eq!(kind("fs.nfs.mount_table", r#"{"/a": ["10.0.0.1"]}"#), None);
        assert_eq!(kind("fs.nfs.mount_table", "[]"), None);
        assert_eq!(kind("fs.nfs.mount_table", r#"["10.0.0.1"]"#), Some(FaultKind::Type));
    }
}
