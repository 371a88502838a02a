//! Which records of a data set were chosen, and in which order: 4 or 8 bytes for each, none for a slice.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use xxhash_rust::xxh3::Xxh3;

use crate::array::reserve;
use crate::error::{Error, Result};
use crate::threads::in_parts;

/// Numbers of records in an order of their own. Those that are a slice are kept as one, so that the same numbers are equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Numbers {
    /// `n` numbers: `start`, `start + step`, …. No memory.
    Slice {
        /// The first one.
        start: u64,
        /// From each to the next, in either direction.
        step: i64,
        /// How many there are.
        n: u64,
    },
    /// All below 2³²: 4 bytes each.
    Narrow(Arc<Vec<u32>>),
    /// 8 bytes each.
    Wide(Arc<Vec<u64>>),
}

/// Numbers below this are kept in 4 bytes.
const NARROW: u64 = 1 << 32;
/// Numbers that are hashed at a time.
const AT_ONCE: u64 = 1024;

impl Numbers {
    /// The numbers that `each` gives for the places `0..n`, all below `below`.
    ///
    /// # Errors
    /// `Memory` where there is none for them; what `each` says.
    pub fn collect(n: u64, below: u64, mut each: impl FnMut(u64) -> Result<u64>) -> Result<Numbers> {
        let size = usize::try_from(n).unwrap_or(usize::MAX);
        if below <= NARROW {
            let mut numbers = Vec::new();
            reserve(&mut numbers, size)?;
            for place in 0..n {
                numbers.push(each(place)? as u32);
            }
            return Ok(Numbers::narrow(numbers));
        }
        let mut numbers = Vec::new();
        reserve(&mut numbers, size)?;
        for place in 0..n {
            numbers.push(each(place)?);
        }
        Ok(Numbers::wide(numbers))
    }

    /// The places of what is not 0 in a mask, ascending; found on all cores.
    ///
    /// # Errors
    /// `Memory` where there is none for them.
    pub fn of_mask(mask: &[u8]) -> Result<Numbers> {
        match mask.len() as u64 <= NARROW {
            true => Ok(Numbers::ascending(places_in(mask, |place| place as u32)?, Numbers::Narrow)),
            false => Ok(Numbers::ascending(places_in(mask, |place| place)?, Numbers::Wide)),
        }
    }

    // Numbers of which each is above the one before: the first and the last tell whether they are neighbours.
    fn ascending<T: Copy + Into<u64>>(numbers: Vec<T>, kept: impl FnOnce(Arc<Vec<T>>) -> Numbers) -> Numbers {
        let n = numbers.len() as u64;
        match (numbers.first().map(|first| (*first).into()), numbers.last().map(|last| (*last).into())) {
            (Some(start), Some(last)) if last - start == n - 1 => Numbers::Slice { start, step: 1, n },
            _ => slice_of(&numbers).unwrap_or_else(|| kept(Arc::new(numbers))),
        }
    }

    /// Numbers that are given one by one.
    pub fn list(numbers: Vec<u64>) -> Numbers {
        match numbers.iter().max() {
            Some(most) if *most < NARROW => {
                Numbers::narrow(numbers.into_iter().map(|number| number as u32).collect())
            }
            _ => Numbers::wide(numbers),
        }
    }

    fn narrow(numbers: Vec<u32>) -> Numbers {
        slice_of(&numbers).unwrap_or_else(|| Numbers::Narrow(Arc::new(numbers)))
    }

    fn wide(numbers: Vec<u64>) -> Numbers {
        slice_of(&numbers).unwrap_or_else(|| Numbers::Wide(Arc::new(numbers)))
    }

    /// How many there are.
    pub fn len(&self) -> u64 {
        match self {
            Numbers::Slice { n, .. } => *n,
            Numbers::Narrow(numbers) => numbers.len() as u64,
            Numbers::Wide(numbers) => numbers.len() as u64,
        }
    }

    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number at a place, which is below [`Numbers::len`].
    pub fn at(&self, place: u64) -> u64 {
        match self {
            Numbers::Slice { start, step, .. } => in_slice(*start, *step, place),
            Numbers::Narrow(numbers) => u64::from(numbers[place as usize]),
            Numbers::Wide(numbers) => numbers[place as usize],
        }
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.len()).map(|place| self.at(place))
    }

    /// Gives their bytes as little-endian u64 to a hash, in order.
    pub(super) fn hash_into(&self, hash: &mut Xxh3) {
        let mut bytes = Vec::with_capacity(8 * AT_ONCE as usize);
        let mut first = 0;
        while first < self.len() {
            let end = self.len().min(first + AT_ONCE);
            bytes.clear();
            (first..end).for_each(|place| bytes.extend_from_slice(&self.at(place).to_le_bytes()));
            hash.update(&bytes);
            first = end;
        }
    }

    /// XXH3-64 of them as little-endian u64: what a plan knows them by.
    pub fn hash(&self) -> u64 {
        let mut hash = Xxh3::new();
        self.hash_into(&mut hash);
        hash.digest()
    }
}

/// Bytes of a mask that a thread looks at together.
const PART: usize = 1 << 22;

// The places of what is not 0, as `number` makes them.
fn places_in<T: Copy + Default + Send>(mask: &[u8], number: impl Fn(u64) -> T + Sync) -> Result<Vec<T>> {
    let parts: Vec<&[u8]> = mask.chunks(PART).collect();
    let counts = in_parts(parts.len(), |part, (): &mut ()| {
        // Sums of a byte each, while they cannot pass it: many at once for the processor.
        let few = |few: &[u8]| few.iter().map(|byte| u8::from(*byte != 0)).sum::<u8>();
        parts[part].chunks(255).map(|some| u64::from(few(some))).sum::<u64>() as usize
    });
    let n = counts.iter().sum();
    let mut numbers: Vec<T> = Vec::new();
    reserve(&mut numbers, n)?;
    numbers.resize(n, T::default());
    let mut rest = &mut numbers[..];
    let outs = counts.iter().map(|count| {
        let (own, others) = std::mem::take(&mut rest).split_at_mut(*count);
        rest = others;
        Mutex::new(own)
    });
    let outs: Vec<Mutex<&mut [T]>> = outs.collect();
    in_parts(parts.len(), |part, (): &mut ()| {
        let mut out = outs[part].lock().unwrap_or_else(PoisonError::into_inner);
        let mut at = 0;
        // Written always, and kept where it counts: a jump for each would be guessed wrongly.
        for (place, byte) in ((part * PART) as u64..).zip(parts[part]) {
            if let Some(out) = out.get_mut(at) {
                *out = number(place);
            }
            at += usize::from(*byte != 0);
        }
    });
    drop(outs);
    Ok(numbers)
}

// The same numbers as a slice, where they are one.
fn slice_of<T: Copy + Into<u64>>(numbers: &[T]) -> Option<Numbers> {
    let number = |at: usize| numbers.get(at).map(|number| (*number).into());
    let (Some(start), n) = (number(0), numbers.len() as u64) else {
        return Some(Numbers::Slice { start: 0, step: 1, n: 0 });
    };
    let Some(second) = number(1) else { return Some(Numbers::Slice { start, step: 1, n }) };
    let step = i64::try_from(i128::from(second) - i128::from(start)).ok().filter(|step| *step != 0)?;
    // The last number alone rules out most lists.
    let last = i128::from(start) + i128::from(step) * i128::from(n - 1);
    let is_slice = i128::from(number(numbers.len() - 1)?) == last
        && numbers.windows(2).all(|pair| pair[1].into().wrapping_sub(pair[0].into()) == step as u64);
    is_slice.then_some(Numbers::Slice { start, step, n })
}

fn in_slice(start: u64, step: i64, place: u64) -> u64 {
    (i128::from(start) + i128::from(step) * i128::from(place)) as u64
}

/// Some records of a data set, each once, in an order of their own.
#[derive(Debug)]
pub struct Chosen {
    numbers: Numbers,
    /// Records of the data set.
    of: u64,
    ascend: bool,
    /// Places in the order of their numbers, where those do not ascend; made when it is asked for.
    places: OnceLock<Numbers>,
    hash: OnceLock<u64>,
}

impl Chosen {
    /// These records of `of`.
    ///
    /// # Errors
    /// `OutOfRange` for the first that is not there; `Config` for the first that comes twice; `Memory`.
    pub fn new(numbers: Numbers, of: u64) -> Result<Chosen> {
        let numbers = match numbers {
            Numbers::Slice { n: 0, .. } => Numbers::Slice { start: 0, step: 1, n: 0 },
            Numbers::Slice { start, n: 1, .. } => Numbers::Slice { start, step: 1, n: 1 },
            numbers => numbers,
        };
        let ascend = match &numbers {
            Numbers::Slice { n: 0, .. } => true,
            Numbers::Slice { step: 0, start, .. } => return Err(twice(*start, 0, 1)),
            Numbers::Slice { start, step, n } => {
                let last = i128::from(*start) + i128::from(*step) * i128::from(n - 1);
                let beyond = [i128::from(*start), last]
                    .into_iter()
                    .find(|number| !(0..i128::from(of)).contains(number));
                if let Some(number) = beyond {
                    return Err(Error::out_of_range("record", number, of));
                }
                *step > 0
            }
            Numbers::Narrow(numbers) => checked(numbers, of)?,
            Numbers::Wide(numbers) => checked(numbers, of)?,
        };
        Ok(Chosen { numbers, of, ascend, places: OnceLock::new(), hash: OnceLock::new() })
    }

    /// Those of a mask, which are there and ascend.
    ///
    /// # Errors
    /// As [`Numbers::of_mask`].
    pub fn of_mask(mask: &[u8]) -> Result<Chosen> {
        Ok(Chosen {
            numbers: Numbers::of_mask(mask)?,
            of: mask.len() as u64,
            ascend: true,
            places: OnceLock::new(),
            hash: OnceLock::new(),
        })
    }

    /// The numbers, in order.
    pub fn numbers(&self) -> &Numbers {
        &self.numbers
    }

    /// How many are chosen.
    pub fn len(&self) -> u64 {
        self.numbers.len()
    }

    /// None is chosen.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Records of the data set that they were chosen of.
    pub fn of(&self) -> u64 {
        self.of
    }

    /// All records are chosen, in their order.
    pub fn is_all(&self) -> bool {
        self.len() == self.of && self.ascend
    }

    /// XXH3-64 of their numbers, see [`Numbers::hash`].
    pub fn hash(&self) -> u64 {
        *self.hash.get_or_init(|| self.numbers.hash())
    }

    /// The number of the record at a place, which is below [`Chosen::len`].
    pub fn number(&self, place: u64) -> u64 {
        self.numbers.at(place)
    }

    /// How many of the places in a range have numbers that follow each other, from its first on: one at least.
    pub fn run(&self, places: Range<u64>) -> u64 {
        let most = places.end.saturating_sub(places.start).max(1);
        match &self.numbers {
            Numbers::Slice { step: 1, .. } => most,
            Numbers::Slice { .. } => 1,
            _ => {
                let first = self.number(places.start);
                (1..most).take_while(|n| self.number(places.start + n) == first + n).count() as u64 + 1
            }
        }
    }

    /// The place of a record by its number; `None` where it is not chosen. Of numbers that do not ascend, the first one that is
    /// asked for makes as much memory again as they take.
    pub fn place(&self, number: u64) -> Option<u64> {
        if let Numbers::Slice { start, step, n } = self.numbers {
            let from = i128::from(number) - i128::from(start);
            let place = u64::try_from(from / i128::from(step)).ok()?;
            return (from % i128::from(step) == 0 && place < n).then_some(place);
        }
        let places = (!self.ascend).then(|| self.places.get_or_init(|| self.by_number()));
        let place = |at: u64| places.map_or(at, |places| places.at(at));
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = u64::midpoint(low, high);
            match self.number(place(middle)) < number {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        (low < self.len()).then(|| place(low)).filter(|place| self.number(*place) == number)
    }

    fn by_number(&self) -> Numbers {
        match self.len() < NARROW {
            true => {
                let mut places: Vec<u32> = (0..self.len() as u32).collect();
                places.sort_unstable_by_key(|place| self.number(u64::from(*place)));
                Numbers::narrow(places)
            }
            false => {
                let mut places: Vec<u64> = (0..self.len()).collect();
                places.sort_unstable_by_key(|place| self.number(*place));
                Numbers::wide(places)
            }
        }
    }

    /// Some of these, by their places: the same records of the same data set.
    ///
    /// # Errors
    /// As [`Chosen::new`], of the places.
    pub fn then(&self, places: &Numbers) -> Result<Chosen> {
        let places = Chosen::new(places.clone(), self.len())?.numbers;
        let numbers = match (&self.numbers, &places) {
            // Steps within the places are within the numbers: their product fits.
            (Numbers::Slice { start, step, .. }, Numbers::Slice { start: first, step: each, n }) => {
                Numbers::Slice {
                    start: in_slice(*start, *step, *first),
                    step: step.wrapping_mul(*each),
                    n: *n,
                }
            }
            _ => Numbers::collect(places.len(), self.of, |place| Ok(self.number(places.at(place))))?,
        };
        Chosen::new(numbers, self.of)
    }
}

// Whether numbers ascend, once each is known to be there, and there once.
fn checked<T: Copy + Ord + Into<u64>>(numbers: &[T], of: u64) -> Result<bool> {
    let most = numbers.iter().copied().max().map_or(0, Into::into);
    if !numbers.is_empty() && most >= of {
        let first = numbers.iter().copied().map(Into::into).find(|number| *number >= of);
        return Err(Error::out_of_range("record", first.unwrap_or(most), of));
    }
    let pairs = || numbers.windows(2);
    if pairs().all(|pair| pair[0] < pair[1]) {
        return Ok(true);
    }
    if pairs().all(|pair| pair[0] > pair[1]) {
        return Ok(false);
    }
    refuse_twice(numbers, of).map(|()| false)
}

// A bit for each record, or where few of very many are chosen a table of those.
fn refuse_twice<T: Copy + Into<u64>>(numbers: &[T], of: u64) -> Result<()> {
    const FEW: u64 = 1 << 24;
    let words = of.div_ceil(64);
    let first_of = |number: u64| numbers.iter().position(|other| (*other).into() == number).unwrap_or(0);
    if words > FEW.max(numbers.len() as u64) {
        let mut seen: HashMap<u64, usize> = HashMap::new();
        seen.try_reserve(numbers.len())
            .map_err(|_| Error::memory(format!("{} record numbers", numbers.len())))?;
        for (place, number) in numbers.iter().enumerate() {
            let number = (*number).into();
            if let Some(first) = seen.insert(number, place) {
                return Err(twice(number, first, place));
            }
        }
        return Ok(());
    }
    let mut seen: Vec<u64> = Vec::new();
    reserve(&mut seen, words as usize)?;
    seen.resize(words as usize, 0);
    for (place, number) in numbers.iter().enumerate() {
        let number = (*number).into();
        let (word, bit) = (&mut seen[(number / 64) as usize], 1 << (number % 64));
        if *word & bit != 0 {
            return Err(twice(number, first_of(number), place));
        }
        *word |= bit;
    }
    Ok(())
}

fn twice(number: u64, first: usize, again: usize) -> Error {
    Error::config(format!("record {number} is chosen twice, at places {first} and {again}"))
        .field("select")
        .hint("choose each record once; for records that come more often, mix two views with weights: @mix@")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    fn chosen(numbers: &[u64], of: u64) -> Chosen {
        Chosen::new(Numbers::list(numbers.to_vec()), of).unwrap()
    }

    #[test]
    fn numbers_that_are_a_slice_take_no_memory_and_are_equal() {
        for (numbers, start, step) in [
            (vec![], 0, 1),
            (vec![7], 7, 1),
            (vec![2, 3, 4], 2, 1),
            (vec![9, 6, 3, 0], 9, -3),
            (vec![1 << 40, 0], 1 << 40, -(1i64 << 40)),
        ] {
            let n = numbers.len() as u64;
            let found = Numbers::list(numbers.clone());
            assert_eq!(found, Numbers::Slice { start, step, n });
            assert_eq!(found.iter().collect::<Vec<_>>(), numbers);
        }
        assert!(matches!(Numbers::list(vec![1, 2, 4]), Numbers::Narrow(_)));
        assert!(matches!(Numbers::list(vec![1, 2, 1 << 32]), Numbers::Wide(_)));
        let mask: Vec<u8> = (0..100).map(|i| u8::from(i % 3 == 1)).collect();
        assert_eq!(Numbers::of_mask(&mask).unwrap(), Numbers::Slice { start: 1, step: 3, n: 33 });
        let places = [0usize, 15, 16, 47, 99];
        let mut mask = vec![0u8; 100];
        places.iter().for_each(|place| mask[*place] = 2);
        assert_eq!(
            Numbers::of_mask(&mask).unwrap(),
            Numbers::list(places.map(|place| place as u64).to_vec())
        );
    }

    #[test]
    fn numbers_and_places_are_each_other_s_inverse() {
        let orders: [&[u64]; 7] = [
            &[],
            &[4],
            &[0, 2, 3, 9],
            &[9, 7, 5, 3, 1],
            &[9, 2, 0, 3],
            &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
            &[5, 6, 7, 1, 2, 3],
        ];
        for numbers in orders {
            let chosen = chosen(numbers, 10);
            for number in 0..12 {
                let expected = numbers.iter().position(|other| *other == number).map(|place| place as u64);
                assert_eq!(chosen.place(number), expected, "{number} of {numbers:?}");
            }
            assert!((0..).zip(numbers).all(|(place, number)| chosen.number(place) == *number));
            assert_eq!(chosen.is_all(), numbers.len() == 10);
        }
        let runs = chosen(&[5, 6, 7, 1, 2, 9], 10);
        assert_eq!([0, 1, 2, 3, 5].map(|place| runs.run(place..6)), [3, 2, 1, 2, 1]);
        assert_eq!(runs.run(0..2), 2);
    }

    #[test]
    fn some_of_some_are_records_of_the_first() {
        let orders: [&[u64]; 5] = [&[0, 2, 4, 6, 8], &[9, 7, 5, 3], &[3, 1, 4, 0, 9], &[7], &[]];
        for numbers in orders {
            let first = chosen(numbers, 10);
            let n = numbers.len() as u64;
            let backwards: Vec<u64> = (0..n).rev().collect();
            let every_other: Vec<u64> = (0..n).step_by(2).collect();
            for places in [backwards, every_other, (0..n.min(1)).collect(), vec![]] {
                let then = first.then(&Numbers::list(places.clone())).unwrap();
                let expected: Vec<u64> = places.iter().map(|place| numbers[*place as usize]).collect();
                assert_eq!(then.numbers(), &Numbers::list(expected));
                assert_eq!(then.of(), 10);
            }
            assert_eq!(first.then(&Numbers::list(vec![n])).unwrap_err().kind(), Kind::OutOfRange);
        }
    }

    #[test]
    fn what_is_not_there_or_comes_twice_is_named() {
        let refused = |numbers: Numbers, of: u64| {
            let error = Chosen::new(numbers, of).unwrap_err();
            (error.kind(), error.message().to_string())
        };
        let said = |numbers: &[u64], of: u64| refused(Numbers::list(numbers.to_vec()), of);
        assert_eq!(
            said(&[1, 12, 11, 3], 10),
            (Kind::OutOfRange, Error::out_of_range("record", 12, 10).message().to_string())
        );
        for of in [10, 1 << 40] {
            let twice = "record 3 is chosen twice, at places 1 and 4".to_string();
            assert_eq!(said(&[5, 3, 1, 0, 3, 5], of), (Kind::Config, twice));
        }
        assert_eq!(said(&[3, 3], 10).1, "record 3 is chosen twice, at places 0 and 1");
        for (start, step, n) in [(10, 1, 1), (9, 1, 2), (4, -3, 3), (0, 1, 11)] {
            assert_eq!(refused(Numbers::Slice { start, step, n }, 10).0, Kind::OutOfRange);
        }
        assert!(Chosen::new(Numbers::Slice { start: 10, step: 1, n: 0 }, 10).unwrap().is_empty());
    }

    #[test]
    fn the_hash_is_of_numbers_as_u64_however_they_are_kept() {
        let bytes =
            |numbers: &[u64]| numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>();
        for numbers in [vec![], vec![5], (0..3000).collect(), vec![4, 1, 9], vec![1, 2, 1 << 33]] {
            let expected = xxhash_rust::xxh3::xxh3_64(&bytes(&numbers));
            assert_eq!(Numbers::list(numbers).hash(), expected);
        }
    }
}
