//! Settings of cuFile that a text names with a value, against the table of its keys.
//!
//! Guides print `group:key VALUE` as it stands in the file. gdscheck prints `group.key : value`
//! in a form of its own: 0 and 1 for a switch, and blanks between the items of a list.

use std::borrow::Cow;

use gpuio_base::cufilejson::{KEYS, Key, SettingError, ValueType, setting};

use super::{Known, say};
use crate::post::{About, Post, Statement};

pub(super) fn hold(post: &Post, _: &[Known<'_>]) -> Vec<Statement> {
    let mut all = Vec::new();
    for line in &post.lines {
        let Some((key, value)) = named(line.text.trim()) else { continue };
        let Err(SettingError::Value { message, .. }) = setting(key.path, &value) else { continue };
        let near =
            nearest(&value).map(|near| format!(" {near} is probably meant.")).unwrap_or_default();
        let text = format!("{} with {value}: {message}.{near}", key.path);
        all.push(say(post, About::Contradiction, &[line.number], text));
    }
    all
}

/// A key at the beginning of a line, and the numbers behind it as the file would have them.
fn named(text: &str) -> Option<(&'static Key, Cow<'_, str>)> {
    let end = text.find([' ', '\t'])?;
    let (word, rest) = text.split_at(end);
    let path = word.trim_end_matches(':').replace(':', ".");
    let key = KEYS.iter().find(|key| key.path == path)?;
    let values = rest.trim_start_matches([' ', ':', '|', '\t']);
    let colon = word.ends_with(':') || rest.trim_start().starts_with(':');
    let by_gdscheck = colon && word.starts_with(key.path);
    let first = values.split_whitespace().next()?;
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(first) {
        return None;
    }
    Some((key, if by_gdscheck { of_gdscheck(key, values, first) } else { first.into() }))
}

/// The JSON of a value that gdscheck printed.
fn of_gdscheck<'t>(key: &Key, values: &str, first: &'t str) -> Cow<'t, str> {
    match (key.value_type, first) {
        (ValueType::Switch, "0") => "false".into(),
        (ValueType::Switch, "1") => "true".into(),
        (ValueType::Sizes | ValueType::Counts, _) => {
            let items: Vec<&str> = values.split_whitespace().collect();
            format!("[{}]", items.join(",")).into()
        }
        _ => first.into(),
    }
}

/// The power of two that differs in one digit.
fn nearest(value: &str) -> Option<u64> {
    let powers = (10..40).map(|power| 1_u64 << power);
    powers.into_iter().find(|power| {
        let other = power.to_string();
        let differ = other.chars().zip(value.chars()).filter(|(a, b)| a != b).count();
        other.len() == value.len() && differ == 1
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_off_the_grid_is_a_misprint() {
        let text = "properties:max_device_pinned_mem_size_kb 33554422 Limit on memory\n\
                    properties:max_direct_io_size_kb 16384 Maximum\nlogging:dir CWD Location\n";
        let all = hold(&crate::post::read("guide", text), &[]);
        assert_eq!(all.len(), 1, "{all:?}");
        assert!(all[0].words.contains("33554432 is probably meant"), "{all:?}");
        assert_eq!(all[0].lines, [1]);
    }

    #[test]
    fn gdscheck_s_own_form_is_no_fault_and_its_wrong_values_are() {
        for text in [
            include_str!("../../../../capture/tests/fixtures/p400-0.9.gdscheck"),
            include_str!("../../../../capture/tests/fixtures/h100-1.13.gdscheck"),
            include_str!("../../../../capture/tests/fixtures/rtx-5090-1.16.gdscheck"),
        ] {
            let all = hold(&crate::post::read("gdscheck", text), &[]);
            assert!(all.is_empty(), "{all:?}");
        }
        for (line, fault) in [
            ("properties.posix_pool_slab_size_kb : 4 1022 16384", "1022 KiB is off"),
            ("properties.posix_pool_slab_count : 128 0", "0 is no number from 1"),
            ("properties.rdma_dynamic_routing : 2", "2 is no switch"),
            ("profile.nvtx 0", "0 is no switch"),
            ("fs.lustre.posix_gds_min_kb: 3", "3 KiB is off"),
        ] {
            let all = hold(&crate::post::read("text", line), &[]);
            assert!(all.len() == 1 && all[0].words.contains(fault), "{line}: {all:?}");
        }
    }
}
