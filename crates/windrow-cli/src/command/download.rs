//! `windrow download`: a data set of the Hugging Face Hub, a folder of a bucket or a file into a folder.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use serde_json::{Value, json};
use windrow::download::{self, Failed, NAMED, Named, Report, Request, folder_name, hub_url};

use crate::args::{Stores, no_stdout, path};
use crate::failure::{DONE, Failure, PARTLY};
use crate::interrupt::Interrupt;
use crate::out::Out;
use crate::progress::Progress;
use crate::text;

/// Download a data set from the Hugging Face Hub, or files from a store
///
/// Files appear one by one, each after its size and hash were found right; a run that was stopped continues where it ended. For the Hub
/// HF_ENDPOINT, HF_HOME, HF_HUB_CACHE, HF_TOKEN and HF_HUB_OFFLINE are honoured.
#[derive(Args, Debug)]
pub(crate) struct Download {
    /// owner/name of a data set, time-300b, or a URL: s3://bucket/prefix, gs://, az://, https://host/file, hf://
    #[arg(value_name = "REPO")]
    repo: String,
    /// Only files whose path fits; `*` goes over `/` too
    #[arg(long, value_name = "GLOB")]
    include: Vec<String>,
    /// No files whose path fits
    #[arg(long, value_name = "GLOB")]
    exclude: Vec<String>,
    /// With time-300b: these folders of it
    #[arg(long, value_name = "A,B,…", conflicts_with_all = ["include", "partition_set"])]
    partitions: Option<String>,
    /// With time-300b: a set of folders, train or debug [default: train]
    #[arg(long, value_name = "SET", conflicts_with = "include")]
    partition_set: Option<String>,
    /// Branch, tag or commit of a data set [default: main]
    #[arg(long)]
    revision: Option<String>,
    /// The folder to download into [default: the last name of what is downloaded, or time300b_selected]
    #[arg(short, long, value_name = "DIR", value_parser = path())]
    out: Option<PathBuf>,
    /// Replace files that hold something else
    #[arg(long)]
    overwrite: bool,
    /// Files to fetch at the same time
    #[arg(long, value_name = "N", default_value_t = 8)]
    connections: usize,
    /// Only say what would be downloaded
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    stores: Stores,
}

/// Most failed files that are reported one by one.
const MOST_FAILED: usize = 20;

pub(crate) fn run(args: &Download, out: &mut Out) -> Result<i32, Failure> {
    args.out.as_deref().map_or(Ok(()), no_stdout)?;
    let request = request(args)?;
    let interrupt = Interrupt::listen();
    let progress = Progress::new("download", out.quiet(), &interrupt).counting("file");
    if args.dry_run {
        let chosen = download::choose(&request, &progress)?;
        drop(progress);
        for file in &chosen.files {
            out.line(format_args!("{:>8}  {}", text::size(file.size), text::escaped(&file.path)))?;
        }
        let bytes = chosen.bytes();
        let files = text::counted(chosen.files.len() as u64, "file");
        out.line(format_args!("{files}, {} in all; nothing was downloaded", text::size(bytes)))?;
        out.object(
            json!({ "commit": chosen.commit, "files": chosen.files, "bytes": bytes, "dry_run": true }),
        )?;
        return Ok(DONE);
    }
    let started = Instant::now();
    let mut report = download::download(&request, &progress)?;
    drop(progress);
    if report.done_files() == 0 && !report.failed.is_empty() {
        // It did not half work: it failed, for the first reason.
        let Failed { path, error } = report.failed.remove(0);
        return Err(error.or_at(path).into());
    }
    report_of(&request, &report, started.elapsed().as_secs_f64(), out)
}

// Says what came and what did not.
fn report_of(request: &Request, report: &Report, seconds: f64, out: &mut Out) -> Result<i32, Failure> {
    for Failed { path, error } in report.failed.iter().take(MOST_FAILED) {
        let hint = error.hint_text().map_or(String::new(), |hint| format!("\n  hint: {hint}"));
        out.line(format_args!(
            "failed: {}: {}{hint}",
            text::escaped(path),
            text::escaped(&text::message(error))
        ))?;
    }
    let untold = report.failed.len().saturating_sub(MOST_FAILED);
    if untold > 0 {
        out.line(format_args!("… and {}", text::counted(untold as u64, "more failed file")))?;
    }
    let (done, folder) = (report.done_files(), request.output.display());
    let files = text::counted(report.files, "file");
    if done < report.files {
        out.line(format_args!(
            "{folder}: {} of {files}; the same command continues from here",
            text::count(done)
        ))?;
    } else {
        let here = [(report.unchanged_files, "there already"), (report.cached_files, "from the Hub's cache")];
        let here =
            here.into_iter().filter(|(n, _)| *n > 0).map(|(n, how)| format!("; {} {how}", text::count(n)));
        let (size, here) = (text::size(report.bytes), here.collect::<String>());
        out.line(format_args!("{folder}: {files}, {size} in {seconds:.1} s, checked{here}"))?;
    }
    let failed = |f: &Failed| json!({"path": f.path, "kind": f.error.kind().name(), "message": text::message(&f.error), "hint": f.error.hint_text()});
    out.object(json!({
        "repo": report.name,
        "revision": report.revision,
        "commit": report.commit,
        "output": request.output,
        "files": report.files,
        "bytes": report.bytes,
        "unchanged_files": report.unchanged_files,
        "cached_files": report.cached_files,
        "downloaded_files": report.downloaded_files,
        "downloaded_bytes": report.downloaded_bytes,
        "resumed_bytes": report.resumed_bytes,
        "left_files": report.left_files,
        "failed": report.failed.iter().map(failed).collect::<Vec<Value>>(),
        "seconds": seconds,
    }))?;
    Ok(if done < report.files { PARTLY } else { DONE })
}

fn request(args: &Download) -> Result<Request, Failure> {
    let named = Named::find(&args.repo);
    let (url, name) = if args.repo.contains("://") { of_url(args)? } else { of_hub(args, named)? };
    let output =
        args.out.clone().unwrap_or_else(|| named.map_or(name, |named| named.output.to_string()).into());
    let mut request = Request::new(url, output);
    request.options = args.stores.options()?;
    request.include.clone_from(&args.include);
    request.exclude.clone_from(&args.exclude);
    request.overwrite = args.overwrite;
    request.n_connections = args.connections;
    match named {
        Some(named) => {
            request.exclude.extend(named.exclude.iter().map(|glob| glob.to_string()));
            if args.include.is_empty() {
                request.include = partitions(args, named)?.iter().map(|p| Named::pattern(p)).collect();
            }
        }
        None if args.partitions.is_some() || args.partition_set.is_some() => {
            return Err(usage(
                format!("{} has no partitions known here", args.repo),
                "choose its files with --include 'FOLDER/**'",
            ));
        }
        None => {}
    }
    Ok(request)
}

// A data set of the Hub, and its name.
fn of_hub(args: &Download, named: Option<&'static Named>) -> Result<(String, String), Failure> {
    let repo = named.map_or(args.repo.as_str(), |named| named.repo);
    let names: Vec<&str> = NAMED.iter().map(|named| named.name).collect();
    // What is wrong with a name, and what with a revision.
    hub_url(repo, "main").map_err(|e| {
        let or = names.join(", ");
        e.hint(format!(
            "it is called owner/name, as in the address of its page, {or}, or a URL like s3://bucket/prefix"
        ))
    })?;
    let name = args.repo.rsplit('/').next().unwrap_or_default();
    Ok((hub_url(repo, args.revision.as_deref().unwrap_or("main"))?, name.to_string()))
}

// A URL as it is typed, and a name for what is there: its last one, without the end of a file's.
fn of_url(args: &Download) -> Result<(String, String), Failure> {
    if args.revision.is_some() {
        return Err(usage(
            "--revision with a URL".to_string(),
            "hf://datasets/owner/name@REVISION names it in the URL",
        ));
    }
    let name = folder_name(&args.repo)?;
    if name.is_empty() && args.out.is_none() {
        Err(usage("the URL's last name is not one for a folder".to_string(), "give --out"))
    } else {
        Ok((args.repo.clone(), name))
    }
}

// The folders of a named data set that were asked for.
fn partitions(args: &Download, named: &Named) -> Result<Vec<String>, Failure> {
    let sets = || named.sets.iter().map(|set| set.0).collect::<Vec<_>>().join(", ");
    if let Some(text) = &args.partitions {
        let parts: Vec<String> =
            text.split(',').map(str::trim).filter(|p| !p.is_empty()).map(str::to_string).collect();
        return if parts.is_empty() {
            Err(usage(
                format!("--partitions {text:?} names no partition"),
                &format!(
                    "for example --partitions {}; or --partition-set {}",
                    named.sets[1].1.join(","),
                    sets()
                ),
            ))
        } else {
            Ok(parts)
        };
    }
    let name = args.partition_set.as_deref().unwrap_or(named.sets[0].0);
    let set = named
        .set(name)
        .ok_or_else(|| usage(format!("no partition set {name:?}"), &format!("there is {}", sets())))?;
    Ok(set.iter().map(|p| p.to_string()).collect())
}

fn usage(message: String, hint: &str) -> Failure {
    Failure::Usage { message, hint: Some(hint.to_string()) }
}
