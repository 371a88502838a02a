//! What the name of a member says: the key of its sample, and its suffix.

/// The key and the suffix in lower case: what comes before and behind the first dot after the last slash. `None` for a
/// member of no sample: without a dot, or with metadata.
pub(super) fn key_and_suffix(name: &[u8]) -> Option<(&[u8], String)> {
    let folder = memchr::memchr(b'/', name).map_or(name, |slash| &name[..slash]);
    if folder.len() >= 4 && folder.starts_with(b"__") && folder.ends_with(b"__") {
        return None;
    }
    let base = memchr::memrchr(b'/', name).map_or(0, |slash| slash + 1);
    let dot = base + memchr::memchr(b'.', &name[base..])?;
    let key = &name[..dot];
    // webdataset takes the folder's name for the key of a file whose own begins with the dot.
    if dot == base {
        let folder = key.strip_suffix(b"/")?;
        let start = memchr::memrchr(b'/', folder).map_or(0, |slash| slash + 1);
        if memchr::memchr(b'.', &folder[start..]).is_some() {
            return None;
        }
    }
    Some((key, String::from_utf8_lossy(&name[dot + 1..]).to_lowercase()))
}

/// The key as text. A byte that is not UTF-8 is written `\xfc`: keys that differ stay different.
pub(super) fn key_text(key: &[u8]) -> String {
    let mut text = String::with_capacity(key.len());
    for chunk in key.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_cut_at_the_first_dot_behind_the_last_slash() {
        for (name, expected) in [
            ("a.txt", Some(("a", "txt"))),
            ("f/a.Seg.PNG", Some(("f/a", "seg.png"))),
            ("c.d/e.txt", Some(("c.d/e", "txt"))),
            ("./a.txt", Some(("./a", "txt"))),
            ("a.", Some(("a", ""))),
            ("f/.hidden", Some(("f/", "hidden"))),
            ("f.d/g/.x.y", Some(("f.d/g/", "x.y"))),
            ("a//.x", Some(("a//", "x"))),
            ("f.d/.hidden", None),
            (".hidden", None),
            ("f/none", None),
            ("a.b/none", None),
            ("", None),
            ("__meta__/info.json", None),
            ("__a.txt__", None),
            ("f/__a__.txt", Some(("f/__a__", "txt"))),
            ("__a__b/c.txt", Some(("__a__b/c", "txt"))),
        ] {
            let found = key_and_suffix(name.as_bytes());
            let found = found.as_ref().map(|(key, suffix)| (*key, suffix.as_str()));
            assert_eq!(found, expected.map(|(key, suffix)| (key.as_bytes(), suffix)), "{name}");
        }
    }

    #[test]
    fn keys_that_are_not_utf8_stay_different() {
        assert_eq!(key_text("f/für".as_bytes()), "f/für");
        assert_eq!(key_text(b"f\xfcr"), "f\\xfcr");
        assert_eq!(key_text(b"f\xe4\xff"), "f\\xe4\\xff");
    }
}
