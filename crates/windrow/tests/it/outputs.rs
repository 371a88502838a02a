//! Fields under other names and of other dtypes, and those that are made of others: against the batches of a loader without them, and
//! against what the data says.

use tempfile::TempDir;
use windrow::{
    Batch, Batches, Bins, DType, DocumentsLayout, Kind, Labels, LoaderBuilder, MixtureOptions, Pack, Pad,
    Records, Samples, Segments, Stop, mix_with, open,
};

/// Records of these lengths; no number is 0, and none is in two records.
const LENGTHS: [i64; 9] = [5, 3, 8, 1, 7, 2, 6, 4, 16];
const LABEL: i64 = -7;

struct Data {
    _folder: TempDir,
    samples: Vec<(&'static str, Samples)>,
}

fn data() -> Data {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("series.json");
    let records: Vec<Vec<i64>> =
        (1..).zip(LENGTHS).map(|(record, n)| (0..n).map(|i| 100 * record + i).collect()).collect();
    std::fs::write(&path, format!("{records:?}")).unwrap();
    let ds = open(&path).unwrap();
    let documents = || DocumentsLayout { ignore_index: LABEL, ..DocumentsLayout::default() };
    let pack = || Pack::new(12).eos(0).documents(documents());
    let samples = vec![
        ("blocks", ds.pack(12).unwrap()),
        ("pack", ds.pack(pack()).unwrap()),
        ("pack same", ds.pack(pack().labels(Labels::Same)).unwrap()),
        ("pack filled", ds.pack(pack().multiple(4)).unwrap()),
        ("bins", ds.bins(16).unwrap()),
        (
            "bins same",
            ds.bins(Bins::new(16).labels(Labels::Same).fields(&["labels", "cu_seqlens", "segment_ids"]))
                .unwrap(),
        ),
        ("bins filled", ds.bins(Bins::new(16).multiple(4).labels(Labels::Same)).unwrap()),
        ("records", ds.records(Records::new(12).pad(Pad::Longest)).unwrap()),
        (
            "segments",
            ds.segments(Segments::new(16).buckets(vec![8, 12, 16]).labels(Labels::Same).fields(&[
                "labels",
                "segment_ids",
                "cu_seqlens",
            ]))
            .unwrap(),
        ),
    ];
    Data { _folder: folder, samples }
}

impl Data {
    fn of(&self, name: &str) -> &Samples {
        &self.samples.iter().find(|(other, _)| *other == name).unwrap().1
    }

    fn loader(&self, name: &str) -> LoaderBuilder {
        self.of(name).loader().batch_size(2).rank(0, 1).seed(3).num_threads(Some(1))
    }
}

fn all(builder: &LoaderBuilder) -> Vec<Batch> {
    builder.clone().epochs(Some(1)).build().unwrap().map(Result::unwrap).collect()
}

fn names(batch: &Batch) -> Vec<&str> {
    batch.fields().iter().map(|field| &*field.name).collect()
}

fn refused(builder: LoaderBuilder) -> String {
    let error = builder.build().unwrap_err();
    assert_eq!(error.kind(), Kind::Config, "{error}");
    format!("{error:#}")
}

/// The rows of a field.
fn rows<T: bytemuck::Pod>(batch: &Batch, name: &str) -> Vec<Vec<T>> {
    let numbers = batch.get::<T>(name).unwrap();
    numbers.chunks(numbers.len() / batch.rows()).map(<[T]>::to_vec).collect()
}

// What the three are, from the batch of a loader that has not made them.
fn check(data: &Data, view: &str, ignored: i64) {
    let plain = data.loader(view);
    let is_own = names(&all(&plain)[0]).contains(&"loss_masks");
    let has_segments = names(&all(&plain)[0]).contains(&"segment_ids");
    let of_documents = [("segments", Some("segments")), ("seq_lens", Some("lens"))];
    let asked = [("loss_masks", Some("learned"))]
        .into_iter()
        .chain(of_documents.into_iter().filter(|_| has_segments));
    let made = all(&plain.clone().names(asked));
    let plain = all(&plain);
    assert!(plain.len() > 1 && plain.len() == made.len(), "{view}");
    for (plain, made) in plain.iter().zip(&made) {
        for (labels, masks) in rows::<i64>(plain, "labels").iter().zip(rows::<i32>(made, "learned")) {
            let expected: Vec<i32> = labels.iter().map(|label| i32::from(*label != ignored)).collect();
            assert!(is_own || masks == expected, "{view}: {labels:?} {masks:?}");
        }
        if !has_segments {
            continue;
        }
        for (row, (ids, ends)) in
            rows::<i32>(plain, "segment_ids").into_iter().zip(rows::<i32>(plain, "cu_seqlens")).enumerate()
        {
            let segments = &rows::<i32>(made, "segments")[row];
            assert_eq!(*segments, ids.iter().map(|id| id + 1).collect::<Vec<_>>(), "{view}");
            let lens = &rows::<i32>(made, "lens")[row];
            assert_eq!(lens.len(), ends.len() - 1, "{view}");
            // The lengths of runs, then zeros.
            let runs: Vec<i32> = segments
                .chunk_by(|a, b| a == b)
                .filter(|run| run[0] > 0)
                .map(|run| run.len() as i32)
                .collect();
            assert_eq!(lens[..runs.len()], runs[..], "{view}: {segments:?}");
            assert!(lens[runs.len()..].iter().all(|len| *len == 0), "{view}: {lens:?}");
        }
        // The others are what they were.
        for (number, field) in
            plain.fields().iter().enumerate().filter(|(_, field)| field.name != "loss_masks")
        {
            let other = made.fields().iter().position(|other| other == field).unwrap();
            assert_eq!(plain.bytes(number), made.bytes(other), "{view} {}", field.name);
        }
    }
}

#[test]
fn made_fields_are_what_the_others_say() {
    let data = data();
    for (view, _) in &data.samples {
        check(&data, view, if view.starts_with("pack") { LABEL } else { Labels::IGNORED });
    }
}

#[test]
fn a_made_mask_is_what_the_data_says() {
    let data = data();
    // A label is of the next document where its input is the EOS token.
    for batch in all(&data.loader("pack").names([("loss_masks", Some("mask"))])) {
        let masks = batch.get::<i32>("mask").unwrap();
        let expected: Vec<i32> =
            batch.get::<i64>("input_ids").unwrap().iter().map(|id| i32::from(*id != 0)).collect();
        assert_eq!(masks, expected);
        assert!(masks.contains(&0) && masks.contains(&1));
    }
    for batch in all(&data.loader("blocks").names([("loss_masks", Some("mask"))])) {
        assert!(batch.get::<i32>("mask").unwrap().iter().all(|mask| *mask == 1));
    }
    // Whole records, the first token of which nothing tells.
    let mut lens = Vec::new();
    for batch in all(&data
        .loader("bins same")
        .drop_last(false)
        .names([("loss_masks", Some("mask")), ("seq_lens", Some("lens"))]))
    {
        let learned: i32 = batch.get::<i32>("mask").unwrap().iter().sum();
        let own: Vec<i32> =
            batch.get::<i32>("lens").unwrap().iter().copied().filter(|len| *len > 0).collect();
        assert_eq!(learned, own.iter().map(|len| len - 1).sum::<i32>());
        lens.extend(own);
    }
    lens.sort_unstable();
    let mut expected: Vec<i32> = LENGTHS.iter().map(|n| *n as i32).collect();
    expected.sort_unstable();
    assert_eq!(lens, expected);
}

#[test]
fn fields_are_renamed_left_out_and_cast() {
    let data = data();
    let wanted = [
        ("input_ids", Some("tokens")),
        ("loss_masks", Some("loss_mask")),
        ("cu_seqlens", None),
        ("max_seqlen", None),
        ("segment_ids", None),
    ];
    let cast = [("loss_masks", DType::F32), ("position_ids", DType::I64), ("input_ids", DType::U16)];
    for threads in [0, 3] {
        let plain = data.loader("pack").num_threads(Some(threads));
        let batches = all(&plain.clone().names(wanted).dtypes(cast));
        for (plain, batch) in all(&plain).iter().zip(&batches) {
            let fields: Vec<String> =
                batch.fields().iter().map(|field| format!("{} {}", field.name, field.dtype)).collect();
            assert_eq!(fields, ["tokens uint16", "labels int64", "position_ids int64", "loss_mask float32"]);
            assert_eq!(plain.get::<i64>("labels").unwrap(), batch.get::<i64>("labels").unwrap());
            let wide = |numbers: &[i32]| numbers.iter().map(|n| i64::from(*n)).collect::<Vec<_>>();
            assert_eq!(wide(plain.get("position_ids").unwrap()), batch.get::<i64>("position_ids").unwrap());
            let tokens = batch.get::<u16>("tokens").unwrap().iter().map(|id| i64::from(*id));
            assert_eq!(tokens.collect::<Vec<_>>(), plain.get::<i64>("input_ids").unwrap());
            let masks: Vec<f32> = plain
                .get::<i64>("labels")
                .unwrap()
                .iter()
                .map(|label| f32::from(u8::from(*label != LABEL)))
                .collect();
            assert_eq!(masks, batch.get::<f32>("loss_mask").unwrap());
            // Counts are those of the layout.
            assert_eq!((plain.values(), plain.positions()), (batch.values(), batch.positions()));
        }
        assert_eq!(batches.len(), all(&plain).len());
    }
}

#[test]
fn every_dtype_holds_what_it_can() {
    let data = data();
    for dtype in [
        DType::U8,
        DType::U16,
        DType::U32,
        DType::U64,
        DType::I8,
        DType::I16,
        DType::I64,
        DType::F16,
        DType::Bf16,
        DType::F32,
        DType::F64,
    ] {
        for (plain, batch) in
            all(&data.loader("bins")).iter().zip(all(&data.loader("bins").dtypes([("position_ids", dtype)])))
        {
            let field = batch.fields().iter().position(|field| field.name == "position_ids").unwrap();
            assert_eq!(batch.fields()[field].dtype, dtype);
            for (position, bytes) in
                plain.get::<i32>("position_ids").unwrap().iter().zip(batch.bytes(field).chunks(dtype.size()))
            {
                let mut expected = Vec::new();
                windrow::dev::number::Number::Int(i64::from(*position)).write(dtype, &mut expected);
                assert_eq!(bytes, expected, "{dtype}");
            }
        }
    }
    let batch = all(&data.loader("bins").dtypes([("loss_masks", DType::Bool)])).remove(0);
    assert!(batch.get::<u8>("loss_masks").unwrap().iter().all(|mask| *mask <= 1));
}

#[test]
fn a_number_that_does_not_fit_is_an_error_of_its_batch() {
    let data = data();
    for (field, dtype, expected) in [
        ("input_ids", DType::U8, "input_ids of row 0 of the batch: the number 300 does not fit uint8"),
        ("labels", DType::U16, "labels of row 0 of the batch: the number -7 does not fit uint16"),
        ("position_ids", DType::Bool, "position_ids of row 0 of the batch: the number 2 does not fit bool"),
        ("input_ids", DType::Bf16, "input_ids of row 0 of the batch: the number 301 does not fit bfloat16"),
    ] {
        let builder = data.loader("pack").shuffle(false).dtypes([(field, dtype)]);
        let mut loader = builder.build().unwrap();
        let error = loader.next_batch().unwrap().unwrap_err();
        assert_eq!((error.kind(), error.message()), (Kind::Corrupt, expected));
        assert!(format!("{error:#}").contains(field));
        // The state counts no batch that was not delivered.
        assert_eq!(loader.cursor().samples, 0);
    }
}

#[test]
fn names_and_dtypes_are_no_part_of_the_plan() {
    let data = data();
    for (view, _) in &data.samples {
        let plain = data.loader(view);
        let other = plain.clone().names([("labels", Some("targets"))]).dtypes([("labels", DType::F64)]);
        let [mut one, mut two] = [&plain, &other].map(|builder| builder.build().unwrap());
        assert_eq!(one.identity().to_string(), two.identity().to_string());
        assert_eq!(plain.recipe().unwrap().to_json(), other.recipe().unwrap().to_json());
        one.next_batch().unwrap().unwrap();
        two.resume(&one.state()).unwrap();
        let [next, same] = [&mut one, &mut two].map(|loader| loader.next_batch().unwrap().unwrap());
        let labels: Vec<f64> = next.get::<i64>("labels").unwrap().iter().map(|label| *label as f64).collect();
        assert_eq!(labels, same.get::<f64>("targets").unwrap(), "{view}");
        assert_eq!(one.state(), two.state());
    }
}

#[test]
fn a_rank_of_a_context_group_has_the_fields_of_its_part() {
    let data = data();
    let ask = |rank| {
        data.loader("pack filled")
            .context((rank, 2))
            .names([("loss_masks", Some("mask")), ("segments", Some("segments"))])
    };
    let whole = all(&data
        .loader("pack filled")
        .names([("loss_masks", Some("mask")), ("segments", Some("segments"))]));
    let parts = [0, 1].map(|rank| all(&ask(rank)));
    for (number, whole) in whole.iter().enumerate() {
        for name in ["mask", "segments"] {
            let mut joined: Vec<i32> =
                parts.iter().flat_map(|part| part[number].get::<i32>(name).unwrap().to_vec()).collect();
            let mut whole = whole.get::<i32>(name).unwrap().to_vec();
            joined.sort_unstable();
            whole.sort_unstable();
            assert_eq!(joined, whole);
        }
    }
}

#[test]
fn a_mixture_renames_the_fields_of_all_its_parts() {
    let data = data();
    let short = data.of("bins").clone();
    let long = data.of("bins").dataset().bins(32).unwrap();
    let parts = vec![("short".to_string(), short.into(), 1.0), ("long".to_string(), long.into(), 1.0)];
    let options = MixtureOptions {
        stop: Stop::All,
        part_ids: true,
        batches: Batches::Part,
        ..MixtureOptions::default()
    };
    let plain = mix_with(parts, &options).unwrap().loader().batch_size(1).rank(0, 1);
    let other =
        plain.clone().names([("part", Some("source")), ("segments", Some("segments")), ("input_ids", None)]);
    let batches = all(&other.clone().dtypes([("part", DType::U8)]));
    let plain = all(&plain);
    assert_eq!(batches.len(), plain.len());
    let mut lengths: Vec<usize> = Vec::new();
    for (plain, batch) in plain.iter().zip(&batches) {
        let part = plain.get::<i32>("part").unwrap();
        assert_eq!(
            batch.get::<u8>("source").unwrap(),
            part.iter().map(|part| *part as u8).collect::<Vec<_>>()
        );
        assert!(!names(batch).contains(&"input_ids"));
        lengths.push(batch.get::<i32>("segments").unwrap().len());
        assert_eq!(lengths.last(), Some(&[16, 32][part[0] as usize]));
    }
    assert!(lengths.contains(&16) && lengths.contains(&32));
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let data = data();
    let of = |view: &str| data.loader(view);
    let has = |found: String, expected: &str| assert!(found.contains(expected), "{found}");
    let unknown = refused(of("pack").names([("label", Some("x"))]));
    has(unknown.clone(), "no field \"label\"");
    has(unknown.clone(), "did you mean labels?");
    has(unknown.clone(), "input_ids, labels, position_ids, segment_ids, cu_seqlens, max_seqlen");
    has(unknown, "loss_masks, segments, seq_lens");
    has(refused(of("pack").dtypes([("tokens", DType::I32)])), "no field \"tokens\"");
    let twice = refused(of("pack").names([("input_ids", Some("labels"))]));
    has(twice, "input_ids and labels are both called \"labels\"");
    has(refused(of("pack").names([("labels", Some("a")), ("labels", None)])), "labels twice");
    has(refused(of("pack").names([("labels", None)]).dtypes([("labels", DType::I32)])), "leaves out");
    has(refused(of("pack").dtypes([("segments", DType::I32)])), "segments is only there where");
    has(refused(of("pack").names([("segments", None)])), "segments is only there where");
    has(
        refused(of("blocks").names([("segments", Some("x"))])),
        "segments is made of segment_ids, which the view does not have",
    );
    has(refused(of("blocks").names([("input_ids", None), ("labels", None)])), "leaves out every field");
    // Their padding is 0, as a token may be.
    let bins = data.of("bins").dataset().bins(Bins::new(16).fields(&["input_ids", "labels"])).unwrap();
    has(
        refused(bins.loader().rank(0, 1).names([("loss_masks", Some("x"))])),
        "they do not say which positions are padding",
    );
    let fractions = tempfile::tempdir().unwrap();
    std::fs::write(fractions.path().join("series.json"), "[[0.5, 1.5, 2.5]]").unwrap();
    let fractions = open(fractions.path().join("series.json")).unwrap().pack(2).unwrap();
    has(
        refused(fractions.loader().rank(0, 1).dtypes([("labels", DType::I64)])),
        "labels holds float32, and int64 holds whole numbers only",
    );
    let lines = tempfile::tempdir().unwrap();
    std::fs::write(lines.path().join("rows.jsonl"), "{\"text\": \"one\"}\n{\"text\": \"two\"}\n").unwrap();
    let lines = open(lines.path().join("rows.jsonl")).unwrap().rows(&["text"]).unwrap();
    has(refused(lines.loader().rank(0, 1).names([("text", Some("x"))])), "of a view of rows");
}
