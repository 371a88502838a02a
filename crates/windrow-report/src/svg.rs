//! Drawings that stretch with the page: no text inside, which would shrink on a phone.

use std::fmt::Write;
use std::ops::Range;
use windrow::preview::series::{self, Facts};

const WIDTH: f64 = 1000.0;
const PLOT: f64 = 120.0;
const LANE: f64 = 7.0;
const LANES: usize = 4;
/// Parts of a line; a part is drawn from its smallest to its largest number.
const PARTS: usize = 500;

/// An outline of counts: its height, that of the marks below, and how many steps it has at most.
const OUTLINE: f64 = 30.0;
const GAP_MARK: f64 = 6.0;
const BINS: usize = 256;
/// The most places of marks below an outline.
const PLACES: usize = 1024;
const CROP_LANE: f64 = 11.0;
const WAVE: f64 = 80.0;

/// A drawing of numbers only: nothing in it comes from a file as text.
pub(crate) struct Svg {
    height: f64,
    body: String,
}

/// A window of a series: its values, and where those to be predicted begin.
pub(crate) struct Window {
    pub(crate) values: Range<u64>,
    pub(crate) prediction: u64,
}

/// A part of a strip.
pub(crate) struct Part {
    pub(crate) fill: Fill,
    pub(crate) len: u64,
}

/// How a part of a strip is filled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fill {
    Own,
    Next,
    /// An EOS token.
    End,
    /// No value.
    Nothing,
}

impl Svg {
    /// Bars side by side.
    pub(crate) fn bars(counts: &[u64]) -> Svg {
        let mut svg = Svg { height: PLOT, body: String::new() };
        let most = counts.iter().max().copied().unwrap_or(0).max(1) as f64;
        let width = WIDTH / counts.len().max(1) as f64;
        for (i, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let height = (*count as f64 / most * PLOT).max(1.0);
            svg.rect("bar", i as f64 * width + width * 0.05, PLOT - height, width * 0.9, height);
        }
        svg
    }

    /// Two bars for each place side by side, of shares of `full`.
    pub(crate) fn pairs(pairs: &[(f64, f64)], full: f64) -> Svg {
        let mut svg = Svg { height: PLOT, body: String::new() };
        let width = WIDTH / pairs.len().max(1) as f64;
        for (i, (before, after)) in pairs.iter().enumerate() {
            let left = i as f64 * width + width * 0.1;
            for (class, left, share) in [("next", left, *before), ("own", left + width * 0.4, *after)] {
                if share > 0.0 {
                    let height = (share / full * PLOT).clamp(1.0, PLOT);
                    svg.rect(class, left, PLOT - height, width * 0.4, height);
                }
            }
        }
        svg
    }

    /// A series as a line, gaps where numbers are missing, and its windows below it.
    /// Numbers outside of `range` are drawn at its ends.
    pub(crate) fn line(numbers: &[f64], range: (f64, f64), windows: &[Window]) -> Svg {
        let lanes = windows.len().min(LANES);
        let mut svg = Svg { height: PLOT + LANE * lanes as f64, body: String::new() };
        let y = |x: f64| 4.0 + (1.0 - series::share(x, range)) * (PLOT - 12.0);
        let n = numbers.len().clamp(1, PARTS) as f64;
        let (mut path, mut missing) = (String::new(), Vec::new());
        let mut pen = 'M';
        for (i, part) in series::parts(numbers, PARTS).enumerate() {
            let x = (i as f64 + 0.5) / n * WIDTH;
            if part.iter().any(|v| !v.is_finite()) {
                missing.push(x);
            }
            let Some((low, high)) = Facts::of(part).range else {
                pen = 'M';
                continue;
            };
            let _ = write!(path, "{pen}{x:.1} {:.1}", y(low));
            if high > low {
                let _ = write!(path, "L{x:.1} {:.1}", y(high));
            } else if pen == 'M' {
                // A number between two gaps is a dash, else nothing would be seen of it.
                let _ = write!(path, "h0.5");
            }
            pen = 'L';
        }
        if !path.is_empty() {
            let _ = write!(svg.body, "<path class=\"line\" d=\"{path}\"/>");
        }
        missing.iter().for_each(|x| svg.rect("bad", x - 1.0, 0.0, 2.0, 4.0));
        let scale = WIDTH / numbers.len().max(1) as f64;
        for (i, window) in windows.iter().enumerate() {
            let end = |at: u64| (at as f64 * scale).min(WIDTH);
            let (from, mid, to) = (end(window.values.start), end(window.prediction), end(window.values.end));
            let top = PLOT + LANE * (i % LANES) as f64;
            svg.rect("own", from, top, (mid - from - 1.0).max(0.5), LANE - 2.0);
            if to > mid {
                svg.rect("next", mid - 1.0, top, (to - mid).max(0.5), LANE - 2.0);
            }
        }
        svg
    }

    /// Parts of a whole, one after the other; what is left is filled up.
    pub(crate) fn strip(parts: &[Part], whole: u64) -> Svg {
        let mut svg = Svg { height: 18.0, body: String::new() };
        svg.rect("rest", 0.0, 0.0, WIDTH, 18.0);
        let place = |at: u64| (at as f64 * WIDTH / whole.max(1) as f64).min(WIDTH);
        let mut begin = 0u64;
        let mut marks = Vec::new();
        for part in parts {
            let end = begin.saturating_add(part.len);
            let (from, to) = (place(begin), place(end));
            let gap = if to < WIDTH { 1.0 } else { 0.0 };
            match part.fill {
                Fill::Own => svg.rect("own", from, 0.0, (to - from - gap).max(0.5), 18.0),
                Fill::Next => svg.rect("next", from, 0.0, (to - from - gap).max(0.5), 18.0),
                Fill::End => marks.push((from, (to - from).max(1.5))),
                Fill::Nothing => {}
            }
            begin = end;
        }
        // Over their neighbours: a token may be narrower than what can be seen.
        marks.into_iter().for_each(|(from, width)| svg.rect("end", from, 0.0, width, 18.0));
        svg
    }

    /// Counts as one outline, and below it marks under those that are zero.
    pub(crate) fn outline(counts: &[u64]) -> Svg {
        let mut svg = Svg { height: OUTLINE + GAP_MARK, body: String::new() };
        let bins: Vec<u64> = (0..counts.len().min(BINS))
            .map(|i| {
                let bound = |i: usize| i * counts.len() / counts.len().min(BINS);
                counts[bound(i)..bound(i + 1)].iter().sum()
            })
            .collect();
        let most = bins.iter().max().copied().unwrap_or(0).max(1) as f64;
        let mut path = format!("M0 {OUTLINE}");
        for (i, bin) in bins.iter().enumerate() {
            let (x, y) = ((i + 1) as f64 / bins.len() as f64 * WIDTH, OUTLINE * (1.0 - *bin as f64 / most));
            let _ = write!(path, "V{y:.1}H{x:.1}");
        }
        let _ = write!(svg.body, "<path class=\"bar\" d=\"{path}V{OUTLINE}Z\"/>");
        // Where there are many counts, a place has several of them: one that is zero marks it.
        let places = counts.len().min(PLACES);
        let is_missing: Vec<bool> = (0..places)
            .map(|i| counts[i * counts.len() / places..(i + 1) * counts.len() / places].contains(&0))
            .collect();
        let scale = WIDTH / places.max(1) as f64;
        let (mut marks, mut at) = (String::new(), 0);
        for run in is_missing.chunk_by(|a, b| a == b) {
            if run.first() == Some(&true) {
                let (from, width) = (at as f64 * scale, (run.len() as f64 * scale).max(1.0));
                let _ = write!(marks, "M{from:.1} {:.1}h{width:.1}v3h-{width:.1}z", OUTLINE + 2.0);
            }
            at += run.len();
        }
        if !marks.is_empty() {
            let _ = write!(svg.body, "<path class=\"bad\" d=\"{marks}\"/>");
        }
        svg
    }

    /// Spans of a whole in lanes, one below the other.
    pub(crate) fn lanes(whole: u64, lanes: &[Vec<Range<u64>>]) -> Svg {
        let mut svg = Svg { height: CROP_LANE * lanes.len() as f64, body: String::new() };
        let place = |at: u64| (at as f64 * WIDTH / whole.max(1) as f64).min(WIDTH);
        for (i, lane) in lanes.iter().enumerate() {
            let top = CROP_LANE * i as f64;
            svg.rect("rest", 0.0, top, WIDTH, CROP_LANE - 3.0);
            for span in lane {
                let (from, to) = (place(span.start), place(span.end));
                svg.rect("own", from, top, (to - from).max(0.5), CROP_LANE - 3.0);
            }
        }
        svg
    }

    /// Parts of a wave, each from its lowest to its highest sample; `full` is drawn at the edge.
    pub(crate) fn wave(parts: &[(f32, f32)], full: f32) -> Svg {
        let mut svg = Svg { height: WAVE, body: String::new() };
        let y = |x: f32| WAVE / 2.0 * (1.0 - f64::from(x / full.max(f32::MIN_POSITIVE)));
        let x = |i: usize| (i as f64 + 0.5) / parts.len().max(1) as f64 * WIDTH;
        let mut path = String::new();
        for (i, (low, high)) in parts.iter().enumerate() {
            // Where all samples are one, a thin line is left.
            let (top, bottom) = (y(*high), y(*low).max(y(*high) + 0.5));
            let _ = write!(path, "M{:.1} {top:.1}V{bottom:.1}", x(i));
        }
        let _ = write!(svg.body, "<path class=\"line\" d=\"{path}\"/>");
        svg
    }

    pub(crate) fn to_text(&self, label: &str) -> String {
        let Svg { height, body } = self;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" aria-label=\"{label}\" viewBox=\"0 0 {WIDTH} {height}\" \
             height=\"{height}\" preserveAspectRatio=\"none\">{body}</svg>"
        )
    }

    fn rect(&mut self, class: &str, x: f64, y: f64, width: f64, height: f64) {
        let _ = write!(
            self.body,
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_without_numbers_has_ticks_and_its_windows() {
        let windows = [Window { values: 0..3, prediction: 2 }, Window { values: 3..6, prediction: 6 }];
        let body = Svg::line(&[f64::NAN; 6], (0.0, 0.0), &windows).body;
        let count = |class: &str| body.matches(&format!("class=\"{class}\"")).count();
        assert_eq!((count("bad"), count("own"), count("next"), count("line")), (6, 2, 1, 0), "{body}");
        assert_eq!(Svg::line(&[], (0.0, 0.0), &[]).body, "");
        assert_eq!(Svg::line(&[1.0, f64::NAN], (1.0, 1.0), &[]).body.matches("class=\"bad\"").count(), 1);
    }

    #[test]
    fn pairs_are_as_high_as_their_shares() {
        let body = Svg::pairs(&[(1.0, 0.0), (0.25, 0.001)], 0.5).body;
        let heights: Vec<&str> =
            body.split(" height=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        assert_eq!(heights, ["120.0", "60.0", "1.0"], "{body}");
        assert_eq!(body.matches("class=\"next\"").count(), 2, "{body}");
        assert_eq!(Svg::pairs(&[(0.0, 0.0)], 0.0).body, "");
    }

    #[test]
    fn counts_that_are_zero_are_marked_and_many_of_them_share_a_mark() {
        let marks = |counts: &[u64]| Svg::outline(counts).body.matches('z').count();
        assert_eq!((marks(&[1, 2]), marks(&[0, 2]), marks(&[0, 0, 2, 0])), (0, 1, 2));
        let many: Vec<u64> = (0..65_536).map(|i| i % 2).collect();
        assert_eq!(marks(&many), 1);
        assert!(Svg::outline(&many).body.len() < 10_000);
        assert_eq!(marks(&[]), 0);
    }

    #[test]
    fn the_highest_count_of_an_outline_reaches_the_top() {
        let body = Svg::outline(&[1, 4, 2]).body;
        assert!(
            body.starts_with("<path class=\"bar\" d=\"M0 30V22.5H333.3V0.0H666.7V15.0H1000.0V30Z\"/>"),
            "{body}"
        );
    }
}
