//! The guides that need a cluster are done, command by command. Invariant: every command was run, and what is shown
//! is what came; only servers are started by the fixture, at a place where they disturb nobody.
//!
//! In a block ```` ```sh ```` each line is a command that must succeed. In a block ```` ```console kubectl ```` commands
//! stand behind `$ `, below them is what they print, and `? 1` is an exit code that is not 0. `...` stands for any
//! text. A block with `file=NAME` becomes a file. `export` holds for all commands below it.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use anyhow::ensure;
use transom_testkit::{Host, Lab, eventually};

use crate::server::{LIMIT, Server};

/// Folders of the guide that are below the folder of the test here.
const PLACES: [&str; 2] = ["/var/lib/transom", "/srv/"];

#[derive(Debug, PartialEq, Eq)]
enum Action {
    Write { name: String, text: String },
    Run(Step),
}

#[derive(Debug, PartialEq, Eq)]
struct Step {
    line: usize,
    command: String,
    /// What it prints, if the guide says it.
    expected: Option<Vec<String>>,
    code: i32,
}

#[test]
fn the_guide_about_kubectl_does_what_it_says() {
    let server = Server::start();
    fs_err::create_dir_all(server.path("var/lib/transom")).unwrap();
    symlink(server.path("data"), server.path("var/lib/transom/server")).unwrap();
    fs_err::create_dir(server.path("examples")).unwrap();
    fs_err::rename(server.path("web.yaml"), server.path("examples/web.yaml")).unwrap();
    assert!(follow(&server, "kubectl.md") > 15);
}

#[test]
fn the_guide_to_start_does_what_it_says() {
    let server = Server::absent();
    let _end = End(&server);
    assert!(follow(&server, "start.md") > 8);
    assert!(!server.path("var/lib/transom/up").exists());
}

#[test]
fn the_guide_to_start_does_what_it_says_to_root_with_containers() {
    let lab = Lab::new("start").unwrap();
    let host = lab.linux_host("alpha").unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_transom"));
    host.put_file(program, "/usr/local/bin/transom").unwrap();
    // A disk on which containers can have theirs: the host's own is a layer above another already.
    let place = "/var/lib/transom";
    for line in [
        vec!["mkdir", "-p", place],
        vec!["mount", "-t", "tmpfs", "data", place],
    ] {
        host.run(line).unwrap().success().unwrap();
    }
    let before = host.processes().unwrap();
    assert!(follow(&host, "start.md") > 8);
    assert!(!host.path("/var/lib/transom/up").unwrap().exists());
    let tables = host.run(["nft", "list", "tables"]).unwrap();
    assert_eq!(tables.success().unwrap().stdout, "");
    // Who let go of the folder may still be on its way out.
    eventually("nothing of it to run", LIMIT, || {
        let now = host.processes()?;
        ensure!(now.len() == before.len(), "{now:#?}");
        Ok(())
    })
    .unwrap();
}

#[test]
fn the_guide_without_kubectl_does_what_it_says() {
    let server = Server::absent();
    let _end = End(&server);
    // Nobody says which cluster is meant: there is one.
    assert!(follow_from(&server, "unset KUBECONFIG\n", "without-kubectl.md") > 12);
}

/// Ends what a guide started, also one that was not followed to its end.
pub(crate) struct End<'a>(pub(crate) &'a Server);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.shell("transom down");
    }
}

/// Where a guide is followed.
trait Desk {
    fn shell(&self, line: &str) -> (String, i32);
    fn write(&self, name: &str, text: &str);
    /// A command of the guide as it is given here.
    fn adapted(&self, command: &str) -> String;
}

/// Beside others on this machine, whom it must not disturb.
impl Desk for Server {
    fn shell(&self, line: &str) -> (String, i32) {
        Self::shell(self, line)
    }

    fn write(&self, name: &str, text: &str) {
        Self::write(self, name, text);
    }

    fn adapted(&self, command: &str) -> String {
        let mut command = placed(self, command);
        if is_server(&command) {
            // Another server would want ports and names of the machine; its flags are read all the same.
            command.push_str(" --help");
        }
        if command == "transom up" {
            command.push_str(ELSEWHERE);
        }
        command
    }
}

/// On a machine of its own, word by word, as root.
impl Desk for Host {
    fn shell(&self, line: &str) -> (String, i32) {
        let line = format!("exec 2>&1\n{line}");
        let command = self.command(["sh", "-c", &line]).folder("/root");
        // The image is made from a program with all that a debugger wants to know.
        let output = command.timeout(Duration::from_mins(4)).run().unwrap();
        (output.stdout, output.status.code().unwrap_or(-1))
    }

    fn write(&self, name: &str, text: &str) {
        Self::write(self, &format!("/root/{name}"), text).unwrap();
    }

    fn adapted(&self, command: &str) -> String {
        command.to_owned()
    }
}

fn is_server(command: &str) -> bool {
    command.starts_with("transom server -")
}

/// Does what a guide says, and counts the commands in it.
fn follow(desk: &dyn Desk, guide: &str) -> usize {
    follow_from(desk, "", guide)
}

/// The same after some lines of shell.
fn follow_from(desk: &dyn Desk, before: &str, guide: &str) -> usize {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guides/");
    let text = fs_err::read_to_string(format!("{folder}{guide}")).unwrap();
    let mut exports = before.to_owned();
    let mut commands = 0;
    for action in parse(&text) {
        match action {
            Action::Write { name, text } => desk.write(&name, &text),
            Action::Run(step) if step.command.starts_with("export ") => {
                exports.push_str(&desk.adapted(&step.command));
                exports.push('\n');
            }
            Action::Run(step) => {
                commands += 1;
                run(desk, &exports, &step);
            }
        }
    }
    commands
}

fn run(desk: &dyn Desk, exports: &str, step: &Step) {
    let starts_one = is_server(&step.command);
    let command = desk.adapted(&step.command);
    let (printed, code) = desk.shell(&format!("{exports}{command}"));
    let printed: Vec<&str> = printed.lines().collect();
    let as_expected = match &step.expected {
        _ if starts_one => true,
        None => true,
        Some(expected) => {
            let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
            matches_lines(&expected, &printed)
        }
    };
    assert!(
        code == step.code && as_expected,
        "line {}: `{}` printed (exit {code}):\n{}\nbut the guide says (exit {}):\n{}",
        step.line,
        step.command,
        printed.join("\n"),
        step.code,
        step.expected.as_deref().unwrap_or_default().join("\n"),
    );
}

/// Flags for a cluster that disturbs nobody on this machine. Pods are processes: containers have tests of their own.
pub(crate) const ELSEWHERE: &str =
    " --runtime=process --listen=127.0.0.1:0 --agent-listen=127.0.0.1:0 --demo-listen=127.0.0.1:0";

/// The command with the folders that it names below that of the test.
fn placed(server: &Server, command: &str) -> String {
    let folder = server.path("").display().to_string();
    let folder = folder.trim_end_matches('/');
    PLACES.iter().fold(command.to_owned(), |command, place| {
        command.replace(place, &format!("{folder}{place}"))
    })
}

fn parse(text: &str) -> Vec<Action> {
    let mut actions = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        let Some(info) = line.strip_prefix("```").filter(|info| !info.is_empty()) else {
            continue;
        };
        let body: Vec<(usize, &str)> = lines
            .by_ref()
            .map(|(index, line)| (index + 1, line))
            .take_while(|(_, line)| *line != "```")
            .collect();
        let file = info
            .split_whitespace()
            .find_map(|word| word.strip_prefix("file="));
        match (info, file) {
            ("sh", _) => actions.extend(joined(&body)),
            ("console kubectl", _) => actions.extend(shown(&body)),
            // Run on every system, with the other guides.
            ("console" | "text", _) => {}
            (_, Some(name)) => {
                let text = body.iter().flat_map(|(_, line)| [line, "\n"]).collect();
                let name = name.to_owned();
                actions.push(Action::Write { name, text });
            }
            _ => panic!("line {}: nobody runs a block `{info}`", index + 1),
        }
    }
    actions
}

/// Commands alone; a backslash at the end of a line goes on with the next.
fn joined(body: &[(usize, &str)]) -> Vec<Action> {
    let mut steps = Vec::new();
    let mut begun: Option<(usize, String)> = None;
    for (line, text) in body {
        let (first, mut command) = begun.take().unwrap_or((*line, String::new()));
        command.push_str(text.trim_end_matches('\\').trim_start());
        if text.ends_with('\\') {
            begun = Some((first, command));
        } else if !command.is_empty() {
            steps.push(Action::Run(Step {
                line: first,
                command,
                expected: None,
                code: 0,
            }));
        }
    }
    assert!(begun.is_none(), "a command has no end: {begun:?}");
    steps
}

/// Commands with what they print.
fn shown(body: &[(usize, &str)]) -> Vec<Action> {
    let mut steps: Vec<Step> = Vec::new();
    for (line, text) in body {
        if let Some(command) = text.strip_prefix("$ ") {
            steps.push(Step {
                line: *line,
                command: command.to_owned(),
                expected: Some(Vec::new()),
                code: 0,
            });
            continue;
        }
        let step = steps
            .last_mut()
            .unwrap_or_else(|| panic!("line {line}: output without a command"));
        match text.strip_prefix("? ").map(str::parse) {
            Some(Ok(code)) => step.code = code,
            _ => step
                .expected
                .get_or_insert_default()
                .push((*text).to_owned()),
        }
    }
    steps.into_iter().map(Action::Run).collect()
}

fn matches_lines(expected: &[&str], lines: &[&str]) -> bool {
    match expected {
        [] => lines.is_empty(),
        ["...", rest @ ..] => {
            (0..=lines.len()).any(|skipped| matches_lines(rest, &lines[skipped..]))
        }
        [first, rest @ ..] => lines.split_first().is_some_and(|(line, lines)| {
            matches_line(&ageless(first), &ageless(line)) && matches_lines(rest, lines)
        }),
    }
}

fn matches_line(expected: &str, line: &str) -> bool {
    match expected.split_once("...") {
        None => expected == line,
        Some((before, after)) => line.strip_prefix(before).is_some_and(|rest| {
            rest.char_indices()
                .map(|(index, _)| index)
                .chain([rest.len()])
                .any(|skipped| matches_line(after, &rest[skipped..]))
        }),
    }
}

/// A row of a table without the age at its end, which no two runs have in common.
fn ageless(line: &str) -> String {
    let line = line.trim_end();
    let (before, last) = line.rsplit_once(' ').unwrap_or(("", line));
    let number = last.strip_suffix(['s', 'm']).unwrap_or_default();
    if !number.is_empty()
        && number
            .chars()
            .all(|letter| letter.is_ascii_digit() || letter == 'm')
    {
        format!("{before} [age]")
    } else {
        line.to_owned()
    }
}

#[test]
fn blocks_become_files_and_commands() {
    let text = "```sh\na \\\n  b\n\nc\n```\n```yaml file=x\ny: z\n```\n```console kubectl\n$ d\nout  5s\n? 1\n```\n";
    let step = |line, command: &str, expected: Option<&[&str]>, code| {
        Action::Run(Step {
            line,
            command: command.to_owned(),
            expected: expected.map(|lines| lines.iter().map(ToString::to_string).collect()),
            code,
        })
    };
    let wanted = [
        step(2, "a b", None, 0),
        step(5, "c", None, 0),
        Action::Write {
            name: "x".to_owned(),
            text: "y: z\n".to_owned(),
        },
        step(11, "d", Some(&["out  5s"]), 1),
    ];
    assert_eq!(parse(text), wanted);
    assert!(matches_lines(&["out  5s"], &["out  1m7s"]));
    assert!(!matches_lines(&["out  5s"], &["out  yes"]));
    assert!(!matches_lines(&["out"], &["out", "more"]));
    assert!(matches_lines(&["...", "a...c"], &["x", "abc"]));
}
