//! Tests of selecting the session to resume.

use std::path::PathBuf;

use serde_json::json;

use super::*;

const ID: &str = "aaaaaaaa-2222-4333-8444-555555555555";

/// A configuration directory with one session of `/work`.
struct Fixture {
    config: tempfile::TempDir,
    transcript_dir: TranscriptDir,
}

impl Fixture {
    fn new() -> Self {
        let config = tempfile::tempdir().unwrap();
        let dir = TranscriptDir::new(config.path(), Path::new("/work"));
        let fixture = Self { config, transcript_dir: dir };
        let line = json!({"type": "user", "uuid": "u", "parentUuid": null, "sessionId": ID,
            "message": {"role": "user", "content": "Remember the word."}});
        std::fs::create_dir_all(fixture.transcript_path().parent().unwrap()).unwrap();
        std::fs::write(fixture.transcript_path(), format!("{line}\n")).unwrap();
        fixture
    }

    fn transcript_path(&self) -> PathBuf {
        self.transcript_dir.transcript(ID)
    }

    fn resolve(&self, options: &Options, writes: TranscriptWrites) -> Result<ResolvedSession, SetupError> {
        resolve_session(options, Some(&self.transcript_dir), writes, &Persistence::default())
    }
}

fn resume(session: &str) -> Options {
    Options { resume: Some(session.into()), ..Options::default() }
}

#[test]
fn sessions_resume_without_storage() {
    let fixture = Fixture::new();
    let before = std::fs::read(fixture.transcript_path()).unwrap();
    let here = Some("/".to_owned());
    let last = Options { continue_conversation: true, cwd: here, ..Options::default() };
    let forked = Options { fork_session: true, ..resume(ID) };
    for (name, options, is_same) in
        [("--resume", resume(ID), true), ("--continue", last, true), ("--fork-session", forked, false)]
    {
        let ResolvedSession { session, transcript_dir: dir, resumed, .. } =
            fixture.resolve(&options, TranscriptWrites::Disabled).unwrap();
        let mut resumed = resumed.unwrap();
        assert!(resumed.loaded.history.snapshot().messages().len() == 1, "{name}");
        assert_eq!((session == ID, dir.is_none()), (is_same, true), "{name}");
        assert!(resumed.lock.is_none() && !resumed.rename("New", ID).unwrap(), "{name}: it has no lock");
    }
    assert_eq!(std::fs::read(fixture.transcript_path()).unwrap(), before);
    let resumed_session = fixture.resolve(&resume(ID), TranscriptWrites::Enabled).unwrap();
    assert!(resumed_session.resumed.unwrap().lock.is_some());
    assert_eq!(fixture.config.path().read_dir().unwrap().count(), 1);
}

#[test]
fn session_id_is_found_in_any_capitalization_and_unique() {
    let fixture = Fixture::new();
    let uppercase = ID.to_uppercase();
    let found = fixture.resolve(&resume(&uppercase), TranscriptWrites::Enabled).unwrap();
    assert_eq!(found.session, ID, "spelled as in the stored file name");
    drop(found);
    let elsewhere = TranscriptDir::new(fixture.config.path(), Path::new("/elsewhere"));
    let new = |id: &str| Options { session_id: Some(id.into()), ..Options::default() };
    let forked = Options { session_id: Some(ID.into()), fork_session: true, ..resume(ID) };
    for (name, options, dir) in [
        ("same id", new(ID), &fixture.transcript_dir),
        ("same id in uppercase", new(&uppercase), &fixture.transcript_dir),
        ("same id in another directory", new(ID), &elsewhere),
        ("fork with its own id", forked, &fixture.transcript_dir),
    ] {
        let error = resolve_session(&options, Some(dir), TranscriptWrites::Enabled, &Persistence::default())
            .unwrap_err();
        assert!(error.to_string().contains("already exists"), "{name}: {error}");
    }
    for invalid in [&format!("{{{ID}}}"), &ID.replace('-', "")] {
        for options in [new(invalid), resume(invalid)] {
            assert!(
                matches!(
                    fixture.resolve(&options, TranscriptWrites::Enabled),
                    Err(SetupError::Invalid(_) | SetupError::InvalidOption { .. })
                ),
                "{invalid}"
            );
        }
    }
}

#[test]
fn session_without_messages_can_be_resumed() {
    let fixture = Fixture::new();
    let title = json!({"type": "custom-title", "customTitle": "x", "sessionId": ID}).to_string();
    for text in ["", title.as_str()] {
        std::fs::write(fixture.transcript_path(), text).unwrap();
        for options in [resume(ID), Options { fork_session: true, ..resume(ID) }] {
            for writes in [TranscriptWrites::Enabled, TranscriptWrites::Disabled] {
                let resumed = fixture.resolve(&options, writes).unwrap().resumed;
                assert!(resumed.is_some_and(|resumed| !resumed.loaded.has_messages()), "{text:?}");
            }
        }
    }
    std::fs::write(fixture.transcript_path(), "half of what was sa\n").unwrap();
    assert!(
        fixture.resolve(&resume(ID), TranscriptWrites::Enabled).unwrap().warning.is_some(),
        "damage is reported"
    );
}
