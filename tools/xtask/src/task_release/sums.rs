//! Check sums of several machines' packages as one list, in the form of sha256sum(1).

use std::collections::BTreeMap;

use anyhow::{Context as _, ensure};

pub(super) fn names(list: &str) -> anyhow::Result<Vec<&str>> {
    list.lines().map(|line| Ok(parts(line)?.1)).collect()
}

/// One list, by name. A file that all machines have alike is there once.
pub(super) fn merged(lists: &[String]) -> anyhow::Result<String> {
    let mut all = BTreeMap::new();
    for line in lists.iter().flat_map(|list| list.lines()) {
        let (sum, name) = parts(line)?;
        let before = all.insert(name, sum);
        ensure!(
            before.is_none_or(|before| before == sum),
            "two files have the name {name}, and differ"
        );
    }
    Ok(all.iter().map(|(name, sum)| format!("{sum}  {name}\n")).collect())
}

/// Sum and name of a line: 64 digits, two blanks, a name without a folder.
fn parts(line: &str) -> anyhow::Result<(&str, &str)> {
    let found = line.split_once("  ").filter(|(sum, name)| {
        let hexadecimal = sum.len() == 64 && sum.bytes().all(|b| b.is_ascii_hexdigit());
        hexadecimal && !name.is_empty() && !name.contains('/')
    });
    found.with_context(|| format!("SHA256SUMS has the line {line:?}, which is no check sum"))
}
