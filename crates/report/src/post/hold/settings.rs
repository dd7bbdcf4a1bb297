//! Settings of cuFile that a text names with a value, against the table of its keys.
//!
//! Guides print `group:key VALUE`, gdscheck `group.key : value`.

use gpuio_base::cufilejson::{KEYS, Key, SettingError, setting};

use super::{Known, say};
use crate::post::{About, Post, Statement};

pub(super) fn hold(post: &Post, _: &[Known<'_>]) -> Vec<Statement> {
    let mut all = Vec::new();
    for line in &post.lines {
        let Some((key, value)) = named(line.text.trim()) else { continue };
        let Err(SettingError::Value { message, .. }) = setting(key.path, value) else { continue };
        let near =
            nearest(value).map(|near| format!(" {near} is probably meant.")).unwrap_or_default();
        let text = format!("{} with {value}: {message}.{near}", key.path);
        all.push(say(post, About::Contradiction, &[line.number], text));
    }
    all
}

/// A key at the beginning of a line, and the number behind it.
fn named(text: &str) -> Option<(&'static Key, &str)> {
    let word = text.split_whitespace().next()?;
    let path = word.replace(':', ".");
    let key = KEYS.iter().find(|key| key.path == path)?;
    let value = text[word.len()..].trim_start_matches([' ', ':', '|', '\t']);
    let value = value.split_whitespace().next()?;
    let number = !value.is_empty() && value.chars().all(|c| c.is_ascii_digit());
    number.then_some((key, value))
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
}
