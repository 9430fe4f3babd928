//! Help texts, and what people see who ask for nothing or for what does not exist.

use crate::harness::{Sandbox, with_snapshot_files};

#[test]
fn without_a_command_the_overview_is_printed_on_stderr() {
    let outcome = Sandbox::new().run::<&str>([]);
    assert_eq!(outcome.code(), 2);
    assert_eq!(outcome.stdout, "");
    insta::assert_snapshot!(outcome.stderr, @r"
    Build, install, upgrade and run container clusters of Linux and Windows machines

    Usage: transom [OPTIONS] <COMMAND>

    Cluster:
      up          Start a cluster on this machine: API, scheduler, controllers and a node
      down        Stop the cluster of `transom up` and remove everything of it
      server      Run the Kubernetes API server, or look after its store
      agent       Join a cluster and run its pods on this machine
      token       Make, list and delete the tokens that machines join with
      kubeconfig  Print the administrator's kubeconfig of the server on this machine
      simulate    Simulate a cluster of many nodes: how fast it is, and how large its control plane gets

    What runs in it:
      get         Show objects of the cluster
      apply       Create objects, or change them to what files say
      delete      Delete objects of the cluster
      logs        Show what containers print
      exec        Run a program in a container of a pod
      top         Show what nodes and pods use
      explain     Say why the cluster decided as it did

    Software:
      package     Make packages, and choose those that are active on this node
      repository  Make, sign, check and carry repositories of packages

    This machine:
      doctor      Show what this machine can do, and what it lacks
      service     Run and control services from systemd unit files, on Linux and Windows

    This command:
      config      Show settings and where they come from
      version     Show what this binary was built from
      completion  Print a script that completes commands and options in a shell
      man         Print the manual page, or write all pages to a folder
      help        Show help for a command or a topic

    Global options:
      -o, --output <FORM>  Form of what is printed [possible values: table, wide, json, yaml, name]
      -q, --quiet          Print data and errors only
      -v, --verbose...     Say more: once for info, twice for debug, three times for trace
      -h, --help           Print help (see more with '--help')
      -V, --version        Print version

    Run `transom help COMMAND` for a command, and `transom help topics` for what all of them share.
    ");
}

#[test]
fn every_command_explains_itself_with_examples() {
    let sandbox = Sandbox::new();
    let mut pages = String::new();
    for words in [
        &["get"][..],
        &["apply"],
        &["delete"],
        &["logs"],
        &["exec"],
        &["top"],
        &["top", "nodes"],
        &["top", "pods"],
        &["explain"],
        &["explain", "placement"],
        &["doctor"],
        &["config"],
        &["config", "show"],
        &["config", "path"],
        &["version"],
        &["completion"],
        &["man"],
        &["help"],
        &["package"],
        &["package", "id"],
        &["package", "tree"],
        &["package", "graph"],
        &["package", "activate"],
        &["package", "swap"],
        &["package", "active"],
        &["package", "fetch"],
        &["package", "add"],
        &["package", "list"],
        &["package", "remove"],
        &["package", "setup"],
        &["package", "uninstall"],
        &["package", "check"],
        &["package", "generations"],
        &["package", "diff"],
        &["package", "rollback"],
        &["package", "pin"],
        &["package", "unpin"],
        &["package", "serve"],
        &["package", "gc"],
        &["service"],
        &["service", "start"],
        &["service", "status"],
        &["service", "logs"],
    ] {
        let short = sandbox.run(words.iter().chain(&["-h"]));
        assert_eq!(short.code(), 0);
        assert_eq!(short.stderr, "");
        assert!(short.stdout.contains("Examples:"), "{words:?}");
        pages.extend(["$ transom ", &words.join(" "), " -h\n", &short.stdout, "\n"]);
    }
    with_snapshot_files(|| insta::assert_snapshot!("short_help", pages));
}

#[test]
fn long_help_is_the_same_by_flag_and_by_command() {
    let sandbox = Sandbox::new();
    let by_flag = sandbox.run(["config", "show", "--help"]);
    let by_command = sandbox.run(["help", "config", "show"]);
    assert_eq!(by_flag.code(), 0);
    assert_eq!(by_flag.stdout, by_command.stdout);
    let root = sandbox.run(["--help"]);
    assert_eq!(root.stdout, sandbox.run(["help"]).stdout);
    with_snapshot_files(|| insta::assert_snapshot!("long_help", root.stdout));
}

#[test]
fn topics_are_listed_and_each_can_be_read() {
    let sandbox = Sandbox::new();
    let topics = sandbox.run(["help", "topics"]).stdout;
    let mut pages = String::new();
    for line in topics.lines().skip(1) {
        let name = line.split_whitespace().next().unwrap();
        let page = sandbox.run(["help", name]);
        assert_eq!(page.code(), 0, "{name}");
        pages.extend(["$ transom help ", name, "\n", &page.stdout, "\n"]);
    }
    with_snapshot_files(|| insta::assert_snapshot!("topics", pages));
}

#[test]
fn an_unknown_topic_or_verb_gets_a_suggestion() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(sandbox.run(["help", "exit-code"]).transcript(), @"
    exit: 4
    --- stdout
    --- stderr
    error: there is no command or topic `exit-code`
      hint: did you mean `exit-codes`?
    ");
    insta::assert_snapshot!(sandbox.run(["help", "config", "shwo"]).transcript(), @"
    exit: 4
    --- stdout
    --- stderr
    error: there is no command or topic `shwo`
      hint: did you mean `show`?
    ");
    insta::assert_snapshot!(sandbox.run(["help", "config", "topics"]).transcript(), @"
    exit: 4
    --- stdout
    --- stderr
    error: there is no command or topic `topics`
      hint: possible values: show, path
    ");
}
