//! `windrow extract`: the batch of a step as a file.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use windrow::dev::plan::{Step, Steps, Workspace};
use windrow::preview::{batch, tokens};
use windrow::{Plan, rows_of_step};

use crate::args::output::{self, no_overwrite_of_stdout, refuse_input};
use crate::args::path;
use crate::failure::{DONE, Failure};
use crate::out::Out;
use crate::plan::{OfRank, Planned};
use crate::text;

/// Write the batch of a step: its arrays as .npz, or its rows as text
#[derive(Args, Debug)]
pub(crate) struct Extract {
    /// The step, from 0; with --epoch counted in that epoch, else from the start of the run
    #[arg(long, value_name = "K")]
    step: u64,
    /// The epoch, from 0
    #[arg(long, value_name = "E")]
    epoch: Option<u64>,
    /// Where it goes: a name that ends in .npz or .txt, or `-`, as text to stdout
    #[arg(short, long, value_name = "FILE", default_value = "-", value_parser = path())]
    out: PathBuf,
    /// Replace an existing file
    #[arg(long)]
    overwrite: bool,
    #[command(flatten)]
    of_rank: OfRank,
    #[command(flatten)]
    planned: Planned,
}

pub(crate) fn run(args: &Extract, out: &mut Out) -> Result<i32, Failure> {
    let is_stdout = args.out.as_os_str() == "-";
    let extension = args.out.extension().map(|end| end.to_string_lossy().to_lowercase());
    let name = extension.map(|end| format!(".{end}")).unwrap_or_default();
    let is_text = match name.as_str() {
        _ if is_stdout => true,
        ".npz" => false,
        ".txt" => true,
        _ => {
            return Err(Failure::Usage {
                message: format!("{} is neither .npz nor .txt", args.out.display()),
                hint: Some("-o batch.npz writes arrays that NumPy reads, -o batch.txt text".to_string()),
            });
        }
    };
    if is_stdout {
        no_overwrite_of_stdout(args.overwrite)?;
    }
    if !is_text {
        args.planned.no_tokenizer(".npz holds arrays")?;
    }
    let (recipe, plan, steps) = args.planned.open(args.of_rank)?;
    if !is_stdout {
        refuse_input(&args.out, args.planned.files(&recipe, &plan))?;
    }
    let steps = Steps { shard: args.of_rank.shard()?, ..steps };
    let step = steps.find(plan.sampler(), args.epoch, args.step)?;
    let batch = plan.batch_of(&step, None, &mut Workspace::default())?;
    let content = if is_text {
        let tokenizers = args.planned.tokenizers(&recipe)?;
        let parts = parts_of_rows(&plan, &step)?;
        let decode = |row: usize, ids: &[i64]| {
            let tokenizer = tokenizers.get(*parts.get(row)?)?.as_ref()?;
            tokens::decoded(tokenizer, ids)
        };
        batch::text(&batch, Some(&decode)).into_bytes()
    } else {
        batch::npz(&batch)?
    };
    let fields = batch.fields().iter().map(|field| {
        let shape: Vec<usize> = std::iter::once(batch.rows()).chain(field.shape.iter().copied()).collect();
        json!({ "name": field.name, "dtype": field.dtype, "shape": shape })
    });
    let mut object = json!({
        "plan": plan.identity()?.to_string(), "seed": plan.seed(), "step": args.step, "epoch": step.epoch,
        "rows": batch.rows(), "fields": fields.collect::<Vec<_>>(),
    });
    if !is_stdout {
        output::write(&args.out, &content, args.overwrite)?;
        object["out"] = json!(args.out);
        let (rows, size) = (text::counted(batch.rows() as u64, "row"), text::size(content.len() as u64));
        out.line(format_args!("{}: {rows} of step {}, {size}", text::quoted_path(&args.out), args.step))?;
    } else if out.is_json() {
        object["text"] = json!(String::from_utf8_lossy(&content))
    } else {
        out.raw(&content)?
    }
    out.object(object)?;
    Ok(DONE)
}

// The part of a mixture that each row of a rank's batch is from.
fn parts_of_rows(plan: &Plan, step: &Step) -> windrow::Result<Vec<usize>> {
    let rows = rows_of_step(plan, step, None, 1)?;
    rows.into_iter().map(|row| Ok(plan.trace(step.epoch, row.position)?.feed)).collect()
}
