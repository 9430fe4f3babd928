//! `transom help`: help for a command, or about what all commands share. Invariant: what a topic says
//! is generated from the tables that the program itself uses.

use std::fmt::Write as _;

use crate::context::Context;
use crate::environment;
use crate::failure::{Advice as _, Exit};
use crate::settings::{DESCRIPTIONS, Usual};
use crate::suggestion;

const EXAMPLES: &str = "\
Examples:
  transom help config show    Help for a command
  transom help topics         What else there is to read
  transom help exit-codes     What exit codes mean";

/// Show help for a command or a topic
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Help {
    /// A command such as `config show`, or a topic
    #[arg(value_name = "COMMAND OR TOPIC")]
    words: Vec<String>,
}

/// Something to read that is not a command.
struct Topic {
    name: &'static str,
    about: &'static str,
    render: fn() -> String,
}

const TOPICS: &[Topic] = &[
    Topic {
        name: "topics",
        about: "This list",
        render: topics,
    },
    Topic {
        name: "configuration",
        about: "Flags, variables, the configuration file, and which one wins",
        render: configuration,
    },
    Topic {
        name: "environment",
        about: "Environment variables",
        render: variables,
    },
    Topic {
        name: "exit-codes",
        about: "What exit codes mean",
        render: exit_codes,
    },
    Topic {
        name: "output",
        about: "Forms of output, errors, colours and progress",
        render: output,
    },
];

impl Help {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        let mut root = super::command_line();
        root.build();
        // No words at all name the root, which is found at once.
        let text = match (find(&mut root, &self.words), topic(&self.words)) {
            (Ok(command), _) => command.render_long_help().ansi().to_string(),
            (Err(_), Some(topic)) => (topic.render)(),
            (Err(Unknown { word, known }), None) => {
                let names = known.iter().map(String::as_str);
                return Err(anyhow::anyhow!("there is no command or topic `{word}`"))
                    .hint(suggestion::hint(word, names))
                    .exit(Exit::NotFound);
            }
        };
        cx.out.write(&text)?;
        Ok(Exit::Success)
    }
}

/// The word that no command has, and those that could have stood there.
struct Unknown<'a> {
    word: &'a str,
    known: Vec<String>,
}

fn find<'command, 'words>(
    root: &'command mut clap::Command,
    words: &'words [String],
) -> Result<&'command mut clap::Command, Unknown<'words>> {
    let mut command = root;
    for (index, word) in words.iter().enumerate() {
        if command.find_subcommand(word).is_none() {
            let topics = TOPICS.iter().filter(|_| index == 0).map(|topic| topic.name);
            let commands = command
                .get_subcommands()
                .filter(|command| !command.is_hide_set())
                .map(clap::Command::get_name);
            let known = commands.chain(topics).map(ToOwned::to_owned).collect();
            return Err(Unknown { word, known });
        }
        command = match command.find_subcommand_mut(word) {
            Some(child) => child,
            None => unreachable!("found above"),
        };
    }
    Ok(command)
}

fn topic(words: &[String]) -> Option<&'static Topic> {
    let [word] = words else {
        return None;
    };
    TOPICS.iter().find(|topic| topic.name == word)
}

fn topics() -> String {
    let mut text = "Topics:\n".to_owned();
    for topic in TOPICS {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {:<14} {}", topic.name, topic.about);
    }
    text
}

fn configuration() -> String {
    let mut text = "\
A value is taken from the first of these that has one:

  1. the flag
  2. the environment variable
  3. the configuration file (`transom config path` says where it is)
  4. the default

`transom config show` prints what holds, and where each value came from. A key that is not known is
an error, and so is a configuration file that was named but does not exist.

"
    .to_owned();
    for setting in DESCRIPTIONS {
        let key = if setting.in_file { setting.key } else { "" };
        let (Usual::Value(usual) | Usual::Words(usual)) = setting.default;
        let _ = writeln!(
            text,
            "  {key:<21} {:<17} {:<30} {}",
            setting.flag,
            setting.variable.name,
            usual.replace('`', "")
        );
    }
    text
}

fn variables() -> String {
    let mut text = String::new();
    for variable in environment::ALL {
        let _ = writeln!(text, "{}\n    {}", variable.name, variable.purpose);
        let _ = writeln!(text, "    holds: {}\n", variable.values);
    }
    text.trim_end().to_owned() + "\n"
}

fn exit_codes() -> String {
    let mut text = String::new();
    for (exit, meaning) in Exit::DOCUMENTED {
        let _ = writeln!(text, "  {}  {meaning}", exit.code());
    }
    text += "\nCalled without a command, transom prints its help on stderr and ends with 2.\n";
    text
}

fn output() -> String {
    "\
Data goes to stdout, everything else to stderr.

  -o table   aligned columns for people (default)
  -o wide    the same with more columns
  -o json    JSON: a list, or one object
  -o yaml    the same as YAML
  -o name    names only, one per line, to hand to another command

Errors say what failed, why, and the way forward. With -o json they are one line of JSON on stderr:
  {\"error\":{\"message\":\"…\",\"causes\":[\"…\"],\"hint\":\"…\",\"code\":4,\"kind\":\"not-found\"}}

Colours are used on a terminal; --color, TRANSOM_COLOR, NO_COLOR, CLICOLOR_FORCE, CLICOLOR and TERM
change that, the first one that says something wins.

Progress moves on a terminal only. Elsewhere an operation that takes long prints a line now and then.
--no-progress and --quiet switch that off.
"
    .to_owned()
}
