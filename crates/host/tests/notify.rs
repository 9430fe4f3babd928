//! Notifications arrive on both systems, with their sender, and in one piece.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

use std::time::Duration;

use camino::Utf8PathBuf;
use transom_host::notify::{self, Receiver, Sender};

fn folder() -> (tempfile::TempDir, Utf8PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = Utf8PathBuf::from_path_buf(folder.path().to_owned()).unwrap();
    (folder, path)
}

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(async {
            tokio::time::timeout(Duration::from_mins(1), future)
                .await
                .expect("nothing arrived")
        })
}

#[test]
fn a_message_arrives_with_its_sender() {
    let (_guard, folder) = folder();
    block_on(async {
        let mut receiver = Receiver::bind(&folder).unwrap();
        let address = notify::address(&folder);
        std::thread::spawn(move || notify::send(&address, "READY=1\nSTATUS=here").unwrap());
        let message = receiver.receive().await.unwrap();
        assert_eq!(message.text, "READY=1\nSTATUS=here");
        let ours = Sender::Process {
            pid: std::process::id(),
            is_our_user: true,
        };
        assert!(
            message.sender == ours || message.sender == Sender::OurUser,
            "{message:?}"
        );
    });
}

#[test]
fn a_folder_with_a_very_long_path_works_too() {
    let (_guard, mut folder) = folder();
    for _ in 0..4 {
        folder.push("a-folder-with-a-name-of-some-forty-letters");
    }
    fs_err::create_dir_all(&folder).unwrap();
    block_on(async {
        let mut receiver = Receiver::bind(&folder).unwrap();
        let address = notify::address(&folder);
        std::thread::spawn(move || notify::send(&address, "WATCHDOG=1").unwrap());
        assert_eq!(receiver.receive().await.unwrap().text, "WATCHDOG=1");
    });
}

#[test]
fn a_flood_of_messages_loses_none() {
    let (_guard, folder) = folder();
    block_on(async {
        let mut receiver = Receiver::bind(&folder).unwrap();
        let address = notify::address(&folder);
        std::thread::spawn(move || {
            for number in 0..50 {
                notify::send(&address, &format!("STATUS={number}")).unwrap();
            }
        });
        let mut seen = Vec::new();
        while seen.len() < 50 {
            seen.push(receiver.receive().await.unwrap().text);
        }
        seen.sort();
        let mut expected: Vec<String> = (0..50).map(|number| format!("STATUS={number}")).collect();
        expected.sort();
        assert_eq!(seen, expected);
    });
}

#[test]
fn nobody_listening_is_an_error_that_names_the_address() {
    let (_guard, folder) = folder();
    let address = notify::address(&folder);
    let error = notify::send(&address, "READY=1").unwrap_err();
    assert!(error.to_string().contains(&address), "{error}");
}
