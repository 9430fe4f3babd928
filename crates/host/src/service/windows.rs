//! Services of the Windows service control manager. Our mark is the start of the display name: it is
//! the one part of a registration that is set in the same step as the service is created.
#![expect(unsafe_code, reason = "listing services is a raw Win32 call")]

use std::ffi::{OsStr, OsString};
use std::io;
use std::time::{Duration, Instant};

use windows::Win32::Foundation::ERROR_MORE_DATA;
use windows::Win32::System::Services::{
    CloseServiceHandle, ENUM_SERVICE_STATUS_PROCESSW, EnumServicesStatusExW, OpenSCManagerW,
    SC_ENUM_PROCESS_INFO, SC_HANDLE, SC_MANAGER_ENUMERATE_SERVICE, SERVICE_STATE_ALL,
    SERVICE_WIN32,
};
use windows::core::PCWSTR;
use windows_service::service::{
    Service, ServiceAccess, ServiceAction, ServiceActionType, ServiceDependency,
    ServiceErrorControl, ServiceExitCode, ServiceFailureActions, ServiceFailureResetPeriod,
    ServiceInfo, ServiceStartType, ServiceState, ServiceType,
};
use windows_service::service_manager::{ServiceManager as Manager, ServiceManagerAccess};

use super::{Registration, ServiceError, ServiceManager, ServiceStatus, Start};

/// What the display name of every service of ours starts with.
const MARK: &str = "Transom: ";
/// How long an uninstallation waits for the service to stop, and for its name to be free again.
const UNINSTALL: Duration = Duration::from_mins(2);
/// How long a service may take to stop when the machine shuts down.
const PRESHUTDOWN: Duration = Duration::from_mins(1);
const POLL: Duration = Duration::from_millis(25);

const INVALID_LEVEL: i32 = 124;
const ALREADY_RUNNING: i32 = 1056;
const DOES_NOT_EXIST: i32 = 1060;
const NOT_ACTIVE: i32 = 1062;
const MARKED_FOR_DELETE: i32 = 1072;

/// The service control manager of this machine.
#[derive(Debug, Clone, Copy)]
pub struct ServiceControlManager(());

impl ServiceControlManager {
    pub fn connect() -> Result<Self, ServiceError> {
        manager(ServiceManagerAccess::CONNECT)?;
        Ok(Self(()))
    }
}

impl ServiceManager for ServiceControlManager {
    fn install(&self, registration: &Registration) -> Result<(), ServiceError> {
        registration.check()?;
        let name = &registration.name;
        let broken = |error| failed("install", name, error);
        // Restarting after a failure needs the right to start.
        let access = ServiceAccess::CHANGE_CONFIG | ServiceAccess::START;
        let info = info_of(registration);
        let service = match open_ours("install", name, access) {
            Ok(service) => {
                service.change_config(&info).map_err(broken)?;
                service
            }
            Err(ServiceError::NotInstalled { .. }) => {
                let create = ServiceManagerAccess::CONNECT | ServiceManagerAccess::CREATE_SERVICE;
                manager(create)?
                    .create_service(&info, access)
                    .map_err(broken)?
            }
            Err(error) => return Err(error),
        };
        let optional = |setting, result| optional(name, setting, result);
        service
            .set_description(&registration.description)
            .map_err(broken)?;
        if registration.start != Start::Manual {
            let delayed = registration.start == Start::DelayedAuto;
            optional("delayed start", service.set_delayed_auto_start(delayed))?;
        }
        let actions = failure_actions(registration);
        optional("failure actions", service.update_failure_actions(actions))?;
        // A service that ends with an error code has failed too, not only one that crashes.
        optional(
            "failure actions without a crash",
            service.set_failure_actions_on_non_crash_failures(true),
        )?;
        optional(
            "time before a shutdown",
            service.set_preshutdown_timeout(PRESHUTDOWN),
        )
    }

    fn start(&self, name: &str, timeout: Duration) -> Result<(), ServiceError> {
        let access = ServiceAccess::START | ServiceAccess::QUERY_STATUS;
        let service = open_ours("start", name, access)?;
        match service.start::<&OsStr>(&[]).map_err(into_io) {
            Err(error) if error.raw_os_error() != Some(ALREADY_RUNNING) => {
                return Err(ServiceError::failed("start", name)(error));
            }
            _ => {}
        }
        wait_for("start", name, &service, timeout, |state| match state {
            ServiceState::Running => Wait::Done,
            ServiceState::Stopped => Wait::Never,
            _ => Wait::Longer,
        })
    }

    fn stop(&self, name: &str, timeout: Duration) -> Result<(), ServiceError> {
        let access = ServiceAccess::STOP | ServiceAccess::QUERY_STATUS;
        let service = open_ours("stop", name, access)?;
        match service.stop().map_err(into_io) {
            Err(error) if error.raw_os_error() == Some(NOT_ACTIVE) => return Ok(()),
            // A service that is stopping refuses a second request, and stops nevertheless.
            Err(error) => {
                let state = query(&service, "stop", name)?.current_state;
                if !matches!(state, ServiceState::Stopped | ServiceState::StopPending) {
                    return Err(ServiceError::failed("stop", name)(error));
                }
            }
            Ok(_) => {}
        }
        wait_for("stop", name, &service, timeout, |state| {
            if state == ServiceState::Stopped {
                Wait::Done
            } else {
                Wait::Longer
            }
        })
    }

    fn status(&self, name: &str) -> Result<ServiceStatus, ServiceError> {
        let Some(service) = open("query", name, ServiceAccess::QUERY_STATUS)? else {
            return Ok(ServiceStatus::NotInstalled);
        };
        let status = query(&service, "query", name)?;
        Ok(match status.current_state {
            ServiceState::Stopped => ServiceStatus::Stopped {
                exit_code: Some(match status.exit_code {
                    ServiceExitCode::Win32(code) | ServiceExitCode::ServiceSpecific(code) => code,
                }),
            },
            ServiceState::StartPending => ServiceStatus::Starting,
            ServiceState::StopPending => ServiceStatus::Stopping,
            ServiceState::Running
            | ServiceState::ContinuePending
            | ServiceState::PausePending
            | ServiceState::Paused => ServiceStatus::Running {
                process: status.process_id,
            },
        })
    }

    fn uninstall(&self, name: &str) -> Result<(), ServiceError> {
        let service = match open_ours("uninstall", name, ServiceAccess::DELETE) {
            Err(ServiceError::NotInstalled { .. }) => return Ok(()),
            other => other?,
        };
        self.stop(name, UNINSTALL)?;
        match service.delete().map_err(into_io) {
            Err(error) if error.raw_os_error() != Some(MARKED_FOR_DELETE) => {
                return Err(ServiceError::failed("uninstall", name)(error));
            }
            _ => {}
        }
        // The name is free only when the last handle, ours among them, is closed.
        drop(service);
        let end = Instant::now() + UNINSTALL;
        while self.status(name)? != ServiceStatus::NotInstalled {
            if Instant::now() >= end {
                return Err(ServiceError::timeout("disappear", name, UNINSTALL));
            }
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    fn list_ours(&self) -> Result<Vec<String>, ServiceError> {
        let mut names: Vec<String> = all_services()
            .map_err(ServiceError::failed("list", "*"))?
            .into_iter()
            .filter(|(_, display)| display.starts_with(MARK))
            .map(|(name, _)| name)
            .collect();
        names.sort();
        Ok(names)
    }
}

/// The service of a name, ours or not; None if there is none.
fn open(
    what: &'static str,
    name: &str,
    access: ServiceAccess,
) -> Result<Option<Service>, ServiceError> {
    match manager(ServiceManagerAccess::CONNECT)?.open_service(name, access) {
        Ok(service) => Ok(Some(service)),
        Err(error) => match into_io(error) {
            error if error.raw_os_error() == Some(DOES_NOT_EXIST) => Ok(None),
            error => Err(ServiceError::failed(what, name)(error)),
        },
    }
}

/// The service of a name if it carries our mark.
fn open_ours(
    what: &'static str,
    name: &str,
    access: ServiceAccess,
) -> Result<Service, ServiceError> {
    let service = open(what, name, access | ServiceAccess::QUERY_CONFIG)?.ok_or_else(|| {
        ServiceError::NotInstalled {
            name: name.to_owned(),
        }
    })?;
    let config = service
        .query_config()
        .map_err(|error| failed(what, name, error))?;
    if is_marked(&config.display_name) {
        Ok(service)
    } else {
        Err(ServiceError::Foreign {
            name: name.to_owned(),
        })
    }
}

/// A setting that not every service manager knows (Wine's lacks some): the service works without.
fn optional(
    name: &str,
    setting: &'static str,
    result: windows_service::Result<()>,
) -> Result<(), ServiceError> {
    match result.map_err(into_io) {
        Err(error) if error.raw_os_error() == Some(INVALID_LEVEL) => {
            tracing::warn!(
                service = name,
                setting,
                "this service manager does not know a setting"
            );
            Ok(())
        }
        other => other.map_err(ServiceError::failed("install", name)),
    }
}

/// A connection for one call: its handle must not be shared between threads.
fn manager(access: ServiceManagerAccess) -> Result<Manager, ServiceError> {
    Manager::local_computer(None::<&str>, access).map_err(|error| ServiceError::Connect {
        source: into_io(error),
    })
}

enum Wait {
    Done,
    Longer,
    Never,
}

fn wait_for(
    what: &'static str,
    name: &str,
    service: &Service,
    timeout: Duration,
    judge: impl Fn(ServiceState) -> Wait,
) -> Result<(), ServiceError> {
    let end = Instant::now() + timeout;
    loop {
        let status = query(service, what, name)?;
        match judge(status.current_state) {
            Wait::Done => return Ok(()),
            Wait::Never => {
                return Err(ServiceError::Refused {
                    what,
                    name: name.to_owned(),
                    message: format!("it ended with {:?}", status.exit_code),
                });
            }
            Wait::Longer if Instant::now() >= end => {
                return Err(ServiceError::timeout(what, name, timeout));
            }
            Wait::Longer => std::thread::sleep(POLL),
        }
    }
}

fn query(
    service: &Service,
    what: &'static str,
    name: &str,
) -> Result<windows_service::service::ServiceStatus, ServiceError> {
    service
        .query_status()
        .map_err(|error| failed(what, name, error))
}

fn info_of(registration: &Registration) -> ServiceInfo {
    ServiceInfo {
        name: OsString::from(&registration.name),
        display_name: OsString::from(format!("{MARK}{}", registration.display)),
        service_type: ServiceType::OWN_PROCESS,
        start_type: match registration.start {
            Start::Auto | Start::DelayedAuto => ServiceStartType::AutoStart,
            Start::Manual => ServiceStartType::OnDemand,
        },
        error_control: ServiceErrorControl::Normal,
        executable_path: registration.program.as_std_path().to_owned(),
        launch_arguments: registration.arguments.iter().map(OsString::from).collect(),
        dependencies: registration
            .dependencies
            .iter()
            .map(|name| ServiceDependency::Service(OsString::from(name)))
            .collect(),
        // Named also when it is the default: a change of the registration may take it back.
        account_name: Some(OsString::from(
            registration.user.as_deref().unwrap_or("LocalSystem"),
        )),
        account_password: None,
    }
}

fn failure_actions(registration: &Registration) -> ServiceFailureActions {
    let failure = &registration.failure;
    ServiceFailureActions {
        reset_period: ServiceFailureResetPeriod::After(failure.reset_after),
        reboot_msg: None,
        command: None,
        actions: Some(
            failure
                .restart_delays
                .iter()
                .map(|delay| ServiceAction {
                    action_type: ServiceActionType::Restart,
                    delay: *delay,
                })
                .collect(),
        ),
    }
}

fn is_marked(display_name: &OsStr) -> bool {
    display_name.to_string_lossy().starts_with(MARK)
}

fn failed(what: &'static str, name: &str, error: windows_service::Error) -> ServiceError {
    ServiceError::failed(what, name)(into_io(error))
}

fn into_io(error: windows_service::Error) -> io::Error {
    match error {
        windows_service::Error::Winapi(error) => error,
        other => io::Error::other(other),
    }
}

/// A handle of the manager that closes itself.
struct ManagerHandle(SC_HANDLE);

impl Drop for ManagerHandle {
    fn drop(&mut self) {
        // SAFETY: the handle is open and ours. Closing loses nothing, so its result says nothing.
        let _ = unsafe { CloseServiceHandle(self.0) };
    }
}

/// Name and display name of every service.
fn all_services() -> io::Result<Vec<(String, String)>> {
    // SAFETY: null names mean this machine and its active database.
    let manager =
        unsafe { OpenSCManagerW(PCWSTR::null(), PCWSTR::null(), SC_MANAGER_ENUMERATE_SERVICE) }?;
    let manager = ManagerHandle(manager);
    let (mut services, mut resume) = (Vec::new(), 0_u32);
    loop {
        // The most that one call can return; 8-byte items, so that the entries are aligned.
        let mut buffer = vec![0_u64; 32 * 1024];
        let (mut needed, mut count) = (0_u32, 0_u32);
        // SAFETY: plain numbers may be seen as bytes; the slice covers exactly the buffer.
        let bytes = unsafe {
            std::slice::from_raw_parts_mut(buffer.as_mut_ptr().cast::<u8>(), buffer.len() * 8)
        };
        // SAFETY: the buffer is as long as its slice says.
        let answer = unsafe {
            EnumServicesStatusExW(
                manager.0,
                SC_ENUM_PROCESS_INFO,
                SERVICE_WIN32,
                SERVICE_STATE_ALL,
                Some(bytes),
                &raw mut needed,
                &raw mut count,
                Some(&raw mut resume),
                PCWSTR::null(),
            )
        };
        let more = match answer {
            Ok(()) => false,
            Err(error) if error.code() == ERROR_MORE_DATA.to_hresult() && count > 0 => true,
            Err(error) => return Err(error.into()),
        };
        // SAFETY: the call wrote `count` entries at the start of the buffer.
        let entries = unsafe {
            std::slice::from_raw_parts(
                buffer.as_ptr().cast::<ENUM_SERVICE_STATUS_PROCESSW>(),
                count as usize,
            )
        };
        for entry in entries {
            // SAFETY: both strings are inside the buffer and end with a zero.
            let (name, display) = unsafe {
                (
                    entry.lpServiceName.to_string(),
                    entry.lpDisplayName.to_string(),
                )
            };
            services.push((name.unwrap_or_default(), display.unwrap_or_default()));
        }
        if !more {
            return Ok(services);
        }
    }
}
