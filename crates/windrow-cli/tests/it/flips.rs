//! One random bit of what windrow wrote is flipped, in every layout that it writes: no other values are served without a
//! word from opening, reading or `verify`, and `verify` calls nothing good that cannot be read.
//!
//! `WINDROW_FLIPS` in the environment says how many flips; without it there are as many as a quick run takes.
//!
//! ```text
//! WINDROW_FLIPS=100000 cargo test --release -p windrow-cli --test it flips -- --nocapture
//! ```

mod written;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

use windrow::dev::source::{Kind, SharedSource};
use windrow::format::Options;
use windrow::prepare::{State, VerifyOptions};
use windrow::{Result, Span};

use self::written::{Dataset, everything};
use crate::program::Desk;

const QUICK: usize = 3_000;
const SEED: u64 = 29;

/// What a reader gets: of each record its length, values, tracks and extras, and before them what all have in common.
#[derive(PartialEq)]
struct Content(Vec<String>, Vec<Vec<u8>>);

fn content(path: &Path, verify_checksums: bool) -> Result<Content> {
    let data = windrow::open_with(path, &Options { verify_checksums, ..Options::default() })?;
    let mut content = Content(Vec::new(), Vec::new());
    // All records, and the stream that they are where a view takes them for one.
    for source in [Some(data.source().clone()), data.source().joined()].into_iter().flatten() {
        read(&source, &mut content)?;
    }
    Ok(content)
}

fn read(source: &SharedSource, into: &mut Content) -> Result<()> {
    let schema = source.schema();
    into.0.push(format!(
        "{} of {:?}",
        source.len(),
        (&schema.kind, schema.element, schema.channels, &schema.tracks)
    ));
    let mut scratch = Vec::new();
    for record in 0..source.len() {
        if schema.kind == Kind::Rows {
            into.0.push(format!("{:?}", source.row(record)?));
            continue;
        }
        let len = source.length(record)?;
        let span = Span { record, start: 0, len };
        let values = source.read(span, &mut scratch)?;
        into.0.push(format!("{len} {:?} {:?}", values.element, values.decode));
        into.1.push(values.bytes.to_vec());
        for track in 0..schema.tracks.len() {
            into.1.push(source.read_track(track, span, &mut scratch)?.bytes.to_vec());
        }
        into.0.push(serde_json::to_string(&source.extras(record)?.shown()).unwrap());
    }
    Ok(())
}

/// What a flip came to.
#[derive(Default, Debug)]
struct Tally {
    /// Nothing that is read is another.
    harmless: usize,
    refused: usize,
    /// Other values, of which `verify` tells.
    told: usize,
    /// Other values, and nobody says so.
    silent: Vec<String>,
    /// What cannot be read, and `verify` calls it good.
    called_good: Vec<String>,
}

/// Flips a bit, keeps the file's time, and looks; the bit is put back.
fn flip(set: &Dataset, whole: &[Content; 2], random: &mut fastrand::Rng, tallies: &mut [Tally; 2]) {
    let path = random.choice(&set.files).unwrap();
    let file = fs::File::options().read(true).write(true).open(path).unwrap();
    let meta = file.metadata().unwrap();
    if meta.len() == 0 {
        return;
    }
    let (at, bit) = (random.u64(..meta.len()), random.u32(..8));
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    let put = |byte: u8| {
        file.write_all_at(&[byte], at).unwrap();
        file.set_modified(meta.modified().unwrap()).unwrap();
    };
    put(byte[0] ^ (1 << bit));
    let place = || format!("{}: bit {bit} of byte {at} of {}", set.name, path.display());

    let [by_verify, by_always] = tallies;
    // A file is verified alone, or with all that lies in its folder.
    let of = if random.bool() { &set.path } else { &set.folder };
    let is_good =
        || windrow::verify(of, &VerifyOptions::default(), &()).is_ok_and(|found| found.n_problems == 0);
    match content(&set.path, false) {
        Ok(found) if found == whole[0] => by_verify.harmless += 1,
        Ok(_) if is_good() => by_verify.silent.push(place()),
        Ok(_) => by_verify.told += 1,
        Err(e) if is_good() => by_verify.called_good.push(format!("{}: {e}", place())),
        Err(_) => by_verify.refused += 1,
    }
    if set.has_sums {
        match content(&set.path, true) {
            Ok(found) if found == whole[1] => by_always.harmless += 1,
            Ok(_) => by_always.silent.push(place()),
            Err(_) => by_always.refused += 1,
        }
    }
    put(byte[0]);
}

#[test]
fn no_flipped_bit_is_served_in_silence() {
    const IS_ALONE: &str = "WINDROW_FLIPS_IS_ALONE";
    if std::env::var_os(IS_ALONE).is_some() {
        return all();
    }
    // In a process of its own, whose cache goes with it.
    let cache = tempfile::tempdir().unwrap();
    let ran = Command::new(std::env::current_exe().unwrap())
        .args(["flips::no_flipped_bit_is_served_in_silence", "--exact", "--nocapture"])
        .envs([(IS_ALONE, "1".as_ref()), ("WINDROW_CACHE", cache.path().as_os_str())])
        .output()
        .unwrap();
    print!("{}", String::from_utf8_lossy(&ran.stdout));
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

fn all() {
    let flips = std::env::var("WINDROW_FLIPS").map_or(QUICK, |n| n.parse().unwrap());
    let desk = Desk::new();
    let sets = everything(&desk);
    let mut random = fastrand::Rng::with_seed(SEED);
    let mut silent = Vec::new();
    let mut totals: BTreeMap<&str, [usize; 5]> = BTreeMap::new();
    println!("{:44} {:>8} {:>8} {:>8} {:>8} {:>8}", "", "harmless", "refused", "told", "silent", "good?");
    for set in &sets {
        let whole = |verify_checksums| {
            content(&set.path, verify_checksums).unwrap_or_else(|e| panic!("{}: {e}", set.name))
        };
        let first = whole(false);
        let found = windrow::verify(&set.folder, &VerifyOptions::default(), &()).unwrap();
        // What windrow writes has checksums of all its data; of lines that lie there the index keeps them where it is asked to.
        let state = if set.name.trim() == "index" { State::Read } else { State::Checked };
        assert!(found.state() == state, "{}: {found:?}", set.name);
        let second = whole(set.has_sums);
        assert!(first == second, "{}", set.name);
        let whole = [first, second];
        let mut tallies = [Tally::default(), Tally::default()];
        for _ in 0..flips.div_ceil(sets.len()) {
            flip(set, &whole, &mut random, &mut tallies);
        }
        for (tally, how) in tallies.iter().zip(["verify", "always"]) {
            let row =
                [tally.harmless, tally.refused, tally.told, tally.silent.len(), tally.called_good.len()];
            println!("{:36} {how:7} {row:>8?}", set.name);
            totals.entry(how).or_default().iter_mut().zip(row).for_each(|(all, n)| *all += n);
        }
        silent.extend(tallies.into_iter().flat_map(|tally| [tally.silent, tally.called_good]).flatten());
    }
    println!("{} data sets; {totals:?}", sets.len());
    assert!(silent.is_empty(), "{} flips:\n{}", silent.len(), silent.join("\n"));
}
