//! The page about a plan: which neighbours documents keep, what epochs leave out, how long ranks wait, how much is padding. All of it is
//! known from lengths.

use serde_json::{Value, json};
use windrow::preview::text;
use windrow::{LoaderBuilder, Neighbours, Recipe, Result, Shuffle, ViewRecipe};

use crate::Report;
use crate::page::Page;
use crate::svg::Svg;

/// Bars of more ranks would be thinner than lines.
const MOST_BARS: usize = 128;

/// A page about what the batches of a plan are made of, from the lengths of records; no value is read. `recipe` is that of the loader, `name`
/// what it is called, and `ranks` share each step.
///
/// # Errors
/// Those of making the plan and of reading lengths; `Config` where the ranks do not divide a batch whose rows cost this and that.
pub fn of_plan(recipe: &Recipe, loader: &LoaderBuilder, ranks: u64, name: &str) -> Result<Report> {
    let loader = &loader.clone().rank(0, ranks);
    let mut page = Page::new(&format!("windrow: {name}"));
    facts(recipe, loader, &mut page)?;
    let found = loader.neighbours()?;
    let parts: Vec<Value> = (found.iter().zip(loader.parts()).enumerate())
        .map(|(number, (neighbours, samples))| {
            let part = recipe.names.get(number);
            epochs(part, neighbours, &samples.recipe().view, &mut page);
            let mut object = json!(neighbours);
            object["part"] = json!(part);
            object
        })
        .collect();
    let waiting = waiting(recipe, loader, ranks, &mut page)?;
    let padding = padding(recipe, loader, &mut page)?;
    let n: u64 = loader.parts().iter().map(|samples| samples.dataset().len()).sum();
    Ok(Report {
        html: page.finish(),
        from: format!("the lengths of {}; no value is read", text::counted(n, "record")),
        json: json!({ "epochs": parts, "waiting": waiting, "padding": padding }),
        unread: 0,
    })
}

fn facts(recipe: &Recipe, loader: &LoaderBuilder, page: &mut Page) -> Result<()> {
    page.section("What it is");
    let rows = loader.parts().iter().map(|samples| {
        let (records, rows) = (text::count(samples.dataset().len()), text::count(samples.len()));
        vec![samples.dataset().paths().to_string(), samples.feed().view().describe(), records, rows]
    });
    parts_table(recipe, &["data", "view", "records", "rows"], rows, page);
    let batch = match recipe.max_tokens {
        Some(tokens) => format!("at most {} tokens", text::count(tokens)),
        None => text::counted(recipe.global_batch_size, "row"),
    };
    page.text(&format!("A batch has {batch} over all ranks; the seed is {}.", recipe.seed));
    let samples = loader.plan()?.sampler().len(0);
    if samples.is_none() {
        page.text("Its epoch has no end: what follows of epochs is of the first passes of each part.");
    }
    let left = samples.map_or(0, |len| len % recipe.global_batch_size.max(1));
    if recipe.drop_last && recipe.max_tokens.is_none() && left > 0 {
        let which = if recipe.shuffle == Shuffle::Off { "the same" } else { "others" };
        let left = text::counted(left, "row");
        page.text(&format!(
            "The last {left} of an epoch do not fill a batch and are left out, {which} each time."
        ));
    }
    Ok(())
}

// A row for each part, which begins with its name where it has one.
fn parts_table(recipe: &Recipe, head: &[&str], rows: impl Iterator<Item = Vec<String>>, page: &mut Page) {
    let named: Vec<&str> =
        (!recipe.names.is_empty()).then_some("part").into_iter().chain(head.iter().copied()).collect();
    let rows = rows
        .enumerate()
        .map(|(number, row)| recipe.names.get(number).cloned().into_iter().chain(row).collect());
    page.table(&named, &rows.collect::<Vec<Vec<String>>>());
}

fn epochs(part: Option<&String>, found: &Neighbours, view: &ViewRecipe, page: &mut Page) {
    let joins = matches!(view, ViewRecipe::Pack(_) | ViewRecipe::Bins(_) | ViewRecipe::Segments(_));
    let of = part.map_or_else(String::new, |name| format!(" of {name}"));
    page.section(&format!("{}{of} in five epochs", if joins { "Neighbours" } else { "Coverage" }));
    let pairs = if found.in_rows { "share a row" } else { "follow each other" };
    if joins && found.reshuffled {
        let bars: Vec<(f64, f64)> = found.kept.iter().map(|kept| (1.0, *kept)).collect();
        let caption = format!(
            "documents that {pairs} in epoch 0 and do so again; left: in one order, right: in this plan"
        );
        page.figure(&caption, &Svg::pairs(&bars, 1.0), ["epoch 0", "epoch 4"]);
    } else if joins {
        page.text(&format!(
            "Documents that {pairs} do so in every epoch. With --reshuffle, others do in each."
        ));
    }
    let rows: Vec<Vec<String>> = (found.coverage.iter().zip(&found.kept).enumerate())
        .map(|(epoch, (seen, kept))| {
            let all = seen.used.saturating_add(seen.unseen).max(1) as f64;
            let kept = joins.then(|| percent(*kept, 2));
            let counts = [seen.used, seen.unseen, seen.skipped_records].map(text::count);
            let share = percent(seen.unseen as f64 / all, 3);
            [epoch.to_string()].into_iter().chain(kept).chain(counts).chain([share]).collect()
        })
        .collect();
    let kept = joins.then_some("neighbours kept");
    let head = ["values seen", "values left out", "records left out whole", "share of values left out"];
    page.table(&["epoch"].into_iter().chain(kept).chain(head).collect::<Vec<_>>(), &rows);
    if joins && found.reshuffled {
        let some = if found.all_pairs { "All" } else { "In stretches spread over epoch 0," };
        let pairs = text::counted(found.pairs, "pair");
        page.note(&format!("{some} {pairs} of neighbours in epoch 0 were looked up in epochs 1 to 4."));
    }
    if matches!(view, ViewRecipe::Pack(_)) {
        let which = if found.reshuffled { "other documents" } else { "the same documents" };
        page.note(&format!(
            "What fills no row is left out: the end of the stream, which holds {which} in each epoch."
        ));
    }
}

fn waiting(recipe: &Recipe, loader: &LoaderBuilder, ranks: u64, page: &mut Page) -> Result<Value> {
    page.section("Waiting of ranks");
    if recipe.balance.as_deref() == Some("function") {
        page.text("A function says what rows cost, and a plan as text does not hold it.");
        return Ok(Value::Null);
    }
    let Some((by, waiting)) = loader.waiting_if_balanced()? else {
        page.text(match ranks {
            1 => "One rank gets all rows. --world-size W shows how long W of them wait for the dearest.",
            _ => "All rows cost the same, or nothing says what they cost.",
        });
        return Ok(Value::Null);
    };
    let pairs: Vec<(f64, f64)> = waiting
        .ranks_before
        .iter()
        .copied()
        .zip(waiting.ranks_after.iter().copied())
        .take(MOST_BARS)
        .collect();
    let full = pairs.iter().fold(0.0f64, |most, (before, after)| most.max(*before).max(*after));
    let caption = format!(
        "how long each rank waits for the dearest; left: rows in order, right: balanced by {by}; the highest bar is {} of a rank's mean cost",
        percent(full, 2)
    );
    let last = format!("rank {}", pairs.len().saturating_sub(1));
    page.figure(&caption, &Svg::pairs(&pairs, full), ["rank 0", &last]);
    let row = vec![text::count(waiting.ranks), percent(waiting.before, 2), percent(waiting.after, 2)];
    page.table(&["ranks", "rows in order", "balanced"], &[row]);
    page.note(match recipe.balance {
        Some(_) => "Shares of the mean cost, over 64 steps of epoch 0 or all of them. The plan is balanced so.",
        None => "Shares of the mean cost, over 64 steps of epoch 0 or all of them. The plan has no balance: its rows come in order.",
    });
    let mut object = json!(waiting);
    object["balance"] = json!(by.to_string());
    Ok(object)
}

fn padding(recipe: &Recipe, loader: &LoaderBuilder, page: &mut Page) -> Result<Value> {
    page.section("Padding");
    let Some((tokens, found)) = loader.padding_if_budgeted()? else {
        page.text("All rows are equally long, or something else decides which rows share a batch.");
        return Ok(Value::Null);
    };
    let pairs: Vec<(f64, f64)> = found.iter().map(|padding| (padding.at_random, padding.share)).collect();
    let caption = format!(
        "padding of all positions; left: batches of random rows, right: batches within {} tokens",
        text::count(tokens)
    );
    page.figure(&caption, &Svg::pairs(&pairs, 1.0), ["", ""]);
    let rows = found.iter().map(|padding| vec![percent(padding.at_random, 1), percent(padding.share, 1)]);
    parts_table(recipe, &["random rows", "within the budget"], rows, page);
    page.note(match recipe.max_tokens {
        Some(_) => "Both pad to the longest row of a batch.",
        None => "Both pad to the longest row of a batch. The plan has no budget of tokens: with this one, batches have about the same number of rows.",
    });
    Ok(json!({ "max_tokens": tokens, "parts": found }))
}

fn percent(share: f64, digits: usize) -> String {
    format!("{:.digits$} %", share * 100.0)
}
