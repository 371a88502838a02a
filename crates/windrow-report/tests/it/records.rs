//! Pages about records: what they say, what they draw, and that nothing of a file becomes markup.

use serde_json::{Value, json};
use windrow::Kind;
use windrow_report::Asked;

use crate::desk::{Desk, view};
use crate::html::{assert_near, rectangles, stands_alone};

fn series(desk: &Desk) {
    desk.write(
        "s.jsonl",
        "{\"sequence\": [0, 1, 2, 3, 4, 5, 6, 7]}\n{\"sequence\": [5, NaN, 1.5, NaN]}\n{\"sequence\": [2.5, 2.5]}\n",
    );
}

#[test]
fn a_page_about_series_shows_what_is_missing_and_what_windows_see() {
    let desk = Desk::new();
    series(&desk);
    let windows = json!({ "windows": { "context_length": 2, "prediction_length": 1, "stride": 2 } });
    let report = desk.report("s.jsonl", &Asked { view: view(windows.clone()), ..Asked::default() });
    assert_eq!((report.from.as_str(), report.unread), ("all of 3 records", 0));
    assert_eq!(report.json, json!({ "records": 3, "records_read": 3 }));
    let html = report.html;
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
    assert_eq!(desk.page("s.jsonl", windows), html);
}

#[test]
fn a_page_about_tokens_names_the_frequent_ones_and_draws_packs() {
    let desk = Desk::new();
    desk.tokens("tok", &["<script>aaaa", "<script>bb"], "auto");
    let html = desk.page("tok", json!({ "pack": { "length": 8 } }));
    stands_alone(&html);
    assert!(html.contains("<tr><td>97</td><td>4</td><td>18.18 %</td><td>&quot;a&quot;</td></tr>"), "{html}");
    assert!(html.contains("Some samples, with the borders of documents"), "{html}");
    assert!(html.contains("&lt;script&gt;"), "{html}");
}

#[test]
fn documents_and_eos_tokens_are_drawn_where_the_view_has_them() {
    let desk = Desk::new();
    desk.tokens("tok", &["abc", "", "defghijk", "lmn", "opqrstuvwxyz", "0123456789"], "none");
    let pack = json!({ "pack": { "length": 20, "eos": 256 } });
    let html = desk.page("tok", pack.clone());
    let samples = windrow::open(desk.path("tok")).unwrap().view(view(pack).unwrap(), None).unwrap();
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
fn rows_of_segments_and_bins_are_drawn_where_the_view_has_them() {
    let desk = Desk::new();
    desk.tokens("tok", &["abc", "defghijk", "lmn", "opqrstuvwxyz", "0123456789"], "auto");
    for rows in [json!({ "segments": { "length": 16 } }), json!({ "bins": { "length": 16 } })] {
        let html = desk.page("tok", rows.clone());
        let samples =
            windrow::open(desk.path("tok")).unwrap().view(view(rows.clone()).unwrap(), None).unwrap();
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
            assert!((drawn.last().unwrap().2 - filled).abs() < 0.05, "{rows}: {drawn:?}");
        }
    }
}

#[test]
fn the_second_colour_of_a_window_is_what_its_prediction_learns() {
    let desk = Desk::new();
    series(&desk);
    let html = desk
        .page("s.jsonl", json!({ "windows": { "context_length": 4, "prediction_length": 2, "stride": 1 } }));
    let windows =
        windrow::Windows::new(4).prediction_length(2).stride(1).loss_on(windrow::LossOn::Prediction);
    let batch =
        windrow::open(desk.path("s.jsonl")).unwrap().windows(windows).unwrap().batch(&[0], 0).unwrap();
    let (labels, masks) = (batch.get::<f32>("labels").unwrap(), batch.get::<i32>("loss_masks").unwrap());
    // The values of record 0 are their own places.
    let learned: Vec<usize> = (0..6).filter(|i| masks[*i] == 1).map(|i| labels[i] as usize).collect();
    let drawn = rectangles(&html, "record 0: ", 8);
    let (_, begin, end) = drawn.iter().find(|(class, ..)| class == "next").unwrap();
    assert_near(&[begin.round(), end.round()], &[learned[0], learned.last().unwrap() + 1]);
}

#[test]
fn a_page_shows_what_a_scaler_makes_of_the_values_and_of_nan() {
    let desk = Desk::new();
    series(&desk);
    let windows = |options: Value| {
        let mut windows = json!({ "context_length": 2 });
        windows.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
        json!({ "windows": windows })
    };
    let html = desk.page("s.jsonl", windows(json!({ "scaler": "max", "nan": "mask" })));
    assert!(
        html.contains("scaled numbers by value: scaler=max/float64,nan=mask; the highest bar counts 4"),
        "{html}"
    );
    // 7, 5 and 2.5 are the largest of their records: 4 of 7 is the median of all.
    assert!(html.contains("<td>0.571429</td>") && html.contains("<span>0</span><span>1</span>"), "{html}");
    assert!(!html.contains("a NaN;"), "{html}");
    let html = desk.page("s.jsonl", windows(json!({ "scaler": "max" })));
    assert!(html.contains("The scaler makes every number of a record with NaN a NaN"), "{html}");
    assert!(html.contains("scaler=max/float64,nan=propagate;"), "{html}");
    assert!(!desk.page("s.jsonl", windows(json!({}))).contains("scaled numbers"));
}

#[test]
fn names_keys_and_texts_of_files_are_escaped() {
    let desk = Desk::new();
    let hostile = "{\"<script>alert(1)</script>\": \"<script>2</script>\", \"id\": \"\\\"><script>3\"}\n";
    desk.write("<script>4.jsonl", hostile);
    let html = desk.page("<script>4.jsonl", Value::Null);
    stands_alone(&html);
    for part in ["&lt;script&gt;alert(1)", "&lt;script&gt;2", "&lt;script&gt;3", "&lt;script&gt;4.jsonl"] {
        assert!(html.contains(part), "{part} is missing: {html}");
    }
}

#[test]
fn metadata_of_a_series_is_escaped() {
    let desk = Desk::new();
    desk.write("s.jsonl", "{\"sequence\": [1.5, 2, 3], \"id\": \"<script>5\", \"<script>6\": \"'\"}\n");
    let html = desk.page("s.jsonl", Value::Null);
    stands_alone(&html);
    assert!(html.contains("&lt;script&gt;5") && html.contains("&lt;script&gt;6"), "{html}");
}

#[test]
fn of_much_data_a_sample_is_read_and_the_page_says_so() {
    let desk = Desk::new();
    desk.write("many.jsonl", "{\"id\": 1}\n".repeat(2_500));
    let report = desk.report("many.jsonl", &Asked::default());
    assert_eq!(report.json, json!({ "records": 2_500, "records_read": 1_000 }));
    assert!(report.html.contains("a sample of 1,000 of 2,500 records"));
}

#[test]
fn a_view_of_json_is_refused() {
    let desk = Desk::new();
    desk.write("a.jsonl", "{\"id\": 1}\n");
    let asked = Asked { view: view(json!({ "pack": { "length": 8 } })), ..Asked::default() };
    assert_eq!(desk.try_report("a.jsonl", &asked).unwrap_err().kind(), Kind::Config);
}

#[test]
fn a_page_about_rows_lists_their_columns_and_says_that_no_record_is_read() {
    let desk = Desk::new();
    desk.write("rows.jsonl", "{\"id\": 7, \"text\": \"a\"}\n{\"id\": 8, \"text\": \"b\"}\n");
    let (data, path) = (desk.path("rows.jsonl"), desk.path("rows.parquet"));
    let rows =
        windrow::open_with(&data, &serde_json::from_value(json!({ "columns": ["id", "text"] })).unwrap());
    let to = windrow::writer("parquet", &Default::default()).unwrap();
    windrow::prepare::convert(rows.unwrap().source().as_ref(), &path, to.as_ref(), &Default::default(), &())
        .unwrap();
    let report = desk.report("rows.parquet", &Asked::default());
    assert_eq!(report.from, "the columns of 2 records; no record is read");
    assert_eq!(report.json, json!({ "records": 2, "records_read": 0 }));
    assert!(report.html.contains("<tr><td>id</td><td>"), "{}", report.html);
    stands_alone(&report.html);
}

#[test]
fn one_outlier_does_not_flatten_a_histogram_or_a_line() {
    let desk = Desk::new();
    let number = |i: usize| (i * 37 % 101) as f64 / 10.0;
    let mut lines: Vec<String> = (0..100)
        .map(|record| {
            format!("{:?}\n", (0..40 + record % 20).map(|i| number(record + i)).collect::<Vec<_>>())
        })
        .collect();
    let mut long: Vec<f64> = (0..5000).map(number).collect();
    long[7] = 3e8;
    lines.insert(17, format!("{long:?}\n"));
    desk.write("s.jsonl", lines.concat());
    let html = desk.page("s.jsonl", Value::Null);
    for (caption, left_out, ends) in [
        ("series by length in values", "1 longer one is not drawn", ["<span>40</span>", "<span>59</span>"]),
        ("numbers by value", "1 higher one is not drawn", ["<span>0</span>", "<span>10</span>"]),
    ] {
        let figure = html.split("<figure>").find(|figure| figure.contains(caption)).unwrap();
        assert!(figure.contains(left_out) && ends.iter().all(|end| figure.contains(end)), "{figure}");
        assert!(rectangles(&html, caption, 1000).len() >= 15, "{figure}");
    }
    // What is left out is in the tables all the same.
    assert!(html.contains("<td>5,000</td>") && html.contains("<td>300000000</td>"), "{html}");
    stands_alone(&html);

    desk.write("one.jsonl", lines[17].clone());
    let html = desk.page("one.jsonl", Value::Null);
    assert!(html.contains("record 0: 0 to 10; 1 higher one is cut off"), "{html}");
}

#[test]
fn bytes_of_an_incomplete_character_are_shown_as_bytes() {
    let desk = Desk::new();
    desk.tokens("tok", &["മലയാളം 😀", "\"\\\n"], "none");
    let html = desk.page("tok", json!({ "pack": { "length": 8 } }));
    assert!(html.contains("<td>&quot;\\xe0&quot;</td>"), "{html}");
    assert!(
        html.contains("<td>&quot;\\\\&quot;</td>") && html.contains("<td>&quot;\\n&quot;</td>"),
        "{html}"
    );
    // The second sample begins in the middle of a letter.
    assert!(html.contains("\\xafാ"), "{html}");
    assert!(!html.contains('\u{fffd}'), "{html}");
}

#[test]
fn a_table_that_scrolls_shows_it_and_long_cells_have_lines() {
    let desk = Desk::new();
    desk.write("a.jsonl", format!("{{\"key\": \"{}\"}}\n", "x".repeat(200)));
    let html = desk.page("a.jsonl", Value::Null);
    assert!(html.contains("no-repeat local") && html.contains("--shade:"), "{html}");
    assert!(html.contains("<td class=\"long\">") && html.contains("<td>string</td>"), "{html}");
}
