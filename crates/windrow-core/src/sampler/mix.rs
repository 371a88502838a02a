//! A weighted mixture of several views: whose turn it is, by a table of one block that repeats until the shares change.

mod block;
mod drawn;
mod latest;
mod options;
mod part;
mod ready;
mod schedule;

use std::num::NonZeroU64;
use std::ops::Range;

use xxhash_rust::xxh3::xxh3_64;

use self::block::slots_of_parts;
use self::drawn::Spare;
use self::latest::Latest;
pub use self::options::{MixOptions, MixPart, PartOf, Phase, Stop};
use self::part::{Of, Part};
use self::schedule::{Schedule, Slots};
use super::{Change, Described, Order, Sampler, Turn};
use crate::error::{Error, Result};
use crate::record::keyed_hash;

/// Before the rows of batches that are of one part each, at the end of an order's words.
pub(crate) const ROWS: &str = ",batches=part(rows=";

/// Sets the seeds of the parts apart from every other use of the hash.
const PART: u64 = 0x7061_7274_0000_0000;

/// A mixture of parts in shares, which may change.
///
/// Positions come in blocks of M. A part of share w has exactly `m = w·M` slots in each block, and in the first p
/// positions of a block it had its turn p·m/M times, give or take less than one. Which slots they are is decided once,
/// by the seed. Each part is gone through pass after pass, in a new order each pass and epoch when shuffled.
///
/// Where the shares change, as a phase begins or a part has had its most passes, other blocks begin; every part continues
/// where it was.
///
/// Where [batches are of one part](MixOptions::rows), all of this is so of batches instead of positions: M batches are a block. A part
/// is gone through pass after pass, and a batch may hold the end of one and the beginning of the next.
///
/// Sample numbers run through the first part, then the second, and so on.
///
/// ```
/// use windrow_core::sampler::{Mix, Sampler, Stop};
///
/// let web_and_code = Mix::new(&[(700, 0.7), (100, 0.3)], true, 7, Stop::All)?;
/// let turn = web_and_code.turn(0, 12);
/// assert_eq!(web_and_code.position(0, turn), Some(12));
/// # Ok::<(), windrow_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Mix {
    parts: Vec<Part>,
    // First sample of each view, those of the mixtures among the parts included.
    views: Vec<u64>,
    schedule: Schedule,
    stop: Stop,
    // Of a batch, where each is of one part.
    rows: Option<NonZeroU64>,
    len: Option<u64>,
    spare: Spare,
}

impl Mix {
    /// Mixes parts of `(number of samples, weight)`; only the ratio of the weights counts.
    ///
    /// # Errors
    /// `Config`, naming the part, when there is none or more than 65,535, when one is empty, when a weight is not a
    /// number above 0 or is less than about 1/65,536 of the whole, and when there are more than 2^63 samples.
    pub fn new(parts: &[(u64, f64)], shuffle: bool, seed: u64, stop: Stop) -> Result<Self> {
        let order = if shuffle { Order::Shuffle } else { Order::Sequential };
        let parts: Vec<_> = parts.iter().map(|&(len, weight)| (len, weight, order)).collect();
        Mix::in_orders(&parts, seed, stop)
    }

    /// Mixes parts of `(number of samples, weight, order)`, each in its own order.
    ///
    /// # Errors
    /// As [`Mix::new`]; `Config` where a part has not enough blocks for the lanes of its order.
    pub fn in_orders(parts: &[(u64, f64, Order)], seed: u64, stop: Stop) -> Result<Self> {
        let part =
            |&(len, weight, order)| MixPart { of: PartOf::Samples { len, order }, weight, most_passes: None };
        Mix::of(&MixOptions { parts: parts.iter().map(part).collect(), stop, ..MixOptions::default() }, seed)
    }

    /// Mixes parts whose shares change, and mixtures.
    ///
    /// ```
    /// use windrow_core::sampler::{Mix, MixOptions, MixPart, Order, PartOf, Phase, Sampler, Stop};
    ///
    /// let part = |len, weight| MixPart {
    ///     of: PartOf::Samples { len, order: Order::Shuffle },
    ///     weight,
    ///     most_passes: None,
    /// };
    /// let phases = vec![Phase { start: 5000, weights: vec![0.5, 0.5] }];
    /// let parts = vec![part(700, 1.0), part(100, 0.0)];
    /// let mix = Mix::of(&MixOptions { parts, phases, stop: Stop::Never, rows: None }, 7)?;
    /// assert_eq!(mix.samples_of_views(5000), [5000, 0]);
    /// assert_eq!(mix.samples_of_views(6000), [5500, 500]);
    /// # Ok::<(), windrow_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Mix::in_orders`]; `Config` where phases do not follow one another, where one begins after every part has had its
    /// most passes, where phases or most passes are given for a mixture that stops, and where a part that has no passes, as a
    /// mixture that never ends, is in one that counts them. A weight may be 0 where there are phases. Where batches are of one part:
    /// `Config` for a phase that begins inside a batch, where an epoch has no batch, or a part no whole batch before its most passes;
    /// and for a mixture in such batches inside one that has others.
    pub fn of(options: &MixOptions, seed: u64) -> Result<Self> {
        let phases = phases(options)?;
        let rows = options.rows.unwrap_or(NonZeroU64::MIN);
        let (mut offset, mut parts) = (0u64, Vec::with_capacity(options.parts.len()));
        for (number, part) in options.parts.iter().enumerate() {
            check_batches(number, part, options.rows)?;
            let placed = Part::new(offset, number, part, keyed_hash(seed, [number as u64, 0, PART]))?;
            let n_samples = placed.n_samples;
            offset = offset.checked_add(n_samples).filter(|&all| all <= 1 << 63).ok_or_else(|| {
                Error::config(format!(
                    "part {number} with {n_samples} samples makes the mixture longer than 2^63"
                ))
            })?;
            parts.push(placed);
        }
        let most: Vec<Option<u64>> = (parts.iter().zip(&options.parts).enumerate())
            .map(|(number, (part, given))| most_turns(number, part, given.most_passes, options))
            .collect::<Result<_>>()?;
        let schedule = Schedule::new(&phases, &most, rows, seed)?;
        let views = parts.iter().flat_map(Part::views).collect();
        let (stop, rows) = (options.stop, options.rows);
        let mut mix = Mix { parts, views, schedule, stop, rows, len: None, spare: Spare::default() };
        mix.len = mix.length();
        mix.check_length()?;
        Ok(mix)
    }

    /// Whose turn it is at a position, where each part continues in every epoch where it ended in the one before: passes count
    /// through all epochs. A mixture that never stops has one epoch only, whatever number it is given.
    ///
    /// ```
    /// use windrow_core::sampler::{Mix, Stop};
    ///
    /// // The second part ends the epoch after 50 samples of the first, which continues with the next 50.
    /// let mix = Mix::new(&[(100, 0.5), (50, 0.5)], false, 0, Stop::First)?;
    /// let of_the_first = |epoch| (0..100).map(|p| mix.onward(epoch, p).sample).filter(|n| *n < 100).max();
    /// assert_eq!((of_the_first(0), of_the_first(1)), (Some(49), Some(99)));
    /// # Ok::<(), windrow_core::Error>(())
    /// ```
    pub fn onward(&self, epoch: u64, position: u64) -> Turn {
        let (number, place) = self.schedule.place(position);
        let in_an_epoch = match self.stop {
            Stop::Never => 0,
            Stop::First | Stop::All => self.len.map_or(0, |len| self.schedule.positions_before(number, len)),
        };
        let place = u128::from(epoch) * u128::from(in_an_epoch) + u128::from(place);
        self.part(number).turn(0, place)
    }

    /// Which view a sample number belongs to, and its number there. Views are numbered as they come, those of mixtures among the
    /// parts included.
    pub fn view_of(&self, sample: u64) -> (usize, u64) {
        let view = self.views.partition_point(|start| *start <= sample).saturating_sub(1);
        (view, sample - self.views[view])
    }

    /// Where the shares of the parts change, as phases begin and parts have had their most passes, and what they are: weights are
    /// those of whole slots.
    pub fn shares(&self) -> Vec<Phase> {
        let phase = |slots: Slots| {
            let all = slots.of_parts.iter().sum::<u64>() as f64;
            let weights = slots.of_parts.iter().map(|slots| *slots as f64 / all).collect();
            Phase { start: slots.start, weights }
        };
        self.schedule.changes().map(phase).collect()
    }

    // Samples of all views.
    fn n_samples(&self) -> u64 {
        self.parts.last().map_or(0, |part| part.offset + part.n_samples)
    }

    // Positions of an epoch, which are whole batches where those are of one part. An end beyond 2^64 counts as 2^64 - 1: nobody gets
    // there.
    fn length(&self) -> Option<u64> {
        let rows = self.rows.unwrap_or(NonZeroU64::MIN);
        // Where the batch of each part begins that holds place number `place(pass)` of it.
        let batches = |place: fn(u64) -> u64| {
            numbered(&self.parts).map(move |(number, part)| {
                let place = part.pass_len().map(|len| place(len) / rows * rows.get());
                place.and_then(|place| self.schedule.position(number, place)).unwrap_or(u64::MAX)
            })
        };
        match self.stop {
            Stop::First => batches(|len| len).min(),
            Stop::All => batches(|len| len - 1).max().map(|last| last.saturating_add(rows.get())),
            Stop::Never => self.schedule.end(),
        }
    }

    // Only batches can be too large for an epoch: without them it has a sample.
    fn check_length(&self) -> Result<()> {
        let (Some(0), Some(rows)) = (self.len, self.rows) else { return Ok(()) };
        let (number, _) = self.schedule.place(0);
        let len = self.part(number).pass_len().unwrap_or_default();
        Err(Error::config(format!(
            "part {number} has {len} samples, and each batch {rows} rows of one part: an epoch has no batch without a sample that \
             repeats"
        ))
        .field("batches")
        .hint("@stop=all@ or @stop=never@ goes through it again; or choose a smaller batch size"))
    }

    fn part(&self, number: u16) -> &Part {
        &self.parts[usize::from(number)]
    }

    // The position of a turn, in an epoch that never ends.
    fn place(&self, epoch: u64, turn: Turn) -> Option<u64> {
        let number = self.parts.partition_point(|part| part.offset <= turn.sample).saturating_sub(1);
        let number = u16::try_from(number).ok()?;
        let place = self.part(number).place(epoch, turn)?;
        self.schedule.position(number, place)
    }

    // As `Sampler::blocks`, with the position of each, which `position_of` says of one of this mixture's.
    fn needed(
        &self,
        epoch: u64,
        positions: Range<u64>,
        position_of: &dyn Fn(u64) -> u64,
        needed: &mut Vec<(u64, Range<u64>)>,
    ) -> bool {
        numbered(&self.parts).all(|(number, part)| {
            let [start, end] =
                [positions.start, positions.end].map(|p| self.schedule.positions_before(number, p));
            let at = |place| self.schedule.position(number, place).map_or(u64::MAX, position_of);
            part.blocks(epoch, start..end, &at, needed)
        })
    }

    // What its parts are, without their shares: each order and number of samples, and when the epoch ends.
    fn words(&self) -> String {
        let part = |part: &Part| match &part.of {
            Of::View(_) => format!("{}*{}", part.n_samples, part.describe()),
            Of::Mix(_) => part.describe(),
        };
        let parts: Vec<String> = self.parts.iter().map(part).collect();
        format!("{},stop={}{}", parts.join("+"), self.stop.name(), self.batch_words())
    }

    // That each batch is of one part, and its rows.
    fn batch_words(&self) -> String {
        self.rows.map_or(String::new(), |rows| format!("{ROWS}{rows})"))
    }

    // Where the shares of this mixture, and of mixtures in it, change before a position.
    fn changes(
        &self,
        path: &str,
        before: u64,
        position_of: &dyn Fn(u64) -> Option<u64>,
        out: &mut Vec<Change>,
    ) {
        for slots in self.schedule.changes() {
            let Some(start) = position_of(slots.start).filter(|start| *start < before) else { break };
            let hash = xxh3_64(format!("{path}{:?}", slots.of_parts).as_bytes());
            out.push(Change { start, hash });
        }
        for (number, part) in numbered(&self.parts) {
            if let Of::Mix(mix) = &part.of {
                let at = |place| self.schedule.position(number, place).and_then(position_of);
                mix.changes(&format!("{path}{number}/"), before, &at, out);
            }
        }
    }

    // Shares that never change, of views.
    fn plain_words(&self) -> String {
        let slots = self.schedule.changes().next().map(|slots| slots.of_parts).unwrap_or_default();
        // Slots, not weights: 7 to 3 and 0.7 to 0.3 are the same order.
        let parts: Vec<String> =
            self.parts.iter().zip(&slots).map(|(part, n)| format!("{}*{n}", part.n_samples)).collect();
        let orders: Vec<String> = self.parts.iter().map(Part::describe).collect();
        // One order of all parts is named once.
        let order =
            if orders.iter().all(|order| *order == orders[0]) { orders[0].clone() } else { orders.join("+") };
        let (stop, size) = (self.stop.name(), slots.iter().sum::<u64>());
        let batches = self.batch_words();
        format!("mix-v1:{order},stop={stop},slots={size},len*slots={}{batches}", parts.join("+"))
    }
}

// Parts with their numbers. In this order no number beyond the last is made, which would be too large for 65,535 parts.
fn numbered<T>(parts: &[T]) -> impl Iterator<Item = (u16, &T)> {
    parts.iter().zip(0u16..).map(|(part, number)| (number, part))
}

// The slots of each phase.
fn phases(options: &MixOptions) -> Result<Vec<Slots>> {
    let Some(second) = options.phases.first() else {
        let weights: Vec<f64> = options.parts.iter().map(|part| part.weight).collect();
        return Ok(vec![Slots { start: 0, of_parts: slots_of_parts(&weights, false)? }]);
    };
    if options.stop != Stop::Never {
        return Err(Error::config(format!("phases of a mixture with @stop=\"{}\"@", options.stop.name()))
            .field("phases")
            .hint("phases count the samples of one endless epoch: @stop=never@"));
    }
    let first = Phase { start: 0, weights: options.parts.iter().map(|part| part.weight).collect() };
    let phases = (second.start > 0).then_some(&first).into_iter().chain(&options.phases);
    let mut found: Vec<Slots> = Vec::new();
    for (number, phase) in phases.enumerate() {
        if let Some(last) = found.last().filter(|last| last.start >= phase.start) {
            return Err(Error::config(format!(
                "a phase begins at sample {}, the one before it at {}: each must begin later",
                phase.start, last.start
            ))
            .field("phases"));
        }
        if phase.weights.len() != options.parts.len() {
            let (found, expected) = (phase.weights.len(), options.parts.len());
            return Err(
                Error::config(format!("a phase has {found} weights for {expected} parts")).field("phases")
            );
        }
        let in_phase = |e: Error| e.field(format!("phase {number}, from sample {}", phase.start));
        found.push(Slots {
            start: phase.start,
            of_parts: slots_of_parts(&phase.weights, true).map_err(in_phase)?,
        });
    }
    Ok(found)
}

// Batches of one part cannot be in others.
fn check_batches(number: usize, part: &MixPart, rows: Option<NonZeroU64>) -> Result<()> {
    let PartOf::Mix(MixOptions { rows: Some(own), .. }) = &part.of else { return Ok(()) };
    if rows == Some(*own) {
        return Ok(());
    }
    let others = rows.map_or("mixes each batch".to_string(), |rows| format!("has batches of {rows}"));
    Err(Error::config(format!(
        "part {number} is a mixture in batches of {own} rows of one part, and the mixture around it {others}"
    ))
    .field("batches")
    .hint("give @batches=part@ to both, with batches of one size, or to the one around alone"))
}

// Turns after which a part gives its share to the others: batches where those are of one part, of which the last may not be full.
fn most_turns(
    number: usize,
    part: &Part,
    most_passes: Option<u64>,
    options: &MixOptions,
) -> Result<Option<u64>> {
    let (stop, rows) = (options.stop, options.rows);
    let Some(len) = part.pass_len() else {
        return if stop == Stop::Never && most_passes.is_none() {
            Ok(None)
        } else {
            Err(Error::config(format!("part {number} is a mixture that never ends: it has no passes"))
                .hint("give it @stop=all@ or @stop=first@, or the mixture around it @stop=never@ and no @max_epochs@ for it"))
        };
    };
    let Some(passes) = most_passes.into_iter().chain(part.passes()).min() else { return Ok(None) };
    if stop != Stop::Never {
        return Err(Error::config(format!(
            "part {number} ends after {passes} passes, in a mixture with @stop=\"{}\"@",
            stop.name()
        ))
        .field("max_epochs")
        .hint("max_epochs counts the passes of one endless epoch: @stop=never@"));
    }
    match passes.checked_mul(len) {
        Some(0) => Err(Error::config(format!("part {number} with max_epochs of 0"))
            .field("max_epochs")
            .hint("a part that is not wanted is left out")),
        places => match (places.map(|places| places / rows.unwrap_or(NonZeroU64::MIN)), rows) {
            (Some(0), Some(rows)) => Err(Error::config(format!(
                "part {number} ends after {passes} passes of {len} samples, and each batch has {rows} rows of one part: it would \
                 never have one"
            ))
            .field("max_epochs")
            .hint("give it more passes, or choose a smaller batch size")),
            (turns, _) => Ok(turns),
        },
    }
}

impl Sampler for Mix {
    fn len(&self, _epoch: u64) -> Option<u64> {
        self.len
    }

    fn epochs(&self) -> Option<u64> {
        self.schedule.end().map(|_| 1)
    }

    fn batch_rows(&self) -> Option<NonZeroU64> {
        self.rows
    }

    fn views_of_batches(&self) -> Vec<Range<usize>> {
        if self.rows.is_none() {
            return Vec::new();
        }
        let mut apart = Vec::new();
        let mut first = 0;
        for part in &self.parts {
            let n_views = part.views().len();
            let inner = match &part.of {
                Of::View(_) => Vec::new(),
                Of::Mix(mix) => mix.views_of_batches(),
            };
            match inner.is_empty() {
                true => apart.push(first..first + n_views),
                false => apart.extend(inner.into_iter().map(|views| first + views.start..first + views.end)),
            }
            first += n_views;
        }
        apart
    }

    fn turn(&self, epoch: u64, position: u64) -> Turn {
        let (number, place) = self.schedule.place(position);
        self.part(number).turn(epoch, u128::from(place))
    }

    fn turns(&self, epoch: u64, positions: Range<u64>, out: &mut Vec<Turn>) {
        // Neighbouring positions belong to different parts.
        let mut latest = Latest::new(self, epoch);
        out.extend(positions.map(|position| latest.turn(position)));
    }

    fn position(&self, epoch: u64, turn: Turn) -> Option<u64> {
        self.place(epoch, turn).filter(|position| self.len.is_none_or(|len| *position < len))
    }

    fn blocks(&self, epoch: u64, positions: Range<u64>, out: &mut Vec<Range<u64>>) -> bool {
        let positions = positions.start..self.len.map_or(positions.end, |len| len.min(positions.end));
        let mut needed = Vec::new();
        if !self.needed(epoch, positions, &|position| position, &mut needed) {
            return false;
        }
        // Stable: the blocks of a pool stay in their order.
        needed.sort_by_key(|(position, _)| *position);
        out.extend(needed.into_iter().map(|(_, samples)| samples));
        true
    }

    fn samples_of_views(&self, positions: u64) -> Vec<u64> {
        let parts = numbered(&self.parts).map(|(number, part)| {
            let turns = self.schedule.positions_before(number, positions);
            match &part.of {
                Of::View(_) => vec![turns],
                Of::Mix(mix) => mix.samples_of_views(turns),
            }
        });
        parts.flatten().collect()
    }

    fn describe(&self) -> String {
        match self.described(u64::MAX).words() {
            (order, None) => order,
            (order, Some(changes)) => format!("{order},phases={changes}"),
        }
    }

    fn described(&self, before: u64) -> Described {
        // Where an epoch ends depends on all of it, and the next epoch is of another order.
        let before = if self.stop == Stop::Never { before } else { u64::MAX };
        let mut changes = Vec::new();
        self.changes("", before, &Some, &mut changes);
        changes.sort_by_key(|change| change.start);
        let is_plain = self.parts.iter().all(|part| matches!(part.of, Of::View(_)));
        Described {
            order: format!("mix-v2:{}", self.words()),
            changes,
            unchanged: is_plain.then(|| self.plain_words()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    fn refused(parts: &[(u64, f64)]) -> String {
        let error = Mix::new(parts, true, 0, Stop::Never).unwrap_err();
        assert_eq!(error.kind(), Kind::Config);
        error.message().to_string()
    }

    #[test]
    fn parts_that_cannot_be_mixed_are_refused_by_number() {
        assert!(refused(&[]).contains("no parts"));
        assert!(refused(&[(1, 1.0), (0, 1.0)]).contains("part 1 "));
        for weight in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let message = refused(&[(1, 1.0), (1, 1.0), (1, weight)]);
            assert!(message.contains("part 2 ") && message.contains(&weight.to_string()), "{message}");
        }
        assert!(refused(&[(1, 1.0), (1, 1e-9)]).contains("part 1 "));
        assert!(refused(&[(1, f64::MAX), (1, f64::MAX), (1, 1.0)]).contains("part 2 "));
        assert!(refused(&[(1 << 63, 1.0), (1, 1.0)]).contains("part 1 "));
        assert!(refused(&vec![(1, 1.0); 65_536]).contains("65536"));
    }

    /// Positions, epochs and parts in a row: each part's samples follow one another without a gap.
    #[test]
    fn every_part_continues_where_the_epoch_before_ended() {
        for stop in [Stop::First, Stop::All] {
            for shuffle in [false, true] {
                let mix = Mix::new(&[(700, 0.9), (30, 0.1)], shuffle, 3, stop).unwrap();
                let len = mix.len(0).unwrap();
                let mut had = [Vec::new(), Vec::new()];
                for epoch in 0..5 {
                    for position in 0..len {
                        let turn = mix.onward(epoch, position);
                        let (part, number) = mix.view_of(turn.sample);
                        had[part].push((turn.pass, number));
                    }
                }
                for (numbers, n) in had.iter().zip([700, 30]) {
                    for (pass, of_pass) in numbers.chunks(n).enumerate() {
                        assert!(of_pass.iter().all(|turn| turn.0 == pass as u64));
                        let mut seen: Vec<u64> = of_pass.iter().map(|turn| turn.1).collect();
                        assert!(shuffle || seen.is_sorted());
                        seen.sort_unstable();
                        seen.dedup();
                        assert_eq!(seen.len(), of_pass.len());
                    }
                }
                let shares = had.each_ref().map(Vec::len);
                assert!((9 * shares[1]).abs_diff(shares[0]) < 10 * 5, "{shares:?}");
            }
        }
    }

    #[test]
    fn the_first_epoch_is_the_loaders_and_an_endless_one_is_the_only_one() {
        let mix = |stop| Mix::new(&[(70, 0.9), (30, 0.1)], false, 3, stop).unwrap();
        for position in 0..300 {
            for stop in [Stop::First, Stop::All, Stop::Never] {
                assert_eq!(mix(stop).onward(0, position), mix(stop).turn(0, position));
            }
            assert_eq!(mix(Stop::Never).onward(9, position), mix(Stop::Never).turn(0, position));
        }
        let long = Mix::new(&[(1 << 62, 1.0), (3, 1.0)], false, 1, Stop::First).unwrap();
        assert!(long.onward(u64::MAX, 5).sample < (1 << 62) + 3);
    }

    #[test]
    fn as_many_parts_as_slots_can_be_mixed() {
        let mix = Mix::new(&vec![(1, 1.0); 65_535], true, 0, Stop::All).unwrap();
        assert_eq!(mix.len(0), Some(65_535));
    }

    #[test]
    fn the_words_name_order_stop_shares_and_lengths() {
        let describe = |weights: [f64; 2], shuffle, stop| {
            Mix::new(&[(5, weights[0]), (9, weights[1])], shuffle, 1, stop).unwrap().describe()
        };
        assert_eq!(
            describe([0.7, 0.3], true, Stop::First),
            "mix-v1:shuffle:feistel-v1,stop=first,slots=1030,len*slots=5*721+9*309"
        );
        assert_eq!(
            describe([7.0, 3.0], false, Stop::Never),
            "mix-v1:sequential,stop=never,slots=1030,len*slots=5*721+9*309"
        );
    }

    #[test]
    fn the_longest_mixtures_do_not_overflow() {
        for stop in [Stop::First, Stop::All] {
            let mix = Mix::new(&[(1 << 62, 1.0), (1 << 61, 60_000.0)], true, 1, stop).unwrap();
            assert!(mix.len(0).is_some_and(|len| len > 1 << 61));
            let turn = mix.turn(0, u64::MAX - 1);
            assert!(turn.sample < (1 << 62) + (1 << 61));
        }
        let mix = Mix::new(&[(1 << 62, 1.0), (3, 1.0)], true, 1, Stop::Never).unwrap();
        assert_eq!(mix.position(0, Turn { sample: 0, pass: u64::MAX }), None);
        assert_eq!(mix.position(0, Turn { sample: u64::MAX, pass: 0 }), None);
    }

    #[test]
    fn stop_is_written_in_small_letters() {
        assert_eq!(serde_json::to_string(&Stop::First).unwrap(), "\"first\"");
        assert_eq!(serde_json::from_str::<Stop>("\"never\"").unwrap(), Stop::Never);
    }
}
