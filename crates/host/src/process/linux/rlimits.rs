//! Limits of each process, clamped to what we may set before the fork, so that the child's attempt
//! succeeds and the report is true.

use std::io;

use nix::libc;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::super::{Bound, Clamped, LimitKind, LimitReport, Limits};

#[derive(Debug)]
pub(super) struct PreparedLimit {
    pub(super) resource: libc::__rlimit_resource_t,
    pub(super) value: libc::rlimit,
}

pub(super) fn prepare(limits: &Limits, report: &mut LimitReport) -> Vec<PreparedLimit> {
    let privileged = may_raise_hard_limits();
    limits
        .per_process()
        .filter_map(|(kind, asked)| {
            let resource = resource(kind)?;
            let ceiling = match (getrlimit(resource), kind) {
                (Ok((_, hard)), _) if !privileged => hard,
                // Even the privileged stay below the kernel's own limit on descriptors.
                (_, LimitKind::OpenFiles) => largest_descriptor_count(),
                _ => Bound::UNLIMITED,
            };
            let given = clamp(asked, ceiling);
            if given == asked {
                report.enforced.push(kind);
            } else {
                report.clamped.push(Clamped {
                    limit: kind,
                    asked,
                    given,
                });
            }
            Some(PreparedLimit {
                resource: resource as libc::__rlimit_resource_t,
                value: libc::rlimit {
                    rlim_cur: given.soft,
                    rlim_max: given.hard,
                },
            })
        })
        .collect()
}

/// Lets this process have as many files open as it may, and returns how many those are. What it starts inherits
/// that. `None` where the system has no such limit.
pub fn raise_open_files() -> io::Result<Option<u64>> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if soft < hard {
        setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    }
    Ok(Some(hard))
}

/// `Bound::UNLIMITED` is the kernel's infinity, so plain comparison is right.
fn clamp(asked: Bound, ceiling: u64) -> Bound {
    let hard = asked.hard.min(ceiling);
    Bound {
        soft: asked.soft.min(hard),
        hard,
    }
}

fn resource(kind: LimitKind) -> Option<Resource> {
    Some(match kind {
        LimitKind::OpenFiles => Resource::RLIMIT_NOFILE,
        LimitKind::CoreBytes => Resource::RLIMIT_CORE,
        LimitKind::StackBytes => Resource::RLIMIT_STACK,
        LimitKind::UserProcesses => Resource::RLIMIT_NPROC,
        LimitKind::FileBytes => Resource::RLIMIT_FSIZE,
        LimitKind::CpuSeconds => Resource::RLIMIT_CPU,
        LimitKind::LockedBytes => Resource::RLIMIT_MEMLOCK,
        LimitKind::AddressSpaceBytes => Resource::RLIMIT_AS,
        LimitKind::Memory | LimitKind::Cpu | LimitKind::Processes | LimitKind::OutOfMemoryScore => {
            return None;
        }
    })
}

/// Whether we hold `CAP_SYS_RESOURCE`.
fn may_raise_hard_limits() -> bool {
    const SYS_RESOURCE: u64 = 1 << 24;
    let status = fs_err::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & SYS_RESOURCE != 0)
}

fn largest_descriptor_count() -> u64 {
    fs_err::read_to_string("/proc/sys/fs/nr_open")
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(Bound::UNLIMITED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_of_open_files_becomes_the_hard_one() {
        let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        setrlimit(Resource::RLIMIT_NOFILE, hard.min(512), hard).unwrap();
        assert_eq!(raise_open_files().unwrap(), Some(hard));
        assert_eq!(getrlimit(Resource::RLIMIT_NOFILE).unwrap(), (hard, hard));
    }

    #[test]
    fn a_limit_never_exceeds_the_ceiling_and_soft_never_exceeds_hard() {
        let asked = Bound {
            soft: 500,
            hard: Bound::UNLIMITED,
        };
        let expected = Bound {
            soft: 500,
            hard: 1000,
        };
        assert_eq!(clamp(asked, 1000), expected);
        assert_eq!(clamp(Bound::same(2000), 1000), Bound::same(1000));
        assert_eq!(clamp(Bound { soft: 9, hard: 4 }, 1000), Bound::same(4));
        assert_eq!(
            clamp(Bound::same(Bound::UNLIMITED), Bound::UNLIMITED),
            Bound::same(u64::MAX)
        );
    }
}
