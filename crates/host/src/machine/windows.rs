//! Facts of a Windows machine, through calls that also work under Wine. No program is started and no
//! management service (WMI) is asked, since either can hang for minutes.
#![expect(unsafe_code, reason = "facts are read through raw Win32 calls")]

use std::io;
use std::time::{Duration, SystemTime};

use transom_model::windows::{Product, WindowsVersion, release};
use transom_model::{Arch, Os};
use windows::Wdk::System::SystemInformation::{NtQuerySystemInformation, SYSTEM_INFORMATION_CLASS};
use windows::Wdk::System::SystemServices::RtlGetVersion;
use windows::Win32::Storage::FileSystem::{
    GetDiskFreeSpaceExW, GetDriveTypeW, GetLogicalDrives, GetVolumeInformationW,
};
use windows::Win32::System::LibraryLoader::{GetModuleHandleW, GetProcAddress};
use windows::Win32::System::SystemInformation::{
    ComputerNamePhysicalDnsHostname, GetComputerNameExW, GetNativeSystemInfo, GetTickCount64,
    GlobalMemoryStatusEx, MEMORYSTATUSEX, OSVERSIONINFOW, PROCESSOR_ARCHITECTURE_AMD64,
    PROCESSOR_ARCHITECTURE_ARM64, SYSTEM_INFO,
};
use windows::Win32::System::Threading::{
    ALL_PROCESSOR_GROUPS, GetActiveProcessorCount, GetCurrentProcess, GetProcessAffinityMask,
};
use windows::Win32::System::Time::{DYNAMIC_TIME_ZONE_INFORMATION, GetDynamicTimeZoneInformation};
use windows::core::{HSTRING, PWSTR, s, w};

use super::{
    Counters, Disk, Interface, Load, Machine, MachineError, Memory, Processors, RouteEntry,
    Surroundings, System, counters, facts, network, registry,
};

const CURRENT_VERSION: &str = r"SOFTWARE\Microsoft\Windows NT\CurrentVersion";
const FIRMWARE: &str = r"HARDWARE\DESCRIPTION\System\BIOS";
const CONTROL: &str = r"SYSTEM\CurrentControlSet\Control";
const PREFETCH: &str =
    r"SYSTEM\CurrentControlSet\Control\Session Manager\Memory Management\PrefetchParameters";

/// This machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct WindowsMachine;

impl Machine for WindowsMachine {
    fn os(&self) -> Os {
        Os::Windows
    }

    fn system(&self) -> Result<System, MachineError> {
        let text = |value| {
            registry::text(CURRENT_VERSION, value)
                .map_err(MachineError::read("the Windows edition"))
        };
        let version = version()?;
        let installation = text("InstallationType")?;
        let product = match installation.as_deref() {
            Some("Client") | None => Product::Client,
            Some(_) => Product::Server,
        };
        Ok(System {
            os: Os::Windows,
            pretty_name: match release(version.build, product) {
                Some(release) => release.name.to_owned(),
                None => text("ProductName")?.unwrap_or_else(|| format!("Windows {version}")),
            },
            kernel: version.to_string(),
            arch: arch(),
            host_name: host_name()?,
            windows_version: Some(version),
            edition: text("EditionID")?,
            installation,
        })
    }

    fn memory(&self) -> Result<Memory, MachineError> {
        let mut status = MEMORYSTATUSEX {
            dwLength: size_in_u32::<MEMORYSTATUSEX>(),
            ..MEMORYSTATUSEX::default()
        };
        // SAFETY: the structure names its own size.
        unsafe { GlobalMemoryStatusEx(&raw mut status) }
            .map_err(|error| MachineError::read("the memory")(error.into()))?;
        // The commit limit is memory and page file together.
        let swap_total = status.ullTotalPageFile.saturating_sub(status.ullTotalPhys);
        Ok(Memory {
            total: status.ullTotalPhys,
            available: status.ullAvailPhys,
            swap_total,
            swap_free: status
                .ullAvailPageFile
                .saturating_sub(status.ullAvailPhys)
                .min(swap_total),
        })
    }

    fn processors(&self) -> Result<Processors, MachineError> {
        // SAFETY: takes a number and returns one.
        let logical = unsafe { GetActiveProcessorCount(ALL_PROCESSOR_GROUPS) } as usize;
        let (mut process, mut system) = (0, 0);
        // SAFETY: the pseudo handle of this process is always valid.
        unsafe { GetProcessAffinityMask(GetCurrentProcess(), &raw mut process, &raw mut system) }
            .map_err(|error| MachineError::read("the processors")(error.into()))?;
        // A process in several processor groups has no mask, and may use all processors.
        let allowed = match process.count_ones() as usize {
            0 => logical,
            some => some,
        };
        Ok(Processors { logical, allowed })
    }

    fn load(&self) -> Result<Option<Load>, MachineError> {
        Ok(None)
    }

    fn counters(&self) -> Counters {
        counters::read()
    }

    fn disks(&self) -> Result<Vec<Disk>, MachineError> {
        // SAFETY: takes nothing and returns a mask.
        let mask = unsafe { GetLogicalDrives() };
        Ok(('A'..='Z')
            .enumerate()
            .filter(|(bit, _)| mask & (1 << bit) != 0)
            .filter_map(|(_, letter)| disk(letter))
            .collect())
    }

    fn interfaces(&self) -> Result<Vec<Interface>, MachineError> {
        network::interfaces()
    }

    fn routes(&self) -> Result<Vec<RouteEntry>, MachineError> {
        network::routes()
    }

    /// The kernel's own count of boots where it keeps one, and the moment of the boot as it was
    /// noted then: later corrections of the clock do not change it.
    fn boot_id(&self) -> Result<String, MachineError> {
        let count = registry::number(PREFETCH, "BootId")
            .map_err(MachineError::read("the count of boots"))?
            .unwrap_or(0);
        let boot = boot_time().map_err(MachineError::read("the time of the boot"))?;
        Ok(format!("{count:08x}-{boot:016x}"))
    }

    fn uptime(&self) -> Result<Duration, MachineError> {
        // SAFETY: takes nothing and returns a number.
        Ok(Duration::from_millis(unsafe { GetTickCount64() }))
    }

    fn now(&self) -> SystemTime {
        SystemTime::now()
    }

    fn time_zone(&self) -> Result<Option<String>, MachineError> {
        let mut zone = DYNAMIC_TIME_ZONE_INFORMATION::default();
        // SAFETY: the structure is ours to fill.
        let answer = unsafe { GetDynamicTimeZoneInformation(&raw mut zone) };
        if answer == u32::MAX {
            return Err(MachineError::read("the time zone")(
                io::Error::last_os_error(),
            ));
        }
        Ok([&zone.TimeZoneKeyName[..], &zone.StandardName[..]]
            .into_iter()
            .map(until_zero)
            .find(|name| !name.is_empty()))
    }

    fn surroundings(&self) -> Result<Surroundings, MachineError> {
        let firmware = |value| {
            registry::text(FIRMWARE, value).map_err(MachineError::read("the machine's maker"))
        };
        let maker = firmware("SystemManufacturer")?.unwrap_or_default();
        let model = firmware("SystemProductName")?.unwrap_or_default();
        let container = registry::number(CONTROL, "ContainerType")
            .map_err(MachineError::read("the kind of container"))?;
        Ok(Surroundings {
            hypervisor: facts::hypervisor_of(&format!("{maker} {model}")),
            container: container.map(|kind| match kind {
                1 => "windows, process isolation".to_owned(),
                2 => "windows, hyperv isolation".to_owned(),
                other => format!("windows, type {other}"),
            }),
            wine: wine_version(),
        })
    }
}

/// The true version: other calls answer what an old program expects to hear.
pub(super) fn version() -> Result<WindowsVersion, MachineError> {
    let mut numbers = OSVERSIONINFOW {
        dwOSVersionInfoSize: size_in_u32::<OSVERSIONINFOW>(),
        ..OSVERSIONINFOW::default()
    };
    // SAFETY: the structure names its own size.
    let status = unsafe { RtlGetVersion(&raw mut numbers) };
    status
        .ok()
        .map_err(|error| MachineError::read("the Windows version")(error.into()))?;
    let revision = registry::number(CURRENT_VERSION, "UBR")
        .map_err(MachineError::read("the revision of Windows"))?;
    Ok(WindowsVersion::new(
        numbers.dwMajorVersion,
        numbers.dwMinorVersion,
        numbers.dwBuildNumber,
        revision,
    ))
}

/// The version of Wine, if its mark is in the system library.
pub(super) fn wine_version() -> Option<String> {
    type WineVersion = unsafe extern "C" fn() -> *const std::ffi::c_char;
    // SAFETY: the system library is loaded in every process.
    let library = unsafe { GetModuleHandleW(w!("ntdll.dll")) }.ok()?;
    // SAFETY: the handle is valid, the name ends with a zero.
    let function = unsafe { GetProcAddress(library, s!("wine_get_version")) }?;
    // SAFETY: only Wine has the function, and gives it this signature.
    let function = unsafe {
        std::mem::transmute::<unsafe extern "system" fn() -> isize, WineVersion>(function)
    };
    // SAFETY: returns a constant string that ends with a zero.
    let version = unsafe { std::ffi::CStr::from_ptr(function()) };
    Some(version.to_string_lossy().into_owned())
}

fn arch() -> Option<Arch> {
    let mut info = SYSTEM_INFO::default();
    // SAFETY: the structure is ours to fill.
    unsafe { GetNativeSystemInfo(&raw mut info) };
    // SAFETY: the call fills this member of the union.
    match unsafe { info.Anonymous.Anonymous.wProcessorArchitecture } {
        PROCESSOR_ARCHITECTURE_AMD64 => Some(Arch::Amd64),
        PROCESSOR_ARCHITECTURE_ARM64 => Some(Arch::Arm64),
        _ => None,
    }
}

fn host_name() -> Result<String, MachineError> {
    let mut buffer = [0_u16; 256];
    let mut length = 256;
    // SAFETY: the buffer has the length that is named.
    unsafe {
        GetComputerNameExW(
            ComputerNamePhysicalDnsHostname,
            Some(PWSTR(buffer.as_mut_ptr())),
            &raw mut length,
        )
    }
    .map_err(|error| MachineError::read("the host name")(error.into()))?;
    Ok(until_zero(&buffer))
}

/// The moment of the boot in 100 ns since 1601, without later corrections of the clock.
fn boot_time() -> io::Result<i64> {
    /// `SystemTimeOfDayInformation`.
    const TIME_OF_DAY: SYSTEM_INFORMATION_CLASS = SYSTEM_INFORMATION_CLASS(3);
    /// Boot time, current time, zone bias, zone id and reserved, bias of boot time, of sleep time.
    const WORDS: usize = 6;
    let mut words = [0_i64; WORDS];
    let mut written = 0;
    let size = u32::try_from(WORDS * size_of::<i64>()).unwrap_or(u32::MAX);
    // SAFETY: the buffer has the size that is named.
    let status = unsafe {
        NtQuerySystemInformation(
            TIME_OF_DAY,
            words.as_mut_ptr().cast(),
            size,
            &raw mut written,
        )
    };
    status.ok().map_err(io::Error::from)?;
    Ok(words[0].wrapping_sub(words[4]))
}

/// A drive that holds files; None for one without a medium.
fn disk(letter: char) -> Option<Disk> {
    const NO_ROOT: u32 = 1;
    const REMOTE: u32 = 4;
    const READ_ONLY: u32 = 0x0008_0000;
    let root = format!(r"{letter}:\");
    let wide = HSTRING::from(root.as_str());
    // SAFETY: the string lives through the call.
    let kind = unsafe { GetDriveTypeW(&wide) };
    if kind <= NO_ROOT {
        return None;
    }
    let mut disk = Disk {
        mount_point: root.into(),
        file_system: String::new(),
        read_only: false,
        remote: kind == REMOTE,
        size: None,
        free: None,
    };
    if disk.remote {
        return Some(disk);
    }
    let mut name = [0_u16; 64];
    let mut flags = 0;
    // SAFETY: the buffers are ours to fill.
    unsafe {
        GetVolumeInformationW(
            &wide,
            None,
            None,
            None,
            Some(&raw mut flags),
            Some(&mut name),
        )
    }
    .ok()?;
    disk.file_system = until_zero(&name);
    disk.read_only = flags & READ_ONLY != 0;
    let (mut free, mut size) = (0, 0);
    // SAFETY: the numbers are ours to fill.
    let sizes =
        unsafe { GetDiskFreeSpaceExW(&wide, Some(&raw mut free), Some(&raw mut size), None) };
    if sizes.is_ok() {
        disk.size = Some(size);
        disk.free = Some(free);
    }
    Some(disk)
}

fn until_zero(units: &[u16]) -> String {
    let end = units
        .iter()
        .position(|unit| *unit == 0)
        .unwrap_or(units.len());
    String::from_utf16_lossy(&units[..end])
}

fn size_in_u32<T>() -> u32 {
    u32::try_from(size_of::<T>()).unwrap_or(u32::MAX)
}
