//! The program that holds a pod on Linux: it does nothing, in some hundred bytes, and needs nothing. Made here, so that
//! a node needs no registry to run its first pod.
//!
//! Invariant: the same machine type gives the same image, byte for byte.

use serde_json::json;

use super::Inner;
use super::client::encode;
use super::wire::InspectedImage;
use crate::RuntimeError;
use crate::images::Digest;

/// The name says what is in it: another program would have another number.
pub(super) const NAME: &str = "transom.dev/pause:1";
const PROGRAM: &str = "pause";
/// Where the program is in memory, and how long its two heads are.
const BASE: u64 = 0x40_0000;
const HEADS: u64 = 64 + 56;

/// `rt_sigaction(SIGCHLD, SIG_IGN)`, so that the kernel buries the children of a pod that shares its processes; then
/// `pause` for ever.
const AMD64: &[u8] = &[
    0x6a, 0x00, // push 0: no mask
    0x6a, 0x00, // push 0: no restorer
    0x6a, 0x00, // push 0: no flags
    0x6a, 0x01, // push 1: SIG_IGN
    0xbf, 0x11, 0x00, 0x00, 0x00, // mov edi, SIGCHLD
    0x48, 0x89, 0xe6, // mov rsi, rsp
    0x31, 0xd2, // xor edx, edx
    0x41, 0xba, 0x08, 0x00, 0x00, 0x00, // mov r10d, 8
    0xb8, 0x0d, 0x00, 0x00, 0x00, // mov eax, rt_sigaction
    0x0f, 0x05, // syscall
    0xb8, 0x22, 0x00, 0x00, 0x00, // again: mov eax, pause
    0x0f, 0x05, // syscall
    0xeb, 0xf7, // jmp again
];

/// The same with `ppoll`, because there is no `pause`.
const ARM64: [u32; 17] = [
    0xd280_0029, // mov x9, SIG_IGN
    0xa9be_7fe9, // stp x9, xzr, [sp, -32]!
    0xa901_7fff, // stp xzr, xzr, [sp, 16]
    0xd280_0220, // mov x0, SIGCHLD
    0x9100_03e1, // mov x1, sp
    0xd280_0002, // mov x2, 0
    0xd280_0103, // mov x3, 8
    0xd280_10c8, // mov x8, rt_sigaction
    0xd400_0001, // svc 0
    0xd280_0000, // again: mov x0, 0
    0xd280_0001, // mov x1, 0
    0xd280_0002, // mov x2, 0
    0xd280_0003, // mov x3, 0
    0xd280_0004, // mov x4, 0
    0xd280_0928, // mov x8, ppoll
    0xd400_0001, // svc 0
    0x17ff_fff9, // b again
];

impl Inner {
    /// The image that holds pods: the one of the configuration, or ours, brought over there if need be.
    pub(super) async fn sandbox_image(&self) -> Result<String, RuntimeError> {
        if let Some(image) = &self.config.sandbox_image {
            if self.image(image).await?.is_none() {
                let pull = crate::Pull {
                    reference: image.clone(),
                    credentials: Vec::new(),
                    progress: None,
                };
                self.pull(&pull).await?;
            }
            return Ok(image.clone());
        }
        let path = format!("/images/{}/json", encode(NAME));
        match self.client.get::<InspectedImage>(&path).await {
            Ok(_) => return Ok(NAME.to_owned()),
            Err(fault) if fault.is_missing() => {}
            Err(fault) => return Err(fault.explain("image", NAME)),
        }
        let told = self.client.greet(super::client::CALL).await;
        let architecture = told
            .map_err(|fault| fault.explain("version", ""))?
            .architecture;
        self.import(image(&architecture)?.into()).await?;
        Ok(NAME.to_owned())
    }
}

/// The program as a file.
fn program(architecture: &str) -> Result<Vec<u8>, RuntimeError> {
    let (machine, code): (u16, Vec<u8>) = match architecture {
        "amd64" => (62, AMD64.to_vec()),
        "arm64" => (
            183,
            ARM64.iter().flat_map(|word| word.to_le_bytes()).collect(),
        ),
        other => {
            return Err(RuntimeError::NotSupported(format!(
                "there is no program to hold a pod on {other}: name an image of one with --sandbox-image"
            )));
        }
    };
    let mut file = Vec::new();
    // 64 bits, little endian, version 1, of no particular system.
    file.extend_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    file.extend_from_slice(&2_u16.to_le_bytes()); // A program.
    file.extend_from_slice(&machine.to_le_bytes());
    file.extend_from_slice(&1_u32.to_le_bytes());
    file.extend_from_slice(&(BASE + HEADS).to_le_bytes()); // Where it begins.
    file.extend_from_slice(&64_u64.to_le_bytes()); // Where the second head is.
    file.extend_from_slice(&0_u64.to_le_bytes()); // No sections.
    file.extend_from_slice(&0_u32.to_le_bytes());
    for size in [64_u16, 56, 1, 64, 0, 0] {
        file.extend_from_slice(&size.to_le_bytes());
    }
    // All of the file is loaded, to be read and executed.
    file.extend_from_slice(&1_u32.to_le_bytes());
    file.extend_from_slice(&5_u32.to_le_bytes());
    let length = HEADS + code.len() as u64;
    for number in [0, BASE, BASE, length, length, 0x1000] {
        file.extend_from_slice(&number.to_le_bytes());
    }
    file.extend_from_slice(&code);
    Ok(file)
}

/// The archive of the image, as Docker takes it.
fn image(architecture: &str) -> Result<Vec<u8>, RuntimeError> {
    let failed = |error| RuntimeError::io("make the image that holds pods", error);
    let layer = archive(&[(PROGRAM, program(architecture)?, 0o555)]).map_err(failed)?;
    let digest = Digest::of(&layer);
    let configuration = json!({
        "architecture": architecture,
        "os": "linux",
        "config": {"Entrypoint": [format!("/{PROGRAM}")]},
        "rootfs": {"type": "layers", "diff_ids": [digest.as_str()]},
    });
    let saved = json!([{"Config": "config.json", "RepoTags": [NAME], "Layers": ["layer.tar"]}]);
    archive(&[
        ("config.json", configuration.to_string().into_bytes(), 0o444),
        ("layer.tar", layer, 0o444),
        ("manifest.json", saved.to_string().into_bytes(), 0o444),
    ])
    .map_err(failed)
}

fn archive(files: &[(&str, Vec<u8>, u32)]) -> std::io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    for (path, bytes, mode) in files {
        let mut header = tar::Header::new_gnu();
        header.set_mode(*mode);
        header.set_mtime(0);
        header.set_size(bytes.len() as u64);
        archive.append_data(&mut header, path, bytes.as_slice())?;
    }
    archive.into_inner()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_small_and_of_its_machine() {
        for (architecture, machine) in [("amd64", 62), ("arm64", 183)] {
            let file = program(architecture).unwrap();
            assert!(file.starts_with(b"\x7fELF") && file.len() < 256);
            assert_eq!(file[18], machine);
            assert_eq!(image(architecture).unwrap(), image(architecture).unwrap());
        }
        let refusal = image("s390x").unwrap_err();
        assert!(
            matches!(refusal, RuntimeError::NotSupported(_)),
            "{refusal}"
        );
    }
}
