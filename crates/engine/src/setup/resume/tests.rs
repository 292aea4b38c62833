use std::path::PathBuf;

use serde_json::json;

use super::*;

const ID: &str = "aaaaaaaa-2222-4333-8444-555555555555";

/// A configuration directory with one session of `/work`.
struct Fixture {
    config: tempfile::TempDir,
    project_dir: ProjectDir,
}

impl Fixture {
    fn new() -> Self {
        let config = tempfile::tempdir().unwrap();
        let dir = ProjectDir::new(config.path(), Path::new("/work"));
        let project_dir = Self { config, project_dir: dir };
        let line = json!({"type": "user", "uuid": "u", "parentUuid": null, "sessionId": ID,
            "message": {"role": "user", "content": "Remember the tulip."}});
        std::fs::create_dir_all(project_dir.transcript_path().parent().unwrap()).unwrap();
        std::fs::write(project_dir.transcript_path(), format!("{line}\n")).unwrap();
        project_dir
    }

    fn transcript_path(&self) -> PathBuf {
        self.project_dir.transcript(ID)
    }

    fn resolve(&self, options: &Options, writes: TranscriptWrites) -> Result<ResolvedSession, SetupError> {
        resolve_session(options, Some(&self.project_dir), writes, &Persistence::default())
    }
}

fn resume(session: &str) -> Options {
    Options { resume: Some(session.into()), ..Options::default() }
}

#[test]
fn sessions_resume_without_storage() {
    let project_dir = Fixture::new();
    let before = std::fs::read(project_dir.transcript_path()).unwrap();
    let here = Some("/".to_owned());
    let last = Options { continue_conversation: true, cwd: here, ..Options::default() };
    let forked = Options { fork_session: true, ..resume(ID) };
    for (name, options, is_same) in
        [("--resume", resume(ID), true), ("--continue", last, true), ("--fork-session", forked, false)]
    {
        let ResolvedSession { session, project_dir: dir, resumed, .. } =
            project_dir.resolve(&options, TranscriptWrites::Disabled).unwrap();
        let mut resumed = resumed.unwrap();
        assert!(resumed.loaded.history.snapshot().messages().len() == 1, "{name}");
        assert_eq!((session == ID, dir.is_none()), (is_same, true), "{name}");
        assert!(resumed.lock.is_none() && !resumed.rename("New", ID).unwrap(), "{name}: it has no lock");
    }
    assert_eq!(std::fs::read(project_dir.transcript_path()).unwrap(), before);
    let held = project_dir.resolve(&resume(ID), TranscriptWrites::Enabled).unwrap();
    assert!(held.resumed.unwrap().lock.is_some());
    assert_eq!(project_dir.config.path().read_dir().unwrap().count(), 1);
}

#[test]
fn session_id_is_found_in_any_spelling_and_unique() {
    let project_dir = Fixture::new();
    let shouted = ID.to_uppercase();
    let found = project_dir.resolve(&resume(&shouted), TranscriptWrites::Enabled).unwrap();
    assert_eq!(found.session, ID, "spelled as in the stored file name");
    drop(found);
    let elsewhere = ProjectDir::new(project_dir.config.path(), Path::new("/elsewhere"));
    let new = |id: &str| Options { session_id: Some(id.into()), ..Options::default() };
    let forked = Options { session_id: Some(ID.into()), fork_session: true, ..resume(ID) };
    for (name, options, dir) in [
        ("the same", new(ID), &project_dir.project_dir),
        ("the same in capitals", new(&shouted), &project_dir.project_dir),
        ("the same in another folder", new(ID), &elsewhere),
        ("a copy of itself", forked, &project_dir.project_dir),
    ] {
        let refused =
            resolve_session(&options, Some(dir), TranscriptWrites::Enabled, &Persistence::default())
                .unwrap_err();
        assert!(refused.to_string().contains("already exists"), "{name}: {refused}");
    }
    for odd in [&format!("{{{ID}}}"), &ID.replace('-', "")] {
        for options in [new(odd), resume(odd)] {
            assert!(
                matches!(
                    project_dir.resolve(&options, TranscriptWrites::Enabled),
                    Err(SetupError::Invalid(_))
                ),
                "{odd}"
            );
        }
    }
}

#[test]
fn session_without_messages_can_be_resumed() {
    let project_dir = Fixture::new();
    let title = json!({"type": "custom-title", "customTitle": "x", "sessionId": ID}).to_string();
    for text in ["", title.as_str()] {
        std::fs::write(project_dir.transcript_path(), text).unwrap();
        for options in [resume(ID), Options { fork_session: true, ..resume(ID) }] {
            for writes in [TranscriptWrites::Enabled, TranscriptWrites::Disabled] {
                let resumed = project_dir.resolve(&options, writes).unwrap().resumed;
                assert!(resumed.is_some_and(|resumed| !resumed.loaded.has_messages()), "{text:?}");
            }
        }
    }
    std::fs::write(project_dir.transcript_path(), "half of what was sa\n").unwrap();
    assert!(
        project_dir.resolve(&resume(ID), TranscriptWrites::Enabled).unwrap().warning.is_some(),
        "what is spoilt is told"
    );
}
