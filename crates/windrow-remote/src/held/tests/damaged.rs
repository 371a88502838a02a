//! What was spoilt on disk is missing, and never served.

use std::fs::File;
use std::os::unix::fs::FileExt;

use super::*;

#[test]
fn none_of_500_damaged_granules_is_served() {
    const SIZE: u64 = 600 * GRANULE + 100;
    let (cache, content) = (tempfile::tempdir().unwrap(), content(SIZE));
    let identity = identity("x", SIZE);
    let open = || Held::new(identity.clone(), &limits(cache.path(), Some(u64::MAX)));
    let held = open();
    for start in (0..SIZE).step_by(16 * MIB as usize) {
        fetch(&held, &content, start..(start + 16 * MIB).min(SIZE));
    }
    drop(held);
    let folder = folder_of(cache.path(), &identity);
    let write = |name: &str, at: u64, bytes: &[u8]| {
        File::options().write(true).open(folder.join(name)).unwrap().write_all_at(bytes, at).unwrap();
    };
    let mut random = fastrand::Rng::with_seed(3);
    let mut granules: Vec<u64> = (0..=600).collect();
    random.shuffle(&mut granules);
    granules.truncate(500);
    for (i, granule) in granules.iter().enumerate() {
        let start = granule * GRANULE;
        let at = random.u64(start..(start + GRANULE).min(SIZE));
        let byte = [content[at as usize] ^ (1 << random.u8(0..8))];
        match i % 5 {
            0 => write("data", at, &byte),
            // Which sectors are there, and what their checksum is.
            1 => write("sums", granule * 16 + random.u64(0..16), &random.u64(..).to_le_bytes()[..1]),
            2 => {
                write("data", at, &byte);
                write("sums", granule * 16 + 8, &random.u64(..).to_le_bytes());
            }
            // As after a crash: zeros.
            3 => write("data", start, &vec![0; GRANULE.min(SIZE - start) as usize]),
            _ => write("sums", granule * 16, &[0; 16]),
        }
    }
    let held = open();
    let mut right = 0;
    for granule in 0..=600 {
        let range = granule * GRANULE..(granule * GRANULE + GRANULE).min(SIZE);
        if let Some(bytes) = borrowed(&held, &range) {
            assert_eq!(bytes, part(&content, &range), "granule {granule}");
            right += 1;
        }
        assert_eq!(found(&held, &range), borrowed(&held, &range));
    }
    // A byte of a sum may have been drawn as it was.
    assert!((101..=110).contains(&right), "{right}");
    let fetched = fetch(&held, &content, 0..SIZE);
    assert!(fetched > 480 * GRANULE, "{fetched}");
    assert_eq!(borrowed(&held, &(0..SIZE)).as_deref(), Some(&content[..]));
    drop(held);
    assert_eq!(bytes_on_disk(cache.path(), &identity), SIZE);
}

#[test]
fn a_sum_of_nothing_is_not_there_and_zeros_are() {
    const SIZE: u64 = 3 * BLOCK;
    let cache = tempfile::tempdir().unwrap();
    let held = Held::new(identity("x", SIZE), &limits(cache.path(), None));
    held.put(BLOCK, vec![0; BLOCK as usize]);
    // The file holds zeros everywhere.
    assert_eq!(held.missing(0, SIZE), [0..BLOCK, 2 * BLOCK..SIZE]);
    assert_eq!(borrowed(&held, &(BLOCK..2 * BLOCK)), Some(vec![0; BLOCK as usize]));
}

#[test]
fn what_a_copy_says_of_itself_is_made_again_where_it_is_damaged() {
    const SIZE: u64 = 40 * GRANULE;
    let (cache, content) = (tempfile::tempdir().unwrap(), content(SIZE));
    let identity = identity("x", SIZE);
    let open = || Held::new(identity.clone(), &limits(cache.path(), Some(u64::MAX)));
    let (about, sums) = ("about.json", "sums");
    type Damage = fn(&mut Vec<u8>);
    let damage: [(&str, Damage); 4] = [
        (about, |text| {
            *text = String::from_utf8(text.clone()).unwrap().replace("bucket/x", "bucket/y").into_bytes()
        }),
        (about, |text| text.truncate(7)),
        (about, |text| text[0] ^= 1),
        (sums, |sums| sums.truncate(40)),
    ];
    for (name, damage) in damage {
        fetch(&open(), &content, 0..SIZE);
        let path = folder_of(cache.path(), &identity).join(name);
        let mut bytes = std::fs::read(&path).unwrap();
        let before = bytes.clone();
        damage(&mut bytes);
        assert_ne!(bytes, before, "{name}");
        std::fs::write(&path, &bytes).unwrap();
        // What is read of it is right, and it is kept again.
        let held = open();
        fetch(&held, &content, 0..SIZE);
        assert_eq!(found(&held, &(0..SIZE)).as_deref(), Some(&content[..]), "{name}");
        drop(held);
        assert_eq!(fetch(&open(), &content, 0..SIZE), 0, "{name}");
    }
}
