//! The run: one batch a step, in parts that are added up; a line of JSON now and then; checkpoints.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use candle_core::{Device, Tensor};
use serde::Serialize;
use windrow::format::Options;
use windrow::{Error, Kind, Loader, Result};
use windrow_candle::ToCandle;

use crate::adam::{self, Adam};
use crate::checkpoint::{self, Folder};
use crate::config::Config;
use crate::model::Gpt;

/// Random ids where no data is named, as many as oxidizr takes.
const DUMMY_TOKENS: u64 = 1_000_000;

/// What the command line adds to the configuration.
pub(crate) struct Run {
    pub(crate) config: Config,
    pub(crate) data: Option<PathBuf>,
    pub(crate) resume: Option<Resume>,
    /// Of the order and of the first weights.
    pub(crate) seed: u64,
}

/// From where a run continues.
#[derive(Clone, Debug)]
pub(crate) enum Resume {
    /// The newest checkpoint of the folder, or the start.
    Newest,
    /// This one.
    From(PathBuf),
}

#[derive(Serialize)]
struct Line {
    step: u64,
    loss: f32,
    grad_norm: f64,
    learning_rate: f64,
    epoch: u64,
    #[serde(rename = "it/s")]
    steps_per_second: f64,
}

/// Trains to the end; a line of JSON for each `log_interval` steps goes to `out`, other messages to `notes`.
///
/// # Errors
/// What data, checkpoint, model or operating system say.
pub(crate) fn run(run: &Run, out: &mut dyn Write, notes: &mut dyn Write) -> Result<()> {
    let (model, trainer) = (&run.config.model, &run.config.trainer);
    let folder = Folder::enter(&trainer.checkpoint_dir, trainer.max_checkpoints)?;
    let from = checkpoint_to_go_on_from(run, &folder)?;
    let mut loader = open(run, folder.path())?;
    let gpt = Gpt::new(model, run.seed, &Device::Cpu).map_err(computing)?;
    let mut adam = Adam::new(gpt.parameters()).map_err(computing)?;
    let mut step = 0;
    match &from {
        Some(path) => {
            let (done, state) = checkpoint::load(path, &gpt, &mut adam, model)?;
            loader.resume(&state).map_err(|e| e.or_at(path))?;
            step = done;
            note(notes, format_args!("continues after step {step}, from {}", path.display()));
        }
        None => {
            let n_weights: usize = gpt.parameters().iter().map(|p| p.var.elem_count()).sum();
            note(notes, format_args!("starts with {n_weights} weights"));
        }
    }

    let mut saved = from.map_or(0, |_| step);
    let (mut since, mut timed) = (Instant::now(), 0u64);
    while trainer.max_steps == 0 || step < trainer.max_steps {
        let Some(batch) = loader.next_batch().transpose()? else { break };
        let (inputs, labels) =
            (batch.tensor("input_ids", &Device::Cpu)?, batch.tensor("labels", &Device::Cpu)?);
        let (loss, grads) = gradients(&gpt, &inputs, &labels, trainer.batch_size).map_err(computing)?;
        let grad_norm = adam::norm(&grads).map_err(computing)?;
        step += 1;
        if !loss.is_finite() || !grad_norm.is_finite() {
            return Err(Error::config(format!("step {step} has loss {loss} and gradient {grad_norm}"))
                .field("trainer.learning_rate")
                .hint("go on from an earlier checkpoint with a smaller learning_rate"));
        }
        adam.step(gpt.parameters(), &grads, step, trainer.learning_rate).map_err(computing)?;
        timed += 1;
        if step.is_multiple_of(trainer.log_interval) {
            let line = Line {
                step,
                loss,
                grad_norm,
                learning_rate: trainer.learning_rate,
                epoch: loader.cursor().epoch,
                steps_per_second: timed as f64 / since.elapsed().as_secs_f64(),
            };
            print(out, &line)?;
            (since, timed) = (Instant::now(), 0);
        }
        if step.is_multiple_of(trainer.save_interval) {
            folder.save(&gpt, &adam, model, step, &loader.state())?;
            saved = step;
        }
    }
    if saved != step {
        folder.save(&gpt, &adam, model, step, &loader.state())?;
    }
    note(notes, format_args!("done after step {step}"));
    Ok(())
}

fn checkpoint_to_go_on_from(run: &Run, folder: &Folder) -> Result<Option<PathBuf>> {
    let newest = folder.list()?.pop().map(|(_, path)| path);
    match (&run.resume, newest) {
        (Some(Resume::From(path)), _) => Ok(Some(path.clone())),
        (Some(Resume::Newest), newest) => Ok(newest),
        (None, None) => Ok(None),
        // Checkpoints of two runs in one folder could not be told apart.
        (None, Some(path)) => Err(Error::new(Kind::Exists, "an earlier run left its checkpoints here")
            .at(path)
            .hint("--resume auto continues it; a new run takes another checkpoint_dir")),
    }
}

// One batch holds the rows of one step, so that step k reads batch k of the plan.
fn open(run: &Run, folder: &Path) -> Result<Loader> {
    let (model, trainer) = (&run.config.model, &run.config.trainer);
    let vocab_size = Some(model.vocab_size as u64);
    let path = match &run.data {
        Some(path) => path.clone(),
        None => {
            let path = folder.join("dummy-tokens.bin");
            windrow::prepare::dummy(&path, model.vocab_size as u64, DUMMY_TOKENS, run.seed, true)?;
            path
        }
    };
    let tokens = windrow::open_with(&path, &Options { vocab_size, ..Options::default() })?;
    let rows = (trainer.batch_size as u64).checked_mul(trainer.gradient_accumulation as u64);
    let rows = rows.ok_or_else(|| Error::config("batch_size x gradient_accumulation is larger than 2^64"))?;
    let view = tokens.pack(model.max_seq_len as u64)?;
    view.loader().batch_size(rows).rank(0, 1).seed(run.seed).epochs(Some(trainer.num_epochs)).build()
}

// The mean loss over all rows, and its gradient for each parameter. `rows` rows go through the model at once.
fn gradients(
    gpt: &Gpt,
    inputs: &Tensor,
    labels: &Tensor,
    rows: usize,
) -> candle_core::Result<(f32, Vec<Tensor>)> {
    let parts = inputs.dim(0)? / rows;
    let mut loss = 0.0;
    let mut sums: Vec<Tensor> = Vec::new();
    for part in 0..parts {
        let cut = |tensor: &Tensor| tensor.narrow(0, part * rows, rows);
        let part_of_loss = (gpt.loss(&cut(inputs)?, &cut(labels)?)? / parts as f64)?;
        loss += part_of_loss.to_scalar::<f32>()?;
        let grads = part_of_loss.backward()?;
        for (number, parameter) in gpt.parameters().iter().enumerate() {
            let missing = || candle_core::Error::Msg(format!("{} has no gradient", parameter.name));
            // Without what it was computed from, which would be kept alive with it.
            let grad = grads.get(&parameter.var).ok_or_else(missing)?.detach();
            match sums.get_mut(number) {
                Some(sum) => *sum = (&*sum + grad)?,
                None => sums.push(grad),
            }
        }
    }
    Ok((loss, sums))
}

fn computing(cause: candle_core::Error) -> Error {
    Error::new(Kind::Unsupported, "candle could not compute the model").caused_by(cause)
}

fn print(out: &mut dyn Write, line: &Line) -> Result<()> {
    let text = serde_json::to_string(line).map_err(std::io::Error::from);
    // Line by line, so that nothing logged is lost when the run is killed.
    let written = text.and_then(|text| writeln!(out, "{text}")).and_then(|()| out.flush());
    written.map_err(|e| Error::io("write a line of the log", "standard output", e))
}

fn note(notes: &mut dyn Write, text: std::fmt::Arguments<'_>) {
    // A run does not end because nobody reads what is said beside the log.
    let _ = writeln!(notes, "{text}");
}
