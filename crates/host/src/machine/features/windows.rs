//! Looks at a Windows machine: registry, service manager, system folder. No program is started.
#![expect(unsafe_code, reason = "the system folder is told by a raw Win32 call")]

use camino::Utf8PathBuf;
use windows::Win32::System::SystemInformation::GetSystemDirectoryW;

use super::super::windows::{version, wine_version};
use super::super::{Machine as _, Native, registry};
use super::{Finding, WindowsFacts, WindowsService, judge_windows, probe_ports};
use crate::access::Access as _;
use crate::service::ServiceManager as _;

const SERVICES: &[&str] = &["hns", "vmcompute", "vmms", "containerd", "docker"];
const LIBRARIES: &[&str] = &["vmcompute.dll", "computecore.dll", "computenetwork.dll"];
const POWERSHELL: &str = r"WindowsPowerShell\v1.0\powershell.exe";
const FILE_SYSTEM: &str = r"SYSTEM\CurrentControlSet\Control\FileSystem";
const DEVELOPER: &str = r"SOFTWARE\Microsoft\Windows\CurrentVersion\AppModelUnlock";

/// Looks at this machine and says what it means.
pub fn observe_and_judge() -> Vec<Finding> {
    judge_windows(&observe())
}

/// Looks at this machine.
pub fn observe() -> WindowsFacts {
    let system = system_folder();
    WindowsFacts {
        version: version().ok(),
        installation: Native.system().ok().and_then(|system| system.installation),
        wine: wine_version(),
        elevated: crate::access::Native.is_elevated().ok(),
        long_paths: switch(FILE_SYSTEM, "LongPathsEnabled"),
        developer_mode: switch(DEVELOPER, "AllowDevelopmentWithoutDevLicense"),
        services: services(),
        libraries: LIBRARIES
            .iter()
            .map(|name| {
                let there = system
                    .as_ref()
                    .is_some_and(|system| system.join(name).exists());
                ((*name).to_owned(), there)
            })
            .collect(),
        powershell: system
            .map(|system| system.join(POWERSHELL))
            .filter(|path| path.exists()),
        ports: probe_ports(),
    }
}

/// A number that is 1 for on; a value that is not there is off.
fn switch(key: &str, value: &str) -> Option<bool> {
    registry::number(key, value)
        .ok()
        .map(|number| number == Some(1))
}

fn services() -> Vec<WindowsService> {
    let manager = crate::service::Native::connect().ok();
    SERVICES
        .iter()
        .map(|name| WindowsService {
            name: (*name).to_owned(),
            status: manager
                .as_ref()
                .and_then(|manager| manager.status(name).ok()),
        })
        .collect()
}

fn system_folder() -> Option<Utf8PathBuf> {
    let mut buffer = [0_u16; 512];
    // SAFETY: the buffer is as long as its slice says.
    let length = unsafe { GetSystemDirectoryW(Some(&mut buffer)) } as usize;
    let units = buffer.get(..length).filter(|units| !units.is_empty())?;
    Some(String::from_utf16_lossy(units).into())
}
