//! The programs that the tests start. Each ends by itself after a minute, so that a failed test
//! leaves nothing behind for long.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use transom_host::process::{Lifetime, Native, Output, Processes, become_subreaper};

use super::backend::helper;

const LIFE: Duration = Duration::from_mins(3);

pub(crate) fn play(words: &[String]) -> ExitCode {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let code = match words[..] {
        ["exit", code] => code.parse().unwrap(),
        ["lines", count] => lines(count.parse().unwrap()),
        ["flood", bytes] => flood(bytes.parse().unwrap()),
        ["run"] => run(),
        ["input"] => input(),
        ["polite"] => polite(),
        ["stubborn"] => stubborn(),
        ["family", depth] => family(depth.parse().unwrap()),
        ["escape"] => escape(),
        ["escaped"] => escaped(),
        ["arguments", ref arguments @ ..] => arguments.iter().map(|word| say(word)).sum(),
        ["environment"] => environment(),
        ["directory"] => say(&std::env::current_dir().unwrap().display().to_string()),
        ["burn"] => burn(),
        ["breed", count] => breed(count.parse().unwrap()),
        ["hoard", mebibytes] => hoard(mebibytes.parse().unwrap()),
        ["hydra"] => hydra(),
        ["owner", lifetime, group] => owner(lifetime, group),
        _ => panic!("unknown role: {words:?}"),
    };
    // `ExitCode` holds eight bits; Windows has thirty-two.
    std::process::exit(code)
}

fn say(text: &str) -> i32 {
    println!("{text}");
    0
}

fn ready() {
    say("ready");
}

fn run() -> i32 {
    ready();
    std::thread::sleep(LIFE);
    99
}

fn lines(count: usize) -> i32 {
    for number in 1..=count {
        println!("line {number}");
        eprintln!("error {number}");
    }
    0
}

fn flood(bytes: usize) -> i32 {
    let (mut out, mut err) = (std::io::stdout(), std::io::stderr());
    let chunk = [b'x'; 4096];
    let mut left = bytes;
    while left > 0 {
        let part = &chunk[..left.min(chunk.len())];
        out.write_all(part).unwrap();
        err.write_all(part).unwrap();
        left -= part.len();
    }
    out.flush().unwrap();
    0
}

fn input() -> i32 {
    ready();
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    5
}

#[cfg(target_os = "linux")]
fn block_terminate() -> nix::sys::signal::SigSet {
    let mut signals = nix::sys::signal::SigSet::empty();
    signals.add(nix::sys::signal::SIGTERM);
    signals.thread_block().unwrap();
    signals
}

#[cfg(target_os = "linux")]
fn polite() -> i32 {
    let signals = block_terminate();
    ready();
    signals.wait().unwrap();
    7
}

#[cfg(target_os = "linux")]
fn stubborn() -> i32 {
    block_terminate();
    run()
}

/// Without signals there is nothing to be polite about.
#[cfg(windows)]
fn polite() -> i32 {
    run()
}

#[cfg(windows)]
fn stubborn() -> i32 {
    run()
}

/// Starts this binary in another role, inheriting the environment, and waits until it is ready.
#[expect(
    clippy::zombie_processes,
    reason = "the children are for others to find"
)]
fn child(words: &[&str]) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .arg("role")
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line.trim_end(), "ready");
}

fn family(depth: usize) -> i32 {
    if depth > 0 {
        child(&["family", &(depth - 1).to_string()]);
    }
    run()
}

fn escape() -> i32 {
    child(&["escaped"]);
    0
}

/// Leaves its session where there are sessions; its parent is about to die.
fn escaped() -> i32 {
    #[cfg(target_os = "linux")]
    nix::unistd::setsid().unwrap();
    child(&["run"]);
    run()
}

fn environment() -> i32 {
    for (name, value) in std::env::vars() {
        println!("{name}={value}");
    }
    0
}

fn burn() -> i32 {
    let memory = vec![1_u8; 48 << 20];
    let started = Instant::now();
    let mut sum = 0_u64;
    while started.elapsed() < Duration::from_millis(300) {
        for byte in &memory {
            sum = sum.wrapping_add(u64::from(*byte));
        }
    }
    assert!(sum > 0);
    let code = run();
    drop(memory);
    code
}

/// Says how many children it could start of `count`.
fn breed(count: usize) -> i32 {
    let mut born = Vec::new();
    for _ in 0..count {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["role", "run"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        born.extend(child);
    }
    say(&born.len().to_string());
    std::thread::sleep(LIFE);
    99
}

/// Puts two children in the place of each that dies, forty at most.
fn hydra() -> i32 {
    let head = || {
        Command::new(std::env::current_exe().unwrap())
            .args(["role", "run"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    };
    let mut heads = vec![head(), head()];
    ready();
    let mut grown = heads.len();
    let end = Instant::now() + LIFE;
    while Instant::now() < end && grown < 40 {
        let before = heads.len();
        heads.retain_mut(|head| head.try_wait().unwrap().is_none());
        for _ in 0..2 * (before - heads.len()) {
            heads.push(head());
            grown += 1;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    99
}

/// Fills memory until it has `mebibytes`, then says so.
fn hoard(mebibytes: usize) -> i32 {
    let memory = vec![1_u8; mebibytes << 20];
    assert_eq!(memory[memory.len() - 1], 1);
    say("had it all");
    0
}

/// Owns a family, says who its head is, and runs.
fn owner(lifetime: &str, group: &str) -> i32 {
    become_subreaper().unwrap();
    let mut spec = helper(&["family", "2"]);
    spec.group = group.parse().unwrap();
    spec.lifetime = match lifetime {
        "detached" => Lifetime::Detached,
        _ => Lifetime::WithOwner,
    };
    spec.stderr = Output::Null;
    let process = Native.spawn(&spec).unwrap();
    let mut output = BufReader::new(process.take_stdout().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert_eq!(line.trim_end(), "ready");
    say(&serde_json::to_string(process.identity()).unwrap());
    std::thread::sleep(LIFE);
    99
}
