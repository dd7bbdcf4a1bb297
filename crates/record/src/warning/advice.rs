//! Advice in warnings. It names keys of the load, which the commands of gpuio spell differently, or
//! refuse: `bench` takes all of them, a training feed has no `--size`.

/// Spells a key for the command at hand, with a value where there is one: `size`, `runtime 30s`,
/// `verify=pass`. Nothing where the command or its load refuses it.
pub type Spell<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The spelling of `gpuio bench`.
pub(super) fn of_bench(key: &str) -> Option<String> {
    let (name, value) = key.split_at(key.find([' ', '=']).unwrap_or(key.len()));
    Some(format!("--{}{value}", name.replace('_', "-")))
}

/// A sentence of `lead` and those of these ways whose keys the command takes; nothing where it
/// takes none. Keys stand in `<>`: of several, separated by `|`, the first that is taken.
pub(super) fn advice(spell: Spell<'_>, lead: &str, ways: &[&str]) -> String {
    let taken: Vec<String> = ways.iter().filter_map(|way| spelled(way, spell)).collect();
    let ways = match taken.as_slice() {
        [] => return String::new(),
        [one] => one.clone(),
        [others @ .., last] => format!("{}, or {last}", others.join(", ")),
    };
    let text = format!("{lead}{ways}");
    let (first, rest) = text.split_at(text.chars().next().map_or(0, char::len_utf8));
    format!(" {}{rest}.", first.to_uppercase())
}

fn spelled(way: &str, spell: Spell<'_>) -> Option<String> {
    let (mut text, mut rest) = (String::new(), way);
    while let Some((before, (keys, after))) =
        rest.split_once('<').and_then(|(before, key)| Some((before, key.split_once('>')?)))
    {
        text.push_str(before);
        text.push_str(&keys.split('|').find_map(spell)?);
        rest = after;
    }
    Some(text + rest)
}
