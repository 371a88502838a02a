//! A file that was copied or renamed together with what is kept beside it, which still says its name of before.

/// What the files called `names` are called now, where what names them is beside the file `name`, which is one data set with
/// `other`: the only one is that file, and two are that pair. `None` where they are other files.
pub(super) fn now<'n>(names: &[&'n str], name: &'n str, other: Option<&'n str>) -> Option<Vec<&'n str>> {
    match (names, other) {
        (names, _) if names.is_empty() || names.contains(&name) => Some(names.to_vec()),
        ([_], _) => Some(vec![name]),
        ([first, second], Some(other)) if ends(first, second) == ends(name, other) => Some(vec![name, other]),
        ([first, second], Some(other)) if ends(first, second) == ends(other, name) => Some(vec![other, name]),
        _ => None,
    }
}

// What is left of two names where they begin to differ.
fn ends<'n>(a: &'n str, b: &'n str) -> (&'n str, &'n str) {
    let differ = a.char_indices().zip(b.chars()).find(|((_, of_a), of_b)| of_a != of_b);
    let at = differ.map_or(a.len().min(b.len()), |((at, _), _)| at);
    (&a[at..], &b[at..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_only_file_is_the_one_it_is_beside_and_two_are_its_pair() {
        assert_eq!(now(&["a.bin"], "a.bin", None).unwrap(), ["a.bin"]);
        assert_eq!(now(&["a.bin"], "b.bin", None).unwrap(), ["b.bin"]);
        assert_eq!(now(&["m.bin", "m.idx"], "nn.idx", Some("nn.bin")).unwrap(), ["nn.bin", "nn.idx"]);
        assert_eq!(now(&["m.idx", "m.bin"], "nn.idx", Some("nn.bin")).unwrap(), ["nn.idx", "nn.bin"]);
        assert_eq!(now(&["m.idx", "m.bin"], "m.idx", Some("m.bin")).unwrap(), ["m.idx", "m.bin"]);
        assert_eq!(now(&["a.bin", "b.bin"], "c.bin", None), None);
        assert_eq!(now(&["a.bin", "b.bin"], "n.idx", Some("n.bin")), None);
        assert_eq!(now(&["é.bin", "è.idx"], "n.idx", Some("n.bin")), None);
        assert!(now(&[], "c.bin", None).unwrap().is_empty());
    }
}
