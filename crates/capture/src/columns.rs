//! Tables with a head whose values stand below its words, some of them empty.

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) start: usize,
    end: usize,
}

/// More columns than any table has.
const MOST_COLUMNS: usize = 200;

/// The columns of a head's words.
pub(crate) fn columns(head: &str) -> Vec<Column> {
    words(head)
        .take(MOST_COLUMNS)
        .map(|(start, word)| Column { name: word.to_owned(), start, end: start + length(word) })
        .collect()
}

/// A row's values, one for each column, by position: a value begins with its head, or ends with it,
/// or stands between the heads beside it. Words of one value are joined by a blank.
pub(crate) fn values(columns: &[Column], row: &str) -> Vec<String> {
    let mut values = vec![String::new(); columns.len()];
    let mut last = 0;
    for (start, word) in words(row) {
        let end = start + length(word);
        let exact = |column: &Column| column.start == start || column.end == end;
        let at = columns.iter().position(exact).filter(|at| *at >= last).unwrap_or_else(|| {
            // The column whose head it stands under, or else the last one that began before it.
            let under = columns.iter().position(|one| one.start < end && start < one.end);
            let before = columns.iter().rposition(|one| one.start <= start);
            under.or(before).unwrap_or(0).max(last)
        });
        last = at;
        if let Some(value) = values.get_mut(at) {
            if !value.is_empty() {
                value.push(' ');
            }
            value.push_str(word);
        }
    }
    values
}

fn length(word: &str) -> usize {
    word.chars().count()
}

/// Words with their positions in characters.
pub(crate) fn words(line: &str) -> impl Iterator<Item = (usize, &str)> {
    // Bytes and characters before the next word that are counted already: no part is counted twice.
    let mut counted = (0, 0);
    line.split_whitespace().map(move |word| {
        let at = (word.as_ptr() as usize).saturating_sub(line.as_ptr() as usize);
        counted = (at, counted.1 + line.get(counted.0..at).map_or(0, length));
        (counted.1, word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_below_their_heads() {
        let head = columns("NAME   SIZE TYPE MODEL            MOUNTPOINT");
        let row = |line| values(&head, line);
        assert_eq!(
            row("sda    3.5T disk A drive of mine  /data"),
            ["sda", "3.5T", "disk", "A drive of mine", "/data"]
        );
        assert_eq!(row("sda1 223.6G part                  /"), ["sda1", "223.6G", "part", "", "/"]);
    }
}
