//! What a script sees and cannot do. Every test runs a real script in real namespaces.

use std::time::{Duration, Instant};

use transom_package::archive::Digest;
use transom_package::build::{Options, Outcome};

use super::{SourceTree, read};

impl SourceTree {
    /// A package with a script.
    fn package(&self, name: &str, recipe: &str, script: &str) {
        self.write(&format!("{name}/buildinfo.json"), recipe);
        self.write(&format!("{name}/build"), script);
    }
}

#[test]
fn a_script_is_told_where_it_is_and_what_it_builds() {
    let tree = SourceTree::new();
    tree.write("tool/extra/notes", "extra content");
    tree.package(
        "tool",
        "{}",
        "env | sort > $PKG_PATH/environment\n\
         pwd > $PKG_PATH/directory\n\
         cp /pkg/extra/notes $PKG_PATH/notes\n\
         id -u > $PKG_PATH/user\n\
         hostname > $PKG_PATH/name || cat /proc/sys/kernel/hostname > $PKG_PATH/name\n\
         echo said; echo complained >&2\n",
    );
    let ran = tree.build(&["tool"]).good();
    let id = ran.package("tool").id.clone();
    let to = ran.unpack(&tree, "tool");
    let environment = read(&to.join("environment"));
    let names: Vec<&str> = environment
        .lines()
        .filter_map(|line| line.split_once('=').map(|(name, _)| name))
        // What bash itself adds.
        .filter(|name| !matches!(*name, "_" | "SHLVL" | "PWD" | "OLDPWD"))
        .collect();
    assert_eq!(
        names,
        [
            "HOME",
            "LANG",
            "NUM_CORES",
            "PATH",
            "PKG_ID",
            "PKG_NAME",
            "PKG_PATH",
            "PKG_VARIANT",
            "PKG_VERSION",
            "SOURCE_DATE_EPOCH"
        ]
    );
    for line in [
        "PKG_NAME=tool".to_owned(),
        format!("PKG_ID={id}"),
        format!("PKG_VERSION={}", id.version_str()),
        format!("PKG_PATH=/opt/mesosphere/packages/{id}"),
        "PKG_VARIANT=<default>".to_owned(),
    ] {
        assert!(environment.lines().any(|found| found == line), "{line}");
    }
    assert_eq!(read(&to.join("directory")), "/pkg/src\n");
    assert_eq!(read(&to.join("notes")), "extra content");
    assert_eq!(read(&to.join("user")), "0\n");
    assert_eq!(read(&to.join("name")), "build\n");
    let log = read(&tree.cache().log(&id));
    assert_eq!(log, "said\ncomplained\n");
}

#[test]
fn a_script_reaches_no_network_and_writes_nowhere_else() {
    let tree = SourceTree::new();
    tree.package(
        "tool",
        "{}",
        "mkdir $PKG_PATH/bin\n\
         ls /sys/class/net > $PKG_PATH/interfaces 2>&1 || true\n\
         cut -d: -f1 -s /proc/net/dev | tail -n +1 > $PKG_PATH/devices\n\
         for place in /etc/x /usr/x /x /opt/mesosphere/x /pkg/extra/x /pkg/build /opt/x /proc/sys/kernel/hostname; do\n\
           if (echo x > $place) 2>/dev/null; then echo $place >> $PKG_PATH/written; fi\n\
         done\n\
         if mount -o remount,rw /usr 2>/dev/null; then echo remounted >> $PKG_PATH/written; fi\n\
         if mknod /tmp/disk b 8 0 2>/dev/null; then echo mknod >> $PKG_PATH/written; fi\n\
         echo x > /tmp/x; echo x > /pkg/src/x; echo x > /var/tmp/x; echo x > /dev/shm/x; echo x > /dev/null\n\
         (exec 3<>/dev/tcp/192.0.2.1/80) 2> $PKG_PATH/network || true\n\
         ls /proc | grep -c '^[0-9]*$' > $PKG_PATH/processes\n\
         touch $PKG_PATH/bin/tool; chmod 755 $PKG_PATH/bin/tool\n",
    );
    let ran = tree.build(&["tool"]).good();
    let to = ran.unpack(&tree, "tool");
    assert!(
        !fs_err::exists(to.join("written")).unwrap(),
        "{}",
        read(&to.join("written"))
    );
    assert!(
        read(&to.join("network")).contains("unreachable"),
        "{}",
        read(&to.join("network"))
    );
    assert_eq!(read(&to.join("devices")).trim(), "lo");
    let processes: u32 = read(&to.join("processes")).trim().parse().unwrap();
    assert!(processes < 10, "{processes}");
}

#[test]
fn dependencies_are_there_as_on_a_node_and_cannot_be_changed() {
    let tree = SourceTree::new();
    tree.package(
        "dep",
        r#"{"environment": {"DEP_HOME": "/opt/mesosphere/active/dep"}}"#,
        "mkdir -p $PKG_PATH/bin $PKG_PATH/lib/deep\n\
         printf '#!/bin/bash\\necho tool-output\\n' > $PKG_PATH/bin/dep-tool\n\
         chmod +x $PKG_PATH/bin/dep-tool\n\
         ln -s $PKG_PATH/bin/dep-tool $PKG_PATH/lib/deep/link\n",
    );
    tree.package(
        "middle",
        r#"{"requires": ["dep"]}"#,
        "mkdir -p $PKG_PATH/lib/deep; echo m > $PKG_PATH/lib/deep/middle\n",
    );
    tree.package(
        "top",
        r#"{"requires": ["middle"]}"#,
        "source /opt/mesosphere/environment.export\n\
         dep-tool > $PKG_PATH/output\n\
         /opt/mesosphere/lib/deep/link >> $PKG_PATH/output\n\
         cat /opt/mesosphere/lib/deep/middle >> $PKG_PATH/output\n\
         echo $DEP_HOME >> $PKG_PATH/output\n\
         ls /opt/mesosphere/packages | wc -l >> $PKG_PATH/output\n\
         if (echo x > /opt/mesosphere/packages/dep--*/bin/dep-tool) 2>/dev/null; then exit 3; fi\n",
    );
    let ran = tree.build(&["top"]).good();
    let output = read(&ran.unpack(&tree, "top").join("output"));
    assert_eq!(
        output,
        "tool-output\ntool-output\nm\n/opt/mesosphere/active/dep\n3\n"
    );
}

#[test]
fn the_same_recipe_gives_the_same_bytes_in_any_folder() {
    let digests: Vec<Digest> = (0..2)
        .map(|number| {
            let tree = SourceTree::new();
            tree.package(
                "tool",
                "{}",
                // The order of making, times and modes differ; the content does not.
                "mkdir -p $PKG_PATH/{b,a,c}; date > /tmp/now\n\
                 for f in b/2 a/1 c/3; do echo $f > $PKG_PATH/$f; done\n\
                 ln -s ../a/1 $PKG_PATH/b/link; chmod 700 $PKG_PATH/a\n",
            );
            let options = Options {
                cores: number + 1,
                ..Options::default()
            };
            let ran = tree.build_with(&["tool"], &options).good();
            Digest::of(&fs_err::read(ran.archive(&tree, "tool")).unwrap())
        })
        .collect();
    assert_eq!(digests[0], digests[1]);
}

#[test]
fn a_script_that_fails_leaves_its_log_and_no_archive() {
    let tree = SourceTree::new();
    tree.package("tool", "{}", "echo before\nfalse | cat\necho never\n");
    let ran = tree.build(&["tool"]);
    let error = ran.failure("tool");
    let log = tree.cache().log(&ran.package("tool").id);
    assert!(error.contains("exit code 1"), "{error}");
    assert!(error.contains(log.as_str()), "{error}");
    assert!(error.ends_with("before"), "{error}");
    assert!(!fs_err::exists(ran.archive(&tree, "tool")).unwrap());
    for (script, reason) in [
        ("echo $NOT_SET\n", "exit code"),
        (
            "mkdir -p $PKG_PATH/dcos.target.wants_master; touch $PKG_PATH/dcos.target.wants_master/dcos-setup.service\n",
            "unit of the node itself",
        ),
        ("ln -s /etc/passwd $PKG_PATH/link\n", "not in the package"),
        ("mkfifo $PKG_PATH/pipe\n", "not content"),
        (
            "echo {} > $PKG_PATH/pkginfo.json\n",
            "kept for what packing adds",
        ),
    ] {
        let tree = SourceTree::new();
        tree.package("tool", "{}", script);
        let error = tree.build(&["tool"]).failure("tool");
        assert!(error.contains(reason), "{script}: {error}");
    }
}

#[test]
fn a_script_that_takes_too_long_is_ended_with_all_it_started() {
    let tree = SourceTree::new();
    let marker = format!("{}.25", 100_000 + std::process::id());
    tree.package(
        "tool",
        "{}",
        &format!("(setsid sleep {marker} &)\nsleep {marker} &\necho started\nsleep {marker}\n"),
    );
    let options = Options {
        time_limit: Duration::from_millis(700),
        ..Options::default()
    };
    let begun = Instant::now();
    let ran = tree.build_with(&["tool"], &options);
    assert!(ran.failure("tool").contains("was ended after"));
    assert!(begun.elapsed() < Duration::from_mins(2));
    assert_eq!(processes_with(&marker), 0);
    assert!(!read("/proc/self/mounts".into()).contains(tree.folder.as_str()));
}

#[test]
fn what_a_script_leaves_running_ends_with_it() {
    let tree = SourceTree::new();
    let marker = format!("{}.75", 100_000 + std::process::id());
    tree.package(
        "tool",
        "{}",
        &format!("(setsid sleep {marker} > /dev/null 2>&1 &)\ntouch $PKG_PATH/x\n"),
    );
    tree.build(&["tool"]).good();
    assert_eq!(processes_with(&marker), 0);
}

/// How many processes have `marker` in their command line.
fn processes_with(marker: &str) -> usize {
    fs_err::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| fs_err::read(entry.ok()?.path().join("cmdline")).ok())
        .filter(|line| String::from_utf8_lossy(line).contains(marker))
        .count()
}

#[test]
fn a_script_for_windows_does_not_run_here() {
    let tree = SourceTree::new();
    tree.write("tool/buildinfo.json", "{}");
    tree.write("tool/build.ps1", "exit 0\r\n");
    let ran = tree.build(&["tool"]);
    assert!(ran.failure("tool").contains("cannot run on linux"));
    assert!(matches!(ran.outcome("tool"), Outcome::Failed(_)));
}

#[test]
fn rules_add_to_what_a_script_made() {
    let tree = SourceTree::new();
    tree.write("tool/extra/a", "from extra");
    tree.package(
        "tool",
        r#"{"install": [{"copy": "extra/a", "to": "etc/a", "mode": "0755"}]}"#,
        "mkdir $PKG_PATH/etc; echo b > $PKG_PATH/etc/b\n",
    );
    let ran = tree.build(&["tool"]).good();
    let to = ran.unpack(&tree, "tool");
    assert_eq!(read(&to.join("etc/a")), "from extra");
    assert_eq!(read(&to.join("etc/b")), "b\n");
}

/// Stands in for a container runtime that knows one image.
const RUNTIME: &str = r#"#!/bin/bash
set -o errexit
case "$1" in
  image) [ "$5" = known ] && echo sha256:abc123 ;;
  create) echo container ;;
  export)
    root=$(mktemp -d)
    for file in /bin/bash $(ldd /bin/bash | grep -o '/[^ ]*'); do
      mkdir -p "$root$(dirname "$file")"
      cp -L "$file" "$root$file"
    done
    mkdir -p "$root/opt/tool"
    echo from the image > "$root/opt/tool/marker"
    ln -s /etc/passwd "$root/absolute"
    tar -C "$root" -cf "$3" .
    rm -r "$root"
    echo exported >> "$(dirname "$0")/exports" ;;
  rm) ;;
esac
"#;

#[test]
fn an_image_that_a_runtime_has_is_the_machine_of_the_script() {
    use std::os::unix::fs::PermissionsExt as _;
    let tree = SourceTree::new();
    tree.write("runtime/docker", RUNTIME);
    let runtime = tree.folder.join("runtime/docker");
    fs_err::set_permissions(&runtime, std::fs::Permissions::from_mode(0o755)).unwrap();
    let script = "read -r line < /opt/tool/marker; echo $line > $PKG_PATH/marker\n\
                  if [ -e /usr/bin/env ]; then exit 4; fi\n\
                  if echo x > /opt/tool/x; then exit 5; fi\n";
    tree.package("tool", r#"{"docker": "known"}"#, script);
    tree.package("other", r#"{"docker": "known"}"#, &format!("{script}\n"));
    let runtimes = [runtime.as_str()];
    let options = Options {
        runtimes: &runtimes,
        jobs: 1,
        ..Options::default()
    };
    let ran = tree.build_with(&["tool", "other"], &options).good();
    let to = ran.unpack(&tree, "tool");
    assert_eq!(read(&to.join("marker")), "from the image\n");
    // Once for both of them.
    assert_eq!(read(&tree.folder.join("runtime/exports")), "exported\n");
}
