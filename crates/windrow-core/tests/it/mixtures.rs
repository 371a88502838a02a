//! Mixtures whose shares change, against a loop that counts.

use std::collections::HashSet;

use windrow_core::Kind;
use windrow_core::sampler::{
    BlockShape, Mix, MixOptions, MixPart, Order, PartOf, Phase, Sampler, Shard, Stop, Turn,
};

/// Random numbers of a test.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % n
    }

    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn weights(&mut self, n: usize) -> Vec<f64> {
        let mut weights: Vec<f64> = (0..n).map(|_| self.below(6) as f64).collect();
        if weights.iter().all(|weight| *weight == 0.0) {
            weights[0] = 1.0;
        }
        weights
    }

    fn order(&mut self, len: u64, blocks: bool) -> Order {
        let n_blocks = len.div_ceil(3);
        match self.below(3) {
            _ if blocks => {
                Order::Blocks(BlockShape { size: 3, lanes: 1 + self.below(n_blocks), rows: 2, pool: 2 })
            }
            0 => Order::Sequential,
            _ => Order::Shuffle,
        }
    }

    /// A mixture that stops only where all its parts have had their most passes.
    fn options(&mut self, depth: u64, blocks: bool) -> MixOptions {
        let n_parts = 1 + self.below(4) as usize;
        let all_end = self.one_in(4);
        let weights = self.weights(n_parts);
        let parts = weights.into_iter().map(|weight| {
            if depth > 0 && self.one_in(6) {
                let of = PartOf::Mix(self.options(depth - 1, blocks));
                return MixPart { of, weight, most_passes: None };
            }
            let len = 1 + self.below(40);
            let most_passes = (all_end || self.one_in(3)).then(|| 1 + self.below(3));
            MixPart { of: PartOf::Samples { len, order: self.order(len, blocks) }, weight, most_passes }
        });
        let parts: Vec<MixPart> = parts.collect();
        let mut start = if self.one_in(3) { 0 } else { 1 + self.below(60) };
        let mut phases = Vec::new();
        // Without a phase a weight of 0 is refused, so there is one.
        for _ in 0..1 + self.below(3) {
            phases.push(Phase { start, weights: self.weights(n_parts) });
            start += 1 + self.below(80);
        }
        MixOptions { parts, stop: Stop::Never, phases, rows: None }
    }
}

/// What was counted of a mixture.
struct Counted {
    options: MixOptions,
    inner: Vec<Option<Counted>>,
    position: u64,
    used: Vec<u64>,
    seen: HashSet<Turn2>,
    /// Since the shares changed: the weights, positions, and turns of each part.
    active: Vec<f64>,
    since: u64,
    had: Vec<u64>,
}

type Turn2 = (u64, u64);

impl Counted {
    fn new(options: &MixOptions) -> Counted {
        let inner = options.parts.iter().map(|part| match &part.of {
            PartOf::Mix(inner) => Some(Counted::new(inner)),
            PartOf::Samples { .. } => None,
        });
        let n = options.parts.len();
        Counted {
            inner: inner.collect(),
            options: options.clone(),
            position: 0,
            used: vec![0; n],
            seen: HashSet::new(),
            active: Vec::new(),
            since: 0,
            had: vec![0; n],
        }
    }

    /// Samples of a part.
    fn size(&self, part: usize) -> u64 {
        match (&self.options.parts[part].of, &self.inner[part]) {
            (PartOf::Samples { len, .. }, _) => *len,
            (_, Some(inner)) => (0..inner.used.len()).map(|part| inner.size(part)).sum(),
            _ => unreachable!(),
        }
    }

    fn is_left(&self, part: usize) -> bool {
        let most = self.options.parts[part].most_passes.map(|most| most * self.size(part));
        match &self.inner[part] {
            Some(inner) => !inner.is_over(),
            None => most.is_none_or(|most| self.used[part] < most),
        }
    }

    /// The weights that hold at the position, and whether a phase begins there.
    fn weights(&self) -> (Vec<f64>, bool) {
        let phase = self.options.phases.iter().rfind(|phase| phase.start <= self.position);
        let own = || self.options.parts.iter().map(|part| part.weight).collect();
        let weights: Vec<f64> = phase.map_or_else(own, |phase| phase.weights.clone());
        let left = weights.iter().enumerate();
        let left = left.map(|(part, weight)| if self.is_left(part) { *weight } else { 0.0 });
        (left.collect(), phase.is_some_and(|phase| phase.start == self.position))
    }

    fn is_over(&self) -> bool {
        self.weights().0.iter().all(|weight| *weight == 0.0)
    }

    fn take(&mut self, turn: Turn) {
        let (weights, begins) = self.weights();
        if begins || weights != self.active {
            (self.active, self.since, self.had) = (weights, 0, vec![0; self.used.len()]);
        }
        let (mut part, mut sample) = (0, turn.sample);
        while sample >= self.size(part) {
            sample -= self.size(part);
            part += 1;
        }
        assert!(self.active[part] > 0.0, "part {part} rests at {}", self.position);
        let (used, len) = (self.used[part], self.size(part));
        match (&self.options.parts[part].of, &mut self.inner[part]) {
            (PartOf::Samples { order, .. }, _) => {
                assert_eq!(turn.pass, used / len);
                assert!(self.seen.insert((turn.sample, turn.pass)), "{turn:?} comes twice");
                assert!(*order != Order::Sequential || sample == used % len);
            }
            (_, Some(inner)) => inner.take(Turn { sample, pass: turn.pass }),
            _ => unreachable!(),
        }
        self.used[part] += 1;
        self.had[part] += 1;
        self.position += 1;
        self.since += 1;
        let all: f64 = self.active.iter().sum();
        for (had, weight) in self.had.iter().zip(&self.active) {
            let off = (*had as f64 * all - self.since as f64 * weight).abs();
            assert!(off < all, "{:?} of {:?} after {}", self.had, self.active, self.since);
        }
    }

    fn of_views(&self) -> Vec<u64> {
        let of_part =
            |part: usize| self.inner[part].as_ref().map_or(vec![self.used[part]], Counted::of_views);
        (0..self.used.len()).flat_map(of_part).collect()
    }
}

fn turns(mix: &Mix, positions: std::ops::Range<u64>) -> Vec<Turn> {
    let mut out = Vec::new();
    mix.turns(0, positions, &mut out);
    out
}

const MOST: u64 = 160;

#[test]
fn ten_thousand_random_mixtures_are_those_that_a_loop_counts() {
    let (mut refused, mut ended) = (0, 0);
    for seed in 0..10_000 {
        let mut dice = Dice(seed);
        let blocks = dice.one_in(3);
        let options = dice.options(2, blocks);
        let mix = match Mix::of(&options, seed) {
            Ok(mix) => mix,
            Err(e) => {
                assert!(e.kind() == Kind::Config && e.message().contains("no part is left"), "{e}");
                refused += 1;
                continue;
            }
        };
        let mut counted = Counted::new(&options);
        let end = mix.len(0).unwrap_or(u64::MAX);
        assert_eq!(mix.epochs(), (end < u64::MAX).then_some(1));
        ended += u64::from(end < MOST);
        let end = end.min(MOST);
        let all = turns(&mix, 0..end);
        for (position, turn) in (0..).zip(&all) {
            assert!(!counted.is_over(), "seed {seed}");
            counted.take(*turn);
            assert_eq!(mix.turn(0, position), *turn);
            assert_eq!(mix.position(0, *turn), Some(position), "seed {seed}");
            if dice.one_in(16) {
                assert_eq!(mix.samples_of_views(position + 1), counted.of_views());
            }
        }
        assert_eq!(counted.is_over(), mix.len(0) == Some(end), "seed {seed}");
        let after = Turn { sample: all[0].sample, pass: 1 << 40 };
        assert!(mix.len(0).is_none() || mix.position(0, after).is_none());

        // Any number of ranks, with a stop in the middle.
        let (ranks, rows) = (1 + dice.below(4), 4 + dice.below(20));
        let mut shared = Vec::new();
        let mut at = 0;
        while at < end {
            let rows = rows.min(end - at);
            for rank in 0..ranks {
                let own = Shard::new(rank, ranks).unwrap().rows(rows);
                shared.extend(turns(&mix, at + own.start..at + own.end));
            }
            at += rows;
        }
        assert_eq!(shared, all);

        let from = dice.below(end);
        let to = from + 1 + dice.below(end - from);
        let mut read = Vec::new();
        assert_eq!(mix.blocks(0, from..to, &mut read), blocks, "seed {seed}");
        if blocks {
            let drawn = &all[from as usize..to as usize];
            assert!(
                drawn.iter().all(|turn| read.iter().any(|run| run.contains(&turn.sample))),
                "seed {seed}"
            );
            // Nothing of a part that rests, which has no turn there.
            let is_needed = |run: &std::ops::Range<u64>| {
                let view = mix.view_of(run.start).0;
                mix.samples_of_views(to)[view] > mix.samples_of_views(from)[view]
            };
            assert!(read.iter().all(is_needed), "seed {seed}");
        }

        // What comes later does not decide what comes before.
        let mut other = options.clone();
        let cut = 1 + dice.below(end);
        other.phases.retain(|phase| phase.start < cut);
        let weights = dice.weights(options.parts.len());
        other.phases.push(Phase { start: cut + dice.below(20), weights });
        if seed % 4 == 0
            && let Ok(other) = Mix::of(&other, seed)
        {
            let n = cut.min(other.len(0).unwrap_or(cut));
            assert_eq!(turns(&other, 0..n), all[..n as usize]);
            assert_eq!(other.described(n).words(), mix.described(n).words(), "seed {seed}");
        }
    }
    assert!(refused < 4000 && ended > 500, "{refused} refused, {ended} ended");
}

fn views(lens: &[u64]) -> Vec<MixPart> {
    let part =
        |&len| MixPart { of: PartOf::Samples { len, order: Order::Shuffle }, weight: 1.0, most_passes: None };
    lens.iter().map(part).collect()
}

fn endless(parts: Vec<MixPart>, phases: &[(u64, &[f64])]) -> MixOptions {
    let phases = phases.iter().map(|&(start, weights)| Phase { start, weights: weights.to_vec() });
    MixOptions { parts, stop: Stop::Never, phases: phases.collect(), rows: None }
}

#[test]
fn a_mixture_without_changes_is_that_of_before() {
    let plain = Mix::new(&[(70, 0.9), (30, 0.1)], true, 3, Stop::Never).unwrap();
    let phased = Mix::of(&endless(views(&[70, 30]), &[(0, &[0.9, 0.1]), (500, &[0.5, 0.5])]), 3).unwrap();
    assert_eq!(turns(&plain, 0..500), turns(&phased, 0..500));
    assert_ne!(turns(&plain, 500..600), turns(&phased, 500..600));
    assert_eq!(plain.described(500).words(), phased.described(500).words());
    assert_ne!(plain.described(501).words(), phased.described(501).words());
    assert_eq!(phased.described(500).words(), (plain.describe(), None));
    assert!(
        phased
            .describe()
            .starts_with("mix-v2:70*shuffle:feistel-v1+30*shuffle:feistel-v1,stop=never,phases=0:")
    );
    // What a part of a part is decides too.
    let nested = |weights: [f64; 2]| {
        let mut inner = views(&[5, 9]);
        (inner[0].weight, inner[1].weight) = (weights[0], weights[1]);
        let mut parts = views(&[70]);
        let of = PartOf::Mix(MixOptions { parts: inner, stop: Stop::All, ..MixOptions::default() });
        parts.push(MixPart { of, weight: 1.0, most_passes: None });
        Mix::of(&MixOptions { parts, stop: Stop::All, ..MixOptions::default() }, 3).unwrap().describe()
    };
    assert_ne!(nested([0.5, 0.5]), nested([0.6, 0.4]));
    assert_eq!(nested([0.5, 0.5]), nested([1.0, 1.0]));
}

#[test]
fn a_pass_of_a_mixture_is_one_of_its_epochs() {
    let inner = |stop| MixOptions { parts: views(&[10, 30]), stop, ..MixOptions::default() };
    let outer = |stop, of, most_passes| {
        let mut parts = views(&[1000]);
        parts.push(MixPart { of: PartOf::Mix(of), weight: 1.0, most_passes });
        Mix::of(&MixOptions { parts, stop, ..MixOptions::default() }, 5)
    };
    for (stop, most) in [(Stop::First, 21), (Stop::All, 61)] {
        // Before a sample of the inner mixture comes twice, or once all of them have come.
        let len = outer(stop, inner(stop), None).unwrap().len(0).unwrap();
        assert!(len <= 2 * most || stop == Stop::All && len > 1000, "{len}");
        let capped = outer(Stop::Never, inner(stop), Some(2)).unwrap();
        let counts = capped.samples_of_views(5000);
        assert!((counts[1] + counts[2]).abs_diff(2 * (most - 1)) <= 4, "{counts:?}");
    }
    let refused = |stop, of, most| outer(stop, of, most).err().map(|e| (e.kind(), e.to_string()));
    for (stop, most) in [(Stop::First, None), (Stop::All, None), (Stop::Never, Some(2))] {
        let (kind, said) = refused(stop, inner(Stop::Never), most).unwrap();
        assert!(kind == Kind::Config && said.contains("part 1 is a mixture that never ends"), "{said}");
    }
    // One that ends by itself has a single pass, and cannot be in one that counts on more.
    let mut ends = inner(Stop::Never);
    ends.parts.iter_mut().for_each(|part| part.most_passes = Some(1));
    assert!(refused(Stop::All, ends.clone(), None).unwrap().1.contains("ends after 1 pass"));
    let never = outer(Stop::Never, ends, Some(7)).unwrap();
    assert_eq!(never.samples_of_views(5000), [4960, 10, 30]);
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let refused = |options: &MixOptions| {
        let error = Mix::of(options, 0).unwrap_err();
        assert_eq!(error.kind(), Kind::Config);
        format!("{error:#}")
    };
    let two = || views(&[5, 9]);
    assert!(
        refused(&endless(two(), &[(9, &[1.0, 2.0]), (9, &[1.0, 1.0])])).contains("each must begin later")
    );
    assert!(refused(&endless(two(), &[(9, &[1.0])])).contains("1 weights for 2 parts"));
    assert!(refused(&endless(two(), &[(9, &[0.0, 0.0])])).contains("from sample 9"));
    assert!(refused(&endless(two(), &[(9, &[-1.0, 1.0])])).contains("weight -1"));
    let stops = MixOptions { stop: Stop::All, ..endless(two(), &[(9, &[1.0, 2.0])]) };
    assert!(refused(&stops).contains(".stop(\"never\")"));
    let mut capped = two();
    capped[0].most_passes = Some(2);
    let stops = MixOptions { parts: capped.clone(), stop: Stop::First, ..MixOptions::default() };
    assert!(refused(&stops).contains("max_epochs"));
    capped[0].most_passes = Some(0);
    assert!(refused(&endless(capped.clone(), &[])).contains("max_epochs of 0"));
    (capped[0].most_passes, capped[1].most_passes) = (Some(1), Some(1));
    let too_late = refused(&endless(capped, &[(14, &[1.0, 1.0])]));
    assert!(too_late.contains("begins at sample 14, and no part is left at sample 14"), "{too_late}");
    // Blocks that would fill the memory.
    let lens: Vec<u64> = (0..3000).map(|n| 100 + n).collect();
    let mut many = views(&lens);
    many.iter_mut().for_each(|part| part.most_passes = Some(1));
    assert!(refused(&endless(many, &[])).contains("at most 16777216"));
}
