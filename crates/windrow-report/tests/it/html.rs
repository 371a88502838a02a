//! What the HTML of a page is asked.

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

/// The rectangles of a figure: class, and the positions between which they lie.
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
pub(crate) fn assert_near(found: &[f64], expected: &[usize]) {
    let near = |(found, expected): (&f64, &usize)| (found - *expected as f64).abs() < 0.02;
    assert!(found.len() == expected.len() && found.iter().zip(expected).all(near), "{found:?}, {expected:?}");
}
