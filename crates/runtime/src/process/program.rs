//! From what a container wants to run to what the node can start. Pure, but for a look at which files exist.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use transom_host::files::path::{self, is_absolute};
use transom_host::process::{GroupId, GroupSpec, Input, Lifetime, Limits, Output, Spawn, UserSpec};
use transom_model::os::Os;

use crate::{ContainerSpec, Resources, RuntimeError};

pub(super) const MOUNT_POINT: &str = "CONTAINER_SANDBOX_MOUNT_POINT";
const LINUX_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What a container's program runs in.
#[derive(Debug)]
pub(super) struct Surroundings<'a> {
    pub(super) os: Os,
    /// The container's folder.
    pub(super) root: &'a Utf8Path,
    pub(super) group: GroupId,
    /// The node's.
    pub(super) environment: &'a BTreeMap<String, String>,
    pub(super) is_file: fn(&Utf8Path) -> bool,
}

/// The container's own program.
pub(super) fn main_program(
    spec: &ContainerSpec,
    around: &Surroundings<'_>,
) -> Result<Spawn, RuntimeError> {
    let command: Vec<String> = spec
        .command
        .iter()
        .chain(&spec.arguments)
        .cloned()
        .collect();
    let mut spawn = describe(&command, spec, around)?;
    spawn.stdin = match around.os {
        // Where there are no signals, the end of its input asks a program to end.
        Os::Windows => Input::Pipe,
        Os::Linux if spec.stdin => Input::Pipe,
        Os::Linux => Input::Null,
    };
    Ok(spawn)
}

/// A program beside the container's own, with the same rights and limits.
pub(super) fn program_beside(
    command: &[String],
    stdin: bool,
    spec: &ContainerSpec,
    around: &Surroundings<'_>,
) -> Result<Spawn, RuntimeError> {
    let mut spawn = describe(command, spec, around)?;
    spawn.stdin = if stdin { Input::Pipe } else { Input::Null };
    Ok(spawn)
}

fn describe(
    command: &[String],
    spec: &ContainerSpec,
    around: &Surroundings<'_>,
) -> Result<Spawn, RuntimeError> {
    let Some((program, arguments)) = command.split_first() else {
        let text = "no command: the node itself has no entry point, and its images have none";
        return Err(RuntimeError::Invalid(text.to_owned()));
    };
    let mut environment = around.environment.clone();
    for variable in &spec.environment {
        set(
            around.os,
            &mut environment,
            &variable.name,
            expand(&variable.value, around.root),
        );
    }
    set(
        around.os,
        &mut environment,
        MOUNT_POINT,
        around.root.to_string(),
    );
    let directory = match &spec.working_directory {
        Some(given) if !given.is_empty() => {
            let given = Utf8PathBuf::from(expand(given, around.root));
            if is_absolute(around.os, &given) {
                given
            } else {
                path::join(around.os, around.root, given.as_str())
            }
        }
        _ => around.root.to_owned(),
    };
    let program = expand(program, around.root);
    let search = get(around.os, &environment, "PATH").unwrap_or(LINUX_PATH);
    let found = find(around, &program, &directory, search);
    let mut spawn = Spawn::new(found.ok_or_else(|| RuntimeError::CannotRun {
        program: program.clone(),
        cause: "executable file not found in $PATH".to_owned(),
    })?);
    spawn.args = arguments
        .iter()
        .map(|word| expand(word, around.root))
        .collect();
    spawn.env = environment;
    spawn.directory = Some(directory);
    spawn.stdout = Output::Pipe;
    spawn.stderr = Output::Pipe;
    // Its owner is the keeper: a program without one could not be stopped, and its end would not be known.
    spawn.lifetime = Lifetime::WithOwner;
    spawn.group = around.group.clone();
    spawn.limits = limits(&spec.resources);
    spawn.out_of_memory_score = spec
        .resources
        .oom_score_adjustment
        .map(|score| i16::try_from(score.clamp(-1000, 1000)).unwrap_or_default());
    set_user(spec, around.os, &mut spawn)?;
    Ok(spawn)
}

/// Names of variables differ by case on Linux only.
fn set(os: Os, environment: &mut BTreeMap<String, String>, name: &str, value: String) {
    if os == Os::Windows {
        environment.retain(|known, _| !known.eq_ignore_ascii_case(name));
    }
    environment.insert(name.to_owned(), value);
}

fn get<'a>(os: Os, environment: &'a BTreeMap<String, String>, name: &str) -> Option<&'a str> {
    let is_meant = |known: &str| match os {
        Os::Linux => known == name,
        Os::Windows => known.eq_ignore_ascii_case(name),
    };
    let mut all = environment.iter();
    all.find(|(known, _)| is_meant(known))
        .map(|(_, value)| value.as_str())
}

/// Puts the container's folder in place of its variable, as any shell spells it.
fn expand(text: &str, root: &Utf8Path) -> String {
    if !text.contains(MOUNT_POINT) {
        return text.to_owned();
    }
    let spellings = [
        format!("$env:{MOUNT_POINT}"),
        format!("${{env:{MOUNT_POINT}}}"),
        format!("%{MOUNT_POINT}%"),
        format!("${{{MOUNT_POINT}}}"),
        format!("$({MOUNT_POINT})"),
        format!("${MOUNT_POINT}"),
    ];
    let replace = |text: String, spelling: &String| text.replace(spelling, root.as_str());
    spellings.iter().fold(text.to_owned(), replace)
}

/// A name with a folder is meant as it is; a bare one is looked for in the container's folder, then in `search`.
fn find(
    around: &Surroundings<'_>,
    program: &str,
    directory: &Utf8Path,
    search: &str,
) -> Option<Utf8PathBuf> {
    let rules = around.os.rules();
    let exists = |place: Utf8PathBuf| {
        let suffixed = Utf8PathBuf::from(format!("{place}{}", rules.executable_suffix));
        [place, suffixed]
            .into_iter()
            .find(|place| (around.is_file)(place))
    };
    let given = Utf8Path::new(program);
    if is_absolute(around.os, given) {
        // Whether it can be run is for the system to say, in its own words.
        return Some(exists(given.to_owned()).unwrap_or_else(|| given.to_owned()));
    }
    if program.contains(rules.path_separators_read) {
        return exists(path::join(around.os, directory, program));
    }
    let folders = search
        .split(rules.search_path_separator)
        .map(Utf8Path::new)
        .filter(|folder| is_absolute(around.os, folder));
    std::iter::once(around.root)
        .chain(folders)
        .find_map(|folder| exists(path::join(around.os, folder, program)))
}

fn limits(resources: &Resources) -> Limits {
    Limits {
        memory_bytes: resources.memory_limit_bytes,
        // Rounded up: less than was promised would be worse than a little more.
        cpu_percent: resources
            .cpu_limit_millis
            .map(|millis| u32::try_from(millis.div_ceil(10).max(1)).unwrap_or(u32::MAX)),
        processes: resources
            .pids_limit
            .map(|count| u32::try_from(count).unwrap_or(u32::MAX)),
        ..Limits::default()
    }
}

fn set_user(spec: &ContainerSpec, os: Os, spawn: &mut Spawn) -> Result<(), RuntimeError> {
    let security = &spec.security;
    let number = |number: i64| {
        u32::try_from(number)
            .map_err(|_| RuntimeError::Invalid(format!("{number} is no number of a user or group")))
    };
    if let Some(name) = security.user_name.as_ref().filter(|name| !name.is_empty()) {
        let parsed = name.parse::<UserSpec>();
        spawn.user = Some(parsed.map_err(|error| RuntimeError::Invalid(error.to_string()))?);
    }
    if let Some(user) = security.user {
        if os == Os::Windows {
            let text = "users of Windows have no numbers: give runAsUserName";
            return Err(RuntimeError::NotSupported(text.to_owned()));
        }
        let group = security.group.map(number).transpose()?;
        spawn.user = Some(UserSpec::Id {
            user: number(user)?,
            group,
        });
    } else if let Some(group) = security.group {
        spawn.user_group = Some(GroupSpec::Id(number(group)?));
    }
    for group in &security.supplemental_groups {
        spawn.more_user_groups.push(GroupSpec::Id(number(*group)?));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Security, Variable};

    fn around<'a>(
        os: Os,
        root: &'a str,
        environment: &'a BTreeMap<String, String>,
    ) -> Surroundings<'a> {
        Surroundings {
            os,
            root: Utf8Path::new(root),
            group: GroupId::unique(),
            environment,
            is_file: |path| {
                [
                    "/bin/tool",
                    "/root/own",
                    "/root/./own",
                    r"C:\tools\tool.exe",
                    r"C:\c\own.exe",
                ]
                .contains(&path.as_str())
            },
        }
    }

    fn spec(command: &[&str]) -> ContainerSpec {
        ContainerSpec {
            command: command.iter().map(ToString::to_string).collect(),
            ..ContainerSpec::default()
        }
    }

    #[test]
    fn programs_are_found_in_the_container_then_in_the_path() {
        let linux = [("PATH".to_owned(), "relative:/usr/bin:/bin".to_owned())].into();
        let find = |command: &str| {
            main_program(&spec(&[command]), &around(Os::Linux, "/root", &linux))
                .map(|spawn| spawn.program)
        };
        assert_eq!(find("tool").unwrap(), "/bin/tool");
        assert_eq!(find("own").unwrap(), "/root/own");
        assert_eq!(find("./own").unwrap(), "/root/./own");
        assert_eq!(find("/no/such").unwrap(), "/no/such");
        assert!(matches!(find("none"), Err(RuntimeError::CannotRun { .. })));
        assert!(main_program(&spec(&[]), &around(Os::Linux, "/root", &linux)).is_err());
        let windows = [("Path".to_owned(), r"C:\tools;C:\Windows".to_owned())].into();
        let find = |command: &str| {
            main_program(&spec(&[command]), &around(Os::Windows, r"C:\c", &windows))
                .map(|spawn| spawn.program)
        };
        assert_eq!(find("tool").unwrap(), r"C:\tools\tool.exe");
        assert_eq!(find("own").unwrap(), r"C:\c\own.exe");
        assert_eq!(
            find(r"%CONTAINER_SANDBOX_MOUNT_POINT%\own").unwrap(),
            r"C:\c\own.exe"
        );
    }

    #[test]
    fn the_mount_point_stands_for_the_folder_in_the_spelling_of_any_shell() {
        let empty = BTreeMap::new();
        let mut spec = spec(&["/bin/tool"]);
        spec.arguments = [
            "$CONTAINER_SANDBOX_MOUNT_POINT/a",
            "--x=$env:CONTAINER_SANDBOX_MOUNT_POINT/b",
            "%CONTAINER_SANDBOX_MOUNT_POINT%",
            "${CONTAINER_SANDBOX_MOUNT_POINT}",
            "other",
        ]
        .map(str::to_owned)
        .to_vec();
        spec.environment.push(Variable {
            name: "CONFIG".to_owned(),
            value: "$CONTAINER_SANDBOX_MOUNT_POINT/c".to_owned(),
        });
        spec.working_directory = Some("$CONTAINER_SANDBOX_MOUNT_POINT/work".to_owned());
        let spawn = main_program(&spec, &around(Os::Linux, "/root", &empty)).unwrap();
        assert_eq!(
            spawn.args,
            ["/root/a", "--x=/root/b", "/root", "/root", "other"]
        );
        assert_eq!(spawn.env["CONFIG"], "/root/c");
        assert_eq!(spawn.env[MOUNT_POINT], "/root");
        assert_eq!(spawn.directory.unwrap(), "/root/work");
    }

    #[test]
    fn users_are_numbers_on_linux_and_names_on_windows() {
        let empty = BTreeMap::new();
        let mut spec = spec(&["/bin/tool"]);
        spec.security = Security {
            user: Some(1000),
            group: Some(1001),
            supplemental_groups: vec![5],
            ..Security::default()
        };
        let spawn = main_program(&spec, &around(Os::Linux, "/root", &empty)).unwrap();
        assert_eq!(spawn.user.unwrap().to_string(), "1000:1001");
        assert_eq!(spawn.more_user_groups, [GroupSpec::Id(5)]);
        spec.command = vec![r"C:\tools\tool.exe".to_owned()];
        let refused = main_program(&spec, &around(Os::Windows, r"C:\c", &empty));
        assert!(matches!(refused, Err(RuntimeError::NotSupported(_))));
        spec.security = Security {
            user_name: Some(r"NT AUTHORITY\SYSTEM".to_owned()),
            ..Security::default()
        };
        let spawn = main_program(&spec, &around(Os::Windows, r"C:\c", &empty)).unwrap();
        assert_eq!(spawn.user.unwrap().to_string(), r"NT AUTHORITY\SYSTEM");
        spec.security.user = Some(-1);
        assert!(main_program(&spec, &around(Os::Linux, "/root", &empty)).is_err());
    }

    #[test]
    fn limits_are_never_rounded_down() {
        let limits = limits(&Resources {
            cpu_limit_millis: Some(1501),
            memory_limit_bytes: Some(7),
            pids_limit: Some(u64::MAX),
            ..Resources::default()
        });
        assert_eq!(
            (limits.cpu_percent, limits.memory_bytes),
            (Some(151), Some(7))
        );
        assert_eq!(limits.processes, Some(u32::MAX));
    }
}
