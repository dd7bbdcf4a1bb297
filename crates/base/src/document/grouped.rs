//! Items that share a reason are printed with it once.

/// Values of equal keys together, in the order in which the keys come.
///
/// ```
/// let of = gpuio_base::document::grouped([("no GPU", 1), ("no NFS", 2), ("no GPU", 3)]);
/// assert_eq!(of, [("no GPU", vec![1, 3]), ("no NFS", vec![2])]);
/// ```
pub fn grouped<K: PartialEq, V>(all: impl IntoIterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
    let mut groups: Vec<(K, Vec<V>)> = Vec::new();
    for (key, value) in all {
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) => values.push(value),
            None => groups.push((key, vec![value])),
        }
    }
    groups
}

/// Each value once, in the order in which they come.
pub fn unique<T: PartialEq>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut once: Vec<T> = Vec::new();
    for value in all {
        if !once.contains(&value) {
            once.push(value);
        }
    }
    once
}

/// The first texts, and how many more there are.
pub fn first(all: impl IntoIterator<Item = String>, most: usize) -> Vec<String> {
    let mut all: Vec<String> = all.into_iter().collect();
    let more = all.len().saturating_sub(most);
    all.truncate(most);
    all.extend((more > 0).then(|| format!("and {more} more")));
    all
}
