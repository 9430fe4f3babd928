//! Filters, run as the kernel would run them.

use super::*;

/// What a call becomes.
fn run(program: &[sock_filter], architecture: u32, number: u32, arguments: [u64; 6]) -> Action {
    let word = |offset: u32| -> u32 {
        match offset {
            0 => number,
            4 => architecture,
            _ => {
                let argument = arguments[usize::try_from((offset - 16) / 8).expect("an index")];
                let half = if offset.is_multiple_of(8) {
                    argument
                } else {
                    argument >> 32
                };
                u32::try_from(half & 0xffff_ffff).expect("half")
            }
        }
    };
    let (mut accumulator, mut at) = (0_u32, 0_usize);
    for _ in 0..program.len() {
        let step = program[at];
        let code = u32::from(step.code);
        let mut jump = |holds: bool| at += usize::from(if holds { step.jt } else { step.jf });
        match (code & 7, code & 0xf0) {
            (libc::BPF_LD, _) => accumulator = word(step.k),
            (libc::BPF_ALU, _) => accumulator &= step.k,
            (libc::BPF_RET, _) => return step.k,
            (libc::BPF_JMP, libc::BPF_JEQ) => jump(accumulator == step.k),
            (libc::BPF_JMP, libc::BPF_JGT) => jump(accumulator > step.k),
            (libc::BPF_JMP, libc::BPF_JGE) => jump(accumulator >= step.k),
            other => panic!("an instruction that filters do not have: {other:?}"),
        }
        at += 1;
    }
    panic!("a filter without an end");
}

#[cfg(target_arch = "x86_64")]
const OURS: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const OURS: u32 = 0xc000_00b7;

fn call(program: &[sock_filter], name: &str, first: u64) -> Action {
    let number = u32::try_from(Sysno::from_str(name).expect("a call").id()).expect("a number");
    run(program, OURS, number, [first, 0, 0, 0, 0, 0])
}

const EPERM: Action = errno(1);
const ENOSYS: Action = errno(38);

#[test]
fn ordinary_calls_pass_and_those_that_change_the_node_do_not() {
    let program = Filter::default_for(&CapsHashSet::new())
        .expect("a filter")
        .0;
    for name in [
        "read",
        "write",
        "execve",
        "openat",
        "futex",
        "ptrace",
        "exit_group",
    ] {
        assert_eq!(call(&program, name, 0), ALLOW, "{name}");
    }
    for name in [
        "mount",
        "reboot",
        "init_module",
        "bpf",
        "setns",
        "unshare",
        "keyctl",
        "io_uring_setup",
    ] {
        assert_eq!(call(&program, name, 0), EPERM, "{name}");
    }
    assert_eq!(call(&program, "clone3", 0), ENOSYS);
    assert_eq!(call(&program, "clone", 0x11), ALLOW);
    assert_eq!(
        call(&program, "clone", 0x1000_0000),
        EPERM,
        "no new user namespace"
    );
    assert_eq!(
        call(&program, "clone", 0x2_0000),
        EPERM,
        "no new mount namespace"
    );
    assert_eq!(call(&program, "socket", 2), ALLOW);
    assert_eq!(call(&program, "socket", 40), EPERM);
    assert_eq!(call(&program, "personality", 0xffff_ffff), ALLOW);
    assert_eq!(call(&program, "personality", 0x4), EPERM);
    assert_eq!(
        call(&program, "personality", 1 << 40),
        EPERM,
        "all 64 bits count"
    );
}

#[test]
fn a_capability_opens_what_it_is_for() {
    let program = Filter::default_for(&[caps::Capability::CAP_SYS_ADMIN].into())
        .expect("a filter")
        .0;
    for name in ["mount", "unshare", "setns", "clone3"] {
        assert_eq!(call(&program, name, 0), ALLOW, "{name}");
    }
    assert_eq!(call(&program, "clone", 0x1000_0000), ALLOW);
    assert_eq!(call(&program, "reboot", 0), EPERM);
}

#[test]
fn calls_of_the_future_and_of_other_instruction_sets_are_not_there() {
    let program = Filter::default_for(&CapsHashSet::new())
        .expect("a filter")
        .0;
    assert_eq!(run(&program, OURS, 5000, [0; 6]), ENOSYS);
    assert_eq!(run(&program, OURS, 0x4000_0000, [0; 6]), ENOSYS);
    assert_eq!(run(&program, 0x4000_0003, 1, [0; 6]), ENOSYS);
}

fn profile(operator: &str, value: u64, second: u64) -> Vec<sock_filter> {
    let text = serde_json::json!({"defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": 13, "syscalls": [
        {"names": ["read", "no_such_call"], "action": "SCMP_ACT_ALLOW",
         "args": [{"index": 0, "value": value, "valueTwo": second, "op": operator}]}]});
    Filter::from_profile(text.to_string().as_bytes())
        .expect("a filter")
        .0
}

/// An operator, its values, and arguments for which it holds and does not.
type Case = (&'static str, u64, u64, &'static [u64], &'static [u64]);

#[test]
fn every_comparison_of_a_profile_is_one_of_64_bits() {
    const BIG: u64 = 1 << 33;
    let cases: [Case; 7] = [
        ("SCMP_CMP_EQ", BIG, 0, &[BIG], &[0, BIG + 1, 2]),
        ("SCMP_CMP_NE", BIG, 0, &[0, BIG + 1, 2], &[BIG]),
        ("SCMP_CMP_GT", BIG, 0, &[BIG + 1, BIG * 2], &[BIG, 5]),
        ("SCMP_CMP_GE", BIG, 0, &[BIG, BIG + 1], &[BIG - 1, 5]),
        ("SCMP_CMP_LT", BIG, 0, &[BIG - 1, 5], &[BIG, BIG * 2]),
        ("SCMP_CMP_LE", BIG, 0, &[BIG, 5], &[BIG + 1, BIG * 2]),
        ("SCMP_CMP_MASKED_EQ", BIG | 1, 1, &[1, 3], &[0, BIG | 1]),
    ];
    for (operator, value, second, holds, fails) in cases {
        let program = profile(operator, value, second);
        for first in holds {
            assert_eq!(call(&program, "read", *first), ALLOW, "{operator} {first}");
        }
        for first in fails {
            assert_eq!(
                call(&program, "read", *first),
                errno(13),
                "{operator} {first}"
            );
        }
    }
}

#[test]
fn a_profile_that_cannot_be_applied_as_it_is_is_refused() {
    for text in [
        "",
        "{}",
        r#"{"defaultAction": "SCMP_ACT_NOTIFY"}"#,
        r#"{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["read"], "action": "SCMP_ACT_ERRNO",
            "args": [{"index": 9, "value": 0, "op": "SCMP_CMP_EQ"}]}]}"#,
    ] {
        assert!(Filter::from_profile(text.as_bytes()).is_err(), "{text}");
    }
}

#[test]
fn every_name_of_the_default_is_one_some_kernel_has() {
    let data: Default = serde_json::from_str(DEFAULT).expect("data");
    // Those that this instruction set never had.
    let elsewhere = ["_sysctl", "umount"];
    for name in data.denied.iter().chain(data.granted.values().flatten()) {
        let known = Sysno::from_str(name).is_ok() || elsewhere.contains(&name.as_str());
        assert!(known || cfg!(not(target_arch = "x86_64")), "{name}");
    }
    for name in data.granted.values().flatten() {
        assert!(data.denied.contains(name), "{name} was never denied");
    }
}
