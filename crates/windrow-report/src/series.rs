//! Series: their values, what is missing, and some of them drawn with their windows.

use windrow::dev::Pass;
use windrow::dev::source::Source;
use windrow::prepare::Watch;
use windrow::preview::{
    numbers,
    series::{self, Facts},
    text,
};
use windrow::{Dataset, Labels, Nan, Plan, Result, Samples, Span, ViewRecipe, Windows};

use crate::near::{left_out, near};
use crate::page::Page;
use crate::sample::{Sample, part};
use crate::svg::{Svg, Window};
use crate::watch::check;

const BARS: usize = 40;
const MOST_LISTED: usize = 10;
const SERIES_DRAWN: u64 = 6;
const CHANNELS_DRAWN: usize = 3;
const VALUES_DRAWN: u64 = 100_000;
const WINDOWS_DRAWN: u64 = 40;

/// The numbers of the records looked at.
#[derive(Default)]
struct Numbers {
    /// The finite ones, ascending.
    finite: Vec<f64>,
    n: u64,
    nan: u64,
    infinite: u64,
    /// NaN, infinite ones, numbers and number of each record that has some that are not finite.
    lacking: Vec<[u64; 4]>,
    /// Records that were read in part.
    in_part: u64,
}

impl Numbers {
    fn read(source: &dyn Source, watch: &dyn Watch, sample: &Sample) -> Result<Numbers> {
        let room = room(source, sample);
        let mut numbers = Numbers::default();
        for record in &sample.records {
            check(watch)?;
            let length = source.length(*record)?;
            numbers.in_part += u64::from(length > room);
            let read = numbers::floats(source, part(*record, length, room))?;
            let Facts { n, nan, infinite, .. } = Facts::of(&read);
            numbers.n += n;
            numbers.nan += nan;
            numbers.infinite += infinite;
            if nan + infinite > 0 {
                numbers.lacking.push([nan, infinite, n, *record]);
            }
            numbers.finite.extend(read.into_iter().filter(|x| x.is_finite()));
        }
        numbers.finite.sort_unstable_by(f64::total_cmp);
        Ok(numbers)
    }

    fn show(&self, what: &str, page: &mut Page) {
        let drawn = near(&self.finite, |x| x);
        let numbers = &self.finite[drawn.clone()];
        let (Some(low), Some(high)) = (numbers.first(), numbers.last()) else {
            page.text(&format!("{what}: there is no finite number."));
            return;
        };
        let mut bars = vec![0u64; BARS];
        for x in numbers {
            bars[((series::share(*x, (*low, *high)) * BARS as f64) as usize).min(BARS - 1)] += 1;
        }
        let most = text::count(bars.iter().max().copied().unwrap_or(0));
        let left_out = left_out(self.finite.len(), &drawn, ["lower", "higher"]);
        let caption = format!("{what}; the highest bar counts {most}{left_out}");
        page.figure(&caption, &Svg::bars(&bars), [&text::number(*low), &text::number(*high)]);
        let at = |percent: usize| text::number(self.finite[(self.finite.len() - 1) * percent / 100]);
        page.table(
            &["min", "1 %", "25 %", "median", "75 %", "99 %", "max"],
            &[[0, 1, 25, 50, 75, 99, 100].iter().map(|percent| at(*percent)).collect()],
        );
    }
}

// How many values of a record are read at most.
fn room(source: &dyn Source, sample: &Sample) -> u64 {
    sample.room(source.schema().channels.unwrap_or(1).max(1) as u64)
}

/// `scaled`: the samples of a view that scales them.
pub(crate) fn values(
    data: &Dataset,
    scaled: Option<&Samples>,
    page: &mut Page,
    watch: &dyn Watch,
    sample: &Sample,
) -> Result<()> {
    let source = data.source().as_ref();
    let mut numbers = Numbers::read(source, watch, sample)?;
    let mut said = format!("From {}", sample.said());
    if numbers.in_part > 0 {
        said += &format!(
            "; of {} longer than {} values a part of that many from a random place",
            text::counted(numbers.in_part, "record"),
            text::count(room(source, sample))
        );
    }
    said.push('.');
    page.section("Values");
    numbers.show("numbers by value", page);
    if let Some(samples) = scaled {
        let source = samples.feed().source().as_ref();
        // Plans keep the word that this option had.
        let how = source.treatment().unwrap_or_default().replace("nan=spread", "nan=propagate");
        Numbers::read(source, watch, sample)?.show(&format!("scaled numbers by value: {how}"), page);
    }
    page.note(&said);
    page.section("Missing data");
    if numbers.lacking.is_empty() {
        page.text(&format!("None of {} is NaN or infinite.", text::counted(numbers.n, "number")));
    } else {
        page.text(&format!(
            "Of {}, {} are NaN and {} infinite, in {}.",
            text::counted(numbers.n, "number"),
            text::count(numbers.nan),
            text::count(numbers.infinite),
            text::counted(numbers.lacking.len() as u64, "record")
        ));
        let spreads = scaled.is_some_and(|samples| samples.recipe().view.nan() == Nan::Propagate);
        if numbers.nan > 0 && spreads {
            page.text(
                "The scaler makes every number of a record with NaN a NaN; with --nan mask it leaves the missing ones out.",
            );
        }
        numbers.lacking.sort_unstable_by(|a, b| (b[0], b[1], a[3]).cmp(&(a[0], a[1], b[3])));
        let rows: Vec<Vec<String>> = numbers
            .lacking
            .iter()
            .take(MOST_LISTED)
            .map(|[nan, infinite, n, record]| [record, n, nan, infinite].map(|x| text::count(*x)).to_vec())
            .collect();
        page.table(&["record", "numbers read", "NaN", "infinite"], &rows);
        if numbers.lacking.len() > MOST_LISTED {
            page.note(&format!("The {MOST_LISTED} with the most NaN."));
        }
    }
    page.note(&said);
    Ok(())
}

pub(crate) fn gallery(
    data: &Dataset,
    view: Option<(&Samples, &Plan)>,
    page: &mut Page,
    watch: &dyn Watch,
) -> Result<()> {
    page.section("Some series");
    let ticks = "Ticks at the top: NaN or infinite.";
    page.note(&match view.map(|(samples, _)| &samples.recipe().view) {
        None => ticks.to_string(),
        Some(ViewRecipe::Windows(Windows { prediction_length: 1.., .. })) => {
            format!("Below each line the samples of the view; the second colour is what the prediction learns. {ticks}")
        }
        Some(_) => format!("Below each line the samples of the view. {ticks}"),
    });
    let source = data.source();
    let channels = source.schema().channels.unwrap_or(1).max(1);
    for record in Sample::of(data.len(), SERIES_DRAWN).records {
        check(watch)?;
        let length = data.length(record)?;
        let len = length.min(VALUES_DRAWN / channels as u64).max(length.min(1));
        let numbers = numbers::floats(source.as_ref(), Span { record, start: 0, len })?;
        for c in 0..channels.min(CHANNELS_DRAWN) {
            let (windows, in_all) = match view {
                Some((samples, plan)) => windows(samples, plan, (record, c as u64), len)?,
                None => (Vec::new(), 0),
            };
            let one = series::channel(&numbers, channels, c);
            let mut caption = format!("record {}", text::count(record));
            if channels > 1 {
                caption += &format!(", channel {c} of {channels}");
            }
            if len < length {
                caption += &format!(", its first {} values of {}", text::count(len), text::count(length));
            }
            let (range, cut_off) = drawn(&one);
            if let Some((low, high)) = range {
                caption += &format!(": {} to {}{cut_off}", text::number(low), text::number(high));
            }
            if in_all > 0 {
                caption += &format!("; {}", text::counted(in_all, "sample"));
            }
            if in_all > windows.len() as u64 {
                caption += &format!(", {} drawn", text::count(windows.len() as u64));
            }
            page.figure(
                &caption,
                &Svg::line(&one, range.unwrap_or_default(), &windows),
                ["0", &text::count(len)],
            );
        }
        let extras = data.extras(record)?;
        if !extras.is_empty() {
            let all = serde_json::Value::Object(extras.shown()).to_string();
            page.note(&text::truncated(&all, 300));
        }
    }
    Ok(())
}

// From where to where a line is drawn, and what is said of numbers beyond that.
fn drawn(numbers: &[f64]) -> (Option<(f64, f64)>, String) {
    let mut finite: Vec<f64> = numbers.iter().copied().filter(|x| x.is_finite()).collect();
    finite.sort_unstable_by(f64::total_cmp);
    let near = near(&finite, |x| x);
    let said = left_out(finite.len(), &near, ["lower", "higher"]).replace("not drawn", "cut off");
    let range = finite[near.clone()].first().copied().zip(finite[near].last().copied());
    (range, said)
}

// The samples of an unshuffled plan that read the record: position and sample are one.
fn windows(
    samples: &Samples,
    plan: &Plan,
    (record, channel): (u64, u64),
    len: u64,
) -> Result<(Vec<Window>, u64)> {
    let per_record = samples.feed().per_record();
    let record = record * per_record + channel % per_record;
    let range = samples.feed().view().samples_of(record, Pass::default())?;
    let in_all = range.end.saturating_sub(range.start);
    // A label is one value on from its input: the first predicted value comes after context_length + 1 others. Where
    // inputs are their own labels it comes after context_length.
    let before = match &samples.recipe().view {
        ViewRecipe::Windows(Windows { context_length, prediction_length: 1.., labels, .. }) => {
            context_length.saturating_add(u64::from(*labels == Labels::Next))
        }
        _ => u64::MAX,
    };
    let mut found = Vec::new();
    for sample in range.take(WINDOWS_DRAWN as usize) {
        for span in plan.trace(0, sample)?.spans {
            let end = span.start.saturating_add(span.len);
            if span.record == record && span.len > 0 && span.start < len {
                let prediction = span.start.saturating_add(before).min(end);
                found.push(Window { values: span.start..end, prediction });
            }
        }
    }
    Ok((found, in_all))
}
