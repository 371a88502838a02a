//! The page of `report`, and the drawing of `peek`: what they say, and that nothing of a file becomes markup.

use std::fs;

use serde_json::json;

use crate::program::Desk;

fn series(desk: &Desk) {
    desk.write(
        "s.jsonl",
        "{\"sequence\": [0, 1, 2, 3, 4, 5, 6, 7]}\n{\"sequence\": [5, NaN, 1.5, NaN]}\n{\"sequence\": [2.5, 2.5]}\n",
    );
}

pub(crate) fn page(desk: &Desk, name: &str) -> String {
    fs::read_to_string(desk.path(name)).unwrap()
}

#[track_caller]
pub(crate) fn stands_alone(html: &str) {
    for banned in ["<script", "href=", "url(", "@import"] {
        assert!(!html.contains(banned), "{banned} in {html}");
    }
    // Pictures and sounds are in the page itself.
    let within = |source: &str| {
        ["\"data:image/png;base64,", "\"data:audio/wav;base64,"].iter().any(|w| source.starts_with(w))
    };
    assert!(html.split("src=").skip(1).all(within), "{html}");
    assert!(html.starts_with("<!DOCTYPE html>") && html.ends_with("</html>\n"), "{html}");
    assert!(html.contains("name=\"viewport\"") && html.contains("prefers-color-scheme:dark"), "{html}");
}

#[test]
fn peek_draws_a_series_and_says_what_it_spans() {
    let desk = Desk::new();
    series(&desk);
    let said = desk.windrow("peek s.jsonl").done();
    assert!(said.contains("  min 0  max 7  length 8  NaN 0\n"), "{said}");
    assert!(said.contains("  min 1.5  max 5  length 4  NaN 2\n"), "{said}");
    assert!(said.contains("  ⡰⠁⠀⠀\n") && !said.contains('\u{1b}'), "{said}");
    let peeked = desk.windrow("peek s.jsonl -n 1 --json").json();
    assert_eq!(peeked["records"][0]["values"].as_array().unwrap().len(), 8);
}

#[test]
fn a_page_about_series_shows_what_is_missing_and_what_windows_see() {
    let desk = Desk::new();
    series(&desk);
    let said = desk.windrow("report s.jsonl -o r.html --windows 2,1,2").done();
    assert!(said.starts_with("r.html: ") && said.ends_with("from all of 3 records\n"), "{said}");
    let html = page(&desk, "r.html");
    stands_alone(&html);
    for part in [
        "Of 14 numbers, 2 are NaN and 0 infinite, in 1 record.",
        "<tr><td>1</td><td>4</td><td>2</td><td>0</td></tr>",
        "windows(width=3,stride=2,tail=drop)",
        "record 0: 0 to 7; 3 samples",
        "class=\"next\"",
    ] {
        assert!(html.contains(part), "{part} is missing: {html}");
    }
    // The same data gives the same page.
    desk.windrow("report s.jsonl -o again.html --windows 2,1,2").done();
    assert_eq!(page(&desk, "again.html"), html);
}

#[test]
fn a_page_about_tokens_names_the_frequent_ones_and_draws_packs() {
    let desk = Desk::new();
    desk.texts("in.jsonl", &["<script>aaaa", "<script>bb"]);
    desk.windrow("tokenize in.jsonl --tokenizer bytes --out tok").done();
    desk.windrow("report tok -o r.html --pack 8").done();
    let html = page(&desk, "r.html");
    stands_alone(&html);
    assert!(html.contains("<tr><td>97</td><td>4</td><td>18.18 %</td><td>&quot;a&quot;</td></tr>"), "{html}");
    assert!(html.contains("Some samples, with the borders of documents"), "{html}");
    assert!(html.contains("&lt;script&gt;"), "{html}");
}

// The rectangles of a figure: class, and the positions between which they lie.
pub(crate) fn rectangles(html: &str, caption: &str, positions: usize) -> Vec<(String, f64, f64)> {
    let figure = html.split("<figure>").find(|figure| figure.contains(caption)).unwrap();
    let scale = positions as f64 / 1000.0;
    let number = |rect: &str, name: &str| -> f64 {
        rect.split(&format!(" {name}=\"")).nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
    };
    figure
        .split("<rect class=\"")
        .skip(1)
        .map(|rect| {
            let (x, width) = (number(rect, "x"), number(rect, "width"));
            (rect.split('"').next().unwrap().to_string(), x * scale, (x + width) * scale)
        })
        .collect()
}

#[track_caller]
fn assert_near(found: &[f64], expected: &[usize]) {
    let near = |(found, expected): (&f64, &usize)| (found - *expected as f64).abs() < 0.02;
    assert!(found.len() == expected.len() && found.iter().zip(expected).all(near), "{found:?}, {expected:?}");
}

#[test]
fn documents_and_end_ids_are_drawn_where_the_view_lays_them() {
    let desk = Desk::new();
    desk.texts("in.jsonl", &["abc", "", "defghijk", "lmn", "opqrstuvwxyz", "0123456789"]);
    desk.windrow("tokenize in.jsonl --tokenizer bytes --out tok --eos none").done();
    desk.windrow("report tok -o r.html --pack 20 --eos 256").done();
    let html = page(&desk, "r.html");
    let view = windrow::ViewRecipe::Pack {
        length: 20,
        eos: Some(256),
        shifted: false,
        fields: Vec::new(),
        labels: windrow::Labels::default(),
    };
    let samples = windrow::open(desk.path("tok")).unwrap().view(view, None).unwrap();
    for sample in 0..samples.len() {
        let batch = samples.batch(&[sample], 0).unwrap();
        let ids = batch.get::<i64>("input_ids").unwrap();
        let drawn = rectangles(&html, &format!("sample {sample}: "), 20);
        let begins = |wanted: &[&str]| -> Vec<f64> {
            drawn.iter().filter(|(class, ..)| wanted.contains(&class.as_str())).map(|(_, x, _)| *x).collect()
        };
        let ends: Vec<usize> = (0..20).filter(|i| ids[*i] == 256).collect();
        assert!(!ends.is_empty());
        assert_near(&begins(&["end"]), &ends);
        let starts: Vec<usize> =
            (0..20).filter(|i| ids[*i] != 256 && (*i == 0 || ids[*i - 1] == 256)).collect();
        assert_near(&begins(&["own", "next"]), &starts);
    }
}

#[test]
fn rows_of_segments_and_bins_are_drawn_where_the_view_lays_them() {
    let desk = Desk::new();
    desk.texts("in.jsonl", &["abc", "defghijk", "lmn", "opqrstuvwxyz", "0123456789"]);
    desk.windrow("tokenize in.jsonl --tokenizer bytes --out tok").done();
    for (options, view) in [
        ("--segments 16", json!({ "segments": { "length": 16 } })),
        ("--bins 16", json!({ "bins": { "length": 16 } })),
    ] {
        desk.windrow(&format!("report tok -o r.html --overwrite {options}")).done();
        let html = page(&desk, "r.html");
        let view = serde_json::from_value(view).unwrap();
        let samples = windrow::open(desk.path("tok")).unwrap().view(view, None).unwrap();
        for sample in 0..samples.len() {
            let batch = samples.batch(&[sample], 0).unwrap();
            let ids = batch.get::<i32>("segment_ids").unwrap();
            let drawn = rectangles(&html, &format!("sample {sample}: "), 16);
            let found: Vec<f64> =
                drawn.iter().filter(|(class, ..)| class != "rest").map(|(_, x, _)| *x).collect();
            let starts: Vec<usize> =
                (0..16).filter(|i| ids[*i] >= 0 && (*i == 0 || ids[*i - 1] != ids[*i])).collect();
            assert_near(&found, &starts);
            let filled = ids.iter().filter(|id| **id >= 0).count() as f64;
            assert!((drawn.last().unwrap().2 - filled).abs() < 0.05, "{options}: {drawn:?}");
        }
    }
}

#[test]
fn the_second_colour_of_a_window_is_what_its_prediction_learns() {
    let desk = Desk::new();
    series(&desk);
    desk.windrow("report s.jsonl -o r.html --windows 4,2,1").done();
    let windowing = windrow::Windowing::new(4).prediction(2).stride(1).loss_on(windrow::LossOn::Prediction);
    let batch =
        windrow::open(desk.path("s.jsonl")).unwrap().windows(&windowing).unwrap().batch(&[0], 0).unwrap();
    let (labels, masks) = (batch.get::<f32>("labels").unwrap(), batch.get::<i32>("loss_masks").unwrap());
    // The values of record 0 are their own places.
    let learned: Vec<usize> = (0..6).filter(|i| masks[*i] == 1).map(|i| labels[i] as usize).collect();
    let drawn = rectangles(&page(&desk, "r.html"), "record 0: ", 8);
    let (_, begin, end) = drawn.iter().find(|(class, ..)| class == "next").unwrap();
    assert_near(&[begin.round(), end.round()], &[learned[0], learned.last().unwrap() + 1]);
}

#[test]
fn a_page_shows_what_a_scaler_makes_of_the_values_and_of_nan() {
    let desk = Desk::new();
    series(&desk);
    desk.windrow("report s.jsonl -o mask.html --windows 2 --scaler max --nan mask").done();
    let html = page(&desk, "mask.html");
    assert!(
        html.contains("scaled numbers by value: scaler=max/float64,nan=mask; the highest bar counts 4"),
        "{html}"
    );
    // 7, 5 and 2.5 are the largest of their records: 4 of 7 is the median of all.
    assert!(html.contains("<td>0.571429</td>") && html.contains("<span>0</span><span>1</span>"), "{html}");
    assert!(!html.contains("a NaN;"), "{html}");
    desk.windrow("report s.jsonl -o spread.html --windows 2 --scaler max").done();
    let html = page(&desk, "spread.html");
    assert!(html.contains("The scaler makes every number of a record with NaN a NaN"), "{html}");
    desk.windrow("report s.jsonl -o plain.html --windows 2").done();
    assert!(!page(&desk, "plain.html").contains("scaled numbers"));
}

#[test]
fn names_keys_and_texts_of_files_are_escaped() {
    let desk = Desk::new();
    let hostile = "{\"<script>alert(1)</script>\": \"<script>2</script>\", \"id\": \"\\\"><script>3\"}\n";
    desk.write("<script>4.jsonl", hostile);
    desk.windrow("report <script>4.jsonl -o r.html").done();
    let html = page(&desk, "r.html");
    stands_alone(&html);
    for part in ["&lt;script&gt;alert(1)", "&lt;script&gt;2", "&lt;script&gt;3", "&lt;script&gt;4.jsonl"] {
        assert!(html.contains(part), "{part} is missing: {html}");
    }
}

#[test]
fn what_stands_beside_a_series_is_escaped() {
    let desk = Desk::new();
    desk.write("s.jsonl", "{\"sequence\": [1.5, 2, 3], \"id\": \"<script>5\", \"<script>6\": \"'\"}\n");
    desk.windrow("report s.jsonl -o r.html").done();
    let html = page(&desk, "r.html");
    stands_alone(&html);
    assert!(html.contains("&lt;script&gt;5") && html.contains("&lt;script&gt;6"), "{html}");
}

#[test]
fn of_much_data_a_sample_is_read_and_the_page_says_so() {
    let desk = Desk::new();
    desk.write("many.jsonl", "{\"id\": 1}\n".repeat(2_500));
    let report = desk.windrow("report many.jsonl -o r.html --json").json();
    assert_eq!((report["records"].as_u64(), report["records_read"].as_u64()), (Some(2_500), Some(1_000)));
    assert!(page(&desk, "r.html").contains("a sample of 1,000 of 2,500 records"));
}

#[test]
fn a_page_replaces_nothing_unasked_and_never_its_data() {
    let desk = Desk::new();
    series(&desk);
    desk.write("r.html", "mine");
    desk.windrow("report s.jsonl -o r.html").failed(1);
    assert_eq!(page(&desk, "r.html"), "mine");
    desk.windrow("report s.jsonl -o r.html --overwrite").done();
    assert!(page(&desk, "r.html").contains("Missing data"));
    let before = fs::read(desk.path("s.jsonl")).unwrap();
    desk.windrow("report s.jsonl -o s.jsonl --overwrite").failed(2);
    assert_eq!(fs::read(desk.path("s.jsonl")).unwrap(), before);
    desk.windrow("report s.jsonl -o nowhere/r.html").failed(1);
    assert!(desk.tree(".").keys().all(|name| !name.contains(".tmp-")));
}

#[test]
fn a_view_of_json_is_refused_and_leaves_no_page() {
    let desk = Desk::new();
    desk.write("a.jsonl", "{\"id\": 1}\n");
    desk.windrow("report a.jsonl -o r.html --pack 8").failed(2);
    assert!(!desk.path("r.html").exists());
}
