//! The programs that containers run. Each ends by itself after two minutes, so that a failed test leaves nothing
//! behind for long.

use std::io::{BufRead, Read, Write};
use std::net::TcpListener;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

const LIFE: Duration = Duration::from_mins(2);

pub(crate) fn play(words: &[String]) -> ExitCode {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let code = match words[..] {
        ["exit", code] => code.parse().unwrap(),
        ["lines", count] => lines(count.parse().unwrap()),
        ["run"] => run(),
        ["polite"] => polite(),
        ["stubborn"] => stubborn(),
        ["echo"] => echo(),
        ["serve", port] => serve(port.parse().unwrap()),
        ["variable", name] => say(&std::env::vars().find(|one| one.0 == name).unwrap().1),
        ["read", path] => say(&fs_err::read_to_string(path).unwrap()),
        ["family"] => family(),
        ["breed"] => breed(),
        ["agent", folder] => super::process::play_agent(folder),
        ["arguments", ref arguments @ ..] => arguments.iter().map(|word| say(word)).sum(),
        _ => panic!("unknown role: {words:?}"),
    };
    // `ExitCode` holds eight bits; Windows has thirty-two.
    std::process::exit(code)
}

fn say(text: &str) -> i32 {
    println!("{text}");
    0
}

fn lines(count: usize) -> i32 {
    for number in 1..=count {
        println!("line {number}");
        eprintln!("error {number}");
    }
    0
}

fn run() -> i32 {
    say("ready");
    std::thread::sleep(LIFE);
    99
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
    say("ready");
    signals.wait().unwrap();
    7
}

#[cfg(target_os = "linux")]
fn stubborn() -> i32 {
    block_terminate();
    run()
}

/// Without signals a program is asked to end by the end of its input.
#[cfg(windows)]
fn polite() -> i32 {
    say("ready");
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    7
}

#[cfg(windows)]
fn stubborn() -> i32 {
    run()
}

fn echo() -> i32 {
    for line in std::io::stdin().lock().lines() {
        say(&line.unwrap());
    }
    5
}

fn serve(port: u16) -> i32 {
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    say("ready");
    for stream in listener.incoming() {
        let mut stream = stream.unwrap();
        let mut buffer = [0; 1024];
        while let Ok(read) = stream.read(&mut buffer) {
            if read == 0 || stream.write_all(&buffer[..read]).is_err() {
                break;
            }
        }
    }
    0
}

/// Has a child that would outlive it, and ends when its input does.
fn family() -> i32 {
    let child = child(&["stubborn"]);
    let mut line = String::new();
    std::io::BufReader::new(child.unwrap().stdout.unwrap())
        .read_line(&mut line)
        .unwrap();
    say("ready");
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    4
}

/// Exits with 3 if it cannot have a child.
fn breed() -> i32 {
    if child(&["stubborn"]).is_ok() { 0 } else { 3 }
}

fn child(words: &[&str]) -> std::io::Result<std::process::Child> {
    Command::new(std::env::current_exe().unwrap())
        .arg("role")
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
}
