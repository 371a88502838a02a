//! The state of a run and the text of a plan, of any bytes; and runs that go on from any numbers.
#![no_main]

use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use windrow::Recipe;
use windrow_core::collate::NextToken;
use windrow_core::format::{Options, Probe, open};
use windrow_core::plan::{Feed, Identity, LastBatch, Plan, State, Steps, Workspace};
use windrow_core::sampler::{Shard, Shuffle};
use windrow_core::store::Memory;
use windrow_core::view::Pack;
use windrow_formats::FORMATS;

const MOST_ROWS: u64 = 1 << 16;

static PLAN: LazyLock<(Plan, Identity)> = LazyLock::new(|| {
    let store = Memory::new().with("a.bin", (0..400u32).flat_map(u32::to_le_bytes).collect::<Vec<u8>>());
    let look = Probe::at(FORMATS, Arc::new(store), "a.bin").expect("a file");
    let source = open(FORMATS, &look, &Options::default()).expect("tokens");
    let view = Arc::new(Pack::new(source.clone(), 4, None).expect("a view"));
    let collate = NextToken::new(source.schema(), 4, None, false, 0).expect("a layout");
    let feed = Feed::new(source, view, Arc::new(collate));
    let sampler = Arc::new(Shuffle::new(feed.len(), 1));
    let plan = Plan::new(vec![feed], sampler, 1).expect("a plan");
    let identity = plan.identity().expect("an identity");
    (plan, identity)
});

// A line of JSON, which may be a state or a plan; what follows it are numbers.
fuzz_target!(|data: &[u8]| {
    let (plan, identity) = &*PLAN;
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(recipe) = Recipe::from_json(text) {
        let again = Recipe::from_json(&recipe.to_json()).expect("what was written can be read");
        assert_eq!(recipe, again);
        assert_eq!(recipe.to_json(), again.to_json());
    }
    let (line, numbers) = text.split_once('\n').unwrap_or((text, ""));
    let Ok(state) = State::from_json(line) else { return };
    let again = serde_json::to_string(&state).expect("a plain struct");
    assert_eq!(State::from_json(&again).expect("what was written can be read"), state);
    let _ = identity.check(&state.plan);
    let own = State { plan: identity.to_string(), ..state };
    let Ok(mut cursor) = own.cursor(identity, own.seed) else { return };
    let mut numbers = numbers.split(' ').map(|n| n.parse().unwrap_or(0u64));
    let mut number = || numbers.next().unwrap_or(1);
    let Ok(shard) = Shard::new(number(), number()) else { return };
    let steps = Steps {
        global_batch_size: number(),
        shard,
        last: [LastBatch::Drop, LastBatch::Keep, LastBatch::Repeat][(number() % 3) as usize],
        epochs: Some(number()).filter(|n| *n > 0),
        micro_batches: number().clamp(1, 4),
        is_balanced: false,
    };
    // A batch that is filled up has the number of rows that it is told, which take time.
    let is_huge = steps.last == LastBatch::Repeat && steps.global_batch_size > MOST_ROWS;
    if is_huge || steps.check(plan.sampler(), cursor).is_err() {
        return;
    }
    assert!(steps.in_epoch(plan.sampler(), cursor.epoch).is_some());
    for _ in 0..4 {
        let Some(step) = steps.next(plan.sampler(), cursor) else { return };
        let own = step.in_order();
        assert!(own.start >= step.all.start && own.end <= step.all.end);
        plan.batch_of(&step, None, &mut Workspace::default()).expect("a step's batch");
        cursor = step.after();
    }
});
