//! Appending to disks that are full, write partially, or fail to sync.

use std::sync::{Arc, Mutex};

use super::*;

/// A disk of limited capacity with injected faults.
#[derive(Default)]
struct FakeDisk {
    bytes: Vec<u8>,
    synced: usize,
    capacity: usize,
    cannot_truncate: bool,
    cannot_sync: bool,
    opened: usize,
    dir_entry_syncs: usize,
    cannot_sync_dir_entry: bool,
}

struct FakeFile(Arc<Mutex<FakeDisk>>);

impl AppendFile for FakeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut disk = self.0.lock().unwrap();
        let fits = bytes.len().min(disk.capacity.saturating_sub(disk.bytes.len()));
        if fits == 0 {
            return Err(io::Error::from_raw_os_error(nix::errno::Errno::ENOSPC as i32));
        }
        disk.bytes.extend_from_slice(&bytes[..fits]);
        Ok(fits)
    }

    fn position(&mut self) -> io::Result<u64> {
        self.length()
    }

    fn length(&mut self) -> io::Result<u64> {
        Ok(self.0.lock().unwrap().bytes.len() as u64)
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        let mut disk = self.0.lock().unwrap();
        if disk.cannot_truncate {
            return Err(io::ErrorKind::ReadOnlyFilesystem.into());
        }
        disk.bytes.truncate(usize::try_from(length).unwrap());
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut disk = self.0.lock().unwrap();
        if disk.cannot_sync {
            return Err(io::Error::from_raw_os_error(nix::errno::Errno::EIO as i32));
        }
        disk.synced = disk.bytes.len();
        Ok(())
    }

    fn sync_dir_entry(&mut self, _: &Path) -> io::Result<()> {
        let mut disk = self.0.lock().unwrap();
        if disk.cannot_sync_dir_entry {
            return Err(io::Error::from_raw_os_error(nix::errno::Errno::EIO as i32));
        }
        disk.dir_entry_syncs += 1;
        Ok(())
    }

    fn is_at(&self, _: &Path) -> bool {
        true
    }

    fn read_at(&self, _: u64, _: &mut [u8]) -> io::Result<usize> {
        Ok(0)
    }

    fn overwrite(&mut self, _: &Path, _: u64, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

fn appender_on(disk: FakeDisk, durability: Durability) -> (LineAppender, Arc<Mutex<FakeDisk>>) {
    let disk = Arc::new(Mutex::new(disk));
    let shared = Arc::clone(&disk);
    let open: FileOpener = Box::new(move |_| {
        shared.lock().unwrap().opened += 1;
        Ok(Box::new(FakeFile(Arc::clone(&shared))))
    });
    (LineAppender::with_opener("/x".into(), durability, open), disk)
}

fn content(disk: &Arc<Mutex<FakeDisk>>) -> String {
    String::from_utf8(disk.lock().unwrap().bytes.clone()).unwrap()
}

fn line(text: &str) -> Vec<u8> {
    format!("{text}\n").into_bytes()
}

#[test]
fn line_is_rolled_back_and_rewritten_after_disk_full() {
    for room in 6..12 {
        let (mut file, disk) =
            appender_on(FakeDisk { capacity: room, ..FakeDisk::default() }, Durability::System);
        file.append(line("first")).unwrap();
        assert!(file.append(line("second")).is_err());
        assert_eq!((content(&disk).as_str(), file.pending_count()), ("first\n", 1), "room for {room}");
        assert!(file.append(line("third")).is_err());
        disk.lock().unwrap().capacity = 100;
        file.append(line("fourth")).unwrap();
        assert_eq!(content(&disk), "first\nsecond\nthird\nfourth\n");
        assert_eq!(file.pending_count(), 0);
    }
}

#[test]
fn directory_entry_of_new_file_is_synced_once() {
    let disk = || FakeDisk { capacity: 1000, ..FakeDisk::default() };
    for (durability, named) in [(Durability::System, 0), (Durability::Turn, 1), (Durability::Strict, 1)] {
        let (mut file, disk) = appender_on(disk(), durability);
        for text in ["1", "2"] {
            file.append(line(text)).unwrap();
            file.end_turn().unwrap();
        }
        assert_eq!(disk.lock().unwrap().dir_entry_syncs, named, "{durability:?}");
    }
    let (mut file, old) = appender_on(FakeDisk { bytes: line("0"), ..disk() }, Durability::Strict);
    file.append(line("1")).unwrap();
    assert_eq!(old.lock().unwrap().dir_entry_syncs, 0, "it was there before");
    let (mut file, disk) =
        appender_on(FakeDisk { cannot_sync_dir_entry: true, ..disk() }, Durability::Strict);
    assert!(file.append(line("1")).is_err(), "it would be gone with its folder");
    disk.lock().unwrap().cannot_sync_dir_entry = false;
    file.append(line("2")).unwrap();
    assert_eq!(disk.lock().unwrap().dir_entry_syncs, 1);
}

#[test]
fn partial_line_that_cannot_be_truncated_is_ended_and_rewritten() {
    let (mut file, disk) = appender_on(
        FakeDisk { capacity: 9, cannot_truncate: true, ..FakeDisk::default() },
        Durability::System,
    );
    file.append(line("first")).unwrap();
    assert!(file.append(line("second")).is_err());
    assert!(file.append(line("third")).is_err());
    disk.lock().unwrap().capacity = 100;
    file.end_turn().unwrap();
    assert_eq!(content(&disk), "first\nsec\nsecond\nthird\n");
}

#[test]
fn durability_decides_when_lines_are_synced() {
    let rows = [(Durability::System, 0, 0), (Durability::Turn, 0, 6), (Durability::Strict, 6, 6)];
    for (durability, after_line, after_turn) in rows {
        let (mut file, disk) = appender_on(FakeDisk { capacity: 100, ..FakeDisk::default() }, durability);
        file.append(line("first")).unwrap();
        assert_eq!(disk.lock().unwrap().synced, after_line, "{durability:?}");
        file.end_turn().unwrap();
        assert_eq!(disk.lock().unwrap().synced, after_turn, "{durability:?}");
    }
}

#[test]
fn failed_sync_reopens_file_and_rewrites_lines() {
    let (mut file, disk) =
        appender_on(FakeDisk { capacity: 100, cannot_sync: true, ..FakeDisk::default() }, Durability::Turn);
    file.append(line("first")).unwrap();
    assert!(file.end_turn().is_err());
    disk.lock().unwrap().cannot_sync = false;
    file.append(line("second")).unwrap();
    file.end_turn().unwrap();
    assert_eq!(content(&disk), "first\nfirst\nsecond\n");
    let disk = disk.lock().unwrap();
    assert_eq!((disk.opened, disk.synced), (2, 19));
}

#[test]
fn partial_last_line_is_removed_and_unterminated_line_kept() {
    let dir = tempfile::tempdir().unwrap();
    let rows = [
        ("", "{}\n"),
        ("{\"a\":1}\n", "{\"a\":1}\n{}\n"),
        ("{\"a\":1}\n{\"b\"", "{\"a\":1}\n{}\n"),
        ("{\"a\":1}\n{\"b\":2}", "{\"a\":1}\n{\"b\":2}\n{}\n"),
        ("{\"b\"", "{}\n"),
        ("{\"b\":2}", "{\"b\":2}\n{}\n"),
    ];
    for (number, (before, after)) in rows.into_iter().enumerate() {
        let path = dir.path().join(format!("{number}/file.jsonl"));
        std::fs::create_dir(path.parent().unwrap()).unwrap();
        std::fs::write(&path, before).unwrap();
        LineAppender::new(path.clone(), Durability::System).append(line("{}")).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), after, "{before:?}");
    }
    let long = format!("{{\"a\":1}}\n{{\"b\":\"{}", "x".repeat(200_000));
    let path = dir.path().join("long.jsonl");
    std::fs::write(&path, long).unwrap();
    LineAppender::new(path.clone(), Durability::System).append(line("{}")).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"a\":1}\n{}\n");
}

#[test]
fn symlink_and_pipe_are_rejected() {
    let dir = tempfile::tempdir().unwrap();
    let (link, pipe) = (dir.path().join("link"), dir.path().join("pipe"));
    std::os::unix::fs::symlink("/etc/hosts", &link).unwrap();
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    for path in [link, pipe] {
        assert!(LineAppender::new(path, Durability::System).append(line("{}")).is_err());
    }
}

#[test]
fn concurrent_reader_sees_only_whole_lines() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.jsonl");
    let mut line_appender = LineAppender::new(path.clone(), Durability::System);
    let text = "x".repeat(9_000);
    let writer = std::thread::spawn(move || {
        for number in 0..100 {
            let line = serde_json::json!({"number": number, "text": text}).to_string();
            line_appender.append(format!("{line}\n").into_bytes()).unwrap();
        }
    });
    let mut seen = 0;
    while seen < 100 {
        let bytes = std::fs::read(&path).unwrap_or_default();
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let lines = bytes[..whole].split_inclusive(|byte| *byte == b'\n');
        let numbers: Vec<u64> = lines
            .map(|line| {
                serde_json::from_slice::<serde_json::Value>(line).unwrap()["number"].as_u64().unwrap()
            })
            .collect();
        assert!(numbers.iter().copied().eq(0..numbers.len() as u64));
        assert!(numbers.len() >= seen, "what was there has gone");
        seen = numbers.len();
    }
    writer.join().unwrap();
}

#[test]
fn removed_file_is_written_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("deep/t.jsonl");
    let read = || std::fs::read_to_string(&path).unwrap();
    let mut file = LineAppender::new(path.clone(), Durability::Strict);
    assert!(!file.restore_if_detached().unwrap(), "nothing is there yet");
    file.append(b"1\n".to_vec()).unwrap();
    assert!(!file.restore_if_detached().unwrap());
    std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    file.append(b"2\n".to_vec()).unwrap();
    assert!(file.restore_if_detached().unwrap());
    assert_eq!(read(), "1\n2\n");
    std::fs::rename(&path, dir.path().join("aside")).unwrap();
    std::fs::write(&path, "").unwrap();
    assert!(file.restore_if_detached().unwrap());
    assert_eq!(read(), "1\n2\n", "replaced by an empty one");
    file.append(b"3\n".to_vec()).unwrap();
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "1\n2\nedited\n").unwrap();
    file.append(b"4\n".to_vec()).unwrap();
    assert!(file.restore_if_detached().unwrap());
    assert_eq!(read(), "1\n2\nedited\n3\n4\n", "replaced by another one");
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    assert!(file.restore_if_detached().is_err());
    assert!(file.append(b"5\n".to_vec()).is_err());
    std::fs::remove_dir(&path).unwrap();
    file.append(b"6\n".to_vec()).unwrap();
    assert_eq!(read(), "1\n2\nedited\n3\n4\n5\n6\n");
}

#[test]
fn bytes_are_overwritten_only_where_they_are_expected() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.jsonl");
    let mut file = LineAppender::new(path.clone(), Durability::System);
    file.append(line("{\"a\":1}")).unwrap();
    file.append(line("{\"b\":2}")).unwrap();
    let offset = file.last_line_offset(8).unwrap();
    file.append(line("{\"c\":3}")).unwrap();
    file.overwrite(offset + 5, b"2", b"9").unwrap();
    file.overwrite(offset + 5, b"7", b"8").unwrap();
    file.append(line("{\"d\":4}")).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"a\":1}\n{\"b\":9}\n{\"c\":3}\n{\"d\":4}\n");
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "foreign").unwrap();
    assert!(file.overwrite(offset + 5, b"9", b"2").is_err());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "foreign");
}
