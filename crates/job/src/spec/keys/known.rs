//! Keys that are known and set nothing: the lines of `known.tsv`.

use std::sync::LazyLock;

use super::{Dialect, Key, Status};

const TEXT: &str = include_str!("known.tsv");

/// The keys of all lines. Read once, so that they live as long as the program.
pub(super) static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| lines().flat_map(row).collect());

fn lines() -> impl Iterator<Item = &'static str> {
    TEXT.lines().filter(|line| !line.starts_with('#'))
}

fn row(line: &'static str) -> impl Iterator<Item = Key> {
    let mut cells = line.split('\t');
    let mut next = || cells.next().unwrap_or_default();
    let (keys, of, why, instead, writes, values) = (next(), next(), next(), next(), next(), next());
    let dialect = if of == Dialect::Gdsio.name() { Dialect::Gdsio } else { Dialect::Fio };
    let status = match instead {
        "" => Status::NoEffect { why },
        _ => Status::Known { why, instead, for_writes: writes == "writes", harmless: values },
    };
    keys.split(' ').map(move |key| {
        let mut spellings = key.split(',');
        let name = spellings.next().unwrap_or_default();
        Key::new(name, dialect, status).or(spellings.collect::<Vec<_>>().leak())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_its_cells() {
        for line in lines() {
            let cells: Vec<&str> = line.split('\t').collect();
            assert!(
                matches!(cells.len(), 3..=6) && cells.len() != 4 || cells[3].len() > 4,
                "{line}"
            );
            assert!(["fio", "gdsio"].contains(&cells[1]) && cells[2].len() > 10, "{line}");
            assert!(["", "writes"].contains(cells.get(4).unwrap_or(&"")), "{line}");
            let spelled =
                |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_, ".contains(c);
            assert!(!cells[0].is_empty() && cells[0].chars().all(spelled), "{line}");
            assert_eq!(line.trim_end(), line);
        }
        assert!(KEYS.len() > lines().count());
    }
}
