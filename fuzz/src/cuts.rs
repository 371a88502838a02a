//! Views of arbitrary numbers, and what holds for each of them.

use std::sync::Arc;

use arbitrary::Arbitrary;
use windrow_core::view::{
    Bins, Coverage, Crop, Cursor, Mode, Overlong, Pack, Records, Segments, Strategy, Tail, View, Windows,
};
use windrow_core::{DType, Draw, Lengths, Pass, Piece, Result};

/// All of them.
pub const DTYPES: [DType; 13] = [
    DType::Bool,
    DType::U8,
    DType::U16,
    DType::U32,
    DType::U64,
    DType::I8,
    DType::I16,
    DType::I32,
    DType::I64,
    DType::F16,
    DType::Bf16,
    DType::F32,
    DType::F64,
];

/// A dtype by number.
pub fn dtype(number: u8) -> DType {
    DTYPES[usize::from(number) % DTYPES.len()]
}

/// The pass that samples are of.
const PASS: Pass = Pass { seed: 1, epoch: 2, pass: 3, view: 0 };

/// One way of cutting, with numbers as they come.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Cut {
    Pack { length: u64, eos: Option<i64> },
    Records { length: u64 },
    Windows { width: u64, stride: u64, pad: bool },
    Crop { length: u64, random: bool },
    Bins { length: u64, first_fit: bool },
    Segments { length: u64 },
    Cursor { rows: u64, length: u64, rank: u64, world_size: u64 },
    PackReshuffled { length: u64, eos: Option<i64>, apart: bool, scope: Option<u16> },
    BinsReshuffled { length: u64, first_fit: bool, scope: Option<u16> },
}

/// Bins need memory for `length` positions by design; below their limit the length stays small here.
const MOST_BIN_POSITIONS: u64 = 1 << 16;
const MOST_PIECES: u64 = 100_000;

impl Cut {
    /// The view, over these lengths.
    ///
    /// # Errors
    /// What the view's `new` says.
    pub fn view(self, lengths: Arc<dyn Lengths>) -> Result<Arc<dyn View>> {
        Ok(match self {
            Cut::Pack { length, eos } => Arc::new(Pack::new(lengths, length, eos)?),
            Cut::Records { length } => Arc::new(Records::new(lengths, length)?),
            Cut::Windows { width, stride, pad } => Arc::new(Windows::new(lengths, width, stride, tail(pad))?),
            Cut::Crop { length, random } => {
                Arc::new(Crop::new(lengths, length, if random { Mode::Random } else { Mode::Start })?)
            }
            Cut::Bins { length, first_fit } => {
                Arc::new(Bins::new(lengths, few_positions(length), strategy(first_fit))?)
            }
            Cut::Segments { length } => Arc::new(Segments::new(lengths, length, &[])?),
            Cut::Cursor { rows, length, rank, world_size } => {
                Arc::new(Cursor::new(lengths, rows, length, (rank, world_size))?)
            }
            Cut::PackReshuffled { length, eos, apart, scope } => {
                Arc::new(Pack::reshuffled(lengths, length, eos, !apart, scope.map(u64::from))?)
            }
            Cut::BinsReshuffled { length, first_fit, scope } => {
                let (length, scope) = (few_positions(length), scope.map(u64::from));
                Arc::new(Bins::reshuffled(lengths, length, strategy(first_fit), Overlong::Cut, scope, true)?)
            }
        })
    }

    /// The cut without values that are read for their labels only; `None` for a cut that has no such choice.
    ///
    /// # Errors
    /// What the view's `apart` says.
    pub fn apart(self, lengths: Arc<dyn Lengths>) -> Result<Option<Arc<dyn View>>> {
        Ok(Some(match self {
            Cut::Pack { length, eos } => Arc::new(Pack::apart(lengths, length, eos)?),
            Cut::Records { length } => Arc::new(Records::apart(lengths, length)?),
            Cut::Windows { width, stride, pad } => {
                Arc::new(Windows::apart(lengths, width, stride, tail(pad))?)
            }
            Cut::Bins { length, first_fit } => {
                Arc::new(Bins::apart(lengths, few_positions(length), strategy(first_fit))?)
            }
            Cut::Segments { length } => Arc::new(Segments::apart(lengths, length, &[])?),
            Cut::Crop { .. }
            | Cut::Cursor { .. }
            | Cut::PackReshuffled { .. }
            | Cut::BinsReshuffled { .. } => return Ok(None),
        }))
    }

    /// Limits rows to 512 positions: for batches.
    pub fn small(self) -> Cut {
        let few = |n: u64| n % 512 + 1;
        match self {
            Cut::Pack { length, eos } => Cut::Pack { length: few(length), eos },
            Cut::Records { length } => Cut::Records { length: few(length) },
            Cut::Windows { width, stride, pad } => {
                Cut::Windows { width: few(width), stride: few(stride), pad }
            }
            Cut::Crop { length, random } => Cut::Crop { length: few(length), random },
            Cut::Bins { length, first_fit } => Cut::Bins { length: few(length), first_fit },
            Cut::Segments { length } => Cut::Segments { length: few(length) },
            Cut::Cursor { rows, length, rank, world_size } => {
                let world_size = world_size % 4 + 1;
                Cut::Cursor { rows: few(rows), length: few(length), rank: rank % world_size, world_size }
            }
            Cut::PackReshuffled { length, eos, apart, scope } => {
                Cut::PackReshuffled { length: few(length), eos, apart, scope }
            }
            Cut::BinsReshuffled { length, first_fit, scope } => {
                Cut::BinsReshuffled { length: few(length), first_fit, scope }
            }
        }
    }

    /// Values of one sample, at most.
    fn most_values(self, view: &dyn View) -> u64 {
        match self {
            Cut::Crop { .. } => view.positions(),
            // One more for each record in it, none of which has fewer than two.
            Cut::Segments { .. } => view.positions().saturating_mul(2),
            // A bin may end in one label of a record that was cut.
            _ => view.positions() + 1,
        }
    }
}

fn few_positions(length: u64) -> u64 {
    if length <= 1 << 28 { length.min(MOST_BIN_POSITIONS) } else { length }
}

fn strategy(first_fit: bool) -> Strategy {
    if first_fit { Strategy::FirstFit } else { Strategy::BestFit }
}

fn tail(pad: bool) -> Tail {
    if pad { Tail::Pad } else { Tail::Drop }
}

/// Asks a view everything: for samples and records at both ends and in the middle, and for all where they are few.
pub fn check_view(cut: Cut, view: &dyn View, lengths: &dyn Lengths) {
    let (samples, records) = (view.len(), lengths.len());
    assert_eq!(view.describe(), view.describe());
    // A sample of very many records has as many pieces: they are asked for where that is little memory.
    let samples_seen = if view.positions().min(records) <= MOST_PIECES { samples } else { 0 };
    for sample in some(samples_seen) {
        let mut pieces = Vec::new();
        if view.pieces(sample, PASS.draw(sample), &mut pieces).is_err() {
            continue;
        }
        let mut total = 0;
        for piece in &pieces {
            total += piece.len();
            let Piece::Read(span) = piece else { continue };
            assert!(span.len > 0, "an empty piece in sample {sample} of {}", view.describe());
            if let Ok(length) = lengths.length(span.record) {
                let end = span.start.checked_add(span.len).expect("a span within 64 bits");
                assert!(end <= length, "{span:?} of {length} values, {}", view.describe());
            }
            if let Ok(inverse) = view.samples_of(span.record, PASS) {
                assert!(
                    inverse.contains(&sample),
                    "{sample} reads {span:?}, {inverse:?}, {}",
                    view.describe()
                );
            }
        }
        assert!(total <= cut.most_values(view), "{total} values in a sample of {}", view.describe());
    }
    assert!(view.pieces(samples, Draw::new(0, 0, 0, 0), &mut Vec::new()).is_err());
    for record in some(records) {
        if let Ok(inverse) = view.samples_of(record, PASS) {
            assert!(
                inverse.start <= inverse.end && inverse.end <= samples,
                "{inverse:?}, {}",
                view.describe()
            );
        }
    }
    assert!(view.samples_of(records, PASS).is_err());
    if let Ok(coverage) = view.coverage(PASS) {
        check_coverage(cut, view, lengths, coverage);
    }
}

fn some(n: u64) -> impl Iterator<Item = u64> {
    let few = (0..n).take(8);
    few.chain([n / 3, n / 2, n.saturating_sub(2), n.saturating_sub(1)].into_iter().filter(move |i| *i < n))
}

fn check_coverage(cut: Cut, view: &dyn View, lengths: &dyn Lengths, found: Coverage) {
    if lengths.len() > 200 {
        return;
    }
    let all: Result<Vec<u64>> = (0..lengths.len()).map(|record| lengths.length(record)).collect();
    let Ok(all) = all else { return };
    let total: u128 = all.iter().copied().map(u128::from).sum();
    assert_eq!(u128::from(found.used) + u128::from(found.unseen), total, "{found:?} {}", view.describe());
    // The random places of a crop change with the draw, their number does not: counted below like the others.
    if total > 4_000 || view.len() > 200 {
        return;
    }
    let mut seen: Vec<Vec<u64>> = all.iter().map(|length| vec![0; *length as usize]).collect();
    for sample in 0..view.len() {
        let mut pieces = Vec::new();
        view.pieces(sample, PASS.draw(sample), &mut pieces).expect("lengths that were read before");
        for piece in pieces {
            let Piece::Read(span) = piece else { continue };
            let values =
                &mut seen[span.record as usize][span.start as usize..(span.start + span.len) as usize];
            values.iter_mut().for_each(|n| *n += 1);
        }
    }
    let values = || seen.iter().flatten();
    let used = values().filter(|n| **n > 0).count() as u64;
    let skipped = seen.iter().filter(|record| record.iter().all(|n| *n == 0)).count() as u64;
    let expected = (used, values().sum::<u64>() - used, skipped);
    let counted = (found.used, found.repeated, found.skipped_records);
    assert_eq!(counted, expected, "{cut:?} of {all:?}");
}
