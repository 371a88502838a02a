//! How near two names are, for errors that say which one was meant.

/// The name that is nearest to one that is not there, where one is near.
pub fn nearest<'n>(given: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let near = names.into_iter().filter_map(|name| Some((difference(given, name)?, name)));
    near.min().map(|(_, name)| name)
}

/// How many letters of a name to change, add, leave out or exchange with the next, in any case; `None` for more than a third of
/// them. A name without its suffix, or with another one, is near as well.
#[must_use]
pub fn difference(a: &str, b: &str) -> Option<usize> {
    let (a, b) = (a.to_lowercase(), b.to_lowercase());
    let stem = |name: &str| name.split_once('.').map_or(name, |(stem, _)| stem).to_string();
    let size = a.chars().count().max(b.chars().count());
    let found = edits(&a, &b);
    if found * 3 <= size {
        return Some(found);
    }
    (stem(&a) == stem(&b) && !stem(&a).is_empty()).then_some(size)
}

fn edits(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let (mut before, mut row): (Vec<usize>, Vec<usize>) = (Vec::new(), (0..=b.len()).collect());
    for i in 0..a.len() {
        let mut next = vec![i + 1];
        for j in 0..b.len() {
            let changed = row[j] + usize::from(a[i] != b[j]);
            let mut least = changed.min(row[j + 1] + 1).min(next[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                least = least.min(before[j - 1] + 1);
            }
            next.push(least);
        }
        before = std::mem::replace(&mut row, next);
    }
    row[b.len()]
}
