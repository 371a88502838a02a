//! Files that are cut short while they are mapped and read. In processes of their own: work that cannot be done again fails
//! for any file that is cut meanwhile.

use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Barrier;
use std::thread;

use windrow_core::store::{Local, Object, Store, whole, whole_at_once};
use windrow_core::{Kind, Result};

use super::alone::alone;
use super::folder::{folder_of, put};

const SIZE: u64 = 1 << 20;
const PART: u64 = 20_000;

fn content() -> Vec<u8> {
    (0..SIZE).map(|i| (i % 251) as u8 + 1).collect()
}

/// What part `number` holds, copied out of the map.
fn part(object: &dyn Object, number: u64) -> Result<Vec<u8>> {
    let start = number * PART % (SIZE - PART);
    whole(|| object.read(start, PART as usize, &mut Vec::new()).map(<[u8]>::to_vec))
}

fn cut(path: &Path, size: u64) {
    File::options().write(true).open(path).unwrap().set_len(size).unwrap();
}

#[test]
fn readers_of_a_file_that_is_cut_get_its_bytes_or_an_error() {
    alone("torn::readers_of_a_file_that_is_cut_get_its_bytes_or_an_error", |_| {
        let content = content();
        let folder = folder_of(&[("other", &content)]);
        let store = Local::new(folder.path());
        let other = store.open("other").unwrap();
        for round in 0..100 {
            put(folder.path(), "cut", &content);
            let object = store.open("cut").unwrap();
            let begin = Barrier::new(9);
            // Every read gives the file's bytes, or ends the reading.
            let read_until_it_fails = |object: &dyn Object, mut numbers: Range<u64>| {
                begin.wait();
                let failed = numbers.find_map(|number| {
                    let start = (number * PART % (SIZE - PART)) as usize;
                    match part(object, number) {
                        Ok(bytes) => assert!(bytes == content[start..start + PART as usize], "round {round}"),
                        Err(error) => return Some(error),
                    }
                    None
                });
                failed.map(|error| error.kind())
            };
            thread::scope(|scope| {
                let cut_ones =
                    [0; 6].map(|_| scope.spawn(|| read_until_it_fails(&*object, 0..u64::MAX / PART)));
                let others = [0; 2].map(|_| scope.spawn(|| read_until_it_fails(&*other, 0..200)));
                begin.wait();
                // A multiple of every page size: what is left of a page behind the end reads as zeros.
                cut(&folder.path().join("cut"), (round % 16) << 16);
                for reader in cut_ones {
                    assert_eq!(reader.join().unwrap(), Some(Kind::Stale));
                }
                for reader in others {
                    assert_eq!(reader.join().unwrap(), None);
                }
            });
            // None of it is left to read but by an error.
            assert_eq!(part(&*object, SIZE / PART - 2).unwrap_err().kind(), Kind::Stale);
            assert!(object.mapped().is_none());
        }
    });
}

#[test]
fn a_map_in_the_place_of_a_torn_one_is_whole() {
    alone("torn::a_map_in_the_place_of_a_torn_one_is_whole", |_| {
        let content = content();
        let folder = folder_of(&[("x", &content)]);
        let store = Local::new(folder.path());
        for _ in 0..50 {
            put(folder.path(), "x", &content);
            let objects: Vec<_> = (0..5).map(|_| store.open("x").unwrap()).collect();
            assert_eq!(part(&*objects[3], 40).unwrap(), content[800_000..820_000]);
            cut(&folder.path().join("x"), 0);
            for object in &objects {
                let error = part(&**object, 40).unwrap_err();
                assert_eq!((error.kind(), error.place().byte), (Kind::Stale, Some(800_000)));
            }
        }
    });
}

#[test]
fn work_inside_of_work_comes_out_right_too() {
    alone("torn::work_inside_of_work_comes_out_right_too", |_| {
        let content = content();
        let folder = folder_of(&[("x", &content), ("y", &content)]);
        let store = Local::new(folder.path());
        let (x, y) = (store.open("x").unwrap(), store.open("y").unwrap());
        cut(&folder.path().join("x"), 0);
        let mut times = 0;
        let (lost, kept) = whole(|| {
            times += 1;
            (part(&*x, 1), part(&*y, 1))
        });
        assert_eq!(lost.unwrap_err().kind(), Kind::Stale);
        assert_eq!(kept.unwrap(), content[20_000..40_000]);
        assert!(times > 1);
    });
}

#[test]
fn work_that_cannot_be_done_again_fails() {
    alone("torn::work_that_cannot_be_done_again_fails", |_| {
        let content = content();
        let folder = folder_of(&[("x", &content)]);
        let object = Local::new(folder.path()).open("x").unwrap();
        let sum = |bytes: &[u8]| bytes.iter().map(|byte| u64::from(*byte)).sum::<u64>();
        let work = |size: u64| {
            let object = object.clone();
            let path = folder.path().join("x");
            move || {
                let mut scratch = Vec::new();
                let bytes = object.read(0, SIZE as usize, &mut scratch)?;
                cut(&path, size);
                Ok(sum(bytes))
            }
        };
        assert_eq!(whole_at_once(work(SIZE)).unwrap(), sum(&content));
        let mut begun = 0;
        let error = whole_at_once(|| {
            begun += 1;
            work(1 << 16)()
        });
        assert_eq!((error.unwrap_err().kind(), begun), (Kind::Stale, 1));
        // The map is torn now, and says where.
        let error = whole_at_once(work(1 << 16)).unwrap_err();
        assert_eq!((error.kind(), error.place().byte), (Kind::Stale, Some(0)));
    });
}
