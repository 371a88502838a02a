//! Positions that are skipped: steps forwards, by number and backwards agree, whatever is skipped and however batches end.

use std::sync::Arc;

use windrow_core::plan::{Cursor, LastBatch, Steps, is_skipped};
use windrow_core::sampler::{Mix, Sampler, Sequential, Shard, Skipping, Stop};

const LEN: u64 = 10;

fn skipping(skips: &[(u64, u64)]) -> Skipping {
    Skipping::new(Arc::new(Sequential::new(LEN)), skips).unwrap()
}

fn steps(global_batch_size: u64, last: LastBatch) -> Steps {
    let (shard, epochs) = (Shard::ALONE, None);
    Steps { global_batch_size, shard, last, epochs, micro_batches: 1, is_balanced: false }
}

#[test]
fn steps_by_number_and_backwards_are_those_of_a_walk() {
    let cases: [&[(u64, u64)]; 8] = [
        &[],
        &[(0, 3)],
        &[(4, 5), (7, 8)],
        &[(8, 12)],
        &[(10, 20)],
        &[(5, 47), (48, 49)],
        &[(0, 1), (10, 11), (19, 31)],
        &[(33, 34), (1000, 2000)],
    ];
    for (skips, batch) in cases.into_iter().flat_map(|skips| (1..=7).map(move |batch| (skips, batch))) {
        for last in [LastBatch::Drop, LastBatch::Keep, LastBatch::Repeat] {
            let (sampler, steps) = (skipping(skips), steps(batch, last));
            let mut cursor = Cursor::default();
            let mut in_epoch = [0u64; 400];
            let mut delivered = Vec::new();
            for number in 0..120 {
                let step = steps.next(&sampler, cursor).unwrap();
                assert_eq!(
                    steps.find(&sampler, None, number).unwrap(),
                    step,
                    "{skips:?} {batch} {last:?} {number}"
                );
                let number_in_epoch = in_epoch[step.epoch as usize];
                in_epoch[step.epoch as usize] += 1;
                assert_eq!(steps.find(&sampler, Some(step.epoch), number_in_epoch).unwrap(), step);
                for row in 0..step.all.end - step.all.start {
                    let position = step.position(&sampler, row);
                    assert!(
                        !is_skipped(&sampler, step.epoch, position),
                        "{skips:?} {batch} {last:?} {position}"
                    );
                    let mut places = steps.places(&sampler, step.epoch, position);
                    assert!(
                        places.any(|place| place == (number_in_epoch, row)),
                        "{skips:?} {batch} {last:?} {position}"
                    );
                }
                delivered.push((step.epoch, step.all.start..step.after().samples));
                cursor = step.after();
            }
            for epoch in 0..cursor.epoch {
                assert_eq!(
                    steps.in_epoch(&sampler, epoch),
                    Some(in_epoch[epoch as usize]),
                    "{skips:?} {batch} {last:?} {epoch}"
                );
                for position in 0..LEN {
                    let came = delivered.iter().any(|(of, range)| *of == epoch && range.contains(&position));
                    let is_skipped = is_skipped(&sampler, epoch, position);
                    assert!(!(came && is_skipped));
                    assert!(
                        came || is_skipped || last == LastBatch::Drop,
                        "{skips:?} {batch} {last:?} {epoch} {position}"
                    );
                    // The epoch's first samples also fill batches.
                    let is_placed = steps.places(&sampler, epoch, position).next().is_some();
                    assert!(is_placed == came || (is_placed && last == LastBatch::Repeat));
                }
            }
            let is_all = last != LastBatch::Drop;
            for (_, to) in skips.iter().filter(|(_, to)| is_all && *to < LEN * cursor.epoch) {
                assert!(
                    delivered.iter().any(|(epoch, range)| epoch * LEN + range.start == *to),
                    "{skips:?} {batch} {last:?}"
                );
            }
        }
    }
}

#[test]
fn a_skip_of_very_many_epochs_is_gone_past_at_once() {
    // It ends with an epoch, of which a part would fill no batch.
    let sampler = skipping(&[(15, (1 << 60) + 4)]);
    let steps = steps(5, LastBatch::Drop);
    let before = steps.find(&sampler, None, 2).unwrap();
    assert_eq!((before.epoch, before.all.clone()), (1, 0..5));
    let after = steps.next(&sampler, before.after()).unwrap();
    assert_eq!(after.epoch * LEN + after.all.start, (1 << 60) + 4);
    assert_eq!(steps.find(&sampler, None, 3).unwrap(), after);
    let last = steps.find(&sampler, None, u64::MAX).unwrap();
    assert_eq!((last.epoch, last.all.clone()), (after.epoch + (u64::MAX - 3) / 2, 0..5));
}

#[test]
fn a_batch_before_a_skip_needs_a_row_for_each_rank() {
    let check = |skips: &[(u64, u64)], samples| {
        let steps = Steps { shard: Shard::new(0, 3).unwrap(), ..steps(5, LastBatch::Keep) };
        steps.check(&skipping(skips), Cursor::at(0, samples))
    };
    assert!(check(&[], 0).is_ok());
    assert!(check(&[(5, 10)], 0).is_ok());
    assert!(check(&[(7, 10)], 0).unwrap_err().message().contains("2 of 5 rows, for 3 ranks"));
    assert!(check(&[(5, 8)], 0).unwrap_err().message().contains("2 of 5 rows"));
    assert!(check(&[(8, 10)], 0).is_ok());
    assert!(check(&[(8, 10)], 7).is_err());
    assert_eq!(skipping(&[(1, 2)]).len(0), Some(LEN));
}

#[test]
fn so_does_one_of_a_mixture_that_never_ends() {
    let mix = Mix::new(&[(40, 0.5), (20, 0.5)], true, 1, Stop::Never).unwrap();
    let mix: Arc<dyn Sampler> = Arc::new(mix);
    let check = |skips: &[(u64, u64)], samples| {
        let steps = Steps { shard: Shard::new(0, 3).unwrap(), ..steps(5, LastBatch::Keep) };
        steps.check(&Skipping::new(mix.clone(), skips).unwrap(), Cursor::at(0, samples))
    };
    assert!(check(&[], 0).is_ok());
    assert!(check(&[(5, 9), (19, 30)], 0).is_ok());
    assert!(check(&[(7, 9)], 0).unwrap_err().message().contains("2 of 5 rows, for 3 ranks"));
    assert!(check(&[(5, 9), (16, 30)], 0).unwrap_err().message().contains("2 of 5 rows"));
    // What is behind the run decides nothing.
    assert!(check(&[(7, 9)], 9).is_ok());
    assert!(check(&[(7, 9)], 4).is_ok());
}
