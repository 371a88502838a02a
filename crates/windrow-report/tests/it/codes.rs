//! Pages about audio codes: durations, prompts, codebooks, grids, crops.

use std::fs;

use serde_json::{Value, json};
use windrow::dev::collate::{CodesLayout, Masks};
use windrow::format::tensor_file;
use windrow::prepare::convert;
use windrow::{DType, Kind};
use windrow_report::{Asked, Codes, Report};

use crate::desk::{Desk, view};
use crate::html::{rectangles, stands_alone};

/// Tracks of two channels; frame t of track i holds the codes `code(i, t)`.
fn tracks(desk: &Desk, frames: &[u64], code: impl Fn(usize, u64) -> [i16; 2]) {
    for (i, n) in frames.iter().enumerate() {
        let codes: Vec<u8> = (0..*n).flat_map(|t| code(i, t)).flat_map(i16::to_le_bytes).collect();
        let tensor = tensor_file("a", DType::I16, [*n, 2], &codes).unwrap();
        desk.write(&format!("t/encoded_audio/song{i}.pt"), tensor);
    }
}

fn report(desk: &Desk, codes: Codes) -> Report {
    desk.report("t", &Asked { codes, ..Asked::default() })
}

#[test]
fn durations_count_frames_by_hop_and_rate_and_the_page_says_which() {
    let desk = Desk::new();
    tracks(&desk, &[861, 1722, 441], |_, t| [(t % 1024) as i16, 0]);
    let Report { html, json, .. } = report(&desk, Codes::default());
    stands_alone(&html);
    let seconds = |frames: f64| frames * 512.0 / 44_100.0;
    let durations = &json["codes"]["durations"];
    assert!((durations["seconds"].as_f64().unwrap() - seconds(3024.0)).abs() < 1e-9, "{durations}");
    assert_eq!(durations["of"]["shortest"]["name"], "song2 (track 2)");
    assert!((durations["of"]["longest"]["seconds"].as_f64().unwrap() - seconds(1722.0)).abs() < 1e-9);
    for part in [
        "35.11 s in all, 3,024 frames.",
        "<td>5.12 s</td><td>song2 (track 2)</td><td>19.99 s</td><td>song1 (track 1)</td>",
        "A frame is taken for 512 samples of sound at 44,100 Hz, as in the Descript Audio Codec; --hop and --rate say",
    ] {
        assert!(html.contains(part), "{part} is missing: {html}");
    }
    let Report { html, json, .. } =
        report(&desk, Codes { hop: Some(320), rate: Some(16_000), ..Codes::default() });
    assert!((json["codes"]["durations"]["seconds"].as_f64().unwrap() - 60.48).abs() < 1e-9);
    assert!(html.contains("320 samples of sound at 16,000 Hz, as --hop and --rate say."));
}

#[test]
fn prompts_are_counted_by_bytes_and_tags_by_track() {
    let desk = Desk::new();
    tracks(&desk, &[20; 5], |_, _| [1, 2]);
    let long = format!("rock, {}", "é".repeat(300));
    let metadata = json!({
        "song0.pt": {"text": "rock, live, <script>"}, "song1.pt": {"text": " rock ,rock,, jazz"},
        "song2.pt": {"text": ""}, "song3.pt": {"text": null}, "song4.pt": {"text": long},
    });
    desk.write("t/metadata.json", metadata.to_string());
    let Report { html, json, .. } = report(&desk, Codes::default());
    let prompts = &json["codes"]["prompts"];
    assert_eq!((&prompts["empty"], &prompts["longer"], &prompts["read"]), (&json!(2), &json!(1), &json!(5)));
    assert_eq!((&prompts["bytes"]["shortest"], &prompts["bytes"]["longest"]), (&json!(18), &json!(606)));
    assert_eq!(prompts["most_frequent"][0], json!({ "tag": "rock", "tracks": 3 }));
    assert_eq!((&prompts["tags"], &prompts["most_frequent"][1]["tag"]), (&json!(5), &json!("<script>")));
    stands_alone(&html);
    for part in [
        "Of 5 tracks, 2 have no prompt; 1 has one of more than 512 bytes",
        "Without a prompt: song2 (track 2), song3 (track 3).",
        "<tr><td>rock</td><td>3</td><td>60.0 %</td></tr>",
        "<p class=\"note\">No prompt.</p>",
        "Prompt: rock, live, &lt;script&gt;",
    ] {
        assert!(html.contains(part), "{part} is missing: {html}");
    }
}

#[test]
fn codebooks_say_what_is_used_and_tracks_with_other_codes_are_listed() {
    let desk = Desk::new();
    // Channel 0 uses 256 codes equally often, channel 1 one.
    tracks(&desk, &[512, 512], |i, t| match (i, t) {
        (1, 100) => [-1, 7],
        (1, 101) => [1024, 7],
        _ => [(t % 256) as i16 * 4, 7],
    });
    let Report { html, json, .. } = report(&desk, Codes::default());
    let codebooks = &json["codes"]["codebooks"];
    let (first, second) = (&codebooks["channels"][0], &codebooks["channels"][1]);
    assert_eq!((&first["used"], &first["dead"], &first["codes"]), (&json!(256), &json!(768), &json!(1022)));
    assert!((first["perplexity"].as_f64().unwrap() - 256.0).abs() < 0.1, "{first}");
    assert_eq!((&second["used"], second["perplexity"].as_f64()), (&json!(1), Some(1.0)));
    assert_eq!(
        codebooks["outside"],
        json!([{ "record": 1, "codes": 2, "first": { "frame": 100, "channel": 0, "code": -1 } }])
    );
    let larger = report(&desk, Codes { codebook_size: Some(1025), ..Codes::default() }).json;
    let larger = &larger["codes"]["codebooks"];
    assert_eq!((&larger["size"], &larger["outside"][0]["codes"]), (&json!(1025), &json!(1)));
    for part in [
        "channel 0: 256 of 1,024 codes",
        "<tr><td>1</td><td>1,024</td><td>1</td><td>1,023</td><td>1.0</td><td>7, 100.00 %</td></tr>",
        "1 track with codes outside of 0 to 1,023, which training refuses:",
        "<tr><td>song1 (track 1)</td><td>2</td><td>-1 in frame 100, channel 0</td></tr>",
        "src=\"data:image/png;base64,",
    ] {
        assert!(html.contains(part), "{part} is missing: {html}");
    }
}

#[test]
fn crops_are_drawn_where_the_loader_takes_them() {
    let desk = Desk::new();
    // The code of a frame is its place; song1 is shorter than a crop.
    tracks(&desk, &[1000, 30, 700], |_, t| [t as i16, 0]);
    let codes = |seed| Codes { length: Some(50), epochs: Some(3), seed: Some(seed), ..Codes::default() };
    let Report { html, json, .. } = report(&desk, codes(7));
    let crops = &json["codes"]["crops"];
    assert_eq!((&crops["epochs"], &crops["seed"]), (&json!(3), &json!(7)));
    let layout =
        CodesLayout { masks: Masks::None, delay_pattern: Some(vec![0, 0]), ..CodesLayout::default() };
    let data = windrow::open(desk.path("t")).unwrap();
    let view = data.codes(windrow::Codes::new(50).layout(layout)).unwrap();
    let mut loader = view.loader().batch_size(1).seed(7).epochs(Some(3)).build().unwrap();
    // Shuffled, the crop of each track in each epoch: its first frame is its place.
    let mut taken = vec![Vec::new(); 3];
    for taken in &mut taken {
        for _ in 0..3 {
            let batch = loader.next_batch().unwrap().unwrap();
            let tokens = batch.get::<i64>("tgt_tokens").unwrap();
            let frames = batch.get::<i64>("seq_lens").unwrap()[0];
            taken.push((tokens[2], tokens[2] + frames));
        }
        taken.sort_unstable();
    }
    for (epoch, taken) in taken.iter().enumerate() {
        let mut drawn: Vec<(i64, i64)> = crops["tracks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|track| {
                let crop = &track["epochs"][epoch][0];
                (crop[0].as_i64().unwrap(), crop[1].as_i64().unwrap())
            })
            .collect();
        drawn.sort_unstable();
        assert_eq!(&drawn, taken, "epoch {epoch}");
    }
    assert_eq!(crops["tracks"][1]["epochs"], json!([[[0, 30]], [[0, 30]], [[0, 30]]]));
    assert_eq!((&crops["tracks"][1]["seen"], &crops["tracks"][1]["frames"]), (&json!(30), &json!(30)));
    // The page draws what the numbers say.
    let caption = "song0 (track 0): 11.61 s, 1,000 frames; ";
    let drawn: Vec<(f64, f64)> = rectangles(&html, caption, 1000)
        .into_iter()
        .filter(|(class, ..)| class == "own")
        .map(|(_, from, to)| (from, to))
        .collect();
    assert_eq!(drawn.len(), 3);
    for (drawn, lane) in drawn.iter().zip(crops["tracks"][0]["epochs"].as_array().unwrap()) {
        assert!((drawn.0 - lane[0][0].as_f64().unwrap()).abs() < 0.2, "{drawn:?} {lane}");
        assert!((drawn.1 - lane[0][1].as_f64().unwrap()).abs() < 0.2, "{drawn:?} {lane}");
    }
    // The same run gives the same page, another seed others.
    assert_eq!(report(&desk, codes(7)).html, html);
    assert_ne!(report(&desk, codes(8)).json["codes"]["crops"]["tracks"], crops["tracks"]);
}

#[test]
fn shards_of_frames_give_the_numbers_of_the_tracks_they_were_made_from() {
    let desk = Desk::new();
    tracks(&desk, &[700, 20, 0], |i, t| [((t + i as u64) % 900) as i16, 3]);
    desk.write("t/metadata.json", "{\"song0.pt\": {\"text\": \"a prompt\"}}");
    let tracks = windrow::open(desk.path("t")).unwrap();
    let shards = windrow::writer("shards", &Default::default()).unwrap();
    convert(tracks.source().as_ref(), &desk.path("s"), shards.as_ref(), &Default::default(), &()).unwrap();
    let shards = desk.report("s", &Asked::default());
    let (mut from, mut to) =
        (report(&desk, Codes::default()).json["codes"].clone(), shards.json["codes"].clone());
    // Shards keep no names of files.
    for codes in [&mut from, &mut to] {
        codes["durations"]["of"] = Value::Null;
    }
    assert_eq!(from, to);
    assert_eq!((&shards.json["records"], &shards.json["records_read"]), (&json!(3), &json!(3)));
    stands_alone(&shards.html);
    // A view of series shows them as series.
    assert!(desk.page("s", json!({ "windows": { "context_length": 8 } })).contains("Missing data"));
}

#[test]
fn a_view_that_is_named_is_drawn_instead_of_crops() {
    let desk = Desk::new();
    tracks(&desk, &[100], |_, t| [t as i16, 0]);
    let codes = Codes { epochs: Some(2), ..Codes::default() };
    let asked = Asked { view: view(json!({ "records": { "length": 20 } })), codes, ..Asked::default() };
    let crops = &desk.report("t", &asked).json["codes"]["crops"];
    assert_eq!(crops["tracks"][0]["epochs"], json!([[[0, 21]], [[0, 21]]]));
}

#[test]
fn numbers_out_of_range_are_refused() {
    let desk = Desk::new();
    tracks(&desk, &[100], |_, t| [t as i16, 0]);
    for codes in [
        Codes { rate: Some(0), ..Codes::default() },
        Codes { epochs: Some(65), ..Codes::default() },
        Codes { codebook_size: Some(1 << 17), ..Codes::default() },
    ] {
        let e = desk.try_report("t", &Asked { codes, ..Asked::default() }).unwrap_err();
        assert!(e.kind() == Kind::Config && format!("{e:#}").contains("is out of range"), "{e}");
    }
}

#[test]
fn a_broken_track_is_named() {
    let desk = Desk::new();
    tracks(&desk, &[40, 40], |_, _| [1, 2]);
    let whole = fs::read(desk.path("t/encoded_audio/song1.pt")).unwrap();
    desk.write("t/encoded_audio/song1.pt", &whole[..whole.len() / 2]);
    let e = desk.try_report("t", &Asked::default()).unwrap_err();
    assert!(e.kind() == Kind::Corrupt && format!("{e:#}").contains("song1.pt"), "{e}");
}

#[test]
fn a_transposed_track_is_named() {
    let desk = Desk::new();
    let codes = 5i16.to_le_bytes().repeat(2 * 60_000);
    desk.write("t/a.pt", tensor_file("a", DType::I16, [2, 60_000], &codes).unwrap());
    let e = desk.try_report("t", &Asked::default()).unwrap_err();
    assert_eq!(e.kind(), Kind::Unsupported);
    let said = format!("{e:#}");
    assert!(said.contains("2 frames of 60000 codebooks") && said.contains("transpose"), "{said}");
}
