//! Runs the console blocks of a guide. Invariant: a command that cannot be run fails the test, so a
//! guide never shows what nobody has tried.
//!
//! A block begins with ```` ```console ````. `$ transom …` is run; the lines below it are what it must
//! print (stdout, then stderr), `? 2` at their end is the exit code if it is not 0. A line `...`
//! stands for any lines, `...` inside a line for any text. A ```` ```yaml file=NAME ```` block (any
//! language) becomes a file in the guide's folder, for the blocks below it. Blocks of one guide share
//! a folder. ```` ```console linux ```` and ```` ```console windows ```` run on that system alone.
//! ```` ```console not-run ```` is shown only: for what needs a whole cluster.

use crate::harness::Sandbox;

/// One command of a guide, and what it should print.
#[derive(Debug, PartialEq, Eq)]
struct Step {
    line: usize,
    words: Vec<String>,
    expected: Vec<String>,
    code: i32,
}

#[derive(Debug, PartialEq, Eq)]
enum Action {
    Run(Step),
    Write { name: String, text: String },
}

/// Runs the guide and returns how many commands it has. Panics with the place of the first mistake.
pub(crate) fn check(guide: &str, text: &str) -> usize {
    let sandbox = Sandbox::new();
    let mut commands = 0;
    for action in parse(text).unwrap_or_else(|problem| panic!("{guide}:{problem}")) {
        match action {
            Action::Write { name, text } => {
                sandbox.write(&name, &text);
            }
            Action::Run(step) => {
                commands += 1;
                let outcome = sandbox.run(&step.words[1..]);
                let printed = format!("{}{}", outcome.stdout, outcome.stderr);
                let lines: Vec<&str> = printed.lines().collect();
                let expected: Vec<&str> = step.expected.iter().map(String::as_str).collect();
                assert!(
                    outcome.code() == step.code && matches_lines(&expected, &lines),
                    "{guide}:{}: `{}` printed (exit {}):\n{printed}\nbut the guide says (exit {}):\n{}",
                    step.line,
                    step.words.join(" "),
                    outcome.code(),
                    step.code,
                    step.expected.join("\n"),
                );
            }
        }
    }
    commands
}

fn parse(text: &str) -> Result<Vec<Action>, String> {
    let mut actions = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        let Some(info) = line.strip_prefix("```").filter(|info| !info.is_empty()) else {
            continue;
        };
        let mut body = Vec::new();
        loop {
            match lines.next() {
                None => return Err(format!("{}: the block has no end", index + 1)),
                Some((_, "```")) => break,
                Some((index, line)) => body.push((index + 1, line)),
            }
        }
        let file = info
            .split_whitespace()
            .find_map(|word| word.strip_prefix("file="));
        if info == "console" || info == format!("console {}", std::env::consts::OS) {
            steps(&body, &mut actions)?;
        } else if let Some(name) = file {
            let text = body.iter().flat_map(|(_, line)| [line, "\n"]).collect();
            let name = name.to_owned();
            actions.push(Action::Write { name, text });
        }
    }
    Ok(actions)
}

fn steps(body: &[(usize, &str)], actions: &mut Vec<Action>) -> Result<(), String> {
    let mut current: Option<Step> = None;
    for (line, text) in body {
        if let Some(command) = text.strip_prefix("$ ") {
            actions.extend(current.take().map(Action::Run));
            let words = words(command).map_err(|problem| format!("{line}: {problem}"))?;
            current = Some(Step {
                line: *line,
                words,
                expected: Vec::new(),
                code: 0,
            });
        } else if let Some(step) = &mut current {
            match text.strip_prefix("? ").map(str::parse) {
                Some(Ok(code)) => step.code = code,
                _ => step.expected.push(text.trim_end().to_owned()),
            }
        } else {
            return Err(format!("{line}: output without a command"));
        }
    }
    actions.extend(current.map(Action::Run));
    Ok(())
}

/// Splits as a shell would, as far as guides need: blanks, and both kinds of quotes.
fn words(command: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    let mut begun = false;
    for letter in command.chars() {
        match (quote, letter) {
            (None, '"' | '\'') => (quote, begun) = (Some(letter), true),
            (Some(open), _) if letter == open => quote = None,
            (None, ' ') => {
                if std::mem::take(&mut begun) {
                    words.push(std::mem::take(&mut word));
                }
            }
            (None, '|' | '>' | '<' | '&' | ';' | '$' | '`' | '*') => {
                return Err(format!(
                    "`{letter}` needs a shell, which guides do not have"
                ));
            }
            _ => {
                word.push(letter);
                begun = true;
            }
        }
    }
    if quote.is_some() {
        return Err("a quote is not closed".to_owned());
    }
    if begun {
        words.push(word);
    }
    if words.first().is_none_or(|program| program != "transom") {
        return Err("only `transom` can be run".to_owned());
    }
    Ok(words)
}

fn matches_lines(expected: &[&str], lines: &[&str]) -> bool {
    match expected {
        [] => lines.is_empty(),
        ["...", rest @ ..] => {
            (0..=lines.len()).any(|skipped| matches_lines(rest, &lines[skipped..]))
        }
        [first, rest @ ..] => lines.split_first().is_some_and(|(line, lines)| {
            matches_line(first, line.trim_end()) && matches_lines(rest, lines)
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

#[test]
fn dots_stand_for_anything_and_everything_else_for_itself() {
    assert!(matches_lines(&[], &[]));
    assert!(!matches_lines(&[], &["a"]));
    assert!(matches_lines(&["...", "b"], &["a", "a", "b"]));
    assert!(matches_lines(&["a", "..."], &["a"]));
    assert!(!matches_lines(&["...", "b"], &["b", "a"]));
    assert!(matches_line("version ... (...)", "version 1.2 (abc)"));
    assert!(!matches_line("version ... (...)", "version 1.2"));
    assert!(!matches_line("a", "ab"));
}

#[test]
fn blocks_become_steps_with_output_and_exit_code() {
    let text = "# Guide\n```yaml file=a.yaml\nb: c\n```\n```console\n$ transom a 'b c'\nout\n? 2\n$ transom d\n```\n```console not-run\n$ rm -rf /\n```\n";
    let step = |line, words: &[&str], expected: &[&str], code| {
        Action::Run(Step {
            line,
            words: words.iter().map(ToString::to_string).collect(),
            expected: expected.iter().map(ToString::to_string).collect(),
            code,
        })
    };
    let write = Action::Write {
        name: "a.yaml".to_owned(),
        text: "b: c\n".to_owned(),
    };
    let wanted = vec![
        write,
        step(6, &["transom", "a", "b c"], &["out"], 2),
        step(9, &["transom", "d"], &[], 0),
    ];
    assert_eq!(parse(text), Ok(wanted));
}

#[test]
fn what_cannot_be_run_is_refused_with_its_line() {
    for (block, problem) in [
        ("$ rm -rf /", "2: only `transom` can be run"),
        (
            "$ transom a | less",
            "2: `|` needs a shell, which guides do not have",
        ),
        ("$ transom 'a", "2: a quote is not closed"),
        ("output", "2: output without a command"),
    ] {
        let text = format!("```console\n{block}\n```\n");
        assert_eq!(parse(&text), Err(problem.to_owned()));
    }
    assert_eq!(
        parse("```console\n$ transom a"),
        Err("1: the block has no end".to_owned())
    );
}
