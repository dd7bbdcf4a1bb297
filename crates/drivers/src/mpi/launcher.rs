//! Which launcher started this process, by the environment variables that it sets.

use gpuio_guard::objects::environment;

/// Names the MPI library to load, or `off`: each process then runs for itself.
pub const LIBRARY_VARIABLE: &str = "GPUIO_MPI";

/// A launcher, and what it says of this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launcher {
    /// Its name: `Open MPI`, `MPICH` (Hydra, Intel MPI, MVAPICH, PALS), `PMIx`, `Slurm`.
    pub name: &'static str,
    /// This process's rank.
    pub rank: u32,
    /// Ranks of the job.
    pub size: u32,
    /// The variable that showed it.
    pub variable: &'static str,
    /// Libraries to try, in this order: names for the loader.
    pub libraries: &'static [&'static str],
}

/// How a launcher is recognised: variables with the rank and the number of ranks, both set.
struct Row {
    name: &'static str,
    rank: &'static str,
    size: &'static str,
    libraries: &'static [&'static str],
}

const OPEN_MPI: &str = "libmpi.so.40";
const MPICH: [&str; 2] = ["libmpich.so.12", "libmpi.so.12"];
const STANDARD: &str = "libmpi_abi.so.1";

/// In this order: Slurm also sets its own variables where it starts the ranks of another launcher.
/// `SLURM_STEP_NUM_TASKS` is there in tasks of `srun` only, not in a batch script.
const ROWS: [Row; 4] = [
    Row {
        name: "Open MPI",
        rank: "OMPI_COMM_WORLD_RANK",
        size: "OMPI_COMM_WORLD_SIZE",
        libraries: &[OPEN_MPI, STANDARD],
    },
    Row {
        name: "MPICH",
        rank: "PMI_RANK",
        size: "PMI_SIZE",
        libraries: &[MPICH[0], MPICH[1], STANDARD],
    },
    Row {
        name: "PMIx",
        rank: "PMIX_RANK",
        size: "SLURM_STEP_NUM_TASKS",
        libraries: &[OPEN_MPI, MPICH[0], MPICH[1], STANDARD],
    },
    Row {
        name: "Slurm",
        rank: "SLURM_PROCID",
        size: "SLURM_STEP_NUM_TASKS",
        libraries: &[OPEN_MPI, MPICH[0], MPICH[1], STANDARD],
    },
];

impl Launcher {
    /// The launcher of this process, unless [`LIBRARY_VARIABLE`] is `off`.
    pub fn of_this_process() -> Option<Launcher> {
        let off = environment::text(LIBRARY_VARIABLE).is_some_and(|value| value == "off");
        Launcher::found(&environment::text).filter(|_| !off)
    }

    /// The launcher of this process, by `variable`, which reads the environment. `None` where there
    /// is none, and where it started one process only.
    pub fn found(variable: &dyn Fn(&str) -> Option<String>) -> Option<Launcher> {
        let number = |name: &str| variable(name)?.trim().parse::<u32>().ok();
        let found = ROWS.iter().find_map(|row| {
            let (rank, size) = (number(row.rank)?, number(row.size)?);
            Some(Launcher {
                name: row.name,
                rank,
                size,
                variable: row.rank,
                libraries: row.libraries,
            })
        });
        found.filter(|launcher| launcher.size > 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(set: &[(&str, &str)]) -> Option<Launcher> {
        Launcher::found(&|name| {
            set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn each_launcher_by_its_variables() {
        let open = found(&[("OMPI_COMM_WORLD_RANK", "3"), ("OMPI_COMM_WORLD_SIZE", "4")]).unwrap();
        assert_eq!((open.name, open.rank, open.size), ("Open MPI", 3, 4));
        assert_eq!(open.libraries[0], "libmpi.so.40");
        let hydra = found(&[("PMI_RANK", "0"), ("PMI_SIZE", "2")]).unwrap();
        assert_eq!((hydra.name, hydra.libraries[0]), ("MPICH", "libmpich.so.12"));
        let slurm = [("SLURM_PROCID", "1"), ("SLURM_STEP_NUM_TASKS", "2")];
        assert_eq!(found(&slurm).unwrap().name, "Slurm");
        let pmix = [slurm[0], slurm[1], ("PMIX_RANK", "1")];
        assert_eq!(found(&pmix).unwrap().name, "PMIx");
    }

    #[test]
    fn nothing_is_found_without_ranks() {
        assert_eq!(found(&[]), None);
        // A batch script of Slurm: no task of a step.
        assert_eq!(found(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "8")]), None);
        assert_eq!(found(&[("PMI_RANK", "0"), ("PMI_SIZE", "1")]), None, "one process needs none");
        assert_eq!(found(&[("PMI_RANK", "x"), ("PMI_SIZE", "2")]), None);
    }
}
