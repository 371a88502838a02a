//! A page about records: what they are, and by their kind keys, series, tokens or audio codes.

use serde_json::json;
use windrow::prepare::Watch;
use windrow::preview::{text, tokens::is_tokens, tokens::tokenizer};
use windrow::{Dataset, Paths, Plan, Result, Samples, Scaler, ViewRecipe};

use crate::codes::Codes;
use crate::page::Page;
use crate::sample::{MOST_RECORDS, Sample};
use crate::{Report, codes, json, lengths, series, tokens, view};

/// The view that shows how tokens are packed where none is named.
const EXAMPLE_PACK: u64 = 1024;
const FILES_LISTED: usize = 20;

/// What is shown of records beyond what they are.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// The view whose samples are drawn.
    pub view: Option<ViewRecipe>,
    /// Decode tokens with this tokenizer; by default with the built-in one that the manifest names.
    pub tokenizer: Option<String>,
    /// How audio codes are shown.
    pub codes: Codes,
}

impl Asked {
    /// Whether the page about `data` shows it as audio codes: only then does `codes` count.
    pub fn is_about_codes(&self, data: &Dataset) -> bool {
        let is_of_series = matches!(self.view, Some(ViewRecipe::Windows(_) | ViewRecipe::Segments(_)));
        codes::are_codes(data.source().as_ref()) && !is_of_series && self.tokenizer.is_none()
    }
}

/// A page about records: what they are, lengths, values, what is missing, what a view sees of them. Of audio codes:
/// durations, prompts, the use of the codebooks, and where crops fall.
///
/// # Errors
/// Those of reading the records and of the view; `Interrupted` once `watch` wants to stop.
pub fn of_records(data: &Dataset, paths: &Paths, asked: &Asked, watch: &dyn Watch) -> Result<Report> {
    let mut page = Page::new(&format!("windrow: {paths}"));
    let sample = Sample::of(data.len(), MOST_RECORDS);
    let mut object = json!({ "records": data.len(), "records_read": sample.records.len() });
    let mut from = sample.said();
    facts(data, &mut page)?;
    if asked.is_about_codes(data) {
        let codes = codes::show(data, &asked.codes, asked.view.clone(), &mut page, watch)?;
        from = format!("{} of codes", text::counted(data.len(), "track"));
        object["records_read"] = codes["codebooks"]["tracks_read"].clone();
        object["codes"] = codes;
    } else if data.is_json() {
        // A view that needs numbers is refused as everywhere.
        asked.view.clone().map_or(Ok(()), |view| data.view(view, None).map(|_| ()))?;
        lengths::show(data, "lines", "bytes", &mut page, watch)?;
        json::keys(data, &mut page, watch, &sample)?;
    } else if data.is_rows() {
        asked.view.clone().map_or(Ok(()), |view| data.view(view, None).map(|_| ()))?;
        columns(data, &mut page)?;
        from = format!("the columns of {}; no record is read", text::counted(data.len(), "record"));
        object["records_read"] = json!(0);
    } else {
        numbers(asked, data, &sample, &mut page, watch)?;
    }
    Ok(Report { html: page.finish(), from, json: object, unread: 0 })
}

fn columns(data: &Dataset, page: &mut Page) -> Result<()> {
    let rows: Vec<Vec<String>> =
        data.info()?.columns.into_iter().map(|(name, holds)| vec![name, holds]).collect();
    page.section("Columns");
    page.table(&["column", "holds"], &rows);
    page.note("Of rows no values are shown: `windrow peek` shows some.");
    Ok(())
}

fn numbers(asked: &Asked, data: &Dataset, sample: &Sample, page: &mut Page, watch: &dyn Watch) -> Result<()> {
    let tokenizer = tokenizer(asked.tokenizer.as_deref(), data.manifest())?;
    let is_tokens = tokenizer.is_some() || is_tokens(data.source().as_ref());
    // Statistics for a scaler may take a while.
    let samples = |view| data.cut(view, None, &|| watch.cancelled());
    let named = asked.view.clone().map(samples).transpose()?;
    let named = named.map(with_plan).transpose()?;
    let named = named.as_ref().map(|(samples, plan)| (samples, plan.as_ref()));
    if !is_tokens {
        lengths::show(data, "series", "values", page, watch)?;
        let scaled = named.map(|(samples, _)| samples).filter(|s| *s.recipe().view.scaler() != Scaler::None);
        series::values(data, scaled, page, watch, sample)?;
        let drawn = named.and_then(|(samples, plan)| Some((samples, plan?)));
        series::gallery(data, drawn, page, watch)?;
        return named.map_or(Ok(()), |(samples, _)| view::coverage(samples, page));
    }
    lengths::show(data, "documents", "tokens", page, watch)?;
    tokens::frequent(data, tokenizer.as_ref(), page, watch, sample)?;
    let example = match named {
        Some(_) => None,
        None if data.info()?.values.is_none_or(|values| values <= EXAMPLE_PACK) => None,
        None => Some(with_plan(data.pack(EXAMPLE_PACK)?)?),
    };
    if let Some((samples, _)) = named {
        view::coverage(samples, page)?;
    }
    let shown = named.or(example.as_ref().map(|(samples, plan)| (samples, plan.as_ref())));
    if let Some((samples, Some(plan))) = shown {
        view::packs(samples, plan, tokenizer.as_ref(), page)?;
        if example.is_some() {
            page.note(&format!("An example, as --pack {EXAMPLE_PACK} packs them."));
        }
    }
    Ok(())
}

// In the order of the data, so that a position is a sample; none where there is no sample to plan.
fn with_plan(samples: Samples) -> Result<(Samples, Option<Plan>)> {
    let plan = if samples.is_empty() {
        None
    } else {
        Some(samples.loader().batch_size(1).shuffle(false).num_threads(Some(0)).plan()?)
    };
    Ok((samples, plan))
}

fn facts(data: &Dataset, page: &mut Page) -> Result<()> {
    let info = data.info()?;
    page.section("What it is");
    let mut rows = vec![("format", info.format.clone()), ("records", text::count(info.records))];
    rows.extend(
        info.values
            .filter(|_| !data.is_json() && !data.is_rows())
            .map(|values| ("values", text::count(values))),
    );
    rows.extend(info.dtype.clone().map(|dtype| ("dtype", dtype)));
    rows.extend(info.channels.map(|channels| ("channels", channels.to_string())));
    rows.extend(info.vocab_size.map(|size| ("vocabulary", text::count(size))));
    rows.extend(info.tokenizer.clone().map(|name| ("tokenizer", name)));
    if !info.extras.is_empty() {
        rows.push(("extras", text::truncated(&info.extras.join(", "), 500)));
    }
    rows.push(("bytes", text::size(info.bytes)));
    rows.push(("files", text::count(info.files.len() as u64)));
    let rows: Vec<Vec<String>> =
        rows.into_iter().map(|(name, value)| vec![name.to_string(), value]).collect();
    page.table(&[], &rows);
    let files: Vec<Vec<String>> =
        info.files.iter().take(FILES_LISTED).map(|f| vec![f.file.clone(), text::size(f.size)]).collect();
    page.table(&["file", "size"], &files);
    if info.files.len() > FILES_LISTED {
        page.note(&format!("… and {} more.", text::count((info.files.len() - FILES_LISTED) as u64)));
    }
    Ok(())
}
