//! Where a process has used up its maps, copies on disk are read by position.

use std::cell::Cell;

use super::*;

thread_local! {
    static HAS_NO_MAPS: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is one that has used them up.
pub(in crate::held) fn has_no_maps() -> bool {
    HAS_NO_MAPS.get()
}

fn without_maps<T>(work: impl FnOnce() -> T) -> T {
    HAS_NO_MAPS.set(true);
    let done = work();
    HAS_NO_MAPS.set(false);
    done
}

#[test]
fn what_is_put_without_maps_is_on_disk_and_found_with_and_without_them() {
    const SIZE: u64 = 20 * BLOCK + 777;
    let (cache, content) = (tempfile::tempdir().unwrap(), content(SIZE));
    let identity = identity("x", SIZE);
    let open = || Held::new(identity.clone(), &limits(cache.path(), Some(u64::MAX)));
    let whole = 0..SIZE;
    without_maps(|| {
        // What is put in parts is in memory between whole sectors.
        exercise(
            &Held::new(self::identity("z", SIZE), &limits(cache.path(), Some(u64::MAX))),
            &content,
            1,
            300,
        );
        let held = open();
        assert!(read(&held, &content, whole.clone()) == content);
        assert_eq!(borrowed(&held, &whole), None);
    });
    assert_eq!(bytes_on_disk(cache.path(), &identity), SIZE);
    let held = open();
    assert!(held.missing(0, SIZE).is_empty());
    assert!(borrowed(&held, &whole).as_ref() == Some(&content));
    // One with maps adds what one without them finds.
    let (other, size) = (self::identity("y", SIZE), SIZE / 2 / BLOCK * BLOCK);
    let open = || Held::new(other.clone(), &limits(cache.path(), Some(u64::MAX)));
    let mapped = open();
    fetch(&mapped, &content, 0..size);
    without_maps(|| {
        let held = open();
        assert_eq!(held.missing(0, SIZE), one(size..SIZE));
        assert!(found(&held, &(5..size)) == Some(part(&content, &(5..size))));
        fetch(&mapped, &content, size..SIZE);
        assert!(held.missing(0, SIZE).is_empty());
    });
}

#[test]
fn what_is_damaged_or_removed_is_missing() {
    const SIZE: u64 = 4 * GRANULE;
    let (cache, content) = (tempfile::tempdir().unwrap(), content(SIZE));
    let identity = identity("x", SIZE);
    let open = || Held::new(identity.clone(), &limits(cache.path(), Some(u64::MAX)));
    without_maps(|| {
        fetch(&open(), &content, 0..SIZE);
        let folder = folder_of(cache.path(), &identity);
        let mut damaged = content.clone();
        damaged[5] ^= 1;
        std::fs::write(folder.join("data"), &damaged).unwrap();
        let held = open();
        assert_eq!(held.missing(0, SIZE), one(0..GRANULE));
        assert_eq!(found(&held, &(0..SIZE)), None);
        assert_eq!(read(&held, &content, 0..SIZE), content);
        std::fs::remove_dir_all(folder).unwrap();
        assert_eq!(held.missing(0, SIZE), one(0..SIZE));
        assert_eq!(read(&held, &content, 0..SIZE), content);
    });
}
