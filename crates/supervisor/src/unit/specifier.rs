//! Specifiers: `%n`, `%i`, `%H` and so on. What they stand for comes from the caller, so the same
//! file can be read for another machine.

use camino::{Utf8Path, Utf8PathBuf};
use transom_model::os::Os;

use super::name::{UnitName, unescape};

/// What a machine puts in for specifiers. Facts that are not known stay `None`: using them is a
/// reported error, never an empty text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecifierContext {
    pub os: Os,
    /// `%t`
    pub runtime_directory: Utf8PathBuf,
    /// `%S`
    pub state_directory: Utf8PathBuf,
    /// `%C`
    pub cache_directory: Utf8PathBuf,
    /// `%L`
    pub logs_directory: Utf8PathBuf,
    /// `%E`
    pub configuration_directory: Utf8PathBuf,
    /// `%T`
    pub temporary_directory: Utf8PathBuf,
    /// `%V`
    pub persistent_temporary_directory: Utf8PathBuf,
    /// `%H`
    pub host_name: Option<String>,
    /// `%m`
    pub machine_id: Option<String>,
    /// `%b`
    pub boot_id: Option<String>,
    /// `%v`
    pub kernel_release: Option<String>,
    /// `%a`, as systemd spells it: `x86-64`, `arm64`
    pub architecture: Option<String>,
    /// `%u`: the user of the supervisor
    pub user_name: Option<String>,
    /// `%U`
    pub user_id: Option<String>,
    /// `%g`
    pub group_name: Option<String>,
    /// `%G`
    pub group_id: Option<String>,
    /// `%h`
    pub home: Option<Utf8PathBuf>,
    /// `%s`
    pub shell: Option<Utf8PathBuf>,
    /// `%o`, `ID=` of os-release
    pub os_id: Option<String>,
    /// `%w`, `VERSION_ID=`
    pub os_version: Option<String>,
    /// `%B`, `BUILD_ID=`
    pub os_build: Option<String>,
    /// `%W`, `VARIANT_ID=`
    pub os_variant: Option<String>,
}

impl SpecifierContext {
    /// The places systemd documents for `os`, with no facts about the machine.
    pub fn places(os: Os) -> Self {
        let [
            runtime,
            state,
            cache,
            logs,
            configuration,
            temporary,
            persistent,
        ] = match os {
            Os::Linux => [
                "/run",
                "/var/lib",
                "/var/cache",
                "/var/log",
                "/etc",
                "/tmp",
                "/var/tmp",
            ],
            Os::Windows => [
                r"C:\Transom\run",
                r"C:\Transom\var\lib",
                r"C:\Transom\var\cache",
                r"C:\Transom\var\log",
                r"C:\Transom\etc",
                r"C:\Transom\tmp",
                r"C:\Transom\var\tmp",
            ],
        }
        .map(Utf8PathBuf::from);
        Self {
            os,
            runtime_directory: runtime,
            state_directory: state,
            cache_directory: cache,
            logs_directory: logs,
            configuration_directory: configuration,
            temporary_directory: temporary,
            persistent_temporary_directory: persistent,
            host_name: None,
            machine_id: None,
            boot_id: None,
            kernel_release: None,
            architecture: None,
            user_name: None,
            user_id: None,
            group_name: None,
            group_id: None,
            home: None,
            shell: None,
            os_id: None,
            os_version: None,
            os_build: None,
            os_variant: None,
        }
    }
}

/// Why a specifier has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpecifierError {
    #[error("`%{specifier}` is not a specifier; a percent sign is written `%%`")]
    Unknown { specifier: char },
    #[error("`%{specifier}` ({meaning}) is not known here")]
    NotAvailable {
        specifier: char,
        meaning: &'static str,
    },
    #[error("a percent sign at the end is written `%%`")]
    Trailing,
    #[error("the name cannot be unescaped for `%{specifier}`")]
    Unescape { specifier: char },
}

/// Replaces every specifier in `text` for the unit `name`, read from `fragment`.
pub fn expand(
    text: &str,
    name: &UnitName,
    fragment: Option<&Utf8Path>,
    context: &SpecifierContext,
) -> Result<String, SpecifierError> {
    let mut expanded = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '%' {
            expanded.push(character);
            continue;
        }
        let specifier = characters.next().ok_or(SpecifierError::Trailing)?;
        expanded.push_str(&value(specifier, name, fragment, context)?);
    }
    Ok(expanded)
}

fn value(
    specifier: char,
    name: &UnitName,
    fragment: Option<&Utf8Path>,
    context: &SpecifierContext,
) -> Result<String, SpecifierError> {
    let unescaped = |text: &str| unescape(text).ok_or(SpecifierError::Unescape { specifier });
    let instance = name.instance().unwrap_or_default();
    let last_part = name.prefix().rsplit('-').next().unwrap_or_default();
    let known = |fact: Option<&str>, meaning: &'static str| {
        fact.map(str::to_owned)
            .ok_or(SpecifierError::NotAvailable { specifier, meaning })
    };
    match specifier {
        '%' => Ok("%".to_owned()),
        'n' => Ok(name.as_str().to_owned()),
        'N' => Ok(name.stem().to_owned()),
        'p' => Ok(name.prefix().to_owned()),
        'P' => unescaped(name.prefix()),
        'i' => Ok(instance.to_owned()),
        'I' => unescaped(instance),
        'j' => Ok(last_part.to_owned()),
        'J' => unescaped(last_part),
        'f' => {
            let source = if instance.is_empty() {
                name.prefix()
            } else {
                instance
            };
            Ok(format!("/{}", unescaped(source)?.trim_start_matches('/')))
        }
        't' => Ok(context.runtime_directory.to_string()),
        'S' => Ok(context.state_directory.to_string()),
        'C' => Ok(context.cache_directory.to_string()),
        'L' => Ok(context.logs_directory.to_string()),
        'E' => Ok(context.configuration_directory.to_string()),
        'T' => Ok(context.temporary_directory.to_string()),
        'V' => Ok(context.persistent_temporary_directory.to_string()),
        'y' => known(fragment.map(Utf8Path::as_str), "the unit file's path"),
        'Y' => known(
            fragment.and_then(|path| parent(path, context.os)),
            "the unit file's folder",
        ),
        'H' | 'q' => known(context.host_name.as_deref(), "the host name"),
        'l' => known(
            context
                .host_name
                .as_deref()
                .and_then(|host| host.split('.').next()),
            "the host name",
        ),
        'm' => known(context.machine_id.as_deref(), "the machine id"),
        'b' => known(context.boot_id.as_deref(), "the boot id"),
        'v' => known(context.kernel_release.as_deref(), "the kernel release"),
        'a' => known(context.architecture.as_deref(), "the architecture"),
        'u' => known(context.user_name.as_deref(), "the user"),
        'U' => known(context.user_id.as_deref(), "the user id"),
        'g' => known(context.group_name.as_deref(), "the group"),
        'G' => known(context.group_id.as_deref(), "the group id"),
        'h' => known(
            context.home.as_deref().map(Utf8Path::as_str),
            "the home folder",
        ),
        's' => known(context.shell.as_deref().map(Utf8Path::as_str), "the shell"),
        'o' => known(context.os_id.as_deref(), "the system's id"),
        'w' => known(context.os_version.as_deref(), "the system's version"),
        'B' => known(context.os_build.as_deref(), "the system's build"),
        'W' => known(context.os_variant.as_deref(), "the system's variant"),
        other => Err(SpecifierError::Unknown { specifier: other }),
    }
}

/// The folder of a path of `os`, which need not be the system we run on.
fn parent(path: &Utf8Path, os: Os) -> Option<&str> {
    let separators: &[char] = match os {
        Os::Linux => &['/'],
        Os::Windows => &['/', '\\'],
    };
    path.as_str()
        .rsplit_once(separators)
        .map(|(folder, _)| folder)
}
