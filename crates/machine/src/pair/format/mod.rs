//! A pairing as a document and as job files.

mod expected;
mod gdsio;
mod job;
mod regroup;
mod text;

pub(crate) use crate::topo::format::short;
pub(crate) use crate::topo::rate_text as rate;
pub(crate) use expected::{iops, throughput};
pub use gdsio::gdsio;
pub use job::job_file;
pub(crate) use job::{can_be_written, value};
pub use text::document;
pub(crate) use text::{distance, list, store};

/// `GPU0–GPU3, GPU6`: names with numbers that follow each other are drawn together.
pub(crate) fn together(names: &[String]) -> String {
    let number = |name: &String| name.strip_prefix("GPU").and_then(|n| n.parse::<u64>().ok());
    let mut runs: Vec<(&String, &String)> = Vec::new();
    for name in names {
        match runs.last_mut() {
            Some((_, last)) if number(last).zip(number(name)).is_some_and(|(a, b)| a + 1 == b) => {
                *last = name;
            }
            _ => runs.push((name, name)),
        }
    }
    let words = runs.into_iter().map(|(first, last)| match number(first).zip(number(last)) {
        Some((a, b)) if a + 1 < b => format!("{first}–{}", &last["GPU".len()..]),
        Some((a, b)) if a < b => format!("{first}, {last}"),
        _ => first.clone(),
    });
    words.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_are_drawn_together() {
        let names = |numbers: &[u32]| -> Vec<String> {
            numbers.iter().map(|number| format!("GPU{number}")).collect()
        };
        assert_eq!(together(&names(&[0, 1, 2, 3])), "GPU0–3");
        assert_eq!(together(&names(&[0, 1, 6, 8, 9, 10])), "GPU0, GPU1, GPU6, GPU8–10");
        assert_eq!(together(&["a".to_owned(), "b".to_owned()]), "a, b");
        assert_eq!(together(&[]), "");
    }

    #[test]
    fn rates_are_rounded() {
        assert_eq!((rate(15_753_846_153).as_str(), rate(u64::MAX).len() > 4), ("15.8 GB/s", true));
    }
}
