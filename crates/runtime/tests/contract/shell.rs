//! The roles as words for a shell, for containers that have nothing but one.

use super::backend::Role;

/// Program and arguments that play a role, with `/bin/sh` and the tools of busybox. The shell is the first process of
/// its container, so it hears only the signals that it asks for.
pub(crate) fn command(role: &Role) -> Vec<String> {
    let script = match role {
        Role::Exit(code) => format!("exit {code}"),
        Role::Lines(count) => format!(
            "i=1; while [ $i -le {count} ]; do echo line $i; echo error $i >&2; i=$((i+1)); done"
        ),
        Role::Run => waiting("trap 'exit 143' TERM"),
        Role::Polite => waiting("trap 'exit 7' TERM"),
        Role::Stubborn => waiting("trap '' TERM"),
        Role::Echo => "while read -r line; do echo \"$line\"; done; exit 5".to_owned(),
        Role::Serve(port) => format!("echo ready; exec nc -ll -p {port} -e /bin/cat"),
        Role::Variable(name) => format!("echo \"${name}\""),
        Role::Arguments(_) => "for word in \"$@\"; do echo \"$word\"; done".to_owned(),
        Role::Missing => return vec!["/no-such-program".to_owned()],
    };
    let mut words = vec![
        "/bin/sh".to_owned(),
        "-c".to_owned(),
        script,
        "sh".to_owned(),
    ];
    if let Role::Arguments(arguments) = role {
        words.extend(arguments.iter().cloned());
    }
    words
}

fn waiting(prepare: &str) -> String {
    format!("{prepare}; echo ready; sleep 120 & while true; do wait; done")
}
