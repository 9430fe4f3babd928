//! Which system calls a container may make: our own profile, or one of the node. Invariant: a profile that
//! cannot be applied as it is written is refused, never weakened.

#![expect(
    unsafe_code,
    reason = "a filter is installed by prctl, which has no safe form"
)]

mod bpf;

use std::collections::BTreeMap;
use std::io;
use std::str::FromStr;

use caps::CapsHashSet;
use libcontainer::oci_spec::runtime::{LinuxSeccomp, LinuxSeccompAction, LinuxSeccompOperator};
use nix::libc::{self, sock_filter};
use serde::Deserialize;
use syscalls::Sysno;

use bpf::{ALLOW, Action, Comparison, Condition, Profile, Rule, errno};

/// The profile of containers that name none.
const DEFAULT: &str = include_str!("default.json");

#[derive(Deserialize)]
struct Default {
    denied: Vec<String>,
    /// Of the denied ones, those that are answered as if the kernel did not have them: programs then take
    /// an older call that can be looked at.
    without_answer: Vec<String>,
    /// What a capability makes possible is not denied to who has it.
    granted: BTreeMap<String, Vec<String>>,
}

/// A program for the kernel, ready to install.
#[derive(Clone)]
pub(super) struct Filter(Vec<sock_filter>);

impl Filter {
    /// Ours, for a container with these capabilities.
    pub(super) fn default_for(capabilities: &CapsHashSet) -> Result<Self, String> {
        let profile = default_profile(capabilities)?;
        bpf::compile(&profile).map(Self)
    }

    /// One of the node, in the form of the OCI.
    pub(super) fn from_profile(text: &[u8]) -> Result<Self, String> {
        let profile: LinuxSeccomp = serde_json::from_slice(text)
            .map_err(|error| format!("it is no seccomp profile: {error}"))?;
        bpf::compile(&translate(&profile)?).map(Self)
    }

    /// Installs it in this thread for good.
    pub(super) fn install(&self) -> io::Result<()> {
        let length = u16::try_from(self.0.len()).map_err(io::Error::other)?;
        let program = libc::sock_fprog {
            len: length,
            filter: self.0.as_ptr().cast_mut(),
        };
        // SAFETY: the program outlives the call, and the kernel copies it.
        let result = unsafe {
            libc::prctl(
                libc::PR_SET_SECCOMP,
                libc::SECCOMP_MODE_FILTER,
                &raw const program,
            )
        };
        if result == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }
}

/// Calls that this instruction set does not have are nobody's.
fn numbers<'a>(names: impl IntoIterator<Item = &'a String>) -> Vec<u32> {
    names
        .into_iter()
        .filter_map(|name| Sysno::from_str(name).ok())
        .filter_map(|call| u32::try_from(call.id()).ok())
        .collect()
}

fn default_profile(capabilities: &CapsHashSet) -> Result<Profile, String> {
    let data: Default = serde_json::from_str(DEFAULT).map_err(|error| error.to_string())?;
    let has = |name: &str| {
        name.parse()
            .is_ok_and(|capability| capabilities.contains(&capability))
    };
    let granted: Vec<&String> = data
        .granted
        .iter()
        .filter(|(name, _)| has(name))
        .flat_map(|(_, calls)| calls)
        .collect();
    let is_denied = |name: &&String| !granted.contains(name);
    let (gone, denied): (Vec<&String>, Vec<&String>) = data
        .denied
        .iter()
        .filter(is_denied)
        .partition(|name| data.without_answer.contains(name));
    let not_permitted = errno(libc::EPERM.cast_unsigned());
    let mut rules = vec![
        rule(
            numbers(gone),
            Vec::new(),
            errno(libc::ENOSYS.cast_unsigned()),
        ),
        rule(numbers(denied), Vec::new(), not_permitted),
        // Sockets to the machine that a virtual machine runs on.
        rule(
            numbers([&"socket".to_owned()]),
            vec![equal(0, 40)],
            not_permitted,
        ),
    ];
    let personality = numbers([&"personality".to_owned()]);
    for allowed in [0, 0x8, 0x2_0000, 0x2_0008, 0xffff_ffff] {
        rules.push(rule(personality.clone(), vec![equal(0, allowed)], ALLOW));
    }
    rules.push(rule(personality, Vec::new(), not_permitted));
    if !has("CAP_SYS_ADMIN") {
        // No new namespaces.
        let flags = Condition {
            argument: 0,
            comparison: Comparison::Masked(0x7e02_0000),
            value: 0,
        };
        let clone = numbers([&"clone".to_owned()]);
        rules.push(rule(clone.clone(), vec![flags], ALLOW));
        rules.push(rule(clone, Vec::new(), not_permitted));
    }
    let highest = Sysno::iter()
        .filter_map(|call| u32::try_from(call.id()).ok())
        .max();
    Ok(Profile {
        rules,
        default: ALLOW,
        highest,
    })
}

fn rule(numbers: Vec<u32>, conditions: Vec<Condition>, action: Action) -> Rule {
    Rule {
        numbers,
        conditions,
        action,
    }
}

fn equal(argument: u32, value: u64) -> Condition {
    Condition {
        argument,
        comparison: Comparison::Equal,
        value,
    }
}

fn translate(profile: &LinuxSeccomp) -> Result<Profile, String> {
    let mut rules = Vec::new();
    for entry in profile.syscalls().iter().flatten() {
        let conditions: Result<Vec<Condition>, String> = entry
            .args()
            .iter()
            .flatten()
            .map(|argument| {
                let index = u32::try_from(argument.index())
                    .ok()
                    .filter(|index| *index < 6);
                let index =
                    index.ok_or_else(|| format!("a call has no argument {}", argument.index()))?;
                let second = argument.value_two().unwrap_or(0);
                Ok(Condition {
                    argument: index,
                    comparison: comparison(argument.op(), argument.value()),
                    value: if argument.op() == LinuxSeccompOperator::ScmpCmpMaskedEq {
                        second
                    } else {
                        argument.value()
                    },
                })
            })
            .collect();
        rules.push(Rule {
            numbers: numbers(entry.names()),
            conditions: conditions?,
            action: action(entry.action(), entry.errno_ret())?,
        });
    }
    Ok(Profile {
        rules,
        default: action(profile.default_action(), profile.default_errno_ret())?,
        highest: None,
    })
}

fn comparison(operator: LinuxSeccompOperator, value: u64) -> Comparison {
    match operator {
        LinuxSeccompOperator::ScmpCmpEq => Comparison::Equal,
        LinuxSeccompOperator::ScmpCmpNe => Comparison::NotEqual,
        LinuxSeccompOperator::ScmpCmpGt => Comparison::Greater,
        LinuxSeccompOperator::ScmpCmpGe => Comparison::GreaterOrEqual,
        LinuxSeccompOperator::ScmpCmpLt => Comparison::Less,
        LinuxSeccompOperator::ScmpCmpLe => Comparison::LessOrEqual,
        LinuxSeccompOperator::ScmpCmpMaskedEq => Comparison::Masked(value),
    }
}

fn action(action: LinuxSeccompAction, number: Option<u32>) -> Result<Action, String> {
    let number = number.unwrap_or(libc::EPERM.cast_unsigned());
    Ok(match action {
        LinuxSeccompAction::ScmpActAllow => ALLOW,
        LinuxSeccompAction::ScmpActErrno => errno(number),
        LinuxSeccompAction::ScmpActKill | LinuxSeccompAction::ScmpActKillThread => {
            libc::SECCOMP_RET_KILL_THREAD
        }
        LinuxSeccompAction::ScmpActKillProcess => libc::SECCOMP_RET_KILL_PROCESS,
        LinuxSeccompAction::ScmpActLog => libc::SECCOMP_RET_LOG,
        LinuxSeccompAction::ScmpActTrap => libc::SECCOMP_RET_TRAP,
        LinuxSeccompAction::ScmpActTrace => libc::SECCOMP_RET_TRACE | (number & 0xffff),
        LinuxSeccompAction::ScmpActNotify => {
            return Err("SCMP_ACT_NOTIFY is not supported".to_owned());
        }
    })
}

#[cfg(test)]
mod tests;
