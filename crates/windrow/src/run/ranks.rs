//! Which rank this process is, as its launcher says.

use std::sync::Once;

use windrow_core::sampler::Shard;
use windrow_core::{Error, Result};

/// This process among those of its launcher, and what says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The rank, and how many there are.
    pub shard: Shard,
    /// The variables that were believed, or `"no launcher"`.
    pub by: &'static str,
}

/// Pairs of rank and world size, in the order in which they are believed. Slurm sets `SLURM_PROCID` and `SLURM_NTASKS` for the
/// batch script too, where one process runs; only srun sets the number of tasks of the step.
const PAIRS: [(&str, &str, &str); 2] = [
    ("RANK", "WORLD_SIZE", "RANK, WORLD_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID, SLURM_STEP_NUM_TASKS"),
];

/// What launchers set for each process to the number of those that they started: torchrun, srun, Open MPI; MPICH, Intel's MPI
/// and Cray's by PMI; MVAPICH, Horovod, Flux, jsrun, and JAX's own; then to those on one machine, which are no more than all.
const WORLDS: [&str; 13] = [
    "WORLD_SIZE",
    "SLURM_STEP_NUM_TASKS",
    "OMPI_COMM_WORLD_SIZE",
    "PMI_SIZE",
    "MV2_COMM_WORLD_SIZE",
    "HOROVOD_SIZE",
    "FLUX_JOB_SIZE",
    "JSM_NAMESPACE_SIZE",
    "JAX_NUM_PROCESSES",
    "LOCAL_WORLD_SIZE",
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "MPI_LOCALNRANKS",
    "PALS_LOCAL_SIZE",
];

/// What they set to the number of this process, from 0: there are more processes than that.
const NUMBERS: [&str; 5] =
    ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "PALS_RANKID", "MV2_COMM_WORLD_RANK"];

/// The machines of a slice of TPUs, and of a job of SageMaker, separated by commas: each runs one process at least.
const HOSTS: [&str; 2] = ["TPU_WORKER_HOSTNAMES", "SM_HOSTS"];

const HINT: &str = "pass @ranks@";

/// This process among those that torchrun (`RANK`, `WORLD_SIZE`) or srun (`SLURM_PROCID`, `SLURM_STEP_NUM_TASKS`) started, or
/// rank 0 of 1. Warns once where Slurm's job has more tasks than that and srun did not start this process.
///
/// # Errors
/// `Config` when only one variable of a pair is set, which would feed every rank the same data, the numbers make no sense, or
/// another launcher started more processes, as [`check`] says.
pub fn from_environment() -> Result<Found> {
    let variable = |name: &str| std::env::var(name).ok();
    let found = from_variables(variable)?;
    warn_of_slurm(found.shard, found.by);
    Ok(found)
}

// Once, also where something else than a launcher was believed.
fn warn_of_slurm(shard: Shard, by: &str) {
    static WARNED: Once = Once::new();
    if let Some(warning) = slurms_job(shard, by, |name| std::env::var(name).ok()) {
        WARNED.call_once(|| windrow_core::warn!("{warning}"));
    }
}

/// That no launcher started more processes than this world has, by the variables that launchers set: each process of a part of
/// them would read what the others read too. Warns as [`from_environment`] of Slurm's job.
///
/// # Errors
/// `Config` where one did.
pub fn check(shard: Shard, by: &str) -> Result<()> {
    check_variables(shard, by, |name| std::env::var(name).ok())?;
    warn_of_slurm(shard, by);
    Ok(())
}

fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Result<Found> {
    let mut found = Found { shard: Shard::ALONE, by: "no launcher" };
    for (rank_name, world_name, by) in PAIRS {
        let number = |name: &str, text: String| {
            text.trim().parse::<u64>().map_err(|_| {
                Error::config(format!("the environment says {name}={text:?}, which is not a number"))
                    .hint(HINT)
            })
        };
        match (variable(rank_name), variable(world_name)) {
            (Some(rank), Some(world)) => {
                let shard = Shard::new(number(rank_name, rank)?, number(world_name, world)?)?;
                found = Found { shard, by };
                break;
            }
            // The script of a batch job has a number in it, and no step.
            (Some(_), None) if rank_name == "SLURM_PROCID" => {}
            (None, None) => {}
            (rank, _) => {
                let (set, unset) =
                    if rank.is_some() { (rank_name, world_name) } else { (world_name, rank_name) };
                return Err(Error::config(format!("the environment sets {set} but not {unset}"))
                    .hint(format!("{HINT}, or set both variables")));
            }
        }
    }
    check_variables(found.shard, found.by, variable)?;
    Ok(found)
}

fn check_variables(shard: Shard, by: &str, variable: impl Fn(&str) -> Option<String>) -> Result<()> {
    let is_host = |host: &&str| !host.trim_matches(['[', ']', '"', ' ']).is_empty();
    let hosts = HOSTS
        .into_iter()
        .filter_map(|name| Some((name, variable(name)?.split(',').filter(is_host).count() as u64)));
    let number = |name: &str| variable(name)?.trim().parse::<u64>().ok();
    let worlds = WORLDS.into_iter().filter_map(|name| Some((name, number(name)?)));
    let numbers = NUMBERS.into_iter().filter_map(|name| Some((name, number(name)?.saturating_add(1))));
    match worlds.chain(hosts).chain(numbers).find(|(_, world_size)| *world_size > shard.world_size()) {
        Some((name, started)) => Err(Error::config(format!(
            "this process would read as rank {} of {} ({by}), but {name} says that {}{started} were started",
            shard.rank(),
            shard.world_size(),
            if NUMBERS.contains(&name) { "at least " } else { "" }
        ))
        .hint(format!("{HINT}; @one_rank@ if each of them is to read everything"))),
        None => Ok(()),
    }
}

// What to say of a job of more tasks than are believed, of which this process is not known to be one.
fn slurms_job(shard: Shard, by: &str, variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let number = |name: &str| variable(name)?.trim().parse::<u64>().ok();
    let names = ["SLURM_NTASKS", "SLURM_NPROCS", "SLURM_NNODES", "SLURM_JOB_NUM_NODES"];
    let more = |name| number(name).filter(|tasks| *tasks > shard.world_size());
    let (name, tasks) = names.into_iter().find_map(|name| Some((name, more(name)?)))?;
    let (rank, world_size) = (shard.rank(), shard.world_size());
    let reads = if shard == Shard::ALONE { "it reads everything, as" } else { "it reads as" };
    (!by.starts_with("SLURM")).then(|| {
        format!(
            "{name} is {tasks}, but srun did not start this process: {reads} rank {rank} of {world_size}\n  \
             hint: start one process for each task with srun; pass @rank={rank}@, @world_size={world_size}@ if that is meant"
        )
    })
}

/// Machines that this many processes run on, as torchrun (`LOCAL_WORLD_SIZE`) or Slurm (`SLURM_NNODES`) says; 1 if neither does.
pub(crate) fn nodes(world_size: u64) -> u64 {
    nodes_of(world_size, |name| std::env::var(name).ok())
}

fn nodes_of(world_size: u64, variable: impl Fn(&str) -> Option<String>) -> u64 {
    let number = |name| variable(name)?.trim().parse::<u64>().ok().filter(|number| *number > 0);
    match (number("LOCAL_WORLD_SIZE"), number("SLURM_NNODES")) {
        (Some(ranks_of_node), _) => world_size.div_ceil(ranks_of_node),
        (None, Some(nodes)) => nodes.min(world_size),
        (None, None) => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> impl Fn(&str) -> Option<String> {
        |name| pairs.iter().find(|p| p.0 == name).map(|p| p.1.to_string())
    }

    fn from(pairs: &[(&str, &str)]) -> Result<(u64, u64)> {
        let found = from_variables(variables(pairs))?;
        Ok((found.shard.rank(), found.shard.world_size()))
    }

    #[test]
    fn rank_comes_from_torchrun_then_sruns_step_then_is_alone() {
        assert_eq!(from(&[]).unwrap(), (0, 1));
        assert_eq!(from(&[("RANK", "3"), ("WORLD_SIZE", "8")]).unwrap(), (3, 8));
        let step = [("SLURM_PROCID", "1"), ("SLURM_STEP_NUM_TASKS", "2"), ("SLURM_NTASKS", "4")];
        assert_eq!(from(&step).unwrap(), (1, 2));
        assert_eq!(from(&[&step[..], &[("RANK", "3"), ("WORLD_SIZE", "8")]].concat()).unwrap(), (3, 8));
    }

    #[test]
    fn slurms_job_without_a_step_is_not_believed_and_said() {
        let said = |pairs: &[(&str, &str)]| {
            let found = from_variables(variables(pairs)).unwrap();
            let is_said = slurms_job(found.shard, found.by, variables(pairs)).is_some();
            (found.shard.rank(), found.shard.world_size(), is_said)
        };
        assert_eq!(said(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "4")]), (0, 1, true));
        assert_eq!(said(&[("SLURM_NNODES", "2")]), (0, 1, true));
        assert_eq!(said(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "1")]), (0, 1, false));
        let interactive = [("SLURM_PROCID", "0"), ("SLURM_STEP_NUM_TASKS", "1"), ("SLURM_NTASKS", "4")];
        assert_eq!(said(&interactive), (0, 1, false));
        assert_eq!(said(&[("RANK", "0"), ("WORLD_SIZE", "2"), ("SLURM_NTASKS", "4")]), (0, 2, true));
        // torchrun on each of two machines.
        assert_eq!(said(&[("RANK", "9"), ("WORLD_SIZE", "16"), ("SLURM_NTASKS", "2")]), (9, 16, false));
    }

    #[test]
    fn a_larger_world_of_another_launcher_is_an_error() {
        for name in WORLDS {
            let larger =
                check_variables(Shard::new(1, 2).unwrap(), "group", variables(&[(name, "4")])).unwrap_err();
            assert!(larger.message().contains(name), "{larger}");
            assert!(larger.hint_text().unwrap().contains(".rank(rank, world_size)"), "{larger}");
            check_variables(Shard::new(1, 2).unwrap(), "group", variables(&[(name, "2")])).unwrap();
        }
        assert!(from(&[("OMPI_COMM_WORLD_SIZE", "4"), ("OMPI_COMM_WORLD_RANK", "1")]).is_err());
        assert!(
            from(&[("RANK", "0"), ("WORLD_SIZE", "1"), ("SLURM_PROCID", "2"), ("SLURM_STEP_NUM_TASKS", "4")])
                .is_err()
        );
        for name in NUMBERS {
            let shard = Shard::new(1, 2).unwrap();
            let beyond = check_variables(shard, "group", variables(&[(name, "3")])).unwrap_err();
            assert!(beyond.message().contains(&format!("{name} says that at least 4 were")), "{beyond}");
            check_variables(shard, "group", variables(&[(name, "1")])).unwrap();
        }
        assert!(from(&[("TPU_WORKER_HOSTNAMES", "a,b")]).is_err());
        assert!(from(&[("SM_HOSTS", r#"["algo-1", "algo-2"]"#)]).is_err());
        assert_eq!(from(&[("SM_HOSTS", r#"["algo-1"]"#), ("PALS_RANKID", "0")]).unwrap(), (0, 1));
        assert_eq!(from(&[("TPU_WORKER_HOSTNAMES", "localhost"), ("PMI_SIZE", "1")]).unwrap(), (0, 1));
    }

    #[test]
    fn nodes_are_those_of_the_launcher_and_never_more_than_ranks() {
        let nodes = |world_size, pairs: &[(&str, &str)]| nodes_of(world_size, variables(pairs));
        assert_eq!(nodes(16, &[]), 1);
        assert_eq!(nodes(16, &[("LOCAL_WORLD_SIZE", "8"), ("SLURM_NNODES", "3")]), 2);
        assert_eq!(nodes(16, &[("SLURM_NNODES", "4")]), 4);
        assert_eq!(nodes(1, &[("SLURM_NNODES", "4")]), 1);
        assert_eq!(nodes(16, &[("LOCAL_WORLD_SIZE", "x")]), 1);
    }

    #[test]
    fn half_a_pair_or_no_number_is_an_error() {
        assert!(from(&[("RANK", "3")]).is_err());
        assert!(from(&[("WORLD_SIZE", "3")]).is_err());
        assert!(from(&[("RANK", "x"), ("WORLD_SIZE", "3")]).is_err());
        assert!(from(&[("SLURM_STEP_NUM_TASKS", "3")]).is_err());
    }
}
