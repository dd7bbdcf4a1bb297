//! Lists of hosts in few words.

/// Names that a list prints one by one.
const LISTED: usize = 8;

/// Which of `all` hosts something is about: `all 64 hosts`, up to eight names, or so many hosts;
/// `largest` says that it is the largest of several groups, whose names the others leave.
pub fn hosts_of(names: &[&str], all: usize, largest: bool) -> String {
    match names.len() {
        count if count == all && all > 2 => format!("all {count} hosts"),
        count if largest && count > 3 => format!("{count} hosts"),
        count if count > LISTED => format!("{count} hosts ({})", host_list(names)),
        _ => host_list(names),
    }
}

/// Names with those whose numbers follow each other drawn together: `node001–node062, node064`;
/// after eight, how many more there are.
pub fn host_list(names: &[&str]) -> String {
    let mut runs: Vec<Vec<&str>> = Vec::new();
    for name in names {
        match runs.last_mut() {
            Some(run) if run.last().is_some_and(|last| follows(last, name)) => run.push(name),
            _ => runs.push(vec![name]),
        }
    }
    let mut shown = Vec::new();
    let mut left = names.len();
    for run in &runs {
        if shown.len() >= LISTED {
            break;
        }
        left -= run.len();
        match run.as_slice() {
            [first, _, .., last] => shown.push(format!("{first}–{last}")),
            few => shown.extend(few.iter().map(|name| (*name).to_owned())),
        }
    }
    let more = if left > 0 { format!(" and {left} more") } else { String::new() };
    shown.join(", ") + &more
}

/// Whether `next` is `last` with the next number at its end, written with as many digits or more.
fn follows(last: &str, next: &str) -> bool {
    let split = |name: &str| {
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        let digits = name[stem..].to_owned();
        let number = digits.parse::<u64>().ok();
        (name[..stem].to_owned(), digits.len(), number)
    };
    let ((a, long, first), (b, longer, second)) = (split(last), split(next));
    let next = first.and_then(|number| number.checked_add(1));
    a == b && longer >= long && next.is_some() && next == second
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_follow_each_other_are_drawn_together() {
        let names: Vec<String> = (1..=62).map(|number| format!("node{number:03}")).collect();
        let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
        names.push("node064");
        assert_eq!(host_list(&names), "node001–node062, node064");
        assert_eq!(host_list(&["a", "b"]), "a, b");
        assert_eq!(host_list(&["n9", "n10", "n11"]), "n9–n11");
        assert_eq!(host_list(&["n1", "n2"]), "n1, n2");
        assert_eq!(host_list(&[]), "");
    }

    #[test]
    fn a_long_list_ends_with_the_number_of_the_rest() {
        let names: Vec<String> = (0..20).map(|number| format!("n{}", number * 2)).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert!(host_list(&names).ends_with("n14 and 12 more"), "{}", host_list(&names));
        assert_eq!(hosts_of(&names, 20, false), "all 20 hosts");
        assert_eq!(hosts_of(&names, 21, true), "20 hosts");
        assert!(hosts_of(&names, 21, false).starts_with("20 hosts (n0, n2"));
        assert_eq!(hosts_of(&["n7"], 64, true), "n7");
        assert_eq!(hosts_of(&["a", "b"], 2, true), "a, b");
    }
}
