//! Which rank this process is, as its launcher says.

use windrow_core::sampler::Shard;
use windrow_core::{Error, Result};

/// This process among those that torchrun (`RANK`, `WORLD_SIZE`) or Slurm (`SLURM_PROCID`, `SLURM_NTASKS`) started, or
/// rank 0 of 1.
///
/// # Errors
/// `Config` when only one variable of a pair is set, which would feed every rank the same data, or the numbers make no sense.
pub fn from_environment() -> Result<Shard> {
    let (rank, world_size) = from_variables(|name| std::env::var(name).ok())?;
    Shard::new(rank, world_size)
}

fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Result<(u64, u64)> {
    for (rank_name, world_name) in [("RANK", "WORLD_SIZE"), ("SLURM_PROCID", "SLURM_NTASKS")] {
        let number = |name: &str, text: String| {
            text.trim().parse::<u64>().map_err(|_| {
                Error::config(format!("the environment says {name}={text:?}, which is not a number"))
                    .hint("pass rank= and world_size=")
            })
        };
        match (variable(rank_name), variable(world_name)) {
            (Some(rank), Some(world)) => return Ok((number(rank_name, rank)?, number(world_name, world)?)),
            // An allocation without srun: a program started by hand is alone.
            (None, Some(_)) if world_name == "SLURM_NTASKS" => {}
            (None, None) => {}
            (rank, _) => {
                let (set, unset) =
                    if rank.is_some() { (rank_name, world_name) } else { (world_name, rank_name) };
                return Err(Error::config(format!("the environment sets {set} but not {unset}"))
                    .hint("pass rank= and world_size=, or set both variables"));
            }
        }
    }
    Ok((0, 1))
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

    fn from(pairs: &[(&str, &str)]) -> Result<(u64, u64)> {
        from_variables(|name| pairs.iter().find(|p| p.0 == name).map(|p| p.1.to_string()))
    }

    #[test]
    fn rank_comes_from_torchrun_then_slurm_then_is_alone() {
        assert_eq!(from(&[]).unwrap(), (0, 1));
        assert_eq!(from(&[("RANK", "3"), ("WORLD_SIZE", "8")]).unwrap(), (3, 8));
        assert_eq!(from(&[("SLURM_PROCID", "1"), ("SLURM_NTASKS", "2")]).unwrap(), (1, 2));
    }

    #[test]
    fn nodes_are_those_of_the_launcher_and_never_more_than_ranks() {
        let nodes = |world_size, pairs: &[(&str, &str)]| {
            nodes_of(world_size, |name| pairs.iter().find(|p| p.0 == name).map(|p| p.1.to_string()))
        };
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
    }
}
