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

/// The values of a column, for rows whose words do not stand below their heads any more.
pub(crate) struct Holds {
    /// Whether these words can be a value, joined by single blanks.
    pub(crate) takes: fn(&str) -> bool,
    /// The most words of a value.
    pub(crate) most_words: usize,
    /// Whether the column may be empty.
    pub(crate) may_be_empty: bool,
}

/// More ways to part a row than are looked at.
const MOST_WAYS: usize = 64;
/// More words than a row of a table has.
const MOST_WORDS: usize = 40;

/// Parts the words of a row between columns by their values alone. A column has a value where all
/// possible ways give it the same one; `None` where no way is possible, or there are too many.
pub(crate) fn parted(columns: &[Holds], words: &[&str]) -> Option<Vec<Option<String>>> {
    if words.len() > MOST_WORDS {
        return None;
    }
    let mut ways: Vec<Vec<String>> = Vec::new();
    let mut steps = MOST_WAYS * 16;
    ways_of(columns, words, &mut Vec::new(), &mut ways, &mut steps);
    if ways.is_empty() || ways.len() >= MOST_WAYS || steps == 0 {
        return None;
    }
    let agreed = (0..columns.len()).map(|at| {
        let first = &ways[0][at];
        let same = ways.iter().all(|way| &way[at] == first);
        (same && !first.is_empty()).then(|| first.clone())
    });
    Some(agreed.collect())
}

fn ways_of(
    columns: &[Holds],
    words: &[&str],
    taken: &mut Vec<String>,
    ways: &mut Vec<Vec<String>>,
    steps: &mut usize,
) {
    *steps = steps.saturating_sub(1);
    if ways.len() >= MOST_WAYS || *steps == 0 {
        return;
    }
    let Some((column, rest)) = columns.split_first() else {
        if words.is_empty() {
            ways.push(taken.clone());
        }
        return;
    };
    for count in usize::from(!column.may_be_empty)..=column.most_words.min(words.len()) {
        let value = words[..count].join(" ");
        if count > 0 && !(column.takes)(&value) {
            continue;
        }
        taken.push(value);
        ways_of(rest, &words[count..], taken, ways, steps);
        taken.pop();
    }
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

    #[test]
    fn words_are_parted_where_only_one_way_is_possible() {
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let columns = [
            Holds { takes: |text| text.starts_with("sd"), most_words: 1, may_be_empty: false },
            Holds { takes: |_| true, most_words: 3, may_be_empty: true },
            Holds { takes: digits, most_words: 1, may_be_empty: false },
            Holds { takes: |text| text.starts_with('/'), most_words: 1, may_be_empty: true },
        ];
        let row = |line: &str| parted(&columns, &line.split(' ').collect::<Vec<_>>());
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            row("sda A disk 7 /data"),
            Some(vec![some("sda"), some("A disk"), some("7"), some("/data")])
        );
        assert_eq!(row("sda 7"), Some(vec![some("sda"), None, some("7"), None]));
        assert_eq!(row("sda A disk"), None);
    }
}
