//! Rules about system calls as a program for the kernel. Invariant: a call of a foreign instruction set
//! never passes unseen.

use nix::libc::{self, sock_filter};

/// What becomes of a call, in the words of the kernel.
pub(super) type Action = u32;

pub(super) const ALLOW: Action = libc::SECCOMP_RET_ALLOW;

pub(super) const fn errno(number: u32) -> Action {
    libc::SECCOMP_RET_ERRNO | (number & 0xffff)
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) numbers: Vec<u32>,
    /// All have to hold.
    pub(super) conditions: Vec<Condition>,
    pub(super) action: Action,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Condition {
    pub(super) argument: u32,
    pub(super) comparison: Comparison,
    pub(super) value: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    /// The bits of this mask are those of the value.
    Masked(u64),
}

/// Rules in order: the first that holds decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Profile {
    pub(super) rules: Vec<Rule>,
    pub(super) default: Action,
    /// Calls above this one are not there: the kernel may be newer than we are.
    pub(super) highest: Option<u32>,
}

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;
/// Calls with this bit are of the x32 kind.
const FOREIGN_BIT: u32 = 0x4000_0000;

const NUMBER_OFFSET: u32 = 0;
const ARCHITECTURE_OFFSET: u32 = 4;
const ARGUMENTS_OFFSET: u32 = 16;
/// The kernel takes no more instructions.
const LONGEST_PROGRAM: usize = 4096;

/// Where a jump leads.
#[derive(Clone, Copy)]
enum To {
    Next,
    Holds,
    Fails,
}

#[derive(Default)]
struct Program(Vec<sock_filter>);

impl Program {
    fn push(&mut self, code: u32, k: u32) {
        self.jump(code, k, 0, 0);
    }

    fn jump(&mut self, code: u32, k: u32, jt: u8, jf: u8) {
        // All codes are below 256.
        let code = u16::try_from(code).unwrap_or(u16::MAX);
        self.0.push(sock_filter { code, jt, jf, k });
    }

    fn load(&mut self, offset: u32) {
        self.push(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset);
    }

    fn answer(&mut self, action: Action) {
        self.push(libc::BPF_RET | libc::BPF_K, action);
    }
}

const JUMP_EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
const JUMP_GREATER: u32 = libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K;
const JUMP_GREATER_EQUAL: u32 = libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K;

/// The profile as a program, or why it is none.
pub(super) fn compile(profile: &Profile) -> Result<Vec<sock_filter>, String> {
    let missing = errno(libc::ENOSYS.cast_unsigned());
    let mut program = Program::default();
    program.load(ARCHITECTURE_OFFSET);
    program.jump(JUMP_EQUAL, ARCHITECTURE, 1, 0);
    program.answer(missing);
    program.load(NUMBER_OFFSET);
    program.jump(JUMP_GREATER_EQUAL, FOREIGN_BIT, 0, 1);
    program.answer(missing);
    if let Some(highest) = profile.highest {
        program.jump(JUMP_GREATER, highest, 0, 1);
        program.answer(missing);
    }
    for rule in &profile.rules {
        if rule.conditions.is_empty() {
            unconditional(&mut program, rule);
        } else {
            for number in &rule.numbers {
                conditional(&mut program, *number, rule)?;
            }
        }
    }
    program.answer(profile.default);
    if program.0.len() > LONGEST_PROGRAM {
        return Err(format!(
            "the profile needs {} instructions, the kernel takes {LONGEST_PROGRAM}",
            program.0.len()
        ));
    }
    Ok(program.0)
}

/// Numbers that follow each other are one comparison.
fn unconditional(program: &mut Program, rule: &Rule) {
    let mut numbers = rule.numbers.clone();
    numbers.sort_unstable();
    numbers.dedup();
    let mut rest = numbers.as_slice();
    while let Some(first) = rest.first() {
        let mut length = 1;
        while rest
            .get(length)
            .is_some_and(|next| *next == rest[length - 1] + 1)
        {
            length += 1;
        }
        let last = rest[length - 1];
        if length == 1 {
            program.jump(JUMP_EQUAL, *first, 0, 1);
        } else {
            program.jump(JUMP_GREATER_EQUAL, *first, 0, 2);
            program.jump(JUMP_GREATER, last, 1, 0);
        }
        program.answer(rule.action);
        rest = &rest[length..];
    }
}

fn conditional(program: &mut Program, number: u32, rule: &Rule) -> Result<(), String> {
    let mut block: Vec<(u32, u32, To, To)> = vec![(JUMP_EQUAL, number, To::Next, To::Fails)];
    let mut ends = Vec::new();
    for condition in &rule.conditions {
        let start = block.len();
        compare(&mut block, *condition);
        ends.push(start..block.len());
    }
    // Behind the block: the answer, then the number is loaded again for the next rule.
    let failed_at = block.len() + 1;
    for (index, (code, k, holds, fails)) in block.iter().enumerate() {
        let end = ends
            .iter()
            .find(|range| range.contains(&index))
            .map_or(index + 1, |range| range.end);
        let offset = |to: &To| -> Result<u8, String> {
            let target = match to {
                To::Next => index + 1,
                To::Holds => end,
                To::Fails => failed_at,
            };
            u8::try_from(target - index - 1)
                .map_err(|_| "a rule has too many conditions".to_owned())
        };
        let is_jump = code & 7 == libc::BPF_JMP;
        let (jt, jf) = if is_jump {
            (offset(holds)?, offset(fails)?)
        } else {
            (0, 0)
        };
        program.jump(*code, *k, jt, jf);
    }
    program.answer(rule.action);
    program.load(NUMBER_OFFSET);
    Ok(())
}

/// Arguments have 64 bits, the machine of filters has 32: the higher half is compared first.
fn compare(block: &mut Vec<(u32, u32, To, To)>, condition: Condition) {
    let low_offset = ARGUMENTS_OFFSET + condition.argument * 8;
    let halves = |value: u64| ((value >> 32) as u32, (value & 0xffff_ffff) as u32);
    let (high, low) = halves(condition.value);
    let load = |offset| {
        (
            libc::BPF_LD | libc::BPF_W | libc::BPF_ABS,
            offset,
            To::Next,
            To::Next,
        )
    };
    let mask = |bits| {
        (
            libc::BPF_ALU | libc::BPF_AND | libc::BPF_K,
            bits,
            To::Next,
            To::Next,
        )
    };
    let above = load(low_offset + 4);
    let below = load(low_offset);
    match condition.comparison {
        Comparison::Equal => block.extend([
            above,
            (JUMP_EQUAL, high, To::Next, To::Fails),
            below,
            (JUMP_EQUAL, low, To::Holds, To::Fails),
        ]),
        Comparison::NotEqual => block.extend([
            above,
            (JUMP_EQUAL, high, To::Next, To::Holds),
            below,
            (JUMP_EQUAL, low, To::Fails, To::Holds),
        ]),
        Comparison::Masked(bits) => {
            let (mask_high, mask_low) = halves(bits);
            block.extend([
                above,
                mask(mask_high),
                (JUMP_EQUAL, high, To::Next, To::Fails),
                below,
                mask(mask_low),
                (JUMP_EQUAL, low, To::Holds, To::Fails),
            ]);
        }
        Comparison::Greater | Comparison::GreaterOrEqual => {
            let last = if condition.comparison == Comparison::Greater {
                JUMP_GREATER
            } else {
                JUMP_GREATER_EQUAL
            };
            block.extend([
                above,
                (JUMP_GREATER, high, To::Holds, To::Next),
                (JUMP_EQUAL, high, To::Next, To::Fails),
                below,
                (last, low, To::Holds, To::Fails),
            ]);
        }
        Comparison::Less | Comparison::LessOrEqual => {
            let last = if condition.comparison == Comparison::Less {
                JUMP_GREATER_EQUAL
            } else {
                JUMP_GREATER
            };
            block.extend([
                above,
                (JUMP_GREATER, high, To::Fails, To::Next),
                (JUMP_EQUAL, high, To::Next, To::Holds),
                below,
                (last, low, To::Fails, To::Holds),
            ]);
        }
    }
}
