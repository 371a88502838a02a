//! `windrow cache`: what was expanded, converted, computed once or fetched, how much space it takes, and how to have it back.

use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use serde_json::json;
use windrow::dev::store::{self, CacheEntry};

use crate::failure::{DONE, Failure};
use crate::out::Out;
use crate::text;

/// List what is kept in the cache: what was expanded, converted, computed once or fetched
///
/// The cache is the folder WINDROW_CACHE, else XDG_CACHE_HOME/windrow, else ~/.cache/windrow. All of it takes at most
/// WINDROW_CACHE_LIMIT (20GB, 512MiB, bytes), else half of what is free on its disk and what it holds already; data opened with
/// `cache_limit` has it keep to that instead. What was used least recently is removed first, and nothing that is open.
#[derive(Args, Debug)]
pub(crate) struct Cache {
    /// Remove all that no process has open
    #[arg(long)]
    clear: bool,
}

pub(crate) fn run(args: &Cache, out: &mut Out) -> Result<i32, Failure> {
    let cache = store::Cache::of_environment()?;
    if args.clear {
        return clear(&cache, out);
    }
    let held = cache.held()?;
    list(&held.entries, out)?;
    out.line(format_args!(
        "{}: {}, {} of at most {}",
        text::escaped(&cache.folder().display().to_string()),
        counted(held.entries.len() as u64),
        text::size(held.bytes),
        text::size(held.limit_bytes)
    ))?;
    out.object(json!(held))?;
    Ok(DONE)
}

fn clear(cache: &store::Cache, out: &mut Out) -> Result<i32, Failure> {
    let cleared = cache.clear()?;
    list(&cleared.left, out)?;
    let left = cleared.left.len() as u64;
    let still =
        if left == 0 { String::new() } else { format!("; {} left, open in a process", counted(left)) };
    out.line(format_args!(
        "{}: {} removed, {}{still}",
        text::escaped(&cache.folder().display().to_string()),
        counted(cleared.removed),
        text::size(cleared.removed_bytes)
    ))?;
    out.object(json!({ "folder": cache.folder(), "cleared": cleared }))?;
    Ok(DONE)
}

fn counted(n: u64) -> String {
    if n == 1 { "1 entry".to_string() } else { format!("{} entries", text::count(n)) }
}

fn list(entries: &[CacheEntry], out: &mut Out) -> Result<(), Failure> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos() as u64);
    let rows: Vec<[String; 4]> = entries
        .iter()
        .map(|entry| {
            let used = if entry.is_open {
                "open".to_string()
            } else {
                ago(now.saturating_sub(entry.last_used_ns) / 1_000_000_000)
            };
            let source = if entry.source.is_empty() { &entry.name } else { &entry.source };
            [entry.kind.clone(), text::size(entry.bytes), used, text::escaped(source)]
        })
        .collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let [kinds, sizes, times] = [0, 1, 2].map(width);
    for [kind, size, used, source] in &rows {
        out.line(format_args!("{kind:kinds$}  {size:>sizes$}  {used:>times$}  {source}"))?;
    }
    Ok(())
}

/// `12 s ago`, `3 min ago`, `5 h ago`, `2 d ago`.
fn ago(seconds: u64) -> String {
    let (n, unit) = match seconds {
        0..60 => (seconds, "s"),
        60..3_600 => (seconds / 60, "min"),
        3_600..86_400 => (seconds / 3_600, "h"),
        _ => (seconds / 86_400, "d"),
    };
    format!("{n} {unit} ago")
}
