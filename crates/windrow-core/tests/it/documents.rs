//! Documents in packs, against a plain reference over the whole stream.

use std::sync::Arc;

use windrow_core::collate::{Collate, Documents, DocumentsLayout, Labels, Positions};
use windrow_core::plan::Feed;
use windrow_core::source::SharedSource;
use windrow_core::view::Pack;
use windrow_core::{DType, Decode, Draw, Element, Kind};

use super::toy::Toy;

/// One value of the stream: its document, its position there, and whether a track lets it be learned.
#[derive(Clone, Copy)]
struct Token {
    id: i64,
    starts: bool,
    position: i32,
    learned: bool,
}

struct Case {
    records: Vec<Vec<u16>>,
    mask: Option<Vec<Vec<u8>>>,
    eos: Option<i64>,
}

impl Case {
    fn drawn(seed: u64) -> Case {
        let mut stream = 0;
        let mut below = |n: u64| {
            stream += 1;
            Draw::new(seed, 0, 0, 0).below(n, stream)
        };
        let n = 1 + below(9);
        let most = 1 + below(40);
        let records: Vec<Vec<u16>> =
            (0..n).map(|_| (0..below(most)).map(|_| below(6) as u16).collect()).collect();
        let mask = (below(3) == 0)
            .then(|| records.iter().map(|r: &Vec<u16>| r.iter().map(|_| below(2) as u8).collect()).collect());
        let eos = (below(2) == 0).then(|| below(6) as i64);
        Case { records, mask, eos }
    }

    fn source(&self) -> SharedSource {
        let bytes = |r: &Vec<u16>| (r.iter().flat_map(|id| id.to_le_bytes()).collect(), Decode::Plain);
        let toy = Toy::stored(Element::little(DType::U16), self.records.iter().map(bytes).collect());
        match &self.mask {
            Some(mask) => Arc::new(toy.with_mask(&mask.iter().map(Vec::as_slice).collect::<Vec<_>>())),
            None => Arc::new(toy),
        }
    }

    fn stream(&self) -> Vec<Token> {
        let mut all: Vec<Token> = Vec::new();
        for (number, record) in self.records.iter().enumerate() {
            let own = record.iter().map(|id| i64::from(*id)).chain(self.eos);
            for (at, id) in own.enumerate() {
                let ended = self.eos.is_some() && all.last().is_some_and(|last| Some(last.id) == self.eos);
                let starts = at == 0 && !record.is_empty() || ended || all.is_empty();
                let position = if starts { 0 } else { all.last().map_or(0, |last| last.position + 1) };
                // The track excludes what is 1; an EOS that is put in is learned.
                let learned =
                    self.mask.as_ref().is_none_or(|mask| mask[number].get(at).is_none_or(|m| *m == 0));
                all.push(Token { id, starts, position, learned });
            }
        }
        all
    }

    fn check(&self, length: usize, labels: Labels, positions: Positions) {
        let layout = DocumentsLayout { positions, ..DocumentsLayout::default() };
        let source = self.source();
        let schema = source.schema().clone();
        let n = length as u64;
        let documents = Documents::new(&schema, n, None, self.eos, layout).unwrap().labels(labels).unwrap();
        let cut = if labels == Labels::Next { Pack::new } else { Pack::apart };
        let view = Arc::new(cut(source.clone(), n, self.eos).unwrap().telling_record());
        let names: Vec<String> =
            documents.fields(&mut std::iter::empty()).unwrap().iter().map(|f| f.name.to_string()).collect();
        let feed = Feed::new(source.clone(), view.clone(), Arc::new(documents.clone()));
        let stream = self.stream();
        let ahead = usize::from(labels == Labels::Next);
        for block in 0..feed.len() {
            let from = block as usize * length;
            let tokens = &stream[from..from + length + ahead];
            let batch = feed.batch(&[block], 0).unwrap();
            let inputs: Vec<i64> = tokens[..length].iter().map(|t| t.id).collect();
            assert_eq!(batch.get::<i64>("input_ids").unwrap(), inputs);
            let is_labelled = |(at, t): (usize, &Token)| match labels {
                Labels::Next => t.learned && !t.starts,
                Labels::Same => t.learned && !t.starts && at > 0,
                _ => t.learned,
            };
            let labelled: Vec<bool> = tokens[ahead..].iter().enumerate().map(is_labelled).collect();
            if labels != Labels::None {
                let expected: Vec<i64> = tokens[ahead..]
                    .iter()
                    .zip(&labelled)
                    .map(|(t, labelled)| if *labelled { t.id } else { -100 })
                    .collect();
                assert_eq!(batch.get::<i64>("labels").unwrap(), expected);
            }
            assert_eq!(names.iter().any(|name| name == "loss_masks"), self.mask.is_some());
            if self.mask.is_some() {
                let masks: Vec<i32> = labelled.iter().map(|labelled| i32::from(*labelled)).collect();
                assert_eq!(batch.get::<i32>("loss_masks").unwrap(), masks);
            }
            let mut segments = vec![0];
            let mut counted = vec![0];
            let mut ends = vec![0];
            for (at, token) in tokens[..length].iter().enumerate().skip(1) {
                segments.push(segments[at - 1] + i32::from(token.starts));
                counted.push(if token.starts { 0 } else { counted[at - 1] + 1 });
                if token.starts {
                    ends.push(at as i32);
                }
            }
            ends.resize(length + 1, length as i32);
            let whole: Vec<i32> = tokens[..length].iter().map(|t| t.position).collect();
            let expected = if positions == Positions::Block { counted } else { whole };
            assert_eq!(batch.get::<i32>("position_ids").unwrap(), expected, "{block} of {length}");
            assert_eq!(batch.get::<i32>("segment_ids").unwrap(), segments);
            assert_eq!(batch.get::<i32>("cu_seqlens").unwrap(), ends);
            let longest = ends.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
            assert_eq!(batch.get::<i32>("max_seqlen").unwrap(), [longest]);
            // One field alone is what it is among the others.
            for name in &names {
                let alone = Arc::new(documents.clone().only(&[name]).unwrap());
                let alone = Feed::new(source.clone(), view.clone(), alone).batch(&[block], 0).unwrap();
                let field = batch.fields().iter().position(|f| f.name == *name).unwrap();
                assert_eq!(alone.bytes(0), batch.bytes(field), "{name}");
            }
        }
    }
}

#[test]
fn documents_are_those_of_a_plain_loop_over_the_stream() {
    for seed in 0..400 {
        let case = Case::drawn(seed);
        for length in [1, 2, 5, 16] {
            for labels in [Labels::Next, Labels::Same, Labels::None] {
                for positions in [Positions::Block, Positions::Document] {
                    case.check(length, labels, positions);
                }
            }
        }
    }
}

#[test]
fn what_cannot_be_kept_apart_is_refused() {
    let new = |toy: Toy, dtype, layout| {
        Documents::new(windrow_core::source::Source::schema(&toy), 4, dtype, None, layout)
    };
    let usual = DocumentsLayout::default;
    let fractions = Toy::series(&[&[1.0, 2.0]], 2, &[Decode::Plain]);
    assert_eq!(new(fractions, None, usual()).unwrap_err().kind(), Kind::Config);
    assert_eq!(new(Toy::tokens(&[3]), Some(DType::U16), usual()).unwrap_err().kind(), Kind::Config);
    let other = DocumentsLayout { ignore_index: 0, ..usual() };
    let documents = new(Toy::tokens(&[3]), Some(DType::U16), other).unwrap();
    let error = documents.clone().only(&["input_ids", "tokens"]).unwrap_err();
    assert!(
        format!("{error:#}").contains("\"tokens\"")
            && error.hint_text().is_some_and(|h| h.contains("cu_seqlens"))
    );
    assert!(documents.clone().only(&["labels", "labels"]).is_err());
    assert!(documents.only(&["attention_mask"]).is_ok());
}
